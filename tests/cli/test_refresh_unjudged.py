import json

import pytest

from ragforge.cli import main

GOLDEN = [
    {
        "query_id": "q1",
        "question": "When does UnitA drop idle sessions?",
        "answer": "After 5 minutes.",
        "doc_id": "a.md",
        "quote": "UnitA drops idle sessions after 5 minutes.",
    },
    {
        "query_id": "u1",
        "question": "Who wrote the firmware of UnitB?",
        "answer": "The documents do not say.",
        "answerable": False,
    },
]


@pytest.fixture
def unanswerable_check(tmp_path, capsys, monkeypatch):
    """Refresh a set without a model; return what the check of unanswerable queries says."""

    def check(**files):
        monkeypatch.chdir(tmp_path)
        documents = tmp_path / "docs"
        documents.mkdir()
        (documents / "a.md").write_text("# A\n\nUnitA drops idle sessions after 5 minutes.\n")
        (documents / "b.md").write_text("# B\n\nUnitB has no buttons.\n")
        (tmp_path / "golden.json").write_text(json.dumps(GOLDEN))
        assert main(["import", "golden.json", "--documents", "docs", "--out", "set", "-q"]) == 0
        for name, text in files.items():
            (documents / f"{name}.md").write_text(text)
        capsys.readouterr()
        words = ["refresh", "--dataset", "set", "--documents", "docs", "--max-new", "0", "-q"]
        assert main([*words, "--json"]) == 0
        [found] = [
            one
            for one in json.loads(capsys.readouterr().out)["checks"]
            if one["name"] == "unanswerable"
        ]
        return found["found"], found["detail"]

    return check


def test_a_night_without_a_judge_says_that_it_looked_at_no_new_chunk(unanswerable_check):
    """The new document answers what should have no answer."""
    found = unanswerable_check(c="# Firmware\n\nSiemens wrote the firmware of UnitB.\n")

    assert found == (None, "not looked at: no new chunk was judged")
