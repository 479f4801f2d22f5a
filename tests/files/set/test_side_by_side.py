import pytest

from ragforge.files.set.sorted_records import side_by_side


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ("", "", []),
        ("a", "", [("a", None)]),
        ("", "b", [(None, "b")]),
        ("ac", "bc", [("a", None), (None, "b"), ("c", "c")]),
        ("abc", "b", [("a", None), ("b", "b"), ("c", None)]),
    ],
)
def test_items_of_one_key_come_together(old, new, pairs):
    """A pair torn apart would be told as one that is gone and one that came."""
    assert list(side_by_side(iter(old), iter(new), str)) == pairs
