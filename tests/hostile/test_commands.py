"""Every command that reads or writes, over a corpus and a set that an enemy made."""

import csv
import json
import xml.etree.ElementTree as ElementTree

import pytest
from hostile_commands import CRASHED, MOST_MB, ran
from hostile_corpus import make_hostile_set, numbered, write_documents

from ragforge.mock import Script, serving

MIN = ("--min", "nDCG@10=0.99", "--allow-baseline-judge", "--allow-holes")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def commands(url):
    """Yield the words of all of them, in the order in which a user would come to them."""
    model = ("--model", "mock", "--base-url", url)
    yield "chunk", "docs", "--out", "chunks.jsonl"
    yield "chunk", "docs", "--report", "--out", "again.jsonl"
    yield "chunk", "docs", "--report", "--json", "--out", "again.jsonl"
    yield "generate", "--documents", "docs", "-n", "6", "--out", "offline"
    yield "generate", "--documents", "docs", "-n", "4", "--out", "modelled", *model
    yield "import", "golden.jsonl", "--documents", "docs", "--out", "brought", "--allow-missing"
    yield "validate", "--dataset", "brought"
    yield "retrieve", "--dataset", "brought", "--retriever", "bm25", "-k", "3"
    yield "judge", "--dataset", "brought", *model
    yield "evaluate", "--dataset", "brought", "--per-query"
    yield "report", "--dataset", "brought", "--out", "brought.html"
    yield "refresh", "--documents", "docs", "--dataset", "offline", "--dry-run"
    yield "refresh", "--documents", "docs", "--dataset", "offline"
    yield "diff", "--dataset", "offline", "--since", "1"
    yield from on_set("set", url)


def on_set(name, url):
    """Yield those that work on a set in which every text is an attack."""
    on = ("--dataset", name)
    yield "validate", *on
    yield "retrieve", *on, "--retriever", "bm25", "-k", "5"
    yield "judge", *on
    yield "answer", *on, "--answers", "answers.jsonl", "--name", "brought"
    yield (
        "answer",
        *on,
        "--answers",
        "answers.jsonl",
        "--name",
        "modelled",
        "--model",
        "mock",
        "--base-url",
        url,
    )
    yield "ground", *on, "--system-name", "system", "--out", "grounded.jsonl"
    yield "ground", "--answers", "traffic.jsonl", "--out", "traffic-grounded.jsonl"
    yield "evaluate", *on, "--per-query", "--interval"
    yield "evaluate", *on, "--per-query", "--json"
    yield "history", *on
    yield "history", *on, "--json"
    yield "compare", *on, "near", "far", "--moved", "5"
    yield "compare", *on, "--json"
    yield "compare", *on, "--answers"
    yield "worst", *on
    yield "worst", *on, "--json"
    for ending in ("html", "md", "txt"):
        yield "report", *on, "--out", f"set.{ending}"
    yield "report", *on
    yield "report", *on, "--json"
    yield "review", "export", *on, "--out", "review.html", "--sample", "40"
    yield "review", "export", *on, "--out", "review.csv", "--sample", "40"
    yield "review", "import", "decided.csv", *on, "--reviewer", "::error::\x1b[31mAnn"
    yield "gate", *on, "--run", "far", *MIN, "--github", "--junit", "g.xml", "--markdown", "g.md"
    yield "gate", *on, "--run", "far", *MIN, "--json"
    yield "gate", *on, "--answers", "system", "--min", "correct=0.9", "--github"
    yield "gate", *on, *MIN, "--github"
    yield "diff", name, "offline"


def write_inputs(folder):
    """Write what the commands take: a golden set, answers, traffic."""
    texts = [text for _, text in numbered("http://127.0.0.1:9")]
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    golden = [
        {
            "query_id": f"{text} {n}",
            "query": f"{text} {n}?",
            "expected_answer": text,
            "category": text,
            "relevant": [{"doc_id": f"part-{n:02}.md", "quote": f"beeswax {n}", "grade": 3}],
        }
        for n, text in enumerate(texts)
    ]
    answers = [
        {"query_id": f"{text} {n:02}".replace("\x00", "").strip(), "answer": text}
        for n, text in enumerate(texts)
    ]
    traffic = [
        {"query_id": f"{n}", "query": text, "answer": f"It is {text} [1].", "contexts": [text]}
        for n, text in enumerate(texts)
    ]
    for name, rows in (("golden", golden), ("answers", answers), ("traffic", traffic)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def decide(folder):
    """Approve every query of the sheet, as a reviewer does in a spreadsheet."""
    with (folder / "review.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with (folder / "decided.csv").open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, "decision": "approve"} for row in rows)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where all of it lies."""
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def all_ran(place):
    """What came of each command."""
    write_documents(place / "docs")
    make_hostile_set(place / "set")
    write_inputs(place)
    made = []
    with serving(Script()) as endpoint:
        for words in commands(endpoint.url):
            if "decided.csv" in words:
                decide(place)
            made.append(ran(place, *words, GITHUB_STEP_SUMMARY=str(place / "summary.md")))
    return made


def test_no_command_crashes(all_ran):
    """What cannot be read is told with its reason; a bug or a signal is no reason."""
    assert [r for r in all_ran if r.code < 0 or r.code in (CRASHED, 3)] == []


def test_no_command_prints_what_a_terminal_obeys(all_ran):
    """Else a document writes the title of the window, or hides the line that tells of it."""
    assert [(r.words, r.raw) for r in all_ran if r.raw] == []


def test_no_command_prints_what_a_ci_service_obeys(all_ran):
    """Else a document sets the outputs of the job that reads it."""
    assert [(r.words, r.obeyed) for r in all_ran if r.obeyed] == []


def test_no_command_takes_much_memory(all_ran):
    """A few kilobytes from a stranger must not take a machine down."""
    assert [(r.words, r.mb) for r in all_ran if r.mb > MOST_MB] == []


def test_no_cell_of_a_sheet_is_a_formula(all_ran, place):
    """Reviewers open it in a spreadsheet, which runs what it takes for formulas."""
    with (place / "review.csv").open(encoding="utf-8-sig", newline="") as stream:
        cells = [cell for row in csv.reader(stream) for cell in row]

    assert len(cells) > 500
    assert [cell for cell in cells if cell.startswith(FORMULA)] == []


def test_decisions_find_queries_whose_ids_are_formulas(all_ran):
    """What keeps a spreadsheet from running a cell must be taken off when it comes back."""
    [imported] = [r for r in all_ran if r.words[:2] == ("review", "import")]

    assert (imported.code, "37" in imported.out + imported.err) == (0, True)


def test_the_junit_file_has_one_test_for_each_rule(all_ran, place):
    """A run or a query must not forge a passed test."""
    root = ElementTree.parse(place / "g.xml").getroot()

    assert [case.get("name") for case in root.iter("testcase")] == ["min nDCG@10"]
    assert len([*root.iter("failure")]) == 1


@pytest.mark.parametrize("name", ["summary.md", "g.md", "set.md", "set.txt"])
def test_texts_for_people_hold_nothing_hidden_and_no_element(all_ran, place, name):
    """Markdown is shown by services that let some HTML through, and pages on terminals."""
    text = (place / name).read_text(encoding="utf-8")
    elements = [tag for tag in ("<script", "<img", "<iframe", "<svg", "<meta") if tag in text]

    assert [char for char in "\x1b\x9b\x9d\x00\x07\u202e\u200b" if char in text] == []
    assert (name.endswith(".txt") or elements) in (True, [])
