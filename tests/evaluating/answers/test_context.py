import pytest

from ragforge.evaluating.answers.diagnosis import context_use
from ragforge.evaluating.answers.records import Relevance, SystemRecords
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import Rate
from ragforge.records import Answer, AnswerGrade, Query

GRADES = {"good": 3, "half": 2, "near": 1, "off": 0, "failed": None}


@pytest.fixture
def used(make_grade):
    """Hold answers, given as (context, changes of the grade), against the judgments."""

    def use(given, queries=()):
        ids = [f"q{n}" for n in range(len(given))]
        contexts = {q: context for q, (context, _) in zip(ids, given, strict=True)}
        records = SystemRecords(
            "sys",
            {q: Answer(query_id=q, answer="a", chunk_ids=contexts[q]) for q in ids},
            {
                q: AnswerGrade.model_validate({**make_grade(q, "correct").model_dump(), **changes})
                for q, (_, changes) in zip(ids, given, strict=True)
            },
            frozenset(),
            frozenset(ids),
            {query.query_id: query for query in queries},
        )
        return context_use(records, contexts, Relevance(dict.fromkeys(ids, GRADES), 2, {}))

    return use


FILE = {"kind": "file", "model": "a.json"}
"""Of grades that came with the answers: these say what is a hallucination, and of facts nothing."""
FAILED = {"verdict": None, "score": None, "has_hallucination": None}


def test_precision_is_the_share_of_the_chunks_that_were_needed(used):
    """Two of three, and one of one: (2 / 3 + 1) / 2."""
    found = used([(("good", "half", "near"), {}), (("good",), {})])

    assert found.precision.mean == pytest.approx(5 / 6)
    assert found.precision.bounds == Ends(pytest.approx(5 / 6), pytest.approx(5 / 6))
    assert (found.n_chunks, found.n_unjudged) == (4, 0)


def test_chunks_without_a_judgment_are_holes_with_bounds(used):
    """1 of 2 judged is needed, and 1 of 4 to 3 of 4 of all; a failed judgment is no grade 0."""
    found = used([(("good", "off", "failed", "never seen"), {})])

    assert found.precision == Rate(0.5, None, Ends(0.25, 0.75), 1)
    assert found.n_unjudged == 2


def test_contexts_without_any_judgment_are_in_the_bounds_only(used):
    """One answer is known to be perfect, of the other nothing is."""
    found = used([(("good",), {}), (("never seen",), {})])

    assert found.precision == Rate(1.0, None, Ends(0.5, 1.0), 1, 0, 1)


def test_a_chunk_that_is_listed_twice_counts_once(used):
    """A context is a set of chunks."""
    assert used([(("good", "good", "off"), {})]).precision.mean == 0.5


def test_no_contexts_have_no_precision(used):
    """0 would blame a retriever of which nothing is known."""
    found = used([((), {})])

    assert (found.precision, found.difference) == (Rate(None, None, None, 0), None)


def test_queries_that_no_chunk_answers_need_none(used):
    """Their contexts are all noise by intent."""
    queries = [Query(query_id="q0", query="?", answerable=False)]

    assert used([(("off",), {})], queries).precision.mean is None


def test_noise_is_what_irrelevant_chunks_cost(used):
    """Five clean contexts score 1, five noisy ones 0.4: the difference is -0.6."""
    scores = [1.0, 0.0, 0.0, 1.0, 0.0]
    noisy = [(("good", "near"), {"score": score}) for score in scores]

    found = used([(("good", "half"), {})] * 5 + noisy)

    assert (found.clean.score.mean, found.clean.score.n) == (1.0, 5)
    assert (found.noisy.score.mean, found.noisy.score.n) == (pytest.approx(0.4), 5)
    assert found.difference.mean == pytest.approx(-0.6)
    assert found.difference.interval.low < -0.6 < found.difference.interval.high


@pytest.mark.parametrize(("n_clean", "n_noisy"), [(4, 20), (20, 4), (0, 0)])
def test_small_groups_have_no_difference(used, n_clean, n_noisy):
    """Four answers against twenty would be read as a finding."""
    given = [(("good",), {})] * n_clean + [(("good", "off"), {})] * n_noisy

    assert used(given).difference is None


def test_a_context_without_anything_relevant_is_neither_clean_nor_noisy(used):
    """Its answers are bad for want of a hit, and not for noise."""
    found = used([(("off", "near"), {})])

    assert (found.clean.score.n, found.noisy.score.n, found.n_open) == (0, 0, 0)


@pytest.mark.parametrize(
    ("context", "n_noisy", "n_open"),
    [(("good", "failed"), 0, 1), (("good", "failed", "off"), 1, 0)],
)
def test_a_chunk_without_a_judgment_may_be_noise(used, context, n_noisy, n_open):
    """Only where noise is known does it not matter what the unknown chunk is."""
    found = used([(context, {})])

    assert (found.noisy.score.n, found.clean.score.n, found.n_open) == (n_noisy, 0, n_open)


def test_failed_grades_are_in_the_bounds_of_their_group(used):
    """A failure is known to be in the group, and nothing else."""
    found = used([(("good", "off"), {}), (("good", "off"), FAILED)])

    assert found.noisy.score == Rate(1.0, None, Ends(0.5, 1.0), 1, 1)
    assert found.noisy.wrong_claims == Rate(0.0, None, Ends(0.0, 0.5), 1, 1)


@pytest.mark.parametrize(
    ("changes", "rate"),
    [
        ({}, 0.0),
        ({"has_hallucination": True}, 1.0),
        ({"verdict": "incorrect", "score": 0.0}, 1.0),
        ({"verdict": "not_attempted", "score": 0.0}, 0.0),
        ({"facts": [{"fact_id": "f", "status": "contradicted", "quote": "a"}]}, 1.0),
        ({"facts": [{"fact_id": "f", "status": "missing"}], "verdict": "incorrect"}, 0.0),
        ({"has_hallucination": None}, None),
        ({"verdict": "incorrect", "score": 0.0, "provenance": FILE}, 0.0),
        ({"has_hallucination": True, "provenance": FILE}, 1.0),
    ],
)
def test_wrong_claims_are_contradictions_and_inventions(used, changes, rate):
    """What is left out is not wrong, and of what was not checked nobody knows."""
    assert used([(("good", "off"), changes)]).noisy.wrong_claims.mean == rate
