"""`ragforge judge canary`: a judge that changes behind its name is found, a steady one passes."""

import json

import pytest
from endpoint import Reply, completion, datum, serving
from labelled_sets import AS_DRAWN, drawn, graded_set, label_all, ranked

from ragforge.cli import main
from ragforge.files.set.calibrations import calibration_files
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.calibrating import apply_calibration
from ragforge.pipeline.judge.judges import POINTWISE
from ragforge.prompts import load_prompt
from ragforge.records import Judgment, Provenance

pytestmark = pytest.mark.slow

JUDGE = Provenance(
    kind="llm", model="scripted", prompt=POINTWISE, prompt_sha256=load_prompt(POINTWISE, "").sha256
)


class Scripted:
    """A judge whose habit the test sets: the grade that it gives to a passage's number."""

    def __init__(self):
        self.habit = lambda number: number % 4
        self.fingerprint = "fp_1"
        self.asked = 0
        self.is_down = False

    def __call__(self, path, body, number):
        self.asked += 1
        if self.is_down:
            return Reply({"error": {"message": "out of order"}}, status=400)
        passage = datum(body["messages"][1]["content"], "passage")
        grade = self.habit(int(passage.split()[1]))
        if grade is None:
            return Reply(completion("I would rather not."))
        reply = {
            "reasoning": "as scripted",
            "evidence": passage if grade >= 2 else "",
            "contains_answer": grade >= 2,
            "grade": grade,
        }
        return Reply({**completion(reply), "system_fingerprint": self.fingerprint})


@pytest.fixture
def judge():
    """A judge at an endpoint."""
    return Scripted()


@pytest.fixture
def dataset(tmp_path):
    """A set of thirty queries that the judge graded, and people graded in part."""
    made = graded_set(tmp_path / "set")
    kept = []
    for n, one in enumerate(made.judgments()):
        changes = {"provenance": JUDGE} if n % 20 else {"source": "human", "provenance": None}
        kept.append(Judgment.model_validate({**one.model_dump(), **changes}))
    made.write_judgments(kept)
    return made


@pytest.fixture
def canary(dataset, judge, capsys):
    """Let a canary sing; return the exit code and what it printed as JSON."""
    with serving(judge) as endpoint:

        def sing(*more):
            words = ["judge", "canary", "--dataset", str(dataset.path), "--model", "scripted"]
            capsys.readouterr()
            code = main([*words, "--base-url", endpoint.url, "-q", "--json", *more])
            printed = capsys.readouterr().out
            return code, json.loads(printed) if printed else {}

        yield sing


def lines(dataset):
    return (dataset.home / "canaries.jsonl").read_text(encoding="utf-8").splitlines()


def test_a_judge_that_repeats_itself_is_steady(canary, judge, dataset):
    """A canary that alarms at a steady judge would be switched off."""
    first_code, first = canary()
    code, found = canary()

    assert (first_code, first["verdict"], code, found["verdict"]) == (0, "first", 0, "steady")
    assert (found["same"], found["compared"], found["first_id"]) == (40, 40, first["canary_id"])
    assert judge.asked == 40 + 40 + 40
    assert len(lines(dataset)) == 2


def test_each_canary_asks_live_and_a_steady_prompt(canary, judge):
    """A stored reply would say for ever what the judge said once."""
    canary()
    judge.asked = 0

    canary()

    assert judge.asked == 40


def test_a_judge_that_became_kinder_is_found(canary, judge):
    """A version that is swapped behind a name is what all later comparisons would suffer from."""
    canary()
    judge.habit = lambda number: min(3, number % 4 + 1)
    judge.fingerprint = "fp_2"

    code, found = canary()

    assert (code, found["verdict"]) == (1, "drifted")
    assert found["signs"] == ["shift", "scatter"]
    assert found["shift"]["low"] > 0.3
    assert found["other_answerers"] == ["test-model (fp_2)"]
    kappas = found["agreement"]["quadratic kappa"]
    assert set(kappas) == {"now", "at first"}


def test_another_fingerprint_alone_is_told_and_no_drift(canary, judge):
    """Set-ups change weekly; grades decide."""
    canary()
    judge.fingerprint = "fp_2"

    code, found = canary()

    assert (code, found["verdict"]) == (0, "steady")
    assert found["other_answerers"] == ["test-model (fp_2)"]


def test_a_judge_that_refuses_more_is_found(canary, judge):
    """What has no grade is in no mean, so it must be looked at by itself."""
    canary()
    judge.habit = lambda number: None if number % 4 == 0 else number % 4

    code, found = canary()

    assert (code, found["signs"]) == (1, ["failures"])


def test_what_people_graded_is_drawn_first(canary, dataset):
    """Only there can kappa be told."""
    _, found = canary()

    graded = [pair for pair in json.loads(lines(dataset)[0])["pairs"] if "people" in pair]
    assert len(graded) == min(40, sum(one.source == "human" for one in dataset.judgments()))
    assert set(found["agreement"]["kappa"]) == {"at first"}


def test_the_verdict_says_what_to_do(canary, judge, dataset, capsys):
    """Who is woken by a gate at night wants the next command."""
    canary()
    judge.habit = lambda number: 3 - number % 4
    with serving(judge) as endpoint:
        words = ["judge", "canary", "--dataset", str(dataset.path), "--model", "scripted"]
        assert main([*words, "--base-url", endpoint.url, "-q"]) == 1

    printed = capsys.readouterr().out
    assert printed.startswith("DRIFTED: scripted is not the judge of ")
    assert "ragforge judge --again" in printed


def test_a_dry_run_counts_both_readings_and_writes_nothing(canary, judge, dataset):
    """What a canary costs is asked before it is scheduled."""
    code, counted = canary("--dry-run")

    assert (code, counted["calls"], judge.asked) == (0, 80, 0)
    assert not (dataset.home / "canaries.jsonl").exists()


def test_a_dry_run_prints_its_counts(judge, dataset, capsys):
    """They are for people first."""
    with serving(judge) as endpoint:
        words = ["judge", "canary", "--dataset", str(dataset.path), "--model", "scripted"]
        code = main([*words, "--base-url", endpoint.url, "-q", "--dry-run"])

    assert code == 0
    assert "pairs: 40 drawn, 2 readings of each\ncalls: 80 " in capsys.readouterr().out


def test_a_canary_that_ran_out_of_budget_goes_on_where_it_was(canary, judge, dataset):
    """No reply is bought twice."""
    code, _ = canary("--max-calls", "30")
    assert code == 5
    assert not (dataset.home / "canaries.jsonl").exists()

    code, found = canary()

    assert (code, found["verdict"], judge.asked) == (0, "first", 80)


def test_pairs_whose_texts_changed_are_left_out(canary, dataset):
    """Another text is another question, and no sign of a drift."""
    canary()
    gone = json.loads(lines(dataset)[0])["pairs"][0]["chunk_id"]
    dataset.write_chunks(
        chunk.model_copy(update={"text": f"Text 3 {chunk.text}"})
        if chunk.chunk_id == gone
        else chunk
        for chunk in list(dataset.chunks())
    )

    code, found = canary()

    assert (code, found["left_out"], found["compared"]) == (0, 1, 39)


def test_a_line_changed_by_hand_is_passed_over(canary, dataset):
    """A ledger that can be edited into silence is none."""
    canary()
    path = dataset.home / "canaries.jsonl"
    path.write_text(path.read_text("utf-8").replace('"grade":3', '"grade":0', 1), "utf-8")

    _, found = canary()

    assert found["verdict"] == "first"


def test_the_offline_baseline_does_not_drift(dataset, capsys):
    """A rule cannot change behind its name."""
    assert main(["judge", "canary", "--dataset", str(dataset.path), "--model", "offline"]) == 2
    assert "does not drift" in capsys.readouterr().err


def test_too_few_pairs_are_refused(tmp_path, judge, capsys):
    """Three pairs tell no drift from chance."""
    made = graded_set(tmp_path / "small", 1)
    with serving(judge) as endpoint:
        words = ["judge", "canary", "--dataset", str(made.path), "--model", "scripted"]
        assert main([*words, "--base-url", endpoint.url]) == 3

    assert "0 pairs have a grade of people or of this judge" in capsys.readouterr().err


def test_a_calibration_made_before_a_drift_is_told_to_be_stale(tmp_path, judge, capsys):
    """It corrects grades of a judge that is no longer there."""
    made = graded_set(tmp_path / "calibrated")
    made.write_judgments(
        one.model_copy(update={"provenance": JUDGE}) for one in list(made.judgments())
    )
    drawn(made, 60, AS_DRAWN)
    label_all(made)
    with serving(judge) as endpoint:
        words = ["judge", "canary", "--dataset", str(made.path), "--model", "scripted", "--json"]
        words += ["--base-url", endpoint.url, "-q"]
        assert main(words) == 0
        before = apply_calibration(made)
        judge.habit = lambda number: 3 - number % 4
        capsys.readouterr()
        assert main(words) == 1
        stale = json.loads(capsys.readouterr().out)["stale_calibrations"]
        after = apply_calibration(made)
        judge.habit = lambda number: number % 4
        assert main(words) == 0
        back = apply_calibration(Dataset(made.path))

    assert stale == [calibration_files(made).name]
    assert not any(text.startswith("stale") for text in (*before.warnings, *back.warnings))
    assert after.warnings[0].startswith("stale: scripted drifted by its canary of ")


def test_a_canary_whose_replies_all_fail_is_a_drift_and_the_next_asks_live(canary, judge):
    """A judge that refuses all is no judge any more; once it is mended, nothing may stay stuck."""
    canary("-n", "12")
    steady, judge.habit = judge.habit, lambda number: None
    code, failed = canary()
    judge.habit, judge.asked = steady, 0
    code_then, mended = canary()

    assert (code, failed["verdict"], failed["signs"]) == (1, "drifted", ["failures"])
    assert (code_then, mended["verdict"], judge.asked) == (0, "steady", 12)


def test_a_first_canary_whose_replies_all_fail_is_none_and_asks_live_again(canary, judge, dataset):
    """There is nothing to hold it against; replayed from a store, it would fail for ever."""
    steady, judge.habit = judge.habit, lambda number: None
    code, _ = canary("-n", "12")
    judge.habit, judge.asked = steady, 0
    code_then, found = canary("-n", "12")

    assert code == 4
    assert (code_then, found["verdict"], judge.asked) == (0, "first", 24)
    assert len(lines(dataset)) == 1


def test_a_canary_that_the_endpoint_failed_on_says_nothing(canary, judge, dataset):
    """Steady by two pairs would take an alarm back."""
    canary("-n", "12")
    judge.is_down = True
    code, _ = canary()

    assert code == 4
    assert len(lines(dataset)) == 1


@pytest.fixture
def drifted(tmp_path, judge, capsys):
    """Run commands on a set that a judge graded in part before it was found to have drifted."""
    made = graded_set(tmp_path / "drifted", 12)
    made.write_judgments([])
    for name in ("a", "b"):
        (made.path / "runs" / f"{name}.jsonl").unlink()
    for name, chunks in (("near", range(5)), ("far", range(8, 13))):
        made.write_run(name, [ranked(query, chunks) for query in range(12)])
    with serving(judge) as endpoint:
        model = ("--model", "scripted", "--base-url", endpoint.url, "-q")

        def run(command, *words, asks=True):
            capsys.readouterr()
            place = ("--dataset", str(made.path))
            code = main([*command.split(), *place, *words, *(model if asks else ())])
            return code, *(" ".join(text.split()) for text in capsys.readouterr())

        assert run("judge", "--run", "near")[0] == 0
        assert run("judge canary", "-n", "20")[0] == 0
        judge.habit = lambda number: 3
        assert run("judge canary")[0] == 1
        judge.asked = 0
        yield run


def graded_after(out):
    """Return what JSON says of who graded: since which drift, and whether that is an alarm."""
    return [("since" in each, "drifted_at" in each) for each in json.loads(out)["graded_by"]]


def test_a_judge_that_drifted_adds_no_grades_beside_those_of_before(drifted, judge):
    """The difference of two runs would be one of two judges, also where they share no chunk."""
    code, _, err = drifted("judge", "--run", "far")

    assert (code, judge.asked) == (2, 0)
    assert "60 grades that scripted" in err
    assert "`ragforge judge --again` without --run judges all of them anew" in err


def test_where_both_stand_no_run_wins_and_anew_does_not_silence_it(drifted, tmp_path):
    """A canary that begins again makes no grades of before to ones of now."""
    assert drifted("judge", "--run", "far", "--mix")[0] == 0
    assert drifted("judge canary", "--anew", "-n", "20")[0] == 0
    compare = drifted("compare", "near", "far", "-m", "P@5", asks=False)[1]
    asked_for = drifted("compare", "near", "far", "-m", "P@5", "--json", asks=False)[1]
    [of_measure] = json.loads(asked_for)["comparisons"]

    assert compare.startswith("JUDGE DRIFTED: scripted by its canary of ")
    assert "UNKNOWN which is better in P@5: in 12 queries no one judge graded what both" in compare
    assert "60 pairs are without a grade of scripted with judge_relevance" in compare
    assert of_measure["winner"] == "UNKNOWN"
    assert sorted(graded_after(asked_for)) == [(False, True), (True, True)]
    for command in ("evaluate", "worst", "gate --run far --min P@5=0.1"):
        told = drifted(command, asks=False)[1]
        assert told.startswith("JUDGE DRIFTED: scripted by its canary of "), command
    report = tmp_path / "report.md"
    drifted("report", "--out", str(report), asks=False)
    assert "JUDGE DRIFTED: scripted" in report.read_text("utf-8").replace("\\", "")


def test_the_remedy_asks_all_anew_and_clears_the_alarm(drifted, judge):
    """What the alarm prescribes must work, though the model's name is the same."""
    assert drifted("judge", "--run", "far", "--mix")[0] == 0
    judge.asked = 0
    code, _, err = drifted("judge", "--again")
    still = drifted("evaluate", asks=False)[1]
    anew = drifted("judge canary", "--anew", "-n", "20")[0]
    steady = drifted("judge canary")[0]
    compare = drifted("compare", "near", "far", "-m", "P@5", "--json", asks=False)[1]

    assert (code, judge.asked >= 60) == (0, True)
    assert "60 of 120 pairs judged now" in err
    assert still.startswith("JUDGE DRIFTED")
    assert (anew, steady) == (0, 0)
    assert graded_after(compare) == [(True, False)]
    assert json.loads(compare)["comparisons"][0]["mean_a"] == 1


def test_all_that_a_judge_graded_is_judged_anew_also_what_no_run_holds(drifted, judge, tmp_path):
    """Else the alarm could never end."""
    (tmp_path / "drifted" / "runs" / "near.jsonl").unlink()
    code, _, err = drifted("judge", "--again")

    assert code == 0
    assert "120 of 120 pairs judged now" in err


def test_a_steady_canary_brings_the_judge_of_before_back(drifted, judge):
    """A false alarm, or a provider that takes its change back, leaves all as it was."""
    judge.habit = lambda number: number % 4
    assert drifted("judge canary")[0] == 0
    code = drifted("judge", "--run", "far")[0]
    compare = drifted("compare", "near", "far", "-m", "P@5", "--json", asks=False)[1]

    assert code == 0
    assert graded_after(compare) == [(False, False)]


def test_a_second_drift_after_the_first_was_mended_is_another_judge_again(drifted, judge):
    """Models change more than once."""
    drifted("judge", "--again")
    drifted("judge canary", "--anew", "-n", "20")
    judge.habit = lambda number: 0
    assert drifted("judge canary")[0] == 1
    judge.asked = 0
    code = drifted("judge", "--again")[0]

    assert (code, judge.asked) == (0, 120)
