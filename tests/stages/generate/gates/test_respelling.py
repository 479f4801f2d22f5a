import pytest

from ragforge.stages.generate.gates.repeated_questions import Spellings


@pytest.fixture
def spellings():
    """Return the words of one question."""
    found = Spellings()
    found.add("How does the connection handle its default timeout, contract and upload?")
    return found


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("the defualt", "the default"),
        ("Conection", "connection"),
        ("connnection", "connection"),
        ("timeot", "timeout"),
        ("timeeout", "timeout"),
    ],
)
def test_a_slip_is_read_as_the_word_that_was_seen(spellings, written, meant):
    """A duplicate with a typing error counts twice in every mean too."""
    assert spellings.respelt(written) == meant


@pytest.mark.parametrize(
    "written",
    ["contact", "unload", "timeouts", "a_timeot", "timeot.x", "Default", "http", "", "efault"],
)
def test_other_words_stay_as_they_are(spellings, written):
    """One letter makes another word, and names are spelt as they are."""
    assert spellings.respelt(written) == written
