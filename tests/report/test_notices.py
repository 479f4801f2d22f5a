import pytest

from ragforge.evaluating.summary import summarise
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import Rate
from ragforge.records import Judgment, Query
from ragforge.report.notices import notices
from ragforge.report.page.page import render_html
from ragforge.report.set_report import render_markdown, render_text

OUT_OF_REACH = "No grade reaches the threshold"


@pytest.fixture
def noticed(dataset):
    """Return the notices of a title for some settings."""

    def find(title, **settings):
        found = notices(summarise(dataset, **settings))
        return [notice.text for notice in found if notice.title == title]

    return find


def test_threshold_above_every_grade_is_announced(dataset, noticed):
    """A column of zeros would be read as bad retrieval."""
    dataset.write_judgments([Judgment(query_id="q1", chunk_id="c1", grade=2)])

    assert noticed(OUT_OF_REACH, measures=["P@5", "nDCG@10"], rel_threshold=3) == [
        "Relevant means grade 3 or above here. The highest grade in the judgments is 2. "
        "These measures are 0 for every ranking: P@5."
    ]


def test_threshold_of_one_measure_above_every_grade_is_announced(dataset, noticed):
    """The others are sound, and the reader has to know which are not."""
    dataset.write_judgments([Judgment(query_id="q1", chunk_id="c1", grade=2)])

    assert noticed(OUT_OF_REACH, measures=["P(rel=3)@5", "P@5"]) == [
        "The highest grade in the judgments is 2. "
        "These measures are 0 for every ranking: P(rel=3)@5."
    ]


def test_grades_of_unanswerable_queries_reach_no_threshold(noticed, dataset):
    """They are in no measure, so a grade 3 there makes nothing relevant here."""
    dataset.write_judgments(
        [
            Judgment(query_id="q1", chunk_id="c1", grade=1),
            Judgment(query_id="q4", chunk_id="c1", grade=3),
        ]
    )

    [text] = noticed(OUT_OF_REACH, measures=["P@5"], rel_threshold=2)

    assert "The highest grade in the judgments is 1." in text


def test_threshold_within_the_grades_brings_no_notice(noticed):
    """A warning that is always there is no warning."""
    assert noticed(OUT_OF_REACH, measures=["P(rel=3)@5", "ERR@10"], rel_threshold=3) == []


def test_unjudged_dataset_has_no_notice_about_its_threshold(dataset, noticed):
    """Nothing is known about its grades, and another place says so."""
    dataset.write_judgments([])

    assert noticed(OUT_OF_REACH) == []


def test_queries_without_an_answer_are_announced(noticed):
    """The mean of a system that leaves the hard questions out is not its worth."""
    assert noticed("Answers of own") == [
        "1 of 2 queries that can be graded has no answer. "
        "The mean score does not count them; its bounds do, as 0 and as 1."
    ]


def test_system_that_answered_all_brings_no_notice(dataset, noticed, make_grade):
    """Nothing is missing, so nothing is to be said."""
    dataset.write_answer_grades("own", [make_grade("q1", "correct"), make_grade("q4", "correct")])

    assert noticed("Answers of own") == []


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_every_form_counts_the_queries_without_an_answer(dataset, render):
    """Whichever form is read, the gap has to show beside the mean."""
    text = render(summarise(dataset))

    assert "no answer" in text
    assert "2 of 3" in text
    assert "not answered, failed or not graded yet" in " ".join(text.split())


def test_all_judgments_failed_is_not_nothing_judged(dataset):
    """The remedy is to judge again, not to start."""
    dataset.write_judgments([Judgment(query_id="q1", chunk_id="c1", grade=None, failure="refused")])
    dataset.write_answer_grades("own", [])

    assert "No judgment succeeded." in render_html(summarise(dataset))


def test_system_without_any_grade_is_still_announced(new_dataset):
    """An empty file of answers leaves every query without one."""
    made = new_dataset()
    made.write_queries([Query(query_id="q", query="?", expected_answer="!")])
    made.write_answers("own", [])

    [item] = summarise(made).answers

    assert (item.n_unanswered, item.rates["score"]) == (
        1,
        Rate(None, None, Ends(0.0, 1.0), 0, 0, 1),
    )
