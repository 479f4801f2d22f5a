"""What a prompt is rendered for: found in a dataset by ids, or in a file of pairs by its row."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ragforge.errors import UsageError
from ragforge.files.formats.pairs import read_pairs
from ragforge.files.set.dataset import Dataset
from ragforge.files.text import shown
from ragforge.records import Answer, Chunk, Query
from ragforge.stages.answer.cases import Case, cases
from ragforge.stages.ground.parts import Exchange, Passage
from ragforge.stages.judge.batches import Batch, batches
from ragforge.stages.judge.pairs import Pair

PAIR = "--dataset DIR with --query QUERY_ID and --chunk CHUNK_ID, or --pairs FILE"
BATCH = (
    "--dataset DIR with --query QUERY_ID and --chunk CHUNK_ID twice or more, or --pairs FILE with "
    "--batch N"
)
QUERY = "--dataset DIR with --query QUERY_ID"
CHUNK = "--dataset DIR with --chunk CHUNK_ID"
ANSWER = "--dataset DIR with --query QUERY_ID and --answers NAME"


@dataclass(frozen=True, slots=True)
class Picked:
    """The flags that pick; what a stage has no use for may stay empty.

    All methods raise UsageError where a flag is missing or names nothing, and DataError where a
    file does not hold to its format.

    Args:
        dataset: Where the ids are looked up.
        query_id, chunk_ids: In the dataset.
        system: Whose answer in the dataset.
        pairs: A file of pairs, instead of a dataset.
        row: Which of its pairs, from 1.
    """

    dataset: Dataset | None = None
    query_id: str = ""
    chunk_ids: tuple[str, ...] = ()
    system: str = ""
    pairs: Path | None = None
    row: int = 1

    def pair(self) -> Pair:
        """Return the one pair."""
        if self.pairs is not None:
            return _pair_of(self.pairs, self.row)
        if self.dataset is None or not self.query_id or len(self.chunk_ids) != 1:
            raise _lacking(PAIR)
        [pair] = self._dataset_pairs()
        return pair

    def batch(self, batch: int) -> Batch:
        """Return the chunks of the dataset as one batch, or the batch of the file that has the row.

        Args:
            batch: Distinct texts in a batch of the file.
        """
        if self.pairs is not None and batch > 1:
            wanted = _pair_of(self.pairs, self.row)
            rows = (
                Pair(row.query_id, row.query, row.chunk_id, row.text)
                for row in read_pairs(self.pairs)
            )
            return next(batch for batch in batches(rows, batch) if wanted in batch.pairs)
        if self.dataset is None or not self.query_id or len(self.chunk_ids) < 2:
            raise _lacking(BATCH)
        return next(batches(self._dataset_pairs(), len(self.chunk_ids)))

    def query(self) -> Query:
        """Return the query."""
        if self.dataset is None or not self.query_id:
            raise _lacking(QUERY)
        queries = self.dataset.all_queries()
        picked = next((query for query in queries if query.query_id == self.query_id), None)
        if picked is None:
            such = f", such as {shown(queries[0].query_id)}" if queries else ""
            raise UsageError(
                f"--query: {self.dataset.path} has no {shown(self.query_id)}; it has "
                f"{len(queries)} queries{such}"
            )
        return picked

    def chunk(self) -> Chunk:
        """Return the one chunk."""
        if self.dataset is None or len(self.chunk_ids) != 1:
            raise _lacking(CHUNK)
        [chunk] = self._chunks()
        return chunk

    def case(self) -> Case:
        """Return the answer of the system to the query, to be held against the expected one."""
        query, answer = self._answered(), self._answer()
        found = next(cases([query], [answer], self._chunks_by_id(answer.chunk_ids)), None)
        if found is None:
            raise UsageError(f"--query: {shown(query.query_id)} has no expected answer")
        return found

    def exchange(self) -> Exchange:
        """Return the answer of the system to the query, to be held against its chunks."""
        query, answer = self._answered(), self._answer()
        there = self._chunks_by_id(answer.chunk_ids)
        return Exchange(
            query.query_id,
            query.asked,
            answer.answer,
            tuple(Passage(name, there[name].text) for name in answer.chunk_ids if name in there),
            tuple(name for name in answer.chunk_ids if name not in there),
        )

    def _answered(self) -> Query:
        if self.dataset is None or not self.query_id or not self.system:
            raise _lacking(ANSWER)
        return self.query()

    def _answer(self) -> Answer:
        assert self.dataset is not None
        answers = self.dataset.answers(self.system)
        found = next((answer for answer in answers if answer.query_id == self.query_id), None)
        if found is None:
            raise UsageError(f"--answers: {self.system} does not answer {shown(self.query_id)}")
        return found

    def _dataset_pairs(self) -> list[Pair]:
        query = self.query()
        return [
            Pair(query.query_id, query.asked, chunk.chunk_id, chunk.text)
            for chunk in self._chunks()
        ]

    def _chunks(self) -> list[Chunk]:
        assert self.dataset is not None
        there = self._chunks_by_id(self.chunk_ids)
        for chunk_id in self.chunk_ids:
            if chunk_id not in there:
                path = self.dataset.chunks_path
                raise UsageError(f"--chunk: {path} has no {shown(chunk_id)}")
        return [there[chunk_id] for chunk_id in self.chunk_ids]

    def _chunks_by_id(self, wanted: Collection[str]) -> dict[str, Chunk]:
        assert self.dataset is not None
        found = self.dataset.chunks() if wanted else ()
        return {chunk.chunk_id: chunk for chunk in found if chunk.chunk_id in wanted}


def _pair_of(path: Path, row: int) -> Pair:
    found = next(islice(read_pairs(path), row - 1, None), None)
    if found is None:
        raise UsageError(f"--row {row}: {path} has fewer pairs")
    return Pair(found.query_id, found.query, found.chunk_id, found.text)


def _lacking(needed: str) -> UsageError:
    return UsageError(f"to render this prompt, give {needed}")
