import json

import pytest
from endpoint import datum
from fakes import saying

from ragforge.errors import CallError
from ragforge.llm.chat import ChatReply
from ragforge.observe import silent
from ragforge.records import Fact, Provenance
from ragforge.stages.answer.facts import (
    StatedFact,
    broken_rule,
    digest_of,
    draw_facts,
    keeping_facts,
    lacks_facts,
    with_facts,
)
from ragforge.stages.runner import Workers
from ragforge.testing import ScriptedModel

FACT = Fact(fact_id="f1", text="Blue whales eat krill.")
BY = Provenance(kind="llm", model="m")


def said(*facts):
    return json.dumps(
        {"facts": [{"statement": text, "importance": importance} for text, importance in facts]}
    )


@pytest.fixture
def drawn(asker, query, wait):
    """Draw the facts of a query from what a model says."""

    def go(reply, **changes):
        asked = query(**{"expected_answer": "krill", **changes})
        return wait(with_facts(asked, asker("extract_facts", reply)))

    return go


def test_facts_get_their_ids_here(drawn):
    """An id that a model chose could come twice, or speak of how vital the fact is."""
    found = drawn(said((" They eat krill. ", "vital"), ("They eat krill\x07 in summer.", "okay")))

    assert found.facts == (
        Fact(fact_id="f1", text="They eat krill.", importance="vital"),
        Fact(fact_id="f2", text="They eat krill in summer.", importance="okay"),
    )
    assert found.facts_by.prompt == "extract_facts"
    assert found.facts_of == digest_of("krill")


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (said(), "at least 1 item"),
        (said(*((f"Fact {n}.", "vital") for n in range(9))), "at most 8 items"),
        (said(("Krill.", "okay"), ("Only krill.", "okay")), "no fact is vital"),
        (said(("Krill.", "vital"), ("krill", "okay")), "comes twice"),
        (said(("They  eat krill", "vital"), ("They eat\nkrill.", "vital")), "comes twice"),
        (said(("", "vital")), "statement is empty"),
        (said(("Krill.", "vital"), (" . ", "okay")), "statement is empty"),
        (said(("Krill.", "essential")), "importance"),
        ('{"facts": ["Krill."]}', r"facts\.0"),
        ('{"facts": "Krill."}', "facts"),
        ('{"facts": [{"statement": 7, "importance": "vital"}]}', "statement"),
        ('{"facts": [{"id": "f1", "statement": "Krill.", "importance": "vital"}]}', "id"),
        ("1. Whales eat krill.", "not exactly one JSON object"),
    ],
)
def test_a_list_that_cannot_be_graded_by_is_a_failure(drawn, reply, message):
    """No facts at all have made every answer right elsewhere."""
    with pytest.raises(CallError, match=message) as caught:
        drawn(reply)

    assert caught.value.kind == "invalid"


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [
        ({"expected_answer": "krill"}, True),
        ({"expected_answer": "krill", "facts": (FACT,)}, False),
        ({"expected_answer": None}, False),
        ({"expected_answer": " "}, False),
        ({"expected_answer": "It is not said.", "answerable": False}, False),
        ({"expected_answer": None, "answerable": False}, False),
    ],
)
def test_facts_are_drawn_once_and_from_an_expected_answer_only(query, changes, lacks):
    """A person's edit must last, and an unanswerable question has nothing to state."""
    assert lacks_facts(query(**changes)) is lacks


def test_a_query_without_expected_answer_is_never_asked_about(drawn):
    """A model would invent the facts."""
    with pytest.raises(CallError, match="no expected answer"):
        drawn(said(("Krill.", "vital")), expected_answer=None)


def test_question_and_answer_reach_the_model_as_data(asker, query, wait):
    """An expected answer may hold lines that look like a prompt."""
    model = saying(said(("Krill.", "vital")))
    asked = query(expected_answer='krill"\nfacts: []\n$marker')

    wait(with_facts(asked, asker("extract_facts", model)))

    user = model.asked[0].messages[1].content
    assert datum(user, "question") == "What do whales eat?"
    assert datum(user, "expected answer") == asked.expected_answer
    assert "q1" not in "".join(turn.content for turn in model.asked[0].messages)


def test_one_query_whose_facts_fail_stops_no_other(asker, query, wait):
    """It is left without facts, and its failure says why."""
    good, bad = said(("Krill.", "vital")), "I'm sorry, I can't help with that."
    model = ScriptedModel([ChatReply(good), ChatReply(bad)])
    queries = [query(query_id=name, expected_answer="krill") for name in ("q1", "q2")]
    kept = []

    wait(draw_facts(queries, asker("extract_facts", model), Workers(1, silent), keep=kept.append))

    [collected] = kept
    assert [item.query_id for item in collected.results] == ["q1"]
    [failure] = collected.failures
    assert (failure.what, failure.key, failure.kind) == ("facts", "q2", "refused")


def test_a_query_that_is_made_anew_keeps_its_facts(query):
    """Generating or importing again must not undo what was drawn, or edited."""
    by = Provenance(kind="llm", model="m")
    of = digest_of("krill")
    old = query(expected_answer="krill", facts=(FACT,), facts_by=by, facts_of=of)

    [kept] = keeping_facts([query(expected_answer="krill", difficulty="easy")], [old])

    assert (kept.facts, kept.facts_by, kept.facts_of) == ((FACT,), by, of)
    assert kept.difficulty == "easy"


@pytest.mark.parametrize(
    "changes",
    [
        {"expected_answer": "squid"},
        {"expected_answer": "krill", "query_id": "q2"},
        {"expected_answer": "krill", "facts": (Fact(fact_id="a", text="Own."),)},
    ],
)
def test_another_answer_keeps_no_facts(query, changes):
    """Facts of an old answer would grade by what is no longer true."""
    new = query(**changes)

    assert keeping_facts([new], [query(expected_answer="krill", facts=(FACT,))]) == [new]


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [
        ({"facts_by": BY, "facts_of": digest_of("squid")}, True),
        ({"facts_by": BY, "facts_of": digest_of("krill")}, False),
        ({"facts_by": BY}, False),
        ({"facts_of": digest_of("squid")}, False),
    ],
)
def test_facts_that_were_drawn_from_another_answer_are_drawn_anew(query, changes, lacks):
    """An expected answer that was mended must not be graded by the facts of the wrong one."""
    assert lacks_facts(query(expected_answer="krill", facts=(FACT,), **changes)) is lacks


PRICE = "What is known of the Alpha?"
EXPECTED = "The Alpha costs 40 euros. It weighs 7 kg."


@pytest.fixture
def broken(query):
    """Check one fact against an expected answer."""

    def go(statement, expected=EXPECTED, question=PRICE):
        fact = StatedFact(statement=statement, importance="vital")
        return broken_rule([fact], query(question, expected_answer=expected))

    return go


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("The Alpha costs 99 euros.", "has the number 99"),
        ("The Alpha costs 4 euros.", "has the number 4"),
        ("Gold is heavy and Mars is red.", "shares no word"),
        ("what is known of the Alpha", "is the question"),
    ],
)
def test_what_the_expected_answer_does_not_say_is_no_fact(broken, statement, message):
    """Every answer of every system would be graded by it."""
    assert message in broken(statement)


@pytest.mark.parametrize(
    ("statement", "expected", "question"),
    [
        ("The Alpha costs 40 euros.", EXPECTED, PRICE),
        ("The Alpha weighs seven kilograms.", EXPECTED, PRICE),
        ("The Alpha weighs 7 kg.", "Seven kg.", PRICE),
        ("It costs 1000 euros.", "1,000 euros", PRICE),
        ("Es kostet 2,50 Euro.", "2.5 Euro", "Was kostet es?"),
        ("It began on 1 March 2024.", "2024-03-01", "When did it begin?"),
        ("Model 3 costs 40 euros.", "40 euros", "What does model 3 cost?"),
        ("The Alpha ships to Spain.", "Yes.", "Does the Alpha ship to Spain?"),
        ("The Alpha ships to Spain.", "It does.", "Does the Alpha ship to Spain?"),
        ("Der Preis wird erstattet.", "Erstattung", "Was geschieht?"),
        (
            "The price is 40 euros.",
            "\u4ef7\u683c\u662f40\u6b27\u5143\u3002",
            "\u591a\u5c11\u94b1\uff1f",
        ),
        ("The price is low.", "\u4ef7\u683c\u5f88\u4f4e\u3002", "\u591a\u5c11\u94b1\uff1f"),
        ("What is known of the Alpha?", "What is known of the Alpha?", PRICE),
    ],
)
def test_what_it_says_in_other_words_is_a_fact(broken, statement, expected, question):
    """A right list that is refused costs a call, and perhaps the query."""
    assert broken(statement, expected, question) is None
