import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.stages.ground.citations import read_marks

IDS = ("c1", "c2", "c12")
HEX = ("9f3ab2c1", "00aa11bb")


def cited(answer, ids=IDS):
    """Return (sentence, names, whether there) of each mark."""
    found = read_marks(answer, ids)
    return [
        (
            found.text[mark.scope.start : mark.scope.end],
            *((ref.name, bool(ref.places)) for ref in mark.refs),
        )
        for mark in found.marks
    ]


@pytest.mark.parametrize(
    ("answer", "refs"),
    [
        ("So [c12].", [("c12", True)]),
        ("So [C12].", [("c12", True)]),
        ("So [3].", [("c12", True)]),
        ("So [1, 3].", [("c1", True), ("c12", True)]),
        ("So [c1; c2].", [("c1", True), ("c2", True)]),
        ("So [1-3].", [("c1", True), ("c2", True), ("c12", True)]),
        ("So [^2].", [("c2", True)]),
        ("So [[2]](#2).", [("c2", True)]),
        ("So [2](https://example.org/2).", [("c2", True)]),
        ("So [source: c2].", [("c2", True)]),
        ("So [Doc 2].", [("c2", True)]),
        ("So (source: c2).", [("c2", True)]),
        ("So (Sources: c2 and 1).", [("c2", True), ("c1", True)]),
        ("So (source c2).", [("c2", True)]),
        ("So\u30102\u2020returns.md\u3011.", [("c2", True)]),
        ("So\u30107:0\u2020c12\u3011.", [("c12", True)]),
        ("So<sup>2</sup>.", [("c2", True)]),
        ("So.\u00b2", [("c2", True)]),
        ("So [9].", [("9", False)]),
        ("So [0].", [("0", False)]),
        ("So [c99].", [("c99", False)]),
        ("So [1, 9].", [("c1", True), ("9", False)]),
        ("So (source: c99).", [("c99", False)]),
    ],
)
def test_marks_of_all_kinds_are_resolved(answer, refs):
    """Each system cites in its own way; what leads nowhere is an invention and has to show."""
    assert cited(answer) == [("So.", *refs)]


@pytest.mark.parametrize(
    "answer",
    [
        "He said [sic] so.",
        "In [2013] it rained.",
        "Read [the manual](https://example.org).",
        "Take the area in m\u00b2 or m\u00b3.",
        "Call `items[1]` first.",
        "```\nitems[1]\n```",
        "Water [H2O] boils.",
        "Tasks: [ ] one, [x] two.",
        "It rained (see the source of the river).",
        "As known (source: World Health Organization).",
        "Call items[0] first.",
        "Then x[1] is next.",
        "It is x[1].",
        "Take items[c99].",
        "The range is [1, 2].",
        "Numbers between [1, 2] do.",
        "It lies in [0, 1].",
        "So a = [1, 2].",
    ],
)
def test_other_brackets_are_no_citations(answer):
    """A year or a link counted as an invented source would blame the system for nothing."""
    found = read_marks(answer, IDS)

    assert (found.text, found.marks) == (answer, ())


@pytest.mark.parametrize(
    ("answer", "words", "refs"),
    [
        ("Blue whales eat krill[1][3].", "Blue whales eat krill      .", ["c1", "c12"]),
        ("They eat krill[9].", "They eat krill   .", ["9"]),
        ("See [2] for more.", "See     for more.", ["c2"]),
        ("It has a long range [1, 2].", "It has a long range       .", ["c1", "c2"]),
    ],
)
def test_what_may_be_no_mark_is_counted_and_left_in_the_text(answer, words, refs):
    """Cut out, it would leave a sentence that the system did not write."""
    found = read_marks(answer, IDS)

    assert (found.text, found.words) == (answer, words)
    assert [ref.name for mark in found.marks for ref in mark.refs] == refs


def test_marks_behind_words_of_scripts_without_blanks_are_marks():
    """There every mark stands right behind a letter."""
    found = read_marks("价格是40欧元[1]。三天[2]内发货。", IDS)

    assert found.text == "价格是40欧元。三天内发货。"
    assert [ref.name for mark in found.marks for ref in mark.refs] == ["c1", "c2"]


@pytest.mark.parametrize("ids", [("1", "2"), ("7067031",), ("1000", "1001")])
def test_a_year_is_no_invented_source(ids):
    """Passages without ids are named by their places, and some collections by numbers."""
    assert read_marks("It rained [2024].", ids).marks == ()


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("So [9f3ab2c1].", ("9f3ab2c1", True)),
        ("So [deadbee1].", ("deadbee1", False)),
    ],
)
def test_ids_made_of_digests_are_known_by_their_make(answer, name):
    """An invented digest looks like the real ones."""
    assert cited(answer, HEX) == [("So.", name)]


def test_a_long_number_is_an_id_where_ids_are_numbers():
    """Collections such as MS MARCO number their passages."""
    assert cited("So [7067032]. Or [1].", ("7067031", "5")) == [
        ("So.", ("7067032", False)),
        ("Or.", ("7067031", True)),
    ]


def test_an_id_goes_before_a_place():
    """With chunks named 3 and 1, [1] is the chunk of that name."""
    found = read_marks("So [1].", ("3", "1"))

    assert found.marks[0].refs[0].places == {1}


def test_a_document_stands_for_its_chunks():
    """Many systems cite the page and not the passage."""
    found = read_marks("So [returns.md].", ("returns.md#1", "fees.md#1", "returns.md#2"))

    assert found.marks[0].refs[0].places == {0, 2}


@pytest.mark.parametrize(
    ("answer", "text", "sentences"),
    [
        ("It rains [1]. It snows [2].", "It rains. It snows.", ["It rains.", "It snows."]),
        ("It rains. [1] It snows. [2]", "It rains. It snows.", ["It rains.", "It snows."]),
        ("It rains.[1] It snows.[2]", "It rains. It snows.", ["It rains.", "It snows."]),
        ("[1] It rains.\n[2] It snows.", " It rains.\n It snows.", ["It rains.", "It snows."]),
        ("It rains.\n[1]", "It rains.\n", ["It rains."]),
        ("It rains [1], then snows [2].", "It rains, then snows.", ["It rains, then snows."] * 2),
        ("[1]", "", [""]),
    ],
)
def test_a_mark_belongs_to_the_sentence_it_stands_by(answer, text, sentences):
    """A mark that is counted for the next sentence makes two wrong findings."""
    assert read_marks(answer, IDS).text == text
    assert [sentence for sentence, *_ in cited(answer)] == sentences


@pytest.mark.parametrize(
    "line",
    ["Sources: [1], [3]", "**Sources**: c1, c12", "- Source: c1; c12", "References: [c1][c12]"],
)
def test_a_line_of_sources_is_cited_for_the_whole_answer(line):
    """It says nothing by itself, and does not say which sentence it backs."""
    text = "It rains.\nIt snows.\n"

    assert read_marks(f"{text}{line}", IDS).text == text
    refs = {ref for _, *refs in cited(f"{text}{line}") for ref in refs}
    assert refs == {("c1", True), ("c12", True)}
    assert {sentence for sentence, *_ in cited(f"{text}{line}")} == {text}


def test_footnotes_say_what_their_numbers_stand_for():
    """Else number 1 would be taken for the first passage."""
    answer = "It rains [^1]. It snows [^2].\n\n[^1]: c12\n[^2]: c1, page 3\n"

    assert cited(answer) == [("It rains.", ("c12", True)), ("It snows.", ("c1", True))]
    assert read_marks(answer, IDS).text == "It rains. It snows.\n\n"


def test_a_footnote_that_is_only_an_address_is_no_statement():
    """A judge could not say which passage supports it."""
    answer = "It rains [1].\n[1]: https://example.org/rain\n[2]: It snows in the hills."

    assert cited(answer) == [
        ("It rains.", ("c1", True)),
        (": It snows in the hills.", ("c2", True)),
    ]


def test_hidden_characters_are_left_out():
    """The judge does not see them, and its claims are looked up in what it saw."""
    assert read_marks("So\x1b[1m \u202e[1].", IDS).text == "So[1m."


PIECES = [
    *"[]()^:,-`²\u3010\u3011\u2020",
    "c1",
    "9",
    ". ",
    "\n",
    " ",
    "Whales sing",
    "Sources: ",
    "1. ",
]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_answer_can_be_taken_apart(answer):
    """Systems under test write whatever they like, and a crash would cost the answer."""
    found = read_marks(answer, IDS)

    assert all(mark.refs for mark in found.marks)
    assert all(0 <= mark.scope.start <= mark.scope.end <= len(found.text) for mark in found.marks)
    assert len(found.text) <= len(answer)
