"""What is left of a run once its judged chunks are found: all that the measures need."""

from typing import NamedTuple

# Named tuples rather than dataclasses: a process that scores one small file is done in less time
# than the import of `dataclasses` takes.


class JudgedHits(NamedTuple):
    """Where the judged chunks of one query stand in its ranking."""

    n_retrieved: int
    """Chunks of the ranking, judged or not."""
    ranks: list[int]
    """Ranks, from 1 and ascending, of the retrieved chunks that the qrels list."""
    grades: list[int | None]
    """Their grades, aligned with `ranks`; None where the judgment failed."""


class RunHits(NamedTuple):
    """A run cut down to its judged chunks: 53,000 hits stand for seven million rows."""

    by_query: dict[str, JudgedHits]
    """Of the queries that both the run and the qrels have."""
    n_not_in_qrels: int = 0
    """Queries of the run that the qrels lack."""
    not_in_qrels: tuple[str, ...] = ()
    """The smallest of their ids, for messages: four at most."""
    example_ids: tuple[str, list[str]] | None = None
    """A judged query and up to four of its chunks, for messages."""
    latencies_s: tuple[float, ...] = ()
    """Of the queries for which the run says how long it took."""
