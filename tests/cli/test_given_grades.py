"""Files of answers that are graded already, taken as they are."""

import json
from pathlib import Path

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset

CHUNKS = [
    {"id": "d1", "document": "d1.md", "text": "Close the lid and send it in within two years."},
    {"id": "d3", "document": "d3.md", "text": "Invoices are in the account, under orders."},
]
SET = [
    {"id": "q1", "query": "kettle leaks", "relevant": ["d1"], "category": "repair"},
    {"id": "q2", "query": "invoice copy", "relevant": ["d3"], "category": "bills"},
]
LID = {
    "query": "Kettle leaks?",
    "aiAnswer": "Send it in; it is free for two years.",
    "groundTruth": "Close the lid and send it in within two years.",
    "retrievedDocs": ["d1"],
    "isCorrect": False,
    "isPartiallyCorrect": True,
    "hasHallucination": True,
    "explanation": "the lid is not named",
    "score": 0.5,
}
INVOICE = {
    "query": "invoice copy",
    "aiAnswer": "In the account, under orders.",
    "groundTruth": "In the account, under orders.",
    "retrievedDocs": ["d3"],
    "isCorrect": True,
    "isPartiallyCorrect": False,
    "hasHallucination": False,
    "explanation": "same",
    "score": 1.0,
}
TOTALS = {
    "totalQuestions": 2,
    "correctRate": 0.5,
    "partiallyCorrectRate": 0.5,
    "hallucinationRate": 0.5,
    "averageScore": 0.75,
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A set of two queries without expected answers."""
    monkeypatch.chdir(tmp_path)
    write("chunks.json", CHUNKS)
    write("set.json", SET)
    assert main(["import", "set.json", "--chunks", "chunks.json", "--out", "set", "-q"]) == 0
    return tmp_path


def write(name, content):
    Path(name).write_text(json.dumps(content), "utf-8")


def graded(capsys, *rows, words=(), totals=None, code=0):
    """Return what `ragforge answer --json` says of rows, and what it tells beside it."""
    write("mine.json", {**(TOTALS if totals is None else totals), "perQuestion": rows})
    capsys.readouterr()
    said = main(["answer", "--dataset", "set", "--answers", "mine.json", "--json", *words])
    assert said == code
    out, told = capsys.readouterr()
    return (json.loads(out) if out else {}), told


def test_grades_that_come_with_all_answers_need_no_judge(here, capsys):
    """They are somebody's, and the record says in which file they came."""
    found, told = graded(capsys, LID, INVOICE)

    assert (found["judge"], found["graded_by_file"]) == (None, "mine.json")
    assert found["verdicts"] == {"correct": 1, "partial": 1}
    assert "no model is asked" not in told
    kept = {item.query_id: item for item in open_dataset(here / "set").answer_grades("mine")}
    assert (kept["q1"].verdict, kept["q1"].explanation) == ("partial", "the lid is not named")
    assert (kept["q1"].provenance.kind, kept["q1"].provenance.model) == ("file", "mine")


def test_rates_and_slices_are_those_of_the_file(here, capsys):
    """Correct 1 of 2, score (0.5 + 1) / 2, hallucination 1 of 2; by category 0.5 and 1."""
    found, _ = graded(capsys, LID, INVOICE)

    rates = {name: found["rates"][name]["mean"] for name in ("correct", "score", "hallucination")}
    assert rates == {"correct": 0.5, "score": 0.75, "hallucination": 0.5}
    scores = {
        part["value"]: part["rates"]["score"]["mean"]
        for part in found["slices"]
        if part["dimension"] == "category"
    }
    assert scores == {"repair": 0.5, "bills": 1.0}


def test_a_judge_that_is_asked_for_stands_beside_the_grades_of_the_file(here, capsys):
    """The second answer is the expected one word for word; the file calls it incorrect."""
    wrong = {**INVOICE, "isCorrect": False, "score": 0.0}

    found, told = graded(capsys, LID, wrong, words=("--model", "offline"))

    given = found["given"]
    assert (found["judge"], found["graded_by_file"]) == ("offline", None)
    assert (given["sources"], given["n_given"], given["n_both"]) == (["mine"], 2, 2)
    assert {"query_id": "q2", "given": "incorrect", "judged": "correct"} in given["differing"]
    assert given["mean_score_given"] == 0.25
    assert "2 of 2 answers bring a grade; the judge grades all, and both stay" in told


def test_grades_of_some_answers_are_not_mixed_with_those_of_a_judge(here, capsys):
    """A rate over grades of two judges would be one of neither."""
    bare = {name: INVOICE[name] for name in ("query", "aiAnswer", "groundTruth")}

    found, told = graded(capsys, LID, bare, totals={})

    assert (found["graded_by_file"], found["rates"]["correct"]["n"]) == ("mine.json", 1)
    assert "1 of 2 answers bring no grade, and are not graded" in told


def test_the_report_shows_both(here, capsys):
    """Whoever reads it must see that there are two judges, and how far they agree."""
    graded(capsys, LID, INVOICE, words=("--model", "offline"))
    capsys.readouterr()

    assert main(["report", "--dataset", "set", "--out", "page.html", "-q"]) == 0

    assert "Grades that came with the answers" in Path("page.html").read_text("utf-8")


def test_ground_truth_is_the_expected_answer_where_the_set_has_none(here, capsys):
    """Without one, no judge could grade the answers."""
    _, told = graded(capsys, LID, INVOICE)

    assert "2 queries get their expected answers from the file, as the set has none: q1, q2" in told
    assert [one.expected_answer for one in open_dataset(here / "set").queries()] == [
        LID["groundTruth"],
        INVOICE["groundTruth"],
    ]


def test_the_expected_answer_of_the_set_stands(here, capsys):
    """What is measured against must not change with the file of a system; blanks do not count."""
    graded(capsys, LID, INVOICE)
    other = {**INVOICE, "groundTruth": "By mail."}
    same = {**LID, "groundTruth": f" {LID['groundTruth'].upper()} "}

    _, told = graded(capsys, same, other)

    assert "1 expected answer of the file differs from that of the set, which stands: q2" in told
    assert open_dataset(here / "set").queries()[1].expected_answer == INVOICE["groundTruth"]


def test_a_dry_run_writes_neither_grades_nor_expected_answers(here, capsys):
    """It only says what would be done."""
    found, _ = graded(capsys, LID, INVOICE, words=("--dry-run",))

    made = open_dataset(here / "set")
    assert found["calls"] == 0
    assert (made.answer_grade_names(), made.queries()[0].expected_answer) == ([], None)


def test_a_row_that_contradicts_itself_is_refused_by_its_place(here, capsys):
    """Nobody can tell which of the two its author means."""
    both = {**INVOICE, "isPartiallyCorrect": True}

    _, told = graded(capsys, LID, both, code=3)

    place = "mine.json: perQuestion: item 2: is_partially_correct"
    assert f"{place}: expected false, as is_correct is true, got True" in told


def test_a_score_beyond_1_is_refused(here, capsys):
    """4 may be of 5 or of 100."""
    _, told = graded(capsys, {**LID, "score": 4}, INVOICE, code=3)

    assert "score: expected a number from 0 to 1, as the row grades its answer, got 4" in told


@pytest.mark.parametrize(
    ("name", "said", "told"),
    [
        ("totalQuestions", 7, "it says 7 questions, and holds 2"),
        ("correctRate", 0.9, "it says correct rate 0.9, and its rows come to 0.500"),
        ("averageScore", 0.8, "it says average score 0.8, and its rows come to 0.750"),
        ("hallucinationRate", 0, "it says hallucination rate 0, and its rows come to 0.500"),
    ],
)
def test_totals_that_the_rows_contradict_are_told(here, capsys, name, said, told):
    """One of the two is wrong, and the rows are what is counted."""
    _, notes = graded(capsys, LID, INVOICE, totals={**TOTALS, name: said})

    assert f"{told}; the rows count" in notes


def test_totals_may_be_rounded_or_in_percent(here, capsys):
    """That is how people write them."""
    _, notes = graded(capsys, LID, INVOICE, totals={"correctRate": 50, "averageScore": 0.75})

    assert "the rows count" not in notes


def test_answers_without_grades_are_kept_as_they_were(here, capsys):
    """Their files keep their bytes."""
    bare = {name: LID[name] for name in ("query", "aiAnswer", "groundTruth")}

    graded(capsys, bare, totals={})

    assert b"given" not in (here / "set" / "answers" / "mine.jsonl").read_bytes()


def test_answers_of_a_dataset_are_graded_again_with_what_they_brought(here, capsys):
    """Messages tell to grade them anew by their own file; the file's grades stay beside."""
    graded(capsys, LID, INVOICE)
    own = "set/answers/mine.jsonl"
    words = ["answer", "--dataset", "set", "--answers", own, "--name", "mine", "-q"]

    assert main([*words, "--model", "offline"]) == 0

    answer = open_dataset(here / "set").answers("mine")[0]
    assert (answer.given.verdict, answer.given.provenance.model) == ("partial", "mine")


def scored(row, score):
    """Return a row that brings a score and no verdict."""
    return {"query": row["query"], "aiAnswer": row["aiAnswer"], "score": score}


def test_scores_alone_are_the_grades(here, capsys):
    """Scores 1 and 0 have the mean 0.5; an offline judge would have called both partial."""
    write("set.json", [{**row, "expected_answer": "It is so."} for row in SET])
    assert main(["import", "set.json", "--chunks", "chunks.json", "--out", "set", "-q"]) == 0

    found, told = graded(capsys, scored(LID, 1.0), scored(INVOICE, 0), totals={})

    assert found["graded_by_file"] == "mine.json"
    assert found["verdicts"] == {"correct": 1, "incorrect": 1}
    assert found["rates"]["score"]["mean"] == 0.5
    assert "2 answers bring scores alone: 1 is taken as correct, 0.5 as partial" in told


def test_scores_that_may_be_anything_are_not_used_and_told(here, capsys):
    """0.87 may be a similarity; nobody is to believe that it is in the mean."""
    write("set.json", [{**row, "expected_answer": "It is so."} for row in SET])
    assert main(["import", "set.json", "--chunks", "chunks.json", "--out", "set", "-q"]) == 0

    found, told = graded(capsys, scored(LID, 0.87), scored(INVOICE, 7), totals={})

    assert found["graded_by_file"] is None
    assert "2 answers bring scores alone, and 2 are not 0, 0.5 or 1, such as 0.87" in told


@pytest.mark.parametrize("other", [4, "80%", 0.87, -1])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_score_of_another_scale_leaves_no_score_of_the_file_a_grade(
    here, capsys, other, is_first
):
    """1 is the worst grade of a scale from 1 to 5, and was taken as correct."""
    write("set.json", [{**row, "expected_answer": "It is so."} for row in SET])
    assert main(["import", "set.json", "--chunks", "chunks.json", "--out", "set", "-q"]) == 0
    rows = [scored(LID, other), scored(INVOICE, 1)]

    found, told = graded(capsys, *(rows if is_first else rows[::-1]), totals={})

    assert found["graded_by_file"] is None
    assert "1 are not 0, 0.5 or 1" in told


def test_an_unknown_verdict_is_not_made_up_from_the_score(here, capsys):
    """A row that says its verdict in other words is not the one that its score suggests."""
    rows = [{**scored(row, 1), "verdict": "useless"} for row in (LID, INVOICE)]
    write("set.json", [{**row, "expected_answer": "It is so."} for row in SET])
    assert main(["import", "set.json", "--chunks", "chunks.json", "--out", "set", "-q"]) == 0

    found, _ = graded(capsys, *rows, totals={})

    assert found["graded_by_file"] is None


@pytest.mark.parametrize(
    ("row", "score", "expected"),
    [
        (INVOICE, 0.0, "more than 0, as the row says correct"),
        ({**INVOICE, "isCorrect": False}, 1.0, "less than 1, as the row says incorrect"),
    ],
)
def test_a_score_that_contradicts_the_verdict_is_refused(here, capsys, row, score, expected):
    """One of both is wrong, and each goes into another rate."""
    _, told = graded(capsys, LID, {**row, "score": score}, code=3)

    assert f"score: expected {expected}, got {score}" in told


def test_no_attempt_is_correct_where_a_question_has_no_answer(here, capsys):
    """As for a judge; by the file's own word the system that is right would score 0."""
    asked = {"id": "q3", "query": "kettle colours", "relevant": [], "answerable": False}
    write("set.json", [*SET, asked])
    assert main(["import", "set.json", "--chunks", "chunks.json", "--out", "set", "-q"]) == 0
    silent = {"query": "kettle colours", "aiAnswer": "I do not know.", "verdict": "not_attempted"}

    found, _ = graded(capsys, LID, {**silent, "score": 0}, totals={})
    assert found["verdicts"] == {"correct": 1, "partial": 1}
    assert found["rates"]["score"]["mean"] == 0.75

    found, _ = graded(capsys, LID, silent, totals={}, words=("--model", "offline"))
    assert [one["query_id"] for one in found["given"]["differing"]] == []


def test_not_partly_correct_is_no_verdict(here, capsys):
    """It may be correct or incorrect; a missing flag made it incorrect."""
    open_one = {**LID, "isCorrect": None, "isPartiallyCorrect": False}

    found, told = graded(capsys, open_one, INVOICE, totals={})

    assert (found["verdicts"], found["rates"]["correct"]["n"]) == ({"correct": 1}, 1)
    assert "1 of 2 answers bring no grade, and are not graded" in told
