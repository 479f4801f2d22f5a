"""Who graded, in one line and as JSON."""

from ragforge.evaluating.graded_by import graded_json, graded_line, grades_of, silent_of
from ragforge.evaluating.judgments import judges
from ragforge.records import AnswerGrade, Grader, Judgment, Provenance

LEXICAL = Provenance(kind="baseline", model="offline-lexical-1")
RULES = Provenance(kind="baseline", model="offline-rules-3")
MODEL = Provenance(kind="llm", model="m", prompt="judge_relevance")


def judgment(chunk_id, by, source="judge", grade=2):
    fields = {"grade": grade, "source": source, "provenance": by}
    failure = {"failure": "error"} if grade is None else {}
    return Judgment(query_id="q", chunk_id=chunk_id, **fields, **failure)


def test_all_who_graded_stand_in_one_line():
    """A reader decides by it whether to read on."""
    judged = [
        judgment("a", MODEL),
        judgment("b", MODEL, "carried"),
        judgment("c", LEXICAL),
        judgment("d", RULES, "evidence"),
        judgment("e", None, "human"),
        judgment("f", MODEL, grade=None),
    ]

    assert graded_line(grades_of(judges(judged, {}))) == (
        "graded by m (language model): 2; the offline baseline, shared words "
        "(offline-lexical-1): 1; quotes in queries by offline-rules-3: 1; people: 1; uncalibrated"
    )


def test_grades_of_answers_count_too():
    """A report of answers alone has its graders."""
    grade = AnswerGrade(
        query_id="q", verdict="correct", score=1.0, has_hallucination=None, provenance=MODEL
    )

    assert graded_json(grades_of(judges((), {"mine": [grade]}))) == [
        {"kind": "llm", "model": "m", "prompt": "judge_relevance", "source": "judge", "n": 1}
    ]


def test_many_who_graded_are_counted_together():
    """A file may name another one for each of a million grades."""
    judged = [judgment(f"c{n}", Provenance(kind="llm", model=f"m{n:02}")) for n in range(20)]

    line = graded_line(grades_of(judges(judged, {})))

    assert line.endswith("m07 (language model): 1; 12 others: 12; uncalibrated")


def test_nobody_is_not_recorded():
    """An empty line would look like a fault."""
    assert graded_line(()) == "who graded is not recorded"


def test_grades_that_say_nothing_are_counted_in_the_past_as_well():
    """A trend on shared words is no trend of quality."""
    found = silent_of(
        [
            Grader(kind="baseline", model="offline-lexical-1", count=5),
            Grader(kind="baseline", model="offline-rules-3", count=3, n_evidence=3),
            Grader(kind="llm", model="m", count=12),
        ]
    )

    assert (found.n_words, found.n, found.basis) == (
        5,
        20,
        "in part (5 of 20 grades) by shared words",
    )


def test_prompts_of_one_model_are_one_grader_in_the_line():
    """The same name twice reads like a mistake; JSON tells the prompts apart."""
    other = MODEL.model_copy(update={"prompt": "judge_batch"})
    graded = grades_of(judges([judgment("a", MODEL), judgment("b", other)], {}))

    assert graded_line(graded) == "graded by m (language model): 2; uncalibrated"
    assert [item["n"] for item in graded_json(graded)] == [1, 1]


def test_what_people_graded_needs_no_calibration():
    """Labels correct a model; people's are what it is corrected to."""
    line = graded_line(grades_of(judges([judgment("a", None, "human")], {})))

    assert line == "graded by people: 1"


def test_a_quote_in_a_query_needs_no_calibration():
    """That a text holds a quote is a fact, whoever found the quote."""
    line = graded_line(grades_of(judges([judgment("a", MODEL, "evidence")], {})))

    assert "uncalibrated" not in line
