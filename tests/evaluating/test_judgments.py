import pytest

from ragforge.evaluating import judgments
from ragforge.evaluating.judgments import (
    ByQuery,
    SourceGrades,
    grades_by_source,
    judges,
    settle,
)
from ragforge.records import AnswerGrade, Judgment, Provenance


def judgment(grade, source, chunk_id="c", provenance=None):
    return Judgment(
        query_id="q", chunk_id=chunk_id, grade=grade, source=source, provenance=provenance
    )


def test_human_goes_before_evidence_before_judge_before_carried():
    """What a person said about a pair must not be overruled by a model."""
    order = ["carried", "judge", "evidence", "human"]
    given = [judgment(n, source) for n, source in enumerate(order)]

    assert [settle(given[: n + 1])["q"]["c"].source for n in range(4)] == order
    assert settle(reversed(given))["q"]["c"].source == "human"


def test_grade_goes_before_a_failure():
    """A judge that failed now does not undo the grade that is known."""
    assert settle([judgment(None, "judge"), judgment(2, "carried")])["q"]["c"].grade == 2


def test_failed_judgment_stays_without_a_grade():
    """The pair is unjudged, and nothing may make it 0."""
    assert settle([judgment(None, "judge")])["q"]["c"].grade is None


def test_grades_are_counted_by_source_with_failures_apart():
    """A failure is not a grade."""
    given = [judgment(3, "judge"), judgment(None, "judge"), judgment(0, "human")]

    assert grades_by_source(given) == (
        SourceGrades("human", (1, 0, 0, 0), 0),
        SourceGrades("judge", (0, 0, 0, 1), 1),
    )


def test_judges_are_told_apart_by_model_and_prompt():
    """Grades of two prompts are not comparable, so a report has to name both."""
    one = Provenance(kind="llm", model="m", prompt="p", prompt_sha256="1")
    two = Provenance(kind="baseline", model="offline")
    given = [judgment(1, "judge", "a", one), judgment(1, "judge", "b", two)]

    found = judges(given, {})

    assert [(j.kind, j.prompt_sha256, j.count) for j in found] == [
        ("baseline", "", 1),
        ("llm", "1", 1),
    ]
    assert [judge.is_baseline for judge in found] == [True, False]


LLM = Provenance(kind="llm", model="m", prompt="p", prompt_sha256="1")


def answer_grade(verdict, provenance):
    return AnswerGrade(
        query_id="q",
        verdict=verdict,
        score=None if verdict is None else 1.0,
        has_hallucination=None,
        provenance=provenance,
    )


def test_failure_that_names_nobody_makes_no_second_judge():
    """A page that names a judge who gave no grade casts doubt on all of them."""
    given = [judgment(1, "judge", "a", LLM), judgment(None, "judge", "b")]
    grades = [answer_grade("correct", LLM), answer_grade(None, None)]

    found = judges(given, {"own": grades})

    assert [(j.task, j.kind, j.count, j.n_failed) for j in found] == [
        ("relevance", "llm", 1, 0),
        ("answers of own", "llm", 1, 0),
    ]


def test_failure_that_names_its_judge_is_counted_with_the_others():
    """How often a judge fails is part of what it is worth; each call has its own key."""
    again = LLM.model_copy(update={"call_key": "k"})
    given = [judgment(1, "judge", "a", LLM), judgment(None, "judge", "b", again)]
    grades = [answer_grade("correct", LLM), answer_grade(None, again)]

    found = judges(given, {"own": grades})

    assert [(j.task, j.count, j.n_failed) for j in found] == [
        ("relevance", 2, 1),
        ("answers of own", 2, 1),
    ]


def test_grade_without_a_named_judge_stays_a_judge_not_recorded():
    """Its grade is in the numbers, so that somebody unknown made it has to be said."""
    [found] = judges([judgment(1, "judge")], {})

    assert (found.kind, found.count) == ("", 1)


@pytest.fixture
def counted(monkeypatch):
    """Make mappings of two chunks, of which four pairs and two more queries are held."""
    monkeypatch.setattr(judgments, "_MOST_HELD", 4)
    monkeypatch.setattr(judgments, "_LAST_QUERIES", 2)
    made = []

    def make(query_id):
        made.append(query_id)
        return {"c1": query_id, "c2": query_id}

    return made, lambda query_ids: ByQuery(query_ids, make)


def test_mappings_of_the_first_queries_are_made_once_and_the_last_ones_are_at_hand(counted):
    """A set is gone through again and again in one order: forgetting all would make all anew."""
    made, by_query = counted
    known = by_query("abcdef")

    for _ in range(3):
        assert [known[name]["c1"] for name in "abcdeff"] == list("abcdeff")
    assert [made.count(name) for name in "abcdef"] == [1, 1, 3, 3, 3, 3]
    with pytest.raises(KeyError):
        known["g"]


def test_mappings_of_a_few_of_many_queries_are_not_held(counted):
    """They save no time to speak of, and take as much memory as those that do."""
    made, by_query = counted
    query_ids = [f"q{number:02}" for number in range(50)]
    known = by_query(query_ids)

    for _ in range(2):
        assert [known[name]["c1"] for name in query_ids] == query_ids
    assert made == query_ids * 2
