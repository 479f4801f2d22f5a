import json

import pytest

from ragforge.errors import DataError
from ragforge.files.set.sorted_records import ChunkTexts


@pytest.fixture
def written(tmp_path):
    """Write chunks of these texts, with ids a, b, c, …."""

    def write(*texts, start=b""):
        path = tmp_path / "chunks.jsonl"
        rows = [
            {"chunk_id": chunk_id, "text": text}
            for chunk_id, text in zip("abc", texts, strict=False)
        ]
        lines = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]
        path.write_bytes(start + b"\n".join(lines))
        return path

    return write


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n\n"])
def test_the_wanted_texts_are_found_in_any_order(written, start):
    """Pairs come by query, chunks by id."""
    with ChunkTexts([written("one", "zwei ü", "三", start=start)], {"c", "a"}) as texts:
        assert (texts["c"], texts["a"], texts["c"]) == ("三", "one", "三")


def test_what_is_not_wanted_or_not_there_is_not_held(written):
    """A corpus of a million chunks must not be in memory for a hundred pairs."""
    with ChunkTexts([written("one", "two")], {"a", "gone"}) as texts:
        assert [chunk_id in texts for chunk_id in ("a", "b", "gone")] == [True, False, False]


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"chunk_id": "x"}', b'{"chunk_id": "x", "text": 3}']
)
def test_a_line_that_is_no_chunk_is_named(tmp_path, line):
    """The user must find it."""
    path = tmp_path / "chunks.jsonl"
    path.write_bytes(line)

    with pytest.raises(DataError, match=r"chunks\.jsonl:1: "):
        ChunkTexts([path], {"x"})


def test_a_missing_file_is_named(tmp_path):
    """A dataset without chunks cannot be judged."""
    with pytest.raises(DataError, match=r"chunks\.jsonl: cannot be read"):
        ChunkTexts([tmp_path / "chunks.jsonl"], {"x"})
