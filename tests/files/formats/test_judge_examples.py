import json

import pytest

from ragforge.errors import DataError
from ragforge.files.formats.judge_examples import MOST, Example, load_examples

ROW = {
    "query_id": "q7",
    "query": "What is wax?",
    "text": "Wax is a solid fat.\nIt melts.",
    "grade": 3,
    "evidence": "Wax is a solid fat.",
    "reasoning": "defines it",
}
EXAMPLE = Example(
    query_id="q7",
    query="What is wax?",
    text="Wax is a solid fat.\nIt melts.",
    grade=3,
    evidence="Wax is a solid fat.",
    reasoning="defines it",
)


@pytest.fixture
def load(tmp_path):
    """Load examples from a file of some rows."""

    def go(*rows, name="shots.jsonl"):
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return load_examples(path)

    return go


def test_an_example_is_read_whole(load):
    """Each of its fields is shown to the judge."""
    assert load(ROW) == (EXAMPLE,)


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"query_id": None}, "query_id", ""),
        ({"grade": 2}, "contains_answer", True),
        ({"contains_answer": True}, "contains_answer", True),
        ({"grade": 1, "evidence": ""}, "contains_answer", False),
        ({"grade": 1, "evidence": None}, "evidence", ""),
        ({"grade": 1, "evidence": "It melts."}, "evidence", "It melts."),
        ({"grade": 0, "evidence": "", "contains_answer": False}, "grade", 0),
        ({"evidence": "fat.\nIt melts."}, "evidence", "fat.\nIt melts."),
    ],
)
def test_what_a_reply_may_say_an_example_may_say(load, changes, field, value):
    """An example shows a reply that would be accepted, of any grade."""
    [example] = load({**ROW, **changes})

    assert getattr(example, field) == value


def test_the_text_may_be_called_passage(load):
    """The prompt calls it so."""
    row = {name: value for name, value in ROW.items() if name != "text"}

    assert load({**row, "passage": ROW["text"]}) == (EXAMPLE,)


def test_examples_keep_their_order(load):
    """The last one is nearest to the question, and weighs most."""
    grades = [example.grade for example in load(ROW, {**ROW, "text": "Wax is a solid fat."})]
    texts = [example.text for example in load({**ROW, "text": "Wax is a solid fat. B"}, ROW)]

    assert grades == [3, 3]
    assert texts == ["Wax is a solid fat. B", ROW["text"]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grade": 4}, "grade: expected 0, 1, 2 or 3, got 4"),
        ({"grade": True}, "grade: expected 0, 1, 2 or 3, got True"),
        ({"grade": 2.5}, "grade: expected 0, 1, 2 or 3, got 2.5"),
        ({"grade": None}, "grade: expected 0, 1, 2 or 3, got None"),
        ({"grade": 0}, 'evidence: expected "" for grade 0, got'),
        ({"evidence": ""}, "evidence: expected words of the text for grade 3, got ''"),
        ({"evidence": "wax is"}, "evidence: expected words that stand in the text exactly so, got"),
        ({"evidence": "fat. It melts."}, "evidence: expected words that stand in the text exactly"),
        (
            {"grade": 1, "evidence": "zebra"},
            "evidence: expected words that stand in the text exactly",
        ),
        ({"contains_answer": False}, "contains_answer: expected true for grade 3, got False"),
        ({"contains_answer": 1}, "contains_answer: expected true for grade 3, got 1"),
        ({"reasoning": ""}, "reasoning: expected text, got ''"),
        ({"query": " "}, "query: expected text, got ' '"),
        ({"text": 7}, "text: expected text, got 7"),
    ],
)
def test_an_example_that_breaks_a_rule_is_named_by_its_line(load, changes, message):
    """A judge that is shown a wrong reply learns to give wrong replies."""
    with pytest.raises(DataError, match=rf"shots\.jsonl:2: {message}"):
        load({**ROW, "query": "Other?"}, {**ROW, **changes})


@pytest.mark.parametrize("field", ["query", "text", "grade", "reasoning"])
def test_an_example_that_lacks_a_field_is_named_by_its_line(load, field):
    """What is missing is told with the names it may have."""
    row = {name: value for name, value in ROW.items() if name != field}

    with pytest.raises(DataError, match=rf"shots\.jsonl:1: {field}: expected one of {field}"):
        load(row)


def test_a_pair_that_comes_twice_is_refused(load):
    """Two grades for one pair teach nothing."""
    with pytest.raises(DataError, match=r"shots\.jsonl:2: query 'What is wax\?': this pair comes"):
        load(ROW, {**ROW, "grade": 2})


def test_more_examples_than_anybody_pays_for_are_refused(load):
    """A file of judgments that is given by mistake would go into every call."""
    rows = [{**ROW, "query": f"What is wax no. {n}?"} for n in range(MOST + 1)]

    assert len(load(*rows[:MOST])) == MOST
    with pytest.raises(DataError, match=rf"shots\.jsonl:{MOST + 1}: expected at most 20 examples"):
        load(*rows)


def test_a_file_of_something_else_is_shown_the_shape(load):
    """The path of another file is soon given."""
    with pytest.raises(DataError, match=r'none of the shapes accepted:\n  JSON Lines .*"grade"'):
        load({"name": "x"})


@pytest.mark.parametrize(("name", "text"), [("shots.jsonl", ""), ("shots.json", "[]")])
def test_a_file_without_examples_is_an_error(tmp_path, name, text):
    """Judging would go on as if none had been asked for."""
    (tmp_path / name).write_text(text)

    with pytest.raises(DataError, match="example"):
        load_examples(tmp_path / name)
