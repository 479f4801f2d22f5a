import numpy as np
import pytest

from ragforge.files.array_files import Strings, StringWriter, map_array, read_part, write_array


def test_parts_come_back_as_one_array(tmp_path):
    """An index is written as it is made and read as a whole."""
    write_array(tmp_path / "a", [np.array([1, 2], np.uint32), np.array([3], np.uint32)])

    assert map_array(tmp_path / "a", "<u4").tolist() == [1, 2, 3]


def test_a_part_is_read_by_its_place(tmp_path):
    """Merging must not load whole blocks."""
    write_array(tmp_path / "a", [np.arange(10, dtype=np.uint16)])

    assert read_part(tmp_path / "a", "<u2", 3, 4).tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize("parts", [[], [np.zeros(0, np.uint64)]])
def test_an_array_of_nothing_comes_back(tmp_path, parts):
    """A corpus without words has an empty index, which is no error."""
    write_array(tmp_path / "a", parts)

    assert map_array(tmp_path / "a", "<u8").tolist() == []


def test_bytes_on_disk_are_the_same_on_every_machine(tmp_path):
    """A folder must be readable where it is carried to."""
    write_array(tmp_path / "a", [np.array([1], ">u4")])

    assert (tmp_path / "a").read_bytes() == b"\x01\0\0\0"


def test_what_is_mapped_cannot_be_changed(tmp_path):
    """Several readers look at one file."""
    write_array(tmp_path / "a", [np.zeros(2, np.uint32)])

    with pytest.raises(ValueError, match="read-only"):
        map_array(tmp_path / "a", "<u4")[0] = 1


@pytest.fixture
def stored(tmp_path):
    """Write strings and open them."""

    def store(*strings):
        with StringWriter(tmp_path / "ids.txt") as writer:
            for string in strings:
                writer.add(string)
        return Strings(tmp_path / "ids.txt")

    return store


def test_strings_come_back_by_number(stored):
    """Ids may be of any length, empty and beyond ASCII."""
    with stored("", "a", "ünï", "c\nd") as strings:
        assert len(strings) == 4
        assert [strings[number] for number in range(4)] == ["", "a", "ünï", "c\nd"]


@pytest.mark.parametrize(
    ("start", "behind", "expected"),
    [(0, 2, ["a", "bb"]), (1, 3, ["bb", "ccc"]), (0, 0, []), (3, 3, [])],
)
def test_a_part_comes_back_at_once(stored, start, behind, expected):
    """Going through a million of them one by one would take seconds longer."""
    assert stored("a", "bb", "ccc").part(start, behind) == expected


@pytest.mark.parametrize("wanted", ["a", "m", "z", "é"])
def test_a_sorted_string_is_found(stored, wanted):
    """Chunks are looked up by their ids."""
    strings = stored("a", "ab", "m", "z", "é")

    assert strings[strings.find(wanted)] == wanted


@pytest.mark.parametrize("wanted", ["", "aa", "zz", "€"])
def test_a_string_that_is_not_there_is_not_found(stored, wanted):
    """The next one must not be taken for it."""
    assert stored("a", "b", "z").find(wanted) is None


def test_a_list_of_nothing_is_empty(stored):
    """An empty file cannot be mapped into memory."""
    strings = stored()

    assert (len(strings), strings.find("a"), strings.part(0, 0)) == (0, None, [])
