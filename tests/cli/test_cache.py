"""The call store as a user sees it."""

import json
import os
import subprocess
import sys
from contextlib import closing

import pytest

from ragforge.cli import cache, invocation
from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.store.calls import CallStore
from ragforge.mock import serving

SECRET = "sk-very-secret-0123456789"


def main(words):
    return invocation.invoke(cache, words)


@pytest.fixture
def path(tmp_path):
    """A store of three replies, one of them of unknown price."""
    path = tmp_path / "calls.sqlite"
    with closing(CallStore(path)) as store:
        for number in range(3):
            usage = Usage(1000, 20, estimated=number == 2)
            cost_usd = None if number == 2 else 0.5
            model = "local" if number == 2 else "gpt"
            store.put(f"{number:064x}", "e", model, ChatReply("x", usage=usage), cost_usd)
    return path


def run(capsys, *words):
    code = main(["cache", *map(str, words)])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return code, shown.out, shown.err


def test_stats_shows_each_model(path, capsys):
    """What was bought, and what is not known, at a glance."""
    code, shown, _ = run(capsys, "stats", "--store", path)

    table = [line.split() for line in shown.splitlines()[2:4]]
    assert code == 0
    assert table == [
        ["gpt", "2", "2,000", "40", "0", "1.0000", "0", "0"],
        ["local", "1", "1,000", "20", "1", "unknown", "0", "0"],
    ]
    assert "all runs: 3 calls, 3,000 prompt and 60 completion tokens, cost unknown USD" in shown
    assert "attempts perhaps billed without a reply: 0" in shown
    assert "held now: no lease" in shown


def test_stats_as_json(path, capsys):
    """A dashboard reads it; what is unknown is null, never 0."""
    code, shown, _ = run(capsys, "stats", "--store", path, "--json")

    found = json.loads(shown)
    assert code == 0
    assert found["file_bytes"] == path.stat().st_size
    assert found["models"][1] == {
        "model": "local",
        "calls": 1,
        "prompt_tokens": 1000,
        "completion_tokens": 20,
        "cost_usd": None,
        "estimated": 1,
        "forgotten": 0,
        "damaged": 0,
    }


def test_stats_says_who_is_buying(path, capsys):
    """The user sees whom a second run waits for."""
    with closing(CallStore(path)) as store:
        store.claim("k")
        shown = run(capsys, "stats", "--store", path)[1]

    assert f"held now: 1 lease by process {os.getpid()} on " in shown


def test_a_dataset_stands_for_its_store(dataset, path, capsys):
    """Nobody should need to know where the file is."""
    (dataset / ".ragforge").mkdir(exist_ok=True)
    path.rename(dataset / ".ragforge" / "calls.sqlite")

    assert run(capsys, "stats", "--dataset", dataset)[0] == 0


def test_a_dataset_without_a_store_is_told_so(dataset, capsys):
    """An offline dataset has bought nothing."""
    code, _, told = run(capsys, "stats", "--dataset", dataset)

    assert (code, "there is no call store" in told) == (3, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stats"], "--dataset --store is required"),
        (["stats", "--dataset", "a", "--store", "b"], "not allowed with"),
        (["prune", "--store", "{path}"], "prune needs --older-than DAYS, --model NAME or"),
        (["prune", "--store", "{path}", "--older-than", "-1"], "expected days >= 0, got -1"),
        (["prune", "--store", "{path}", "--older-than", "nan"], "expected days >= 0, got nan"),
        (["export", "{path}", "--store", "{path}"], "is the call store itself"),
        (["export", "rows.jsonl.gz", "--store", "{path}"], "is written plain"),
        (["export", "-", "--store", "{path}", "--json"], "cannot both go to stdout"),
        (["shrink"], "expected stats, export, import or prune, got 'shrink'"),
        ([], "required"),
    ],
)
def test_a_wrong_word_is_a_usage_error(path, capsys, words, message):
    """Before anything is read or written."""
    before = path.read_bytes()
    code, _, told = run(capsys, *(word.format(path=path) for word in words))

    assert (code, message in told) == (2, True)
    assert path.read_bytes() == before


def test_replies_go_from_one_store_to_another(path, tmp_path, capsys):
    """A colleague's rerun costs nothing then."""
    file, other = tmp_path / "rows.jsonl", tmp_path / "other" / "calls.sqlite"

    exported = run(capsys, "export", file, "--store", path)
    imported = run(capsys, "import", file, "--store", other)

    assert exported == (0, "", "3 replies written, 0 left out: set aside or damaged\n")
    assert imported == (
        0,
        f"{other}\n",
        "3 replies read, 3 of them new here; 0 lines passed over\n",
    )


def test_replies_go_through_a_pipe(path, capsys, monkeypatch):
    """As they do between machines."""
    shown = run(capsys, "export", "-", "--store", path)[1]

    assert [json.loads(line)["model"] for line in shown.splitlines()] == ["gpt", "gpt", "local"]


def test_replies_come_through_a_pipe(path, tmp_path, capsys):
    """The other end of it."""
    lines = run(capsys, "export", "-", "--store", path)[1]
    other = tmp_path / "other.sqlite"
    words = ["cache", "import", "-", "--store", str(other)]
    code = f"from ragforge.cli import cache, invocation; invocation.invoke(cache, {words!r})"

    subprocess.run([sys.executable, "-c", code], input=lines, text=True, check=True)

    with closing(CallStore(other)) as store:
        assert store.spent().calls == 3


def test_bad_lines_are_told_by_number(path, tmp_path, capsys):
    """The user can look at them; the good ones are in."""
    file = tmp_path / "rows.jsonl"
    run(capsys, "export", file, "--store", path)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], *["junk"] * 11, lines[1], lines[2][:40]]))

    code, _, told = run(capsys, "import", file, "--store", tmp_path / "other.sqlite")

    assert code == 0
    assert f"{file}:2: passed over: is not one complete JSON object\n" in told
    assert f"{file}: passed over, too: lines 12, 14\n" in told
    assert "2 replies read, 2 of them new here; 12 lines passed over\n" in told


def test_an_import_as_json_lists_the_bad_lines(path, tmp_path, capsys):
    """A script decides by it."""
    file, other = tmp_path / "rows.jsonl", tmp_path / "other.sqlite"
    run(capsys, "export", file, "--store", path)
    file.write_text(file.read_text() + '{"key')

    shown = run(capsys, "import", file, "--store", other, "--json")[1]

    assert json.loads(shown) == {
        "store": str(other),
        "rows": 3,
        "new": 3,
        "faults": [{"line": 4, "why": "was cut off"}],
    }


def test_an_import_of_nothing_usable_fails(tmp_path, capsys):
    """A job that brings nothing must not look like one that brought all."""
    file = tmp_path / "rows.jsonl"
    file.write_text("junk\n")

    code, _, told = run(capsys, "import", file, "--store", tmp_path / "other.sqlite")

    assert (code, "holds no usable reply; line 1: is not one complete" in told) == (3, True)


def test_a_dry_prune_says_what_would_go(path, capsys):
    """Before anything is lost."""
    before = path.read_bytes()

    shown = run(capsys, "prune", "--store", path, "--model", "gpt", "--dry-run")

    told = "2 replies would go (2,000 prompt and 40 completion tokens, cost 1.0000 USD)\n"
    assert shown == (0, told, "")
    assert path.read_bytes() == before


def test_a_prune_says_what_went(path, capsys):
    """And what it was worth."""
    code, shown, _ = run(capsys, "prune", "--store", path, "--model", "local", "--json")

    found = json.loads(shown)
    assert (code, found["calls"], found["cost_usd"], found["dry_run"]) == (0, 1, None, False)
    assert "1 of the replies were pruned" in run(capsys, "stats", "--store", path)[1]


def test_a_prune_waits_for_nobody(path, capsys):
    """It refuses, and names who is in the way."""
    with closing(CallStore(path)) as store:
        store.claim("k")
        code, _, told = run(capsys, "prune", "--store", path, "--set-aside")

    assert (code, f"process {os.getpid()}" in told) == (3, True)


@pytest.mark.parametrize(
    ("action", "code"), [(["stats"], 3), (["export", "-"], 0), (["prune", "--set-aside"], 3)]
)
def test_a_damaged_store_is_left_where_it_is(path, capsys, action, code):
    """Looking at it must not change it."""
    path.write_bytes(b"\xee" * 4096 + path.read_bytes()[4096:])
    before = path.read_bytes()

    found, _, told = run(capsys, *action, "--store", path)

    assert (found, "damaged" in told) == (code, True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("action", [["stats"], ["export", "-"], ["prune", "--set-aside"]])
def test_a_file_of_another_kind_is_refused(tmp_path, capsys, action):
    """A mistyped path must not be taken for a store that lost everything."""
    diary = tmp_path / "diary"
    diary.write_text("dear diary " * 100)

    code, shown, _ = run(capsys, *action, "--store", diary)

    assert (code, shown) == (3, "")
    assert [item.name for item in tmp_path.iterdir()] == ["diary"]


def test_an_export_is_what_a_rerun_needs_and_holds_no_key(pairs, tmp_path, capsys, monkeypatch):
    """From one machine to the other, without the secret and without a second bill."""
    from ragforge.cli import main as ragforge

    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    one, two, file = tmp_path / "one", tmp_path / "two", tmp_path / "rows.jsonl"
    store = ".ragforge/calls.sqlite"
    with serving() as endpoint:
        words = ["judge", "--pairs", str(pairs), "--model", "m", "--base-url", endpoint.url, "-q"]
        ragforge([*words, "--out", str(one / "judged.jsonl")])
        billed = endpoint.ledger()["billed"]
        run(capsys, "export", file, "--store", one / store)
        run(capsys, "import", file, "--store", two / store)
        code = ragforge([*words, "--out", str(two / "judged.jsonl")])

        assert (code, endpoint.ledger()["billed"], billed) == (0, 2, 2)
    assert (one / "judged.jsonl").read_bytes() == (two / "judged.jsonl").read_bytes()
    assert SECRET not in file.read_text()


def test_help_shows_every_action(capsys):
    """The examples can be typed as they stand."""
    assert main(["cache", "--help"]) == 0

    shown = capsys.readouterr().out
    assert "ragforge cache prune --dataset set/ --older-than 90" in shown
