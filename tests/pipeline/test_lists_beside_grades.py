"""Sets in which lists of relevant chunks and grades go by no common threshold, in every command."""

import json
import shutil
from math import log2

import pytest

from ragforge.cli import main
from ragforge.config import EvaluateSettings
from ragforge.evaluating.summary import summarise
from ragforge.files.formats.qrels import read_judged_qrels
from ragforge.files.set.opening import open_dataset
from ragforge.observe import silent
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.pipeline.evaluated import evaluate_runs, rescoring_basis_now
from ragforge.pipeline.exporting import export
from ragforge.pipeline.history import keep_evaluations
from ragforge.pipeline.intake.importing import import_queries
from ragforge.pipeline.worst import find_worst
from ragforge.records import Hit, Judgment, Provenance, Ranking

pytestmark = pytest.mark.slow


ROWS = [
    {
        "id": "q1",
        "query": "how is tea sold",
        "relevant_doc_ids": ["a", "b"],
        "graded_relevance": {"a": 1, "c": 3},
    },
    {"id": "q2", "query": "how is salt sold", "relevant_doc_ids": ["c"]},
]
"""q1: a is listed with grade 1, b without, c has grade 3 and is not. q2 has no grade at all."""
RANKED = {"q1": "cba", "q2": "ac"}
# RR: 1/2 and 1/2. P@2: 1/2 and 1/2. R@2: 1/2 and 1.
BY_LIST = {"RR": 0.5, "P@2": 0.5, "R@2": 0.75}
NDCG = ((3 + 1 / 2) / (3 + 1 / log2(3)) + 1 / log2(3)) / 2
"""q1 by its grades, c a; q2 as if c had the one gain there is."""
SETTINGS = EvaluateSettings(measures=("RR", "P@2", "R@2", "nDCG@3"))


@pytest.fixture
def dataset(tmp_path):
    """Four chunks, the two queries, and their rankings as a run."""
    chunks = [
        {"id": name, "document": f"{name}.md", "text": f"The {word} is sold by weight."}
        for name, word in zip("abcd", ("tea", "rice", "salt", "oil"), strict=True)
    ]
    (tmp_path / "chunks.json").write_text(json.dumps(chunks), "utf-8")
    (tmp_path / "set.json").write_text(json.dumps({"queries": ROWS}), "utf-8")
    words = ["import", str(tmp_path / "set.json"), "--chunks", str(tmp_path / "chunks.json")]
    assert main([*words, "--out", str(tmp_path / "set"), "-q"]) == 0
    made = open_dataset(tmp_path / "set")
    made.write_run("mine", rankings(RANKED))
    return made


def rankings(by_query):
    return [
        Ranking(
            query_id=query_id,
            ranking=tuple(Hit(chunk_id=c, score=1 / n) for n, c in enumerate(ranked, 1)),
        )
        for query_id, ranked in by_query.items()
    ]


def relist(dataset, tmp_path, listed):
    """Import the file again, with another list of q1."""
    rows = [{**ROWS[0], "relevant_doc_ids": listed}, ROWS[1]]
    (tmp_path / "set.json").write_text(json.dumps({"queries": rows}), "utf-8")
    import_queries(tmp_path / "set.json", dataset, silent)


def means(run, names):
    return {name: run.scores.mean(name) for name in names}


def test_lists_decide_binary_measures_of_a_set_and_grades_the_others(dataset):
    """The numbers are those of `evaluate --qrels` on the file."""
    [run] = evaluate_runs(dataset, [], SETTINGS)

    assert means(run, BY_LIST) == BY_LIST
    assert run.scores.mean("nDCG@3") == pytest.approx(NDCG)
    assert run.evaluation.by_lists


def test_the_judgments_of_such_a_set_measure_as_the_set_does(dataset):
    """A file of judgments says of each pair whether it is listed."""
    judged = read_judged_qrels(dataset.files / "judgments.jsonl")

    assert {key: set(of) for key, of in judged.relevant.items()} == {"q1": {"a", "b"}, "q2": {"c"}}
    assert judged.grades == {"q1": {"a": 1, "c": 3}, "q2": {"c": 1}}


def test_a_listed_chunk_without_a_grade_is_neither_failed_nor_a_hole(dataset):
    """Of the five retrieved chunks only a of q2 has no label."""
    dataset.write_manifest(dataset.manifest.model_copy(update={"labels": "partial"}))

    [run] = evaluate_runs(dataset, [], SETTINGS)

    assert (run.evaluation.n_retrieved, run.evaluation.n_holes) == (5, 1)
    assert (run.evaluation.n_failed, run.judges[0].n_failed) == (0, 0)


def test_a_threshold_that_is_asked_for_goes_before_the_lists(dataset):
    """Whoever names a grade wants to see what it comes to: of q1 only c, of q2 nothing."""
    settings = SETTINGS.model_copy(update={"rel_threshold": 2})

    [run] = evaluate_runs(dataset, [], settings)

    assert means(run, BY_LIST) == {"RR": 0.5, "P@2": 0.25, "R@2": 0.5}
    assert not run.evaluation.by_lists


def test_runs_are_compared_by_the_lists(dataset):
    """c before b and a: by grades the run were perfect, by the list it is not."""
    dataset.write_run("other", rankings({"q1": "abc", "q2": "ca"}))

    found = compare_runs(dataset, ["mine", "other"], SETTINGS)

    [rr] = [item.comparison for item in found.items if item.comparison.measure == "RR"]
    assert (rr.mean_a, rr.mean_b) == (0.5, 1.0)
    assert found.by_lists


def test_the_worst_queries_go_by_the_lists(dataset):
    """The first relevant chunk of q1 is b at rank 2; c above it is not listed."""
    found = find_worst(dataset, [], EvaluateSettings(measures=("RR",)), n=None)

    [run] = found.runs
    assert [(bad.causes.query_id, bad.causes.code, bad.first_relevant) for bad in run.worst] == [
        ("q1", "ranked_low", 2),
        ("q2", "ranked_low", 2),
    ]
    assert found.by_lists


def test_the_report_counts_listed_chunks_apart_from_failures(dataset):
    """Nothing failed: people listed b, and c of q2, and gave no grade."""
    found = summarise(dataset)

    [people] = found.grades
    assert (people.counts, people.n_failed, people.n_listed) == ((0, 1, 0, 1), 0, 2)
    assert (found.counts.n_failed_pairs, found.by_lists) == (0, True)


def test_other_lists_are_other_grades_of_an_item(dataset, tmp_path):
    """An earlier value by other lists is not one of today: the ranking is scored again."""
    keep_evaluations(dataset, evaluate_runs(dataset, [], SETTINGS))
    relist(dataset, tmp_path, ["a"])

    [now] = keep_evaluations(dataset, evaluate_runs(dataset, [], SETTINGS))

    # By today's list, both have RR (1/3 + 1/2) / 2: the ranking is the same.
    assert now.measures["RR"].mean == pytest.approx(5 / 12)
    assert now.bridge["RR"].before == pytest.approx(5 / 12)
    assert now.bridge["RR"].diff == 0


def test_a_gate_refuses_a_baseline_that_went_by_a_threshold(dataset, tmp_path, capsys):
    """What relevant means is another thing there."""
    place, base = str(dataset.path), str(tmp_path / "base.json")
    words = ["gate", "--dataset", place, "--allow-few"]
    written = ["--rel-threshold", "2", "--write-baseline", base, "--max-failures", "1%"]
    assert main([*words, *written, "-m", "RR"]) == 0
    capsys.readouterr()

    code = main([*words, "--baseline", base, "--max-drop", "RR=0.5", "-m", "RR"])

    told = " ".join(capsys.readouterr().out.split())
    assert code == 1
    assert "a threshold on the grades said what is relevant, here lists of relevant chunks" in told


def test_earlier_rankings_are_scored_on_the_lists_of_today(dataset):
    """A trend over the history rests on one meaning of relevant."""
    by_lists = rescoring_basis_now(dataset, 2, by_lists=True)
    by_grades = rescoring_basis_now(dataset, 2, by_lists=False)

    assert {key: set(of) for key, of in by_lists.relevant.items()} == {
        "q1": {"a", "b"},
        "q2": {"c"},
    }
    assert by_grades.relevant == {}


@pytest.mark.parametrize(("form", "n_lost"), [("trec", 2), ("beir", 2), ("json", 0)])
def test_an_export_tells_where_a_form_cannot_hold_lists(dataset, tmp_path, form, n_lost):
    """TREC and BEIR hold a grade a pair: 2 lists would be lost, and b, which has no grade."""
    out = tmp_path / ("out.json" if form == "json" else "out")

    lost = export(dataset, form, out).lost

    told = [text for text in lost if "list" in text or "without a grade" in text]
    assert (
        told[:n_lost]
        == [
            "2 lists of relevant ids beside their grades (P, R, RR, AP and Success go by grades; "
            "--as json keeps them)",
            "1 relevant id without a grade",
        ][:n_lost]
    )
    assert len(told) == n_lost


def test_a_judge_is_not_asked_for_what_people_listed(dataset):
    """Its grade would take the place of what the author says."""
    dataset.write_manifest(dataset.manifest.model_copy(update={"labels": "partial"}))
    words = ["judge", "--dataset", str(dataset.path), "--run", "mine", "--model", "offline", "-q"]

    assert main(words) == 0

    kept = {(item.query_id, item.chunk_id): item for item in dataset.judgments()}
    assert (kept["q1", "b"].source, kept["q1", "b"].relevant) == ("human", True)
    assert kept["q2", "a"].source == "judge"


def test_old_judgments_are_written_as_they_were():
    """A field that nearly no set has must not change the bytes of all others."""
    assert "relevant" not in Judgment(query_id="q", chunk_id="c", grade=2).model_dump()


def test_a_document_is_relevant_if_any_of_its_labels_is_listed(tmp_path):
    """Labels may name documents and passages of them; all are measured on documents.

    A passage of big.md is listed and has grade 1, small.md has grade 3 and is not listed.
    """
    chunks = [
        {"id": name, "document": doc, "text": f"The {word} is sold by weight."}
        for name, doc, word in (
            ("a", "big.md", "tea"),
            ("b", "big.md", "rice"),
            ("c", "small.md", "salt"),
            ("d", "small.md", "oil"),
        )
    ]
    row = {
        "id": "q1",
        "query": "how is tea sold",
        "relevant_doc_ids": ["a"],
        "graded_relevance": {"a": 1, "small.md": 3},
    }
    (tmp_path / "chunks.json").write_text(json.dumps(chunks), "utf-8")
    (tmp_path / "set.json").write_text(json.dumps([row]), "utf-8")
    words = ["import", str(tmp_path / "set.json"), "--chunks", str(tmp_path / "chunks.json")]
    assert main([*words, "--out", str(tmp_path / "set"), "-q"]) == 0
    made = open_dataset(tmp_path / "set")
    made.write_run("mine", rankings({"q1": "cdb"}))

    [run] = evaluate_runs(made, [], EvaluateSettings(measures=("RR", "R@1", "nDCG@2")))

    # The ranking is small.md, big.md: RR 1/2, R@1 0; nDCG by grades is that of the ideal.
    assert means(run, ["RR", "R@1", "nDCG@2"]) == {"RR": 0.5, "R@1": 0.0, "nDCG@2": 1.0}


def test_grades_that_a_comparison_leaves_out_are_in_no_list(dataset):
    """Two models graded chunks that no run holds: the grades of one are left out, and are not among
    the relevant chunks either. a, b and d of q1 stay: R@2 of c, b is 1/3, of a, b it is 2/3."""
    dataset.write_run("other", rankings({"q1": "abc", "q2": "ca"}))
    later = [
        Judgment(
            query_id="q1",
            chunk_id=chunk_id,
            grade=3,
            provenance=Provenance(kind="llm", model=model, prompt="p", prompt_sha256=model),
        )
        for chunk_id, model in (("d", "m1"), ("e", "m2"))
    ]
    dataset.add_judgments(iter(later))

    found = compare_runs(dataset, ["mine", "other"], EvaluateSettings(measures=("R@2",)))

    [item] = found.items
    # q2 has R@2 1 in both.
    assert item.comparison.mean_a == pytest.approx((1 / 3 + 1) / 2)
    assert item.comparison.mean_b == pytest.approx((2 / 3 + 1) / 2)


def test_a_difference_of_sets_tells_of_other_lists(dataset, tmp_path, capsys):
    """No grade is another, and all binary measures of q1 are: b is not listed any more."""
    before = tmp_path / "before"
    shutil.copytree(dataset.path, before)
    relist(dataset, tmp_path, ["a"])
    capsys.readouterr()

    assert main(["diff", str(before), str(dataset.path), "--json"]) == 0

    found = json.loads(capsys.readouterr().out)["grades"]
    # a of q1 and c of q2 stay; c of q1 is not listed in either. b has neither grade nor list.
    assert {name: found[name] for name in ("same", "changed", "gone")} == {
        "same": 3,
        "changed": 0,
        "gone": 1,
    }


def test_a_difference_of_sets_counts_lists_that_became_a_threshold(dataset, tmp_path, capsys):
    """Grade 2 explains these lists: a and c of q1 keep their grades and lose their marks, b of q1
    and c of q2 get grade 2."""
    before = tmp_path / "before"
    shutil.copytree(dataset.path, before)
    relist(dataset, tmp_path, ["b", "c"])
    capsys.readouterr()

    assert main(["diff", str(before), str(dataset.path), "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["grades"]["changed"] == 4


def test_a_later_grade_takes_no_worth_from_a_list_without_grades(dataset):
    """q2 lists c alone; that a judge gives a grade to a chunk above it moves no ideal."""
    by = Provenance(kind="llm", model="m1")
    for grade in (0, 1):
        later = Judgment(query_id="q2", chunk_id="a", grade=grade, provenance=by)
        dataset.add_judgments(iter([later]))

        [run] = evaluate_runs(dataset, [], SETTINGS)

        assert run.scores.per_query["q2"]["nDCG@3"] == pytest.approx(1 / log2(3))
        judged = read_judged_qrels(dataset.files / "judgments.jsonl")
        assert judged.grades["q2"] == {"a": 0, "c": 1}


def test_what_queries_without_a_list_go_by_is_said_of_sets_too(tmp_path, capsys):
    """Of two queries one has a list; grade 1 is not relevant to the other."""
    rows = [
        {"id": "q1", "query": "How?", "relevant": ["a"], "graded_relevance": {"a": 1, "b": 3}},
        {"id": "q2", "query": "Why?", "graded_relevance": {"a": 1, "b": 2}},
    ]
    queries, chunks, run = (tmp_path / name for name in ("set.json", "chunks.json", "run.json"))
    queries.write_text(json.dumps(rows), encoding="utf-8")
    texts = [{"id": name, "document": "d", "text": name} for name in "ab"]
    chunks.write_text(json.dumps(texts), encoding="utf-8")
    run.write_text(json.dumps({"q1": ["a"], "q2": ["a", "b"]}), encoding="utf-8")
    place = str(tmp_path / "made")
    assert main(["import", str(queries), "--chunks", str(chunks), "--out", place]) == 0
    open_dataset(tmp_path / "made").write_run(
        "r", [Ranking(query_id="q1", ranking=(Hit(chunk_id="a", score=1.0),))]
    )
    capsys.readouterr()
    words = "nDCG, DCG and ERR; queries without a list go by grade >= 2"

    for where in (["--dataset", place], ["--qrels", place, "--run", str(run)]):
        assert main(["evaluate", *where, "-m", "RR"]) == 0
        assert words in capsys.readouterr().out
