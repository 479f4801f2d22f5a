"""What is said of a command line that cannot be taken."""

import pytest

from ragforge.cli import COMMANDS, main
from ragforge.cli.parser import Parser
from ragforge.errors import UsageError

MISSPELT = [
    (["evaluate", "--datset", "x"], "evaluate: no option --datset; did you mean --dataset?"),
    (["chunk", "--documents", "x"], "without an option: ragforge chunk [DOCS…]"),
    (["judge", "--datset", "x"], "judge: no option --datset; did you mean --dataset?"),
    (["judge", "--datset=x"], "judge: no option --datset; did you mean --dataset?"),
    (["judge", "-dataset", "x"], "judge: no option -dataset; did you mean --dataset?"),
    (["judge", "--data", "x"], "judge: no option --data"),
    (["judge", "--Dataset", "x"], "judge: no option --Dataset; did you mean --dataset?"),
    (["cache", "prune", "--store", "x", "--older", "3"], "cache prune: no option --older"),
    (["cache", "prun"], "got 'prun'; did you mean prune?"),
    (["evaluate", "stray"], "evaluate: unexpected argument 'stray'"),
    (["evaluate", "--dataset"], "evaluate: --dataset: expected one argument"),
    (["judge"], "judge: one of the arguments --dataset --pairs is required"),
    (
        ["import", "q.csv", "--chunks", "c", "--clicks", "relevnt"],
        "import: --clicks: expected ignore or relevant, got 'relevnt'; did you mean relevant?",
    ),
    (
        ["judge", "--dataset", "x", "--transport", "aiohtp"],
        "input should be 'auto', 'httpx2' or 'aiohttp', got 'aiohtp'; did you mean aiohttp?",
    ),
    (["judge", "audit", "--datset", "x"], "judge audit: no option --datset; did you mean"),
    (["evalute"], "no command 'evalute'; did you mean evaluate?"),
    (["nonsense"], "no command 'nonsense'; `ragforge --help` lists them"),
    (["--verison"], "no option '--verison'; did you mean --version?"),
    (["config", "trsut"], "config: unexpected argument 'trsut'; did you mean trust?"),
    (["schema", "Qurey"], "no record 'Qurey'; did you mean Query?"),
    (["prompts", "show", "jugde_relevance"], "did you mean judge_relevance?"),
    (["schedule", "systemd-timr"], "did you mean systemd-timer?"),
]


@pytest.mark.parametrize(("words", "expected"), MISSPELT, ids=[" ".join(w) for w, _ in MISSPELT])
def test_a_word_that_is_not_known_is_told_in_one_line(words, expected, capsys):
    """Of 26 lines of usage nobody reads the last, which says what is wrong."""
    code = main(words)

    told = capsys.readouterr()
    assert (code, told.out, told.err.count("\n")) == (2, "", 1)
    assert expected in told.err


def test_a_usage_error_is_json_where_that_was_asked_for(capsys):
    """A program that reads stdout must not find it empty."""
    main(["evaluate", "--datset", "x", "--json"])

    assert '"exit_code": 2' in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_may_be_shortened(name, capsys):
    """What a script abbreviates would mean another option once one is added."""
    assert main([name, "--hel"]) == 2
    assert "no option --hel" in capsys.readouterr().err


def test_a_value_may_begin_with_a_dash_and_be_a_number(capsys, tmp_path):
    """A threshold below zero is a value, not an option."""
    code = main(["gate", "--dataset", str(tmp_path / "none"), "--min", "-0.5"])

    assert code in (2, 3)
    assert "no option" not in capsys.readouterr().err


def test_words_behind_two_dashes_are_no_options(capsys):
    """A file may be called as an option is."""
    code = main(["import", "--chunks", "c.jsonl", "--out", "set", "--", "--odd.json"])

    assert code != 2 or "no option" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("choices", "listed"), [("a", "a"), ("ab", "a or b"), ("abc", "a, b or c")]
)
def test_what_is_allowed_is_listed_as_a_sentence(choices, listed):
    """A list that reads badly is not read."""
    parser = Parser(prog="ragforge x")
    parser.add_argument("--kind", choices=choices)

    with pytest.raises(UsageError, match=f"x: --kind: expected {listed}, got '-'"):
        parser.parse_args(["--kind", "-"])


@pytest.mark.parametrize("command", ["validate", "evaluate", "worst", "compare", "history"])
def test_a_dataset_given_as_a_word_is_told_how_to_be_named(command, tmp_path, monkeypatch, capsys):
    """`ragforge evaluate my-set` is what hands type first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-set" / "current").mkdir(parents=True)
    (tmp_path / "my-set" / "current" / "manifest.json").write_text("{}")
    (tmp_path / "other").mkdir()

    assert main([command, "my-set"]) == 2
    assert "my-set is a dataset: give it as --dataset my-set" in capsys.readouterr().err
    assert main([command, "other"]) == 2
    assert "is a dataset" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "evaluate --dataset first --dataset b",
        "answer --dataset set --answers first --answers b.jsonl",
        "import q.csv --qrels first --qrels b.trec --out set",
    ],
)
def test_of_two_files_for_one_option_none_is_left_out(line, capsys):
    """The last one would be taken, and what the user thinks is in the result would not be."""
    assert main(line.split()) == 2
    assert " first; the command takes one" in capsys.readouterr().err


def test_documents_of_two_options_are_those_of_both(tmp_path, capsys):
    """So that a script may add a folder to those that it has."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(f"The {name} is a number of the first ten.")
    (tmp_path / "q.csv").write_text("question,doc_id\nWhat is one?,one.txt\nWhat is two?,two.txt\n")
    folders = ("--documents", str(tmp_path / "one"), "--documents", str(tmp_path / "two"))

    code = main(["import", str(tmp_path / "q.csv"), *folders, "--out", str(tmp_path / "set"), "-q"])

    assert code == 0, capsys.readouterr().err
    assert "two.txt" in (tmp_path / "set" / "documents.jsonl").read_text()
