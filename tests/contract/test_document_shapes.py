"""The shapes of hand-made sets whose labels name documents, taken through the commands to numbers.

Every number is computed by hand, in the comment above it; no model takes part.
"""

import json
from pathlib import Path

import pytest

from ragforge.cli import main

WORDS = {"store": "opening", "service": "repair", "faq": "questions", "tea": "tea"}
GOLDEN = [
    {"query": "opening hours", "relevant": ["store.md"], "category": "shop"},
    {"query": "repair times", "relevant": ["service.md", "faq.md"], "difficulty": "easy"},
]
TEST_CASES = [
    {"question": "opening hours", "relevant_doc_ids": ["shop/store.md"]},
    {"question": "repair times", "relevant_doc_ids": ["shop/service.md", "shop/faq.md"]},
]
SHAPES = {"golden.json": GOLDEN, "test-cases.json": TEST_CASES}
SEARCH = """
import json
from pathlib import Path

def chunk_id(name):
    doc, place = name.split("#")
    rows = map(json.loads, Path("set/chunks.jsonl").read_text("utf-8").splitlines())
    found = [row for row in rows if row["doc_id"] == f"shop/{doc}.md"]
    return sorted(found, key=lambda row: row["start"])[int(place)]["chunk_id"]

CHUNKS = {
    "opening hours": ["faq#0", "faq#1", "store#1", "store#0"],
    "repair times": ["service#1", "service#0", "tea#0", "faq#1"],
}
DOCUMENTS = {
    "opening hours": ["shop/faq.md", "shop/store.md"],
    "repair times": ["shop/service.md", "shop/tea.md", "shop/faq.md"],
}
PERFECT = {"opening hours": ["store#0"], "repair times": ["service#1", "service#0", "faq#0"]}

def search(query, k): return [chunk_id(name) for name in CHUNKS[query]]
def perfect(query, k): return [chunk_id(name) for name in PERFECT[query]]
def documents(query, k): return DOCUMENTS[query]
def same(query, k): return json.loads(Path("same.json").read_text("utf-8"))
def poor(query, k): return [chunk_id("tea#1"), chunk_id("tea#0")]
"""
# By documents, q1 ranks faq, store of the relevant store; q2 service, tea, faq of service and faq.
# P@3: 1/3 and 2/3. RR: 1/2 and 1. R@3: 1 and 1.
# nDCG@3: 1/log2(3) = 0.6309, and (1 + 1/2) / (1 + 1/log2(3)) = 0.9197.
EXPECTED = {"P@3": 0.5, "RR": 0.75, "R@3": 1.0, "nDCG@3": 0.7753}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with four documents of two chunks each, and retrievers for them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, word in WORDS.items():
        parts = [f"## Part {n}\n\n" + f"The {word} of the shop, part {n}.\n" * 4 for n in (1, 2)]
        write(f"docs/shop/{name}.md", "\n".join(parts))
    write("folded_search.py", SEARCH)
    return tmp_path


def write(name, content):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    Path(name).write_text(text, "utf-8")


def imported(name, content, *runs):
    write(name, content)
    source = ["--documents", "docs", "--max-chars", "150", "--out", "set", "-q"]
    assert main(["import", name, *source]) == 0
    for run in runs:
        spec = ["--retriever", f"folded_search:{run}", "--name", run]
        assert main(["retrieve", "--dataset", "set", *spec, "-q"]) == 0


def told(capsys, *words, code=0):
    capsys.readouterr()
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def means(found, run):
    return {name: round(of["mean"], 4) for name, of in found["runs"][run]["measures"].items()}


def measures(expected):
    return [word for name in expected for word in ("-m", name)]


@pytest.mark.parametrize("name", SHAPES)
def test_runs_of_chunks_come_to_the_numbers_of_their_documents(here, capsys, name):
    """Authors label files; that a retriever returns passages of them is no reason for other
    numbers."""
    imported(name, SHAPES[name], "search")

    found = told(capsys, "evaluate", "--dataset", "set", *measures(EXPECTED))

    assert means(found, "search") == EXPECTED
    assert found["queries_by_document"] == 2


@pytest.mark.parametrize("name", SHAPES)
def test_runs_of_documents_come_to_the_same_numbers_without_a_warning(here, capsys, name):
    """A retriever that returns files needs no folding, and its ids are known."""
    imported(name, SHAPES[name])
    capsys.readouterr()
    spec = ["--retriever", "folded_search:documents", "--name", "documents"]
    assert main(["retrieve", "--dataset", "set", *spec]) == 0
    assert "warning" not in capsys.readouterr().err

    found = told(capsys, "evaluate", "--dataset", "set", *measures(EXPECTED))

    assert means(found, "documents") == EXPECTED
    assert found["warnings"] == []


@pytest.mark.parametrize("name", SHAPES)
def test_runs_are_compared_by_documents(here, capsys, name):
    """The perfect run is ahead by what is missing to 1: RR 1 - 0.75."""
    imported(name, SHAPES[name], "search", "perfect")

    found = told(capsys, "compare", "--dataset", "set", "search", "perfect", "-m", "RR")

    [item] = found["comparisons"]
    assert (item["diff"], item["unjudged"]) == (0.25, None)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("least", "code"), [("0.75", 0), ("0.76", 1)])
def test_a_gate_on_documents_is_green_or_red(here, capsys, name, least, code):
    """RR is 0.75: at least 0.75 passes, 0.76 does not."""
    imported(name, SHAPES[name], "search")
    words = ["gate", "--dataset", "set", "--run", "search", "--min", f"RR={least}"]

    found = told(capsys, *words, "--min-queries", "2", "--point", code=code)

    assert found["verdict"] == ("FAIL" if code else "PASS")


@pytest.mark.parametrize("name", SHAPES)
def test_the_worst_query_shows_its_missed_document_by_name_and_text(here, capsys, name):
    """A document that was not found has no chunk in the ranking to be known by."""
    imported(name, SHAPES[name], "poor")

    found = told(capsys, "worst", "--dataset", "set", "-m", "RR", "-n", "2")

    worst = {item["query"]: item for item in found["runs"]["poor"]["worst"]}
    [missed] = worst["opening hours"]["missed"]
    assert worst["opening hours"]["cause"] == "not_retrieved"
    assert missed["chunk_id"] == "shop/store.md"
    assert missed["text"].startswith("## Part 1\n\nThe opening of the shop, part 1.")


@pytest.mark.parametrize("name", SHAPES)
def test_the_report_shows_documents(here, name):
    """Who reads the page looks for the names in the labels."""
    imported(name, SHAPES[name], "poor")

    assert main(["report", "--dataset", "set", "--out", "report.html", "-q"]) == 0

    page = (here / "report.html").read_text("utf-8")
    assert "shop/store.md" in page
    assert "The opening of the shop, part 1." in page


def test_a_set_of_documents_goes_out_as_trec_with_its_numbers(here, capsys):
    """Qrels and runs of one level belong together."""
    imported("golden.json", GOLDEN, "search")
    assert main(["export", "--dataset", "set", "--as", "trec", "--out", "out"]) == 0

    words = ["evaluate", "--qrels", "out/qrels.trec", "--run", "out/runs/search.trec"]

    assert means(told(capsys, *words, *measures(EXPECTED)), "search") == EXPECTED


def test_a_set_of_documents_goes_out_as_beir_with_documents_for_its_corpus(here):
    """A corpus of chunks would hold none of the ids of the qrels."""
    imported("golden.json", GOLDEN)

    assert main(["export", "--dataset", "set", "--as", "beir", "--out", "out"]) == 0

    rows = [json.loads(line) for line in Path("out/corpus.jsonl").read_text("utf-8").splitlines()]
    whole = Path("docs/shop/store.md").read_text("utf-8").strip()
    assert [row["_id"] for row in rows] == [f"shop/{name}.md" for name in sorted(WORDS)]
    assert rows[2]["text"] == whole


def test_a_set_of_documents_goes_out_as_json_and_comes_back(here, capsys):
    """What is exported measures as the set did."""
    imported("golden.json", GOLDEN, "search")
    assert main(["export", "--dataset", "set", "--as", "json", "--out", "out.json"]) == 0
    listed = {item["query"]: item for item in json.loads(Path("out.json").read_text())["queries"]}

    assert listed["repair times"]["relevant_doc_ids"] == ["shop/faq.md", "shop/service.md"]


def test_judgments_of_documents_are_not_measured_as_those_of_chunks(here, capsys):
    """Against a run of chunks every value would be 0, in silence."""
    imported("golden.json", GOLDEN, "search")
    capsys.readouterr()
    words = ["--qrels", "set/judgments.jsonl", "--run", "set/runs/search.jsonl"]

    assert main(["evaluate", *words]) == 3

    assert "is a whole document" in capsys.readouterr().err


def test_importing_twice_changes_nothing(here):
    """Files are imported again whenever somebody adds a line."""
    imported("golden.json", GOLDEN)
    before = {path.name: path.read_bytes() for path in Path("set").glob("*.json*")}

    assert main(["import", "golden.json", "--dataset", "set", "-q"]) == 0

    assert {path.name: path.read_bytes() for path in Path("set").glob("*.json*")} == before


def test_a_name_that_may_be_several_documents_is_refused(here, capsys):
    """To pick one would grade the wrong text; to drop it would raise recall."""
    write("docs/old/store.md", "## Part 1\n\nThe store as it was.")
    write("golden.json", GOLDEN)
    capsys.readouterr()

    assert main(["import", "golden.json", "--documents", "docs", "--out", "set", "-q"]) == 3

    assert "store.md (it may be any of old/store.md, shop/store.md)" in capsys.readouterr().err


def test_a_missing_document_stays_in_the_denominator(here, capsys):
    """R@3 of q1 is 1/2: store is found, and gone.md is in no corpus."""
    write("golden.json", [{"query": "opening hours", "relevant": ["store.md", "gone.md"]}])
    source = ["--documents", "docs", "--max-chars", "150", "--out", "set", "-q"]
    assert main(["import", "golden.json", *source]) == 3
    assert main(["import", "golden.json", *source, "--allow-missing"]) == 0
    spec = ["--retriever", "folded_search:search", "--name", "search"]
    assert main(["retrieve", "--dataset", "set", *spec, "-q"]) == 0

    found = told(capsys, "evaluate", "--dataset", "set", "-m", "R@3")

    assert means(found, "search") == {"R@3": 0.5}
    assert main(["validate", "--dataset", "set"]) == 0
    assert "1 relevant document of people's not in the corpus" in capsys.readouterr().err


def test_other_chunks_under_a_set_keep_labels_of_documents(here):
    """Labels of documents are what outlives another chunk size."""
    imported("golden.json", GOLDEN)
    before = Path("set/judgments.jsonl").read_bytes()
    words = ["generate", "--rederive", "--documents", "docs", "--out", "set", "-q"]

    assert main(words) == 0

    assert len(Path("set/chunks.jsonl").read_text("utf-8").splitlines()) == len(WORDS)
    assert Path("set/judgments.jsonl").read_bytes() == before


CHUNKS = [
    {"id": f"{name}#{place}", "document": f"{name}.md", "text": f"The {name} is sold in {place}."}
    for name in ("tea", "salt", "rice")
    for place in (0, 1)
]


def of_chunks(queries, ranking):
    """Make a set of ready-made chunks with a run that ranks the same for every query."""
    write("chunks.json", CHUNKS)
    write("golden.json", queries)
    write("same.json", ranking)
    words = ["import", "golden.json", "--chunks", "chunks.json", "--out", "set", "-q"]
    assert main(words) == 0
    spec = ["--retriever", "folded_search:same", "--name", "same"]
    assert main(["retrieve", "--dataset", "set", *spec, "-q"]) == 0


def test_a_set_may_hold_labels_of_documents_and_of_chunks(here, capsys):
    """Of tea#1, tea#0, salt#1: by documents tea is first, RR 1; by chunks salt#1 is third, 1/3."""
    queries = [{"query": "a", "relevant": ["tea.md"]}, {"query": "b", "relevant": ["salt#1"]}]
    of_chunks(queries, ["tea#1", "tea#0", "salt#1"])

    found = told(capsys, "evaluate", "--dataset", "set", "-m", "RR", "--per-query")

    values = sorted(round(of["RR"], 4) for of in found["runs"]["same"]["per_query"].values())
    assert values == [0.3333, 1.0]
    assert json.loads(Path("set/manifest.json").read_text())["level"] == "both"


def test_a_query_with_labels_of_both_levels_is_measured_by_documents(here, capsys):
    """tea.md and salt.md, for its chunk salt#1, are at ranks 1 and 2 of tea, salt: AP is 1."""
    queries = [{"query": "a", "relevant": ["tea.md", "salt#1"]}]
    of_chunks(queries, ["tea#1", "tea#0", "salt#0"])

    assert means(told(capsys, "evaluate", "--dataset", "set", "-m", "AP"), "same") == {"AP": 1.0}


def test_documents_in_a_ranking_of_a_query_about_chunks_are_told_of(here, capsys):
    """No document can be the chunk that is asked for: its 0 is not the retriever's."""
    queries = [{"query": "a", "relevant": ["tea.md"]}, {"query": "b", "relevant": ["salt#1"]}]
    of_chunks(queries, ["tea.md", "salt.md"])

    found = told(capsys, "evaluate", "--dataset", "set", "-m", "RR")

    assert found["warnings"] == [
        "run same: ranks documents for 1 queries whose labels name chunks; no document can be "
        "relevant there"
    ]


ANSWERED = [
    {**row, "expected_answer": said}
    for row, said in zip(GOLDEN, ("from nine to five", "two weeks"), strict=True)
]


@pytest.mark.parametrize(
    ("sources", "reading"),
    [
        ({"opening hours": ["store.md"], "repair times": ["tea.md"]}, "fix retrieval first"),
        ({"opening hours": ["store.md"], "repair times": ["tea.md", "faq.md"]}, "the model"),
    ],
)
def test_answers_with_documents_for_sources_are_diagnosed(here, capsys, sources, reading):
    """The first answer is right, and made from its document; the second is wrong."""
    imported("golden.json", ANSWERED)
    said = {"opening hours": "from nine to five", "repair times": "ten metres"}
    rows = [
        {"query": query, "generatedAnswer": said[query], "retrievedDocs": sources[query]}
        for query in said
    ]
    write("answers.json", rows)
    words = ["answer", "--dataset", "set", "--answers", "answers.json", "--name", "rag"]

    found = told(capsys, *words)

    [diagnosis] = found["diagnosis"]
    readings = {name: of["count"] for name, of in diagnosis["readings"].items() if of["count"]}
    assert readings == {"working": 1, reading: 1}


def test_documents_for_sources_are_held_against_labels_of_chunks(here, capsys):
    """The label names a chunk of tea.md, and the source all of it: retrieval was good."""
    queries = [{"query": "a", "relevant": ["tea#1"], "expected_answer": "in a shop"}]
    of_chunks(queries, ["tea#1"])
    write("answers.json", [{"query": "a", "answer": "in a shop", "contexts": ["tea.md"]}])

    found = told(capsys, "answer", "--dataset", "set", "--answers", "answers.json")

    [diagnosis] = found["diagnosis"]
    assert diagnosis["readings"]["working"]["count"] == 1


LOGS = [
    {"queryId": "u-1", "query": "opening hours", "retrievedDocs": ["faq.md", "store.md"]},
    {
        "queryId": "u-2",
        "query": "repair times",
        "retrievedDocs": ["service.md", "tea.md", "faq.md"],
    },
]
LABELS = {
    "u-1": {"relevantDocs": ["store.md"], "correctAnswer": "from nine to five"},
    "u-2": {"relevantDocs": ["service.md", "faq.md"]},
}


def test_logs_that_name_documents_become_queries_and_a_run_of_documents(here, capsys):
    """Both labels and rankings are as their authors have them: the numbers are those above."""
    write("logs.json", LOGS)
    write("labels.json", LABELS)
    words = ["import", "--logs", "logs.json", "--labels", "labels.json", "--documents", "docs"]
    assert main([*words, "--max-chars", "150", "--out", "set", "-q"]) == 0

    found = told(capsys, "evaluate", "--dataset", "set", *measures(EXPECTED))

    assert means(found, "logs") == EXPECTED
    assert found["queries_by_document"] == 2
    assert main(["validate", "--dataset", "set"]) == 0


def test_a_judge_grades_chunks_and_leaves_labels_of_documents(here, capsys):
    """A person's grade of a document stands over those of its chunks, and is none of theirs."""
    imported("golden.json", GOLDEN, "search")
    labels = Path("set/judgments.jsonl").read_text("utf-8").splitlines()

    assert main(["judge", "--dataset", "set", "--run", "search", "-q"]) == 0

    rows = [json.loads(line) for line in Path("set/judgments.jsonl").read_text().splitlines()]
    whole = [row for row in rows if row.get("level") == "document"]
    # Four chunks of each ranking are judged.
    assert (len(whole), len(rows) - len(whole)) == (len(labels), 8)
    assert {row["source"] for row in rows if "level" not in row} == {"judge"}
    found = told(capsys, "evaluate", "--dataset", "set", "-m", "RR")
    assert not found["labels_complete"]


def test_agreement_with_people_leaves_whole_documents_out(here, capsys):
    """A judge never saw a document: its grade of a chunk is no answer to that label."""
    imported("golden.json", GOLDEN)
    capsys.readouterr()

    assert main(["judge", "--dataset", "set", "--on-labels", "-q"]) == 3

    assert "people graded no chunk" in capsys.readouterr().err
