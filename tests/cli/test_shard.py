"""Shards from the command line: what is merged is what one process writes."""

import asyncio
import json

import pytest
from endpoint import Reply, completion, datum
from shards import digests, write_pairs

from ragforge.mock import Script, serving
from ragforge.observe import silent
from ragforge.pipeline.job import Job, Mode
from ragforge.pipeline.shards.plan import ShardFolder
from ragforge.pipeline.shards.running import ShardRun


@pytest.fixture
def pairs(tmp_path):
    return write_pairs(tmp_path / "pairs.jsonl")


@pytest.fixture
def work(tmp_path):
    return tmp_path / "work"


@pytest.fixture
def alone(run, pairs, tmp_path):
    """Judge in one process; return the digests of what it writes."""

    def go(endpoint, *how):
        out = tmp_path / "alone" / "judged.jsonl"
        words = ["--model", "m", "--base-url", endpoint.url, "--endpoint-id", "prod", "-q"]
        assert run("judge", "--pairs", pairs, "--out", out, *words, *how)[0] == 0
        return digests(out)

    return go


@pytest.fixture
def planned(run, pairs, work):
    """Plan shards of three queries."""

    def go(endpoint, *how):
        words = ["--model", "m", "--base-url", endpoint.url, "--endpoint-id", "prod", "-q"]
        size = ["--pairs-per-shard", "25"]
        return run("shard", "plan", "--pairs", pairs, "--into", work, *size, *words, *how)

    return go


def by_place(path, body, number):
    """Grade by the place in the batch, and 1 where a passage stands alone."""
    question = body["messages"][1]["content"]
    if "passages" not in question:
        return Reply(completion(json.dumps(verdict(1))))
    shown = enumerate(datum(question, "passages"))
    verdicts = [{"id": one["id"], **verdict(2 if at < 4 else 1)} for at, one in shown]
    return Reply(completion(json.dumps({"verdicts": verdicts})))


def verdict(grade):
    holds = grade == 2
    evidence = "Note" if holds else ""
    return {"reasoning": "so", "evidence": evidence, "contains_answer": holds, "grade": grade}


@pytest.fixture
def biased(serve):
    return serve(by_place)


@pytest.mark.parametrize(
    "how",
    [
        [],
        ["--panel", "a,b"],
        ["--votes", "3", "--temperature", "0.5"],
        ["--batch", "4", "--permutations", "2"],
    ],
    ids=" ".join,
)
def test_what_is_merged_is_what_one_process_writes(run, alone, planned, work, tmp_path, how):
    """Whoever reads the file cannot tell how many machines made it."""
    with serving(Script(p_schema=0.1, p_refusal=0.1)) as endpoint:
        expected = alone(endpoint, *how)
        calls = endpoint.ledger()["billed"]
        endpoint.reset()
        assert planned(endpoint, *how)[0] == 0
        assert run("shard", "run", work, "-q")[0] == 0
        ledger = endpoint.ledger()

    out = tmp_path / "merged" / "judged.jsonl"
    assert run("shard", "merge", work, "--out", out)[0] == 0
    assert digests(out) == expected
    assert (ledger["billed"], ledger["dup"]) == (calls, 0)


def test_pairs_of_a_query_stay_together_whatever_its_id_holds(run, tmp_path, work):
    """The beginning of a line names the query; an id may look like its end."""
    rows = [
        {"query_id": f'q","query":"{query}', "query": "?", "chunk_id": f"c{at}", "text": "Wax."}
        for query in range(2)
        for at in range(3)
    ]
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    size = ["--pairs-per-shard", "1"]
    run("shard", "plan", "--pairs", pairs, "--into", work, *size, "--model", "offline", "-q")

    assert [len(ShardFolder(work).pairs_path(at).read_text().splitlines()) for at in (0, 1)] == [
        3,
        3,
    ]
    assert ShardFolder(work).read_plan().size == 6


def test_one_shard_by_a_worker_of_this_machine(run, planned, work):
    """What Ray takes, processes of this machine take too, and what was bought is told."""
    with serving(Script()) as endpoint:
        planned(endpoint)
        code, _, err = run("shard", "run", work, "--index", 2, "--on", "this-machine")
        billed = endpoint.ledger()["billed"]

    assert (code, "1 of 1 shard worked off by 1 worker" in err) == (0, True)
    assert f"done, 0 failed, {billed} calls" in err
    assert [path.parent.name for path in work.glob("shards/*/done.json")] == ["00002"]


def test_a_rerun_asks_nothing(run, planned, work):
    """What is done is done."""
    with serving(Script()) as endpoint:
        planned(endpoint)
        run("shard", "run", work, "-q")
        billed = endpoint.ledger()["billed"]

        code, _, err = run("shard", "run", work, "-q")

        assert (code, endpoint.ledger()["billed"]) == (0, billed)
    assert "0 of 4 shards worked off here" in err


def test_workers_at_two_addresses_of_one_endpoint_give_one_file(
    run, alone, planned, work, tmp_path
):
    """Replicas answer alike; the file does not tell which of them did."""
    with serving(Script()) as one, serving(Script()) as other:
        expected = alone(one)
        planned(one)
        assert run("shard", "run", work, "--index", 1, "--base-url", other.url, "-q")[0] == 0
        assert run("shard", "run", work, "-q")[0] == 0
        assert other.ledger()["billed"] == 24

    out = tmp_path / "merged" / "judged.jsonl"
    run("shard", "merge", work, "--out", out)
    assert digests(out) == expected


def test_another_address_of_a_nameless_endpoint_is_refused(run, pairs, work):
    """It might be another model, and its replies would stand under another key."""
    words = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1", "-q"]
    run("shard", "plan", "--pairs", pairs, "--into", work, *words)

    code, _, err = run("shard", "run", work, "--base-url", "http://127.0.0.1:10/v1")

    assert code == 2
    assert "plan with --endpoint-id NAME" in err


def test_a_shard_that_is_missing_is_named(run, planned, work, tmp_path):
    """Half a file looks like a whole one."""
    with serving(Script()) as endpoint:
        planned(endpoint)
        run("shard", "run", work, "--index", 2, "-q")

    code, _, err = run("shard", "merge", work, "--out", tmp_path / "out.jsonl")

    assert code == 5
    assert "3 shards are not done: 0, 1, 3" in err
    assert not (tmp_path / "out.jsonl").exists()


def test_a_shard_that_was_changed_is_refused(run, planned, work, tmp_path):
    """What nobody judged must not come into a set."""
    with serving(Script()) as endpoint:
        planned(endpoint)
        run("shard", "run", work, "-q")
    judged = work / "shards" / "00001" / "judged.jsonl"
    judged.write_text(judged.read_text().replace('"grade":0', '"grade":3'))

    code, _, err = run("shard", "merge", work, "--out", tmp_path / "out.jsonl")

    assert code == 3
    assert "is not as it was when the shard was done" in err


def test_merging_writes_over_no_shard(run, planned, work):
    """Its own judgments would be gone, and the shard be bought or run again."""
    with serving(Script()) as endpoint:
        planned(endpoint)
        run("shard", "run", work, "-q")
    judged = work / "shards" / "00000" / "judged.jsonl"
    before = judged.read_bytes()

    code, _, err = run("shard", "merge", work, "--out", judged)

    assert (code, judged.read_bytes() == before) == (2, True)
    assert "is among the files of a shard; name another" in err


def test_pairs_that_were_changed_after_planning_are_refused(run, planned, work):
    """The merged file would be of pairs that nobody planned."""
    with serving(Script()) as endpoint:
        planned(endpoint)
        pairs = work / "shards" / "00000" / "pairs.jsonl"
        pairs.write_text(pairs.read_text().replace("Note", "Word"))

        code, _, err = run("shard", "run", work, "-q")

        assert endpoint.ledger()["billed"] == 0
    assert code == 3
    assert "is not the file that was planned" in err


def test_a_worker_with_another_prompt_is_refused(run, planned, work, tmp_path):
    """One file is of one judge."""
    own = tmp_path / "prompts"
    run("prompts", "copy", "judge_relevance", "--to", own)
    with serving(Script()) as endpoint:
        planned(endpoint, "--prompts-dir", own)
        edited = work / "prompts" / "judge_relevance.toml"
        edited.write_text(edited.read_text().replace("grade", "rate", 1))

        code, _, err = run("shard", "run", work, "-q")

        assert endpoint.ledger()["billed"] == 0
    assert code == 2
    assert "was planned for another judge" in err


def test_prompts_and_examples_go_along(run, pairs, planned, work, tmp_path):
    """A worker elsewhere has the folder, and not the home of who planned."""
    own, examples = tmp_path / "prompts", tmp_path / "examples.jsonl"
    run("prompts", "copy", "judge_relevance", "--to", own)
    examples.write_text(
        json.dumps({"query": "Why?", "text": "So.", "grade": 0, "evidence": "", "reasoning": "No."})
    )
    with serving(Script()) as endpoint:
        planned(endpoint, "--prompts-dir", own, "--examples", examples)
        (own / "judge_relevance.toml").unlink()
        examples.unlink()

        assert run("shard", "run", work, "-q")[0] == 0


def test_a_folder_keeps_its_work(run, planned, pairs, work):
    """Planned again for other pairs, what is done would be lost."""
    with serving(Script()) as endpoint:
        planned(endpoint)
        write_pairs(pairs, queries=3)

        code, _, err = planned(endpoint)

    assert code == 2
    assert "holds a plan in which the pairs differ" in err


def test_a_limit_holds_over_reruns_and_can_be_raised(run, planned, work):
    """A job array that is started again is no new budget."""
    with serving(Script()) as endpoint:
        planned(endpoint, "--max-calls", "40")
        codes = [run("shard", "run", work, "-q")[0] for _ in range(2)]
        assert (codes, endpoint.ledger()["billed"]) == ([5, 5], 40)

        planned(endpoint, "--max-calls", "96")
        assert run("shard", "run", work, "-q")[0] == 0
        assert (endpoint.ledger()["billed"], endpoint.ledger()["dup"]) == (96, 0)


def test_what_is_left_out_when_planned_again_stays(run, planned, work):
    """A forgotten flag lifts no limit, and gives no worker the rate of all."""
    with serving(Script()) as endpoint:
        planned(endpoint, "--max-calls", "40", "--workers", "2")
        planned(endpoint)

        code, _, err = run("shard", "run", work, "-q")

        assert (code, endpoint.ledger()["billed"]) == (5, 40)
    assert json.loads((work / "plan.json").read_text())["workers"] == 2
    way_on = "give `ragforge shard plan` again with a higher limit; then `ragforge shard run"
    assert way_on in err
    assert "the same command goes on" not in err
    assert f"--max-calls 40 is used up: {way_on}" in run("shard", "merge", work, "--out", "x")[2]


def test_a_limit_of_a_later_plan_counts_what_was_bought_before(run, planned, work):
    """It is one budget for all runs."""
    with serving(Script()) as endpoint:
        planned(endpoint)
        run("shard", "run", work, "--index", 0, "-q")
        planned(endpoint, "--max-calls", "30")

        assert run("shard", "run", work, "-q")[0] == 5
        assert endpoint.ledger()["billed"] == 30


def test_failures_are_asked_for_again_only_on_demand(run, planned, work):
    """What was refused is known, and paid for."""
    with serving(Script(p_refusal=0.3, seed=5)) as endpoint:
        planned(endpoint)
        run("shard", "run", work, "-q")
        before = json.loads(run("shard", "status", work, "--json")[1])
        run("shard", "run", work, "--retry-failed", "-q")
        after = json.loads(run("shard", "status", work, "--json")[1])

    assert 0 < after["failed"] < before["failed"]


def test_several_workers_ask_again_once(run, planned, work):
    """All of a job array are told to; each would pay once more for what stays refused."""
    with serving(Script(p_refusal=1.0)) as endpoint:
        planned(endpoint)
        run("shard", "run", work, "-q")
        billed = endpoint.ledger()["billed"]
        folder = ShardFolder(work)
        plan = folder.read_plan()

        async def ask_again(order):
            job = Job(folder.settings(plan), silent, Mode(retry_failed=True))
            return await ShardRun(folder, plan, job).run(order)

        async def workers():
            forwards = [shard.index for shard in plan.shards]
            async with asyncio.TaskGroup() as group:
                group.create_task(ask_again(forwards))
                group.create_task(ask_again(forwards[::-1]))

        asyncio.run(workers())

        assert endpoint.ledger()["billed"] == 2 * billed


def test_a_shard_that_is_done_stays_so_when_a_retry_is_stopped(run, planned, work, tmp_path):
    """What was merged before can be merged still; the limit was used up, and nothing was bought."""
    with serving(Script(p_refusal=0.3, seed=5)) as endpoint:
        planned(endpoint)
        run("shard", "run", work, "-q")
        planned(endpoint, "--max-calls", str(endpoint.ledger()["billed"]))
        merged = run("shard", "merge", work, "--out", tmp_path / "before.jsonl")[0]
        stopped = run("shard", "run", work, "--retry-failed", "-q")[0]
        again = run("shard", "merge", work, "--out", tmp_path / "after.jsonl")[0]

    assert (merged, stopped, again) == (0, 5, 0)
    assert (tmp_path / "after.jsonl").read_bytes() == (tmp_path / "before.jsonl").read_bytes()


def test_status_tells_what_was_spent(run, planned, work):
    """It is looked at while the work is under way."""
    with serving(Script()) as endpoint:
        planned(endpoint, "--max-calls", "1000")
        run("shard", "run", work, "--index", 0, "-q")

    found = json.loads(run("shard", "status", work, "--json")[1])

    assert (found["done"], found["left"], found["running"]) == (1, 3, {})
    assert (found["succeeded"], found["size"]) == (27, 108)
    assert found["spent"]["calls"] == found["taken"]["max_calls"] == 24


def test_status_tells_what_was_spent_in_shards_that_were_stopped(run, planned, work):
    """Where a limit ends the work, it may be all that was spent."""
    with serving(Script()) as endpoint:
        planned(endpoint, "--max-calls", "30")
        run("shard", "run", work, "-q")
        told = json.loads(run("shard", "status", work, "--json")[1])

        assert told["done"] == 1
        assert told["spent"]["calls"] == endpoint.ledger()["billed"] == 30


def test_status_is_told_beside_a_damaged_call_store(run, planned, work):
    """The next worker mends it; until then it says nothing of how far the others are."""
    with serving(Script()) as endpoint:
        planned(endpoint, "--max-calls", "30")
        run("shard", "run", work, "-q")
        (work / "shards" / "00001" / ".ragforge" / "calls.sqlite").write_bytes(b"no store")

        told = json.loads(run("shard", "status", work, "--json")[1])

    assert (told["done"], told["spent"]["calls"]) == (1, 24)


def test_people_are_held_against_the_merged_judge(run, pairs, work, tmp_path):
    """Labels in the pairs tell how far the judge can be trusted, as in one process."""
    rows = [json.loads(line) for line in pairs.read_text().splitlines()]
    pairs.write_text(
        "".join(f"{json.dumps({**row, 'grade': n % 4})}\n" for n, row in enumerate(rows))
    )
    with serving(Script()) as endpoint:
        words = ["--model", "m", "--base-url", endpoint.url, "-q"]
        _, alone, _ = run(
            "judge", "--pairs", pairs, "--out", tmp_path / "a.jsonl", "--json", *words
        )
        run("shard", "plan", "--pairs", pairs, "--into", work, "--pairs-per-shard", 20, *words)
        run("shard", "run", work, "-q")
    _, merged, _ = run("shard", "merge", work, "--out", tmp_path / "b.jsonl", "--json")

    assert json.loads(merged)["agreement"] == json.loads(alone)["agreement"] is not None


def test_a_dry_run_prints_the_cost_and_makes_nothing(run, planned, work):
    """Before the money is spent."""
    with serving(Script()) as endpoint:
        code, out, _ = planned(endpoint, "--dry-run", "--json")

        assert endpoint.ledger()["billed"] == 0
    assert (code, json.loads(out)["calls"], work.exists()) == (0, 96, False)


def test_the_offline_baseline_goes_in_shards_too(run, pairs, work, tmp_path):
    """A rehearsal needs no endpoint."""
    run("judge", "--pairs", pairs, "--out", tmp_path / "a" / "judged.jsonl", "-q")
    run("shard", "plan", "--pairs", pairs, "--into", work, "--pairs-per-shard", 20, "-q")
    _, _, err = run("shard", "run", work, "-q")
    run("shard", "merge", work, "--out", tmp_path / "b" / "judged.jsonl")

    assert err.count("no model is asked") == 1
    assert digests(tmp_path / "b" / "judged.jsonl") == digests(tmp_path / "a" / "judged.jsonl")


def test_a_place_that_moves_grades_ends_batches_for_all_shards(
    run, pairs, planned, work, tmp_path, biased
):
    """Shards that decided for themselves would grade in two ways."""
    write_pairs(pairs, queries=30, chunks=17)
    out = tmp_path / "alone" / "judged.jsonl"
    how = ["--model", "m", "--base-url", biased.url, "--endpoint-id", "prod", "--batch", "8", "-q"]
    run("judge", "--pairs", pairs, "--out", out, *how)

    _, _, err = planned(biased, "--batch", "8")
    run("shard", "run", work, "-q")
    run("shard", "merge", work, "--out", tmp_path / "b" / "judged.jsonl")

    assert "batches are given up" in err
    assert digests(tmp_path / "b" / "judged.jsonl") == digests(out)


def test_a_worker_asks_where_the_plan_was_made_to_ask(run, pairs, work, monkeypatch):
    """A node without the variable of the planner sent texts to another server, and its key."""
    with serving(Script()) as planned_for, serving(Script()) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", planned_for.url)
        words = ["--model", "m", "--pairs-per-shard", "25", "-q"]
        assert run("shard", "plan", "--pairs", pairs, "--into", work, *words)[0] == 0

        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        assert run("shard", "run", work, "-q")[0] == 0

        assert planned_for.ledger()["billed"] > 0
        assert other.ledger()["billed"] == 0
