"""The verdict of a gate as JUnit XML."""

import re
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from ragforge.evaluating.formatting import visible
from ragforge.evaluating.gate import Check, Verdict
from ragforge.report.gate import UNDECIDED, refusal_lines, render_gate, sentence, stops

_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def render_junit(verdict: Verdict) -> str:
    """Return the verdict as XML; a refusal is a failed case, what it leaves open is skipped."""
    n_failed = sum(stops(check, verdict) for check in verdict.checks) + len(verdict.refusals)
    n_open = sum(
        check.outcome in UNDECIDED and not stops(check, verdict) for check in verdict.checks
    )
    counts = {
        "tests": str(len(verdict.checks) + len(verdict.refusals)),
        "failures": str(n_failed),
        "errors": "0",
        "skipped": str(n_open),
        "time": "0",
    }
    root = Element("testsuites", {"name": "ragforge gate", **counts})
    now = verdict.evaluation
    suite = SubElement(root, "testsuite", {"name": _xml(f"gate {now.dataset} {now.run}"), **counts})
    _properties(suite, verdict)
    for index, line in enumerate(refusal_lines(verdict), start=1):
        _failure(_case(suite, verdict, f"refused {index}"), line, "refused")
    for check in verdict.checks:
        _checked(_case(suite, verdict, check.name), check, is_failed=stops(check, verdict))
    SubElement(suite, "system-out").text = _xml(render_gate(verdict))
    xml: str = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml}\n'


def _properties(suite: Element, verdict: Verdict) -> None:
    now, then = verdict.evaluation, verdict.baseline
    facts = {
        "verdict": verdict.outcome,
        "fail on": verdict.fail_on,
        "dataset": now.dataset,
        "version": str(now.version),
        "run": now.run,
        "queries": str(now.n_queries),
        "failed queries": str(now.n_failed),
    }
    if then is not None:
        facts |= {"baseline": then.evaluation_id} if then.evaluation_id else {}
        facts["baseline run"] = then.run
    properties = SubElement(suite, "properties")
    for name, value in facts.items():
        SubElement(properties, "property", {"name": name, "value": _xml(value)})


def _case(suite: Element, verdict: Verdict, name: str) -> Element:
    classname = f"ragforge.gate.{verdict.evaluation.run}"
    return SubElement(
        suite, "testcase", {"classname": _xml(classname), "name": _xml(name), "time": "0"}
    )


def _checked(case: Element, check: Check, *, is_failed: bool) -> None:
    properties = SubElement(case, "properties")
    numbers = {
        "threshold": check.threshold,
        "value": check.value,
        "low": check.low,
        "high": check.high,
        "decided": check.decided,
        "n": check.n,
    }
    for name, value in numbers.items():
        if value is not None:
            SubElement(properties, "property", {"name": name, "value": repr(value)})
    text = sentence(check)
    if is_failed:
        _failure(case, text, check.kind)
    elif check.outcome in UNDECIDED:
        message = f"{UNDECIDED[check.outcome]}: {text}"
        SubElement(case, "skipped", {"message": _xml(message)})


def _failure(case: Element, message: str, kind: str) -> None:
    SubElement(case, "failure", {"message": _xml(message), "type": kind}).text = _xml(message)


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", visible(text))
