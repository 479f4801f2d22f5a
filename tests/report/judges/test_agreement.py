import json
import re

import pytest

from ragforge.evaluating.formatting import MISSING
from ragforge.evaluating.graded_by import ALWAYS_0, BASELINE
from ragforge.evaluating.summary import summarise
from ragforge.measures.grader_agreement import Grader, agree
from ragforge.report.judges import (
    NO_ADJECTIVES,
    agreement_json,
    agreement_note,
    agreement_table,
    beats_baseline,
)
from ragforge.report.page.page import render_html
from ragforge.report.set_report import render_markdown, render_text

QUERIES = [f"q{n // 4}" for n in range(24)]
HUMAN = [0, 1, 2, 3] * 6
WORDS = Grader(BASELINE, [1, 1, 0, 2, 3, 0, 1, 1] * 3, [0.4, 0.4, 0.1, 0.7, 0.9, 0.1, 0.3, 0.3] * 3)
ZERO = Grader(ALWAYS_0, [0] * 24)
RENDERERS = (render_text, render_markdown, render_html)


def beside(judge, human=HUMAN, failed=()):
    return agree(QUERIES, human, [judge, WORDS, ZERO], failed=failed)


GOOD = beside(Grader("m", HUMAN, [float(grade) for grade in HUMAN]), failed=[2, 0])


def test_judge_stands_beside_the_baseline_and_always_0():
    """A kappa alone does not say whether counting words would have done."""
    table = agreement_table(GOOD)
    rows = {row[0]: row[1:] for row in table.rows}

    assert table.title == "Agreement with people: m"
    assert table.headers == ("figure", "m", BASELINE, ALWAYS_0)
    assert rows["kappa at >= 2"] == (
        "1.000 [0.081, 1.000]",
        "0.000 [-0.558, 0.558]",
        "0.000",
    )
    assert rows["precision at >= 2"][2] == MISSING
    assert rows["quadratic kappa, beyond the baseline's"][1:] == (MISSING, MISSING)
    assert float(rows["quadratic kappa, beyond the baseline's"][0].split()[0]) > 0


def test_note_says_what_the_figures_rest_on():
    """Pairs of few queries are few, however many they are."""
    note = agreement_note(GOOD)

    assert "On 24 pairs of 6 queries that people graded (0: 6, 1: 6, 2: 6, 3: 6)" in note
    assert "2 more failed and are in no figure" in note
    assert NO_ADJECTIVES in note


def test_who_gives_one_grade_is_told_by_name():
    """A kappa of 0 without an interval would look as if one were missing."""
    note = agreement_note(GOOD)

    assert f"{ALWAYS_0} gave 0 to all pairs: its kappa is 0 by definition" in note
    assert f"{BASELINE} gave" not in note


def test_failures_show_what_they_could_change():
    """A judge that fails on the hard pairs must not gain by it."""
    rows = {row[0]: row[1] for row in agreement_table(GOOD).rows}

    assert rows["kappa at >= 2, failures as far off as can be, or right"] == "[0.846, 1.000]"
    clean = agreement_table(beside(Grader("m", HUMAN))).rows
    assert not any("failures" in row[0] for row in clean)


def test_relevant_pairs_only_are_called_so():
    """A golden set holds no negatives: a judge that calls everything relevant passes it."""
    note = agreement_note(beside(Grader("m", [3] * 24), human=[2, 3] * 12))

    assert "nothing here tells how often the judge takes a chunk for relevant that is not" in note


def test_a_judge_beats_the_baseline_only_with_an_interval_clear_of_0():
    """The sentence is drawn from the difference, not from two values."""
    assert beats_baseline(GOOD) is True
    assert beats_baseline(beside(Grader("m", WORDS.grades))) is False
    assert beats_baseline(agree(QUERIES, HUMAN, [WORDS, ZERO])) is None
    assert beats_baseline(agree(["q"] * 4, [0, 1, 2, 3], [Grader("m", [0, 1, 2, 2])])) is None


def test_json_has_null_where_a_figure_is_not_defined():
    """NaN is no JSON, and 0 would be a lie."""
    found = json.loads(json.dumps(agreement_json(GOOD), allow_nan=False))

    assert (found["pairs"], found["queries"], found["failed"]) == (24, 6, 2)
    assert found["graders"][2]["figures"]["precision"]["value"] is None
    assert found["graders"][0]["confusion"][3] == [0, 0, 0, 6]
    assert found["graders"][1]["first_minus_this"]["quadratic kappa"]["low"] > 0
    assert found["failure_bounds"]["kappa"]["high"] == 1.0


@pytest.mark.parametrize("render", RENDERERS)
def test_every_report_shows_the_agreement_with_the_baseline(dataset, render):
    """Whoever reads about the judge reads how it compares with counting words."""
    page = " ".join(render(summarise(dataset, agreement=(GOOD,))).split())

    assert "Agreement with people: m" in page
    assert BASELINE in page
    assert "No adjectives such as" in page


def test_a_judge_that_does_not_beat_the_baseline_is_called_so(dataset):
    """The first thing to know about a judge that says no more than a rule."""
    poor = beside(Grader("m", WORDS.grades))

    assert "Judge m is not shown to beat the baseline" in render_text(
        summarise(dataset, agreement=(poor,))
    )
    assert "to beat the baseline" not in render_text(summarise(dataset, agreement=(GOOD,)))


def test_a_judge_never_held_against_labels_that_exist_is_called_so(dataset):
    """People graded, and nobody compared: the reader is told how to."""
    alone = agree(QUERIES, HUMAN, [WORDS, ZERO])

    assert "Judge not held against people" in render_text(summarise(dataset, agreement=(alone,)))
    assert "Judge not held" not in render_text(summarise(dataset))


def test_names_of_judges_are_data(dataset, hostile_texts):
    """A model may be called anything."""
    found = tuple(beside(Grader(text, HUMAN)) for text in hostile_texts[:4])
    summary = summarise(dataset, agreement=found)
    pages = [render(summary) for render in RENDERERS]

    assert not any(re.search("[\x00-\x08\x1b\u202e]", page) for page in pages)
    assert not any("<script>document" in page or "<img" in page for page in pages[1:])
