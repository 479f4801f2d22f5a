"""The verdict in every form: same facts, and nothing in the data that does anything."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from ragforge.evaluating.comparison import MovedQuery
from ragforge.evaluating.formatting import harmless
from ragforge.evaluating.gate import Check, CheckPower, Refusal, Verdict, power_text, verdict_json
from ragforge.evaluating.history.changes import Change
from ragforge.records import Digests, Evaluation, Spending
from ragforge.report.gate import (
    annotations,
    code_span,
    cut,
    render_gate,
    render_gate_markdown,
    step_summary,
)
from ragforge.report.junit import render_junit

FAILED = Check(
    kind="min",
    measure="nDCG@10",
    threshold=0.7,
    value=0.72,
    low=0.66,
    high=0.78,
    decided_on="low end of the interval",
    decided=0.66,
    n=43,
    n_failed=0,
    outcome="FAIL",
    text="nDCG@10 is 0.72, but could be as low as 0.66.",
    power=CheckPower(0.09, 0.045, 160),
)
PASSED = Check(
    kind="max-drop",
    measure="RR",
    threshold=0.02,
    value=0.01,
    low=-0.01,
    high=0.03,
    decided_on="low end of the interval",
    decided=-0.01,
    n=43,
    n_failed=0,
    outcome="PASS",
    text="RR changed by +0.01 on 43 items.",
)


def evaluation(**changed):
    fields = {
        "evaluation_id": "0" * 16,
        "at": "",
        "dataset": "set",
        "version": 3,
        "run": "bm25",
        "rel_threshold": 2,
        "n_queries": 43,
        "n_failed": 0,
        "n_retrieved": 430,
        "n_holes": 0,
        "measures": {},
        "graders": (),
        "digests": Digests(corpus="a", queries="b", judgments="c", rankings="d", prompts="e"),
        "spent": Spending(calls=0, prompt_tokens=0, completion_tokens=0, cost_usd=None),
        "timing": None,
        "tool_version": "1",
    }
    return Evaluation.model_validate(fields | changed)


@pytest.fixture
def verdict():
    """One check that failed and one that passed, against a baseline."""
    return Verdict(
        outcome="FAIL",
        evaluation=evaluation(),
        baseline=evaluation(run="old"),
        checks=(FAILED, PASSED),
        refusals=(),
        notes=("some grades are of the offline baseline judge",),
        changes=(Change("corpus", "The corpus is another."),),
        fallen=(MovedQuery("q17", "What is a locker?", 1.0, 0.0),),
        fallen_by="RR",
    )


@pytest.fixture
def refused(verdict):
    """The same, with a reason to decide nothing."""
    checks = tuple(replace(check, outcome="OPEN") for check in verdict.checks)
    refusals = (Refusal("3 queries have a value", "few"), Refusal("nothing is the same", None))
    return replace(verdict, outcome="REFUSED", checks=checks, refusals=refusals)


@pytest.fixture
def hostile(verdict, hostile_texts):
    """Every text is one of those that try something."""

    def make(text):
        return replace(
            verdict,
            evaluation=evaluation(dataset=text, run=text),
            baseline=evaluation(dataset=text, run=text),
            checks=tuple(replace(check, text=text, measure=text) for check in verdict.checks),
            refusals=(Refusal(text, "few"),),
            notes=(text,),
            changes=(Change("corpus", text),),
            fallen=(MovedQuery(text, text, 1.0, 0.0),),
            fallen_by=text,
        )

    return make


COMMANDS = (
    "::error title=owned::x",
    "a\n::set-output name=x::y",
    "a\r::stop-commands::z",
    "##[add-path]/tmp",
    "  ::add-mask::s",
    "word " * 19 + "::warning::wrapped to the start of a line",
)


def test_power_is_told_in_one_sentence():
    """What to do about a check that failed is more than a number."""
    expected = "43 queries can only show means that are 0.090 above the threshold; 160 more would"

    assert power_text(FAILED) == f"{expected} show 0.045."


def test_power_of_a_drop_speaks_of_drops():
    """The same figure means something else there."""
    check = replace(PASSED, power=CheckPower(0.09, 0.05, 160), outcome="FAIL")

    expected = "43 queries can only show drops of 0.090; 160 more would show 0.050."
    assert power_text(check) == expected


def test_power_of_a_check_that_passed_says_that_it_was_close():
    """Beside a pass, what cannot be shown reads like a contradiction."""
    check = replace(PASSED, power=CheckPower(0.09, 0.05, 160))

    assert power_text(check).startswith("It was close: 43 queries can only be relied on to show")


def test_json_holds_verdict_checks_and_power(verdict):
    """Scripts read this rather than the table."""
    found = json.loads(json.dumps(verdict_json(verdict), allow_nan=False))

    assert found["verdict"] == "FAIL"
    assert found["checks"][0]["name"] == "min nDCG@10"
    assert found["checks"][0]["power"]["n_more"] == 160


def test_json_names_the_flag_of_each_refusal(refused):
    """A script may decide to allow it."""
    assert verdict_json(refused)["refusals"] == [
        {"reason": "3 queries have a value", "flag": "--allow-few"},
        {"reason": "nothing is the same", "flag": ""},
    ]


def test_text_shows_every_check(verdict):
    """The log of a CI job is what people read first."""
    lines = render_gate(verdict).splitlines()

    assert lines[:2] == [
        "who graded is not recorded",
        "gate: FAIL: shown not to be held: min nDCG@10.",
    ]
    assert [" ".join(line.split()) for line in lines if line.startswith(("min", "max"))] == [
        "min nDCG@10 0.7000 0.7200 0.6600 to 0.7800 43 low end of the interval 0.6600 FAIL",
        "max-drop RR 0.0200 +0.0100 -0.0100 to +0.0300 43 low end of the interval -0.0100 PASS",
    ]


def test_text_shows_what_changed_and_what_fell(verdict):
    """They say where to look."""
    text = render_gate(verdict)

    assert "what changed since the baseline:\n- The corpus is another." in text
    assert re.search(r"q17 +1\.0000 +0\.0000 +What is a locker\?", text)


def test_text_of_a_refusal_names_the_flag(refused):
    """Nobody should have to search for it."""
    text = render_gate(refused)

    assert "- 3 queries have a value (allow with --allow-few)" in text
    assert text.count("not decided") == 2


@pytest.mark.parametrize("text", COMMANDS)
def test_no_line_of_the_text_is_a_workflow_command(hostile, text):
    """A query of the set would set outputs of the job that tests it."""
    lines = render_gate(hostile(text)).splitlines()

    assert [line for line in lines if line.lstrip().startswith("::") or "##[" in line] == []


def test_words_that_are_no_command_stay_as_they_are():
    """Queries about C++ are to be read."""
    assert harmless("what does std::vector::at ## do") == "what does std::vector::at ## do"


def test_text_holds_no_control_characters(hostile, hostile_texts):
    """A terminal would obey them."""
    text = render_gate(hostile(hostile_texts[4]))

    assert re.findall("[\x00-\x09\x0b-\x1f\u200b\u202a-\u202e\u2066-\u2069]", text) == []


def test_markdown_begins_with_a_hidden_marker(verdict):
    """A bot replaces its comment rather than adding one a push."""
    text = render_gate_markdown(verdict)

    assert text.splitlines()[:4] == [
        "<!-- ragforge gate set bm25 -->",
        "## ❌ ragforge gate: FAIL: shown not to be held: min nDCG@10.",
        "",
        "who graded is not recorded",
    ]


def test_the_marker_cannot_be_closed_from_within(hostile):
    """What stands behind it would be markup."""
    first = render_gate_markdown(hostile("--> <b>x")).splitlines()[0]

    assert first == "<!-- ragforge gate b-x b-x -->"


def test_markdown_has_checks_sentences_and_queries(verdict):
    """It stands alone, beside a diff."""
    text = render_gate_markdown(verdict)

    assert "| min nDCG@10 | 0.7000 | 0.7200 | 0.6600 to 0.7800 | 43 |" in text
    assert "160 more would show 0.045" in text
    assert "- ` q17 ` 1.0000 → 0.0000 ` What is a locker? `" in text


@pytest.mark.parametrize("index", range(7))
def test_markdown_of_hostile_texts_is_no_markup(hostile, hostile_texts, index):
    """Hosts render it: no element, link, mention or heading may come from data."""
    markdown = render_gate_markdown(hostile(hostile_texts[index]))
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)

    outside_of_code = re.sub(r"<code>.*?</code>", "", rendered, flags=re.DOTALL)
    tags = set(re.findall(r"</?([a-zA-Z]+[0-9]?)", outside_of_code))
    assert tags <= {"h2", "h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize(
    "text", ["@everyone", "see org/repo#12", "#12", "a@b.example", "GH-7", "https://x.example"]
)
def test_markdown_makes_no_mention_or_reference_of_data(hostile, text):
    """A query would call people, or appear in other repositories."""
    rendered = render_gate_markdown(hostile(text))
    outside_of_code = re.sub(r"` .*? `", "", rendered)

    assert text not in outside_of_code.split("-->", 1)[1]


def test_code_spans_hold_their_own_marks():
    """Backticks would end them, and what follows were markup."""
    assert code_span("a `` b ` <b>") == "``` a `` b ` <b> ```"


def test_markdown_stays_below_its_limit(verdict):
    """A comment that is too long is refused as a whole."""
    many = replace(verdict, fallen=tuple(MovedQuery(f"q{n}", "ü" * 160, 1, 0) for n in range(500)))
    text = render_gate_markdown(many)

    assert len(text.encode()) < 60_000
    assert text.endswith("` |\n") or text.endswith("prints all of it._\n")


def test_what_fits_is_not_cut():
    """The note would be wrong."""
    assert cut("a\nb\n", 5) == "a\nb\n"


def test_a_text_is_cut_at_a_line():
    """Half a line may be half an escape."""
    kept = cut("first line\n" * 30, 200)

    assert kept.startswith("first line\nfirst line\n")
    assert len(kept.encode()) < 200
    assert kept.splitlines()[-1].startswith("_Cut here")


def test_without_room_nothing_is_left():
    """A note alone tells nothing."""
    assert cut("long line\n" * 30, 20) == ""


def test_junit_has_a_case_a_check(verdict):
    """CI services list them by name."""
    suite = ElementTree.fromstring(render_junit(verdict)).find("testsuite")

    assert [case.get("name") for case in suite.findall("testcase")] == [
        "min nDCG@10",
        "max-drop RR",
    ]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")


def test_junit_says_why_a_check_failed(verdict):
    """The message is what a merge request shows."""
    [failure] = ElementTree.fromstring(render_junit(verdict)).iter("failure")

    assert failure.get("message").startswith("nDCG@10 is 0.72, but could be as low as 0.66. 43")
    assert failure.get("type") == "min"


def test_junit_of_a_refusal_fails_it_and_skips_the_checks(refused):
    """A suite without a failure would be green."""
    suite = ElementTree.fromstring(render_junit(refused)).find("testsuite")

    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "2")
    assert len(list(suite.iter("failure"))) == 2
    assert len(list(suite.iter("skipped"))) == 2


def test_junit_carries_numbers_as_properties(verdict):
    """Dashboards read them."""
    case = ElementTree.fromstring(render_junit(verdict)).find("testsuite/testcase")
    found = {item.get("name"): item.get("value") for item in case.iter("property")}

    assert found["low"] == "0.66"


@pytest.mark.parametrize("text", ["a\x00b\x1b[31m", "\ufffe\uffff", "]]><x/>", "&<\"'"])
def test_junit_of_hostile_texts_is_xml(hostile, text):
    """A character that XML cannot hold would make a service drop the whole report."""
    root = ElementTree.fromstring(render_junit(hostile(text)).encode("utf-8"))

    assert {item.tag for item in root.iter()} <= {
        *("testsuites", "testsuite", "testcase", "properties", "property"),
        *("failure", "skipped", "system-out"),
    }


def test_annotations_name_what_failed(verdict):
    """They stand at the top of a job's page."""
    lines = annotations(verdict)

    assert lines[0].startswith("::error title=gate min nDCG@10::nDCG@10 is 0.72, but")
    assert lines[-1].startswith(
        "::notice title=ragforge gate::FAIL: shown not to be held: min nDCG@10. set version 3"
    )


def test_annotations_escape_what_ends_them(hostile):
    """A title ends at a colon or comma, a command at a line feed."""
    line = annotations(hostile("50%, a:b;c"))[1]

    assert line.startswith("::error title=gate min 50%25%2C a%3Ab%3Bc::50%25, a:b;c")


@pytest.mark.parametrize("text", COMMANDS)
def test_an_annotation_is_one_line_and_one_command(hostile, text):
    """A second command in a message would be obeyed."""
    lines = annotations(hostile(text))

    assert [len(line.splitlines()) for line in lines] == [1] * len(lines)
    assert [line for line in lines if "##[" in line] == []


def test_at_most_ten_errors_are_annotated(verdict):
    """GitHub drops what comes beyond without a word."""
    many = replace(verdict, checks=(FAILED,) * 12)
    errors = [line for line in annotations(many) if line.startswith("::error")]

    assert len(errors) == 10
    assert errors[-1] == "::error title=gate::3 more failed; see the summary"


def test_a_step_summary_takes_the_room_that_is_left(verdict):
    """Beyond 1 MiB the whole summary is dropped, that of other steps too."""
    there = 1024 * 1024 - 700

    assert 0 < len(step_summary(verdict, there).encode()) < 700


def test_a_full_step_summary_gets_nothing(verdict):
    """Better none of ours than none at all."""
    assert step_summary(verdict, 1024 * 1024) == ""


@pytest.mark.parametrize("fail_on", ["regression", "not-shown"])
def test_what_is_not_shown_is_a_warning_unless_it_stops_the_run(verdict, fail_on):
    """A red mark for an open question teaches people to ignore red marks."""
    open_ = replace(PASSED, outcome="NOT_SHOWN")
    found = replace(verdict, outcome="NOT_SHOWN", checks=(open_,), fail_on=fail_on)

    told = annotations(found)
    suite = ElementTree.fromstring(render_junit(found))[0]

    stops = fail_on == "not-shown"
    assert told[0].startswith("::error" if stops else "::warning")
    assert (suite.get("failures"), suite.get("skipped")) == (("1", "0") if stops else ("0", "1"))
    assert "not shown" in render_gate(found)
    assert (
        render_gate_markdown(found)
        .splitlines()[1]
        .startswith("## ❔ ragforge gate: NOT SHOWN either way by these queries")
    )
