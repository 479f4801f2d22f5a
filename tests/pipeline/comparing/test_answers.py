"""Answer systems held against each other."""

import pytest

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.summary import summarise_system
from ragforge.files.set.opening import create_dataset
from ragforge.files.set.query_selection import RequestedQueries, choose
from ragforge.measures.comparing import RunPair, compare_pairs
from ragforge.pipeline.comparing.answers import compare_answers
from ragforge.pipeline.comparing.deciding import ComparisonOptions
from ragforge.pipeline.gating.answers import answers_subject
from ragforge.records import Answer, AnswerGrade, Failure, Provenance, Query

QUERIES = [f"q{n}" for n in range(1, 9)]
VERDICTS = {0.0: "incorrect", 0.5: "partial", 1.0: "correct"}
LOW = dict.fromkeys(QUERIES, 0.0) | {"q1": 0.5, "q8": 1.0}
HIGH = dict.fromkeys(QUERIES, 1.0) | {"q8": 0.5}


def grades(scores, **fields):
    return [
        AnswerGrade(
            query_id=query_id,
            verdict=None if score is None else VERDICTS[score],
            score=score,
            failure="error" if score is None else None,
            **{"has_hallucination": None, **fields},
        )
        for query_id, score in scores.items()
    ]


def answers(query_ids):
    return [Answer(query_id=query_id, answer="So it is.") for query_id in query_ids]


@pytest.fixture
def dataset(tmp_path):
    """Eight queries, answered and graded for two systems."""
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_queries(
        Query(query_id=name, query=f"What is {name}?", expected_answer="It.") for name in QUERIES
    )
    for name, scores in (("low", LOW), ("high", HIGH)):
        made.write_answers(name, answers(scores))
        made.write_answer_grades(name, grades(scores))
    return made


def compared(dataset, *measures, names=("low", "high"), **options):
    settings = EvaluateSettings(measures=measures)
    return compare_answers(dataset, names, settings, ComparisonOptions(**options))


def test_scores_and_verdicts_are_compared_as_values_per_query(dataset):
    """The statistics are those of runs, over the queries that both answered."""
    low, high = list(LOW.values()), list(HIGH.values())
    right = [[float(score == 1.0) for score in scores] for scores in (low, high)]
    expected = compare_pairs(
        [RunPair("low", "high", "score", low, high), RunPair("low", "high", "correct", *right)]
    )
    report = compared(dataset)

    assert [item.comparison for item in report.items] == expected
    assert (report.of, report.measures, report.rel_threshold) == (
        "answers",
        ("score", "correct"),
        None,
    )


def test_all_systems_are_compared_where_none_is_named(dataset):
    """The short command is the usual one."""
    assert compared(dataset, names=()).names == ("high", "low")


def test_systems_on_other_queries_are_in_nobodys_way(dataset):
    """A sample of its own for one system must not end commands that are about others."""
    queries = dataset.accepted_queries()
    small, other = (choose(queries, RequestedQueries(sample=3, seed=seed)) for seed in (1, 2))
    assert not other.query_ids <= small.query_ids
    dataset.choosing(small).write_answers("small", answers(sorted(small.query_ids)))
    part = dataset.choosing(other)

    report = compared(part)

    assert {item.comparison.n for item in report.items} == {3}
    assert answers_subject(part, "low").evaluation.n_queries == 3
    assert summarise_system(part, "low").n_answers == 3
    with pytest.raises(DataError, match="answers of small: was made for sample 3, seed 1"):
        compared(part, names=("low", "small"))


def test_queries_that_moved_come_with_their_texts(dataset):
    """One reads the questions to see what changed."""
    item = compared(dataset, n_moved=1).items[0]

    assert [(q.query_id, q.text, q.first_a) for q in item.gained] == [("q2", "What is q2?", None)]
    assert [(q.query_id, q.value_a, q.value_b) for q in item.lost] == [("q8", 1.0, 0.5)]


def test_fewer_hallucinations_win(dataset):
    """It is the one measure of answers of which less is better."""
    dataset.write_answer_grades("low", grades(LOW, has_hallucination=True))
    dataset.write_answer_grades("high", grades(HIGH, has_hallucination=False))
    report = compared(dataset)
    found = report.items[-1]

    assert (found.comparison.measure, found.comparison.winner) == ("hallucination", "B")
    assert (found.comparison.diff, found.comparison.wins) == (-1.0, 8)
    assert report.letters["hallucination"] == {"low": "b", "high": "a"}
    assert (len(found.gained), len(found.lost)) == (8, 0)


def test_a_measure_without_any_value_costs_the_others_nothing(dataset):
    """Files with verdicts alone have no score: what was better by correct became a TIE."""
    for name, scores in (("low", LOW), ("high", HIGH)):
        given = grades(scores)
        dataset.write_answer_grades(name, [one.model_copy(update={"score": None}) for one in given])

    report = compared(dataset, "score", "correct")

    [alone] = compared(dataset, "correct").items
    assert [item.comparison.n for item in report.items] == [0, 8]
    assert report.items[-1].comparison == alone.comparison
    assert compared(dataset).measures == ("correct",)


def test_hallucination_is_left_out_where_one_system_was_not_checked(dataset):
    """A comparison with nothing would only cost the others power."""
    dataset.write_answer_grades("low", grades(LOW, has_hallucination=True))

    assert compared(dataset).measures == ("score", "correct")


def test_strict_score_is_compared_where_facts_were_graded(dataset):
    """It exists only where an answer was held against facts."""
    dataset.write_answer_grades("low", grades(LOW, strict_score=0.0))

    assert compared(dataset).measures == ("score", "strict_score", "correct")


def test_asked_measures_are_taken_in_their_order(dataset):
    """Each measure more makes all others harder to win by."""
    assert compared(dataset, "Correct", "strict score").measures == ("correct", "strict_score")


def test_measure_of_rankings_is_refused(dataset):
    """Answers have no ranks."""
    with pytest.raises(UsageError, match=r"'nDCG@10': no measure of answers; there are: score, "):
        compared(dataset, "nDCG@10")


def test_answers_alike_are_not_spoken_of_as_rankings(dataset):
    """They rank nothing."""
    dataset.write_answer_grades("low", grades(HIGH))

    assert "low and high: all values are the same" in compared(dataset).warnings


@pytest.mark.parametrize("how", ["ungraded", "failed grade", "failed answer", "unanswered"])
def test_query_without_a_grade_is_left_out_and_bounded(dataset, how):
    """The score might have been anything from 0 to 1; the mean found is within all the same."""
    scores = {query_id: HIGH[query_id] for query_id in QUERIES[1:]}
    failed = {"q1": None} if how == "failed grade" else {}
    dataset.write_answers("high", answers(scores if how == "unanswered" else QUERIES))
    dataset.write_answer_grades("high", grades({**scores, **failed}))
    if how == "failed answer":
        failure = Failure(what="ask", key="high/q1", kind="error", message="down")
        dataset.replace_failures("ask", [failure], lambda key: True)
    item = compared(dataset, "score").items[0]

    assert (item.comparison.n, item.n_left_out) == (7, 1)
    assert (item.failure_bounds.low, item.failure_bounds.high) == pytest.approx((5 / 8, 5.5 / 7))


def test_graded_throughout_leaves_nothing_open(dataset):
    """Bounds where nothing failed would look like doubt."""
    item = compared(dataset).items[0]

    assert (item.n_left_out, item.failure_bounds, item.unjudged) == (0, None, None)


def test_answers_that_nobody_graded_are_told(dataset):
    """They may be easier or harder than the others."""
    dataset.write_answer_grades("high", grades({"q1": 1.0, "q2": 1.0}))

    assert compared(dataset).warnings == ("high: 6 answers are not graded yet",)


def test_unknown_system_is_refused(dataset):
    """The systems that there are get named."""
    with pytest.raises(DataError, match="no answers of system 'best'; there are: high, low"):
        compared(dataset, names=("low", "best"))


def test_system_without_grades_is_refused(dataset):
    """The command that grades is named."""
    dataset.write_answers("new", answers(QUERIES))

    with pytest.raises(DataError, match="no answer of system 'new' is graded; grade them with"):
        compared(dataset, names=("low", "new"))


def test_systems_that_share_no_query_are_refused(dataset):
    """Nothing can be held against anything."""
    dataset.write_answer_grades("low", grades({"q1": 1.0}))
    dataset.write_answer_grades("high", grades({"q2": 1.0}))

    with pytest.raises(DataError, match="systems low and high share no graded query"):
        compared(dataset)


def test_one_system_is_no_comparison(dataset):
    """There is nothing to hold it against."""
    with pytest.raises(UsageError, match="a comparison needs at least two systems, got low"):
        compared(dataset, names=("low",))


def test_an_answer_that_is_missing_may_be_a_hallucination(dataset):
    """Who fails on the hard questions must not win by what was not said, and a gate counts so."""
    dataset.write_answers("high", answers(QUERIES[1:]))
    dataset.write_answer_grades("low", grades(LOW, has_hallucination=True))
    high = {query_id: HIGH[query_id] for query_id in QUERIES[1:]}
    dataset.write_answer_grades("high", grades(high, has_hallucination=False))
    [score, hallucination] = compared(dataset, "score", "hallucination").items

    assert (score.n_left_out, hallucination.n_left_out) == (1, 1)


@pytest.mark.parametrize(
    ("by_low", "by_high", "withheld"),
    [
        (("llm", "one"), ("llm", "one"), False),
        (("llm", "one"), ("llm", "two"), True),
        (("llm", "one"), ("baseline", "one"), True),
        (("llm", "one"), ("rule", "exact"), False),
        (("human", "a person"), ("llm", "two"), False),
    ],
)
def test_answers_that_two_judges_graded_have_no_winner(dataset, by_low, by_high, withheld):
    """The second system would win by the leniency of its judge."""
    for name, scores, (kind, model) in (("low", LOW, by_low), ("high", HIGH, by_high)):
        by = Provenance(kind=kind, model=model)
        dataset.write_answer_grades(name, grades(scores, provenance=by))

    found = compared(dataset, "score").items[0]

    assert (found.outcome == "UNKNOWN") == withheld
    assert ("ragforge answer --dataset" in found.withheld) == withheld


@pytest.mark.parametrize(
    ("of_low", "of_high", "named"),
    [("grade_facts", "grade_answer", True), ("grade_answer", "grade_facts", False)],
)
def test_the_command_grades_as_the_other_system_was_graded(dataset, of_low, of_high, named):
    """By the other prompt the same model is another judge, and the same command settles nothing."""
    for name, scores, prompt in (("low", LOW, of_low), ("high", HIGH, of_high)):
        by = Provenance(kind="llm", model="one", prompt=prompt)
        dataset.write_answer_grades(name, grades(scores, provenance=by))

    found = compared(dataset, "score").items[0]

    assert (found.outcome, "--name low --single-call`" in found.withheld) == ("UNKNOWN", named)


def test_systems_without_a_common_value_of_a_measure_are_compared_by_the_others(dataset):
    """A file may bring verdicts and no scores; nothing is known then of the difference in score."""
    for name, scores in (("low", LOW), ("high", HIGH)):
        without = [item.model_copy(update={"score": None}) for item in grades(scores)]
        dataset.write_answer_grades(name, without)

    by_score, by_verdict = compared(dataset, "score", "correct").items

    assert (by_score.outcome, by_score.n_open) == ("UNKNOWN", len(QUERIES))
    assert by_verdict.comparison.n == len(QUERIES)
