"""A larger number adds to a set."""

import json
from collections import Counter

import pytest
from pipeline.generation.making import (
    accepted,
    at,
    endpoint,
    files,
    generate,
    made,
    problems,
    stages,
)


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """Six queries, then ten of the same set."""
    out = tmp_path_factory.mktemp("grown") / "set"
    with endpoint() as running:
        generate(out, *at(running), n=6)
        small, n_small = accepted(out), len(running.seen)
        generate(out, *at(running), n=10)
        yield out, running, small, n_small, len(running.seen)


def test_what_was_there_stays_word_by_word(grown):
    """Figures on the first six hold for the ten."""
    out, _, small, *_ = grown

    rows = {row["query_id"]: row for row in accepted(out)}
    assert len(rows) == 10
    assert [rows[row["query_id"]] for row in small] == small
    assert problems(out) == []


def test_only_what_is_new_is_bought(grown):
    """The first six were paid for."""
    _, running, _, n_small, n_whole = grown

    bodies = [json.dumps(body, sort_keys=True) for body in running.bodies[:n_whole]]
    assert len(set(bodies)) == len(bodies)
    assert stages(running)[n_small:n_whole].count("write") == 4


def test_other_documents_are_touched_first(grown):
    """Nine documents are better covered by two queries more than by two more on one."""
    out, *_ = grown

    slots = [json.loads(line) for line in (out / "plan.jsonl").read_text().splitlines()]
    assert len({slot["doc_ids"][0] for slot in slots}) == 9


def test_a_smaller_number_changes_nothing(grown):
    """An old command line in a script must not cut a set."""
    out, running, *_ = grown
    before, asked = files(out), len(running.seen)

    assert generate(out, *at(running), n=6).code == 0

    assert (files(out), len(running.seen)) == (before, asked)


@pytest.mark.parametrize("calls", [1, 5, 9, 14, 17])
def test_a_budget_that_ends_on_the_way_leaves_no_trace(grown, tmp_path, calls):
    """What was stopped and went on comes out as what was not, and costs the same."""
    whole, running, *_, n_whole = grown
    out, before = tmp_path / "set", len(running.seen)
    generate(out, *at(running), n=6)
    stopped = generate(out, *at(running), "--max-calls", str(calls), n=10)

    assert stopped.code == 5
    assert problems(out) == []
    assert {gate["verdict"] for row in accepted(out) for gate in row["gates"]} == {"pass"}
    assert all(row["gates"] for row in accepted(out))
    assert generate(out, *at(running), n=10).code == 0
    assert made(out) == made(whole)
    assert len(running.seen) - before == n_whole


def test_the_shares_of_a_grown_set_are_those_of_its_plan(grown):
    """Two of each of the first kinds would be another set than the one that was asked for."""
    out, *_ = grown

    assert Counter(row["type"] for row in accepted(out)) == {
        "fact": 2,
        **dict.fromkeys(
            (
                "procedure",
                "keyword",
                "troubleshooting",
                "comparison",
                "why",
                "list",
                "definition",
                "multi_hop",
            ),
            1,
        ),
    }


def test_rules_let_a_set_grow_as_a_model_does(tmp_path):
    """The first run of most people is without a model, and so is that of their CI."""
    generate(tmp_path / "set", n=6)
    small = accepted(tmp_path / "set")
    generate(tmp_path / "set", n=10)

    rows = {row["query_id"]: row for row in accepted(tmp_path / "set")}
    assert len(rows) == 10
    assert [rows[row["query_id"]] for row in small] == small


def test_a_budget_covers_writing_checking_and_judging(tmp_path):
    """Each with a budget of its own would be three times what somebody was ready to pay."""
    with endpoint() as running:
        done = generate(tmp_path / "set", *at(running), "--max-calls", "22", n=6)
        assert len(running.seen) == 22
        assert "judge" in stages(running)

    assert done.code == 5
