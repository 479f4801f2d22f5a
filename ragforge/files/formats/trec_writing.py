"""Writing TREC qrels and runs."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path

from ragforge.errors import DataError
from ragforge.files.atomic import write_whole
from ragforge.files.text import shown


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
