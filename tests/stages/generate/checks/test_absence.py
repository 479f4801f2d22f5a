import pytest
from checker import Checker, anchored, finding_none, shown, verdicts

from ragforge.errors import CallError, DataError
from ragforge.stages.generate.checks.absence import LONGEST, window

QUESTION = "How long is the read timeout of client 0?"
HIT = "The read timeout of a client is 7 seconds."


def unanswerable(**changes):
    return anchored(type="unanswerable", question=QUESTION, **changes)


def finding(words):
    def say(request):
        for each in shown(request, "passages"):
            if words in each["text"]:
                return {"id": each["id"], "quote": words, "found": "yes"}
        return finding_none(request)

    return say


def texts_shown(checker):
    [request] = [each for each in checker.model.asked if each.schema_name == "answer_search"]
    return [each["text"] for each in shown(request, "passages")]


def test_an_answer_in_the_corpus_stops_the_query():
    """Verified negatives are rare in the field, and many hold their answer."""
    checker = Checker({"answer_search": finding("7 seconds")}, {"hit": HIT}, {QUESTION: ["hit"]})

    checked = checker(unanswerable())

    assert checked.rejection.code == "unanswerable_fail"
    assert checked.rejection.reason == "chunk hit gives an answer: 7 seconds"


def test_what_nobody_finds_is_not_there():
    """As far as ten ranks and a reader can tell."""
    checker = Checker({}, {"hit": HIT}, {QUESTION: ["hit"]})

    assert checker(unanswerable()).passed


def test_source_neighbours_and_hits_are_looked_through():
    """The answer mostly stands a paragraph further down."""
    texts = {"hit": HIT, "before": "What was before.", "behind": "What is behind."}
    checker = Checker({}, texts, {QUESTION: ["hit", "c0-0"]})
    checker.neighbours = {"c0-0": ["before", "behind"]}
    checked = checker(unanswerable())

    source = "Before. The connect timeout is 5 seconds. Behind."
    assert checked.passed
    assert sorted(texts_shown(checker)) == sorted([source, *texts.values()])


def test_ten_ranks_are_looked_through():
    """More would be a longer prompt than small models read."""
    texts = {f"h{number}": f"Text number {number}." for number in range(30)}
    checker = Checker({}, texts, {QUESTION: list(texts)})
    checker(unanswerable())

    assert len(texts_shown(checker)) == 10 + 1


def test_texts_that_read_alike_are_shown_once():
    """Copies would push what is new out of sight."""
    checker = Checker({}, {"a": HIT, "b": f"{HIT}\u200b"}, {QUESTION: ["a", "b"]})
    checker(unanswerable())

    assert texts_shown(checker).count(HIT) == 1


def test_the_order_tells_nothing():
    """A reader stops at the first good thing, and the source would always come first."""
    texts = {f"h{number}": f"Text number {number}." for number in range(9)}
    checker = Checker({}, texts, {QUESTION: list(texts)})
    checker(unanswerable())

    found = texts_shown(checker)
    assert sorted(found)[1:] == sorted(texts.values())
    assert [each for each in found if each in texts.values()] != list(texts.values())


def test_ids_of_chunks_are_not_shown():
    """A file name such as faq/read-timeout.md is a hint."""
    checker = Checker({}, {"docs/read-timeout": HIT}, {QUESTION: ["docs/read-timeout"]})
    checker(unanswerable())

    assert "docs/read-timeout" not in checker.model.asked[1].messages[1].content


class Failing:
    """A retriever that raises."""

    def __init__(self, error):
        self.error = error

    async def retrieve(self, query, k):
        raise self.error


@pytest.mark.parametrize("error", [CallError("error", "no index"), ValueError("no index")])
def test_a_retriever_that_fails_leaves_it_unknown(error):
    """Where nothing was looked through, nothing was found."""
    checked = Checker(retriever=Failing(error))(unanswerable())

    assert verdicts(checked) == {"self_contained": "pass", "unanswerable": "unknown"}
    assert "no index" in checked.rejection.reason


def test_a_retriever_that_can_find_nothing_any_more_stops_the_run():
    """Every query would fail alike."""
    with pytest.raises(DataError, match="no index"):
        Checker(retriever=Failing(DataError("no index")))(unanswerable())


def test_a_chunk_without_a_text_leaves_it_unknown():
    """The answer may stand in what cannot be read."""
    checked = Checker({}, {}, {QUESTION: ["gone"]})(unanswerable())

    assert checked.rejection.code == "unanswerable_unknown"
    assert "'gone' has no text" in checked.rejection.reason


def test_blank_texts_leave_it_unknown():
    """No text, no verdict."""
    checked = Checker({}, {"c0-0": " "})(unanswerable())

    assert checked.rejection.code == "unanswerable_unknown"


def test_of_a_long_text_the_part_about_the_question_is_shown():
    """An answer behind the cut would make the question unanswerable."""
    text = f"{'Lorem ipsum dolor. ' * 200}{HIT}{' Amet sit elit.' * 300}"

    found = window(text, QUESTION)

    assert len(found) == LONGEST
    assert HIT in found
    assert found in text


@pytest.mark.parametrize("before", [0, 1, 999, 1000, 1990, 2000, 2500, 7990])
def test_the_part_is_found_wherever_it_stands(before):
    """At the seams of the parts that are compared too."""
    text = f"{'-' * before}{HIT}{'-' * (8000 - before)}"

    assert HIT in window(text, QUESTION)


@pytest.mark.parametrize("length", [0, 1, LONGEST, LONGEST + 1, 3 * LONGEST])
def test_a_window_is_never_longer_than_it_may_be(length):
    """What a prompt may hold is limited."""
    assert len(window("x" * length, QUESTION)) == min(length, LONGEST)


def test_of_equal_parts_the_first_is_shown():
    """The same corpus must give the same calls."""
    text = f"It begins. {'One line. ' * 1000}"

    assert window(text, QUESTION) == text[:LONGEST]
