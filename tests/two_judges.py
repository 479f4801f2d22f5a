"""A set of which two judges of different strictness grade parts, as an endpoint plays them."""

import json
import re

from endpoint import Reply, completion, datum, serving

from ragforge.cli import main
from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Hit, Query, Ranking

N = 30
IDS = [f"q{n:02}" for n in range(N)]
OLD = ("a2", "a1", "both3", "a0")
NEW = ("b2", "both3", "b1", "b0")
"""Chunks of each query: the digit is how much of the answer they hold."""


def make_set(path):
    """Make a set of thirty queries, each with a chunk of every name, and the run `bm25`."""
    made = create_dataset(path, made_from={"seed": "0"})
    names = sorted({*OLD, *NEW})
    made.write_chunks(
        Chunk(chunk_id=f"{q}-{name}", doc_id=q, text=f"Of {q} {name}: worth {name[-1]}.")
        for q in IDS
        for name in names
    )
    made.write_queries(
        Query(query_id=q, query=f"What is {q}?", expected_answer="It is 2.") for q in IDS
    )
    rank(made, OLD)
    return made


def rank(dataset, names, run="bm25", n_other=N):
    """Let a run retrieve chunks of some names, in an order that differs from query to query."""
    dataset.write_run(run, [_ranking(q, n, names) for n, q in enumerate(IDS[:n_other])])


def _ranking(query_id, number, names):
    turned = names if number % 3 else (names[1], names[0], *names[2:])
    hits = tuple(
        Hit(chunk_id=f"{query_id}-{name}", score=9.0 - place) for place, name in enumerate(turned)
    )
    return Ranking(query_id=query_id, ranking=hits)


def grade_by_model(path, body, number):
    """Play `lenient`, which gives what a chunk is worth, or `strict`, which gives one less."""
    passage = datum(body["messages"][-1]["content"], "passage")
    worth = int(re.search(r"worth (\d)", passage)[1])
    grade = worth if body["model"] == "lenient" else max(0, worth - 1)
    reply = {
        "reasoning": "as scripted",
        "evidence": passage if grade >= 2 else "",
        "contains_answer": grade >= 2,
        "grade": grade,
    }
    return Reply(completion(reply))


def judges():
    """Serve both judges."""
    return serving(grade_by_model)


def judge(dataset, endpoint, model, *more):
    """Judge the runs of a set from the command line; return the exit code."""
    words = ["judge", "--dataset", str(dataset.path), "--model", model, *more]
    return main([*words, "--base-url", endpoint.url, "-q"])


def evaluate(dataset, *measures):
    """Evaluate the runs of a set from the command line."""
    named = [word for name in measures or ("nDCG@10", "P@5", "RR") for word in ("-m", name)]
    assert main(["evaluate", "--dataset", str(dataset.path), *named, "-q"]) == 0


def history(dataset, capsys, *more):
    """Return what `history --json` says of the run bm25, or of those that are named."""
    capsys.readouterr()
    assert main(["history", "--dataset", str(dataset.path), "--json", *more]) == 0
    [found] = json.loads(capsys.readouterr().out)["datasets"]
    return found["runs"][0]


def history_text(dataset, capsys):
    """Return what `history` prints."""
    capsys.readouterr()
    assert main(["history", "--dataset", str(dataset.path)]) == 0
    return capsys.readouterr().out


def verdicts(found):
    """Return the verdict of each measure."""
    return {item["measure"]: item["verdict"] for item in found["trends"]}


def differences(found):
    """Return the difference in each measure."""
    return {item["measure"]: item["diff"] for item in found["trends"]}
