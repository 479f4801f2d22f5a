"""What generation starts from: the set as it stands, and the queries it is to be like."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragforge.config import Settings
from ragforge.errors import UsageError
from ragforge.files.manifest import GenerationStep
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.generation.source import Prepared, take_corpus
from ragforge.pipeline.generation.team import Team
from ragforge.records import Query
from ragforge.stages.generate.gates.repeated_questions import Taken

SETTLED = "settled"
"""In the place of the slot of a query that is not made again."""


def is_own(query: Query) -> bool:
    """Whether generation made a query, and makes it again."""
    return _is_made(query) and not is_settled(query)


def is_settled(query: Query) -> bool:
    """Whether generation made a query that now stands by itself."""
    return query.lineage is not None and query.lineage.slot == SETTLED


def is_kept(query: Query) -> bool:
    """Whether a person had a hand in a query, so that it is never written over."""
    is_decided = query.pinned is not None or query.reviewed is not None
    return is_decided or query.revision > 1 or query.status == "retired"


def settle(dataset: Dataset) -> None:
    """Settle the queries of a dataset; what was asked for so far is forgotten."""
    dataset.write_queries([settled(query) for query in dataset.all_queries()])
    manifest = dataset.manifest
    if manifest.steps:
        dataset.write_manifest(manifest.model_copy(update={"steps": ()}))


def settled(query: Query) -> Query:
    """Return a query that is not made again, where it was generated."""
    if query.lineage is None or not is_own(query):
        return query
    lineage = query.lineage.model_copy(update={"slot": SETTLED})
    return query.model_copy(update={"lineage": lineage})


def _is_made(query: Query) -> bool:
    return query.origin == "synthetic" and query.lineage is not None and query.lineage.slot != ""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What generation starts from.

    Args:
        steps: What was asked for so far beyond what is settled; the last is what is wanted now.
            Each is generated in its turn, so that a set that grew step by step comes out the same
            again.
        others: Queries of the set that generation did not make.
        own: Those that it made, by id.
        real: Queries of users, whose manner is taken on.
    """

    steps: tuple[GenerationStep, ...]
    others: tuple[Query, ...]
    own: dict[str, Query]
    real: tuple[str, ...]

    @property
    def n_wanted(self) -> int:
        """How many queries are wanted, settled ones included."""
        return self.n_settled + (self.steps[-1].n if self.steps else 0)

    @property
    def settled(self) -> list[Query]:
        """Generated queries that stand by themselves, rejected ones included."""
        return [query for query in self.others if is_settled(query)]

    @property
    def n_settled(self) -> int:
        """How many of those count."""
        return sum(query.status == "accepted" for query in self.settled)

    def taken(self) -> Taken:
        """Return the questions that must not come again."""
        found = Taken()
        for query in self.others:
            found.add(query.query_id, query.asked)
        return found


def open_inputs(
    out: Path, chunks: Prepared, made_from: dict[str, str], settings: Settings, real: Sequence[str]
) -> Inputs:
    """Make the dataset, or open the one that the same inputs made, and tell what is in it.

    Raises:
        UsageError: The directory holds another dataset, or one edited by hand.
        DataError: It cannot be made or read.
    """
    dataset = create_dataset(out, made_from)
    if dataset.changed_by_hand("queries.jsonl"):
        raise UsageError(
            f"{dataset.path / 'queries.jsonl'}: was changed by hand since it was generated; "
            "name another --out so that no edit is lost, or make edits with `ragforge review`"
        )
    take_corpus(dataset, chunks)
    queries = dataset.all_queries()
    steps = _steps(dataset, settings.generate.n, queries)
    return Inputs(
        steps=steps,
        others=tuple(query for query in queries if not is_own(query)),
        own={query.query_id: query for query in queries if is_own(query)},
        real=tuple(real),
    )


def made_from(digest: str, settings: Settings, team: Team, real: Sequence[str]) -> dict[str, str]:
    """Return what decides which queries come out, apart from their number.

    Args:
        digest: Of the chunks.
        settings: As given.
        team: With its prompts.
        real: Queries whose manner is taken on.
    """
    how = settings.generate
    shares = (how.types, how.difficulties, how.personas)
    return {
        "chunks": digest,
        "model": team.writer.name,
        "checker": team.checker.name if team.checker else "",
        "prompts": " ".join(digest[:12] for _, digest in sorted(team.prompts.items())),
        "seed": str(settings.model.seed),
        "language": ",".join(how.language),
        "kinds": "; ".join(",".join(each) for each in shares),
        "candidates": f"{how.per_call} a call, {how.per_chunk} calls a chunk",
        "style": digest_of(real),
    }


def digest_of(texts: Sequence[str]) -> str:
    """Return a short digest of some texts; "" of none."""
    from hashlib import sha256

    joined = "\n".join(texts).encode("utf-8", "surrogatepass")
    return sha256(joined).hexdigest()[:16] if texts else ""


def _steps(dataset: Dataset, n: int, queries: Sequence[Query]) -> tuple[GenerationStep, ...]:
    """Return what was asked for so far, and now; a smaller number adds nothing."""
    n -= sum(is_settled(query) and query.status == "accepted" for query in queries)
    manifest = dataset.manifest
    before = manifest.steps
    known = {query_id for step in before for query_id in step.taken_out}
    retired = {q.query_id for q in queries if is_own(q) and q.status == "retired"}
    out = tuple(sorted(retired - known))
    least = before[-1].n if before else 0
    if n <= least and not out:
        return before
    steps = (*before, GenerationStep(n=max(n, least), taken_out=out))
    dataset.write_manifest(manifest.model_copy(update={"steps": steps}))
    return steps
