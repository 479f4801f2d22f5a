"""Asking again where replies were no use."""

import json

import pytest
from endpoint import Reply, completion
from pipeline.generation.making import accepted, at, endpoint, files, generate, problems, run


def refusing(stage, share):
    """Return a change by which a part of what a stage is asked is refused, while it is sick."""
    sick = [True]

    def change(now, reply, body):
        refuses = now == stage and sick[0] and hash_of(body) % 100 < share
        return Reply(completion("", refusal="No.")) if refuses else reply

    return change, sick


def hash_of(body):
    return sum(body["messages"][-1]["content"].encode())


def rows(out):
    lines = (out / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["query_id"]: row for row in map(json.loads, lines)}


def names(out):
    return {row["query_id"] for row in accepted(out)}


@pytest.mark.parametrize("stage", ["write", "check_answer", "judge"])
def test_what_is_accepted_stays_when_failures_are_asked_again(tmp_path, stage):
    """It was paid for, and judged; only what is open is filled."""
    change, sick = refusing(stage, 40)
    with endpoint(change) as running:
        generate(tmp_path / "set", *at(running))
        before = names(tmp_path / "set")
        sick[0] = False

        done = generate(tmp_path / "set", *at(running), "--retry-failed")

        assert done.code == 0
        assert before <= names(tmp_path / "set")
        assert len(names(tmp_path / "set")) == 6
        assert problems(tmp_path / "set") == []


def test_a_run_after_asking_again_is_free_and_the_same(tmp_path):
    """The nightly job must not pay for what an evening's repair has settled."""
    change, sick = refusing("check_answer", 60)
    with endpoint(change) as running:
        generate(tmp_path / "set", *at(running))
        sick[0] = False
        generate(tmp_path / "set", *at(running), "--retry-failed")
        before, asked = files(tmp_path / "set"), len(running.seen)

        generate(tmp_path / "set", *at(running))

        assert files(tmp_path / "set") == before
        assert len(running.seen) == asked


def test_pairs_that_were_not_judged_are_judged(tmp_path):
    """That is what the flag is for where the set itself is complete."""
    change, sick = refusing("judge", 30)
    with endpoint(change) as running:
        out = tmp_path / "set"
        generate(out, *at(running))
        assert '"grade":null' in (out / "judgments.jsonl").read_text(encoding="utf-8")
        sick[0] = False

        generate(out, *at(running), "--retry-failed")

        assert '"grade":null' not in (out / "judgments.jsonl").read_text(encoding="utf-8")


def test_a_judge_that_asks_again_leaves_the_writers_replies_alone(tmp_path):
    """Else the next generation would buy and replace what is accepted."""
    writing, sick = refusing("write", 30)
    with endpoint(writing) as running:
        out = tmp_path / "set"
        generate(out, *at(running))
        before = rows(out)
        sick[0] = False
        run(["judge", "--dataset", str(out), "--complete", "--retry-failed", *at(running), "-q"])
        asked = len(running.seen)

        generate(out, *at(running))

        assert rows(out) == before
        assert len(running.seen) == asked


def test_a_rerun_after_failed_judgments_changes_nothing(tmp_path):
    """Votes that were cast before a pair failed are part of its record."""
    change, _ = refusing("judge", 30)
    with endpoint(change) as running:
        out = tmp_path / "set"
        generate(out, *at(running))
        before = files(out)

        generate(out, *at(running))

        assert files(out) == before


def test_a_checker_of_which_nothing_comes_is_given_up_soon(tmp_path):
    """Hundreds of calls for nothing are not the price of finding out."""

    def nonsense(stage, reply, body):
        return {"questions": []} if stage == "check_question" else reply

    with endpoint(nonsense) as running:
        done = generate(tmp_path / "set", *at(running), n=12)

        assert done.code == 5
        assert "check after check gave no usable verdict" in done.err
        assert "self contained unknown" in done.err
        assert len(running.seen) < 120
