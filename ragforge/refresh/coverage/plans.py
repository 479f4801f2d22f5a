"""What a set lacks since its corpus changed: how many queries, of which kinds, about what."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from ragforge.config import Settings
from ragforge.corpus.chunk_cards import is_askable
from ragforge.corpus.survey import Survey
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.generation.estimate import estimate_cells
from ragforge.pipeline.generation.files import documents_of
from ragforge.pipeline.generation.rounds import cell_like, missing_cells
from ragforge.pipeline.generation.team import Team
from ragforge.pipeline.surveying import Surveyed
from ragforge.records import Query
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.items.settled import SettledSet
from ragforge.stages.generate.quotas import Cell, make_cells

BY_HAND = "none of its queries was generated, so none is generated into it"


@dataclass(frozen=True, slots=True)
class CoveragePlan:
    """The queries that a version gets.

    Args:
        version: For which it is.
        n_accepted: Accepted queries before any is added.
        wanted: Accepted queries that refreshes keep the set at, from this version on.
        cells: One for each query to generate, numbered from 0.
        fresh: The documents that are asked about first, each once, with their new chunks: added
            or changed ones without a query; no more than there are cells.
        growth: Those of the added documents for which the set grows by a query.
        refused: Why there are fewer cells than queries are missing; "" where there are not.
    """

    version: int
    n_accepted: int
    wanted: int
    cells: tuple[Cell, ...] = ()
    fresh: Mapping[str, frozenset[str]] = field(default_factory=dict)
    growth: frozenset[str] = frozenset()
    refused: str = ""

    @property
    def n_missing(self) -> int:
        """How many queries fewer than wanted there are."""
        return max(0, self.wanted - self.n_accepted)

    def shortfall(self, n_added: int, gave_up: str = "") -> str:
        """Return what is still missing and why, in a sentence; "" where nothing is.

        Args:
            n_added: Queries that were generated.
            gave_up: Why generation stopped where it had sources left; "" where it did not.
        """
        if n_added >= self.n_missing:
            return ""
        why = [self.refused] if self.refused else []
        if n_added < len(self.cells):
            why.append(gave_up or "the corpus carries no more of them")
        return (
            f"{n_added} of {self.n_missing} missing queries were added (the set is kept at "
            f"{self.wanted}): {'; '.join(why)}"
        )


def seed_of(settings: Settings, version: int) -> int:
    """Return the seed by which the sources and kinds of a version's new queries are chosen."""
    text = f"coverage\n{settings.model.seed}\n{version}"
    return int.from_bytes(sha256(text.encode()).digest()[:4])


def plan_coverage(
    parent: Dataset,
    settled: SettledSet,
    survey: Survey,
    diff: CorpusDiff,
    settings: Settings,
    version: int,
) -> CoveragePlan:
    """Return which queries a version lacks.

    As many are accepted as its parent had, or as `refresh.at_least` asks for: what is lost is
    replaced, by this version or, where `refresh.max_new` or the corpus does not allow it, by later
    ones. Beyond that the set grows with its corpus, at the rate at which it covers it: where
    queries of the parent rest on a third of its documents, a third of the added ones are given a
    query. Which ones is decided by hashing their ids, so that a document a night adds up to the
    same as all of them at once; 10,000 new documents beside a set of 20 queries on 1,000 ask for
    some 200, and `refresh.max_new` says how many of these come now. A set that a person made is
    left as it is.

    Args:
        parent: The version before.
        settled: Its queries as they are now.
        survey: Of the corpus as it is now.
        diff: What changed in it.
        settings: As given.
        version: The number of the version that is made.
    """
    now = [query for query in settled.queries if query.status == "accepted"]
    before = [item.before for item in settled.items if item.before is not None]
    accepted = [query for query in before if query.status == "accepted"]
    is_made = any(query.origin == "synthetic" for query in settled.queries)
    fresh = _fresh(now, survey, diff) if is_made else {}
    share = _covered_share(accepted, diff)
    growth = {
        doc_id
        for doc_id in set(diff.documents.added).intersection(fresh)
        if _place(f"grow\n{settings.model.seed}\n{doc_id}") < share
    }
    wanted = _wanted(parent, len(accepted)) + len(growth)
    wanted = max(wanted, settings.refresh.at_least or 0)
    missing = max(0, wanted - len(now))
    most = settings.refresh.max_new if is_made else 0
    n_new = min(missing, most)
    return CoveragePlan(
        version=version,
        n_accepted=len(now),
        wanted=wanted,
        cells=_cells(now, n_new, settings, version),
        fresh=_first(fresh, growth, n_new, seed_of(settings, version)),
        growth=frozenset(growth),
        refused="" if missing <= most else _refusal(settings, is_made=is_made),
    )


async def estimate_coverage(
    plan: CoveragePlan, team: Team, survey: Surveyed, settings: Settings, real: Sequence[str]
) -> dict[str, object]:
    """Return how many queries a plan generates and what that takes, pools included.

    Args:
        plan: What is to be generated.
        team: In a dry run.
        survey: Of the corpus.
        settings: As given.
        real: Queries of users, whose manner is taken on.
    """
    counts = {"queries": len(plan.cells), "missing": plan.n_missing}
    if not plan.cells:
        return {**counts, "calls": 0}
    return {**counts, **await estimate_cells(team, survey, settings, real, plan.cells)}


def _wanted(parent: Dataset, n_accepted: int) -> int:
    """Return the number that the set is kept at: its own, and what came by other ways since.

    Queries that a refresh found again are a surplus that no later one adds to.
    """
    aim = parent.manifest.aim
    if aim is None:
        return n_accepted
    return aim.wanted + max(0, n_accepted - max(aim.accepted, aim.wanted))


def _refusal(settings: Settings, *, is_made: bool) -> str:
    if not is_made:
        return BY_HAND
    return f"refresh.max_new allows {settings.refresh.max_new}"


def _covered_share(accepted: Iterable[Query], diff: CorpusDiff) -> float:
    """Return the share of the documents of the parent that its queries rest on."""
    covered = {item.doc_id for query in accepted for item in query.evidence}
    return min(1.0, len(covered) / diff.documents.n_before) if diff.documents.n_before else 0.0


def _fresh(queries: Sequence[Query], survey: Survey, diff: CorpusDiff) -> dict[str, frozenset[str]]:
    """Return the added and changed documents without a query, with the new chunks to ask about."""
    there = {*diff.documents.added, *diff.documents.changed}
    if not there:
        return {}
    there -= set[str]().union(*documents_of(queries, survey).values())
    fresh: dict[str, set[str]] = {}
    for chunk in diff.added():
        if (
            chunk.doc_id in there
            and is_askable(chunk.text)
            and _says_new(chunk.chunk_id, survey, there)
        ):
            fresh.setdefault(chunk.doc_id, set()).add(chunk.chunk_id)
    return {doc_id: frozenset(ids) for doc_id, ids in fresh.items()}


def _says_new(chunk_id: str, survey: Survey, there: Collection[str]) -> bool:
    """Whether no older document holds the text of a chunk as well."""
    return all(survey.chunk(twin).doc_id in there for twin in survey.twins(chunk_id))


def _first(
    fresh: Mapping[str, frozenset[str]], growth: Collection[str], n: int, seed: int
) -> dict[str, frozenset[str]]:
    """Return the n documents to ask about first: those that the set grows for, then others."""
    order = sorted(fresh, key=lambda name: (name not in growth, _place(f"{seed}\n{name}"), name))
    return {doc_id: fresh[doc_id] for doc_id in sorted(order[:n])}


def _cells(
    accepted: Sequence[Query], n_new: int, settings: Settings, version: int
) -> tuple[Cell, ...]:
    """Return cells that bring the shares of the whole set back to those of the settings."""
    if not n_new:
        return ()
    how = settings.generate.model_copy(update={"n": len(accepted) + n_new})
    whole = make_cells(how, seed_of(settings, version))
    missing = missing_cells(whole, map(cell_like, accepted))
    return tuple(
        Cell(number, cell.type, cell.difficulty, cell.persona, cell.language)
        for number, cell in enumerate(missing)
    )


def _place(text: str) -> float:
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) / (1 << 64)
