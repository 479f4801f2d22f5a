import gzip

import pytest

from ragforge.errors import DataError
from ragforge.files import source_files
from ragforge.files.source_files import open_source, read_groups

LINES = [b"# comment\n", b"\n", *(b"line %d\n" % number for number in range(50_000)), b"last"]


@pytest.mark.parametrize("name", ["lines.txt", "lines.txt.gz"])
def test_lines_come_whole_numbered_and_in_order(tmp_path, name):
    """They are read in groups, whose borders must not show in the number that an error names."""
    file = tmp_path / name
    text = b"".join(LINES)
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)

    assert list(open_source(file).lines) == list(enumerate(LINES, start=1))


def test_a_long_comment_before_the_first_line_is_read_over(tmp_path):
    """What is looked at first may hold no line that tells the kind of file."""
    file = tmp_path / "lines.txt"
    file.write_bytes(b"# comment\n" * 60_000 + b"q 0 a 1\n")

    assert open_source(file).first == "q 0 a 1"


def test_telling_the_kind_of_a_file_reads_little_of_it(tmp_path):
    """Small runs are opened twice, once to look at the first line."""
    file = tmp_path / "lines.txt"
    file.write_bytes(b"".join(LINES))

    _, lines = next(open_source(file).groups)

    assert sum(map(len, lines)) < 10_000


def test_a_packed_line_without_end_is_named(tmp_path, monkeypatch):
    """One megabyte may unpack to more than the memory holds."""
    monkeypatch.setattr(source_files, "LONGEST_LINE_BYTES", 10_000)
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"a": "' + b" " * 20_000))

    with pytest.raises(DataError, match="holds a line of more than 10,000 bytes unpacked"):
        list(read_groups(file))


def test_packed_lines_of_any_length_come_whole(tmp_path):
    """They are read in pieces that end anywhere."""
    rows = [b"x" * length + b"\n" for length in (1, 4094, 4095, 4096, 300_000, 2)] + [b"end"]
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(b"".join(rows)))

    assert [line for _, group in read_groups(file) for line in group] == rows
