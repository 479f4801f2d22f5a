"""A change of judge is never told as a change of the system, and what is missing can be bought."""

import json
import shlex
import shutil

import pytest
from two_judges import (
    NEW,
    differences,
    evaluate,
    history,
    history_text,
    judge,
    judges,
    make_set,
    rank,
    verdicts,
)

from ragforge.cli import main

pytestmark = pytest.mark.slow


MEASURES = ("nDCG@10", "P@5", "RR")
UNKNOWN = dict.fromkeys(MEASURES, "UNKNOWN")


@pytest.fixture(scope="module")
def endpoint():
    with judges() as found:
        yield found


@pytest.fixture
def dataset(tmp_path):
    return make_set(tmp_path / "set")


@pytest.fixture
def swapped(dataset, endpoint):
    """Retriever and judge changed at once; the pool of the new run is judged anew."""
    judge(dataset, endpoint, "strict")
    evaluate(dataset)
    rank(dataset, NEW)
    judge(dataset, endpoint, "lenient", "--again")
    evaluate(dataset)
    return dataset


@pytest.fixture(scope="module")
def by_one(tmp_path_factory, endpoint):
    """What the same change comes to where the lenient judge graded everything."""
    dataset = make_set(tmp_path_factory.mktemp("one") / "set")
    judge(dataset, endpoint, "lenient")
    evaluate(dataset)
    rank(dataset, NEW)
    judge(dataset, endpoint, "lenient")
    evaluate(dataset)
    return dataset


def command_in(text):
    """Return the words of the command that a text names."""
    return shlex.split(text.partition("`ragforge ")[2].partition("`")[0])


def buy(endpoint, text, *more):
    return main([*command_in(text), "--base-url", endpoint.url, "-q", *more])


def test_another_judge_is_no_better_system(swapped, capsys):
    """The mean rose by what the second judge is more lenient than the first."""
    found = history(swapped, capsys)

    assert verdicts(found) == UNKNOWN
    assert differences(found) == dict.fromkeys(MEASURES)
    assert found["changes"][0]["what"] == "judge"
    assert [item["cause"] for item in found["moved"]] == ["unknown"] * 3


def test_history_names_both_judges_and_the_command(swapped, capsys):
    """Who reads UNKNOWN must know what to do next."""
    text = history_text(swapped, capsys)

    assert "Their grades are of lenient with judge_relevance" in text
    assert "and strict with judge_relevance" in text
    assert "90 pairs are without a grade of lenient" in text
    assert command_in(text) == [
        *("judge", "--dataset", str(swapped.path), "--run", "bm25"),
        *("--earlier-rankings", "--again", "--model", "lenient"),
    ]


def test_the_command_buys_the_difference_that_one_judge_sees(swapped, by_one, endpoint, capsys):
    """The promise of the command, held against a set that one judge graded from the start."""
    honest = differences(history(by_one, capsys))

    assert buy(endpoint, history_text(swapped, capsys)) == 0

    bought = history(swapped, capsys)
    assert differences(bought) == pytest.approx(honest)
    assert verdicts(bought) == verdicts(history(by_one, capsys))
    assert "missing_grades" not in bought


def test_the_difference_stays_when_the_bought_grades_are_evaluated(
    swapped, by_one, endpoint, capsys
):
    """A newer evaluation of the same ranking stands for the one that could not be compared."""
    honest = differences(history(by_one, capsys))
    buy(endpoint, history_text(swapped, capsys))
    evaluate(swapped)

    assert differences(history(swapped, capsys)) == pytest.approx(honest)


def test_the_price_is_known_before(swapped, endpoint, capsys):
    """Ninety pairs of the earlier ranking, at one call each."""
    text = history_text(swapped, capsys)
    buy(endpoint, text, "--dry-run", "--json")

    estimate = json.loads(capsys.readouterr().out)
    assert estimate["pairs"]["new"] == estimate["calls"] == 90
    assert estimate["pairs"]["new_of_earlier_rankings"] == 90
    assert estimate["tokens"]["expected"] > 0


def test_judging_says_what_earlier_rankings_still_need(dataset, endpoint, capsys):
    """The moment to buy it is when the judge is at work."""
    judge(dataset, endpoint, "strict")
    evaluate(dataset)
    rank(dataset, NEW)
    capsys.readouterr()

    judge(dataset, endpoint, "lenient", "--again", "--dry-run")

    said = capsys.readouterr().err
    assert "rankings of earlier evaluations hold 90 pairs without a grade of this judge" in said
    assert "--earlier-rankings --again --model lenient`" in said


def test_judging_both_at_once_needs_nothing_more(dataset, by_one, endpoint, capsys):
    """With the flag, the next evaluation can be compared right away."""
    judge(dataset, endpoint, "strict")
    evaluate(dataset)
    rank(dataset, NEW)
    judge(dataset, endpoint, "lenient", "--again", "--earlier-rankings")
    evaluate(dataset)

    assert differences(history(dataset, capsys)) == pytest.approx(
        differences(history(by_one, capsys))
    )


def test_grades_that_stand_side_by_side_are_no_better_system(dataset, endpoint, capsys):
    """With --mix the first judge's grades stay where both rankings meet."""
    judge(dataset, endpoint, "strict")
    evaluate(dataset)
    rank(dataset, NEW)
    judge(dataset, endpoint, "lenient", "--mix")
    evaluate(dataset)

    assert verdicts(history(dataset, capsys)) == UNKNOWN


def test_which_judge_came_first_changes_nothing(dataset, endpoint, capsys):
    """The stricter judge of the later ranking would make a system look worse."""
    judge(dataset, endpoint, "lenient")
    evaluate(dataset)
    rank(dataset, NEW)
    judge(dataset, endpoint, "strict", "--again")
    evaluate(dataset)

    assert verdicts(history(dataset, capsys)) == UNKNOWN


def test_another_judge_of_one_ranking_moves_no_system(dataset, endpoint, capsys):
    """The ranking is the same: whatever the judges say, its difference to itself is 0."""
    judge(dataset, endpoint, "strict")
    evaluate(dataset)
    judge(dataset, endpoint, "lenient", "--again")
    evaluate(dataset)

    found = history(dataset, capsys)
    assert differences(found) == dict.fromkeys(MEASURES, 0.0)
    assert {item["verdict"] for item in found["trends"]} == {"STABLE"}
    assert {item["cause"] for item in found["moved"]} == {"judgments"}


def test_grades_that_are_gone_do_not_count_against_the_earlier_ranking(dataset, endpoint, capsys):
    """Judged from nothing by another model, the earlier ranking has holes that it had not then."""
    judge(dataset, endpoint, "strict")
    evaluate(dataset)
    rank(dataset, NEW)
    dataset.write_judgments([])
    judge(dataset, endpoint, "lenient")
    evaluate(dataset)

    assert verdicts(history(dataset, capsys)) == UNKNOWN
    text = history_text(dataset, capsys)
    assert "(90 of them had a grade that is gone)" in text
    assert buy(endpoint, text) == 0
    assert verdicts(history(dataset, capsys)) == {
        "nDCG@10": "IMPROVING",
        "P@5": "STABLE",
        "RR": "IMPROVING",
    }


def test_a_gate_refuses_what_no_one_judge_graded(dataset, endpoint, capsys):
    """A drop that the second judge's leniency hides would ship."""
    judge(dataset, endpoint, "strict")
    evaluate(dataset)
    rank(dataset, NEW)
    judge(dataset, endpoint, "lenient", "--again")
    words = ["gate", "--dataset", str(dataset.path), "--baseline", "last", "--json"]
    capsys.readouterr()

    code = main([*words, "--max-drop", "nDCG@10=0.05", "--allow-grading-change"])

    verdict = json.loads(capsys.readouterr().out)
    [refusal] = verdict["refusals"]
    assert (code, verdict["verdict"]) == (1, "REFUSED")
    assert "no item can be compared with the baseline: no one judge graded" in refusal["reason"]
    assert "--earlier-rankings --again --model lenient`" in refusal["reason"]
    assert buy(endpoint, refusal["reason"]) == 0
    capsys.readouterr()
    assert main([*words, "--max-drop", "nDCG@10=0.05", "--allow-grading-change"]) == 0


def test_rankings_of_a_baseline_file_can_be_judged_too(dataset, endpoint, tmp_path, capsys):
    """A baseline from git is not in the history of this checkout."""
    judge(dataset, endpoint, "strict")
    file = tmp_path / "baseline.json"
    main(["gate", "--dataset", str(dataset.path), "--write-baseline", str(file), "-q"])
    rank(dataset, NEW)
    capsys.readouterr()

    how = ["--again", "--earlier-rankings", str(file), "--dry-run", "--json"]
    judge(dataset, endpoint, "lenient", *how)

    counts = json.loads(capsys.readouterr().out)["pairs"]
    assert (counts["new"], counts["new_of_earlier_rankings"]) == (210, 90)


@pytest.mark.parametrize("value", ["0", "-1", "no-such-file"])
def test_earlier_rankings_are_a_number_or_a_file(dataset, capsys, value):
    """A slip is not to be taken for all there is."""
    code = main(["judge", "--dataset", str(dataset.path), f"--earlier-rankings={value}"])

    assert code == 2
    assert f"--earlier-rankings {value}: expected a number" in capsys.readouterr().err


def test_one_judge_needs_nothing(by_one, capsys):
    """Most sets are of one judge: nothing is to be said about it."""
    text = history_text(by_one, capsys)

    assert "judge graded" not in text
    assert "missing_grades" not in history(by_one, capsys)
    assert "mixed" not in (by_one.path / "history.jsonl").read_text(encoding="utf-8")


def test_diff_says_which_grades_changed_with_the_judge(dataset, endpoint, tmp_path, capsys):
    """Nothing about these pairs changed; another judge looked at them."""
    judge(dataset, endpoint, "strict")
    before = tmp_path / "before"
    shutil.copytree(dataset.path, before)
    judge(dataset, endpoint, "lenient", "--again")
    capsys.readouterr()

    main(["diff", str(before), str(dataset.path)])

    assert "90 changed (90 by another judge), 0 new, 0 gone" in capsys.readouterr().out


def test_the_report_says_why_no_trend_is_known(swapped, capsys):
    """It names the judges and the way out, as the command line does."""
    capsys.readouterr()

    main(["report", "--dataset", str(swapped.path)])

    text = " ".join(capsys.readouterr().out.split())
    assert "bm25: of 30 items no one judge graded both rankings (lenient with" in text
    assert "ragforge judge --dataset DIR --run bm25 --earlier-rankings --again" in text


def test_a_panel_is_one_judge_in_any_order(dataset, endpoint, capsys):
    """Grades are means of its members': who is named first makes no difference."""
    judge(dataset, endpoint, "strict", "--panel", "strict,lenient")
    rank(dataset, NEW, run="other")

    code = judge(dataset, endpoint, "strict", "--panel", "lenient,strict", "--run", "other")

    assert code == 0
    assert {item.provenance.model for item in dataset.judgments()} == {"strict+lenient"}


def gated(dataset, capsys):
    """Return the check and the notes of a gate of the run bm25."""
    capsys.readouterr()
    words = ["gate", "--dataset", str(dataset.path), "--run", "bm25", "--min", "nDCG@10=0.2"]
    main([*words, "--json", "--allow-few"])
    found = json.loads(capsys.readouterr().out)
    return found["checks"][0], found["notes"]


def test_a_gate_is_not_moved_by_what_another_judge_says_of_another_run(dataset, endpoint, capsys):
    """A mean fell from 0.82 to 0.39, as a second judge called more chunks of another run good."""
    judge(dataset, endpoint, "strict")
    before, nothing = gated(dataset, capsys)
    rank(dataset, NEW, run="other")
    judge(dataset, endpoint, "lenient", "--mix", "--run", "other")

    after, notes = gated(dataset, capsys)

    assert after == before
    assert not any("lenient" in note for note in nothing)
    assert any("grades by lenient are left out of means" in note for note in notes)


def test_a_model_asked_with_other_fields_is_another_judge(dataset, endpoint, capsys):
    """One that reasons longer differs from itself as much as two models do."""
    low, high = (("--extra-body", f'{{"reasoning_effort": "{how}"}}') for how in ("low", "high"))
    judge(dataset, endpoint, "strict", *low)
    evaluate(dataset)
    rank(dataset, NEW)
    words = ["judge", "--dataset", str(dataset.path), "--model", "strict", "-q"]

    refused = main([*words, "--base-url", endpoint.url, *high])
    told = capsys.readouterr().err
    judge(dataset, endpoint, "strict", *high, "--again")
    evaluate(dataset)
    text = history_text(dataset, capsys)

    assert refused == 2
    assert "graded by another judge" in told
    assert "(body reasoning_effort " in told
    assert verdicts(history(dataset, capsys)) == UNKNOWN
    assert "--extra-body BODY" in text
