"""A run does not lose because fewer of its chunks were graded."""

import pytest
from ranked_sets import JUDGE, ranked_set

from ragforge.config import EvaluateSettings
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.records import Hit, Ranking

N = 60


def with_a_chunk_above(folder, judge):
    """Return a set in which `new` has a chunk without a grade above the relevant one, in 24 of 60.

    Else it ranks as `old` does, which has the relevant chunk first.
    """
    made = ranked_set(folder, {"old": [1] * N, "new": [1] * N}, judge=judge)

    def rank(ranking, above):
        ids = [*above, *(hit.chunk_id for hit in ranking.ranking)]
        hits = [Hit(chunk_id=item, score=9.0 - n) for n, item in enumerate(ids)]
        return Ranking(query_id=ranking.query_id, ranking=tuple(hits))

    found = [rank(item, ["other"] if n < 24 else []) for n, item in enumerate(made.run("new"))]
    made.write_run("new", found)
    return made


@pytest.mark.parametrize("measure", ["RR", "P@1", "nDCG@10"])
def test_ranks_count_by_what_a_measure_makes_of_them(tmp_path, measure):
    """Of ten ranks 24 are 4 %; RR ends at the first hit, and a first rank is 22 % of nDCG@10."""
    dataset = with_a_chunk_above(tmp_path / "set", JUDGE)
    [item] = compare_runs(dataset, [], EvaluateSettings(measures=(measure,))).items

    assert item.outcome == "UNKNOWN"
    assert "24 chunks that only the run behind retrieved have no grade" in item.withheld


@pytest.mark.parametrize(
    ("labels", "outcome"), [("pooled", "UNKNOWN"), ("partial", "UNKNOWN"), ("complete", "A")]
)
def test_labels_of_people_are_a_pool_where_that_is_said(tmp_path, labels, outcome):
    """Nobody looked at what is not in it; of complete labels what is not there is not relevant."""
    dataset = with_a_chunk_above(tmp_path / "set", None)
    dataset.write_manifest(dataset.manifest.model_copy(update={"labels": labels}))
    [item] = compare_runs(dataset, ["old", "new"], EvaluateSettings(measures=("P@1",))).items

    assert item.outcome == outcome
