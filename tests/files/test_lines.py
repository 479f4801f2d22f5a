import gzip

import pytest

from ragforge.files.lines import open_source

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
