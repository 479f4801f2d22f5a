import json

import pytest

from ragforge.corpus.quality import KINDS, Inspector
from ragforge.records import Chunk
from ragforge.report.chunk_quality import FIXES, TITLES, quality_json, quality_text


@pytest.fixture
def quality():
    """What is found in seven small chunks, one of them hostile."""
    inspector = Inspector(2000)
    for number in range(7):
        text = f"Small\x1b[31m\u202e {number}."
        inspector.add(Chunk(chunk_id=f"c{number}", doc_id=f"d{number}", text=text))
    return inspector.quality()


def test_each_kind_has_a_title_and_a_fix():
    """A finding without a fix is a complaint."""
    assert list(TITLES) == list(FIXES) == list(KINDS)


def test_text_tells_count_share_fix_and_examples(quality):
    """That is what the reader acts on."""
    text = quality_text(quality)

    assert text.startswith("7 documents, 7 chunks, 7 with a finding (100 %)\n")
    assert "too small            7  100 %" in text
    assert "Fix: Less than 12 words" in text
    assert text.count("    2 words\n") == 5
    assert "    and 2 more\n" in text


def test_text_cannot_steer_a_terminal(quality):
    """Corpus text is data."""
    text = quality_text(quality)

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[31m\\u202e" in text


def test_json_has_all_kinds(quality):
    """A script must not have to tell a missing kind from none found."""
    found = json.loads(json.dumps(quality_json(quality)))

    assert [finding["kind"] for finding in found["findings"]] == list(KINDS)
    assert found["findings"][0] | {"examples": [], "fix": ""} == {
        "kind": "too_small", "chunks": 7, "share": 1.0, "fix": "", "examples": [],
    }  # fmt: skip
    assert found["sizes"]["words"]["median"] == 2
    assert (found["documents"], found["chunks"], found["flagged"]) == (7, 7, 7)
