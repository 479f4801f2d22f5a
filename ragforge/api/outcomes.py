"""What jobs on a set came to: retrieving, refreshing, importing, exporting and reviewing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragforge.api.results import Result, plain_values
from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import one_line, plural, share
from ragforge.files.text import shown_names

if TYPE_CHECKING:
    from ragforge.evaluating.versions import Differences, RefreshSummary, Status
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.intake.reviewing import ReviewResult
    from ragforge.pipeline.rederiving import Rederivation
    from ragforge.pipeline.retrieving import RunResult
    from ragforge.records import Failure
    from ragforge.records.queries import Selection

_LONGEST: Final = 300
"""Characters of what a retriever says of its failure."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Retrieved(Result):
    """A run that was made: each query has a ranking or a failure.

    Args:
        made: What came of the retriever.
        path: The file of the run.
        selection: The part of the queries that it was made for; None for all.
        notes: What was told on the way.
    """

    made: "RunResult"
    path: Path
    selection: "Selection | None" = None
    notes: tuple[str, ...] = field(default=())

    @property
    def run(self) -> str:
        """Its name."""
        return self.made.name

    @property
    def n_queries(self) -> int:
        """Queries that have a ranking."""
        return len(self.made.rankings)

    @property
    def failures(self) -> "tuple[Failure, ...]":
        """Of the queries on which the retriever failed."""
        return tuple(self.made.failures)

    def write_trec(self, path: str | PathLike[str]) -> None:
        """Write the run as a TREC run file.

        Raises:
            DataError: The file cannot be written.
        """
        from ragforge.files.formats.trec import write_trec_run

        rankings = {
            item.query_id: {hit.chunk_id: hit.score for hit in item.ranking}
            for item in self.made.rankings
        }
        write_trec_run(Path(path), rankings, self.run)

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge retrieve --json` prints."""
        from ragforge.evaluating.selection import selection_json

        return {
            "run": self.run,
            "file": str(self.path),
            "queries": self.n_queries,
            "failed": len(self.failures),
            "selection": None if self.selection is None else selection_json(self.selection),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each retrieved chunk."""
        return [
            {
                "query_id": item.query_id,
                "rank": rank,
                "chunk_id": hit.chunk_id,
                "score": hit.score,
                "latency_s": item.latency_s,
            }
            for item in self.made.rankings
            for rank, hit in enumerate(item.ranking, start=1)
        ]

    def table(self) -> str:
        """Return the counts in words."""
        return f"{self.run}: {self.n_queries} queries retrieved, {len(self.failures)} failed"


def retrieved(made: "RunResult", dataset: "Dataset", notes: tuple[str, ...] = ()) -> Retrieved:
    """Return what came of a retriever, whose run is in the dataset."""
    chosen = None if dataset.chosen is None else dataset.chosen.selection
    return Retrieved(made, dataset.files / "runs" / f"{made.name}.jsonl", chosen, notes)


def describe_failures(made: "RunResult") -> str:
    """Return on how many queries a retriever failed, and what it said first."""
    n_queries = len(made.failures) + len(made.rankings)
    return failures_text(f"run {made.name}: the retriever", made.failures, n_queries)


def failures_text(who: str, failures: "Sequence[Failure]", n_queries: int) -> str:
    """Return on how many queries somebody failed, and what was said first."""
    n_failed = len(failures)
    return (
        f"{who} failed on {n_failed:,} of {n_queries:,} queries ({n_failed / n_queries:.1%}); "
        f"the first: {one_line(failures[0].message, _LONGEST)}"
    )


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Refreshed(Result):
    """What a refresh came to.

    Args:
        summary: How it ended, and what changed.
        notes: What was told on the way.
    """

    summary: "RefreshSummary"
    notes: tuple[str, ...] = field(default=())

    @property
    def status(self) -> "Status":
        """unchanged, planned (a dry run), published, rejected, or pins broken."""
        return self.summary.status

    @property
    def version(self) -> int:
        """The new version, or the one that would be; that of before where nothing changed."""
        return self.summary.version

    @property
    def is_published(self) -> bool:
        """Whether the set has a new version."""
        return self.status == "published"

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge refresh --json` prints."""
        return self.summary.as_json()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with all figures."""
        return [plain_values(self.to_dict())]

    def table(self) -> str:
        """Return what changed, as text."""
        from ragforge.report.versions import refresh_text  # Most results here need no report.

        return refresh_text(self.summary)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class VersionDifference(Result):
    """How two versions of a set differ, and why.

    Args:
        found: Query by query.
    """

    found: "Differences"

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge diff --json` prints."""
        return self.found.as_json()

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each query that differs."""
        queries: Any = self.to_dict()["queries"]
        return [plain_values(item) for item in queries]

    def table(self, n: int = 20) -> str:
        """Return the differences as text.

        Args:
            n: Queries shown.
        """
        from ragforge.report.versions import differences_text

        return differences_text(self.found, n)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Counted(Result):
    """What was taken in, written or found, as counts and lines.

    Args:
        of: What was done, in a word or two.
        counts: By name.
        notes: What was told on the way.
        text: The counts in words; made of them where "".
    """

    of: str
    counts: Mapping[str, Any]
    notes: tuple[str, ...] = field(default=())
    text: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the counts."""
        return dict(self.counts)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with all counts."""
        return [plain_values(self.counts)]

    def table(self) -> str:
        """Return the counts in words."""
        listed = ", ".join(f"{name} {value}" for name, value in self.counts.items() if value)
        return self.text or f"{self.of}: {listed or 'nothing'}"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Rederived(Result):
    """What became of a set whose chunks were replaced by others of the same documents.

    Args:
        found: Quotes, grades and queries, counted.
        notes: What was told on the way.
    """

    found: "Rederivation"
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge generate --rederive --json` prints."""
        return dict(self.found.as_json())

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each quote that was lost."""
        return [
            {"query_id": query_id, "doc_id": lost.doc_id, "quote": lost.quote}
            for query_id, lost in self.found.lost
        ]

    def table(self) -> str:
        """Return the counts, and each lost quote, a line each."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        found = self.found
        yield (
            f"{found.n_found} of {found.n_quotes} quotes found again "
            f"({share(found.n_found, found.n_quotes)}); grades: {found.n_kept} carried, "
            f"{found.n_dropped} of texts that are no chunks now, kept under these"
        )
        if found.n_failed:
            yield (
                f"judgments that failed: {found.n_failed_kept} carried, {found.n_failed_as_texts} "
                f"of such texts, kept as failed, {found.n_failed_dropped} dropped"
            )
        for query_id, lost in found.lost:
            yield f"  lost, {query_id}: {lost.doc_id}: {one_line(lost.quote, 80)}"
        if found.freed:
            yield f"evidence found again, accepted: {len(found.freed)} quarantined queries"
        yield from self._document_lines()
        for run in found.runs.runs if found.runs else ():
            yield run.sentence
        if found.runs and found.runs.stale:
            names = ", ".join(found.runs.stale)
            yield f"runs of other chunks than those before: {names}; left as they are"
        if found.quarantined:
            yield f"quarantined for a lost quote: {len(found.quarantined)} queries"

    def _document_lines(self) -> Iterator[str]:
        found = self.found
        if found.renamed:
            yield f"documents under another name: {len(found.renamed)}"
        if found.changed:
            yield (
                f"documents with evidence that have another text than before: {len(found.changed)} "
                f"({one_line(', '.join(found.changed), 80)}); whether they still say what is "
                "expected was not looked at, as `ragforge refresh` does"
            )


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Exported(Result):
    """Files in the form of other tools.

    Args:
        form: trec, beir or json.
        files: That were written.
        lost: What the form cannot hold, with counts.
    """

    form: str
    files: tuple[Path, ...]
    lost: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge export --json` prints."""
        files = [str(path) for path in self.files]
        return {"form": self.form, "files": files, "lost": list(self.lost)}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each file."""
        return [{"form": self.form, "file": str(path)} for path in self.files]

    def table(self) -> str:
        """Return the files, and what is not in them."""
        lost = [f"not in this form: {'; '.join(self.lost)}"] if self.lost else []
        return "\n".join([*map(str, self.files), *lost])


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Validated(Result):
    """Whether a set is whole.

    Args:
        problems: What is wrong.
        notes: What is merely noteworthy.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __bool__(self) -> bool:
        """Whether nothing is wrong."""
        return self.is_valid

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge validate --json` prints."""
        return {"problems": list(self.problems), "notes": list(self.notes)}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each problem and note."""
        found = [{"kind": "problem", "message": text} for text in self.problems]
        return [*found, *({"kind": "note", "message": text} for text in self.notes)]

    def table(self) -> str:
        """Return the problems and notes, a line each, and how many there are."""
        return "\n".join([*self.problems, *self.notes, describe_findings(self)])


def describe_findings(found: Validated) -> str:
    """Return how many problems and notes there are."""
    return f"{plural(len(found.problems), 'problem')}, {plural(len(found.notes), 'note')}"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Reviewed(Result):
    """Decisions of people that were taken in.

    Args:
        found: What the sheet came to.
        dry_run: Whether nothing was written.
    """

    found: "ReviewResult"
    dry_run: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge review import --json` prints."""
        found = self.found
        return {
            **found.counts,
            "stale_judgments": found.stale_judgments,
            "former_grades": found.former_grades,
            "returned_grades": found.returned_grades,
            "own_facts": found.own_facts,
            "answered": list(found.answered),
            "refused_still": list(found.refused_still),
            "without_evidence": list(found.without_evidence),
            "drawn_open": found.drawn_open,
            "audit": found.audit.model_dump() if found.audit else None,
            "dry_run": self.dry_run,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with all counts."""
        return [plain_values(self.to_dict())]

    def table(self) -> str:
        """Return the counts in words, and what to do about some of them."""
        found = self.found
        counts = ", ".join(f"{name} {count}" for name, count in found.counts.items() if count)
        lines = [f"{'nothing written; it would be: ' if self.dry_run else ''}{counts}"]
        if found.stale_judgments:
            grades = plural(found.stale_judgments, "grade")
            lines.append(
                f"{grades} of models for a former wording taken out; judge and retrieve again"
            )
        if found.former_grades:
            grades = plural(found.former_grades, "grade")
            lines.append(
                f"{grades} that people gave for a former wording no longer count; they are in "
                "former_grades.jsonl, and come back with that wording"
            )
        if found.returned_grades:
            grades = plural(found.returned_grades, "grade")
            lines.append(f"{grades} that people gave for a wording that is back count again")
        if found.own_facts:
            answers = plural(found.own_facts, "edited answer")
            lines.append(f"{answers} with facts that a person wrote; look at them")
        lines += _of_unanswerable(found)
        if found.without_evidence:
            queries = plural(len(found.without_evidence), "query", "queries")
            lines.append(
                f"{queries} with a new answer left without the evidence that stands nowhere any "
                f"more: {shown_names(found.without_evidence)}; judge to know what is relevant "
                "(without evidence no refresh looks at the answer)"
            )
        if found.audit is not None:
            lines.append(found.audit.in_words())
        if found.drawn_open:
            lines.append(
                f"{found.drawn_open} drawn at random are undecided; if they were left for being "
                "hard, the share above flatters the set"
            )
        return "\n".join(lines)


def _of_unanswerable(found: "ReviewResult") -> Iterator[str]:
    """Yield what became of questions that had to be refused and got another answer."""
    if found.answered:
        questions = plural(len(found.answered), "question")
        yield (
            f"{questions} that had to be refused, answerable now by the new answer: "
            f"{shown_names(found.answered)}; undecided takes it back"
        )
    if found.refused_still:
        questions = plural(len(found.refused_still), "question")
        yield (
            f"{questions} still to be refused, as the new answer says that something is not "
            f"so, or not told: {shown_names(found.refused_still)}; to have it given, import the "
            "question with answerable: true"
        )
