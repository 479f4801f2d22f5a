"""A hand-made set, measured without any model: what is not listed is not relevant."""

import json

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset
from ragforge.records import Judgment, text_id

CHUNKS = [{"id": f"c{n}", "document": f"d{n}.md", "text": f"Fact {n} is here."} for n in range(9)]
GOLDEN = [{"query": f"Where is fact {n}?", "relevant": [f"c{n}"]} for n in range(5)]


@pytest.fixture
def golden(tmp_path, monkeypatch):
    """A set of five questions with one relevant chunk each, and a run that finds it second."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chunks.json").write_text(json.dumps(CHUNKS))
    (tmp_path / "golden.json").write_text(json.dumps(GOLDEN))
    (tmp_path / "second.py").write_text(
        "def search(query, k):\n"
        "    number = int(query.split()[-1].rstrip('?'))\n"
        "    return [f'c{(number + 1) % 9}', f'c{number}', f'c{(number + 2) % 9}']\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["import", "golden.json", "--chunks", "chunks.json", "--out", "set", "-q"]
    assert main(words) == 0
    assert main(["retrieve", "--dataset", "set", "--retriever", "second:search", "-q"]) == 0
    return tmp_path


def run(capsys, *words):
    capsys.readouterr()
    code = main([*words, "--dataset", "set"])
    return code, capsys.readouterr()


def test_a_gate_passes_on_labels_of_people_alone(golden, capsys):
    """Two thirds of what was retrieved is in no list, and that is what the author means."""
    code, said = run(capsys, "gate", "--min", "RR=0.4", "--min-queries", "5", "--point")

    assert (code, "what is not listed is not relevant" in said.out) == (0, True)


def test_a_gate_fails_on_labels_of_people_alone(golden, capsys):
    """RR is 0.5 by hand: each relevant chunk stands second."""
    code, said = run(capsys, "gate", "--min", "RR=0.6", "--min-queries", "5", "--point")

    assert (code, "0.500" in said.out) == (1, True)


def test_the_worst_queries_are_ranked_low_and_not_unjudged(golden, capsys):
    """The remedy is to rerank, and not to judge what the author judged by leaving it out."""
    _, said = run(capsys, "worst", "--json")

    [found] = json.loads(said.out)["runs"].values()
    assert {cause["code"] for cause in found["causes"]} == {"ranked_low"}


def test_evaluate_says_which_reading_is_in_force(golden, capsys):
    """The numbers of a pooled set mean something else."""
    _, said = run(capsys, "evaluate", "--no-history")

    assert "labels are complete: what is not listed is not relevant" in said.out


def test_labels_that_are_partial_leave_holes(golden, capsys):
    """The author labelled what came up, and no more."""
    words = ["import", "golden.json", "--dataset", "set", "--labels", "partial", "-q"]
    assert main(words) == 0

    code, said = run(capsys, "gate", "--min", "RR=0.4", "--min-queries", "5", "--point")

    assert (code, "66.7 % of the chunks in the top 10 have no grade" in said.out) == (1, True)


@pytest.mark.parametrize(("measure", "n_told"), [("RR", 1), ("EvidenceR@10", 0)])
def test_evaluate_says_how_many_holes_there_are(golden, capsys, measure, n_told):
    """They count as not relevant; evidence has none."""
    words = ["import", "golden.json", "--dataset", "set", "--labels", "partial", "-q"]
    assert main(words) == 0
    path = golden / "set" / "queries.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for n, row in enumerate(rows):
        quote = {"doc_id": f"d{n}.md", "chunk_id": f"c{n}", "quote": f"Fact {n} is here."}
        row["evidence"] = [quote]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert main(["validate", "--dataset", "set", "--accept"]) == 0

    code, said = run(capsys, "evaluate", "--no-history", "-m", measure)

    told = "second-search: 10 of 15 chunks in the top 10 are holes, and count as not relevant"
    assert (code, said.out.count(told)) == (0, n_told)


def test_a_reading_that_is_not_known_is_refused(golden, capsys):
    """A misspelt word must not be taken for a file."""
    code = main(["import", "golden.json", "--dataset", "set", "--labels", "most"])

    assert (code, "expected complete, pooled, partial" in capsys.readouterr().err) == (2, True)


def test_gate_and_report_tell_relevant_chunks_that_the_corpus_lacks(golden, capsys):
    """Recall cannot reach 1, and whoever reads it must know."""
    lacking = [{"query": "Where is fact 0?", "relevant": ["c0", "gone"]}]
    (golden / "lacking.json").write_text(json.dumps(lacking))
    words = ["import", "lacking.json", "--dataset", "set", "--allow-missing", "-q"]
    assert main(words) == 0

    _, said = run(capsys, "gate", "--min", "RR=0.4", "--min-queries", "5", "--point")
    assert main(["report", "--dataset", "set", "--out", "report.html", "-q"]) == 0

    told = "1 relevant chunk is not in the corpus: no run can find them"
    assert told in said.out
    assert told in (golden / "report.html").read_text()


def test_grades_of_texts_of_another_cut_are_no_chunks_that_the_corpus_lacks(golden, capsys):
    """They wait for a run that has these texts again; the other runs are not measured by them."""
    waiting = [
        Judgment(query_id=one.query_id, chunk_id=text_id(one.query_id), grade=3, source="human")
        for one in open_dataset(golden / "set").judgments()
    ]
    open_dataset(golden / "set").add_judgments(iter(waiting))

    _, gate = run(capsys, "gate", "--min", "R@3=0.4", "--min-queries", "5", "--point")
    _, found = run(capsys, "validate")
    assert main(["report", "--dataset", "set", "--out", "report.md", "-q"]) == 0

    told = "not in the corpus"
    report = (golden / "report.md").read_text()
    assert [told in text for text in (gate.out, found.out, found.err, report)] == [False] * 4
    assert "1.0000" in gate.out


def test_a_pool_that_was_judged_already_is_told_as_such(golden, capsys):
    """ "0 of 15 pairs judged" reads like a failure."""
    run(capsys, "judge")

    _, said = run(capsys, "judge")

    assert "the pool was judged already: all 15 pairs have a grade" in said.err


def test_a_chunk_that_is_not_listed_is_shown_as_such_among_the_worst(golden, capsys):
    """A question mark would say that somebody should look at it."""
    _, said = run(capsys, "worst")
    _, as_json = run(capsys, "worst", "--json")

    assert ("[-] c1" in said.out, "[?]" in said.out) == (True, False)
    [found] = json.loads(as_json.out)["runs"].values()
    assert {chunk["state"] for chunk in found["worst"][0]["retrieved"]} == {"graded", "unlisted"}


def test_worst_and_compare_say_which_reading_is_in_force(golden, capsys):
    """Their numbers mean something else in a pooled set, as those of evaluate do."""
    words = ["retrieve", "--dataset", "set", "--retriever", "bm25", "-q"]
    assert main(words) == 0

    for command in ("worst", "compare"):
        _, said = run(capsys, command)
        assert "what is not listed is not relevant" in " ".join(said.out.split())


def test_a_query_with_an_empty_list_is_told_and_not_sent_to_a_judge(golden, capsys):
    """Its author says that nothing is relevant; it has no value, and is in no mean."""
    empty = [{"query": "Where is fact 10?", "relevant": []}]
    (golden / "empty.json").write_text(json.dumps(empty))
    assert main(["import", "empty.json", "--dataset", "set", "-q"]) == 0

    _, worst = run(capsys, "worst", "--json")
    _, evaluated = run(capsys, "evaluate", "--no-history")

    [found] = json.loads(worst.out)["runs"].values()
    assert {cause["code"] for cause in found["causes"]} == {"ranked_low", "no_relevant_known"}
    assert "1 query without any label, and in no mean: q_" in evaluated.out


@pytest.mark.parametrize("words", [["judge"], ["judge", "--complete"]])
def test_a_judge_says_that_labels_are_complete_no_more(golden, capsys, words):
    """Its grades make a pool of what was complete, and all numbers mean something else."""
    assert main(["import", "golden.json", "--dataset", "set", "--labels", "complete", "-q"]) == 0

    _, said = run(capsys, *words)

    assert "labels were complete, and are of a pool now that a judge graded" in said.err
    assert json.loads((golden / "set" / "manifest.json").read_text())["labels"] == "pooled"
