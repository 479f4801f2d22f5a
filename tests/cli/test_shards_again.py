"""A command whose calls are in shards is given again: with other limits, or with other work."""

import json
import shutil

import pytest
from shards import write_answers, write_pairs

from ragforge.mock import Script, serving


@pytest.fixture
def work(tmp_path):
    return tmp_path / "work"


@pytest.fixture
def endpoint():
    with serving(Script()) as served:
        yield served


@pytest.fixture
def judged(run, dataset, work, endpoint):
    """Judge the top chunk of each query in shards of one call; the last words win."""

    def go(*how, into=work):
        words = ["--model", "m", "--base-url", endpoint.url, "--endpoint-id", "e", "--depth", 1]
        shards = ["--shards", into, "--requests-per-shard", 1, "-q"]
        return run("judge", "--dataset", dataset, *words, *shards, *how)

    return go


@pytest.fixture
def worked_off(run, work):
    return lambda *how: run("shard", "run", work, "-q", *how)


def test_a_limit_that_is_given_later_holds(judged, worked_off, endpoint):
    """Who gives one does not want more to be spent, whenever it is given."""
    judged()

    code, _, err = judged("--max-calls", 1)

    assert (code, worked_off()[0]) == (5, 5)
    assert "plan.json: has now --max-calls 1\n" in err
    assert endpoint.ledger()["billed"] == 1


def test_a_limit_that_is_given_later_counts_what_was_bought_before(judged, worked_off, endpoint):
    """A limit holds over all workers and all their runs."""
    judged()
    worked_off("--index", 0)
    judged("--max-calls", 2)

    assert worked_off()[0] == 5
    assert endpoint.ledger()["billed"] == 2


def test_a_limit_in_dollars_that_is_given_later_counts_what_had_no_price(judged, worked_off, work):
    """Its price is named along with the limit."""
    judged()
    worked_off("--index", 0)
    prices = ["--input-usd-per-mtok", 1000, "--output-usd-per-mtok", 0]

    judged("--max-cost-usd", 5, *prices)

    spent = json.loads((work / "budget.json").read_text())["max_cost_usd"]
    done = json.loads((work / "shards" / "00000" / "done.json").read_text())
    assert spent == pytest.approx(done["spent"]["prompt_tokens"] / 1000)


def test_a_limit_that_is_left_out_stays(judged, worked_off, endpoint):
    """A flag that was forgotten must not lift it."""
    judged("--max-calls", 1)

    _, _, err = judged()

    assert worked_off()[0] == 5
    assert "has now" not in err
    assert endpoint.ledger()["billed"] == 1


def test_a_higher_limit_lets_workers_go_on(judged, worked_off, work, endpoint):
    """What they are told to do when it is used up works."""
    judged("--max-calls", 1)

    code, _, err = worked_off()
    assert code == 5
    assert "--max-calls 1 is reached" in err
    assert f"then `ragforge shard run {work}` goes on" in err
    assert "the same command goes on" not in err
    assert "--max-calls 1 is used up: give the command that planned them again" in judged()[2]

    judged("--max-calls", 3)
    assert (worked_off()[0], judged()[0]) == (0, 0)
    assert (endpoint.ledger()["billed"], endpoint.ledger()["dup"]) == (3, 0)


def test_another_rate_and_number_of_workers_are_taken_into_the_plan(judged, work):
    """The one who plans knows what the endpoint takes by now."""
    judged("--workers", 4)
    _, _, err = judged("--requests-per-minute", 60, "--concurrency", 12)

    plan = json.loads((work / "plan.json").read_text())

    assert plan["workers"] == 4
    assert [model["requests_per_minute"] for model in plan["models"]] == [60]
    assert plan["settings"]["model"]["concurrency"] == 12
    assert "has now --concurrency, --requests-per-minute\n" in err


def test_another_address_of_a_named_endpoint_is_taken_into_the_plan(judged, worked_off, endpoint):
    """A server may have moved since."""
    judged()
    with serving(Script()) as moved:
        judged("--base-url", moved.url)

        assert worked_off()[0] == 0
        assert moved.ledger()["billed"] == 3
    assert endpoint.ledger()["billed"] == 0


@pytest.mark.parametrize(
    "how",
    [["--model", "m2"], ["--temperature", "0.5"], ["--panel", "a,b"], ["--endpoint-id", "f"]],
    ids=" ".join,
)
@pytest.mark.parametrize("is_done", [True, False])
def test_another_model_is_refused(judged, worked_off, endpoint, how, is_done):
    """All that was bought would be bought again, past the shards and in one process."""
    judged()
    if is_done:
        worked_off()
    billed = endpoint.ledger()["billed"]

    code, _, err = judged(*how)

    assert code == 2
    assert "holds a plan in which the model or how it is asked differ; name another folder" in err
    assert endpoint.ledger()["billed"] == billed


def test_a_pool_that_grew_is_refused_and_another_folder_takes_the_rest(
    run, judged, worked_off, tmp_path, endpoint
):
    """What was paid for is kept, and nothing is bought in one process that shards could ask."""
    judged("--max-calls", 3)
    worked_off()

    code, _, err = judged("--depth", 3)
    assert code == 2
    assert "requests are not in its plan" in err
    assert endpoint.ledger()["billed"] == 3

    rest = tmp_path / "rest"
    assert judged("--depth", 3, into=rest)[0] == 0
    assert run("shard", "run", rest, "-q")[0] == 0
    billed = endpoint.ledger()["billed"]
    assert judged("--depth", 3, into=rest)[0] == 0
    assert billed > 3
    assert (endpoint.ledger()["billed"], endpoint.ledger()["dup"]) == (billed, 0)


def test_what_was_bought_in_part_is_kept_when_the_pool_grew(judged, worked_off, tmp_path, endpoint):
    """And nobody is to work on in a folder whose rest another one has."""
    judged()
    worked_off("--index", 0)

    _, _, err = judged("--depth", 2)
    assert "none should be worked on any more" in err

    rest = tmp_path / "rest"
    judged(into=rest)
    assert len(json.loads((rest / "plan.json").read_text())["shards"]) == 2


def test_a_pool_that_grew_after_taking_over_is_refused(judged, worked_off, endpoint):
    """The next night's command names the folder of the last one."""
    judged()
    worked_off()
    assert judged()[0] == 0
    assert judged()[0] == 0

    code, _, err = judged("--depth", 3)

    assert code == 2
    assert "name another folder, which takes what is left to ask" in err
    assert endpoint.ledger()["billed"] == 3


def test_a_folder_of_pairs_is_refused(run, judged, work, tmp_path, endpoint):
    """Its shards hold judgments, and no replies of this set."""
    pairs = write_pairs(tmp_path / "pairs.jsonl", queries=1)
    how = ["--model", "m", "--base-url", endpoint.url, "--endpoint-id", "e", "-q"]
    run("shard", "plan", "--pairs", pairs, "--into", work, *how)

    code, _, err = judged()

    assert code == 2
    assert "holds a plan in which the requests differ" in err


@pytest.fixture
def answers(dataset, tmp_path):
    return write_answers(dataset, tmp_path / "mine.jsonl")


def files_of(folder):
    names = ("answers", "answer_grades", "queries.jsonl")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in names
        for path in sorted(
            (folder / name).rglob("*") if (folder / name).is_dir() else [folder / name]
        )
    }


@pytest.mark.parametrize("script", [{}, {"p_schema": 0.5, "seed": 3}], ids=str)
@pytest.mark.parametrize("limit", [3, 5])
def test_a_command_that_was_stopped_while_taking_over_goes_on(
    run, dataset, work, answers, tmp_path, script, limit
):
    """Facts that it wrote already lead to requests that no plan has."""
    twin = tmp_path / "twin"
    shutil.copytree(dataset, twin)
    with serving(Script(**script)) as endpoint:
        how = ["--answers", answers, "--model", "m", "--base-url", endpoint.url, "-q"]
        assert run("answer", "--dataset", twin, *how)[0] == 0
        calls = endpoint.ledger()["billed"]
        endpoint.reset()
        how = ["answer", "--dataset", dataset, *how, "--shards", work]
        run(*how, "--max-calls", limit)
        assert run("shard", "run", work, "-q")[0] == 0
        stopped = run(*how)[0]
        limits = [run(*how, "--max-calls", more)[0] for more in (limit + 1, limit + 3, 40)]
        ledger = endpoint.ledger()

    assert stopped == (5 if limit < calls else 0)
    assert limits[-1] == 0
    assert set(limits) <= {0, 5}
    assert (ledger["billed"], ledger["dup"]) == (calls, 0)
    assert files_of(dataset) == files_of(twin)
