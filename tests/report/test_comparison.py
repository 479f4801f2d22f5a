"""A comparison in words and tables, and as scripts read it."""

import json
import math
from dataclasses import replace

import pytest
from comparisons import LOW, better, doubtful, report_of, three

from ragforge.evaluating.formatting import MISSING
from ragforge.report.comparison import render_comparison
from ragforge.report.comparison_json import comparison_json

AGREED = [
    *("a", "b", "measure", "mean_a", "mean_b", "diff", "low", "high", "p", "p_corrected"),
    *("winner", "wins", "ties", "losses"),
]


def section(text, start):
    """Return the part of the text that starts with a line."""
    return next(part for part in text.split("\n\n") if part.startswith(start))


def test_the_sentence_names_the_better_run_with_its_lead():
    """Most readers want the answer, not the table."""
    text = render_comparison(better())

    assert "new is better in nDCG@10 by 0.419 [0." in text


def test_the_legend_says_what_a_tie_and_an_interval_rest_on():
    """An interval may leave 0 out while the corrected p is too high: that is a tie too."""
    text = " ".join(render_comparison(better()).split())

    assert "Where it holds 0, or p corr. is above 5 %, the winner is TIE." in text
    assert "the paired bootstrap (BCa) or Student's t reaches, whichever goes further" in text


def test_a_run_against_its_copy_shows_no_least_difference():
    """0.000 would say that nothing can hide from so many queries."""
    text = " ".join(render_comparison(report_of({"a": {"RR": LOW}, "b": {"RR": LOW}})).split())

    assert f"0/20/0 0.00 {MISSING} {MISSING} " in text
    assert "In RR the difference is the same in all queries" in text


def test_what_is_shown_is_a_least_where_most_queries_tie():
    """The few queries that differ tell little of the spread."""
    moved = {query: value + 0.1 * (query in list(LOW)[:4]) for query, value in LOW.items()}
    text = " ".join(render_comparison(report_of({"a": {"RR": LOW}, "b": {"RR": moved}})).split())

    assert " >=0.0" in text
    assert "one of at least 0.0" in text


def test_a_tie_says_what_so_many_queries_could_have_shown():
    """No difference shown is not no difference."""
    text = " ".join(render_comparison(better()).split())

    assert "No difference shown in RR; with 20 queries one of 0.0" in text
    assert "in RR would be seen in 4 of 5 samples" in text


def test_the_first_of_two_may_be_the_better():
    """The order on the command line is not the order of merit."""
    runs = {"new": {"RR": {q: v + 0.3 for q, v in LOW.items()}}, "old": {"RR": LOW}}

    text = render_comparison(report_of(runs))

    assert "new is better in RR by 0.300" in text


def test_a_pair_has_one_row_a_measure():
    """The table is what goes into a pull request."""
    lines = section(render_comparison(better()), "A = old, B = new; 20 queries").splitlines()

    assert lines[1].split() == [
        *("measure", "A", "B", "diff", "%", "interval", "p", "p", "corr.", "winner"),
        *("W/T/L", "d_z", "shows", "for", "half"),
    ]
    assert [line.split()[0] for line in lines[3:5]] == ["nDCG@10", "RR"]
    assert " B       20/0/0" in lines[3]
    assert " TIE " in lines[4]


def test_no_line_is_wider_than_a_terminal_of_120_columns():
    """Wrapped tables cannot be read."""
    text = render_comparison(doubtful(0.1, 0.5), n_moved=5)

    assert max(map(len, text.splitlines())) <= 120


def test_queries_that_moved_are_shown_with_their_texts():
    """A mean does not say where to look."""
    found = section(render_comparison(better(), n_moved=1), "Queries that moved most in nDCG@10")

    assert "gained" in found
    assert "What is q19?" in found
    assert len(found.splitlines()) == 5


def test_queries_that_moved_are_left_out_where_none_are_wanted():
    """Fifteen pairs with ten queries each bury the result."""
    assert "moved" not in render_comparison(better())


def test_chunks_without_a_grade_are_counted_with_what_they_could_change():
    """A run is not worse because nobody looked at what it found."""
    found = section(render_comparison(doubtful(0.21, 0.52)), "Chunks retrieved that nobody graded")

    row = found.splitlines()[3]
    assert row.split()[:5] == ["nDCG@10", "+0.4190", "4", "7", "1"]
    assert row.endswith("[0.210, 0.520]")


def test_queries_left_out_are_counted_with_what_they_could_change():
    """A failure is no value, and its query may be the one that decides."""
    found = section(render_comparison(doubtful(0.21, 0.52)), "Queries in which something failed")

    row = found.splitlines()[3]
    assert row.split()[:4] == ["nDCG@10", "+0.4190", "2", "1"]
    assert row.endswith("[0.210, 0.520]")


def test_a_lead_that_holes_could_take_is_called_doubtful():
    """The interval knows nothing of what is missing."""
    text = " ".join(render_comparison(doubtful(-0.1, 0.5)).split())

    assert "the chunks without a grade could take new's lead away" in text


def test_a_lead_that_missing_grades_could_take_away_is_a_warning_of_the_data():
    """A program reads the winner, and not the sentence below the table."""
    warnings = comparison_json(doubtful(-0.1, 0.5))["warnings"]

    assert any("could take new's lead away" in warning for warning in warnings)


def test_a_lead_within_its_bounds_is_not_called_doubtful():
    """A warning that always stands is not read."""
    assert "lead away" not in render_comparison(doubtful(0.1, 0.5))


def test_three_runs_start_with_means_and_letters():
    """With many runs the groups matter, not each pair."""
    lines = render_comparison(three()).split("\n\n")[1].splitlines()

    assert lines[0] == "Means"
    assert [line.split()[0::2] for line in lines[3:6]] == [
        ["old", "b"],
        ["same", "b"],
        ["new", "a"],
    ]


def test_what_survives_the_correction_stands_before_all_pairs():
    """Of fifteen pairs a reader wants those that differ."""
    found = render_comparison(three()).split("\n\n")[2].splitlines()

    assert found[0] == "Differences that survive the correction: 2 of 3 comparisons"
    assert {tuple(line.split()[:3]) for line in found[3:]} == {
        ("nDCG@10", "new", "old"),
        ("nDCG@10", "new", "same"),
    }


def test_nothing_that_survives_is_said_so():
    """An empty table looks like a fault."""
    runs = {name: {"RR": LOW} for name in ("a", "b", "c")}

    assert "None: nothing here tells these runs apart." in render_comparison(report_of(runs))


def test_with_a_base_there_are_no_letters():
    """Letters would claim pairs that nobody compared."""
    report = three(letters={}, baseline="old")

    assert "All others are held against old only." in render_comparison(report)


def test_one_query_gives_no_interval_and_no_winner():
    """One query says nothing about the next."""
    text = render_comparison(report_of({"a": {"RR": {"q": 0.0}}, "b": {"RR": {"q": 1.0}}}))

    assert "A = a, B = b; 1 query" in text
    assert "No difference shown in RR, by 1 query." in text


def test_grades_of_the_baseline_are_called_so():
    """Shared words decide nothing."""
    text = render_comparison(better(judged_by=("baseline (offline-lexical-1)",)))

    assert "careful: grades by the offline baseline (offline-lexical-1)" in text


def test_a_measure_with_values_for_fewer_queries_shows_how_many():
    """Means over different queries are not to be set side by side."""
    report = better()
    fewer = replace(report.items[1].comparison, n=7)
    items = (report.items[0], replace(report.items[1], comparison=fewer))

    table = section(render_comparison(replace(report, items=items)), "A = old").splitlines()

    assert [line.split()[-1] for line in table[3:5]] == ["20", "7"]


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "a\nb", "\u202eevil"])
def test_hostile_names_and_texts_cannot_steer_the_terminal(hostile):
    """Names of files and questions are data."""
    report = report_of({hostile: {"RR": LOW}, "b": {"RR": {q: 1.0 for q in LOW}}})
    first = report.items[0]
    moved = tuple(replace(query, text=hostile, query_id=hostile) for query in first.gained)

    text = render_comparison(replace(report, items=(replace(first, gained=moved),)), n_moved=3)

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "a\nb" not in text


def test_the_agreed_keys_come_first():
    """Scripts read this shape; it is a contract."""
    [first, second] = comparison_json(better())["comparisons"]

    assert list(first)[: len(AGREED)] == AGREED
    assert (first["a"], first["b"], first["measure"]) == ("old", "new", "nDCG@10")
    assert (first["winner"], second["winner"]) == ("B", "TIE")


def test_low_and_high_are_the_corrected_interval():
    """A gate that read the other one would let chance through."""
    report = better()
    found = comparison_json(report)["comparisons"][0]

    interval = report.items[0].comparison.interval
    assert (found["low"], found["high"]) == (interval.low, interval.high)
    assert found["low"] <= found["low_alone"] <= found["high_alone"] <= found["high"]


def test_what_is_not_known_is_null_and_never_nan():
    """NaN is no JSON, and 0 would be a value."""
    found = comparison_json(report_of({"a": {"RR": {"q": 0.0}}, "b": {"RR": {"q": 1.0}}}))

    [only] = json.loads(json.dumps(found, allow_nan=False))["comparisons"]
    assert (only["low"], only["power"], only["percent"]) == (None, None, None)
    assert only["winner"] == "TIE"


def test_failures_and_holes_are_in_it_with_their_bounds():
    """A script must be able to refuse what a reader would doubt."""
    found = comparison_json(doubtful(-0.1, 0.5))["comparisons"][0]

    assert found["n_left_out"] == 2
    assert found["failure_bounds"] == {"low": -0.1, "high": 0.5}
    assert found["unjudged"] == {
        "n_only_a": 4,
        "n_only_b": 7,
        "n_both": 1,
        "bounds": {"low": -0.1, "high": 0.5},
    }


def test_moved_queries_carry_their_difference():
    """A dashboard lists them without arithmetic of its own."""
    moved = comparison_json(better())["comparisons"][0]["moved"]

    assert moved["gained"][0]["query_id"] == "q19"
    assert math.isclose(moved["gained"][0]["diff"], 0.438)
    assert moved["lost"] == []


def test_means_and_letters_are_by_measure():
    """Tables of many runs are drawn from these."""
    found = comparison_json(three())

    assert found["letters"] == {"nDCG@10": {"old": "b", "same": "b", "new": "a"}}
    assert list(found["means"]["nDCG@10"]) == ["old", "same", "new"]
    assert (found["alpha"], found["rel_threshold"]) == (0.05, 2)
