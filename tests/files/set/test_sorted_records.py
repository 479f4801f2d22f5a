import pytest

from ragforge.errors import DataError
from ragforge.files.record_files import write_records
from ragforge.files.set.sorted_records import each_judgment, key_of, merged, side_by_side
from ragforge.records import Judgment


def judgment(chunk_id, grade=1, query_id="q", **fields):
    return Judgment(query_id=query_id, chunk_id=chunk_id, grade=grade, **fields)


def failed(chunk_id):
    return judgment(chunk_id, grade=None, failure="invalid")


def grades(*streams):
    return [(one.chunk_id, one.grade) for one in merged(*map(iter, streams))]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([], [], []),
        ([judgment("a")], [], [("a", 1)]),
        ([], [judgment("a")], [("a", 1)]),
        ([judgment("a"), judgment("c")], [judgment("b", 2)], [("a", 1), ("b", 2), ("c", 1)]),
        ([judgment("a", 1)], [judgment("a", 3)], [("a", 3)]),
        ([judgment("a", 1)], [failed("a")], [("a", None)]),
        ([judgment("a", 3, source="evidence")], [failed("a")], [("a", 3)]),
        ([judgment("a", 3, source="evidence")], [judgment("a", 0)], [("a", 0)]),
    ],
)
def test_new_judgments_replace_old_ones_of_their_pair(old, new, expected):
    """A grade that was made again must not stand twice, and evidence not be lost to a failure."""
    assert grades(old, new) == expected


def test_a_file_that_is_not_there_holds_no_judgments(tmp_path):
    """A new dataset has none."""
    assert list(each_judgment(tmp_path / "judgments.jsonl")) == []


def test_a_file_edited_out_of_order_is_read_in_order(tmp_path):
    """People edit these files."""
    path = tmp_path / "judgments.jsonl"
    lines = [judgment(chunk_id).model_dump_json() for chunk_id in "cab"]
    path.write_text("\n".join(lines), encoding="utf-8")

    assert [one.chunk_id for one in each_judgment(path)] == ["a", "b", "c"]


def test_a_pair_that_comes_twice_is_refused(tmp_path):
    """Two grades for one pair are a mistake that no rule can settle."""
    path = tmp_path / "judgments.jsonl"
    write_records(path, [judgment("a", 1), judgment("a", 2)], key_of)

    with pytest.raises(DataError, match="comes twice"):
        list(each_judgment(path))


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
