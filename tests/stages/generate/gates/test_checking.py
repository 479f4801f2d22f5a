import dataclasses

import planted
import pytest

from ragforge.records import Evidence
from ragforge.stages.generate.candidates import Anchored, Quoted, Rejection
from ragforge.stages.generate.gates.checking import check
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked

CODES = {
    "schema",
    "question_length",
    "answer_length",
    "hidden_characters",
    "preamble",
    "question_form",
    "no_answer",
    "answer_not_absent",
    "language",
    "deictic",
    "order_followed",
    "quote_empty",
    "quote_no_prose",
    "quote_too_long",
    "quote_not_found",
    "quote_too_short",
    "answer_in_question",
    "copied",
    "duplicate",
    "near_duplicate",
}


def test_each_code_is_planted():
    """A gate that nothing is planted for may never have caught anything."""
    assert {one.code for one in planted.planted()} == CODES


HONEST = {one.what: one for one in planted.honest()}
FACT = HONEST["fact"]


def named(rows):
    return pytest.mark.parametrize("one", rows, ids=lambda one: one.what)


@named(planted.planted())
def test_every_planted_defect_is_caught_by_its_gate(one):
    """The codes tell a user what his model does wrong, so the wrong code misleads."""
    assert planted.verdict(one) == one.code


@named(planted.honest())
def test_honest_candidates_pass(one):
    """A gate that stops good items skews the set towards what its patterns know."""
    assert planted.verdict(one) == ""


@named(planted.canaries())
def test_what_a_model_wrote_that_obeyed_its_passage_is_stopped(one):
    """Orders in a document must not change the set beyond the item's own text."""
    assert planted.verdict(one) == one.code


def anchor(text, quotes, start=0, end=0):
    [chunk] = FACT.brief.chunks
    chunk = chunk.model_copy(update={"text": text, "start": start, "end": end})
    brief = dataclasses.replace(FACT.brief, chunks=(chunk,))
    candidate = dataclasses.replace(FACT.candidate, quotes=tuple(map(Quoted, quotes)))
    return check(candidate, brief, QuestionsAsked(), 2)


def test_evidence_has_offsets_in_the_document_and_what_stands_around_it():
    """That finds it again when the corpus is cut anew, and tells equal quotes apart."""
    text = "Sockets are cheap to keep, but not free. They are closed after five seconds. So it is."
    found = anchor(text, ["closed after five seconds"], start=100, end=100 + len(text))

    assert isinstance(found, Anchored)
    assert found.place == 2
    assert found.evidence == (
        Evidence(
            doc_id="d0",
            chunk_id="c0",
            quote="closed after five seconds",
            start=100 + text.index("closed"),
            end=100 + text.index("closed") + 25,
            prefix="to keep, but not free. They are ",
            suffix=". So it is.",
        ),
    )


def test_evidence_is_kept_as_it_stands_in_the_chunk():
    """A quote with other white space would not be found verbatim later."""
    found = anchor("It is closed\nafter  five seconds.", ["closed after five seconds"])

    assert found.evidence[0].quote == "closed\nafter  five seconds"


def test_evidence_of_a_chunk_without_offsets_has_none():
    """0 would be a place, and the wrong one."""
    [evidence] = anchor("It is closed after five seconds.", ["closed after five seconds"]).evidence

    assert (evidence.start, evidence.end) == (None, None)


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("It is closed after 5005 attempts.", "It is closed after 500"),
        ("It is closed after 5.5 seconds.", "It is closed after 5"),
        ("It is closed after -5 seconds.", "5 seconds"),
        ("It is unlimited for paying users.", "limited for paying users"),
    ],
)
def test_a_quote_that_ends_within_a_word_or_number_is_none(text, quote):
    """It says something else than the document, and a checker sees the quote alone."""
    assert anchor(text, [quote]) == Rejection(
        "quote_not_found", f"{quote!r} ends within a word or number"
    )


def test_of_several_places_evidence_is_the_one_that_cuts_nothing():
    """The first is of another number."""
    text = "A pool closes after 500 attempts. A client closes after 50 attempts, or so."

    [evidence] = anchor(text, ["closes after 50"]).evidence

    assert evidence.prefix.endswith("A client ")


def test_hops_are_counted_by_passage():
    """Quotes of different hops are all needed; two of one passage are one hop."""
    one = HONEST["multi-hop across"]
    found = check(one.candidate, one.brief, QuestionsAsked(), 0)

    assert [evidence.hop for evidence in found.evidence] == [1, 2]


def test_a_quote_of_the_other_passage_is_named_as_such():
    """The reason tells a mixed-up index from a made-up quote."""
    one = HONEST["multi-hop across"]
    swapped = dataclasses.replace(
        one.candidate, quotes=(one.candidate.quotes[0], Quoted("socksio package", 0))
    )
    brief = dataclasses.replace(one.brief, slot=one.brief.slot.model_copy(update={"type": "fact"}))
    swapped = dataclasses.replace(swapped, type="comparison")

    assert check(swapped, brief, QuestionsAsked(), 0) == Rejection(
        "quote_not_found", "'socksio package' stands in passage 2, not in 1"
    )


def test_a_question_that_is_taken_says_by_which():
    """Who reads the rejections wants to see the other one."""
    taken = QuestionsAsked([("q_1", FACT.candidate.question.upper())])

    assert check(FACT.candidate, FACT.brief, taken, 0) == Rejection("duplicate", "of q_1")


def test_a_follow_up_clashes_by_what_it_stands_for():
    """ "And why?" is no duplicate of another "And why?"."""
    one = HONEST["a short follow-up"]

    assert isinstance(
        check(one.candidate, one.brief, QuestionsAsked([("q", "And why?")]), 0), Anchored
    )
    assert check(
        one.candidate, one.brief, QuestionsAsked([("q", one.candidate.standalone)]), 0
    ) == (Rejection("duplicate", "of q"))


@pytest.mark.parametrize(
    "text",
    ["a" * 100_000, '"' * 99_999, "based on the " * 8_000, "\n" * 100_000, "ignore all " * 9_000],
    ids=["a letter", "quotation marks", "words", "line ends", "half an order"],
)
@pytest.mark.parametrize("part", ["question", "answer"])
def test_a_part_of_100_kb_is_turned_away(part, text):
    """A pattern that looks back over all of it would hold the run for minutes."""
    found = check(
        dataclasses.replace(FACT.candidate, **{part: text}), FACT.brief, QuestionsAsked(), 0
    )

    assert found.code in ("schema", "question_length", "answer_length")


def test_quotes_that_overlap_are_one_piece_of_evidence():
    """Two rows for one stretch of text would count its chunk twice."""
    found = anchor(
        "Sockets are cheap. An idle one is closed after five seconds by the pool of its client.",
        [
            "is closed after five seconds",
            "An idle one is closed",
            "of its client",
            "is closed after",
        ],
    )

    assert [evidence.quote for evidence in found.evidence] == [
        "An idle one is closed after five seconds",
        "of its client",
    ]


TABLE = (
    "# Ports\n\n| port | name |\n|------|------|\n| 443 | HTTPS |\n\n- five\n- six or seven more\n"
)


@pytest.mark.parametrize("quote", ["five", "- five", "six or seven more"])
def test_a_short_line_proves_what_the_answer_says(quote):
    """Tables and lists say much in one word; their cells are all there is to quote."""
    assert isinstance(anchor(TABLE, [quote]), Anchored)


@pytest.mark.parametrize("quote", ["443", "HTTPS", "# Ports", "Ports", "six"])
def test_a_word_that_the_answer_does_not_say_proves_nothing(quote):
    """It only names where somebody might look."""
    assert anchor(TABLE, [quote]).code == "quote_too_short"


def test_a_section_title_without_a_mark_is_a_heading():
    """HTML loses its marks on the way to text."""
    [chunk] = FACT.brief.chunks
    text = "Idle time of sockets\nThey are closed after five seconds."
    chunk = chunk.model_copy(update={"text": text, "heading_path": ("Idle time of sockets",)})
    candidate = dataclasses.replace(FACT.candidate, quotes=(Quoted("Idle time of sockets"),))
    brief = dataclasses.replace(FACT.brief, chunks=(chunk,))

    assert check(candidate, brief, QuestionsAsked(), 0).code == "quote_too_short"


@pytest.mark.parametrize(
    ("text", "quote"),
    [("Ports", "Ports"), ("# Ports", "# Ports"), ("## 3. Ports", "Ports"), ("二字", "二字")],
)
def test_a_chunk_of_one_word_may_be_quoted(text, quote):
    """There is nothing else in it to quote."""
    assert isinstance(anchor(text, [quote]), Anchored)


@pytest.mark.parametrize(("end", "passes"), [("", False), (".", True)])
def test_a_line_below_a_sentence_does_not_make_it_a_heading(end, passes):
    """Authors part sections with a rule, and leave out the blank line."""
    line = f"The idle time of a socket{end}"

    assert isinstance(anchor(f"{line}\n---\nIt is short.", [line]), Anchored) is passes
