"""Tests of comparing a ranking with itself where the documents repeat what it returns."""

import asyncio

import pytest

from ragforge.config import EvaluateSettings, Settings
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.pipeline.evaluating import evaluate_dataset
from ragforge.pipeline.job import Job
from ragforge.pipeline.retrieving import make_runs
from ragforge.records import Chunk, Evidence, Query

NOTE = "This page was reviewed by the council of the valley."
N = 12
MEASURES = ("nDCG@10", "RR", "R@10", "P@5", "EvidenceR@3", "TokenR@5", "TokenP@5", "TokenIoU@5")


def fact(n):
    return f"The well number {n} is {n * 7 + 3} metres deep."


def document(n):
    return f"{NOTE} {fact(n)} Of the wells around it nothing is known."


MODULE = f"""
NOTE = {NOTE!r}
FACTS = {[fact(n) for n in range(N)]!r}

def hits(query):
    # Of every third query the note itself is the answer.
    n = int(query.split()[-1].strip("?"))
    above = [(NOTE, (n + at) % len(FACTS)) for at in range(1, 2 + n % 5)]
    return [*above, (FACTS[n], n), (FACTS[(n + 5) % 12], (n + 5) % 12)]

def named(query, k):
    return [{{"text": text, "source": f"{{n}}.md"}} for text, n in hits(query)]

def nameless(query, k):
    return [{{"text": text}} for text, n in hits(query)]

def half(query, k):
    return [
        {{"text": text, "source": f"{{n}}.md"}} if at % 2 else {{"text": text}}
        for at, (text, n) in enumerate(hits(query))
    ]
"""


def query_of(n):
    text = document(n)
    quote = NOTE if n % 3 == 0 else fact(n)
    start = text.index(quote)
    evidence = Evidence(
        doc_id=f"{n}.md", chunk_id=f"c{n}", quote=quote, start=start, end=start + len(quote)
    )
    return Query(query_id=f"q{n:02}", query=f"What of well {n}?", evidence=(evidence,))


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """Twelve documents that share a sentence, and one retriever that names them or does not."""
    (tmp_path / "wells.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "wells", raising=False)
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_chunks(
        Chunk(chunk_id=f"c{n}", doc_id=f"{n}.md", text=document(n), end=len(document(n)))
        for n in range(N)
    )
    made.write_queries(map(query_of, range(N)))
    specs = {name: f"wells:{name}" for name in ("named", "nameless", "half")}
    asyncio.run(make_runs(made, specs, Job(Settings(), silent)))
    return made


@pytest.mark.parametrize("other", ["nameless", "half"])
def test_a_ranking_ties_with_itself_whether_or_not_it_names_documents(dataset, other):
    """What moved up would win by a field of metadata."""
    settings = EvaluateSettings(measures=MEASURES)
    report = compare_runs(dataset, ["named", other], settings)

    assert {
        item.comparison.measure: (item.comparison.mean_a, item.comparison.mean_b, item.outcome)
        for item in report.items
    } == {
        item.comparison.measure: (item.comparison.mean_a, item.comparison.mean_a, "TIE")
        for item in report.items
    }


def test_a_ranking_has_its_values_whether_or_not_it_names_documents(dataset):
    """In each query."""
    measured = evaluate_dataset(dataset, [], EvaluateSettings(measures=MEASURES)).scores

    assert measured["nameless"].per_query == measured["named"].per_query
    assert measured["half"].per_query == measured["named"].per_query
