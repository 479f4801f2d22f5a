"""A comparison as scripts read it."""

import json
import math

from comparisons import better, doubtful, report_of, three

from ragforge.report.comparison.text import comparison_json

AGREED = [
    *("a", "b", "measure", "mean_a", "mean_b", "diff", "low", "high", "p", "p_corrected"),
    *("winner", "wins", "ties", "losses"),
]


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
