"""TREC files: qrels of four columns, runs of six, read and written.

As in trec_eval, columns stand between any mix of ASCII blanks and tabs (other characters that look
blank belong to ids), and a line that starts with # is a comment.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path

from ragforge.errors import DataError
from ragforge.files.atomic import write_whole
from ragforge.files.fields import parse_number, parse_whole, shown
from ragforge.files.lines import Line
from ragforge.files.text import decode

_QRELS_COLUMNS = 4
_RUN_COLUMNS = 6


def read_trec_qrels(path: Path, lines: Iterable[Line]) -> dict[str, dict[str, int]]:
    """Return query id to chunk id to grade; the second column is passed over.

    Args:
        path: Named in errors.
        lines: The lines of the file.

    Raises:
        DataError: A line has not four columns, a grade is no whole number (any is taken, negative
            ones too), or a pair comes twice.
    """
    qrels: dict[str, dict[str, int]] = {}
    for number, columns in _columns(path, lines):
        if len(columns) != _QRELS_COLUMNS:
            expected = "4 columns (query_id 0 chunk_id grade)"
            raise _wrong_width(f"{path}:{number}", expected, columns)
        query_id, _, chunk_id, given = columns
        grade = parse_whole(given)
        if grade is None:
            raise _wrong(f"{path}:{number}", "grade", "a whole number", given)
        grades = qrels.setdefault(query_id, {})
        if chunk_id in grades:
            raise _twice(f"{path}:{number}", query_id, chunk_id)
        grades[chunk_id] = grade
    return qrels


def read_trec_run(path: Path, lines: Iterable[Line]) -> dict[str, dict[str, float]]:
    """Return query id to chunk id to score; the column of ranks is passed over, as is the tag.

    A line without tag is refused as trec_eval does: it may be one that was cut off, and then its
    score is cut off too. What stands behind the tag is passed over.

    Args:
        path: Named in errors.
        lines: The lines of the file; those of a query need not stand together.

    Raises:
        DataError: A line has fewer than six columns, a score is no number (infinities are), or a
            query lists a chunk twice.
    """
    run: dict[str, dict[str, float]] = {}
    for number, columns in _columns(path, lines):
        if len(columns) < _RUN_COLUMNS:
            expected = "6 columns (query_id Q0 chunk_id rank score tag)"
            raise _wrong_width(f"{path}:{number}", expected, columns)
        query_id, _, chunk_id, _, given = columns[:5]
        score = parse_number(given)
        if score is None:
            raise _wrong(f"{path}:{number}", "score", "a number", given)
        scores = run.setdefault(query_id, {})
        if chunk_id in scores:
            raise _twice(f"{path}:{number}", query_id, chunk_id)
        scores[chunk_id] = score
    return run


def write_trec_qrels(path: Path, qrels: Mapping[str, Mapping[str, int | None]]) -> int:
    """Write qrels, sorted, and return how many pairs without a grade were left out.

    TREC qrels have no way to say that a judgment failed, so the caller has to.

    Raises:
        DataError: An id is empty, has blanks in it or would read as a comment, or the file cannot
            be written.
    """
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


def _columns(path: Path, lines: Iterable[Line]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, columns) of the lines that are neither blank nor comments."""
    for number, line in lines:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = ""
        if not text or "\0" in text or text.startswith("\ufeff"):
            text = decode(line, f"{path}:{number}")
        # bytes.split knows ASCII blanks only; str.split would cut ids at a no-break space.
        columns = text.split() if text.isascii() else _cut(text)
        if columns and not columns[0].startswith("#"):
            yield number, columns


def _cut(text: str) -> list[str]:
    return [column.decode() for column in text.encode().split()]


def _wrong_width(where: str, expected: str, columns: list[str]) -> DataError:
    found = shown(" ".join(columns))
    return DataError(f"{where}: expected {expected}, got {len(columns)}: {found}")


def _wrong(where: str, field: str, expected: str, found: str) -> DataError:
    return DataError(f"{where}: {field}: expected {expected}, got {shown(found)}")


def _twice(where: str, query_id: str, chunk_id: str) -> DataError:
    return DataError(f"{where}: query {shown(query_id)}: chunk {shown(chunk_id)} comes twice")
