"""Grades of people or of one judge, read from a file of any usual shape.

What cannot be used is left out and counted, as one bad row of ten thousand labels is no reason to
have none: grades outside of the scale, pairs that one labeller graded twice and differently.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from math import ceil
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.field_names import CHUNK_ID, GRADE, Field
from ragforge.files.formats.row_files import read_rows_of, unknown_shape
from ragforge.files.row import parse_number, parse_whole, query_of_pair
from ragforge.files.source_files import Line, has_header, open_source, unpacked_name
from ragforge.files.text import decode, shown
from ragforge.measures.agreement import N_GRADES
from ragforge.records.judgments import Source

SHAPES: Final = (
    "TREC qrels: q1 0 d7 2",
    "CSV or TSV with a header: query_id,chunk_id,grade (and labeller, where several people graded)",
    'JSON Lines: {"query_id": "q1", "chunk_id": "d7", "grade": 2}',
)
_TREC_COLUMNS: Final = 4
_GRADE: Final = GRADE._replace(accepted=(*GRADE.accepted, "relevant", "label"))
_ENTROPY: Final = Field("entropy_bits", ("entropy_bits",))
_MEAN: Final = Field("grade_mean", ("grade_mean",))
_LOOK: Final = Field("look", ("look",))
_LABELLER: Final = Field("labeller", ("labeller", "labeler", "annotator", "assessor", "by"))
_DECIDES: Final = Field("decides", ("decides",))
_SOURCE: Final = Field("source", ("source",))
_SOURCES: Final = get_args(Source)
GradedBy: TypeAlias = Literal["human", "judge"]
OTHERS: Final[Mapping[GradedBy, str]] = {
    "human": "source is no person",
    "judge": "source is not the judge",
}
"""Why rows are left out whose `source` says that others gave the grade."""
OUTSIDE: Final = "grade outside of the scale"
NOT_WHOLE: Final = "grade is no whole number"
NO_GRADE: Final = "no grade"
CONTRADICTED: Final = "graded twice, differently"
_LEAST_GIVEN: Final = 10
"""Grades from which on a scale can be told."""
BINARY: Final = (
    "no label is above 1, which is no part of the answer: where 1 was to mean relevant, write 2, "
    "and take the file in again (`ragforge calibrate label --overrule --from FILE`)"
)
_MOST_OUTSIDE: Final = 0.05
"""Share of grades outside of the scale above which they are no slips."""
_MOST_SLIPS: Final = 0.002
"""Share of zeros up to which they are slips on a scale that begins at 1."""


class PairKey(NamedTuple):
    """A pair of a query and a text, by their ids."""

    query_id: str
    chunk_id: str


class PairText(NamedTuple):
    """A pair of a query and a text, by the digest of the text: what a label is on."""

    query_id: str
    text_sha256: str


@dataclass(frozen=True, slots=True)
class Labels:
    """What one file says."""

    name: str
    by_labeller: Mapping[str, Mapping[PairKey, int]]
    """By the labeller's name, which is "" where the file names none."""
    failed: frozenset[PairKey]
    """Pairs whose rows have no grade, and that nobody else graded."""
    skipped: Mapping[str, int]
    """Rows left out, by the reason."""
    examples: Mapping[str, str]
    """Where the first row of each reason stands."""
    doubts: Mapping[PairKey, float] = field(default_factory=dict)
    """How undecided a judge was, where its rows tell: `entropy_bits`, else how near `grade_mean` is
    to the middle of the scale, below 0."""
    settled: Mapping[PairKey, int] = field(default_factory=dict)
    """Grades that settled a pair on which labellers differed; each counts alone."""

    @property
    def highest(self) -> int:
        """The highest grade that anybody gave."""
        return max(grade for grades in self.all_grades().values() for grade in grades)

    @property
    def n_outside(self) -> int:
        """Rows left out as their grade is beyond the scale."""
        return self.skipped.get(OUTSIDE, 0)

    @property
    def n_given(self) -> int:
        """Grades on the scale and beyond it."""
        return sum(map(len, self.by_labeller.values())) + self.n_outside

    def all_grades(self) -> dict[PairKey, list[int]]:
        """Return the grades of each pair: of each labeller, or the one that settled it."""
        gathered: dict[PairKey, list[int]] = {}
        for grades in self.by_labeller.values():
            for pair, grade in grades.items():
                gathered.setdefault(pair, []).append(grade)
        return gathered | {pair: [grade] for pair, grade in self.settled.items()}

    def grades(self) -> dict[PairKey, int]:
        """Return one grade for each pair: of several labellers the mean, rounded half down."""
        return {pair: middle_grade(grades) for pair, grades in self.all_grades().items()}


def read_labels(
    path: Path, n_grades: int, name: str | None = None, *, source: GradedBy | None = None
) -> Labels:
    """Return the labels of a file.

    Args:
        path: In one of `SHAPES`; `.gz` and `.zst` are unpacked.
        n_grades: Size of the scale, which starts at 0.
        name: Of the judge; else that of the file.
        source: Whose grades are meant: rows that name another `source` are left out, as those of
            people in a set's `judgments.jsonl`. None takes all.

    Raises:
        DataError: The file cannot be read, has none of the shapes, or no grade that can be used.
    """
    read = _Read()
    for row in _rows(path):
        read.take(row, n_grades, source)
    found, settled = read.by_labeller(), read.by_deciders()
    skipped, examples = dict(read.skipped), read.examples
    if not found and not settled:
        why = "; ".join(f"{reason} ({examples[reason]})" for reason in skipped)
        raise DataError(f"{path}: no grade from 0 to {n_grades - 1}" + (f": {why}" if why else ""))
    _refuse_other_scale(path, found, read.skipped[OUTSIDE], n_grades)
    graded = {pair for grades in (*found.values(), settled) for pair in grades}
    failed = frozenset(read.failed - graded)
    named, doubts = name or _name_of(path), _known(read.doubts)
    return Labels(named, found, failed, skipped, examples, doubts, settled)


@dataclass(frozen=True, slots=True)
class _Read:
    """What rows say, one after the other."""

    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    graded: dict[str, dict[PairKey, int]] = field(default_factory=dict)
    settled: dict[PairKey, int] = field(default_factory=dict)
    failed: set[PairKey] = field(default_factory=set)
    contradicted: set[tuple[str, PairKey]] = field(default_factory=set)
    unsettled: set[PairKey] = field(default_factory=set)
    repeated: Counter[tuple[str, PairKey]] = field(default_factory=Counter)
    """Rows that say once more what one labeller said first."""
    doubts: dict[PairKey, float | None] = field(default_factory=dict)

    def take(self, row: "_LabelRow", n_grades: int, source: GradedBy | None) -> None:
        """Take a row in, or count why not."""
        taken = self.settled if row.decides else self.graded.setdefault(row.labeller, {})
        reason = _other_source(row, source) or _reason(row, n_grades, taken)
        if not reason:
            if row.pair in taken:
                self.repeated[row.labeller, row.pair] += 1
            taken[row.pair] = parse_whole(row.given) or 0
            self.doubts[row.pair] = row.doubt
            return
        self.skipped[reason] += 1
        self.examples.setdefault(reason, f"{row.where}: {shown(str(row.given))}")
        if reason == NO_GRADE:
            self.failed.add(row.pair)
        elif reason == CONTRADICTED and row.decides:
            self.unsettled.add(row.pair)
        elif reason == CONTRADICTED:
            self.contradicted.add((row.labeller, row.pair))

    def by_deciders(self) -> dict[PairKey, int]:
        """Return the grades that settled a pair, without pairs that were settled in two ways."""
        self.skipped.update({CONTRADICTED: len(self.unsettled)} if self.unsettled else {})
        return {pair: grade for pair, grade in self.settled.items() if pair not in self.unsettled}

    def by_labeller(self) -> dict[str, dict[PairKey, int]]:
        """Return the grades of each labeller, without pairs that one graded in two ways."""
        for labeller, pair in self.contradicted:
            del self.graded[labeller][pair]
            self.skipped[CONTRADICTED] += 1 + self.repeated[labeller, pair]
        return {labeller: grades for labeller, grades in self.graded.items() if grades}


def begins_at_1(given: Sequence[int], n_outside: int) -> bool:
    """Whether a scale seems to begin at 1: no grade but a slip is 0, and many are beyond 3.

    Args:
        given: Grades of 0 to 3.
        n_outside: How many others there are.
    """
    n = len(given) + n_outside
    is_rare = given.count(0) <= _MOST_SLIPS * n
    return n >= _LEAST_GIVEN and is_rare and n_outside > _MOST_OUTSIDE * n


def are_binary(given: Collection[int]) -> bool:
    """Whether grades seem to tell relevant from not: there are some, and none is above 1."""
    return len(given) >= _LEAST_GIVEN and max(given) == 1


def _refuse_other_scale(
    path: Path, graded: Mapping[str, Mapping[PairKey, int]], n_outside: int, n_grades: int
) -> None:
    """Refuse a file whose scale begins at 1: each of its grades would be taken for a higher one.

    Raises:
        DataError: It does so: hardly a grade is 0, and many are beyond the scale.
    """
    given = [grade for grades in graded.values() for grade in grades.values()]
    if begins_at_1(given, n_outside):
        raise DataError(
            f"{path}: of {len(given) + n_outside:,} grades {given.count(0):,} are 0 and "
            f"{n_outside:,} above {n_grades - 1}: the scale seems to begin at 1; write the grades "
            f"as 0 to {n_grades - 1}"
        )


def _known(doubts: Mapping[PairKey, float | None]) -> dict[PairKey, float]:
    return {pair: doubt for pair, doubt in doubts.items() if doubt is not None}


class _LabelRow(NamedTuple):
    pair: PairKey
    given: object
    """What stands where the grade should be; None where there is nothing."""
    labeller: str
    where: str
    doubt: float | None = None
    source: str = ""
    decides: bool = False


def _other_source(row: _LabelRow, source: GradedBy | None) -> str:
    """Return why a row of another source is left out; "" where it is not, or does not say it."""
    is_other = source is not None and row.source in _SOURCES and row.source != source
    return OTHERS[source] if source is not None and is_other else ""


def _doubt(entropy: float | None, mean: float | None, n_grades: int = N_GRADES) -> float | None:
    if entropy is not None:
        return entropy
    return None if mean is None else -abs(mean - (n_grades - 1) / 2)


def _reason(row: _LabelRow, n_grades: int, taken: Mapping[PairKey, int]) -> str:
    """Return why a row is left out; "" where it is not."""
    if row.given is None or row.given == "":
        return NO_GRADE
    number, grade = parse_number(row.given), parse_whole(row.given)
    if number is not None and not 0 <= number <= n_grades - 1:
        return OUTSIDE
    if grade is None:
        return NOT_WHOLE
    return CONTRADICTED if taken.get(row.pair, grade) != grade else ""


def _rows(path: Path) -> Iterator[_LabelRow]:
    source = open_source(path, "labels")
    is_columns = source.kind == "columns"
    if is_columns and len(source.first.split()) >= _TREC_COLUMNS and not has_header(source):
        yield from _trec_rows(path, source.lines)
        return
    if is_columns and not has_header(source):
        raise unknown_shape(path, SHAPES)
    for row in read_rows_of(source, SHAPES, by_query="relevant"):
        if not row.has(CHUNK_ID):
            raise unknown_shape(path, SHAPES)
        row.require(_GRADE)
        decides = str(row.get(_DECIDES) or "").strip().lower() in ("true", "yes", "1")
        if (parse_whole(row.get(_LOOK)) or 1) > 1 and not decides:
            continue  # A second look at a pair tells how sure the labeller is.
        pair = PairKey(query_of_pair(row), row.identifier(CHUNK_ID))
        doubt = _doubt(parse_number(row.get(_ENTROPY)), parse_number(row.get(_MEAN)))
        labeller = row.optional_text(_LABELLER) or ""
        by = str(row.get(_SOURCE) or "")
        yield _LabelRow(pair, row.get(_GRADE), labeller, row.where, doubt, by, decides)


def _trec_rows(path: Path, lines: Iterable[Line]) -> Iterator[_LabelRow]:
    for number, line in lines:
        where = f"{path}:{number}"
        columns = decode(line, where).split()
        if not columns:
            continue
        if len(columns) != _TREC_COLUMNS:
            raise DataError(
                f"{where}: expected 4 columns (query_id 0 chunk_id grade), got {len(columns)}"
            )
        query_id, _, chunk_id, grade = columns
        yield _LabelRow(PairKey(query_id, chunk_id), grade, "", where)


def middle_grade(grades: Sequence[int]) -> int:
    """Return the mean of grades as a grade, rounded half down."""
    return ceil(sum(grades) / len(grades) - 0.5)


def _name_of(path: Path) -> str:
    return unpacked_name(path).rpartition(".")[0] or unpacked_name(path)
