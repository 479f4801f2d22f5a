"""A run that failed on nearly all queries shows nothing, and changes nothing said of the others."""

import json

import pytest
from ranked_sets import FAILED, ranked_set

from ragforge.cli import main

N = 60
DEAD = [1, *[FAILED] * (N - 1)]
GOOD = [1, 1, 1, 2] * 15
WORSE = [1, 2, 3, 3] * 15
SAME = [2, 1, 3, 1] * 15


@pytest.fixture
def compared(tmp_path, capsys):
    """Return what a comparison of runs says, as JSON."""

    def compare(*words, **runs):
        dataset = ranked_set(tmp_path / "set", runs)
        capsys.readouterr()
        main(["compare", "--dataset", str(dataset.path), "--json", *words])
        return json.loads(capsys.readouterr().out)

    return compare


def figures(report):
    """Return all that is said of the couples without the dead run, and their letters."""
    items = [item for item in report["comparisons"] if "dead" not in (item["a"], item["b"])]
    return items, report["letters"]


def test_a_run_that_failed_nearly_everywhere_is_left_out_by_name(compared):
    """It would widen the others' intervals and stand in the best group by one query."""
    report = compared(good=GOOD, worse=WORSE, dead=DEAD)

    assert report["names"] == ["good", "worse"]
    assert (
        "dead: has a value in 1 query only, and is left out: an interval takes 5"
        in report["warnings"]
    )


def test_a_named_run_that_failed_nearly_everywhere_changes_nothing_for_others(compared):
    """Whoever names it sees it, but it is no part of the family nor of the groups."""
    runs = {"good": GOOD, "same": SAME, "worse": WORSE}
    alone = compared(**runs)
    named = [word for name in ("dead", *runs) for word in ("--run", name)]

    beside = compared(*named, **runs, dead=DEAD)

    assert beside["names"] == ["dead", "good", "same", "worse"]
    assert figures(beside) == figures(alone)


def test_of_a_run_with_few_values_it_is_unknown_who_is_better(compared):
    """A tie would read as if both were alike."""
    report = compared("--run", "good", "--run", "dead", good=GOOD, dead=DEAD)

    assert {(item["winner"], item["why"]) for item in report["comparisons"]} == {
        ("UNKNOWN", "dead has a value in 1 query only, and an interval takes 5")
    }


def test_a_mean_of_fewer_queries_shows_how_many(tmp_path, capsys):
    """It is no mean of what the others were measured on."""
    half = [*[FAILED] * 30, *WORSE[30:]]
    dataset = ranked_set(tmp_path / "set", {"good": GOOD, "same": SAME, "half": half})
    main(["compare", "--dataset", str(dataset.path), "-m", "RR"])

    out = capsys.readouterr().out
    assert [line.count("(n=30)") for line in out.splitlines() if line.startswith("half ")] == [1]


def test_a_small_set_is_compared_all_the_same(compared):
    """Nothing is left out where no run could have more values."""
    assert compared(good=[1, 1, 1, 2], worse=[2, 3, 3, 3], dead=[1, *[FAILED] * 3])["names"] == [
        "dead",
        "good",
        "worse",
    ]
