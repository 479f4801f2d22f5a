from dataclasses import replace

import pytest

from ragforge.evaluating.answers.rates import LengthCheck
from ragforge.evaluating.formatting import MISSING
from ragforge.evaluating.summary import summarise
from ragforge.measures.rates import Slope
from ragforge.records import Answer, Query
from ragforge.report.answers import (
    DOCUMENTS,
    answer_tables,
    context_table,
    diagnosis_table,
    length_table,
    p_value,
    rates_table,
    render_answers,
    slice_tables,
)
from ragforge.report.notices import notices
from ragforge.report.page.page import render_html
from ragforge.report.set_report import render_markdown, render_text


@pytest.fixture
def systems(dataset):
    return summarise(dataset).answers


def test_a_rate_stands_with_its_interval_and_what_it_rests_on(systems):
    """A number alone cannot be held up."""
    row = next(row for row in rates_table(systems).rows if row[1] == "mean score")

    assert row == ("own", "mean score", "0.500", "2 of 3", "0", "0.333 to 0.667")


def test_what_is_not_known_is_a_dash(dataset):
    """0.000 would be a value."""
    dataset.write_answers("mute", [])

    rows = rates_table(summarise(dataset).answers).rows

    assert {row[2] for row in rows if row[0] == "mute"} == {MISSING}


def test_no_system_has_no_tables():
    """Empty tables are noise."""
    assert not any(table.rows for table in answer_tables(()))


def test_properties_that_part_nothing_have_no_table(systems):
    """One language for all repeats the mean."""
    assert [table.title for table in slice_tables(systems)] == [
        "Answers by difficulty",
        "Answers by type",
        "Answers by document",
    ]


def test_small_slices_are_marked(systems):
    """A mean of one answer must not be read as one."""
    [table, *_] = slice_tables(systems)

    assert {row[-1] for row in table.rows} == {"too small to read"}
    assert not any("(" in cell for row in table.rows for cell in row)


def test_documents_beyond_the_first_dozen_are_counted_and_left_out(new_dataset, make_grade):
    """A corpus has thousands; the page is to be read."""
    made = new_dataset()
    ids = [f"q{n:02}" for n in range(DOCUMENTS + 3)]
    made.write_chunks([])
    made.write_queries(
        Query.model_validate(
            {
                "query_id": q,
                "query": "?",
                "expected_answer": "!",
                "evidence": [{"doc_id": f"{q}.md", "chunk_id": "c", "quote": "x"}],
            }
        )
        for q in ids
    )
    made.write_answers("own", [Answer(query_id=q, answer="!") for q in ids])
    made.write_answer_grades("own", [make_grade(q, "correct") for q in ids])

    [table] = slice_tables(summarise(made).answers)

    assert len(table.rows) == DOCUMENTS
    assert "3 documents are left out here" in table.note


def test_diagnosis_gives_shares_with_intervals(systems):
    """41 of 70 is more than 3 of 5."""
    assert diagnosis_table(systems).rows == (
        (
            "own",
            "top 5 of bm25",
            "1 (100 %)",
            "0 (0 %)",
            "0 (0 %)",
            "0 (0 %)",
            "2",
        ),
    )


def test_noise_without_enough_answers_is_a_dash(systems):
    """A difference of two single answers is none."""
    row = next(row for row in context_table(systems).rows if row[2] == "difference")

    assert row[3:] == (MISSING, "", "", "")


@pytest.mark.parametrize(
    ("p", "shown"), [(None, MISSING), (0.0000001, "below 0.001"), (0.0123, "0.012")]
)
def test_p_values_are_never_shown_as_0(p, shown):
    """No chance is that small."""
    assert p_value(p) == shown


@pytest.mark.parametrize(("slope", "word"), [(0.2, "higher"), (-0.2, "lower")])
def test_a_taste_for_length_is_announced(dataset, slope, word):
    """It bears on every number above it."""
    found = summarise(dataset)
    [item] = found.answers
    flagged = replace(item, length=LengthCheck(Slope(slope, 0.001, 30)))

    texts = [notice.text for notice in notices(replace(found, answers=(flagged,)))]

    assert length_table([flagged]).rows[0][-1] == "look at the judge"
    assert any(f"Longer answers score {word}" in text for text in texts)


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
@pytest.mark.parametrize(
    "words", ["harmonic mean of both", "0.333 to 0.667", "fix retrieval first", "context precision"]
)
def test_every_form_has_rates_and_diagnosis(dataset, render, words):
    """Whichever form is read, the same is said."""
    assert words in render(summarise(dataset))


def test_a_terminal_shows_rates_and_diagnosis_of_one_system(systems):
    """That is what one wants to see when the grading is done."""
    text = render_answers(systems[0])

    assert "Answer rates" in text
    assert "Retrieval or the model?" in text
    assert not text.endswith("\n")


def test_hostile_values_of_slices_stay_text(hostile_dataset):
    """Names of documents come from the corpus too."""
    found = render_html(summarise(hostile_dataset))

    assert "Answers by document" in found
    assert "<script>document" not in found
    assert "<img" not in found
