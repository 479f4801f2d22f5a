import pytest

from ragforge.stages.ground.parts import is_statement, left_out, spans

TEXT = "Blue whales eat krill and sing. Do they? It is so."


def cut(text):
    return [text[part.start : part.end] for part in spans(text)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It rains. It snows!", ["It rains.", "It snows!"]),
        ("So. So.\nSo.", ["So.", "So.", "So."]),
        ("1. It rains.\n2. It snows.", ["It rains.", "It snows."]),
        ("a) It rains.\n\nb) It snows.", ["a) It rains.", "b) It snows."]),
        (
            "Dr. Ann Lee of the U.S. Navy saw it. I did not.",
            ["Dr. Ann Lee of the U.S. Navy saw it.", "I did not."],
        ),
        ("By Lee et al.\nIt rains.", ["By Lee et al.", "It rains."]),
        ("42.", ["42."]),
        ("价格是40欧元。三天内发货。", ["价格是40欧元。", "三天内发货。"]),
        ("「そうです。」と言った。以上。", ["「そうです。」と言った。", "以上。"]),
        ("It costs 40 euros.It ships.", ["It costs 40 euros.", "It ships."]),
        ("It costs 40.It ships!So it is?Yes", ["It costs 40.", "It ships!", "So it is?", "Yes"]),
        ("**It rains.** It snows.", ["**It rains.**", "It snows."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("", []),
    ],
)
def test_sentences_and_lines_are_parts(text, parts):
    """What is a sentence decides what a citation is for, and what a judge has to account for."""
    assert cut(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "It is 3.5 or 1.A here",
        "By Dr.Lee of the U.S.Navy et al.Then",
        "See Report.Final.docx and README.MD",
        "Use ASP.NET, java.lang.String, pandas.DataFrame and Foo.Call(x)",
        "Go to https://Example.Com/It.Is or www.Example.Com",
        'He said "no." and left',
        "e.g.This",
    ],
)
def test_a_stop_within_a_name_or_number_ends_nothing(text):
    """A judge would be asked to account for halves of names."""
    assert cut(text) == [text]


def test_sentences_that_come_twice_have_their_own_places():
    """Their offsets decide what a citation is for."""
    assert [(part.start, part.end) for part in spans("So. So.\nSo.")] == [(0, 3), (4, 7), (8, 11)]


def test_questions_and_empty_words_state_nothing():
    """A judge that leaves them out has passed over no claim."""
    assert [is_statement(part, TEXT) for part in spans(TEXT)] == [True, False, False]
    assert not is_statement(spans("**Shall I go on?**")[0], "**Shall I go on?**")


@pytest.mark.parametrize(
    ("words", "is_left_out"),
    [
        ("", True),
        ("sing", True),
        ("Blue whales", True),
        ("whales eat krill", False),
        ("Blue whales eat krill and sing.", False),
    ],
)
def test_a_sentence_is_told_where_most_of_its_words_are(words, is_left_out):
    """One word of it would be an easy way to drop the rest."""
    first = spans(TEXT)[0]
    told = [type(first)(TEXT.index(words), TEXT.index(words) + len(words))]

    assert left_out(first, TEXT, told) == is_left_out
