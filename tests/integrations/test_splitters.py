"""Pieces of real splitters are put at their places, small: `benchmarks/splitters.py` has all."""

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["splitters"])
@pytest.mark.parametrize("words", [[], ["--named"]], ids=["anywhere", "named"])
def test_no_piece_of_a_splitter_is_put_at_a_wrong_place(python, tmp_path, words):
    """A wrong place would decide which evidence a hit covers."""
    shutil.copytree(ROOT / "datasets" / "helpcentre" / "documents", tmp_path / "documents")
    script = str(ROOT / "benchmarks" / "splitters.py")
    python(tmp_path, script, "documents", "--few", "--json", "rows.json", *words)
    rows = json.loads((tmp_path / "rows.json").read_text("utf-8"))

    assert {row["splitter"].split()[0] for row in rows} == {
        *("langchain", "llama-index", "haystack", "chonkie"),
    }
    assert [row for row in rows if row["wrong"] or not row["pieces"]] == []
    if words:
        right = sum(row["right"] + row["by_offset"] for row in rows)
        assert right >= 0.995 * sum(row["pieces"] for row in rows)
