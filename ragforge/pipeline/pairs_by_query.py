"""The pairs of a file with those of a query together, whatever their order and number."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from ragforge.files.pairs import read_pairs
from ragforge.files.spool import Spool
from ragforge.pipeline.agreement import Labels
from ragforge.records import Record
from ragforge.stages.judge.pairs import Pair


class _Row(Record):
    query_id: str
    query: str
    chunk_id: str
    text: str


class PairsByQuery(AbstractContextManager["PairsByQuery"]):
    """Reads a file whole, so that what is wrong with it is told before anything is paid.

    Texts are sorted on disk; in memory are the queries, and the grades of people.

    Args:
        path: The file; see `read_pairs`.
        folder: Where the sorted parts are put.

    Raises:
        DataError: The file does not hold to its format, or there is no space.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self._rows: Spool[_Row] = Spool(lambda row: (row.query_id, row.chunk_id), folder)
        self.queries: dict[str, str] = {}
        """Text of each query by id."""
        self.labels = Labels()
        """What people gave to the pairs."""
        for row in read_pairs(path):
            self.queries[row.query_id] = row.query
            pair = Pair(row.query_id, row.query, row.chunk_id, row.text)
            self.labels.add(pair, row.human_grade)
            kept = _Row(
                query_id=row.query_id, query=row.query, chunk_id=row.chunk_id, text=row.text
            )
            self._rows.add(kept)

    def __exit__(self, *_: object) -> None:
        self._rows.__exit__()

    def __len__(self) -> int:
        """Return how many pairs there are."""
        return self._rows.count

    def pairs(self) -> Iterator[Pair]:
        """Yield the pairs, sorted by query and chunk; as often as asked."""
        for line in self._rows.lines():
            row = _Row.model_validate_json(line)
            yield Pair(row.query_id, row.query, row.chunk_id, row.text)
