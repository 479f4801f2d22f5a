"""Runs of an export with texts of their own, measured from its files."""

import json

import pytest
from evidence_sets import dataset_of, query, quoted, stretch, write_run

from ragforge.cli import main
from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.evaluation_data import load_evaluation_data
from ragforge.evaluation import evaluate
from ragforge.files.set.opening import open_dataset
from ragforge.observe import silent
from ragforge.pipeline.comparing.runs import compare_files, compare_runs
from ragforge.pipeline.evaluating import evaluate_files
from ragforge.pipeline.exporting import export
from ragforge.pipeline.intake.set_of_files import MeasuredFiles, set_of_files
from ragforge.pipeline.text_grades import grade_by_evidence
from ragforge.records import Judgment

DOCUMENTS = {
    f"d{n}": f"Product {n} costs {n + 10} euros in all of our shops. "
    f"Product {n} weighs {n + 3} kilograms when it is packed. "
    for n in range(8)
}
MEASURES = ("nDCG@10", "RR")
SETTINGS = EvaluateSettings(measures=MEASURES)
QRELS = ("set.json", "trec/qrels.trec", "trec", "beir", "beir/qrels/test.tsv")


@pytest.fixture
def dataset(tmp_path):
    """A run of the set's chunks with the right one at rank 3, one of texts with it at rank 1."""
    queries = [
        query(doc_id, quoted(doc_id, text, 0, text.index(".") + 1))
        for doc_id, text in DOCUMENTS.items()
    ]
    made = dataset_of(tmp_path / "set", DOCUMENTS, 60, queries)
    made.write_judgments(
        Judgment(query_id=key, chunk_id=f"{key}-0000", grade=3, source="human") for key in DOCUMENTS
    )
    texts = {key: stretch(DOCUMENTS, key, 0, of.index(".") + 1) for key, of in DOCUMENTS.items()}
    made.write_retrieved_texts(texts.values())
    names = list(DOCUMENTS)
    chunks = {
        key: [f"{names[(at + step) % len(names)]}-0000" for step in (1, 2, 0)]
        for at, key in enumerate(names)
    }
    write_run(made, "old", **chunks)
    write_run(made, "own", **{key: [text.chunk_id] for key, text in texts.items()})
    grade_by_evidence(made)
    return made


@pytest.fixture
def files(dataset, tmp_path):
    """The folder with all three exports."""
    export(dataset, "json", tmp_path / "set.json")
    export(dataset, "trec", tmp_path / "trec")
    export(dataset, "beir", tmp_path / "beir")
    return tmp_path


def runs(files, *names):
    return [files / "trec" / "runs" / f"{name}.trec" for name in names]


def made_of(files):
    with set_of_files(files, silent) as dataset:
        return dataset


def means(evaluated):
    return {name: [of.mean(one) for one in MEASURES] for name, of in evaluated.items()}


@pytest.mark.parametrize("qrels", QRELS)
def test_it_is_measured_on_the_grades_of_its_own_texts(dataset, files, qrels):
    """A perfect run had nDCG@10 0.0000 from the files, as its grades were read by nobody."""
    found = evaluate_files(files / qrels, runs(files, "old", "own"), SETTINGS)

    of_set = load_evaluation_data(dataset, measures=MEASURES).runs
    assert means(found.scores) == means({run.name: run.scores for run in of_set})
    assert means(found.scores)["own"] == [1, 1]


@pytest.mark.parametrize("qrels", QRELS)
def test_a_comparison_says_what_it_says_of_the_set(dataset, files, qrels):
    """The run that found everything at rank 1 was called the worse one."""
    of_files = compare_files(files / qrels, runs(files, "old", "own"), SETTINGS)

    of_set = compare_runs(dataset, ["old", "own"], SETTINGS)
    assert all(of.withheld for of in of_files.items)
    assert [(of.comparison.mean_a, of.comparison.mean_b) for of in of_files.items] == [
        (of.comparison.mean_a, of.comparison.mean_b) for of in of_set.items
    ]


@pytest.mark.parametrize("qrels", QRELS)
def test_a_gate_goes_by_them(files, qrels):
    """Its RR is 1, and it failed a gate at 0.2."""
    [run] = runs(files, "own")

    gate = ["gate", "--qrels", str(files / qrels), "--run", str(run), "--allow-few"]
    assert main([*gate, "--min", "RR=0.2"]) == 0


def test_a_gate_of_several_such_runs_is_refused(files):
    """They have no common grades."""
    several = MeasuredFiles(files / "trec", runs(files, "old", "own"))

    with (
        pytest.raises(UsageError, match="run own has texts of its own"),
        set_of_files(several, silent),
    ):
        pass


def test_edited_grades_of_texts_count(files):
    """People mend a grade where it stands."""
    document = json.loads((files / "set.json").read_text())
    for row in document["queries"]:
        row["graded_texts"] = dict.fromkeys(row["graded_texts"], 0)
    (files / "set.json").write_text(json.dumps(document))

    found = evaluate_files(files / "set.json", runs(files, "own"), SETTINGS)
    assert means(found.scores)["own"] == [0, 0]


def test_without_the_note_nothing_is_said_of_it(files):
    """Qrels alone have no grade of its texts: that is no reason to lose."""
    (files / "trec" / "ragforge.json").unlink()
    qrels = files / "trec" / "qrels.trec"

    compared = compare_files(qrels, runs(files, "old", "own"), SETTINGS)
    told = f"{qrels} has no grade of any: this says nothing of the run. Measure it on qrels/own"
    assert all(of.withheld for of in compared.items)
    assert any(told in warning for warning in compared.warnings)
    with pytest.raises(DataError, match="Measure it on"):
        made_of(MeasuredFiles(qrels, runs(files, "own")))


def test_a_run_of_chunks_does_not_lose_on_grades_of_texts(files):
    """The file of one run says nothing of another one with other chunks."""
    qrels = files / "trec" / "qrels" / "own.trec"

    compared = compare_files(qrels, runs(files, "old", "own"), SETTINGS)
    assert all(of.withheld for of in compared.items)


def test_a_run_of_chunks_under_the_name_of_one_of_texts_goes_by_the_chunks(files, tmp_path):
    """Whoever runs the new index over the same file has no texts of the old one."""
    (tmp_path / "own.trec").write_text(runs(files, "old")[0].read_text())

    found = evaluate_files(files / "trec", [tmp_path / "own.trec"], SETTINGS)
    assert means(found.scores) == means(
        {"own": evaluate_files(files / "trec", runs(files, "old"), SETTINGS).scores["old"]}
    )


@pytest.mark.parametrize("qrels", QRELS)
def test_who_graded_its_texts_is_told(files, qrels):
    """Else the grades of a judge would stand there without a name."""
    found = evaluate_files(files / qrels, runs(files, "old", "own"), SETTINGS)
    compared = compare_files(files / qrels, runs(files, "old", "own"), SETTINGS)

    assert ("evidence", 8) in [(of.origin.source, of.n) for of in found.graded_by]
    assert compared.graded_by == found.graded_by


@pytest.mark.parametrize("qrels", QRELS)
def test_an_export_of_runs_of_texts_alone_is_measured(dataset, tmp_path, qrels):
    """Its qrels of chunks hold no pair, and were refused as an empty file."""
    dataset.write_judgments(one for one in dataset.judgments() if one.chunk_id.startswith("t_"))
    for form, place in (("json", "set.json"), ("trec", "trec"), ("beir", "beir")):
        export(dataset, form, tmp_path / place)

    found = evaluate_files(tmp_path / qrels, runs(tmp_path, "own"), SETTINGS)
    assert means(found.scores) == {"own": [1, 1]}


def test_such_an_export_as_trec_comes_back(dataset, files, tmp_path):
    """It was held for a BEIR folder, and refused."""
    place, chunks = tmp_path / "again", dataset.files / "chunks.jsonl"
    arguments = ["import", str(files / "trec"), "--chunks", str(chunks), "--out", str(place)]

    assert main([*arguments, "-q"]) == 0
    assert {(one.query_id, one.chunk_id) for one in open_dataset(place).judgments()} == {
        (key, f"{key}-0000") for key in DOCUMENTS
    }


def test_python_measures_it_on_them_too(files):
    """`evaluate` of two paths is what the command says of them."""
    [run] = runs(files, "own")

    assert evaluate(files / "trec" / "qrels.trec", run, ["RR"]).mean("RR") == 1
