"""The command `sweep`: what it prints, and how it ends."""

import json
import sys

import pytest

from ragforge.cli import main


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the set of the demonstration."""
    folder = tmp_path_factory.mktemp("demo")
    main(["demo", "--out", str(folder / "set"), "-q"])
    return folder / "set"


@pytest.fixture
def swept(made, tmp_path, monkeypatch, capsys):
    """Return what sweeps the set, in a folder with a module of splitters."""
    (tmp_path / "my_cutters.py").write_text(
        "def broken(text):\n    print('here')\n    raise OSError('no knife')\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    capsys.readouterr()
    return lambda *words: main(["sweep", "--dataset", str(made), "--processes", "1", *words])


def test_the_verdict_stands_above_the_table(swept, capsys):
    """Who reads one sentence must have read the result."""
    code = swept("--size", "200,800")

    shown = capsys.readouterr().out
    assert code == 0
    assert shown.index("by EvidenceR(tokens=2000)") < shown.index("Configurations, best first")


def test_one_of_several_that_may_be_the_best_is_not_called_it(swept, capsys):
    """The proposed command must not say more than the verdict above it."""
    swept("--size", "200,800", "--splitter", "headings")
    shown = capsys.readouterr()

    assert "First by EvidenceR(tokens=2000): " in shown.out
    assert "# cut as one of the best does" in shown.err


def test_in_a_terminal_the_picture_stands_below_the_table(swept, capsys, monkeypatch):
    """A file has the table alone: programs read on from it."""
    swept("--size", "200")
    piped = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    swept("--size", "200")
    shown = capsys.readouterr().out

    assert "tokens in the prompt, mean" not in piped
    assert shown.index("Configurations, best first") < shown.index("tokens in the prompt, mean")
    assert "a 200 characters" in shown


def test_json_is_all_there_is_on_stdout(swept, capsys):
    """Programs read it."""
    swept("--size", "200", "--splitter", "recursive,my_cutters:broken", "--json")

    found = json.loads(capsys.readouterr().out)
    assert [item["splitter"] for item in found["configurations"]] == ["recursive"]
    assert [item["splitter"] for item in found["failed"]] == ["my_cutters:broken"]


def test_a_splitter_that_fails_ends_in_a_usage_error(swept, capsys):
    """A script must learn that the table has a hole."""
    code = swept("--size", "200", "--splitter", "recursive,my_cutters:broken")

    assert code == 2
    assert "raised OSError: no knife" in " ".join(capsys.readouterr().out.split())


def test_a_budget_of_none_leaves_the_cutoffs(swept, capsys):
    """Some systems take ten chunks whatever their size."""
    swept("--size", "200", "--tokens", "0", "-k", "5,10", "--json")

    found = json.loads(capsys.readouterr().out)
    assert found["decided_by"] == "EvidenceR@10"


def test_calls_of_embeddings_are_counted_before_they_are_made(swept, capsys):
    """Each size embeds the whole corpus again."""
    code = swept(
        *("--size", "200,800", "--splitter", "recursive", "--retriever", "dense", "--dry-run"),
        *("--embedding-model", "text-embedding-3-small", "--json"),
    )

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["calls"] > 2
    assert found["cost_usd"] > 0


def test_a_budget_stops_a_sweep(swept, capsys, server):
    """What was ranked until then is kept; the same command goes on."""
    code = swept(
        *("--size", "200,800", "--splitter", "recursive", "--retriever", "bm25,dense"),
        *("--embedding-model", "e", "--base-url", server.url, "--max-calls", "1"),
    )

    assert code == 5
    assert "the same command goes on" in capsys.readouterr().err


def test_dense_without_a_model_is_refused(swept, capsys):
    """There is no vector to be had."""
    code = swept("--retriever", "dense")

    assert code == 2
    assert "no embedding model is set" in capsys.readouterr().err


def test_a_disk_that_takes_nothing_is_named(made, swept, capsys):
    """Where rankings cannot be kept, nothing goes on as if they were."""
    import shutil

    kept = made / ".ragforge" / "sweep"
    shutil.rmtree(kept, ignore_errors=True)
    kept.write_text("in the way", encoding="utf-8")
    code = swept("--size", "300")
    kept.unlink()

    assert code == 3
    assert "cannot be written" in capsys.readouterr().err


def test_answers_of_a_system_stand_above_the_evidence(swept, tmp_path, capsys):
    """Who asks for answers reads them first."""
    (tmp_path / "my_readers.py").write_text(
        "def read(query, contexts):\n    print('printed-by-f')\n    return contexts[0]\n"
    )
    code = swept("--size", "200,800", "--system", "my_readers:read", "--answer-top", "2")

    shown = capsys.readouterr().out
    assert code == 0
    assert shown.index("Answers of my_readers:read") < shown.index("Configurations, best first")
    assert "printed-by-f" not in shown


def test_a_dry_run_tells_the_questions_and_calls_of_answers(swept, capsys):
    """Answers cost more than all that went before."""
    words = ("--size", "210,810", "--splitter", "recursive", "--dry-run", "--system", "json:dumps")
    code = swept(*words, "--model", "m", "--base-url", "http://127.0.0.1:1/v1")

    shown = " ".join(capsys.readouterr().out.split())
    assert code == 0
    assert "questions to the system, which no budget bounds, and 0 kept" in shown
    assert "calls of the model for answers and grades, about:" in shown


@pytest.mark.parametrize("flag", [["--answer-top", "2"], ["--ask-again"], ["--single-call"]])
def test_flags_of_answers_go_with_a_system(swept, capsys, flag):
    """Without one they would do nothing."""
    code = swept(*flag)

    assert code == 2
    assert f"{flag[0]}: goes with --system" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--dry-run"]])
def test_a_service_of_the_settings_has_no_place_for_contexts(swept, tmp_path, capsys, words):
    """Its request is filled with the query; what it retrieves is its own."""
    (tmp_path / "own.toml").write_text('[systems.mine]\nurl = "http://127.0.0.1:1/ask"\n')
    code = swept("--config", "own.toml", "--system", "mine", *words)

    assert code == 2
    assert "it retrieves by itself" in capsys.readouterr().err
