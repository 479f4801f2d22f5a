import pytest

from ragforge.errors import DataError
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.judge.pooling import queries_of
from ragforge.records import Query


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
