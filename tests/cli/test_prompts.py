"""The prompts as a user sees them."""

import json
import re

import pytest

from ragforge.cli import main
from ragforge.files.shipped_folders import shipped
from ragforge.prompts import load_prompt


@pytest.fixture
def run(capsys):
    """Run `ragforge prompts` and return its exit code, stdout and stderr."""

    def go(*words):
        capsys.readouterr()
        code = main(["prompts", *map(str, words)])
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return code, shown.out, shown.err

    return go


@pytest.fixture
def rubrics(tmp_path, run):
    """A folder with a copy of the judge's prompt."""
    assert run("copy", "judge_relevance", "--to", tmp_path / "rubrics")[0] == 0
    return tmp_path / "rubrics"


def edit(folder, old, new):
    path = folder / "judge_relevance.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_copy_tells_the_file_and_what_to_do_with_it(tmp_path, run):
    """The path is data, for a script that opens an editor."""
    code, out, err = run("copy", "judge_relevance", "--to", tmp_path / "mine")

    assert (code, out) == (0, f"{tmp_path / 'mine' / 'judge_relevance.toml'}\n")
    assert f"give --prompts-dir {tmp_path / 'mine'} to use it" in err


def test_copy_does_not_overwrite(rubrics, run):
    """What was edited stays."""
    edit(rubrics, "version = 1", "version = 2")
    code, out, err = run("copy", "judge_relevance", "--to", rubrics)

    assert (code, out) == (2, "")
    assert "is there already" in err


def test_list_shows_which_prompt_is_overridden(rubrics, run):
    """A rubric that is not in force grades nothing."""
    edit(rubrics, "You grade", "In the field of law, you grade")
    code, out, _ = run("list", "--prompts-dir", rubrics)

    lines = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0
    assert lines["grade_answer"].endswith("shipped")
    assert str(rubrics) in lines["judge_relevance"]
    assert "differs from shipped version 1; raise its version" in lines["judge_relevance"]


def test_list_as_json(rubrics, run):
    """A script pins digests."""
    _, out, _ = run("list", "--prompts-dir", rubrics, "--json")

    found = {each["name"]: each for each in json.loads(out)["prompts"]}
    assert found["judge_relevance"] == {
        "name": "judge_relevance",
        "version": 1,
        "schema": "relevance",
        "sha256": load_prompt("judge_relevance").sha256,
        "origin": str(rubrics),
        "note": "same as shipped",
    }


def test_show_shows_the_prompt_in_force(rubrics, run):
    """The user's goes before the shipped one here as in a run."""
    edit(rubrics, "You grade", "In the field of law, you grade")

    assert "In the field of law" in run("show", "judge_relevance", "--prompts-dir", rubrics)[1]


def test_show_cannot_steer_a_terminal(rubrics, run):
    """A prompt may come from somebody else."""
    edit(rubrics, "You grade", "You \u202egrade")

    assert "You \\u202egrade" in run("show", "judge_relevance", "--prompts-dir", rubrics)[1]


def test_diff_shows_what_an_override_changes(rubrics, run):
    """A difference is an answer, not a failure: the exit code is 0."""
    edit(rubrics, "version = 1", "version = 2")
    code, out, err = run("diff", "judge_relevance", "--prompts-dir", rubrics)

    assert (code, err) == (0, "")
    assert re.search(r"^@@ .*\n-version = 1\n\+version = 2$", out, re.MULTILINE)


def test_diff_of_equal_prompts_prints_nothing(rubrics, run):
    """What is piped on is empty; a reader is told on stderr."""
    found = run("diff", "judge_relevance", "--prompts-dir", rubrics)

    assert found == (0, "", "no difference\n")


def test_diff_of_two_prompts(run):
    """Two rubrics side by side."""
    code, out, _ = run("diff", "judge_relevance", "judge_relevance_umbrela_style")

    assert code == 0
    assert out.startswith("--- judge_relevance.toml\n+++ judge_relevance_umbrela_style.toml\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["diff", "judge_relevance"], "diff needs --prompts-dir DIR"),
        (["diff", "judge_relevance", "nobody"], "no prompt 'nobody'; there are:"),
        (["show", "jugde_relevance"], "did you mean judge_relevance?"),
        (["copy", "nobody", "--to", "x"], "no prompt 'nobody'"),
        (["list", "--prompts-dir", "nowhere"], "--prompts-dir nowhere: no such folder"),
    ],
)
def test_what_cannot_be_taken_is_told(run, words, message):
    """Each is a slip of the keyboard."""
    code, out, err = run(*words)

    assert (code, out) == (2, "")
    assert message in err


def test_an_override_that_fits_no_stage_stops_the_judge_before_any_call(
    tmp_path, rubrics, pairs, serve, capsys
):
    """A rubric without its fence would be paid for on every pair."""
    edit(rubrics, "<<$marker>>\n", "")
    endpoint = serve()
    words = ["judge", "--pairs", str(pairs), "--out", str(tmp_path / "judged.jsonl"), "-q"]

    code = main([*words, "--model", "m", "--base-url", endpoint.url, "--prompts-dir", str(rubrics)])

    assert (code, endpoint.seen) == (2, [])
    assert "judge_relevance.toml: user: lacks $marker" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["judge_relevance", "judge_relevance_umbrela_style"])
def test_a_shipped_rubric_judges(tmp_path, name, pairs, serve):
    """Each prompt for pairs works with the judge's checks and records its digest."""
    out = tmp_path / "judged.jsonl"
    words = ["judge", "--pairs", str(pairs), "--out", str(out), "-q", "--prompt", name]

    assert main([*words, "--model", "m", "--base-url", serve().url]) == 0

    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {row["provenance"]["prompt"] for row in rows} == {name}
    assert None not in {row["grade"] for row in rows}


def test_the_published_criteria_are_in_words_of_our_own():
    """The published prompt is quoted by none of its sentences."""
    text = (shipped("prompts") / "judge_relevance_umbrela_style.toml").read_text(encoding="utf-8")

    published = [
        "nothing to do with the query",
        "seems related to the query but does not answer it",
        "hidden amongst extraneous information",
        "dedicated to the query and contains the exact answer",
        "underlying intent of the search",
        "how trustworthy the passage is",
    ]
    assert [words for words in published if words in text] == []
