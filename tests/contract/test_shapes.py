"""The shapes of hand-made sets that people have, taken through the commands to numbers.

Every number is computed by hand, in the comment above it; no model takes part.
"""

import json
from pathlib import Path

import pytest

from ragforge.cli import main

CHUNKS = [
    {"id": name, "document": f"{name}.md", "text": f"The {word} is sold by weight."}
    for name, word in zip("abcdex", ("tea", "rice", "salt", "flour", "oil", "corn"), strict=True)
]
QUERIES_OBJECT = {
    "queries": [
        {
            "id": "q1",
            "query": "what is sold",
            "relevant_doc_ids": ["a", "b", "c"],
            "graded_relevance": {"a": 3, "b": 2, "c": 1},
        },
        {"id": "q2", "query": "how is flour sold", "relevant_doc_ids": ["d"]},
    ]
}
GOLDEN = [
    {"query": "what is sold", "relevant": ["a", "b", "c"], "category": "shop"},
    {"query": "how is flour sold", "relevant": ["d"], "difficulty": "easy"},
]
TEST_CASES = [
    {"question": "what is sold", "relevant_doc_ids": ["a", "b", "c"]},
    {"question": "how is flour sold", "relevant_doc_ids": ["d"]},
]
CAMEL_CASE = [
    {
        "query": "what is sold",
        "retrievedDocs": ["c", "x", "a"],
        "relevantDocs": ["a", "b", "c"],
        "relevanceScores": {"a": 3, "b": 2, "c": 1, "x": 0},
    },
    {"query": "how is flour sold", "retrievedDocs": ["x", "d"], "relevantDocs": ["d"]},
]
TABLE = "query,relevant_doc_ids\nwhat is sold,a;b;c\nhow is flour sold,d\n"
RANKINGS = {"what is sold": ["c", "x", "a"], "how is flour sold": ["x", "d"]}
BETTER = {"what is sold": ["a", "b", "c"], "how is flour sold": ["d", "x"]}

# q1 ranks c, x, a of the relevant a, b, c; q2 ranks x, d of the relevant d.
# P@3: 2/3 and 1/3. RR: 1 and 1/2. R@3: 2/3 and 1.
BINARY = {"P@3": 0.5, "RR": 0.75, "R@3": 0.8333}
# nDCG@3 by grades: q1 (1 + 3/2) / (3 + 2/log2(3) + 1/2) = 0.5250, q2 (1/log2(3)) / 1 = 0.6309.
GRADED = {**BINARY, "nDCG@3": 0.578}
# nDCG@3 of equal grades: q1 (1 + 1/2) / (1 + 1/log2(3) + 1/2) = 0.7039, q2 0.6309.
EQUAL = {**BINARY, "nDCG@3": 0.6674}
# Lists that no threshold explains. q1: c is listed without a grade, x has grade 3 and is not.
LISTS = [
    {
        "query": "what is sold",
        "relevant": ["a", "b", "c"],
        "graded_relevance": {"a": 1, "b": 2, "x": 3},
    },
    {"query": "how is flour sold", "relevant": ["d"]},
]
LISTS_TABLE = (
    "query,relevant_doc_ids,graded_relevance\n"
    'what is sold,a;b;c,"{""a"": 1, ""b"": 2, ""x"": 3}"\n'
    "how is flour sold,d,\n"
)
# nDCG@3 by the grades that are there: q1 (3/log2(3) + 1/2) / (3 + 2/log2(3) + 1/2) = 0.5025, q2
# 0.6309. The list decides the others.
BY_LIST = {**BINARY, "nDCG@3": 0.5667}
SHAPES = {
    "queries.json": (QUERIES_OBJECT, GRADED),
    "golden.json": (GOLDEN, EQUAL),
    "cases.json": (TEST_CASES, EQUAL),
    "items.json": (CAMEL_CASE, GRADED),
    "table.csv": (TABLE, EQUAL),
    "lists.json": (LISTS, BY_LIST),
    "lists.csv": (LISTS_TABLE, BY_LIST),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with chunks and two retrievers, one of them perfect."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    write("chunks.json", CHUNKS)
    module = f"found = {RANKINGS!r}\nbetter = {BETTER!r}\n"
    module += "def search(query, k): return found[query]\n"
    module += "def perfect(query, k): return better[query]\n"
    (tmp_path / "shop_search.py").write_text(module, "utf-8")
    return tmp_path


def write(name, content):
    text = content if isinstance(content, str) else json.dumps(content)
    Path(name).write_text(text, "utf-8")


def imported(name, content):
    write(name, content)
    words = ["import", name, "--chunks", "chunks.json", "--out", "set", "-q"]
    assert main(words) == 0
    for run in ("search", "perfect"):
        spec = ["--retriever", f"shop_search:{run}", "--name", run]
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
def test_a_set_of_each_shape_comes_to_the_numbers_of_its_author(here, capsys, name):
    """Import, retrieve, evaluate: the list decides binary measures, grades decide nDCG."""
    content, expected = SHAPES[name]
    imported(name, content)

    found = told(capsys, "evaluate", "--dataset", "set", *measures(expected))

    assert means(found, "search") == expected


@pytest.mark.parametrize("name", SHAPES)
def test_a_file_of_each_shape_comes_to_the_same_numbers(here, capsys, name):
    """The same without a dataset: a file of labels and a file of rankings."""
    content, expected = SHAPES[name]
    write(name, content)
    by_id = {"q1": RANKINGS["what is sold"], "q2": RANKINGS["how is flour sold"]}
    write("run.json", by_id if name == "queries.json" else RANKINGS)

    found = told(capsys, "evaluate", "--qrels", name, "--run", "run.json", *measures(expected))

    assert means(found, "run") == expected


def test_one_file_may_hold_labels_and_rankings(here, capsys):
    """Tutorials keep what is relevant beside what was retrieved."""
    write("items.json", CAMEL_CASE)
    words = ["evaluate", "--qrels", "items.json", "--run", "items.json", *measures(GRADED)]

    assert means(told(capsys, *words), "items") == GRADED


@pytest.mark.parametrize("name", SHAPES)
def test_runs_on_a_set_of_each_shape_are_compared(here, capsys, name):
    """The perfect run is ahead by what is missing to 1: RR 1 - 0.75."""
    imported(name, SHAPES[name][0])

    found = told(capsys, "compare", "--dataset", "set", "search", "perfect", "-m", "RR")

    [item] = found["comparisons"]
    assert (item["a"], item["b"], item["diff"], item["unjudged"]) == (
        "search",
        "perfect",
        0.25,
        None,
    )


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("least", "code"), [("0.75", 0), ("0.76", 1)])
def test_a_gate_on_a_set_of_each_shape_is_green_or_red(here, capsys, name, least, code):
    """RR is 0.75: at least 0.75 passes, 0.76 does not; no label is missing."""
    imported(name, SHAPES[name][0])
    words = ["gate", "--dataset", "set", "--run", "search", "--min", f"RR={least}"]

    found = told(capsys, *words, "--min-queries", "2", "--point", code=code)

    assert found["verdict"] == ("FAIL" if code else "PASS")


@pytest.mark.parametrize("name", SHAPES)
def test_the_worst_query_of_each_shape_is_the_one_ranked_low(here, capsys, name):
    """x is in no list, so it is not relevant and stands above the answer."""
    imported(name, SHAPES[name][0])

    found = told(capsys, "worst", "--dataset", "set", "--run", "search", "-m", "RR")

    [item] = found["runs"]["search"]["worst"]
    assert (item["query"], item["cause"]) == ("how is flour sold", "ranked_low")


@pytest.mark.parametrize("name", SHAPES)
def test_the_report_of_each_shape_says_which_reading_is_in_force(here, name):
    """Whoever reads the page must know what an unlisted chunk counts as."""
    imported(name, SHAPES[name][0])

    assert main(["report", "--dataset", "set", "--out", "report.html", "-q"]) == 0

    page = (here / "report.html").read_text("utf-8")
    assert "Labels are complete: what is not listed is not relevant." in page


@pytest.mark.parametrize("name", SHAPES)
def test_a_set_of_each_shape_goes_out_and_comes_back_with_its_numbers(here, capsys, name):
    """What is exported measures as the set did."""
    content, expected = SHAPES[name]
    imported(name, content)
    assert main(["export", "--dataset", "set", "--as", "json", "--out", "out.json"]) == 0
    rankings = {
        ranking["query_id"]: [hit["chunk_id"] for hit in ranking["ranking"]]
        for ranking in map(
            json.loads, Path("set/runs/search.jsonl").read_text("utf-8").splitlines()
        )
    }
    write("run.json", rankings)

    words = ["evaluate", "--qrels", "out.json", "--run", "run.json", *measures(expected)]

    assert means(told(capsys, *words), "run") == expected
