import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ranked_sets import JUDGE, OFFLINE, ranked_set

import ragforge
from ragforge.cli import main
from ragforge.records import Answer, AnswerGrade


@pytest.fixture(autouse=True)
def outside_of_github(monkeypatch, tmp_path):
    """Tests run in CI services too; their variables and settings files must not be used."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def gate(tmp_path):
    """Run the command on thirty queries and two runs."""
    ranked_set(tmp_path / "set", {"new": [2] * 30, "old": [1] * 30})
    return lambda *words: main(["gate", "--dataset", str(tmp_path / "set"), *words])


def test_a_pass_is_exit_code_0(gate, capsys):
    """CI services read nothing else."""
    assert gate("--run", "old", "--min", "RR=0.8") == 0
    assert capsys.readouterr().out.splitlines()[1] == "gate: PASS: 1 rule is shown to be held."


def test_a_failure_is_exit_code_1(gate, capsys):
    """Likewise."""
    assert gate("--run", "new", "--min", "RR=0.8") == 1
    assert capsys.readouterr().out.splitlines()[1] == "gate: FAIL: shown not to be held: min RR."


def test_a_refusal_is_exit_code_1(gate, capsys):
    """What cannot be judged may not ship."""
    assert gate("--run", "old", "--min", "RR=0.8", "--min-queries", "31") == 1
    assert "(allow with --allow-few)" in capsys.readouterr().out


def test_the_flag_that_a_refusal_names_allows_it(gate):
    """A message that names a flag which does not help is worse than none."""
    words = ["--run", "old", "--min", "RR=0.8", "--min-queries", "31", "--allow-few"]

    assert gate(*words) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to check: give --min"),
        (["--min", "nDCG@10"], "--min nDCG@10: expected MEASURE=NUMBER"),
        (["--min", "RR=nan"], "'nan' is no number"),
        (["--min", "XYZ=0.5"], "XYZ"),
        (["--max-failures", "101%"], "--max-failures 101%: 101% is out of range"),
        (["--max-holes", "many"], "--max-holes many: 'many' is no number"),
        (["--min", "RR=0.5", "--min-queries", "0"], "--min-queries 0: expected a whole number"),
        (["--max-drop", "RR=0.02"], "--max-drop needs a --baseline"),
        (["--min", "RR=auto"], "'auto' is no number"),
        (["--max-drop", "RR=auto", "--baseline", "last", "--point"], "is sized by an interval"),
        (["--min", "RR=0.5", "--baseline-file", "b.json"], "goes with `--baseline main`"),
        (["--baseline", "a.json", "--baseline", "b.json"], "comes beside --baseline a.json"),
        (["--run", "new", "--min", "RR=0.5"], "--run new: comes beside --run old; the command"),
        (["--max", "RR=0.5"], "it goes with --answers SYSTEM"),
        (["--answers", "mine", "--min", "score=0.5"], "give either --run NAME or --answers"),
    ],
)
def test_rules_that_cannot_be_taken_are_usage_errors(gate, capsys, words, message):
    """A mistyped rule must not look like a failed gate."""
    assert gate("--run", "old", *words) == 2
    assert message in capsys.readouterr().err


def test_one_of_several_runs_must_be_named(gate, capsys):
    """A guess would gate the wrong one."""
    assert gate("--min", "RR=0.8") == 2
    assert "--run: expected one of: new, old" in capsys.readouterr().err


def test_the_only_run_need_not_be_named(tmp_path):
    """There is nothing to guess."""
    ranked_set(tmp_path / "set", {"only": [1] * 30})

    assert main(["gate", "--dataset", str(tmp_path / "set"), "--min", "RR=0.8"]) == 0


def test_a_run_that_is_not_there_is_bad_data(gate, capsys):
    """The message lists those that are."""
    assert gate("--run", "none", "--min", "RR=0.8") == 3
    assert "no 'none'; there are: new, old" in capsys.readouterr().err


def test_a_written_baseline_can_be_held_against(gate):
    """The two flags are one workflow."""
    assert gate("--run", "old", "--write-baseline", "b.json") == 0
    assert gate("--run", "old", "--max-drop", "RR=0.02", "--baseline", "b.json") == 0
    assert gate("--run", "new", "--max-drop", "RR=0.02", "--baseline", "b.json") == 1


def test_a_drop_can_be_sized_by_the_queries(gate, capsys):
    """Nobody knows what so many queries can rule out."""
    assert gate("--run", "old", "--write-baseline", "b.json") == 0
    capsys.readouterr()

    assert gate("--run", "new", "--max-drop", "RR=auto", "--baseline", "b.json") == 1
    assert "(auto)" in capsys.readouterr().out
    assert gate("--run", "old", "--max-drop", "RR=auto", "--baseline", "b.json", "--json") == 0
    [check] = json.loads(capsys.readouterr().out)["checks"]
    assert (check["is_sized"], check["threshold"]) == (True, 0.0)


def test_python_takes_a_sized_drop(tmp_path):
    """As the command does."""
    ranked_set(tmp_path / "set", {"new": [2] * 30, "old": [1] * 30})
    made = ragforge.open(tmp_path / "set")
    made.gate("old", write_baseline_to=tmp_path / "b.json")

    assert made.gate("old", max_drop={"RR": "auto"}, baseline=tmp_path / "b.json").passed
    assert not made.gate("new", max_drop={"RR": "auto"}, baseline=tmp_path / "b.json").passed


def test_a_run_that_fails_is_no_baseline(gate, tmp_path, capsys):
    """The bar would sink with each bad run."""
    assert gate("--run", "new", "--min", "RR=0.8", "--write-baseline", "b.json") == 1
    assert not (tmp_path / "b.json").exists()
    assert "b.json: not written, as the gate did not pass" in capsys.readouterr().err


def test_grades_of_the_offline_judge_are_no_baseline(tmp_path):
    """What a gate would refuse to decide on cannot be its bar."""
    ranked_set(tmp_path / "set", {"only": [1] * 30}, judge=OFFLINE)

    assert main(["gate", "--dataset", "set", "--write-baseline", "b.json"]) == 1


@pytest.mark.parametrize("named", ["none.json", "last", "main"])
def test_a_baseline_that_is_not_there_is_bad_data(gate, monkeypatch, tmp_path, named):
    """Exit code 1 would say that the run is worse."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    assert gate("--run", "old", "--max-drop", "RR=0.02", "--baseline", named) == 3


def test_a_baseline_of_another_tool_is_bad_data(gate, tmp_path, capsys):
    """Likewise."""
    (tmp_path / "b.json").write_text('{"results": []}', "utf-8")

    assert gate("--run", "old", "--max-drop", "RR=0.02", "--baseline", "b.json") == 3
    assert "b.json: is no baseline" in capsys.readouterr().err


def test_json_is_all_of_stdout(gate, capsys):
    """Scripts parse it, with annotations asked for too."""
    gate("--run", "new", "--min", "RR=0.8", "--json", "--github")
    out, err = capsys.readouterr()

    assert json.loads(out)["verdict"] == "FAIL"
    assert "::error title=gate min RR::" in err


def test_json_holds_no_workflow_command(tmp_path, capsys):
    """A runner finds this one in the middle of a line."""
    text = "##[add-path]/tmp"
    ranked_set(tmp_path / "set", {"a": [1] * 30, "b": [2] * 30}, texts=[text] * 30)
    main(["gate", "--dataset", "set", "--run", "a", "--write-baseline", "b.json", "--json"])
    capsys.readouterr()
    main(["gate", "--dataset", "set", "--run", "b", *"--min RR=0 --baseline b.json --json".split()])
    out = capsys.readouterr().out

    assert json.loads(out)["fallen"][0]["query"] == text
    assert "##[" not in out


def test_junit_is_written(gate, tmp_path):
    """Most CI services read it."""
    gate("--run", "new", "--min", "RR=0.8", "--junit", "out/g.xml")

    assert len(list(ElementTree.parse(tmp_path / "out" / "g.xml").iter("failure"))) == 1


def test_markdown_is_written(gate, tmp_path):
    """A bot posts it."""
    gate("--run", "new", "--min", "RR=0.8", "--markdown", "g.md")

    assert (tmp_path / "g.md").read_text("utf-8").startswith("<!-- ragforge gate set new -->")


def test_a_step_summary_is_appended(gate, tmp_path, monkeypatch):
    """Other steps wrote theirs into the same file."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "summary.md").write_text("of another step", "utf-8")

    gate("--run", "old", "--min", "RR=0.8", "--github")

    lines = (tmp_path / "summary.md").read_text("utf-8").splitlines()
    assert lines[:2] == ["of another step", "<!-- ragforge gate set old -->"]


def test_a_full_step_summary_stays_as_it_is(gate, tmp_path, monkeypatch, capsys):
    """Beyond 1 MiB GitHub drops all of it."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "summary.md").write_bytes(b"x" * (1024 * 1024 - 10))

    assert gate("--run", "old", "--min", "RR=0.8", "--github") == 0
    assert (tmp_path / "summary.md").stat().st_size == 1024 * 1024 - 10
    assert "has no room left below 1 MiB" in capsys.readouterr().err


def test_without_a_step_summary_annotations_are_printed_all_the_same(gate, capsys):
    """Who tries the flag at home is to see what it does."""
    assert gate("--run", "old", "--min", "RR=0.8", "--github") == 0
    out, err = capsys.readouterr()

    assert (
        "::notice title=ragforge gate::PASS: 1 rule is shown to be held. set version 1, run old"
        in out
    )
    assert "GITHUB_STEP_SUMMARY is not set" in err


def test_a_summary_that_cannot_be_written_is_bad_data(gate, tmp_path, monkeypatch):
    """A full disk is no bug."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))

    assert gate("--run", "old", "--min", "RR=0.8", "--github") == 3


@pytest.fixture
def answered(tmp_path):
    """Thirty answers of one system, all correct, and held against what was retrieved."""
    dataset = ranked_set(tmp_path / "set", {"run": [1] * 30})
    ids = [query.query_id for query in dataset.all_queries()]
    dataset.write_answers("mine", [Answer(query_id=key, answer="Yes.") for key in ids])
    dataset.write_answer_grades(
        "mine",
        [
            AnswerGrade(query_id=k, verdict="correct", score=1.0, has_hallucination=False,
                        provenance=JUDGE)
            for k in ids
        ],
    )  # fmt: skip
    return ["gate", "--dataset", str(tmp_path / "set"), "--answers", "mine"]


def test_answers_are_gated_by_their_own_measures(answered, capsys):
    """Retrieval is half of a RAG system."""
    assert main([*answered, "--min", "correct=0.8", "--max", "hallucination=0.2"]) == 0
    assert "run answers/mine, 30 queries" in capsys.readouterr().out


def test_answers_have_a_baseline_file_too(answered):
    """The workflow is the same."""
    assert main([*answered, "--write-baseline", "a.json"]) == 0
    assert main([*answered, "--max-drop", "score=0.01", "--baseline", "a.json"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--min", "nDCG@10=0.5"], "'nDCG@10' is no measure of answers; there are: score"),
        (["--min", "hallucination=0.5"], "so that it goes with --max"),
        (["--max", "hallucination=2"], "2 is out of range"),
        (["--max-drop", "score=0.1", "--baseline", "last"], "the history holds runs only"),
    ],
)
def test_rules_that_answers_cannot_take_are_usage_errors(answered, capsys, words, message):
    """The message must say which measures there are."""
    assert main([*answered, *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--junit", "set/queries.jsonl"], "--junit set/queries.jsonl: is a file of the dataset"),
        (["--write-baseline", "set/runs/old.jsonl"], "is a file of the dataset"),
        (["--markdown", "set/baseline.json"], "is a baseline, which --write-baseline alone"),
        (["--junit", "x", "--markdown", "x"], "--markdown x: is the file of --junit too"),
    ],
)
def test_outputs_cost_nothing_that_is_kept(gate, capsys, tmp_path, words, message):
    """A slip of the hand must not cost a set that people graded."""
    gate("--run", "old", "--write-baseline", "set/baseline.json")
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}
    capsys.readouterr()

    assert gate("--run", "old", "--min", "RR=0.5", *words) == 2
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json*")} == kept


def test_an_older_baseline_is_replaced(gate, tmp_path):
    """That is how the bar is raised."""
    gate("--run", "old", "--write-baseline", "set/baseline.json")
    before = (tmp_path / "set" / "baseline.json").read_bytes()

    assert gate("--run", "new", "--write-baseline", "set/baseline.json") == 0
    assert (tmp_path / "set" / "baseline.json").read_bytes() != before


def test_without_rules_nothing_is_called_a_pass(gate, capsys):
    """What was not checked did not pass."""
    assert gate("--run", "old", "--write-baseline", "b.json") == 0
    out, err = capsys.readouterr()

    assert out.splitlines()[1] == "gate: Nothing was checked."
    assert err == "b.json: nothing checked; baseline of old written\n"


def test_a_baseline_with_nan_is_bad_data(gate, tmp_path, capsys):
    """It was made by a script; that is no bug of ragforge."""
    gate("--run", "old", "--write-baseline", "b.json")
    path = tmp_path / "b.json"
    path.write_text(path.read_text("utf-8").replace('"RR": 1.0', '"RR": NaN'), "utf-8")

    assert gate("--run", "old", "--max-drop", "RR=0.02", "--baseline", "b.json") == 3
    assert "b.json: expected finite numbers" in capsys.readouterr().err


def test_a_gate_that_fails_is_told_to_the_hooks_of_the_settings(gate, server, monkeypatch):
    """Whoever is on call reads no log of a nightly run."""
    monkeypatch.setenv("RAGFORGE_REFRESH_NOTIFY_URL", server.url)

    assert gate("--run", "new", "--min", "RR=0.8") == 1
    [(_, _, content)] = server.requests
    told = json.loads(content)
    assert (told["kind"], told["run"], told["exit_code"]) == ("gate_failed", "new", 1)
    assert told["checks"][0]["name"] == "min RR"


def test_a_gate_that_passes_tells_nobody(gate, server, monkeypatch):
    """An alarm every night is none."""
    monkeypatch.setenv("RAGFORGE_REFRESH_NOTIFY_URL", server.url)

    assert gate("--run", "old", "--min", "RR=0.8") == 0
    assert server.requests == []


def test_a_hook_that_fails_leaves_the_exit_code(gate, monkeypatch, capsys):
    """CI decides by the gate."""
    monkeypatch.setenv("RAGFORGE_REFRESH_NOTIFY_COMMAND", "no-such-program")

    assert gate("--run", "new", "--min", "RR=0.8") == 1
    assert "notify_command 'no-such-program' cannot be run" in capsys.readouterr().err


def _files(n, rows):
    """Write qrels of so many queries, and a run of rows in JSON Lines."""
    lines = [f"q{i} 0 d{i} 1\nq{i} 0 x{i} 0\n" for i in range(n)]
    Path("q.qrels").write_text("".join(lines), encoding="utf-8")
    Path("run.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return ["gate", "--qrels", "q.qrels", "--run", "run.jsonl"]


def test_rows_of_errors_in_a_run_file_are_failures(capsys):
    """The gate said that 0 of 40 queries failed where every second row told of a timeout."""
    good = [{"query_id": f"q{i}", "ranking": [f"d{i}"]} for i in range(38)]
    bad = [
        {"query_id": "q38", "error": "timeout", "ranking": None},
        {"query_id": "q39", "ranking": None},
    ]
    assert main([*_files(40, good + bad), "--max-failures", "0%"]) == 1
    told = capsys.readouterr().out
    assert "gate: FAIL" in told
    assert "2 of 40 queries failed" in told


def test_failures_that_a_run_file_cannot_tell_refuse_the_rule(capsys):
    """Half of the queries were missing, and none of them counted as failed."""
    half = [{"query_id": f"q{i}", "ranking": [f"d{i}"]} for i in range(20)]
    assert main([*_files(40, half), "--max-failures", "0%"]) == 1
    told = capsys.readouterr().out
    assert "gate: REFUSED" in told
    assert "20 queries of 40 are not in the file of run run" in told

    assert main([*_files(40, half), "--min", "RR=0.1"]) == 0

    nothing_found = [{"query_id": f"q{i}", "ranking": []} for i in range(20, 40)]
    assert main([*_files(40, half + nothing_found), "--max-failures", "0%"]) == 0
