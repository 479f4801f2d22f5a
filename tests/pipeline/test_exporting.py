import json

import pytest
from measured_set import make_measured_set

from ragforge.cli import main
from ragforge.errors import DataError, UsageError
from ragforge.evaluation import evaluate
from ragforge.files.opening import open_dataset
from ragforge.pipeline.exporting import export
from ragforge.records import Judgment

MEASURES = ("nDCG@10", "RR", "P@5")


@pytest.fixture
def dataset(tmp_path):
    """Four answerable queries with grades 3 and 0, one unanswerable, two runs."""
    return make_measured_set(tmp_path / "set")


def graded(dataset):
    return {(one.query_id, one.chunk_id): one.grade for one in dataset.judgments()}


def imported(tmp_path, *arguments):
    place = tmp_path / "again"
    assert main(["import", *map(str, arguments), "--out", str(place), "--quiet"]) == 0
    return open_dataset(place)


def test_a_beir_folder_comes_back_with_the_same_grades(tmp_path, dataset):
    """A benchmark that goes out and in again must measure the same."""
    out = tmp_path / "beir"

    export(dataset, "beir", out)

    assert graded(imported(tmp_path, out, "--chunks", out)) == graded(dataset)


def test_a_json_file_comes_back_with_the_same_grades(tmp_path, dataset):
    """The same for the form of tutorials; its chunks come from the set."""
    out = tmp_path / "queries.json"

    export(dataset, "json", out)

    chunks = dataset.files / "chunks.jsonl"
    assert graded(imported(tmp_path, out, "--chunks", chunks)) == graded(dataset)


def test_the_json_form_lists_relevant_ids_beside_grades(tmp_path, dataset):
    """Both are read by people's own scripts; a chunk of grade 0 is in no list."""
    out = tmp_path / "queries.json"

    export(dataset, "json", out)

    assert json.loads(out.read_text())["queries"][1] == {
        "id": "q00",
        "query": "Where is fact q00?",
        "expected_answer": "here",
        "relevant_doc_ids": ["cq00"],
        "graded_relevance": {"cq00": 3, "cx": 0},
    }


def test_trec_files_measure_as_the_set_does(tmp_path, dataset):
    """trec_eval reads them; its numbers are those of the set."""
    out = tmp_path / "trec"

    export(dataset, "trec", out)

    scores = evaluate(out / "qrels.trec", out / "runs" / "bad.trec", MEASURES)
    assert {name: round(scores.mean(name), 4) for name in MEASURES} == {
        "nDCG@10": 0.6309,
        "RR": 0.5,
        "P@5": 0.2,
    }


@pytest.mark.parametrize(
    ("form", "lost"),
    [
        (
            "trec",
            (
                "4 expected answers",
                "1 unanswerable query's mark",
                "6 chunks' texts",
                "who graded, and why",
            ),
        ),
        (
            "beir",
            (
                "4 expected answers",
                "1 unanswerable query's mark",
                "2 runs",
                "who graded, and why",
            ),
        ),
        ("json", ("2 runs", "6 chunks' texts", "who graded, and why")),
    ],
)
def test_what_a_form_cannot_hold_is_told(tmp_path, dataset, form, lost):
    """Whoever hands the files on must know what is not in them."""
    assert export(dataset, form, tmp_path / "out").lost == lost


def test_a_failed_judgment_is_told_and_no_grade(tmp_path, dataset):
    """A failure is never a value, in no form."""
    failed = Judgment(query_id="q00", chunk_id="cy", grade=None, failure="refused")
    dataset.write_judgments([*dataset.judgments(), failed])

    result = export(dataset, "trec", tmp_path / "out")

    assert "1 judgment without a grade" in result.lost
    assert " cy " not in (tmp_path / "out" / "qrels.trec").read_text()


def test_an_export_does_not_write_into_a_dataset(tmp_path, dataset):
    """queries.jsonl of a set and of BEIR have one name."""
    with pytest.raises(UsageError, match="--out"):
        export(dataset, "beir", dataset.path)


def test_an_id_that_trec_cannot_hold_is_refused(tmp_path, dataset):
    """An id with a blank would shift all columns."""
    blank = Judgment(query_id="q00", chunk_id="c 1", grade=2, source="human")
    dataset.write_judgments([*dataset.judgments(), blank])

    with pytest.raises(DataError, match=r"qrels\.trec: id 'c 1'"):
        export(dataset, "trec", tmp_path / "out")


def test_the_command_prints_the_files(tmp_path, dataset, capsys):
    """A script goes on with them."""
    out = tmp_path / "queries.json"

    assert main(["export", "--dataset", str(dataset.path), "--as", "json", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
