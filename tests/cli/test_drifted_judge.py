"""A judge that a canary found changed is told before any number that rests on its grades."""

import json

import pytest
from labelled_sets import JUDGE, drawn, graded_set, label_all

from ragforge.cli import main
from ragforge.files.set.canaries import add_canary, read_canaries
from ragforge.records import Canary

DRIFT = "JUDGE DRIFTED: judge-1 by its canary of 2026-11-01 (shift): grades given since"
WHAT_TO_DO = "judge all anew (`ragforge judge --again`), then `ragforge judge canary --anew`"


def canary(number, *signs, first_id="first"):
    return Canary(
        canary_id="",
        judge=JUDGE,
        temperature=0,
        number=number,
        first_id=first_id,
        at=f"2026-11-{number:02}T00:00:00+00:00",
        answered_by=(),
        pairs=(),
        signs=signs,
        p={},
    )


@pytest.fixture
def made(tmp_path):
    """A set whose judge was found to have drifted."""
    found = graded_set(tmp_path / "set")
    add_canary(found, canary(1, "shift"))
    return found


def said(capsys, *words):
    code = main([*map(str, words)])
    return code, *capsys.readouterr()


def gate(made, *words):
    return ["gate", "--dataset", str(made.path), "--run", "a", *words]


def first_line(text):
    return " ".join(text.split("\n\n")[0].split())


@pytest.mark.parametrize(
    "words",
    [("evaluate",), ("compare", "a", "b"), ("gate", "--run", "a", "--min", "P@10=0.1"), ("worst",)],
)
def test_the_first_line_tells_the_drift_and_what_to_do(made, capsys, words):
    """A number that nobody should trust must not stand alone."""
    command, *rest = words
    _, out, _ = said(capsys, command, "--dataset", made.path, *rest)

    assert first_line(out).startswith(DRIFT)
    assert WHAT_TO_DO in first_line(out)
    assert "graded by judge-1 (language model)" in first_line(out)


@pytest.mark.parametrize("ending", ["md", "html"])
def test_a_report_begins_with_the_drift(made, capsys, tmp_path, ending):
    """Whoever is sent a page has not seen the canary."""
    out = tmp_path / f"report.{ending}"
    said(capsys, "report", "--dataset", made.path, "--out", out)
    text = " ".join(out.read_text(encoding="utf-8").replace("\\", "").split())

    assert text.count("JUDGE DRIFTED") >= 1
    assert text.index("JUDGE DRIFTED") < text.index("judge-1 (language model)")


def test_programs_are_told_when_and_by_which_signs(made, capsys):
    """CI reads JSON."""
    _, out, _ = said(capsys, "compare", "--dataset", made.path, "a", "b", "--json")
    [judge] = json.loads(out)["graded_by"]

    assert (judge["drifted_at"], judge["signs"]) == ("2026-11-01T00:00:00+00:00", ["shift"])


@pytest.mark.parametrize("later", [canary(2), canary(2, first_id="")])
def test_a_steady_canary_or_one_that_begins_anew_clears_the_judge(made, capsys, later):
    """Else the warning would stay for ever, and be read by nobody."""
    add_canary(made, later)
    _, out, _ = said(capsys, "compare", "--dataset", made.path, "a", "b")

    assert read_canaries(made).drifted() == ()
    assert out.startswith("graded by judge-1")


def test_grades_by_another_judge_are_not_called_drifted(made, capsys):
    """The canary says nothing of it."""
    other = JUDGE.model_copy(update={"model": "judge-2"})
    made.write_judgments(
        one.model_copy(update={"provenance": other}) for one in list(made.judgments())
    )
    _, out, _ = said(capsys, "compare", "--dataset", made.path, "a", "b")

    assert out.startswith("graded by judge-2")


def test_a_drop_on_grades_that_came_after_the_drift_is_refused(made, capsys, tmp_path):
    """It may be the judge's: chunks that are new would have another judge than those of before."""
    baseline = str(tmp_path / "baseline.json")
    rules = ("--max-drop", "P@10=0.2", "--baseline", baseline)
    main(gate(made, "--write-baseline", baseline))
    capsys.readouterr()
    same = said(capsys, *gate(made, *rules))
    first, *rest = made.judgments()
    made.write_judgments([first.model_copy(update={"grade": 3 - (first.grade or 0)}), *rest])
    refused = said(capsys, *gate(made, *rules))
    allowed = said(capsys, *gate(made, *rules, "--allow-grading-change"))

    assert (same[0], refused[0], allowed[0]) == (0, 1, 0)
    told = " ".join(refused[1].split())
    assert "grades changed since the baseline, and JUDGE DRIFTED: judge-1" in told


def test_a_gate_on_corrected_levels_tells_a_calibration_that_is_stale(made, capsys):
    """It corrects grades of before the drift, and none of now."""
    drawn(made, 150)
    files = label_all(made)
    bound = {"people": files.sample().grades_sha256}
    add_canary(made, canary(2, "shift").model_copy(update={"calibrations": bound}))
    _, out, err = said(capsys, *gate(made, "--min", "P@10=0.1", "--calibrated"))

    assert "stale: judge-1 drifted by its canary of 2026-11-02" in " ".join((out + err).split())
