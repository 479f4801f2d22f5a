import json

import pytest

from ragforge.errors import DataError
from ragforge.evaluating.answers.rates import RATES
from ragforge.evaluating.summary import summarise, summarise_system
from ragforge.report.answers import answers_json

RATE_KEYS = ["mean", "low", "high", "n", "n_failed", "n_absent", "bound_low", "bound_high"]


def test_every_rate_has_the_same_keys(dataset):
    """Who reads the numbers in a script must not have to ask which are there."""
    found = answers_json(summarise_system(dataset, "own"))

    names = ["rates", "slices", "length", "given", "diagnosis"]
    assert list(found) == [*names, "latency", "n_priced", "usd_per_query"]
    assert list(found["rates"]) == list(RATES)
    assert {tuple(rate) for rate in found["rates"].values()} == {tuple(RATE_KEYS)}


def test_one_rate_in_full(dataset):
    """q1 is correct, q2 is not, and q4 (not answerable) has no answer: 1 / 3 to 2 / 3."""
    found = answers_json(summarise_system(dataset, "own"))

    assert found["rates"]["correct"] == {
        "mean": 0.5,
        "low": None,
        "high": None,
        "n": 2,
        "n_failed": 0,
        "n_absent": 1,
        "bound_low": 1 / 3,
        "bound_high": 2 / 3,
    }


def test_diagnosis_lists_every_query(dataset):
    """The total says how much is wrong, the list where."""
    [grid] = answers_json(summarise_system(dataset, "own"))["diagnosis"]

    assert [row["query_id"] for row in grid["queries"]] == ["q1", "q2", "q4"]
    assert grid["queries"][0] == {
        "query_id": "q1",
        "retrieval": "good",
        "answer": "good",
        "reading": "working",
        "reason": None,
    }
    assert grid["queries"][2] == {
        "query_id": "q4",
        "retrieval": None,
        "answer": None,
        "reading": None,
        "reason": "no answer",
    }
    assert grid["readings"]["working"]["count"] == 1
    assert grid["undecided"] == {"a retrieved chunk has no judgment": 1, "no answer": 1}


def test_what_is_not_known_is_null(dataset):
    """NaN is no JSON, and 0 would be a value."""
    dataset.write_answers("mute", [])

    found = answers_json(summarise_system(dataset, "mute"))

    assert found["rates"]["score"]["mean"] is None
    assert found["length"] == {"slope": None, "p": None, "n": 0, "is_suspicious": False}
    assert found["diagnosis"][0]["context"]["difference"] is None
    assert "NaN" not in json.dumps(found, allow_nan=False)


def test_a_system_alone_is_summarised_as_in_the_report(dataset):
    """The command and the report must not tell two stories."""
    [item] = summarise(dataset).answers

    assert summarise_system(dataset, "own") == item


def test_a_system_that_does_not_exist_is_named_with_those_that_do(dataset):
    """A typing error should be seen at once."""
    with pytest.raises(DataError, match=r"no answers of system 'mine'; there are: own"):
        summarise_system(dataset, "mine")
