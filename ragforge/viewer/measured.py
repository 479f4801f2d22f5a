"""Queries of a dataset as an address asks for them: two runs and two systems, filtered and sorted.

What is asked for is in the address alone, so that a link to it shows the same to everybody.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from ragforge.config import EvaluateSettings
from ragforge.deferred import dataclass
from ragforge.evaluating.evaluation_data import EvaluationData, load_evaluation_data
from ragforge.evaluating.graded_by import graded_line, grades_of, mark_drift
from ragforge.evaluating.query_table import NO_ANSWER, NO_GRADE, QueryRow, query_rows
from ragforge.files.set.canaries import read_canaries
from ragforge.files.set.dataset import Dataset

PAGE: Final = 100
"""Rows of a page."""
MEASURED: Final = 3
"""Datasets whose records are held in memory, those asked for last."""
USUAL: Final = EvaluateSettings()
_LOW: Final = 0.5
_FAILED: Final = ("failed", "judging_failed")
_RIGHT: Final = ("correct", "", NO_ANSWER, NO_GRADE)
SHOWN: Final[Mapping[str, str]] = {
    "": "all queries",
    "changed": "changed between the runs",
    "worse": "worse in the second run",
    "better": "better in the second run",
    "low": f"below {_LOW} in one",
    "nohit": "nothing relevant found",
    "holes": "has ungraded chunks",
    "failed": "failed",
    "wrong": "an answer is not correct",
    "differ": "answers differ in verdict",
    "unanswerable": "unanswerable",
    "undecided": "no person decided",
}
"""Which queries can be asked for, with what that is called."""
Key: TypeAlias = str | float | None


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What an address asks for; "" where it leaves something open."""

    run_a: str = ""
    run_b: str = ""
    system_a: str = ""
    system_b: str = ""
    measure: str = ""
    show: str = ""
    search: str = ""
    sort: str = ""
    """Key of a column, after `-` the highest first."""
    page: int = 1
    query_id: str = ""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "ViewRequest":
        """Return what the parameters of an address ask for; what is no number is page 1."""
        page = given.get("page", "")
        return cls(
            **{name: given.get(key, "") for name, key in _NAMES.items()},
            page=int(page) if page.isascii() and page.isdigit() and len(page) < 8 else 1,
        )

    def address(self, **changes: str | int) -> dict[str, str]:
        """Return the parameters of the address that asks for this with some changes."""
        asked = replace(self, **changes)  # type: ignore[arg-type]  # fields of it, by name
        page = str(asked.page) if asked.page > 1 else ""
        return {**{key: getattr(asked, name) for name, key in _NAMES.items()}, "page": page}


_NAMES: Final = {
    "run_a": "run",
    "run_b": "with",
    "system_a": "answers",
    "system_b": "beside",
    "measure": "measure",
    "show": "show",
    "search": "search",
    "sort": "sort",
    "query_id": "q",
}
"""What the fields are called in an address."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A query with what the two runs and the two systems made of it."""

    row: QueryRow
    values: tuple[float | None, ...]
    """By the measure asked for, one a run."""
    firsts: tuple[int | None, ...]
    verdicts: tuple[str, ...]
    """One a system."""

    @property
    def diff(self) -> float | None:
        """How much higher the second run is."""
        if len(self.values) < 2 or None in self.values:
            return None
        before, now = self.values
        assert before is not None
        assert now is not None
        return now - before


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """A dataset with its runs, measured."""

    data: EvaluationData
    rows: tuple[QueryRow, ...]
    """The worst first."""
    graded: str = ""
    """Who graded, in a line."""

    @property
    def runs(self) -> list[str]:
        """Names of the runs that are measured."""
        return [run.name for run in self.data.runs]

    @property
    def systems(self) -> list[str]:
        """Names of the systems that answered."""
        return [system.system for system in self.data.systems]

    @property
    def measures(self) -> list[str]:
        """Names of the measures, the primary one first."""
        return sorted(self.data.task.measures, key=lambda name: name != self.data.task.primary)


def measured_set(dataset: Dataset, settings: EvaluateSettings) -> MeasuredSet:
    """Return a dataset with its runs measured on the judgments that are there now.

    Raises:
        DataError: It cannot be read, or has no queries.
        UsageError: A measure or the threshold cannot be taken.
    """
    data = load_evaluation_data(
        dataset, measures=settings.measures, rel_threshold=settings.rel_threshold
    )
    graded = mark_drift(grades_of(data.measured_judges()), read_canaries(dataset))
    return MeasuredSet(data, query_rows(data, {}, {}), graded_line(graded))


@dataclass(frozen=True, slots=True)
class View:
    """The queries that an address asks for."""

    asked: ViewRequest
    """With what it left open filled in."""
    missing: tuple[str, ...]
    """Runs, systems and measures that it names and that are not there, in words."""
    pairs: tuple[Pair, ...]
    """Of all pages, in order."""
    every: tuple[Pair, ...]
    """Of all queries, whatever is asked for."""
    places: tuple[int, ...]
    """Of the runs shown, among those of the set."""

    @property
    def n_pages(self) -> int:
        """At least one."""
        return max(1, -(-len(self.pairs) // PAGE))

    @property
    def page(self) -> int:
        """The page shown; the last where a later one is asked for."""
        return min(max(self.asked.page, 1), self.n_pages)

    @property
    def on_page(self) -> Sequence[Pair]:
        """The rows of the page."""
        return self.pairs[(self.page - 1) * PAGE : self.page * PAGE]

    def beside(self, query_id: str) -> tuple[str, str]:
        """Return the ids of the queries before and behind one, "" where there is none."""
        ids = [pair.row.query_id for pair in self.pairs]
        at = ids.index(query_id) if query_id in ids else None
        if at is None:
            return "", ""
        return ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else ""


def view_of(measured: MeasuredSet, asked: ViewRequest) -> View:
    """Return the queries that are asked for, in their order."""
    missing: list[str] = []
    run_a, run_b = _two(measured.runs, asked.run_a, asked.run_b, "run", missing)
    system_a, system_b = _two(
        measured.systems, asked.system_a, asked.system_b, "answers of", missing
    )
    measure = asked.measure or measured.measures[0]
    if measure not in measured.measures:
        missing.append(f"measure {measure}")
        measure = measured.measures[0]
    asked = replace(
        asked,
        run_a=run_a,
        run_b=run_b,
        system_a=system_a,
        system_b=system_b,
        measure=measure,
        show=asked.show if asked.show in SHOWN else "",
    )
    places = tuple(measured.runs.index(name) for name in (run_a, run_b) if name)
    pairs = _pairs(measured, asked, places)
    found = [pair for pair in pairs if _is_shown(pair, asked, measured.data, places)]
    return View(asked, tuple(missing), tuple(_sorted(found, asked)), tuple(pairs), places)


def _two(
    names: Sequence[str], first: str, second: str, noun: str, missing: list[str]
) -> tuple[str, str]:
    """Return two of the names: those asked for, else the first ones; "" where there are not two."""
    missing += [f"{noun} {name}" for name in (first, second) if name and name not in names]
    one = first if first in names else next((name for name in names if name != second), "")
    other = second if second in names else next((name for name in names if name != one), "")
    return one, other


def _pairs(measured: MeasuredSet, asked: ViewRequest, places: Sequence[int]) -> list[Pair]:
    runs = [measured.data.runs[place] for place in places]
    values = [run.by_query(asked.measure) for run in runs]
    systems = [measured.systems.index(n) for n in (asked.system_a, asked.system_b) if n]
    return [
        Pair(
            row,
            tuple(of.get(row.query_id) for of in values),
            tuple(row.cells[place].first for place in places),
            tuple(row.verdicts[place] for place in systems),
        )
        for row in measured.rows
    ]


def _is_shown(pair: Pair, asked: ViewRequest, data: EvaluationData, places: Sequence[int]) -> bool:
    query = data.queries[pair.row.query_id]
    cells = [pair.row.cells[place] for place in places]
    diff = pair.diff or 0
    tests: Mapping[str, Callable[[], bool]] = {
        "": lambda: True,
        "changed": lambda: diff != 0,
        "worse": lambda: diff < 0,
        "better": lambda: diff > 0,
        "low": lambda: any(value is not None and value < _LOW for value in pair.values),
        "nohit": lambda: any(cell.value is not None and not cell.first for cell in cells),
        "holes": lambda: any(cell.holes and cell.value is not None for cell in cells),
        "failed": lambda: any(cell.state in _FAILED for cell in cells) or "failed" in pair.verdicts,
        "wrong": lambda: any(verdict not in _RIGHT for verdict in pair.verdicts),
        "differ": lambda: len(set(pair.verdicts)) > 1,
        "unanswerable": lambda: not query.answerable,
        "undecided": lambda: query.reviewed is None and query.pinned is None,
    }
    if not tests[asked.show]():
        return False
    words = asked.search.casefold().split()
    return not words or _holds(words, pair.row, query.expected_answer or "")


def _holds(words: Iterable[str], row: QueryRow, answer: str) -> bool:
    text = "\n".join((row.query_id, row.text, answer, *row.facets)).casefold()
    return all(word in text for word in words)


def _sorted(pairs: list[Pair], asked: ViewRequest) -> list[Pair]:
    """Return the pairs by the column asked for; what has no value comes last, whichever way."""
    way, key = asked.sort.startswith("-"), _KEYS.get(asked.sort.removeprefix("-"))
    if key is None:
        return pairs
    known = [(value, pair) for pair in pairs if (value := key(pair)) not in (None, "")]
    unknown = [pair for pair in pairs if key(pair) in (None, "")]
    # One column is all numbers or all words.
    known.sort(key=lambda one: one[0], reverse=way)
    return [*(pair for _, pair in known), *unknown]


def _at(values: Sequence[Key], place: int) -> Key:
    return values[place] if place < len(values) else None


_KEYS: Final[Mapping[str, Callable[[Pair], Key]]] = {
    "query": lambda pair: pair.row.text.casefold(),
    "a": lambda pair: _at(pair.values, 0),
    "b": lambda pair: _at(pair.values, 1),
    "first-a": lambda pair: _at(pair.firsts, 0),
    "first-b": lambda pair: _at(pair.firsts, 1),
    "diff": lambda pair: pair.diff,
    "verdict-a": lambda pair: _at(pair.verdicts, 0),
    "verdict-b": lambda pair: _at(pair.verdicts, 1),
}
"""What a column is sorted by."""
