import asyncio
import random

import pytest

from ragforge.files.record_files import write_records
from ragforge.observe import silent
from ragforge.pipeline.surveying import open_survey
from ragforge.records import Chunk

WORDS = [f"word{n}" for n in range(40)]


@pytest.fixture
def survey(tmp_path):
    """Make a survey of texts, whose ids are their places."""
    opened = []

    def make(texts):
        chunks = [
            Chunk(chunk_id=f"c{n:03}", doc_id=f"d{n}", text=text) for n, text in enumerate(texts)
        ]
        write_records(tmp_path / "chunks.jsonl", chunks, lambda chunk: chunk.chunk_id)
        opened.append(open_survey(tmp_path / "chunks.jsonl", tmp_path / "own", silent))
        return opened[-1]

    yield make
    for one in opened:
        one.__exit__()


def drawn(seed):
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(2, 20))) for _ in range(120)]
    return texts, [" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in range(40)]


def verdicts(survey, queries, new, k, others_of):
    """Return, for each query, whether a new chunk may be in its best k, and whether one is."""
    newcomers = survey.newcomers(new)
    found = []
    for query in queries:
        best = [hit.chunk_id for hit in asyncio.run(survey.bm25.retrieve(query, 120))]
        may = newcomers.may_enter(query, k, others_of(best))
        found.append((may, not new.isdisjoint(best[:k])))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_what_is_among_the_best_is_never_ruled_out(survey, seed):
    """A search that was saved wrongly would be a relevant chunk that nobody judges."""
    texts, queries = drawn(seed)
    new = {f"c{n:03}" for n in range(0, 120, 15)}

    found = verdicts(survey(texts), queries, new, 5, lambda best: best[::2])

    assert [may for may, does in found if does] == [True] * sum(does for _, does in found)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_searched_for_in_vain_where_the_best_are_known(survey, seed):
    """A night's cost is that of what changed, not that of the set."""
    texts, queries = drawn(seed)
    new = {f"c{n:03}" for n in range(0, 120, 15)}

    found = verdicts(survey(texts), queries, new, 5, lambda best: best)

    assert sum(may for may, _ in found) - sum(does for _, does in found) <= 2


def test_chunk_without_a_word_of_the_query_does_not_come_in(survey):
    """BM25 returns no such chunk, however few others there are."""
    newcomers = survey(["whales swim", "boxes are brown"]).newcomers({"c000"})

    assert not newcomers.may_enter("brown boxes", 5, [])
    assert newcomers.may_enter("whales", 5, [])


def test_unknown_chunks_are_passed_over(survey):
    """A pool may still name a chunk that is gone."""
    newcomers = survey(["whales swim", "boxes are brown"]).newcomers({"c000", "gone"})

    assert newcomers.may_enter("whales", 1, ["lost"])
