"""What is graded: an answer beside the expected one and the chunks it was written from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragforge.records import Answer, Chunk, Query


@dataclass(frozen=True, slots=True)
class Case:
    """One answer to be graded."""

    query: Query
    answer: str
    contexts: tuple[str, ...]
    """Texts of the chunks the system had before it; empty where it does not tell, or not all of
    them are known: what the others say would look made up."""


def cases(
    queries: Iterable[Query], answers: Sequence[Answer], chunks: Mapping[str, Chunk]
) -> Iterator[Case]:
    """Yield the answers whose query is known and has an expected answer, in the order given."""
    by_id = {query.query_id: query for query in queries}
    for answer in answers:
        query = by_id.get(answer.query_id)
        if query is not None and (query.expected_answer or not query.answerable):
            complete = not unknown_passages(answer, chunks)
            texts = (chunks[name].text for name in answer.chunk_ids if complete)
            yield Case(query, answer.answer, tuple(texts))


def unknown_passages(answer: Answer, chunks: Mapping[str, Chunk]) -> int:
    """Return how many of the passages before a system are in no chunk."""
    return answer.n_unknown_passages + sum(name not in chunks for name in answer.chunk_ids)
