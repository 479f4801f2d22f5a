"""Gating on a measure within a test."""

import warnings
from collections.abc import Collection
from dataclasses import replace
from os import PathLike, fspath
from typing import Final

import pytest

from ragforge.errors import UsageError
from ragforge.evaluating.formatting import harmless
from ragforge.evaluating.gate import (
    ALLOWANCES,
    FAIL_ON,
    Allowance,
    FailOn,
    Rules,
    Verdict,
    parse_thresholds,
)
from ragforge.pipeline.gating.subjects import find_baseline
from ragforge.pipeline.gating.verdict import check_run
from ragforge.pytest_plugin.measuring import as_test_failure, measured_of
from ragforge.report.gate import render_gate

_NAMED: Final = ("last", "main")
"""Baselines that are no file."""
_LONGEST: Final = 1000
"""Characters of a line."""


class AssertMeasure:
    """Holds the run of a test to rules, as `ragforge gate` does.

    Args:
        request: Of the test.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def __call__(
        self,
        measure: str,
        min: float | None = None,  # as the flag is called
        *,
        max_drop: float | None = None,
        baseline: str | PathLike[str] | None = None,
        point: bool = False,
        fail_on: FailOn = "regression",
        allow: Collection[Allowance] = (),
    ) -> Verdict:
        """Hold one measure to a minimum, to a baseline, or to both.

        Args:
            measure: Name or alias; need not be among those of the marker.
            min: What its mean must reach: decided on the lower end of the 95 % interval.
            max_drop: How much lower than in the baseline it may be: decided on the interval of
                the paired difference.
            baseline: A file as `ragforge gate --write-baseline` makes it, relative to the rootdir,
                or `last` (of the history) or `main` (the file on that branch).
            point: Decide on the means themselves.
            fail_on: What fails the test: a `regression` that is shown, or also what is `not-shown`
                either way; of that a warning tells otherwise.
            allow: What does not refuse the gate: few, holes, baseline-judge, dataset-change,
                grading-change.

        Raises:
            AssertionError: The run does not hold to it, or the gate is refused; says why, and what
                so many queries could have shown.
        """
        __tracebackhide__ = True
        measured = measured_of(self._request, measure)
        with as_test_failure():
            rules = _rules(measure, min, max_drop, baseline, point=point)
            rules = replace(rules, fail_on=_fail_on(fail_on))
            _check_allowances(allow)
            held_against = None
            if baseline is not None:
                named = fspath(baseline)
                if named not in _NAMED:
                    named = str(self._request.config.rootpath / named)
                held_against = find_baseline(measured.dataset, measured.run, named)
            verdict = check_run(measured.dataset, measured.run, rules, held_against, allow)
        if not verdict.passed:
            raise AssertionError(_message(verdict))
        if verdict.outcome == "NOT_SHOWN":
            text = " ".join(check.text for check in verdict.checks)
            warnings.warn(f"not shown either way: {text}", stacklevel=2)
        return verdict


def _rules(
    measure: str,
    least: float | None,
    max_drop: float | None,
    baseline: object,
    *,
    point: bool,
) -> Rules:
    if least is None and max_drop is None:
        raise UsageError(f"assert_measure({measure!r}): give min, or max_drop with a baseline")
    if (max_drop is None) != (baseline is None):
        raise UsageError(f"assert_measure({measure!r}): max_drop and baseline go together")
    for value in (least, max_drop):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise UsageError(f"assert_measure({measure!r}): expected a number, got {value!r:.80}")
    return Rules(
        least=parse_thresholds([] if least is None else [f"{measure}={least}"], "min"),
        drops=parse_thresholds([] if max_drop is None else [f"{measure}={max_drop}"], "max_drop"),
        by_point=point,
    )


def _fail_on(name: str) -> FailOn:
    for known in FAIL_ON:
        if known == name:
            return known
    raise UsageError(f"fail_on: expected {' or '.join(FAIL_ON)}, got {name!r:.80}")


def _check_allowances(allow: Collection[str]) -> None:
    if isinstance(allow, str) or not set(allow) <= set(ALLOWANCES):
        there = ", ".join(ALLOWANCES)
        raise UsageError(f"allow: expected a list of: {there}; got {allow!r:.80}")


def _message(verdict: Verdict) -> str:
    """Return the verdict; its first line is what pytest's summary shows."""
    failed = [check for check in verdict.checks if check.outcome in ("FAIL", "NOT_SHOWN")]
    first = [f"{check.name} {check.threshold:g}: {check.text}" for check in failed]
    reasons = [*(item.reason for item in verdict.refusals), *first]
    lines = [*(harmless(reason, _LONGEST) for reason in reasons), "", render_gate(verdict)]
    if needed := [item.allowance for item in verdict.refusals if item.allowance]:
        lines += ["", f"in a test, allow={needed!r} lets it decide"]
    return "\n".join(lines)
