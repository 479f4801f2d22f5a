import pytest

from ragforge.files.array_files import Strings, StringWriter


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
