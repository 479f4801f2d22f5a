import pytest
from ranked_sets import JUDGE, MOCK, ranked_set

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.gate import Rules, Threshold
from ragforge.pipeline.gating.answers import answer_measure, answers_subject
from ragforge.pipeline.gating.verdict import check_subject, evaluate_for
from ragforge.records import Answer, AnswerGrade


@pytest.fixture
def answered(tmp_path):
    """Thirty graded answers: by query, the verdict; None is a failed grade, "" no answer at all."""

    def make(verdicts, hallucinated=()):
        dataset = ranked_set(tmp_path / "set", {"now": [1] * len(verdicts)})
        queries = dataset.all_queries()
        dataset.write_queries(
            query.model_copy(update={"expected_answer": "Yes."}) for query in queries
        )
        pairs = list(zip([query.query_id for query in queries], verdicts, strict=True))
        dataset.write_answers(
            "mine", [Answer(query_id=key, answer="?") for key, verdict in pairs if verdict != ""]
        )
        dataset.write_answer_grades(
            "mine",
            [
                AnswerGrade(
                    query_id=key,
                    verdict=verdict,
                    score=SCORES.get(verdict),
                    has_hallucination=None if verdict is None else key in hallucinated,
                    failure="refused" if verdict is None else None,
                    provenance=JUDGE,
                )
                for key, verdict in pairs
                if verdict != ""
            ],
        )
        return dataset

    return make


SCORES = {"correct": 1.0, "incorrect": 0.0}
HALF_CORRECT = ["correct", "incorrect"] * 15


def correct(value, **rules):
    return Rules(least=(Threshold("correct", value),), **rules)


def test_answers_pass_by_the_low_end_too(answered):
    """By a table of Clopper and Pearson's: 15 of 30 may be of a share of 0.31297."""
    dataset = answered(HALF_CORRECT)
    check = check_subject(dataset, answers_subject(dataset, "mine"), correct(0.31)).checks[0]

    assert (check.outcome, check.decided) == ("PASS", pytest.approx(0.31297, abs=1e-5))


def test_answers_without_a_single_mistake_are_not_surely_perfect(answered):
    """30 of 30 is what a system with a true share of 0.025 ** (1 / 30) does 1 in 40 times."""
    dataset = answered(["correct"] * 30)
    check = check_subject(dataset, answers_subject(dataset, "mine"), correct(0.9)).checks[0]

    assert (check.outcome, check.decided) == ("NOT_SHOWN", pytest.approx(0.025 ** (1 / 30)))


@pytest.mark.parametrize("missing", [None, ""])
def test_an_answer_without_a_grade_counts_at_its_worst(answered, missing):
    """A failed grade, or no answer at all, must never help."""
    dataset = answered([missing, *["correct"] * 29])
    rules = correct(0.9, by_point=True)
    check = check_subject(dataset, answers_subject(dataset, "mine"), rules).checks[0]

    assert (check.value, check.decided) == (1.0, pytest.approx(29 / 30))


def test_queries_without_an_answer_count_among_the_failures(answered):
    """A system that answers what it can and drops the rest must not pass."""
    dataset = answered([*HALF_CORRECT, "", "", None])
    check = check_subject(
        dataset, answers_subject(dataset, "mine"), Rules(max_failures=0.01)
    ).checks[0]

    assert (check.outcome, check.n_failed, check.n) == ("FAIL", 3, 33)
    assert check.text == (
        "3 of 33 queries failed or have no graded answer, 9.09 %; allowed is 1 %."
    )


def test_the_notes_add_up_to_what_is_counted(answered):
    """A note that says otherwise than the number leaves nothing to trust."""
    dataset = answered([*HALF_CORRECT, "", "", None])
    dataset.write_answer_grades("mine", dataset.answer_grades("mine")[2:])
    verdict = check_subject(dataset, answers_subject(dataset, "mine"), Rules())

    assert verdict.evaluation.n_failed == 5
    assert verdict.notes == (
        "answers not graded yet: 2; counted as failed, and at their worst",
        "queries without an answer: 2; counted as failed, and at their worst",
        "answers or grades that failed: 1; counted as failed, and at their worst",
    )


def test_a_query_without_an_answer_could_have_been_hallucinated(answered):
    """Leaving out what it makes up must not make a system honest."""
    dataset = answered([*["correct"] * 27, "", "", ""])
    rules = Rules(most=(Threshold("hallucination", 0.05),), by_point=True)
    check = check_subject(dataset, answers_subject(dataset, "mine"), rules).checks[0]

    assert (check.outcome, check.value, check.decided) == ("FAIL", 0.0, pytest.approx(0.1))


def test_less_hallucination_than_allowed_passes(answered):
    """By hand: none of 30 is surely below 1 - 0.025 ** (1 / 30), 0.116."""
    dataset = answered(HALF_CORRECT)
    rules = Rules(most=(Threshold("hallucination", 0.12),))
    check = check_subject(dataset, answers_subject(dataset, "mine"), rules).checks[0]

    assert (check.outcome, check.decided) == ("PASS", pytest.approx(1 - 0.025 ** (1 / 30)))


def test_more_hallucination_than_is_surely_allowed_is_not_shown(answered):
    """Three of 30 are less than 12 %, but could be more of all queries."""
    dataset = answered(HALF_CORRECT, hallucinated=("q000", "q001", "q002"))
    rules = Rules(most=(Threshold("hallucination", 0.12),))
    check = check_subject(dataset, answers_subject(dataset, "mine"), rules).checks[0]

    assert (check.outcome, check.value) == ("NOT_SHOWN", pytest.approx(0.1))
    assert check.decided_on == "high end of the interval"


def test_by_point_hallucination_is_the_share_itself(answered):
    """The naive rule is a rule too."""
    dataset = answered(HALF_CORRECT, hallucinated=("q000", "q001", "q002"))
    rules = Rules(most=(Threshold("hallucination", 0.12),), by_point=True)

    assert check_subject(dataset, answers_subject(dataset, "mine"), rules).passed


def test_answers_are_held_against_a_baseline_of_answers(answered):
    """A new prompt is to be no worse on the same questions."""
    rules = Rules(drops=(Threshold("correct", 0.05),))
    dataset = answered(["correct"] * 30)
    before = answers_subject(dataset, "mine").baseline
    dataset = answered(HALF_CORRECT)
    verdict = check_subject(dataset, answers_subject(dataset, "mine"), rules, before)

    assert (verdict.outcome, verdict.checks[0].value) == ("FAIL", -0.5)
    assert verdict.fallen[0].query_id == "q001"


def test_the_same_answers_pass_though_some_queries_were_never_asked(answered):
    """A set often has more queries than a system was asked; that is no failure of either."""
    dataset = answered([*HALF_CORRECT, "", ""])
    subject = answers_subject(dataset, "mine")
    rules = Rules(drops=(Threshold("correct", 0.0),))

    assert check_subject(dataset, subject, rules, subject.baseline).passed


@pytest.mark.parametrize("update", [{"has_hallucination": True}, {"strict_score": 0.5}])
def test_answers_that_were_graded_otherwise_are_another_state(answered, update):
    """By what else a judge says of them, they were graded anew, and not only looked at again."""
    dataset = answered(["correct"] * 30)
    before = answers_subject(dataset, "mine").baseline
    first, *others = dataset.answer_grades("mine")
    dataset.write_answer_grades("mine", [first.model_copy(update=update), *others])
    rules = Rules(drops=(Threshold("correct", 0.2),))

    verdict = check_subject(dataset, answers_subject(dataset, "mine"), rules, before)

    assert not any("this very state" in note for note in verdict.notes)


def test_a_query_that_is_not_answered_any_more_counts_as_fallen_to_nothing(answered):
    """Otherwise a system would get better by leaving out what is hard."""
    before = answers_subject(answered(["correct"] * 30), "mine").baseline
    dataset = answered(["correct"] * 29 + [""])
    rules = Rules(drops=(Threshold("correct", 0.02),), by_point=True)
    check = check_subject(dataset, answers_subject(dataset, "mine"), rules, before).checks[0]

    assert (check.value, check.decided) == (0.0, pytest.approx(-1 / 30))


def test_queries_that_were_not_answered_in_both_count_at_their_worst(answered):
    """By hand: 30 ties, and 20 that may have fallen from correct to not."""
    before = answers_subject(answered([*HALF_CORRECT, *[""] * 20]), "mine").baseline
    dataset = answered([*reversed(HALF_CORRECT), *[""] * 20])
    rules = Rules(drops=(Threshold("correct", 0.1),), by_point=True)
    check = check_subject(dataset, answers_subject(dataset, "mine"), rules, before).checks[0]

    assert (check.value, check.decided) == (0.0, pytest.approx(-0.4))


@pytest.fixture
def partly_graded(answered):
    """Thirty graded answers: some are not checked for hallucination, or have no score."""

    def make(unchecked=(), unscored=()):
        dataset = answered(["correct"] * 30)
        grades = [
            grade.model_copy(
                update={
                    "has_hallucination": None if n in unchecked else False,
                    "score": None if n in unscored else grade.score,
                }
            )
            for n, grade in enumerate(dataset.answer_grades("mine"))
        ]
        dataset.write_answer_grades("mine", grades)
        return dataset, answers_subject(dataset, "mine")

    return make


def test_answers_checked_on_other_queries_are_held_against_a_baseline(partly_graded):
    """Which answers are checked for hallucination is not the same in any two systems."""
    before = partly_graded(unchecked=range(10))[1].baseline
    dataset, subject = partly_graded(unchecked=range(20, 30))
    rules = Rules(drops=(Threshold("correct", 0.2),))
    verdict = check_subject(dataset, subject, rules, before)

    assert (verdict.outcome, verdict.checks[0].n) == ("PASS", 30)


def test_answers_without_a_score_on_one_side_are_not_counted_as_compared(partly_graded):
    """What has a value on both sides decides; more of it must not be pretended."""
    before = partly_graded(unscored=range(3))[1].baseline
    dataset, subject = partly_graded(unscored=range(27, 30))
    rules = Rules(drops=(Threshold("score", 0.2),))
    verdict = check_subject(dataset, subject, rules, before)

    assert verdict.checks[0].n == 24
    assert [item.reason for item in verdict.refusals] == [
        "24 items are the same as in the baseline; at least 25 are needed (--min-queries)"
    ]


def test_few_values_of_a_measure_refuse_the_gate_whatever_else_was_graded(partly_graded):
    """Eleven answers that were checked show nothing of the thirty that were graded."""
    dataset, subject = partly_graded(unchecked=range(11, 30))
    rules = Rules(most=(Threshold("hallucination", 0.95),))
    verdict = check_subject(dataset, subject, rules)

    assert [(item.reason, item.flag) for item in verdict.refusals] == [
        (
            "11 queries have a value of hallucination; at least 25 are needed (--min-queries)",
            "--allow-few",
        )
    ]


def test_a_measure_without_any_value_is_refused_and_not_failed(partly_graded):
    """Verdicts without scores show no score, neither a good nor a bad one."""
    dataset, subject = partly_graded(unscored=range(30))
    rules = Rules(least=(Threshold("score", 0.1),))
    verdict = check_subject(dataset, subject, rules, allowed=["few"])

    assert verdict.outcome == "REFUSED"
    assert [item.reason for item in verdict.refusals] == ["no answer has a value of score"]


@pytest.fixture
def graded_by_two(partly_graded):
    """Thirty graded answers, the first ten of them by a second judge."""

    def make(judge, **made):
        dataset, _ = partly_graded(**made)
        grades = [
            grade.model_copy(update={"provenance": judge}) if n < 10 else grade
            for n, grade in enumerate(dataset.answer_grades("mine"))
        ]
        dataset.write_answer_grades("mine", grades)
        return dataset, answers_subject(dataset, "mine")

    return make


def test_grades_of_a_mock_are_counted_among_those_that_the_rule_rests_on(graded_by_two):
    """Ten of thirty verdicts may be made up, but not ten of the fifteen that were checked."""
    dataset, subject = graded_by_two(MOCK, unchecked=range(15, 30))
    most = (Threshold("hallucination", 0.9),)
    by_all = check_subject(dataset, subject, correct(0.5))
    by_checked = check_subject(dataset, subject, Rules(most=most, min_queries=10))

    assert by_all.outcome == "PASS"
    assert [item.flag for item in by_checked.refusals] == ["--allow-baseline-judge"]
    assert by_checked.refusals[0].reason.startswith("66.7 % of the grades (10 of 15) are made up")


def test_answers_that_several_judges_graded_are_told(graded_by_two):
    """A mean over two judges is of neither."""
    other = JUDGE.model_copy(update={"model": "other"})
    dataset, subject = graded_by_two(other)
    verdict = check_subject(dataset, subject, correct(0.5))

    assert verdict.notes == (
        f"several judges graded these answers ({JUDGE.model} (language model) 20, other (language "
        "model) 10), and means mix them; let one grade all",
    )


def test_a_baseline_of_a_run_is_none_of_answers(answered):
    """They share no measure."""
    dataset = answered(HALF_CORRECT)
    run = evaluate_for(Rules(), dataset, "now", EvaluateSettings())

    with pytest.raises(DataError, match=r"^baseline: is of a run \(now\), this is of answers"):
        check_subject(dataset, answers_subject(dataset, "mine"), Rules(), run.baseline)


def test_answers_of_an_unknown_system_are_an_error(answered):
    """The message lists those that are there."""
    with pytest.raises(DataError, match=r"no answers of system 'other'; there are: mine"):
        answers_subject(answered(HALF_CORRECT), "other")


@pytest.mark.parametrize(
    ("text", "flag", "message"),
    [
        ("fluency", "--min", "no measure of answers; there are: score, strict_score, correct"),
        ("hallucination", "--min", "less of it is better, so that it goes with --max"),
        ("hallucination", "--max-drop", "less of it is better, so that it goes with --max"),
        ("score", "--max", "more of it is better, so that it goes with --min"),
    ],
)
def test_a_measure_of_answers_must_fit_its_flag(text, flag, message):
    """A bound on the wrong side lets everything pass."""
    with pytest.raises(UsageError, match=message):
        answer_measure(text, flag)
