"""The line behind a command that says what to do next."""

import json
import shlex

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset
from ragforge.mock import Script, serving


def run(capsys, *words):
    capsys.readouterr()
    code = main([*map(str, words)])
    return code, *capsys.readouterr()


def next_of(errors):
    """Return the words of the command that is proposed; it is the last line."""
    line = errors.rstrip("\n").splitlines()[-1]
    assert line.startswith("next: ragforge ")
    return shlex.split(line.removeprefix("next: "), comments=True)[1:]


def test_each_step_can_be_run_as_it_is_shown(documents, tmp_path, capsys):
    """From documents to a page, by copying the last line each time."""
    out = tmp_path / "my set"
    code, _, told = run(capsys, "generate", "--documents", documents, "-n", "3", "--out", out)
    names = []
    while code in (0, 1) and "next: " in told and len(names) < 4:
        words = next_of(told)
        names.append(words[0])
        words = [word if word != "report.html" else str(tmp_path / word) for word in words]
        if "NAME" in words:
            break
        code, _, told = run(capsys, *words)

    assert names[0] == "compare"
    assert open_dataset(out).run_names() == ["bm25", "chargram"]
    assert code == 0


@pytest.mark.parametrize("flag", ["--json", "-q"])
def test_programs_and_the_quiet_are_told_nothing(dataset, capsys, flag):
    """A log of every night must not tell anybody what to type."""
    _, _, told = run(capsys, "compare", "--dataset", dataset, "--retriever", "bm25", flag, "bm25")
    _, _, of_judge = run(capsys, "judge", "--dataset", dataset, flag)

    assert "next:" not in told + of_judge


def test_a_winner_is_led_to_a_gate(tmp_path, capsys, monkeypatch):
    """A comparison shows a difference; whether it may ship is decided by rules."""
    (tmp_path / "q.trec").write_text("".join(f"q{n} 0 d{n} 3\nq{n} 0 x{n} 0\n" for n in range(30)))
    for name, first, second in (("good", "d", "x"), ("bad", "x", "d")):
        lines = (f"q{n} Q0 {first}{n} 1 2 t\nq{n} Q0 {second}{n} 2 1 t\n" for n in range(30))
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    runs = ("--run", tmp_path / "bad.trec", "--run", tmp_path / "good.trec")

    code, _, told = run(capsys, "compare", "--qrels", tmp_path / "q.trec", *runs)

    line = told.rstrip("\n").splitlines()[-1]
    assert code == 0
    assert line.endswith("# may good ship?")
    write, _, gate = line.partition(" && ")
    monkeypatch.chdir(tmp_path)
    for command, run_file in ((f"{write}", "bad.trec"), (f"next: {gate}", "good.trec")):
        assert f"--run {tmp_path / run_file}" in command
        assert main(next_of(command)) == 0
    assert (tmp_path / "baseline.json").exists()


def test_model_and_settings_are_taken_over(documents, tmp_path, capsys):
    """A next command that asks no model would give grades of the baseline."""
    with serving(Script()) as endpoint:
        address = ("--model", "m", "--base-url", endpoint.url)
        _, _, told = run(
            capsys,
            *("generate", "--documents", documents, "-n", "2", "--out", tmp_path / "set"),
            *address,
        )

    words = next_of(told)
    assert words[-4:] == [*address]


def test_named_services_are_proposed(tmp_path, capsys, monkeypatch):
    """Whoever described a service in settings wants it measured."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(
        '[retrievers.old]\nurl = "http://127.0.0.1:1/old"\n'
        '[retrievers.new]\nurl = "http://127.0.0.1:1/new"\n'
    )
    (tmp_path / "q.csv").write_text("question\nWhy?\nHow?\n")

    code, _, told = run(capsys, "import", "q.csv", "--out", "set", "--config", "mine.toml")

    assert code == 0
    assert next_of(told) == [
        *("compare", "--dataset", "set", "--retriever", "old", "--retriever", "new", "--judge"),
        *("--config", "mine.toml"),
    ]


def test_answers_lead_to_a_page_and_then_to_a_comparison(dataset, tmp_path, capsys):
    """One system is looked at, two are compared."""
    ids = [query.query_id for query in open_dataset(dataset).accepted_queries()]
    for name in ("old", "new"):
        rows = [json.dumps({"query_id": query_id, "answer": "Wax."}) for query_id in ids]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    words = ("answer", "--dataset", dataset, "--answers")

    _, _, of_first = run(capsys, *words, tmp_path / "old.jsonl")
    _, _, of_second = run(capsys, *words, tmp_path / "new.jsonl")

    first, second = next_of(of_first), next_of(of_second)
    assert first == ["report", "--dataset", str(dataset), "--out", "report.html"]
    assert second == ["compare", "--dataset", str(dataset), "--answers", "old", "new"]
    assert main(second) == 0


def test_a_new_version_leads_to_what_changed(documents, dataset, capsys):
    """What a night did is read query by query."""
    (documents / "more.md").write_text("# More\n\nLinseed oil dries in three days.\n")

    _, _, told = run(capsys, "refresh", "--dataset", dataset, "--documents", documents)

    assert next_of(told) == ["diff", "--dataset", str(dataset), "--since", "1"]
    assert main(next_of(told)) == 0


def test_a_service_that_is_understood_leads_to_a_run(scripted, tmp_path, capsys):
    """It was probed to be asked."""
    (tmp_path / "mine.toml").write_text(f'[retrievers.docs]\nurl = "{scripted.url}/x"\n')
    scripted.answer = lambda seen: {"hits": [{"chunk_id": "a", "text": "b", "score": 1}]}

    code, _, told = run(capsys, "probe", "docs", "Why?", "--config", tmp_path / "mine.toml")

    assert code == 0
    assert next_of(told)[:5] == ["retrieve", "--dataset", "my-set", "--retriever", "docs"]


def test_what_only_reads_leads_on_as_well(dataset, tmp_path, capsys):
    """Each proposed command runs as it is."""
    run(capsys, "retrieve", "--dataset", dataset, "--retriever", "bm25")
    run(capsys, "evaluate", "--dataset", dataset)
    out, page = tmp_path / "exported", tmp_path / "report.html"
    steps = {
        ("validate", "--dataset", dataset): "plan",
        ("export", "--dataset", dataset, "--as", "trec", "--out", out): "evaluate",
        ("history", "--dataset", dataset): "report",
        ("diff", dataset, dataset): "evaluate",
    }
    for words, expected in steps.items():
        code, _, told = run(capsys, *words)
        proposed = next_of(told)

        assert (code, proposed[0]) == (0, expected)
        assert main([str(page) if word == page.name else word for word in proposed]) == 0


def test_a_version_that_is_no_more_in_use_leads_nowhere(documents, dataset, tmp_path, capsys):
    """Its history is closed."""
    run(capsys, "retrieve", "--dataset", dataset, "--retriever", "bm25")
    (documents / "more.md").write_text("# More\n\nLinseed oil dries in three days.\n")
    run(capsys, "refresh", "--dataset", dataset, "--documents", documents)

    code, _, of_versions = run(capsys, "diff", dataset / "versions/1", dataset / "versions/2")
    _, _, since = run(capsys, "diff", "--dataset", dataset, "--since", "1")

    assert (code, "next:" in of_versions) == (0, False)
    assert next_of(since) == ["evaluate", "--dataset", str(dataset)]


def test_a_sweep_leads_to_chunks_cut_as_the_best_does(dataset, documents, tmp_path, capsys):
    """It was run to cut the documents that way."""
    cut = ("--size", "300", "--splitter", "headings", "--overlap", "0", "--retriever", "bm25")

    _, _, told = run(capsys, "sweep", "--dataset", dataset, "--documents", documents, *cut)

    words = next_of(told)
    assert words == ["chunk", str(documents), "--max-chars", "300", "--out", "chunks.jsonl"]
    assert main([*words[:-1], str(tmp_path / "chunks.jsonl")]) == 0


def test_answers_are_told_in_five_lines(dataset, tmp_path, capsys):
    """Ten rates and what explains them are for --verbose, JSON and the report."""
    first, *_ = open_dataset(dataset).accepted_queries()
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"query_id": first.query_id, "answer": "Wax."}))
    words = ("answer", "--dataset", dataset, "--answers", path)

    _, shown, _ = run(capsys, *words)
    _, verbose, _ = run(capsys, *words, "--verbose")

    assert len(shown.splitlines()) <= 5
    assert "could be" in shown
    assert "harmonic mean of both" in verbose


def test_generation_says_five_lines(documents, tmp_path, capsys):
    """Sixty lines are read by nobody; the rest is in the card and with --verbose."""
    words = ("generate", "--documents", documents, "-n", "3")

    _, _, told = run(capsys, *words, "--out", tmp_path / "a")
    _, _, verbose = run(capsys, *words, "--out", tmp_path / "b", "--verbose")

    summary = [line for line in told.splitlines() if line[:1].isdigit() or line[:2] in ("co", "wo")]
    assert len(summary) <= 5
    assert "3 queries of 3 wanted" in told
    assert "sample size: 3 queries, too few" in told
    assert "Funnel" not in told
    assert "Funnel" in verbose


def test_a_run_without_a_ranking_is_not_proposed(dataset, tmp_path, capsys, monkeypatch):
    """A retriever that failed on all queries leaves a run behind, which is no rival."""
    (tmp_path / "failing.py").write_text("def search(query, k):\n    raise OSError(query)\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = ("retrieve", "--dataset", dataset, "--retriever")
    assert run(capsys, *words, "failing:search", "--name", "zz")[0] == 4

    _, _, told = run(capsys, *words, "chargram", "--name", "other")

    assert "zz" in open_dataset(dataset).run_names()
    assert "zz" not in next_of(told)


def test_a_run_that_came_with_grades_is_measured(tmp_path, capsys):
    """There is nothing to judge where neither chunks nor texts are."""
    (tmp_path / "q.trec").write_text("q1 0 a 2\nq1 0 b 0\n")
    (tmp_path / "r.trec").write_text("q1 Q0 a 1 1.0 t\n")
    files = ("--qrels", tmp_path / "q.trec", "--run", tmp_path / "r.trec")

    _, _, told = run(capsys, "import", *files, "--out", tmp_path / "set")

    assert next_of(told) == ["evaluate", "--dataset", str(tmp_path / "set"), "--run", "r"]
