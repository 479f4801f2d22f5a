"""A run does not lose because fewer of its chunks were graded."""

import pytest
from ranked_sets import ranked_set

from ragforge.config import EvaluateSettings
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.records import Hit, Ranking

N = 60


@pytest.fixture
def dataset(tmp_path):
    """`old` has the relevant chunk first; `new` has one above it that nobody graded, in 24 of 60.

    Below it both have what is graded.
    """
    made = ranked_set(tmp_path / "set", {"old": [1] * N, "new": [1] * N})

    def rank(ranking, above):
        ids = [*above, *(hit.chunk_id for hit in ranking.ranking)]
        hits = [Hit(chunk_id=item, score=9.0 - n) for n, item in enumerate(ids)]
        return Ranking(query_id=ranking.query_id, ranking=tuple(hits))

    found = [rank(item, ["other"] if n < 24 else []) for n, item in enumerate(made.run("new"))]
    made.write_run("new", found)
    return made


@pytest.mark.parametrize("measure", ["RR", "P@1"])
def test_ranks_that_a_measure_does_not_look_at_are_not_counted_as_judged(dataset, measure):
    """RR ends at the first hit: 24 chunks are no 4 % of ten ranks, but a quarter of what it saw."""
    [item] = compare_runs(dataset, [], EvaluateSettings(measures=(measure,))).items

    assert item.outcome == "UNKNOWN"
    assert "24 chunks that only the run behind retrieved have no grade" in item.withheld
