from ragforge.records import Judgment, Provenance
from ragforge.report.judging import SourceGrades, grades_by_source, judges, settle


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
