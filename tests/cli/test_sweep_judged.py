"""`ragforge sweep --judge-as-needed`: which configurations may be the best by a judge."""

import json
from pathlib import Path

import pytest
from endpoint import Reply, completion, datum, serving

import ragforge
from ragforge.cli import main
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.records import Chunk, Evidence, Query

N = 40
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath")
RETRIEVERS = """
from ragforge.records import Hit

class Worst:
    def __init__(self, chunks):
        self.chunks = chunks

    async def retrieve(self, query, k):
        other = [each for each in self.chunks if each.doc_id not in query]
        return [Hit(chunk_id=each.chunk_id, score=-i) for i, each in enumerate(other[:k])]

class Flaky(Worst):
    async def retrieve(self, query, k):
        if "doc0" in query:
            raise RuntimeError("down")
        return await super().retrieve(query, k)
"""


def answer(n):
    """Return the sentence that answers a query."""
    return f"The mark of doc{n:02} is {WORDS[n % 8]} and {WORDS[n // 8]} in the ledger of {n}."


def told(n):
    """Return a document: its answer in the middle of what says nothing."""
    before = " ".join(f"Line {i} of doc{n:02} tells nothing of it." for i in range(12))
    return f"{before}\n\n{answer(n)}\n\n{before.replace('Line', 'Row')}"


def grade_by_answer(path, body, number):
    """Play a judge who looks for the answer to the query."""
    shown = body["messages"][-1]["content"]
    passage = datum(shown, "passage")
    is_there = any(answer(n) in passage and f"doc{n:02}?" in shown for n in range(N))
    reply = {
        "reasoning": "as scripted",
        "evidence": passage if is_there else "",
        "contains_answer": is_there,
        "grade": 3 if is_there else 0,
    }
    return Reply(completion(reply))


@pytest.fixture(scope="module")
def endpoint():
    with serving(grade_by_answer) as found:
        yield found


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A set of forty queries with evidence, in a folder with a retriever that finds none."""
    (tmp_path / "my_retrievers.py").write_text(RETRIEVERS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    made = create_dataset(Path("set"), made_from={"seed": "0"})
    texts = {f"doc{n:02}": told(n) for n in range(N)}
    made.write_chunks(
        Chunk(chunk_id=name, doc_id=name, text=text, start=0, end=len(text))
        for name, text in texts.items()
    )
    made.write_queries(
        Query(
            query_id=f"q{n:02}",
            query=f"What is the mark of doc{n:02}?",
            evidence=(Evidence(doc_id=f"doc{n:02}", chunk_id=f"doc{n:02}", quote=answer(n)),),
        )
        for n in range(N)
    )
    return made


@pytest.fixture
def swept(dataset, endpoint, capsys):
    """Sweep two sizes and two retrievers; return code, stdout and the calls that were made."""

    def go(*more):
        capsys.readouterr()
        before = len(endpoint.bodies)
        words = ["sweep", "--dataset", "set", "--size", "200,600", "--splitter", "recursive"]
        words += ["--retriever", "bm25,my_retrievers:Worst", "--tokens", "300", "--processes", "1"]
        address = ["--model", "m", "--base-url", endpoint.url, "-q", "--judge-as-needed"]
        code = main([*words, *address, *more])
        return code, capsys.readouterr().out, len(endpoint.bodies) - before

    return go


def test_what_never_retrieves_an_answer_is_worse_for_a_part_of_the_texts(swept, dataset):
    """A grid of sizes is affordable where prompts are read to their first answer alone."""
    code, out, calls = swept("--json")
    found = json.loads(out)["judged"]

    assert code == 0
    assert {item["retriever"] for item in found["may_be_best"]} == {"bm25"}
    worse = [each for each in found["configurations"] if each["beaten_by"]]
    assert {each["retriever"] for each in worse} == {"my_retrievers:Worst"}
    assert found["texts_used"] == calls < 0.8 * found["pool"]
    assert not list(open_dataset(dataset.path).each_judgment())


def test_the_same_sweep_pays_for_nothing_twice(swept):
    """Replies are kept before they are used."""
    first, second = swept("--json"), swept("--json")

    assert json.loads(first[1])["judged"] == json.loads(second[1])["judged"]
    assert second[2] == 0


def test_a_budget_stops_judging_and_a_higher_one_goes_on(swept):
    """What was bought under the first is used under the second."""
    code, _, calls = swept("--max-calls", "15")
    again, out, more = swept("--json")

    assert (code, again, calls) == (5, 0, 15)
    assert calls + more == json.loads(out)["judged"]["texts_used"]


def test_a_dry_run_counts_texts_and_asks_nobody(swept):
    """The price is known before anything is spent, of prompts that are known and of others."""
    supposed = json.loads(swept("--dry-run", "--json")[1])["judged"]["texts"]
    swept()
    code, out, calls = swept("--dry-run", "--json")
    known = json.loads(out)["judged"]["texts"]

    assert (code, calls) == (0, 0)
    assert (supposed["is_exact"], known["is_exact"]) == (False, True)
    assert 0 < known["expected_least"] < known["at_most"] <= 2 * supposed["at_most"]


def test_the_verdict_of_the_judge_stands_above_the_table(swept):
    """Who reads two sentences must have read both results."""
    out = swept()[1]

    assert "may be best: " in out
    assert out.index("may be best: ") < out.index("Configurations, best first")
    assert "worse than recursive" in " ".join(out.split())


def test_failures_of_a_retriever_take_no_query_from_others(swept):
    """Of two others the order could be another one without these queries."""
    out = swept("--json", "--retriever", "bm25,my_retrievers:Flaky")[1]
    found = json.loads(out)["judged"]

    assert (found["queries"], len(found["left_out"])) == (N, 10)
    assert {item["retriever"] for item in found["may_be_best"]} == {"bm25"}


def test_grades_of_a_baseline_call_none_worse(dataset, capsys):
    """Shared words say nothing about quality."""
    words = ["sweep", "--dataset", "set", "--size", "200", "--splitter", "recursive", "--tokens"]
    words += ["300", "--retriever", "bm25,my_retrievers:Worst", "--processes", "1", "--json"]
    main([*words, "--judge-as-needed", "--offline-model", "none"])

    found = json.loads(capsys.readouterr().out)["judged"]
    assert len(found["may_be_best"]) == 2
    assert not any(each["beaten_by"] for each in found["configurations"])


def test_as_many_texts_of_any_size_are_refused(swept, capsys):
    """Of ten texts, larger ones hold more, and the judge would be paid to say so."""
    assert swept("--decide-by", "EvidenceR@5")[0] == 2


def test_python_sweeps_with_a_judge(dataset, endpoint):
    """As the command does."""
    found = ragforge.open("set").sweep(
        sizes=[200, 600],
        splitters="recursive",
        retrievers=["bm25", "my_retrievers:Worst"],
        tokens=300,
        judge_as_needed=True,
        least_grade=3,
        model="m",
        base_url=endpoint.url,
    )

    assert found.judged.least_grade == 3
    assert {item.retriever for item in found.judged.may_be_best} == {"bm25"}
