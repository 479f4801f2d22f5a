import numpy as np
import pytest

from ragforge.files.array_files import map_array, read_part, write_array


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
