"""Chunks that somebody changed by hand are neither measured nor judged until they are accepted."""

import json

import pytest

from ragforge.cli import main
from ragforge.evaluating.answers.records import context_digest
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.records import Answer, AnswerGrade, Chunk, Judgment, Provenance, Query

MODEL = Provenance(kind="llm", model="a judge")
PERSON = Provenance(kind="human", model="a person")


@pytest.fixture
def called(capsys):
    """Call a command; return exit code, stdout and stderr."""

    def go(*words):
        capsys.readouterr()
        return main([*map(str, words)]), *capsys.readouterr()

    return go


def rotate_texts(path):
    """Give each chunk of a file the text of the one before, under the id that it has."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    texts = [row["text"] for row in rows]
    moved = [row | {"text": text} for row, text in zip(rows, texts[-1:] + texts[:-1], strict=True)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in moved), "utf-8")


@pytest.fixture
def edited(dataset, called):
    """A set with two runs and grades, whose chunks got other texts in the file."""
    called("retrieve", "--dataset", dataset, "--retriever", "chargram", "-q")
    called("judge", "--dataset", dataset, "-q")
    rotate_texts(dataset / "chunks.jsonl")
    return dataset


COMMANDS = [
    ["evaluate"],
    ["evaluate", "--run", "bm25"],
    ["evaluate", "--retriever", "bm25"],
    ["compare"],
    ["compare", "bm25", "chargram"],
    ["compare", "--base", "bm25", "chargram"],
    ["compare", "--answers", "one", "two"],
    ["gate", "--answers", "one", "--max", "hallucination=0.3"],
    ["gate", "--run", "bm25", "--min", "RR=0.1"],
    ["worst"],
    ["report"],
    ["judge"],
    ["judge", "--on-labels"],
    ["judge", "--complete"],
    ["judge", "audit"],
    ["retrieve", "--retriever", "bm25"],
]


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_measures_or_judges_refuses_edited_chunks(edited, called, words):
    """The grades are of other texts, so that every number would be wrong."""
    code, out, err = called(*words, "--dataset", edited)

    assert (code, out) == (3, "")
    assert f"{edited}/chunks.jsonl: was changed since ragforge wrote it" in err
    assert f"`ragforge validate --dataset {edited} --accept` takes it as it is" in err


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_run_files_are_not_measured_on_edited_chunks_either(edited, called, command):
    """The path of the judgments names the set as well as its directory does."""
    runs = ["--run", edited / "runs" / "bm25.jsonl", "--run", edited / "runs" / "chargram.jsonl"]

    code, out, err = called(command, "--qrels", edited / "judgments.jsonl", *runs)

    assert (code, out) == (3, "")
    assert "chunks.jsonl: was changed since ragforge wrote it" in err


def test_runs_of_edited_chunks_are_listed_as_stale(edited, called):
    """They were made on the texts of before, whatever their ids say."""
    listed = json.loads(called("runs", "list", "--dataset", edited, "--json")[1])["runs"]

    assert [item["chunks"] for item in listed] == ["others", "others"]


@pytest.fixture
def graded(tmp_path):
    """A hand-made set, graded by a judge and a person, whose chunks were changed in the file."""
    made = create_dataset(tmp_path / "set", {"seed": "0"})
    texts = {"a": "Oak is a tree.", "b": "Tea is hot."}
    made.write_chunks(Chunk(chunk_id=name, doc_id="d", text=texts[name]) for name in texts)
    made.write_queries([Query(query_id="q1", query="What is oak?")])
    grade = Judgment(query_id="q1", chunk_id="a", grade=3, evidence="Oak is a tree")
    made.write_judgments(
        [
            grade.model_copy(update={"provenance": MODEL}),
            Judgment(query_id="q1", chunk_id="b", grade=0, provenance=MODEL),
            grade.model_copy(update={"query_id": "q2", "source": "human", "provenance": PERSON}),
        ]
    )
    made.write_queries([Query(query_id=name, query="What is oak?") for name in ("q1", "q2")])
    rotate_texts(made.chunks_path)
    return made.path


def test_validate_counts_the_grades_whose_text_is_gone(graded, called):
    """Before they are dropped, one sees what accepting costs."""
    code, out, _ = called("validate", "--dataset", graded, "--json")

    assert (code, json.loads(out)["notes"]) == (
        0,
        [
            "judgments.jsonl: 1 grades of judges are of texts that their chunks no longer have: "
            "--accept drops them",
            "judgments.jsonl: 1 grades of people are of texts that their chunks no longer have: "
            "they stay",
            "chunks.jsonl: changed since ragforge wrote it",
        ],
    )


def test_accepting_drops_the_grades_of_judges_whose_text_is_gone(graded, called):
    """A grade must not stay on a text that no judge saw; people's are theirs to take back."""
    code, out, _ = called("validate", "--dataset", graded, "--accept", "--json")

    assert (code, json.loads(out)["notes"]) == (
        0,
        [
            "chunks.jsonl: accepted as it is",
            "judgments.jsonl: 1 grades of judges are of texts that their chunks no longer have: "
            "dropped; `ragforge judge` makes new ones",
            "judgments.jsonl: 1 grades of people are of texts that their chunks no longer have: "
            "they stay",
        ],
    )
    left = [(item.query_id, item.chunk_id) for item in open_dataset(graded).judgments()]
    assert left == [("q1", "b"), ("q2", "a")]


def test_accepted_chunks_are_retrieved_from_again(graded, called):
    """What the message says must help."""
    called("validate", "--dataset", graded, "--accept")

    assert called("retrieve", "--dataset", graded, "--retriever", "bm25", "-q")[0] == 0
    assert called("evaluate", "--dataset", graded)[0] == 0


@pytest.fixture
def answered(tmp_path):
    """A set with graded answers, one from each chunk, whose chunk `a` was changed in the file."""
    made = create_dataset(tmp_path / "set", {"seed": "0"})
    texts = {"a": "Oak is a tree.", "b": "Tea is hot."}
    made.write_chunks(Chunk(chunk_id=name, doc_id="d", text=texts[name]) for name in texts)
    made.write_queries(
        Query(query_id=name, query=f"What is {name}?", expected_answer="So.") for name in texts
    )
    made.write_answers(
        "rag", [Answer(query_id=one, answer="So.", chunk_ids=(one,)) for one in texts]
    )

    def write(**says):
        known = {"verdict": "correct", "score": 1.0, "has_hallucination": False}
        made.write_answer_grades(
            "rag",
            [
                AnswerGrade(
                    **{"query_id": one, "context_sha256": context_digest([text])}
                    | {**known, **says}
                )
                for one, text in texts.items()
            ],
        )
        path = made.chunks_path
        path.write_text(path.read_text().replace("Oak is", "Nothing is"))
        return made

    return write


def test_accepting_edited_chunks_drops_grades_by_contexts_that_they_were(answered, called):
    """`hallucination` stayed 0.000 and PASS, where it was 1.000 of the texts of now."""
    dataset = answered()
    before = called("validate", "--dataset", dataset.path, "--json")[1]

    said = called("validate", "--dataset", dataset.path, "--accept", "--json")[1]

    assert [grade.query_id for grade in dataset.answer_grades("rag")] == ["b"]
    what = "answer_grades/rag.jsonl: 1 grade is of answers whose contexts have other texts now: "
    assert f"{what}--accept drops them" in json.loads(before)["notes"]
    assert f"{what}dropped; `ragforge answer` makes new ones" in json.loads(said)["notes"]


@pytest.mark.parametrize(
    "says",
    [
        {"rule": "abstention"},
        {"has_hallucination": None},
        {"provenance": Provenance(kind="file", model="graded.csv")},
        {"context_sha256": ""},
    ],
    ids=["by rule", "not checked", "given", "of before"],
)
def test_accepting_edited_chunks_leaves_other_grades_of_answers(answered, called, says):
    """What rests on no context, who saw the former one, and what nothing is known of."""
    dataset = answered(**says)

    called("validate", "--dataset", dataset.path, "--accept")

    assert [grade.query_id for grade in dataset.answer_grades("rag")] == ["a", "b"]
