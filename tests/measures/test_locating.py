import numpy as np
import pytest

from ragforge.errors import DataError
from ragforge.measures import evaluate
from ragforge.measures.hit_table import FailedJudgments
from ragforge.measures.locating import judged_ranking

pytestmark = pytest.mark.usefixtures("columns_as")


def test_ranks_follow_scores_not_the_order_of_the_mapping():
    """Retrievers give no promise about the order of their hits."""
    ranking = judged_ranking("q", {"a": 1, "b": 2}, {"x": 1.0, "a": 3.0, "b": 2.0})

    assert (ranking.ranks, ranking.grades) == ([1, 2], [1, 2])


def test_equal_scores_put_the_larger_id_first():
    """trec_eval breaks ties so, and every published number rests on it."""
    ranking = judged_ranking("q", {"a": 1, "c": 3}, {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.5})

    assert (ranking.ranks, ranking.grades) == ([1, 3], [3, 1])


def test_ties_below_higher_scores_start_after_them():
    """The tie rule must count only the chunks of the same score."""
    scores = {"z": 9.0, "a": 1.0, "b": 1.0, "y": 2.0, "c": 1.0, "x": 0.0}

    ranking = judged_ranking("q", {"a": 1, "c": 3, "x": 2}, scores)

    assert (ranking.ranks, ranking.grades) == ([3, 5, 6], [3, 1, 2])


def test_ties_follow_code_points():
    """U+1F600 is above U+FFFD in UTF-8 bytes, as trec_eval compares, but not in UTF-16."""
    ranking = judged_ranking("q", {"\U0001f600": 1}, {"\U0001f600": 1.0, "\ufffd": 1.0})

    assert ranking.ranks == [1]


def test_minus_zero_ties_with_zero():
    """They compare equal, so the id decides."""
    ranking = judged_ranking("q", {"a": 1}, {"a": 0.0, "b": -0.0})

    assert ranking.ranks == [2]


def test_scores_keep_double_precision():
    """pytrec_eval ties these two, and reports 0.5 for a perfect ranking."""
    ranking = judged_ranking("q", {"a": 1}, {"a": 0.50000001, "b": 0.5})

    assert ranking.ranks == [1]


def test_infinities_order_as_numbers():
    """A retriever may mark a pinned chunk with infinity, and its sum with the other is NaN."""
    scores = {"a": float("-inf"), "b": float("inf"), "c": 0.5}

    assert judged_ranking("q", {"a": 1, "b": 2, "c": 3}, scores).grades == [2, 3, 1]


def test_numpy_scores_and_grades_are_taken():
    """Dense retrievers return float32 and graders' tables return int64."""
    scores = {"a": np.float32(0.3), "b": np.float32(0.2)}

    ranking = judged_ranking("q", {"b": np.int64(2)}, scores)

    assert (ranking.ranks, ranking.grades) == ([2], [2])


def test_a_list_gives_the_order_itself():
    """A plain ranking needs no invented scores."""
    assert judged_ranking("q", {"a": 1}, ["x", "a"]).ranks == [2]


def test_failed_judgments_are_kept_apart():
    """They are neither grades nor absent: the bounds need their ranks."""
    ranking = judged_ranking("q", {"a": None, "b": 0, "c": None, "d": 2}, ["x", "a", "d"])

    assert (ranking.judged, ranking.failed) == ((2, 0), FailedJudgments([2], 1))


@pytest.mark.parametrize(
    ("score", "shown"), [(float("nan"), "nan"), (None, "None"), ("0.5", "'0.5'"), (1j, "1j")]
)
def test_a_score_that_is_no_number_is_refused_by_query_and_chunk(score, shown):
    """The order would be undefined, and peers then report different values for one ranking."""
    message = f"run: query 'q7': chunk 'c3': score: expected a number, got {shown}"

    with pytest.raises(DataError, match=message):
        judged_ranking("q7", {"a": 1}, {"a": 1.0, "c3": score})


def test_a_chunk_listed_twice_is_refused_by_query_and_chunk():
    """Counted twice, it would lift recall above 1."""
    with pytest.raises(DataError, match="run: query 'q7': chunk 'b' is listed more than once"):
        judged_ranking("q7", {"a": 1}, ["a", "b", "c", "b"])


def test_text_is_not_taken_for_a_list_of_ids():
    """A string is a sequence of strings, so "d12" would rank the chunks d, 1 and 2."""
    with pytest.raises(DataError, match="run: query 'q7': expected scores or a list of ids"):
        judged_ranking("q7", {"a": 1}, "d12")


def test_a_whole_number_of_another_type_is_taken():
    """Tables give grades as floats as soon as one is missing."""
    ranking = judged_ranking("q", {"a": 2.0, "b": True}, ["a", "b"])

    assert (ranking.grades, ranking.judged) == ([2, 1], (2, 1))


@pytest.mark.parametrize("grade", [0.5, float("nan"), "2", [1]])
def test_a_grade_that_is_no_whole_number_is_refused(grade):
    """trec_eval truncates 1.7 to 1 in silence."""
    with pytest.raises(DataError, match="qrels: query 'q7': chunk 'a': grade: expected a whole"):
        judged_ranking("q7", {"a": grade}, ["a"])


@pytest.mark.parametrize("ranking", [["a"], {"a": 1.0}])
@pytest.mark.parametrize("grade", [1001, 10**30, -1001])
def test_a_grade_too_large_to_compute_with_is_refused(grade, ranking):
    """2^grade would overflow in the middle of a run."""
    with pytest.raises(
        DataError, match=f"'q7': chunk 'a': grade: expected -1000 to 1000, got {grade}"
    ):
        evaluate({"q7": {"a": grade}}, {"q7": ranking})
