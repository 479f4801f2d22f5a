"""Nights without a model: what nobody can confirm stays out until its text is back."""

import json

import pytest
from nights import WIDE, Night
from pipeline.generation.making import run

REFUND = "Refunds are paid within 14 days to the card that was charged."
TEXT = f"# Billing\n\nInvoices are sent monthly.\n\n## Refunds\n\n{REFUND}\n"


@pytest.fixture
def night(tmp_path):
    """A hand-made set, whose one query asks for a sentence."""
    night = Night(tmp_path, WIDE)
    night.docs.mkdir()
    (night.docs / "billing.md").write_text(TEXT, encoding="utf-8")
    (night.docs / "other.md").write_text("# Other\n\nNothing of it.\n", encoding="utf-8")
    row = {
        "query_id": "u",
        "query": "Within how many days are refunds paid?",
        "expected_answer": "14 days",
        "relevant": [{"doc_id": "billing.md", "quote": REFUND, "grade": 3}],
    }
    path = tmp_path / "golden.jsonl"
    path.write_text(f"{json.dumps(row)}\n", encoding="utf-8")
    words = ["import", str(path), "--documents", str(night.docs), "--out", str(night.set), "-q"]
    assert run(words).code == 0
    return night


@pytest.mark.parametrize(
    "now",
    [
        REFUND.replace("are paid", "are not paid"),
        REFUND.replace("Refunds are", "Until 2023 refunds were"),
        f"Until 2023 the following held, it does not any more: {REFUND}",
    ],
)
def test_a_turned_sentence_puts_its_query_out_and_keeps_it_out(night, now):
    """The second night must not take for granted what the first one did not."""
    night.edit("billing.md", lambda text: text.replace(REFUND, now))
    night.json()
    night.add_document()
    night.json()

    assert night.queries["u"].status == "quarantined"


def test_a_query_is_back_with_its_sentence_and_says_why(night):
    """The text around it did not change; the sentence came back."""
    night.edit("billing.md", lambda text: text.replace("are paid", "are not paid"))
    night.json()
    night.edit("billing.md", lambda _: TEXT)
    [change] = night.json()["changes"]

    assert (change["action"], night.queries["u"].status) == ("revived", "accepted")
    assert change["causes"][0]["detail"] == "the quote stands again"
    assert night.json()["status"] == "unchanged"
