"""`ds.compare(..., judge_as_needed=True)`: a decision for a part of the pool."""

import asyncio
import random
import re

import pytest
from endpoint import Reply, completion, datum, serving

import ragforge as rf
from ragforge.cli import main
from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Hit, Query, Ranking

N, CHUNKS, DEPTH = 40, 20, 10


def grade_by_worth(path, body, number):
    """Play a judge who gives what a chunk is worth."""
    passage = datum(body["messages"][-1]["content"], "passage")
    grade = int(re.search(r"worth (\d)", passage)[1])
    evidence = passage if grade >= 2 else ""
    reply = {"reasoning": "", "evidence": evidence, "contains_answer": grade >= 2, "grade": grade}
    return Reply(completion(reply))


@pytest.fixture(scope="module")
def model():
    with serving(grade_by_worth) as running:
        yield {"model": "m", "base_url": running.url, "quiet": True}


@pytest.fixture
def ds(place):
    """A run `good` that ranks by worth, and `poor` by noise."""
    made = create_dataset(place / "set", made_from={"seed": "0"})
    draw = random.Random(4)
    worths = {f"q{q:02}": draw.choices(range(4), [5, 2, 2, 1], k=CHUNKS) for q in range(N)}
    made.write_chunks(
        Chunk(chunk_id=f"{q}-{i:02}", doc_id=q, text=f"Of {q}, piece {i}: worth {worth}.")
        for q, of_query in worths.items()
        for i, worth in enumerate(of_query)
    )
    made.write_queries(Query(query_id=q, query=f"What is {q}?") for q in worths)
    for name, skill in (("good", 1.0), ("poor", 0.0), ("worse", 0.0)):
        made.write_run(name, [ranked(q, worths[q], skill, draw) for q in worths])
    return rf.open(place / "set")


def ranked(query_id, worths, skill, draw):
    """Return ten chunks in the order of their worth and of noise."""
    order = sorted(range(CHUNKS), key=lambda i: -(skill * worths[i] + draw.random() * 2))
    hits = tuple(
        Hit(chunk_id=f"{query_id}-{i:02}", score=float(DEPTH - place))
        for place, i in enumerate(order[:DEPTH])
    )
    return Ranking(query_id=query_id, ranking=hits)


def test_it_says_what_the_command_prints(ds, model, capsys):
    """A notebook and a shell must not disagree."""
    found = ds.compare("poor", "good", judge_as_needed=True, **model)
    place = ["--dataset", str(ds.path), "poor", "good", "--judge-as-needed"]
    main(["compare", *place, "--model", "m", "--base-url", model["base_url"], "-q"])

    assert found.table() in capsys.readouterr().out
    assert (found.winner, found.measure) == ("good", "DCG@10")
    assert 0 < found.interval[0] < found.difference < found.interval[1]
    assert 0 < found.pairs_used < found.pool
    assert found.look >= 1
    assert found.to_dict()["winner"] == "good"


def test_it_can_be_awaited(ds, model):
    """A service has a loop that must go on."""
    found = asyncio.run(ds.aio.compare("poor", "good", judge_as_needed=True, **model))

    assert found.winner == "good"


def test_of_several_runs_it_says_which_may_be_best(ds, model):
    """The set holds the best, and the rest is worse for sure."""
    found = ds.compare("poor", "good", "worse", judge_as_needed=True, **model)

    assert (found.may_be_best, found.winner) == (("good",), "good")
    assert found.worse == {"poor": "good", "worse": "good"}
    assert 0 < found.pairs_used < found.pool
    assert "may be best" in found.table()


def test_a_dry_run_asks_nothing(ds, model):
    """The price is known before anything is spent."""
    found = ds.compare("poor", "good", judge_as_needed=True, dry_run=True, **model)

    pairs = found.to_dict()["pairs"]
    assert 0 < pairs["first_look"] < pairs["at_most"] <= pairs["pool"]
    assert "answers" not in found.table()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"judge_as_needed": True, "measures": ["P@5", "P@10"]}, "one measure"),
        ({"judge_as_needed": True, "base": "poor"}, "do not go with judge_as_needed"),
        ({"dry_run": True}, "go with judge_as_needed"),
    ],
)
def test_what_does_not_go_together_is_refused(ds, wrong, message):
    """An argument that is passed over is taken to have worked."""
    with pytest.raises(rf.UsageError, match=message):
        ds.compare("poor", "good", **wrong)


def test_keywords_of_judging_go_with_it_alone(ds):
    """Plain comparing asks no model."""
    with pytest.raises(TypeError, match="model"):
        ds.compare("poor", "good", model="m")
