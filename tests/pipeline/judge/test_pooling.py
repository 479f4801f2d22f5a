import pytest
from ranked_sets import JUDGE

from ragforge.errors import DataError
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.judge.pooling import KeptGrades, describe_other_judges, queries_of
from ragforge.records import Judgment, Query
from ragforge.stages.judge.pairs import PairId


@pytest.fixture
def dataset(tmp_path):
    """A set with a query in each split, and one in none."""
    made = create_dataset(tmp_path / "set", made_from={})
    splits = {"d": "dev", "t": "test", "n": None}
    made.write_queries(
        Query(query_id=name, query=f"What of {name}?", split=split)
        for name, split in splits.items()
    )
    return made


@pytest.mark.parametrize(
    ("split", "ids"), [("all", {"d", "t", "n"}), ("dev", {"d"}), ("test", {"t"})]
)
def test_a_split_holds_its_own_queries_only(dataset, split, ids):
    """What is tuned on the one must not be seen in the other."""
    assert queries_of(dataset, split).keys() == ids


def test_a_split_without_queries_is_an_error(tmp_path):
    """Judging nothing with success would look like a judged set."""
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_queries([Query(query_id="n", query="What?")])

    with pytest.raises(DataError, match="no query belongs to the split 'test'"):
        queries_of(made, "test")


@pytest.mark.parametrize("source", ["judge", "carried"])
def test_grades_that_a_refresh_carried_are_still_of_their_judge(dataset, source):
    """Another model graded the rest of the pool beside them, unasked, and all became unknown."""
    pair = PairId("q1", "c1")
    dataset.write_judgments(
        [Judgment(query_id="q1", chunk_id="c1", grade=2, source=source, provenance=JUDGE)]
    )
    other = KeptGrades((JUDGE.model_copy(update={"model": "judge-2"}),), again=False)

    assert describe_other_judges(dataset, {pair}, other).startswith("1 by judge-1 ")
