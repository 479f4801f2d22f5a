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
GENERATED = [
    {
        "query": "what is sold",
        "relevantDocIds": ["a", "b", "c"],
        "expectedAnswer": "Tea, rice and salt.",
        "difficulty": "easy",
        "sourceChunk": "a",
    },
    {
        "query": "how is flour sold",
        "relevantDocIds": ["d"],
        "expectedAnswer": "By weight.",
        "difficulty": "easy",
        "sourceChunk": "d",
    },
]
# What a system logged, and what people said of it, apart; nobody labelled u-3.
LOGS = [
    {"queryId": "u-1", "query": "what is sold", "retrievedChunkIds": ["c", "x", "a"]},
    {"queryId": "u-2", "query": "how is flour sold", "retrievedChunkIds": ["x", "d"]},
    {"queryId": "u-3", "query": "hello", "retrievedChunkIds": ["x"]},
]
LABELS = {
    "u-1": {"relevantChunkIds": ["a", "b", "c"], "correctAnswer": "Tea, rice and salt."},
    "u-2": {"relevantChunkIds": ["d"], "correctAnswer": "By weight."},
}
# nDCG@3 by the grades that are there: q1 (3/log2(3) + 1/2) / (3 + 2/log2(3) + 1/2) = 0.5025, q2
# 0.6309. The list decides the others.
BY_LIST = {**BINARY, "nDCG@3": 0.5667}
SHAPES = {
    "queries.json": (QUERIES_OBJECT, GRADED),
    "golden.json": (GOLDEN, EQUAL),
    "cases.json": (TEST_CASES, EQUAL),
    "items.json": (CAMEL_CASE, GRADED),
    "table.csv": (TABLE, EQUAL),
    "generated.json": (GENERATED, EQUAL),
    "logs.json": (LOGS, EQUAL),
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
    write("labels.json", LABELS)
    what = ["--logs", name, "--labels", "labels.json"] if name == "logs.json" else [name]
    assert main(["import", *what, "--chunks", "chunks.json", "--out", "set", "-q"]) == 0
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


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "logs.json"])
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


@pytest.mark.slow
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


def test_what_a_log_retrieved_is_measured_by_the_labels_beside_it(here, capsys):
    """The logged system ranked as `search` does; the question that nobody labelled is no query."""
    imported("logs.json", LOGS)

    found = told(capsys, "evaluate", "--dataset", "set", "--run", "logs", *measures(EQUAL))

    assert means(found, "logs") == EQUAL
    queries = map(json.loads, Path("set/queries.jsonl").read_text("utf-8").splitlines())
    assert {row["query_id"]: row["expected_answer"] for row in queries} == {
        "u-1": "Tea, rice and salt.",
        "u-2": "By weight.",
    }


def test_the_chunk_that_a_query_was_written_from_is_relevant_without_a_list(here, capsys):
    """a is at rank 3 and d at rank 2: RR (1/3 + 1/2) / 2, R@3 1."""
    rows = [{name: row[name] for name in row if name != "relevantDocIds"} for row in GENERATED]
    imported("generated.json", rows)

    found = told(capsys, "evaluate", "--dataset", "set", "-m", "RR", "-m", "R@3")

    assert means(found, "search") == {"RR": 0.4167, "R@3": 1.0}


# Two answers: one correct with score 1, one partial with 0.5. Correct 1/2, partial 1/2, score 0.75.
ANSWERS = {
    "totalQuestions": 2,
    "correctRate": 0.5,
    "partiallyCorrectRate": 0.5,
    "hallucinationRate": 0.0,
    "averageScore": 0.75,
    "perQuestion": [
        {
            "query": "what is sold",
            "aiAnswer": "Tea.",
            "groundTruth": "Tea, rice and salt.",
            "retrievedDocs": ["a", "x"],
            "isCorrect": False,
            "isPartiallyCorrect": True,
            "hasHallucination": False,
            "explanation": "rice and salt are missing",
            "score": 0.5,
        },
        {
            "query": "how is flour sold",
            "aiAnswer": "By weight.",
            "groundTruth": "By weight.",
            "retrievedDocs": ["d"],
            "isCorrect": True,
            "isPartiallyCorrect": False,
            "hasHallucination": False,
            "explanation": "same",
            "score": 1.0,
        },
    ],
}
RATES = {"correct": 0.5, "partial": 0.5, "score": 0.75, "hallucination": 0.0}
BETTER_ANSWERS = {
    "perQuestion": [
        {**row, "isCorrect": True, "isPartiallyCorrect": False, "score": 1.0}
        for row in ANSWERS["perQuestion"]
    ]
}


def answered(capsys, name, content):
    write(name, content)
    return told(capsys, "answer", "--dataset", "set", "--answers", name, "-q")


def test_answers_per_question_come_to_the_numbers_of_their_author(here, capsys):
    """No judge is asked; the first query is of the category shop, with a score of 0.5."""
    imported("golden.json", GOLDEN)

    found = answered(capsys, "mine.json", ANSWERS)

    assert {name: found["rates"][name]["mean"] for name in RATES} == RATES
    [shop] = [part for part in found["slices"] if part["value"] == "shop"]
    assert shop["rates"]["score"]["mean"] == 0.5
    # Both have a relevant chunk in their context: one works, one is up to the model.
    readings = found["diagnosis"][0]["readings"]
    assert (readings["working"]["count"], readings["the model"]["count"]) == (1, 1)


@pytest.mark.parametrize(("least", "code"), [("0.5", 0), ("0.51", 1)])
def test_a_gate_on_graded_answers_is_green_or_red(here, capsys, least, code):
    """Correct is 0.5: at least 0.5 passes, 0.51 does not."""
    imported("golden.json", GOLDEN)
    answered(capsys, "mine.json", ANSWERS)
    words = ["gate", "--dataset", "set", "--answers", "mine", "--min", f"correct={least}"]

    found = told(capsys, *words, "--min-queries", "2", "--point", code=code)

    assert found["verdict"] == ("FAIL" if code else "PASS")


def test_systems_graded_in_one_file_each_are_compared(here, capsys):
    """The other answers are all correct: 1 - 0.75 in score. Two files may be of two judges."""
    imported("golden.json", GOLDEN)
    answered(capsys, "mine.json", ANSWERS)
    answered(capsys, "other.json", BETTER_ANSWERS)

    found = told(capsys, "compare", "--dataset", "set", "--answers", "mine", "other")

    [score] = [item for item in found["comparisons"] if item["measure"] == "score"]
    assert (score["diff"], score["winner"]) == (0.25, "UNKNOWN")


def test_the_report_shows_answers_that_were_graded_elsewhere(here, capsys):
    """The page names the file as who graded."""
    imported("golden.json", GOLDEN)
    answered(capsys, "mine.json", ANSWERS)

    assert main(["report", "--dataset", "set", "--out", "report.html", "-q"]) == 0

    assert "mine (grades of a file)" in Path("report.html").read_text("utf-8")


# The words that count of the query are salt, sold, weight. The first chunk holds all three: grade
# 3; the second two, of three: grade 2; the third none: grade 0. Average 5/3.
QUERY_WITH_CHUNKS = {
    "query": "is salt sold by weight",
    "chunks": [
        {"id": "c", "text": "The salt is sold by weight."},
        {"id": "a", "text": "The tea is sold by weight."},
        {"text": "Opening hours are on the door."},
    ],
}
SUMMARY = {
    "totalChunks": 3,
    "relevantChunks": 2,
    "failedChunks": 0,
    "averageRelevance": 1.6667,
    "answerCoverage": "FULL",
}


def test_a_query_with_its_chunks_is_judged_and_summed_up(here, capsys):
    """By the offline baseline, which counts shared words; a chunk without id gets one."""
    write("pairs.json", QUERY_WITH_CHUNKS)

    found = told(capsys, "judge", "--pairs", "pairs.json", "--out", "judged.jsonl", "-q")

    [query] = found["queries"]
    of_query = {**query, "averageRelevance": round(query["averageRelevance"], 4)}
    assert of_query == {"query_id": "is salt sold by weight", **SUMMARY}


def test_what_was_judged_measures_a_ranking(here, capsys):
    """x, a, c: RR 1/2, and nDCG@3 (2/log2(3) + 3/2) / (3 + 2/log2(3)) = 0.6480."""
    write("pairs.json", QUERY_WITH_CHUNKS)
    words = ["judge", "--pairs", "pairs.json", "--out", "judged.jsonl", "-q"]
    assert main(words) == 0
    write("run.json", {"is salt sold by weight": ["x", "a", "c"]})

    words = ["evaluate", "--qrels", "judged.jsonl", "--run", "run.json", "-m", "RR", "-m", "nDCG@3"]

    assert means(told(capsys, *words), "run") == {"RR": 0.5, "nDCG@3": 0.648}


def test_systems_that_one_team_graded_in_two_files_are_compared(here, capsys):
    """Whoever says that one team graded both may compare them; two queries show no winner."""
    imported("golden.json", GOLDEN)
    for name, content in (("mine.json", ANSWERS), ("other.json", BETTER_ANSWERS)):
        write(name, content)
        words = ["answer", "--dataset", "set", "--answers", name, "--graded-by", "our team", "-q"]
        assert main(words) == 0

    found = told(capsys, "compare", "--dataset", "set", "--answers", "mine", "other")

    assert {item["winner"] for item in found["comparisons"]} == {"TIE"}
