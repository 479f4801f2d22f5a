"""The scale of a file of qrels: 1 means one thing, however a file is cut into parts."""

import pytest

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.evaluating import evaluate_files
from ragforge.pipeline.intake.runs_and_qrels import import_qrels, import_run, parse_grades
from ragforge.records import Chunk, Judgment, Provenance, Query

BINARY = "q1 0 a 1\nq1 0 b 0\n"
GRADED = "q2 0 c 3\nq2 0 a 1\n"
RUN = "q1 Q0 a 1 9 x\nq1 Q0 b 2 8 x\nq2 Q0 a 1 9 x\nq2 Q0 c 2 8 x\n"
MEASURES = ("RR", "P@2", "nDCG@2", "DCG@2", "AP", "Judged@2", "bpref")


@pytest.fixture
def dataset(tmp_path):
    """Two queries on three chunks."""
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks([Chunk(chunk_id=name, doc_id=name, text=name) for name in "abc"])
    made.write_queries([Query(query_id=name, query=f"What is {name}?") for name in ("q1", "q2")])
    return made


@pytest.fixture
def add(dataset, tmp_path):
    """Import the text of a file of qrels into the set."""

    def added(text, **options):
        return import_qrels(written(tmp_path, "part.trec", text), dataset, silent, **options)

    return added


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def means(dataset, tmp_path):
    import_run(written(tmp_path, "r.trec", RUN), dataset, silent)
    [run] = evaluate_runs(dataset, ["r"], EvaluateSettings(measures=MEASURES))
    return {name: run.scores.mean(name) for name in MEASURES}


def means_of_files(tmp_path, text):
    files = written(tmp_path, "whole.trec", text), [written(tmp_path, "r.trec", RUN)]
    [scores] = evaluate_files(*files, EvaluateSettings(measures=MEASURES)).scores.values()
    return {name: scores.mean(name) for name in MEASURES}


def test_a_file_of_0_and_1_is_refused_where_the_set_holds_higher_grades(add, dataset):
    """Its 1 became grade 2, which doubled RR where it was a 1 of the same scale."""
    add(GRADED)

    with pytest.raises(DataError, match=r"0 and 1.*--grades 1=1 .*--grades 1=2 ") as caught:
        add(BINARY)

    assert "part.trec" in str(caught.value)
    assert {item.query_id for item in dataset.judgments()} == {"q2"}


def test_higher_grades_are_refused_where_the_set_tells_relevant_from_not(add, dataset):
    """A 1 that came before them was kept as relevant; beside them it may be none."""
    add(BINARY)

    with pytest.raises(DataError, match=r"relevant.*--grades 1=1"):
        add(GRADED)

    assert {item.query_id for item in dataset.judgments()} == {"q1"}


@pytest.mark.parametrize("parts", [(BINARY, GRADED), (GRADED, BINARY)])
def test_parts_on_one_scale_are_measured_as_the_whole(add, dataset, tmp_path, parts):
    """Numbers must not depend on where a file is cut."""
    for text in parts:
        add(text, grades={1: 1})

    assert means(dataset, tmp_path) == means_of_files(tmp_path, BINARY + GRADED)


def test_parts_of_0_and_1_are_measured_as_the_whole(add, dataset, tmp_path):
    """The usual case needs no option; a part without a relevant chunk says nothing of the scale."""
    parts = ("q1 0 b 0\n", "q1 0 a 1\n", "q2 0 a 0\nq2 0 c 1\n")
    for text in parts:
        add(text)

    assert means(dataset, tmp_path) == means_of_files(tmp_path, "".join(parts))


def test_a_part_of_zeros_goes_with_any_scale(add, dataset, tmp_path):
    """It says of nothing that it is relevant."""
    add(GRADED)
    add("q1 0 b 0\n")

    assert means(dataset, tmp_path) == means_of_files(tmp_path, GRADED + "q1 0 b 0\n")


def test_the_scale_is_that_of_the_whole_file(add, dataset, tmp_path):
    """The only query with a grade above 1 is not in the set: the 1 of others stays a 1."""
    taken = add(BINARY + "q9 0 c 3\n")

    assert taken.scale == "graded"
    assert means(dataset, tmp_path)["RR"] == 0.0
    assert {(item.chunk_id, item.grade) for item in dataset.judgments()} == {("a", 1), ("b", 0)}


def test_1_is_relevant_where_somebody_says_so(add, dataset):
    """Qrels of two grades beside grades of a model are the usual case of a calibration."""
    add(GRADED)
    add(BINARY, grades={1: 2})

    grades = {(item.query_id, item.chunk_id): item.grade for item in dataset.judgments()}
    assert grades["q1", "a"] == 2
    assert grades["q2", "a"] == 1


def test_1_of_a_model_is_a_1(add, dataset, tmp_path):
    """It says that no part of the answer is there; a file of it became one of relevant chunks."""
    row = Judgment(
        query_id="q1", chunk_id="a", grade=1, provenance=Provenance(kind="llm", model="m")
    )
    path = written(tmp_path, "judgments.jsonl", row.model_dump_json() + "\n")

    import_qrels(path, dataset, silent)

    [judgment] = dataset.judgments()
    assert judgment.grade == 1


def test_grades_up_to_4_come_in_by_a_mapping(add, dataset):
    """TREC RAG grades from 0 to 4; nobody but the author knows what is a 3 of the set."""
    five = "q1 0 a 4\nq1 0 b 3\nq1 0 c 2\nq2 0 a 1\nq2 0 b 0\n"
    with pytest.raises(DataError, match=r"up to 4.*--grades 2=1,3=2,4=3"):
        add(five)

    add(five, grades={1: 0, 2: 1, 3: 2, 4: 3})

    grades = [item.grade for item in sorted(dataset.judgments(), key=lambda one: one.chunk_id)]
    assert sorted(grades) == [0, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.csv", "query_id,chunk_id,grade\nq1,a,4\nq1,b,-1\n"),
        (
            "q.jsonl",
            '{"query_id": "q1", "chunk_id": "a", "grade": 4}\n'
            '{"query_id": "q1", "chunk_id": "b", "grade": -1}\n',
        ),
    ],
)
def test_rows_of_another_scale_come_in_as_lines_of_trec_do(dataset, tmp_path, name, text):
    """The reader of rows refused every grade outside 0 to 3 before the mapping was looked at."""
    path = written(tmp_path, name, text)
    with pytest.raises(DataError, match=r"up to 4.*--grades 2=1,3=2,4=3"):
        import_qrels(path, dataset, silent)

    taken = import_qrels(path, dataset, silent, grades={4: 3})

    assert [(item.chunk_id, item.grade) for item in dataset.judgments()] == [("a", 3)]
    assert taken.left_out == {"below 0, which is not judged": 1}


@pytest.mark.parametrize("text", ["1", "1=", "a=2", "1=4", "1=-1", "1=1,1=2"])
def test_a_mapping_that_says_nothing_is_refused(text):
    """A slip in it would be a wrong grade of many pairs."""
    with pytest.raises(UsageError, match="--grades"):
        parse_grades(text)


def test_a_mapping_is_read():
    """Spaces are no slip."""
    assert parse_grades("2=1, 3=2,4=3") == {2: 1, 3: 2, 4: 3}
