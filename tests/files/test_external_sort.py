import pytest

from ragforge.errors import DataError
from ragforge.files import external_sort
from ragforge.files.external_sort import ExternalSorter
from ragforge.files.record_files import read_records
from ragforge.records import Hit


def names(opened):
    return [Hit.model_validate_json(line).chunk_id for line in opened.lines()]


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """A sorter that holds three records in memory and eight parts on disk."""
    monkeypatch.setattr(external_sort, "PART", 3)
    monkeypatch.setattr(external_sort, "_MOST_PARTS", 8)
    with ExternalSorter(lambda hit: (hit.chunk_id,), tmp_path) as made:
        yield made


@pytest.mark.parametrize("n", [0, 1, 3, 4, 100])
def test_records_come_back_sorted_however_many_there_are(opened, n):
    """Files are sorted by id, whatever came first and whatever memory holds."""
    ids = [f"c{(37 * number) % 101:03}" for number in range(n)]
    for chunk_id in ids:
        opened.add(Hit(chunk_id=chunk_id, score=1.0))

    assert names(opened) == sorted(ids)
    assert opened.count == n


def test_records_can_be_read_again_and_more_be_added(opened):
    """The file is written first and summed up afterwards."""
    for chunk_id in "dbca":
        opened.add(Hit(chunk_id=chunk_id, score=1.0))

    first = names(opened)
    opened.add(Hit(chunk_id="aa", score=1.0))

    assert first == ["a", "b", "c", "d"]
    assert names(opened) == ["a", "aa", "b", "c", "d"]


@pytest.mark.parametrize("chunk_id", ["a\tb", "a\nb", "文", "\x85\u2028"])
def test_any_id_survives_the_disk(opened, tmp_path, chunk_id):
    """Ids are the user's; a tab in one must not tear a line."""
    for known in (chunk_id, "x", "y", "z"):
        opened.add(Hit(chunk_id=known, score=1.0))

    opened.write(tmp_path / "out.jsonl")

    found = {hit.chunk_id for hit in read_records(tmp_path / "out.jsonl", Hit)}
    assert found == {chunk_id, "x", "y", "z"}


def test_nothing_is_left_in_the_folder(opened, tmp_path):
    """A killed run must not leave gigabytes behind."""
    for number in range(10):
        opened.add(Hit(chunk_id=str(number), score=1.0))

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_no_files_is_named(tmp_path, monkeypatch):
    """A full disk is the user's to mend."""
    monkeypatch.setattr(external_sort, "PART", 1)
    with (
        ExternalSorter(lambda hit: (hit.chunk_id,), tmp_path / "gone") as made,
        pytest.raises(DataError, match="gone"),
    ):
        made.add(Hit(chunk_id="a", score=1.0))
