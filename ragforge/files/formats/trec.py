"""TREC files: qrels of four columns, runs of six.

As in trec_eval, columns stand between any mix of ASCII blanks and tabs (other characters that look
blank belong to ids), and a line that starts with # is a comment.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import compress, count, pairwise
from math import isnan
from operator import ne
from pathlib import Path
from typing import NamedTuple, TypeVar

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.row import pair_twice, parse_number, parse_whole
from ragforge.files.source_files import Group
from ragforge.files.text import decode, shown

_QRELS_COLUMNS = 4
_RUN_COLUMNS = 6
_GLUED_COLUMNS = 11
"""Of two rows without a line end between them: the tag of one and the query of the next are one."""
_VALUE_AT = {_QRELS_COLUMNS: 3, _RUN_COLUMNS: 4}
_LEAST_RISES = 5
"""Scores that rise with the rank by chance do so in 1 of 32 files of so many pairs of lines."""
_MARK = "\0"
"""Stands for the end of a line: no file that is text holds it."""
_SEPARATORS = b"\x1c\x1d\x1e\x1f"
"""Blanks for str.split, but neither for bytes.split nor for trec_eval."""

Number = TypeVar("Number", int, float)


def read_trec_qrels(path: Path, groups: Iterable[Group]) -> dict[str, dict[str, int]]:
    """Return query id to chunk id to grade; the second column is passed over.

    Args:
        path: Named in errors.
        groups: The lines of the file.

    Raises:
        DataError: A line has not four columns, a grade is no whole number (any is taken, negative
            ones too), or a pair comes twice.
    """
    qrels: dict[str, dict[str, int]] = {}
    for first, lines in groups:
        if not _add_regular(qrels, lines, _QRELS_COLUMNS, _grades):
            _add_qrels_lines(qrels, path, first, lines)
    return qrels


def _add_qrels_lines(
    qrels: dict[str, dict[str, int]], path: Path, first: int, lines: list[bytes]
) -> None:
    for number, columns in _columns(path, first, lines):
        if len(columns) != _QRELS_COLUMNS:
            expected = "4 columns (query_id 0 chunk_id grade)"
            raise _wrong_width(f"{path}:{number}", expected, columns)
        query_id, _, chunk_id, given = columns
        grade = parse_whole(given)
        if grade is None:
            raise _wrong(f"{path}:{number}", "grade", "a whole number", given)
        grades = qrels.setdefault(query_id, {})
        if chunk_id in grades:
            raise pair_twice(f"{path}:{number}", query_id, chunk_id)
        grades[chunk_id] = grade


def read_trec_run(path: Path, groups: Iterable[Group]) -> dict[str, dict[str, float]]:
    """Return query id to chunk id to score; scores decide, and tags are passed over.

    A line without tag is refused as trec_eval does: it may be one that was cut off, and then its
    score is cut off too. What stands behind the tag is passed over, unless it is another row.

    Args:
        path: Named in errors.
        groups: The lines of the file; those of a query need not stand together.

    Raises:
        DataError: A line has fewer than six columns, a score is no number (infinities are), a
            query lists a chunk twice, or scores rise with the ranks, see `refuse_distances`.
    """
    run: dict[str, dict[str, float]] = {}
    for first, lines in _by_scores(path, groups):
        if not _add_regular(run, lines, _RUN_COLUMNS, _scores):
            _add_run_lines(run, path, first, lines)
    return run


def each_trec_ranking(
    path: Path, groups: Iterable[Group]
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield query id and scores by chunk id, keeping no more of a run than a few queries.

    A query is yielded as soon as lines of another one follow, so one whose lines do not stand
    together comes again: arguments and errors are else those of `read_trec_run`.
    """
    run: dict[str, dict[str, float]] = {}
    for first, lines in _by_scores(path, groups):
        if not _add_regular(run, lines, _RUN_COLUMNS, _scores):
            _add_run_lines(run, path, first, lines)
        for query_id in list(run)[:-1]:
            yield query_id, run.pop(query_id)
    yield from run.items()


def refuse_distances(path: Path, groups: Iterable[Group]) -> None:
    """Refuse a run whose scores rise with the ranks wherever both differ from line to line.

    By its scores, which decide, every ranking of it would be turned over. One pair of lines in the
    order of its scores, or with one rank for both, shows that ranks say nothing against them: of a
    usual file two lines are read. Fewer than `_LEAST_RISES` may be ranks that nobody meant.

    Raises:
        DataError: It is such a run.
    """
    for _ in _by_scores(path, groups, to_end=False):
        pass


def _by_scores(path: Path, groups: Iterable[Group], *, to_end: bool = True) -> Iterator[Group]:
    """Yield lines as they come, all or until they say enough; raises as `refuse_distances`."""
    order = _Order(path)
    for group in groups:
        if order.is_open:
            order.look(*group)
        if not (to_end or order.is_open):
            return
        yield group
    if order.is_open and order.n_rises >= _LEAST_RISES:
        raise DataError(order.rise)


class _Line(NamedTuple):
    query_id: bytes
    rank: float
    score: float


@dataclass(slots=True)
class _Order:
    """Whether the scores of a run rise with the ranks, as far as lines were looked at."""

    path: Path
    is_open: bool = True
    """Whether no line said otherwise."""
    n_rises: int = 0
    rise: str = ""
    """What is wrong with the first lines that rise; "" where there are none."""
    last: _Line | None = field(default=None, init=False)

    def look(self, first: int, lines: list[bytes]) -> None:
        """Look at lines, of which the first has this number, until one says otherwise."""
        for number, text in enumerate(lines, start=first):
            columns = text.split()
            if not columns or columns[0].startswith(b"#"):
                continue
            line = _line_of(columns)
            if line is None:
                self.is_open = False
                return
            last, self.last = self.last, line
            if last is None or last.query_id != line.query_id or last.score == line.score:
                continue
            if last.rank == line.rank or (last.rank < line.rank) != (last.score < line.score):
                self.is_open = False
                return
            self.n_rises += 1
            self.rise = self.rise or _rise(f"{self.path}:{number}", *sorted((last, line)))


def _line_of(columns: list[bytes]) -> _Line | None:
    """Return what a line says; None where its rank or score is no number, or one is missing."""
    if len(columns) < _RUN_COLUMNS:
        return None
    try:
        return _Line(columns[0], float(columns[3]), float(columns[4]))
    except ValueError:
        return None


def _rise(where: str, better: _Line, worse: _Line) -> str:
    query_id = shown(better.query_id.decode("utf-8", "replace"))
    return (
        f"{where}: query {query_id}: rank {worse.rank:g} has a higher score than rank "
        f"{better.rank:g}, {worse.score!r} and {better.score!r}, and so it is throughout: a TREC "
        "run goes by its scores, which would turn every ranking over; where they are distances, "
        "write them negative; where they decide, write rank 0 on every line"
    )


def _add_run_lines(
    run: dict[str, dict[str, float]], path: Path, first: int, lines: list[bytes]
) -> None:
    for number, columns in _columns(path, first, lines):
        if len(columns) < _RUN_COLUMNS:
            expected = "6 columns (query_id Q0 chunk_id rank score tag)"
            raise _wrong_width(f"{path}:{number}", expected, columns)
        if len(columns) >= _GLUED_COLUMNS:
            expected = "one row of 6 columns on a line (is a line end missing?)"
            raise _wrong_width(f"{path}:{number}", expected, columns)
        query_id, _, chunk_id, _, given = columns[:5]
        score = parse_number(given)
        if score is None:
            raise _wrong(f"{path}:{number}", "score", "a number", given)
        scores = run.setdefault(query_id, {})
        if chunk_id in scores:
            raise pair_twice(f"{path}:{number}", query_id, chunk_id)
        scores[chunk_id] = score


def _add_regular(
    into: dict[str, dict[str, Number]],
    lines: list[bytes],
    width: int,
    values_of: Callable[[list[str]], list[Number] | None],
) -> bool:
    """Add lines as a whole: query, passed over, chunk, ..., value at the last place but the tag.

    Return False, having done nothing, where one of them has to be looked at by itself: it has
    another number of columns, characters that are not plain ASCII, an odd number, or repeats a
    pair.
    """
    raw = b"".join(lines)
    if not raw.isascii() or _MARK.encode() in raw or _holds_separators(raw):
        return False
    words = raw.decode().replace("\n", f" {_MARK} ").split()
    if not raw.endswith(b"\n"):
        words.append(_MARK)
    step = width + 1
    if len(words) != step * len(lines) or words[width::step].count(_MARK) != len(lines):
        return False
    query_ids = words[0::step]
    chunk_ids = words[2::step]
    values = values_of(words[_VALUE_AT[width] :: step])
    if values is None:
        return False
    added = _by_query(query_ids, chunk_ids, values)
    if any(query_id.startswith("#") for query_id in added):
        return False
    known = into.keys() & added.keys()
    if sum(map(len, added.values())) < len(values) or any(
        not into[query_id].keys().isdisjoint(added[query_id]) for query_id in known
    ):
        return False
    for query_id, own in added.items():
        into.setdefault(query_id, {}).update(own)
    return True


def _by_query(
    query_ids: list[str], chunk_ids: list[str], values: list[Number]
) -> dict[str, dict[str, Number]]:
    borders = [0, *compress(count(1), map(ne, query_ids, query_ids[1:])), len(query_ids)]
    found: dict[str, dict[str, Number]] = {}
    for start, end in pairwise(borders):
        own = zip(chunk_ids[start:end], values[start:end], strict=True)
        found.setdefault(query_ids[start], {}).update(own)
    return found


def _scores(words: list[str]) -> list[float] | None:
    scores = _numbers(words, float)
    return None if scores is None or isnan(sum(scores)) else scores


def _grades(words: list[str]) -> list[int] | None:
    return _numbers(words, int)


def _numbers(words: list[str], kind: Callable[[str], Number]) -> list[Number] | None:
    if "_" in "".join(words):  # Python reads 1_0 as 10.
        return None
    try:
        return list(map(kind, words))
    except ValueError:
        return None


def _columns(path: Path, first: int, lines: list[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, columns) of the lines that are neither blank nor comments."""
    separated = _holds_separators(b"".join(lines))
    for number, line in enumerate(lines, start=first):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = ""
        if not text or "\0" in text or text.startswith("\ufeff"):
            text = decode(line, f"{path}:{number}")
        columns = _cut(text) if separated or not text.isascii() else text.split()
        if columns and not columns[0].startswith("#"):
            yield number, columns


def _holds_separators(raw: bytes) -> bool:
    return any(map(raw.__contains__, _SEPARATORS))


def _cut(text: str) -> list[str]:
    # bytes.split knows ASCII blanks only; str.split would cut ids at a no-break space.
    return [column.decode() for column in text.encode().split()]


def _wrong_width(where: str, expected: str, columns: list[str]) -> DataError:
    found = shown(" ".join(columns))
    return DataError(f"{where}: expected {expected}, got {len(columns)}: {found}")


def _wrong(where: str, field: str, expected: str, found: str) -> DataError:
    return DataError(f"{where}: {field}: expected {expected}, got {shown(found)}")


def write_trec_qrels(path: Path, qrels: Mapping[str, Mapping[str, int | None]]) -> int:
    """Write qrels, sorted, and return how many pairs without a grade were left out.

    TREC qrels have no way to say that a judgment failed, so the caller has to.

    Raises:
        DataError: An id is empty, has blanks in it or would read as a comment, or the file cannot
            be written.
    """
    from ragforge.files.atomic import write_whole  # Not for those who only read.

    n_left_out = sum(grade is None for grades in qrels.values() for grade in grades.values())
    write_whole(path, _qrels_lines(path, qrels))
    return n_left_out


def write_trec_run(
    path: Path, rankings: Mapping[str, Mapping[str, float] | Sequence[str]], tag: str
) -> None:
    """Write a run, sorted by query and rank.

    The ranks are those that trec_eval derives from the scores: of equal scores the larger id
    comes first. A ranking without scores gets its length at rank 1, then one less at each rank.
    TREC runs cannot tell an empty ranking from a query that was not asked; it leaves no line.

    Args:
        path: The file.
        rankings: Query id to score by chunk id, or to chunk ids, best first.
        tag: The name of the run, last on every line.

    Raises:
        DataError: An id or the tag is empty, has blanks in it or would read as a comment, a score
            is NaN, or the file cannot be written.
    """
    from ragforge.files.atomic import write_whole

    write_whole(path, _run_lines(path, rankings, _word(path, "tag", tag)))


def _qrels_lines(path: Path, qrels: Mapping[str, Mapping[str, int | None]]) -> Iterator[str]:
    for query_id in sorted(qrels):
        for chunk_id, grade in sorted(qrels[query_id].items()):
            if grade is not None:
                yield f"{_query_word(path, query_id)} 0 {_word(path, 'id', chunk_id)} {grade}\n"


def _run_lines(
    path: Path, rankings: Mapping[str, Mapping[str, float] | Sequence[str]], tag: str
) -> Iterator[str]:
    for query_id in sorted(rankings):
        ranking = rankings[query_id]
        scores = ranking if isinstance(ranking, Mapping) else _falling(ranking)
        ordered = sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)
        for rank, (chunk_id, score) in enumerate(ordered, start=1):
            if isnan(score):
                raise DataError(
                    f"{path}: query {shown(query_id)}: chunk {shown(chunk_id)}: score: expected a "
                    "number, got nan"
                )
            ids = f"{_query_word(path, query_id)} Q0 {_word(path, 'id', chunk_id)}"
            yield f"{ids} {rank} {float(score)!r} {tag}\n"


def _falling(chunk_ids: Sequence[str]) -> dict[str, float]:
    return {chunk_id: float(len(chunk_ids) - at) for at, chunk_id in enumerate(chunk_ids)}


def _query_word(path: Path, query_id: str) -> str:
    if query_id.startswith("#"):
        raise DataError(
            f"{path}: id {shown(query_id)}: a TREC file cannot hold a query id that starts with #; "
            "it would read as a comment"
        )
    return _word(path, "id", query_id)


def _word(path: Path, what: str, word: str) -> str:
    if word.split() != [word] or "\0" in word or "\ufeff" in word[:1]:
        raise DataError(f"{path}: {what} {shown(word)}: expected text without blanks in it")
    try:
        word.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"{path}: {what} {shown(word)}: is not text: {error.reason}") from error
    return word
