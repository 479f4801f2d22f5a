import re

import pytest

from ragforge.evaluating.causes.finder import CauseFinder
from ragforge.evaluating.evaluation_data import load_evaluation_data
from ragforge.evaluating.formatting import MISSING
from ragforge.evaluating.query_table import QueryTableBuilder
from ragforge.evaluating.summary import take_census
from ragforge.records import Judgment
from ragforge.report.page.queries import STATIC_ROWS, difference, queries_script, queries_section


@pytest.fixture
def section():
    """Draw the table of a dataset."""

    def run(dataset, **options):
        data = load_evaluation_data(dataset)
        bad = CauseFinder(data.runs, data.task, data.task.primary).bad_queries()
        draft = QueryTableBuilder(data, bad, **options)
        chunks = take_census(dataset, draft.chunk_quotes, set())
        return queries_section(draft.fill(chunks.starts, {}, lambda _: {}, {}), None).code

    return run


def test_rows_are_readable_without_the_script(section, dataset):
    """Some mail programs and many companies run none."""
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", section(dataset))

    assert [re.findall(r"<code>(.*?)</code>", row) for row in rows] == [
        ["q3"], ["q2"], ["q1"], ["q4"]
    ]  # fmt: skip
    assert "failed" in rows[0]


def test_what_needs_the_script_says_so(section, dataset):
    """Controls that do nothing are worse than none."""
    found = section(dataset)

    assert "<noscript>" in found
    assert re.search(r'<div id="queries-tools" hidden>', found)


def test_static_rows_have_an_end(section, many_queries):
    """50,000 rows of markup would not open."""
    found = section(many_queries(STATIC_ROWS + 3))

    assert found.count('<th scope="row">') == STATIC_ROWS
    assert "3 further queries need the script." in found


def test_page_says_what_was_left_out(section, many_queries):
    """Whoever misses a text has to know that it is not missing in the dataset."""
    found = section(many_queries(600, chars=4000), max_bytes=300_000)

    assert re.search(r"What was retrieved is kept of the worst \d+\.", found)
    assert "The rest was left out to keep the page small" in found


def test_what_was_found_stands_under_the_value_and_what_a_query_is_under_its_text(section, dataset):
    """The browser draws the same rows by its script."""
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", section(dataset))

    assert "<small><bdi>hard</bdi></small><code>q2" in rows[1]
    assert "<small>2 ungraded</small>" in rows[1]
    assert "<small>rank 1</small>" in rows[2]


def test_one_run_has_no_difference(section, dataset):
    """There is nothing to compare it with."""
    assert "difference" not in section(dataset)


@pytest.mark.parametrize(
    ("before", "now", "shown"),
    [
        (0.2, 0.5, "+0.300"),
        (0.5, 0.2, "-0.300"),
        (0.5, 0.5, "0.000"),
        (None, 0.5, MISSING),
        (0.5, None, MISSING),
    ],
)
def test_difference_has_a_sign_and_needs_both_values(before, now, shown):
    """A failure is never taken for 0."""
    assert difference(before, now) == shown


def test_no_run_and_no_answer_is_said(section, new_dataset, dataset):
    """An empty table would look like a fault."""
    made = new_dataset("bare")
    made.write_queries(dataset.queries())

    assert "Nothing is measured yet" in section(made)


def test_script_makes_no_markup_of_data_and_evaluates_nothing():
    """Texts of strangers go through it."""
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|fetch\(|import\(",
        queries_script(),
    )


def test_a_value_of_lower_grades_alone_says_so(section, many_queries, make_ranking):
    """A reader takes .4 for a relevant chunk else."""
    made = many_queries(2)
    made.write_judgments(
        [
            Judgment(query_id="q0000", chunk_id="c0000", grade=1),
            Judgment(query_id="q0000", chunk_id="c0001", grade=3),
            Judgment(query_id="q0001", chunk_id="c0001", grade=3),
        ]
    )
    for name in ("base", "new"):
        rankings = [make_ranking("q0000", "c0000"), make_ranking("q0001", "c0001")]
        made.write_run(name, rankings)
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", section(made))

    assert rows[0].count("by lower grades alone") == 2
    assert "by lower grades alone" not in rows[1]
