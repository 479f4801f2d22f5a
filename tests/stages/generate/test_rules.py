import pytest

from ragforge.records import Chunk, Slot
from ragforge.stages.generate.candidates import Anchored, Brief
from ragforge.stages.generate.gates.checking import check
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked
from ragforge.stages.generate.rules import RuleQueryWriter, draw

SENTENCE = "Every thread takes the lock before it writes."
DEFINITION = "A mutex is a lock that one thread holds at a time."
TEXT = f"""# Locks

{DEFINITION} It protects shared state from threads.

- The lock has to be released by the thread that took it.

```python
Lock is a keyword that nobody must quote here.
```

| Table is | a thing that nobody quotes |
"""


def chunk(text=TEXT, *headings):
    return Chunk(chunk_id="c", doc_id="d", text=text, heading_path=headings)


def test_a_definition_becomes_a_question():
    """It is the one kind of sentence whose question is certain."""
    [found] = draw(chunk(), "en")

    assert (found.question, found.answer) == ("What is a mutex?", DEFINITION)
    assert (found.type, found.difficulty) == ("definition", "easy")


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("Mutexes are the oldest locks of all in use.", "What are Mutexes?"),
        ("RAII means a pattern that frees things.", "What does RAII mean?"),
        ("The term job refers to a unit of work done.", "What does the term job mean?"),
    ],
)
def test_definitions_come_in_several_words(sentence, question):
    """The demo should find what a reader would."""
    assert next(draw(chunk(sentence), "en")).question == question


@pytest.mark.parametrize(
    "sentence",
    [
        "This is a sentence about something said before.",
        "It is the largest of all the animals there.",
        "Locks protect shared state from many threads.",
        "A lock is red and nothing more than that.",
        "# A lock is a heading that is no sentence.",
        "| A lock is | a cell of a table here. |",
    ],
)
def test_what_defines_nothing_gives_no_question(sentence):
    """`What is This?` is no query."""
    assert list(draw(chunk(sentence), "en")) == []


@pytest.mark.parametrize(
    ("headings", "question"),
    [
        (("Locks",), "What should I know about locks?"),
        (("How to lock a thread",), "How do I lock a thread?"),
        (("Guide", "How to lock a thread"), "How do I lock a thread (Guide)?"),
        (("Guide", "Why lock?"), "Why lock?"),
        (("Guide", "`POSIX` **locks**"), "What should I know about POSIX locks (Guide)?"),
    ],
)
def test_a_heading_becomes_a_question(headings, question):
    """A heading says what its section answers."""
    found = list(draw(chunk(SENTENCE, *headings), "en"))

    assert [each.question for each in found if each.type != "keyword"] == [question]


def test_a_definition_names_its_document():
    """`What is a job?` has another answer in every manual."""
    found = next(draw(chunk(DEFINITION, "POSIX threads"), "en"))

    assert found.question == "What is a mutex (POSIX threads)?"


def test_a_heading_becomes_search_words():
    """People type them, and no rule of grammar is needed to find them."""
    found = list(draw(chunk(SENTENCE, "Threads", "How to lock a `POSIX` Thread"), "en"))

    assert [(each.question, each.type) for each in found] == [
        ("How do I lock a POSIX Thread?", "procedure"),
        ("threads lock POSIX thread", "keyword"),
    ]


def test_the_answer_has_the_address_that_the_text_gives():
    """It may be all that was asked for."""
    text = "Threads of each pool send their state to `http://a.org` or to [the lock](b.md)."

    found = next(draw(chunk(text, "Locks"), "en"))

    assert found.answer == "Threads of each pool send their state to `http://a.org` or to the lock."


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("Who's this for?", "Who's this for (Threads)?"),
        ("3. Locks of threads", "What should I know about locks of threads?"),
    ],
)
def test_a_heading_stands_without_what_is_around_it(heading, question):
    """Nobody who asks sees the page, or its numbers."""
    assert next(draw(chunk(SENTENCE, "Threads", heading), "en")).question == question


@pytest.mark.parametrize("headings", [("Locks",), ("The", "Locks"), ("Locks", "locks")])
def test_one_word_is_no_query(headings):
    """It finds half of the corpus, and nobody knows what for."""
    assert [each.type for each in draw(chunk(SENTENCE, *headings), "en")] == ["fact"]


def test_other_languages_get_no_english_questions():
    """They would be labelled as what they are not; headings are of the text's own language."""
    source = chunk("Jede Sperre ist frei, bevor ein Thread schreibt.", "Threads", "Sperren setzen")

    assert [each.question for each in draw(source, "de-AT")] == ["threads sperren setzen"]


def test_a_question_of_the_text_is_kept_in_any_language():
    """It is a user's question already."""
    source = chunk("Jeder Thread nimmt die Sperre, ehe er schreibt.", "Wozu eine Sperre?")

    assert next(draw(source, "de")).question == "Wozu eine Sperre?"


def test_quotes_are_verbatim_and_no_question_is_a_copied_sentence():
    """Copied questions are found by any retriever and tell nothing."""
    source = chunk(TEXT, "Threads", "Shared state")

    for candidate in draw(source, "en"):
        assert candidate.quotes[0].text in source.text
        assert candidate.question.rstrip("?") not in source.text


@pytest.mark.parametrize(
    "source",
    [
        chunk(TEXT, "Threads", "Shared state"),
        chunk(TEXT, "Threads", "How to share state"),
        chunk("锁保护共享状态。每个线程在写入之前都会获取锁。", "线程 同步", "锁 使用"),
    ],
)
def test_candidates_pass_the_gates(source, wait):
    """An offline set is checked like any other."""
    language = "en" if source.text.isascii() else "zh"
    slot = Slot(
        slot_id="000001-0",
        type="keyword",
        difficulty="easy",
        persona="newcomer",
        language=language,
        stratum="",
        chunk_ids=("c",),
        doc_ids=("d",),
    )
    brief = Brief(slot, (source,))
    candidates = wait(RuleQueryWriter(7).write(brief, []))

    found = [check(each, brief, QuestionsAsked(), at) for at, each in enumerate(candidates)]

    assert {type(each) for each in found} == {Anchored}


@pytest.fixture
def write(wait):
    """Write queries about texts under one heading."""

    def go(*texts, asked=(), **changes):
        chunks = tuple(chunk(text, "Threads", "Shared state") for text in texts)
        slot = Slot(
            slot_id="000001-0",
            type="fact",
            difficulty="medium",
            persona="newcomer",
            language="en",
            stratum="",
            chunk_ids=("c",) * len(texts),
            doc_ids=("d",) * len(texts),
        )
        brief = Brief(slot.model_copy(update=changes), chunks)
        return wait(RuleQueryWriter(7).write(brief, asked))

    return go


@pytest.mark.parametrize(
    ("wanted", "types"),
    [
        ("fact", ["fact", "definition", "keyword"]),
        ("definition", ["definition", "fact", "keyword"]),
        ("keyword", ["keyword", "definition", "fact"]),
        ("why", ["definition", "fact", "keyword"]),
    ],
)
def test_the_wanted_type_comes_first(write, wanted, types):
    """Where a text gives none of it, what it does give is declared for what it is."""
    assert [each.type for each in write(TEXT, type=wanted)] == types


@pytest.mark.parametrize(("difficulty", "first"), [("easy", "fact"), ("medium", "procedure")])
def test_the_wanted_difficulty_goes_before_the_other(write, difficulty, first):
    """Among what is not of the wanted type it is all there is to go by."""
    text = "To lock a thread, call the lock. The default timeout of locks is nine seconds."

    assert write(text, type="why", difficulty=difficulty)[0].type == first


def test_what_is_asked_already_is_left_out(write):
    """A further slot asks something else, until there is nothing more."""
    first, *others = write(TEXT)

    assert write(TEXT, asked=[first.question.upper()]) == others


def test_a_text_without_statements_gives_nothing(write):
    """A table is asked about by models only."""
    assert write("| a | b |\n|---|---|\n| 1 | 2 |") == []


def test_quotes_name_their_passage(write):
    """A slot of two passages is written about all the same."""
    found = write("| a | b |", SENTENCE)

    assert {quote.passage for each in found for quote in each.quotes} == {1}


def test_the_lineage_says_that_rules_wrote_it(write):
    """Scores on rule-made queries flatter lexical retrievers; a report has to know."""
    lineage = write(TEXT)[0].lineage

    assert (lineage.kind, lineage.model, lineage.seed, lineage.slot) == (
        "baseline",
        "offline-rules-4",
        7,
        "000001-0",
    )


def test_a_section_within_a_chunk_is_asked_about_with_its_own_answer():
    """A short page is one chunk; its title is no question for all that it says."""
    text = (
        "# TLS\n\nServers read the certificate once at the start.\n\n## Rotate certificates\n\n"
        "This is easy. The job fetches a new certificate thirty days before the old one ends.\n"
    )
    asked = {each.question: each.answer for each in draw(chunk(text, "TLS"), "en")}

    assert asked["How do I rotate certificates (TLS)?"].startswith("The job fetches")
    assert asked["What should I know about TLS?"].startswith("Servers read")


def test_sentence_that_points_back_answers_nothing():
    """It is understood with the one before it alone."""
    text = "That line shows the URL where your app is being served."

    assert list(draw(chunk(text, "First Steps"), "en")) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "For all names and their values, see the reference of the client.",
        "`def close(self, timeout_s: float) -> None`",
    ],
)
def test_code_and_what_says_where_to_read_on_answer_nothing(sentence):
    """A proof of nothing is found by every search for its words."""
    assert list(draw(chunk(sentence, "Clients", "Closing clients"), "en")) == []


def test_a_sentence_is_asked_by_its_form():
    """`How do I disable retries?` is what a user asks; the heading only says that it is told."""
    found = next(draw(chunk("To disable retries, set their number to zero.", "Retries"), "en"))

    assert (found.question, found.type) == ("How do I disable retries?", "procedure")
    assert found.quotes[0].text == "To disable retries, set their number to zero."
