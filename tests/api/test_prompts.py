"""Prompts from Python: what there is, what differs, what would be asked."""

import asyncio
import json

import pytest

import ragforge as rf
from ragforge.cli import main

PAIRS = [{"query": "What is wax?", "text": "Wax."}, {"query": "What is oak?", "text": "Oak."}]


def test_the_list_is_that_of_the_command(capsys):
    """Names, versions and digests."""
    main(["prompts", "list", "--json"])

    assert rf.list_prompts().to_dict() == json.loads(capsys.readouterr().out)


def test_a_prompt_shows_its_text():
    """Whoever edits it has to read it first."""
    prompt = rf.show_prompt("judge_relevance")

    assert prompt.name == "judge_relevance"
    assert "grade" in prompt.system


def test_an_edited_copy_differs_from_the_shipped_one(place):
    """What one changed is seen before it is paid for."""
    path = rf.copy_prompt("judge_relevance", "rubrics")
    assert rf.diff_prompts("judge_relevance", prompts_dir="rubrics") == ""

    path.write_text(path.read_text().replace("You are strict", "You are kind"))

    assert "You are kind" in rf.diff_prompts("judge_relevance", prompts_dir="rubrics")
    assert {row["origin"] for row in rf.list_prompts("rubrics").rows()} == {"rubrics", "shipped"}


def test_two_things_are_needed_to_differ():
    """The shipped one alone is equal to itself."""
    with pytest.raises(rf.UsageError, match="needs prompts_dir, or the name of a second"):
        rf.diff_prompts("judge_relevance")


def test_a_broken_prompt_is_refused(place):
    """A folder is checked before a model is asked with it."""
    path = rf.copy_prompt("judge_relevance", "rubrics")
    path.write_text("version = 1\n")

    with pytest.raises(rf.ConfigError, match="judge_relevance"):
        rf.list_prompts("rubrics")


def test_what_would_be_asked_is_what_the_command_renders(place, capsys):
    """The same messages and the same key of the call."""
    path = place / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in PAIRS))
    words = ["prompts", "render", "judge_relevance", "--pairs", str(path), "--row", "2"]
    main([*words, "--model", "m", "--json"])

    found = rf.render_prompt("judge_relevance", path, row=2, model="m", quiet=True)

    assert found.to_dict() == json.loads(capsys.readouterr().out)
    assert [turn["role"] for turn in found.messages] == ["system", "user"]


def test_pairs_are_rendered_from_memory():
    """A rubric is tried on an example that is in no file."""
    found = rf.render_prompt("judge_relevance", PAIRS, row=2, quiet=True)

    assert "What is oak?" in found.messages[1]["content"]


def test_something_in_a_set_is_rendered(by_hand):
    """Ids say what it is about."""
    found = by_hand.render_prompt("judge_relevance", query="q1", chunk="b", quiet=True)

    assert "painted green" in found.table()


def test_what_is_missing_is_named_as_a_keyword(by_hand):
    """Flags are of another door."""
    with pytest.raises(rf.UsageError, match="query QUERY_ID and chunk CHUNK_ID") as error:
        by_hand.render_prompt("judge_relevance", quiet=True)

    assert "--" not in str(error.value)


def test_rendering_can_be_awaited(by_hand):
    """As all that may take a while."""
    found = asyncio.run(by_hand.aio.render_prompt("judge_relevance", query="q1", chunk="b"))

    assert len(found.rows()) == 2
