import re

from ragforge.evaluating.formatting import MISSING
from ragforge.evaluating.summary import summarise
from ragforge.files.manifest import Spent
from ragforge.report.set_report import render_text


def row(text, name):
    return next(re.split(r"  +", line) for line in text.splitlines() if line.startswith(name))


def test_means_stand_with_bounds_and_counts(dataset):
    """A number without what it rests on cannot be held up."""
    text = render_text(summarise(dataset, measures=["Success@5"]))

    assert row(text, "Success@5") == ["Success@5", "0.500 [0.333, 1.000]"]
    assert row(text, "n ")[-1] == "2"
    assert row(text, "with failures")[-1] == "2"


def test_missing_means_are_dashes(dataset):
    """Never 0, never NaN."""
    dataset.write_judgments([])

    text = render_text(summarise(dataset, measures=["RR"]))

    assert row(text, "RR") == ["RR", MISSING]
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def test_unanswerable_queries_are_said_to_be_left_out(dataset):
    """Who counts queries must find them all."""
    assert "1 query is meant to have no answer" in render_text(summarise(dataset))


def test_cost_is_unknown_until_known(dataset):
    """0 would read as free, and without a call it is."""
    assert row(render_text(summarise(dataset)), "cost") == ["cost", "0.0000 USD"]
    dataset.note(spent=Spent(calls=1))
    assert row(render_text(summarise(dataset)), "cost") == ["cost", "unknown"]
    dataset.note(spent=Spent(calls=1, cost_usd=0.25))
    assert row(render_text(summarise(dataset)), "cost") == ["cost", "0.2500 USD"]


def test_hostile_text_cannot_steer_the_terminal(hostile_dataset):
    """Escape sequences and bidirectional marks of a corpus are data."""
    text = render_text(summarise(hostile_dataset))

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", text)
    assert max(map(len, text.splitlines())) < 400
