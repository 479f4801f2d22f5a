import pytest

from ragforge.errors import DataError
from ragforge.files.record_files import write_records
from ragforge.files.set.sorted_records import ChunkLines, each_chunk
from ragforge.records import Chunk

CHUNKS = [Chunk(chunk_id=f"c{number}", doc_id="d", text=f"tëxt {number}") for number in range(3)]


@pytest.fixture
def path(tmp_path):
    """A file of three chunks."""
    write_records(tmp_path / "chunks.jsonl", CHUNKS, key=lambda chunk: chunk.chunk_id)
    return tmp_path / "chunks.jsonl"


def test_a_chunk_is_read_by_where_its_line_begins(path):
    """A million texts stay on disk."""
    begins = [begin for begin, _ in each_chunk(path)]

    with ChunkLines(path) as lines:
        assert [lines.at(begin) for begin in reversed(begins)] == CHUNKS[::-1]


def test_a_byte_order_mark_and_empty_lines_shift_nothing(path):
    """Editors add both."""
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\n\n"))

    found = list(each_chunk(path))

    assert [chunk for _, chunk in found] == CHUNKS
    with ChunkLines(path) as lines:
        assert [lines.at(begin) for begin, _ in found] == CHUNKS


@pytest.mark.parametrize("order", [[1, 0], [0, 0]])
def test_lines_out_of_order_are_refused(path, order):
    """A chunk is looked up by bisection, which would miss it."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[place] for place in order))

    with pytest.raises(DataError, match=r"chunks\.jsonl:2: chunk_id: expected one above"):
        list(each_chunk(path))


@pytest.mark.parametrize("line", [b"{}\n", b"\xff\n", b'{"chunk_id": "c9"', b"[]\n"])
def test_a_line_that_is_no_chunk_is_refused(path, line):
    """The message says which line."""
    path.write_bytes(path.read_bytes() + line)

    with pytest.raises(DataError, match=r"chunks\.jsonl:4: "):
        list(each_chunk(path))


def test_a_missing_file_is_refused(tmp_path):
    """Both ways of reading say what is missing."""
    with pytest.raises(DataError, match="no: cannot be read: No such file"):
        list(each_chunk(tmp_path / "no"))
    with pytest.raises(DataError, match="no: cannot be read: No such file"):
        ChunkLines(tmp_path / "no")


def test_a_file_written_over_in_place_is_noticed(path):
    """A wrong text must not pass for the chunk."""
    begins = [begin for begin, _ in each_chunk(path)]
    with ChunkLines(path) as lines:
        path.write_bytes(b"x" * 1000)

        with pytest.raises(DataError, match="was changed while it was read"):
            lines.at(begins[1])
