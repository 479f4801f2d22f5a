import pytest
from ranked_sets import ranked_set

from ragforge.config import EvaluateSettings
from ragforge.evaluating.gate import Rules, Threshold
from ragforge.pipeline.gating.answers import answers_subject
from ragforge.pipeline.gating.verdict import check_run, check_subject, evaluate_for
from ragforge.records import Answer, AnswerGrade, Provenance

BY_FACTS = Provenance(kind="llm", model="m", prompt="grade_facts", prompt_sha256="aa" * 32)
AT_ONCE = Provenance(kind="llm", model="m", prompt="grade_answer", prompt_sha256="bb" * 32)
RULE = Provenance(kind="rule", model="answer-rules-1")
PERSON = Provenance(kind="human", model="ann")
N_ANSWERABLE, N_UNANSWERABLE = 20, 10


@pytest.fixture
def subject(tmp_path):
    """Return a set, and the answers of a system by who graded them: to questions that have an
    answer, and to those that have none."""

    def make(answerable, unanswerable, n_wrong=0, n_failed=0):
        n = N_ANSWERABLE + N_UNANSWERABLE
        dataset = ranked_set(tmp_path / "set", {"now": [1] * n})
        queries = [
            query.model_copy(
                update={"expected_answer": "Yes.", "answerable": number < N_ANSWERABLE}
            )
            for number, query in enumerate(dataset.all_queries())
        ]
        dataset.write_queries(queries)
        by = [*[answerable] * N_ANSWERABLE, *[unanswerable] * N_UNANSWERABLE]
        dataset.write_answers("mine", [Answer(query_id=q.query_id, answer="?") for q in queries])
        wrong = [0.0 if number >= n - n_wrong else 1.0 for number in range(n)]
        grades = [
            AnswerGrade(
                query_id=query.query_id,
                verdict="correct" if score else "incorrect",
                score=score,
                has_hallucination=False,
                provenance=judge,
            )
            for query, judge, score in zip(queries, by, wrong, strict=True)
        ]
        failed = [
            grade.model_copy(
                update={
                    "verdict": None,
                    "score": None,
                    "has_hallucination": None,
                    "failure": "refused",
                    "provenance": BY_FACTS,
                }
            )
            for grade in grades[n - n_failed :]
        ]
        dataset.write_answer_grades("mine", [*grades[: n - n_failed], *failed])
        return dataset, answers_subject(dataset, "mine")

    return make


def gated(before, now, *, recorded=True):
    """Gate a drop of the score; a baseline may be of before who graded what was recorded."""
    dataset, subject = now
    baseline = before[1].baseline
    if not recorded:
        graders = [
            grader.model_copy(update={"n_unanswerable": None})
            for grader in baseline.evaluation.graders
        ]
        evaluation = baseline.evaluation.model_copy(update={"graders": tuple(graders)})
        baseline = baseline.model_copy(update={"evaluation": evaluation})
    return check_subject(dataset, subject, Rules(drops=(Threshold("score", 0.1),)), baseline)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_system_that_begins_to_invent_answers_fails(subject, recorded):
    """Refusals go by rule and inventions by another prompt of the judge: it is one judge."""
    before = subject(BY_FACTS, RULE)
    now = subject(BY_FACTS, AT_ONCE, n_wrong=N_UNANSWERABLE)
    verdict = gated(before, now, recorded=recorded)

    assert (verdict.outcome, verdict.refusals) == ("FAIL", ())


@pytest.mark.parametrize("recorded", [True, False])
def test_a_system_that_ceases_to_invent_answers_passes(subject, recorded):
    """Whoever mends a system wants to be told."""
    before = subject(BY_FACTS, AT_ONCE, n_wrong=N_UNANSWERABLE)
    verdict = gated(before, subject(BY_FACTS, RULE), recorded=recorded)

    assert (verdict.outcome, verdict.refusals) == ("PASS", ())


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ((BY_FACTS, RULE), (RULE, RULE)),
        ((RULE, RULE), (BY_FACTS, AT_ONCE)),
        ((BY_FACTS, AT_ONCE), (RULE, RULE)),
        ((RULE, AT_ONCE), (BY_FACTS, RULE)),
        ((AT_ONCE, AT_ONCE), (AT_ONCE, RULE)),
    ],
)
def test_what_rules_decide_has_no_other_judge(subject, before, now):
    """An answer that is the expected one word by word is left to no judge."""
    assert gated(subject(*before), subject(*now)).refusals == ()


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ((BY_FACTS, RULE), (BY_FACTS.model_copy(update={"model": "other"}), RULE)),
        ((BY_FACTS, RULE), (BY_FACTS.model_copy(update={"prompt_sha256": "cc" * 32}), RULE)),
        ((BY_FACTS, AT_ONCE), (BY_FACTS, AT_ONCE.model_copy(update={"prompt_sha256": "cc" * 32}))),
        ((BY_FACTS, AT_ONCE), (AT_ONCE, AT_ONCE)),
        ((BY_FACTS, RULE), (AT_ONCE, AT_ONCE)),
        ((AT_ONCE, AT_ONCE), (BY_FACTS, AT_ONCE)),
        ((BY_FACTS, RULE), (Provenance(kind="baseline", model="offline-token-f1-1"), RULE)),
        ((PERSON, RULE), (BY_FACTS, RULE)),
    ],
    ids=["model", "prompt", "other prompt", "one call", "one call, rule", "facts", "f1", "person"],
)
@pytest.mark.parametrize("recorded", [True, False])
def test_another_judge_of_the_same_kind_of_question_is_refused(subject, before, now, recorded):
    """A difference may be that of the judges."""
    verdict = gated(subject(*before), subject(*now), recorded=recorded)

    assert "--allow-grading-change" in [item.flag for item in verdict.refusals]


def test_a_failure_tells_nothing_of_who_grades_what(subject):
    """A judge by facts signs whatever fails, and graded nothing of it."""
    before = subject(BY_FACTS, AT_ONCE)
    now = subject(BY_FACTS, AT_ONCE, n_failed=2)

    assert gated(before, now).refusals == ()


def test_one_prompt_for_each_kind_of_question_is_one_judge(subject):
    """Nobody can let one prompt grade all."""
    dataset, found = subject(BY_FACTS, AT_ONCE)

    assert check_subject(dataset, found, Rules()).notes == ()


def test_two_prompts_of_a_model_for_one_kind_of_question_are_told_apart(subject):
    """Named by their model alone they would seem to be one."""
    dataset, _ = subject(BY_FACTS, RULE)
    grades = [
        grade.model_copy(update={"provenance": AT_ONCE}) if number < 5 else grade
        for number, grade in enumerate(dataset.answer_grades("mine"))
    ]
    dataset.write_answer_grades("mine", grades)

    assert check_subject(dataset, answers_subject(dataset, "mine"), Rules()).notes == (
        "several judges graded these answers (m (language model) with grade_answer bbbbbbbb 5, "
        "m (language model) with grade_facts aaaaaaaa 15), and means mix them; let one grade all",
    )


BATCH = Provenance(
    kind="llm",
    model="m",
    prompt="judge_relevance_batch",
    prompt_sha256="ab" * 32,
    protocol="batch 10 x 1",
)
LEFT = Provenance(
    kind="llm",
    model="m",
    prompt="judge_relevance",
    prompt_sha256="cd" * 32,
    protocol="batch 10 x 1, alone",
)
ONE_BY_ONE = LEFT.model_copy(update={"protocol": ""})


@pytest.fixture
def gated_run(tmp_path):
    """Gate a run against a baseline, each by two judges: of a relevant chunk, and of the others."""

    def judged(judge, beside):
        dataset = ranked_set(tmp_path / "set", {"now": [1] * 30}, judge=judge)
        dataset.write_judgments(
            one.model_copy(update={"provenance": beside}) if one.chunk_id == "wrong3" else one
            for one in dataset.judgments()
        )
        return dataset, evaluate_for(DROP, dataset, "now", EvaluateSettings())

    def decide(before, now):
        baseline = judged(*before)[1].baseline
        return check_run(*judged(*now), DROP, baseline)

    return decide


DROP = Rules(drops=(Threshold("RR", 0.1),))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ((BATCH, BATCH), (BATCH, LEFT)),
        ((BATCH, LEFT), (BATCH, BATCH)),
        ((LEFT, LEFT), (BATCH, LEFT)),
        ((BATCH, LEFT), (LEFT, LEFT)),
    ],
)
def test_a_text_that_was_judged_alone_is_of_the_judge_of_the_batches(gated_run, before, now):
    """A night that adds one chunk leaves no batch to show it in, and nobody chose that."""
    assert gated_run(before, now).refusals == ()


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ((BATCH, BATCH), (ONE_BY_ONE, ONE_BY_ONE)),
        ((BATCH, LEFT), (ONE_BY_ONE, ONE_BY_ONE)),
        ((BATCH, BATCH), (BATCH, ONE_BY_ONE)),
        ((BATCH, BATCH), (BATCH, LEFT.model_copy(update={"model": "other"}))),
        ((BATCH, LEFT), (BATCH, LEFT.model_copy(update={"prompt_sha256": "ef" * 32}))),
        ((BATCH, BATCH), (BATCH.model_copy(update={"prompt_sha256": "ef" * 32}), LEFT)),
    ],
    ids=["one by one", "one by one, now", "in part", "model", "prompt alone", "prompt of batches"],
)
def test_another_way_to_judge_runs_is_refused(gated_run, before, now):
    """Somebody chose that, and a difference may be that of the judges."""
    verdict = gated_run(before, now)

    assert "--allow-grading-change" in [item.flag for item in verdict.refusals]
