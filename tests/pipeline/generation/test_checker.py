"""What checks what was written: another model, one that is down, and one that talks nonsense."""

import pytest
from endpoint import Reply, completion, fault
from pipeline.generation.making import accepted, at, endpoint, generate, problems, stages

CHECKS = {"check_question", "check_answer", "compare_answers", "find_answer", "judge"}


def checked_by(running, name="reader"):
    return ("--checker", f"{name}@{running.url}")


def test_the_checker_is_asked_for_all_checks_and_the_pool(tmp_path):
    """A writer that checks itself finds its own misunderstandings clear."""
    with endpoint() as writer, endpoint() as checker:
        done = generate(tmp_path / "set", *at(writer), *checked_by(checker))

    assert done.code == 0
    assert set(stages(writer)) == {"write"}
    assert set(stages(checker)) <= CHECKS
    assert {"check_question", "check_answer", "judge"} <= set(stages(checker))
    assert {body["model"] for body in checker.bodies} == {"reader"}


def test_a_checker_that_cannot_be_reached_ends_the_run(tmp_path, unused_url):
    """Unchecked queries in a set that says it is checked are worse than none."""
    flags = ("--checker", f"reader@{unused_url}", "--max-attempts", "1")
    with endpoint() as writer:
        done = generate(tmp_path / "set", *at(writer), *flags)

    assert done.code == 4
    assert unused_url in done.err
    assert accepted(tmp_path / "set") == []
    assert problems(tmp_path / "set") == []


def broken(stage, reply, body):
    return reply if stage == "write" else fault(500, "out of order")


def test_a_checker_that_only_fails_ends_the_run(tmp_path):
    """Likewise; and what it was to check costs no more than a few tries."""
    with endpoint() as writer, endpoint(broken) as checker:
        flags = ("--max-attempts", "1")
        done = generate(tmp_path / "set", *at(writer), *checked_by(checker), *flags)

    assert done.code == 4
    assert "out of order" in done.err
    assert accepted(tmp_path / "set") == []
    assert len(checker.seen) < 20


def test_what_was_written_for_a_checker_that_was_down_is_not_bought_again(tmp_path):
    """The writer was paid; only the checks are missing."""
    state = {"down": True}

    def change(stage, reply, body):
        return broken(stage, reply, body) if state["down"] else reply

    with endpoint() as writer, endpoint(change) as checker:
        flags = (*at(writer), *checked_by(checker), "--max-attempts", "1")
        assert generate(tmp_path / "set", *flags).code == 4
        written = len(writer.seen)
        state["down"] = False
        assert generate(tmp_path / "set", *flags).code == 0
        assert len(writer.seen) == written == 6

    assert len(accepted(tmp_path / "set")) == 6


def nonsense(stage, reply, body):
    return reply if stage == "write" else {"colour": "blue"}


def test_a_checker_that_talks_nonsense_passes_nothing(tmp_path):
    """Unknown is no pass; and whoever reads the message must see where to look."""
    with endpoint() as writer, endpoint(nonsense) as checker:
        done = generate(tmp_path / "set", *at(writer), *checked_by(checker), n=2)

    assert done.code == 5
    assert "self contained unknown" in done.err
    assert accepted(tmp_path / "set") == []
    assert problems(tmp_path / "set") == []


def same(stage, reply, body):
    for one in reply.get("candidates", reply.get("near_misses", reply.get("follow_ups", []))):
        one["question"] = "Which rules decide on returned furniture here?"
        if "standalone" in one:
            one["standalone"] = one["question"]
    return reply


def paraphrased(stage, reply, body):
    for one in reply.get("candidates", []):
        one["quotes"] = [
            {**quote, "quote": f"In other words, {quote['quote'][::-1]}"} for quote in one["quotes"]
        ]
    return reply


def empty(stage, reply, body):
    return {name: [] for name in reply} if stage == "write" else reply


def refusing(stage, reply, body):
    if stage != "write":
        return reply
    return Reply(completion(None, refusal="I cannot help with that.", finish_reason="stop"))


def cut_off(stage, reply, body):
    return Reply(completion('{"candidates": [{"quo', finish_reason="length"))


@pytest.mark.parametrize(
    ("change", "reason", "n"),
    [
        (same, "duplicate", 1),
        (paraphrased, "quote not found", 0),
        (empty, "no candidate", 0),
        (refusing, "writer failed 60", 0),
        (cut_off, "writer failed 60", 0),
    ],
)
def test_a_writer_that_is_no_use_is_told_and_not_asked_for_ever(tmp_path, change, reason, n):
    """A bill for a whole corpus of refusals is a bill for nothing."""
    with endpoint(change) as running:
        done = generate(tmp_path / "set", *at(running), "--types", "fact=100", n=6)
        asked = stages(running).count("write")

    assert done.code == 5
    assert "gave up, source after source gave none" in done.err.splitlines()[-1]
    assert reason in done.err.splitlines()[-1]
    assert len(accepted(tmp_path / "set")) == n
    assert asked <= 130
    assert problems(tmp_path / "set") == []
