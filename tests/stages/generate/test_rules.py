import pytest

from ragforge.records import Chunk
from ragforge.stages.generate.gates import Passed, check
from ragforge.stages.generate.plan import Seed
from ragforge.stages.generate.rules import RuleQueryWriter, draw

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
    [found] = draw(chunk())

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
    assert next(draw(chunk(sentence))).question == question


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
    assert list(draw(chunk(sentence))) == []


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
    found = list(draw(chunk("Every thread takes the lock before it writes.", *headings)))

    assert [candidate.question for candidate in found] == [question]


def test_a_definition_names_its_document():
    """`What is a job?` has another answer in every manual."""
    found = next(draw(chunk(DEFINITION, "POSIX threads")))

    assert found.question == "What is a mutex (POSIX threads)?"


def test_every_candidate_passes_the_gates():
    """An offline set is checked like any other."""
    source = chunk(TEXT, "Threads", "Shared state")

    found = [check(candidate, source, set()) for candidate in draw(source)]

    assert [type(each) for each in found] == [Passed, Passed]


def test_evidence_is_verbatim_and_no_question_is_a_copied_sentence():
    """Copied questions are found by any retriever and tell nothing."""
    source = chunk(TEXT, "Threads", "Shared state")

    for candidate in draw(source):
        assert candidate.evidence in source.text
        assert candidate.question.rstrip("?") not in source.text


def test_rounds_go_through_the_candidates_of_a_chunk(wait):
    """A further round asks something else, until there is nothing more."""
    source = chunk(TEXT, "Threads", "Shared state")
    writer = RuleQueryWriter()

    found = [wait(writer.write(Seed(source, number), [])) for number in range(3)]

    assert [candidate and candidate.type for candidate in found] == ["definition", "fact", None]
