"""Queries that are said to have no answer, and whose pool holds one."""

import json

import pytest
from endpoint import datum
from pipeline.generation.making import (
    accepted,
    at,
    endpoint,
    files,
    generate,
    ids,
    problems,
)

KINDS = ("--types", "unanswerable=100")


def finding(is_found):
    """Return a change by which the judge finds an answer to the questions of which that holds."""
    order = {}

    def change(stage, reply, body):
        if stage != "judge":
            return reply
        prompt = body["messages"][-1]["content"]
        number = order.setdefault(datum(prompt, "query"), len(order))
        if is_found(number) and "verdicts" in reply:
            quote = max(datum(prompt, "passages")[0]["passage"].splitlines(), key=len)[:80].strip()
            reply["verdicts"][0] |= {"grade": 3, "contains_answer": True, "evidence": quote}
        return reply

    return change


@pytest.fixture(scope="module")
def replaced(tmp_path_factory):
    """A set of four, of which the judge finds answers to the first two that it sees."""
    out = tmp_path_factory.mktemp("replaced") / "set"
    with endpoint(finding(lambda number: number < 2)) as running:
        done = generate(out, *at(running), *KINDS, "--concurrency", "1", n=4)
        yield out, running, done


def test_a_refuted_query_is_quarantined_and_replaced(replaced):
    """Such a query would mark down each system that finds the answer."""
    out, _, done = replaced

    assert done.code == 0
    assert len(accepted(out)) == 4
    rows = [json.loads(line) for line in (out / "queries.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows].count("quarantined") == 2
    assert problems(out) == []


def test_a_rerun_is_the_same_and_costs_nothing(replaced):
    """What was refuted once is refuted, without being judged again."""
    out, running, _ = replaced
    before, asked = files(out), len(running.seen)

    assert generate(out, *at(running), *KINDS, n=4).code == 0

    assert len(running.seen) == asked
    assert files(out) == before


def test_without_judging_it_stays_out(replaced):
    """A flag that saves money does not make an answer go away."""
    out, running, _ = replaced
    before = ids(out)

    assert generate(out, *at(running), *KINDS, "--complete", "off", n=4).code == 0

    assert ids(out) == before


def test_growing_keeps_what_replaced_it(replaced):
    """The step before is made again as it was, replacements included."""
    out, running, _ = replaced
    before, asked = ids(out), len(running.seen)

    assert generate(out, *at(running), *KINDS, n=6).code == 0

    assert set(before) < set(ids(out))
    assert len(ids(out)) == 6
    assert len(running.seen) - asked <= 12
    assert problems(out) == []


def test_a_corpus_that_answers_everything_gets_facts_instead(tmp_path):
    """It has no near misses, however much is paid; two refuted ones a cell are enough to tell."""
    with endpoint(finding(lambda number: True)) as running:
        done = generate(tmp_path / "set", *at(running), *KINDS, n=2)
        before, asked = files(tmp_path / "set"), len(running.seen)
        again = generate(tmp_path / "set", *at(running), *KINDS, n=2)
        assert len(running.seen) == asked

    assert (done.code, again.code) == (0, 0)
    assert "pool conflict 4" in done.err
    assert files(tmp_path / "set") == before
    assert [row["type"] for row in accepted(tmp_path / "set")] == ["fact", "fact"]
