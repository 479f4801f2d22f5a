"""Queries whose only relevant chunk was changed by a night, where nobody quoted any evidence."""

import json

import pytest
from nights import WIDE, Night
from pipeline.generation.making import run

FEES = "A parcel in the locker costs {} euros a week, payable in advance."
HOURS = "The counter is open from nine to six, and closed on Sundays."


@pytest.fixture
def night(tmp_path):
    """A set of two queries whose labels name a chunk each."""
    night = Night(tmp_path, WIDE)
    night.docs.mkdir()
    texts = {"fees": FEES.format(4), "hours": HOURS}
    for name, text in texts.items():
        (night.docs / f"{name}.md").write_text(f"# On {name}\n\n{text}\n", encoding="utf-8")
    chunks = tmp_path / "chunks.jsonl"
    assert run(["chunk", str(night.docs), "--out", str(chunks), "-q"]).code == 0
    ids = {
        row["doc_id"]: row["chunk_id"]
        for row in map(json.loads, chunks.read_text(encoding="utf-8").splitlines())
    }
    rows = [
        {"query_id": name, "query": f"What of {name}?", "relevant_doc_ids": [ids[f"{name}.md"]]}
        for name in texts
    ]
    path = tmp_path / "golden.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    words = ["import", str(path), "--documents", str(night.docs), "--out", str(night.set)]
    assert run([*words, "-q"]).code == 0
    return night


def test_a_query_that_lost_its_only_relevant_chunk_is_named(night):
    """Its measures have no value any more, which a mean over the others does not show."""
    text = f"# On fees\n\n{FEES.format(9)}\n"
    (night.docs / "fees.md").write_text(text, encoding="utf-8")

    done = night.refresh()

    line = (
        "1 accepted query has no relevant chunk any more, and no value until somebody labels or "
        "judges one: fees"
    )
    assert line in done.out
    assert line in night.dataset.past.changelog()
    assert night.dataset.past.diff().lost_relevant == ("fees",)


def test_a_night_that_leaves_relevant_chunks_alone_names_no_query(night):
    """What is told each night is read no more."""
    (night.docs / "tea.md").write_text("# Tea\n\nTea is free for members.\n", encoding="utf-8")

    done = night.refresh()

    assert "no relevant chunk any more" not in done.out
    assert night.dataset.past.diff().lost_relevant == ()


def test_queries_that_stay_out_are_counted_each_night(night):
    """One that was taken out is seen by nobody again who reads only what a night changed."""
    dataset = night.dataset
    out = [
        query.model_copy(update={"status": "quarantined"}) if query.query_id == "hours" else query
        for query in dataset.all_queries()
    ]
    dataset.write_queries(out)
    (night.docs / "tea.md").write_text("# Tea\n\nTea is free for members.\n", encoding="utf-8")

    done = night.refresh()

    assert "queries: 1 kept; not accepted: 1 quarantined" in done.out
    assert night.dataset.past.diff().not_accepted == {"quarantined": 1}
