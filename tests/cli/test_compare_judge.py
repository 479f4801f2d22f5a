"""`ragforge compare --judge`: from retrievers to a decision in one command."""

import json

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset
from ragforge.mock import Script, serving

RETRIEVERS = ("--retriever", "bm25", "--retriever", "chargram")


@pytest.fixture
def compare(dataset, capsys):
    """Compare with a judge at an endpoint; return exit code, stdout and stderr."""

    def go(endpoint, *more):
        capsys.readouterr()
        address = ["--model", "m", "--base-url", endpoint.url, "-q"]
        code = main(["compare", "--dataset", str(dataset), "--judge", *more, *address])
        said = capsys.readouterr()
        return code, said.out, said.err

    return go


def published(folder):
    """Return the names of the files that are not of the call store and the like."""
    return sorted(path.name for path in folder.rglob("*") if ".ragforge" not in path.parts)


def test_retrievers_are_run_judged_and_compared(compare, dataset):
    """Is it better? That must not take four commands."""
    with serving(Script()) as endpoint:
        code, out, err = compare(endpoint, *RETRIEVERS)
        billed = endpoint.ledger()["billed"]

    found = open_dataset(dataset)
    assert (code, found.run_names()) == (0, ["bm25", "chargram"])
    assert "A = bm25, B = chargram" in out
    assert "pairs judged now, 0 failed" in err
    assert billed > 0
    retrieved = {
        (item.query_id, hit.chunk_id)
        for name in found.run_names()
        for item in found.run(name)
        for hit in item.ranking[:10]
    }
    assert retrieved <= {(item.query_id, item.chunk_id) for item in found.judgments()}


def test_a_limit_on_a_model_without_a_price_is_refused_before_a_service_is_asked(
    compare, dataset, scripted
):
    """Hours of retrieving would end in a message about a flag."""
    services = ("--retriever", f"{scripted.url}/old", "--retriever", f"{scripted.url}/new")
    with serving(Script()) as endpoint:
        code, _, err = compare(endpoint, *services, "--max-cost-usd", "1")

    assert (code, scripted.seen) == (2, [])
    assert "--max-cost-usd: the price of the model is not known" in err
    assert open_dataset(dataset).run_names() == ["bm25"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-m", "nDGC@10"], "no measure 'nDGC'"),
        (["--alpha", "5"], "alpha: expected a number between 0 and 1"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anybody_is_asked(compare, dataset, words, told):
    """A slip must not be told after hours of retrieving and a paid pool."""
    with serving(Script()) as endpoint:
        code, _, err = compare(endpoint, *RETRIEVERS, *words)

        assert endpoint.ledger()["billed"] == 0
    assert (code, open_dataset(dataset).run_names()) == (2, ["bm25"])
    assert told in err


def test_one_run_is_refused_before_its_pool_is_judged(compare):
    """The refusal knows nothing that the pool could tell."""
    with serving(Script()) as endpoint:
        code, _, err = compare(endpoint, "bm25")

        assert endpoint.ledger()["billed"] == 0
    assert code == 2
    assert "at least two runs, got bm25" in err


def test_a_rerun_pays_for_nothing_twice(compare):
    """What was interrupted goes on by the same command."""
    with serving(Script()) as endpoint:
        first = compare(endpoint, *RETRIEVERS)
        billed = endpoint.ledger()["billed"]
        second = compare(endpoint, *RETRIEVERS)

        assert endpoint.ledger()["billed"] == billed
    assert second[:2] == first[:2]


def test_budget_stops_it_and_a_higher_one_goes_on(compare):
    """Whoever sets a limit must not find another bill."""
    with serving(Script()) as endpoint:
        code, out, err = compare(endpoint, *RETRIEVERS, "--max-calls", "2")
        billed = endpoint.ledger()["billed"]
        again = compare(endpoint, *RETRIEVERS)

    assert (code, out, billed) == (5, "", 2)
    assert "the same command goes on where this one stopped" in err
    assert again[0] == 0


def test_dry_run_tells_the_most_and_does_nothing(compare, dataset):
    """The price is known before anything is spent or asked."""
    before = published(dataset)
    with serving(Script()) as endpoint:
        code, out, _ = compare(
            endpoint, *RETRIEVERS, "--name", "a", "--name", "b", "--dry-run", "--json"
        )

        assert endpoint.ledger()["billed"] == 0
    counted = json.loads(out)
    assert (code, counted["runs_to_make"]) == (0, ["a", "b"])
    assert counted["pairs"]["new"] == counted["calls"] == 3 * 2 * 10
    assert published(dataset) == before


def test_dry_run_counts_runs_that_are_there_as_they_are(compare, dataset):
    """They are known, and need no guess."""
    with serving(Script()) as endpoint:
        compare(endpoint, *RETRIEVERS)
        _, out, _ = compare(endpoint, "bm25", "chargram", "--dry-run", "--json")

    counted = json.loads(out)
    assert (counted["pairs"]["new"], counted["calls"]) == (0, 0)


def test_json_holds_what_was_judged(compare):
    """A pipeline reads one object."""
    with serving(Script()) as endpoint:
        _, out, _ = compare(endpoint, *RETRIEVERS, "--json")

    found = json.loads(out)
    assert found["judged"]["judged"] > 0
    assert found["comparisons"]


@pytest.mark.parametrize("flag", ["--dry-run", "--again", "--retry-failed"])
def test_flags_of_judging_go_with_it(dataset, capsys, flag):
    """A dry run that compares would mislead."""
    code = main(["compare", "--dataset", str(dataset), flag])

    assert code == 2
    assert f"{flag}: goes with --judge" in capsys.readouterr().err
