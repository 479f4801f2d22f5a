"""`ragforge judge --complete` on a set without runs, against an endpoint that grades by words."""

import json

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import create_dataset
from ragforge.mock import Script, serving
from ragforge.records import Chunk, Query

SHARED = ("nothing", "beeswax", "beeswax polish", "beeswax polish for tables")


@pytest.fixture
def folder(tmp_path):
    """A set of one imported query and one that is said to have no answer."""
    dataset = create_dataset(tmp_path / "set", made_from={})
    dataset.write_chunks(
        Chunk(chunk_id=f"c{at:02}", doc_id="care", text=f"Chapter {at}: {SHARED[at % 4]}.")
        for at in range(24)
    )
    asked = "How is beeswax polish put on tables?"
    dataset.write_queries(
        [
            Query(query_id="q1", query=asked, expected_answer="With a cloth.", origin="human"),
            Query(query_id="q2", query=f"Really: {asked}", answerable=False, origin="human"),
        ]
    )
    return dataset.path


@pytest.fixture
def complete(folder, capsys):
    """Complete the pools; return exit code, stdout and stderr."""

    def go(endpoint, *more):
        address = ["--model", "m", "--base-url", endpoint.url, "-q"]
        code = main(["judge", "--dataset", str(folder), "--complete", *address, *more])
        said = capsys.readouterr()
        return code, said.out, said.err

    return go


def test_what_was_found_is_printed(complete, folder):
    """A reader must see what is in the pools, and how much may not be."""
    with serving(Script()) as endpoint:
        code, out, err = complete(endpoint)

    assert code == 0
    assert "bm25:query" in out
    assert "completeness: cannot be told" not in out
    assert "unanswerable, yet the corpus answers: q2" in out
    assert out.endswith(f"{folder / 'pool.jsonl'}\n")
    assert "pairs judged now, 0 failed" in err


def test_json_is_one_object(complete):
    """A pipeline quarantines what it finds there."""
    with serving(Script()) as endpoint:
        code, out, _ = complete(endpoint, "--json")

    found = json.loads(out)
    assert (code, found["conflicts"], found["failed"]) == (0, ["q2"], 0)
    assert found["judged"] == found["n_pairs"]


def test_thoughts_are_counted_over_all_waves(complete):
    """Each was paid, whichever block of the pools it is of."""
    with serving(Script(p_think=1.0)) as endpoint:
        _, out, _ = complete(endpoint, "--json")
        billed = endpoint.ledger()["billed"]

    assert json.loads(out)["unwrapped"] == {"thinking": billed}


def test_the_estimate_tells_of_growth(complete, folder):
    """Who is told the first block only would be surprised by the bill."""
    with serving(Script()) as endpoint:
        _, out, _ = complete(endpoint, "--dry-run", "--pool-k", "2")
        assert endpoint.ledger()["billed"] == 0

    assert "new if all pools grow" in out
    assert "calls if all pools grow to the end: " in out
    assert not (folder / "pool.jsonl").exists()


def test_a_later_run_is_told_of_its_holes(complete, folder, capsys):
    """A better retriever finds what nobody judged, and would be marked down for it."""
    with serving(Script()) as endpoint:
        complete(endpoint, "--pool-k", "1", "--pool-most", "1")
        main(["retrieve", "--dataset", str(folder), "--retriever", "bm25", "-q"])
        told = capsys.readouterr().err
        _, _, err = complete(endpoint, "--pool-k", "1", "--pool-most", "1")

    hint = f"are holes; `ragforge judge --dataset {folder} --run bm25` judges them"
    assert hint in told
    assert hint in err


@pytest.mark.parametrize(
    ("more", "flag"),
    [
        (["--run", "bm25"], "--run"),
        (["--on-labels"], "--on-labels"),
        (["--per-query"], "--per-query"),
        (["--depth", "5"], "--depth"),
    ],
)
def test_what_belongs_to_runs_is_refused(complete, more, flag):
    """It would be passed over in silence."""
    with serving(Script()) as endpoint:
        code, _, err = complete(endpoint, *more)
        assert endpoint.ledger()["billed"] == 0

    assert code == 2
    assert f"{flag} does not go with --complete" in err


def test_pairs_of_a_file_have_no_corpus(tmp_path, capsys):
    """There is nothing that probes could search."""
    code = main(["judge", "--pairs", str(tmp_path / "p"), "--out", "o", "--complete"])

    assert code == 2
    assert "--pairs does not go with --complete" in capsys.readouterr().err


def test_the_folder_of_the_file_is_made(run, tmp_path):
    """With a model it was, and offline the command ended with "No such file or directory"."""
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "new" / "folder" / "judged.jsonl"
    pairs.write_text('{"query_id": "q", "query": "Wax?", "chunk_id": "c", "text": "Wax."}\n')

    assert run("judge", "--pairs", pairs, "--out", out, "-q")[0] == 0
    assert out.is_file()
