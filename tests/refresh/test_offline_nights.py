"""Nights without a model: what nobody can confirm stays out until its text is back."""

import json
from functools import partial

import pytest
from nights import WIDE, Night
from pipeline.generation.making import run

REFUND = "Refunds are paid within 14 days to the card that was charged."
TEXT = f"# Billing\n\nInvoices are sent monthly.\n\n## Refunds\n\n{REFUND}\n"


@pytest.fixture
def night(tmp_path):
    """A hand-made set, whose one query asks for a sentence."""
    question = "Within how many days are refunds paid?"
    return asking(tmp_path, question, "14 days", REFUND, {"billing.md": TEXT})


def asking(tmp_path, question, answer, quote, texts):
    """Make a set by hand, whose one query asks for a quote of the first document."""
    night = Night(tmp_path, WIDE)
    night.docs.mkdir()
    for name, text in {**texts, "other.md": "# Other\n\nNothing of it.\n"}.items():
        (night.docs / name).write_text(text, encoding="utf-8")
    row = {
        "query_id": "u",
        "query": question,
        "expected_answer": answer,
        "relevant": [{"doc_id": next(iter(texts)), "quote": quote, "grade": 3}],
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
    assert change["causes"][0]["detail"] == "its quotes stand again"
    assert night.json()["status"] == "unchanged"


LIMIT = "The timeout of a call is 30 seconds."
CLIENTS = f"# Clients\n\n## Redis\n\n{LIMIT}\n\n## Kafka\n\n{LIMIT}\n"


@pytest.fixture
def ask_redis(tmp_path):
    """Make a set whose one query asks about Redis."""
    return partial(asking, tmp_path, "What is the timeout of a Redis call?", "30 seconds")


def test_a_number_that_changed_is_not_proved_by_the_same_words_under_another_title(ask_redis):
    """The set would say 30 where the documents say 45, with the grade of a person."""
    night = ask_redis(LIMIT, {"clients.md": CLIENTS})
    night.edit("clients.md", lambda text: text.replace("30", "45", 1))
    night.json()

    assert night.queries["u"].status == "quarantined"


def test_the_same_words_of_another_document_prove_nothing(ask_redis):
    """Pages of a template say the same of different things."""
    texts = {f"{name}.md": f"# {name}\n\n{LIMIT}\n" for name in ("Redis", "Kafka")}
    night = ask_redis(LIMIT, texts)
    night.edit("Redis.md", lambda text: text.replace("30", "45"))
    night.json()

    assert night.queries["u"].status == "quarantined"


def test_a_part_of_a_sentence_is_not_proved_by_another_one(ask_redis):
    """Who quotes a few words leaves out what they are said of."""
    text = "A call to Redis ends after 30 seconds. A call to Kafka ends after 30 seconds."
    night = ask_redis("after 30 seconds", {"clients.md": text})
    night.edit("clients.md", lambda text: text.replace("30", "45", 1))
    night.json()

    assert night.queries["u"].status == "quarantined"


def test_words_that_went_below_another_title_are_proved_where_they_tell_of_the_same(ask_redis):
    """A page that is arranged anew says what it said."""
    night = ask_redis(LIMIT, {"clients.md": CLIENTS})
    night.edit("clients.md", lambda _: f"# Limits of Redis\n\nThey are low.\n\n{LIMIT}\n")
    night.json()

    assert night.queries["u"].status == "accepted"


@pytest.mark.parametrize(
    "texts",
    [
        {"clients.md": CLIENTS},
        {"Redis.md": f"# Redis\n\n{LIMIT}\n", "Kafka.md": f"# Kafka\n\n{LIMIT}\n"},
    ],
)
def test_words_said_of_another_thing_do_not_bring_a_query_back(ask_redis, texts):
    """The second night must not take for granted what the first one did not."""
    night = ask_redis(LIMIT, texts)
    night.edit(next(iter(texts)), lambda text: text.replace("30", "45", 1))
    night.json()
    night.add_document()
    night.json()
    assert night.queries["u"].status == "quarantined"

    night.edit(next(iter(texts)), lambda text: text.replace("45", "30", 1))
    night.json()
    query = night.queries["u"]
    assert (query.status, query.evidence[0].doc_id) == ("accepted", next(iter(texts)))


def section(name, marks="#"):
    """Return a section of a template, which says the same of each product."""
    filler = "A call that failed is tried again three times, with a pause before each try."
    return f"{marks} {name}\n\n{filler}\n\n{LIMIT} It can be changed in the settings.\n"


@pytest.mark.parametrize(
    "texts",
    [
        {"Redis.md": section("Redis"), "Kafka.md": section("Kafka")},
        {"clients.md": f"# Clients\n\n{section('Redis', '##')}\n{section('Kafka', '##')}"},
    ],
)
def test_a_section_of_the_same_words_on_something_else_does_not_bring_a_query_back(
    ask_redis, texts
):
    """Redis has 45 now, and Kafka's 30 seconds would count as the answer about Redis."""
    night = ask_redis(LIMIT, texts)
    own, other = next(iter(texts)), [*texts][-1]
    before = texts[own]
    night.edit(own, lambda text: text.replace("30", "45", 1))
    night.json()
    night.edit(other, lambda text: f"{text}\n## News\n\nThere is some.\n")
    night.json()
    assert night.queries["u"].status == "quarantined"
    night.add_document()
    night.json()
    assert night.queries["u"].status == "quarantined"

    night.edit(own, lambda _: before)
    night.json()

    [proof] = night.queries["u"].evidence
    text = (night.docs / own).read_text(encoding="utf-8")
    assert night.queries["u"].status == "accepted"
    assert text.rfind("# Redis", 0, proof.start) > text.rfind("# Kafka", 0, proof.start)


def test_a_query_of_a_page_that_is_gone_does_not_come_back_with_a_page_alike(ask_redis):
    """A new page of the same template says it of something else."""
    night = ask_redis(LIMIT, {"Redis.md": f"# Redis\n\n{LIMIT}\n"})
    night.lose("Redis.md")
    night.json("--accept-churn")
    (night.docs / "Kafka.md").write_text(f"# Kafka\n\n{LIMIT}\n", encoding="utf-8")
    night.json("--accept-churn")

    assert night.queries["u"].status == "retired"


@pytest.mark.parametrize(
    "change",
    [
        ("other.md", "Nothing of it.", "Nothing of it, indeed."),
        ("clients.md", "The end.", "This is the end."),
        ("clients.md", "It can be changed", "It can well be changed"),
    ],
)
def test_a_section_that_was_refused_does_not_bring_a_query_back_the_night_after(ask_redis, change):
    """What stood there the night before was taken for what had been checked."""
    redis, kafka = section("Redis", "##"), section("Kafka", "##")
    night = ask_redis(LIMIT, {"clients.md": f"# Clients\n\n{redis}\n## End\n\nThe end.\n"})
    night.edit("clients.md", lambda text: text.replace(redis, ""))
    night.json("--accept-churn")
    night.edit("clients.md", lambda text: text.replace("## End", f"{kafka}\n## End"))
    night.json("--accept-churn")
    name, old, new = change
    night.edit(name, lambda text: text.replace(old, new))
    night.json("--accept-churn")
    assert night.queries["u"].status == "retired"

    night.edit("clients.md", lambda text: text.replace("## Kafka", f"{redis}\n## Kafka"))
    night.json("--accept-churn")

    [proof] = night.queries["u"].evidence
    text = (night.docs / "clients.md").read_text(encoding="utf-8")
    assert night.queries["u"].status == "accepted"
    assert text.rfind("## ", 0, proof.start) == text.find("## Redis")


def test_a_question_of_the_heading_is_back_with_its_section(tmp_path):
    """What it asks with, such as "know", stands in no text."""
    question = "What should I know about refunds (Billing)?"
    night = asking(tmp_path, question, REFUND, REFUND, {"billing.md": TEXT})
    night.edit("billing.md", lambda text: text.replace(REFUND, ""))
    night.json()
    assert night.queries["u"].status == "retired"
    night.edit("billing.md", lambda _: f"{TEXT}\n## News\n\nThere is some.\n")
    night.json()

    assert night.queries["u"].status == "accepted"
