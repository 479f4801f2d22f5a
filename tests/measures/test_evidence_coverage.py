"""Evidence in retrieved texts, by hand and by what must hold of any cutting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.errors import UsageError
from ragforge.measures import Summary, evaluate, parse_measure
from ragforge.measures.bounds import Interval
from ragforge.measures.evidence_coverage import (
    Coverage,
    Quote,
    RetrievedText,
    RunEvidence,
    Stretch,
    coverage,
    within,
)
from ragforge.measures.strata import Design


def _quote(start: int, end: int, document: str = "d") -> Quote:
    return Quote((Stretch(document, start, end),))


def _text(start: int, end: int, document: str = "d") -> RetrievedText:
    return RetrievedText(end - start, (end - start) // 4, (Stretch(document, start, end),))


def test_a_quote_in_a_chunk_by_hand() -> None:
    """20 characters of evidence in 100 that were retrieved, of 40 that there are."""
    found = coverage([_quote(10, 30), _quote(500, 520)], [_text(0, 100)])

    assert found == Coverage(n_quotes=2, n_whole=1, evidence=40, covered=20, retrieved=100)
    assert found.evidence_recall == 0.5
    assert found.token_recall == 0.5
    assert found.token_precision == 0.2
    assert found.token_iou == 20 / 120


def test_two_chunks_hold_a_quote_together() -> None:
    """A quote over the border of two chunks is found where both are."""
    assert coverage([_quote(90, 110)], [_text(0, 100), _text(100, 200)]).n_whole == 1


def test_half_a_quote_is_no_whole_one() -> None:
    """Half a sentence is no answer; token recall tells how near it came."""
    found = coverage([_quote(90, 110)], [_text(0, 100)])

    assert (found.evidence_recall, found.token_recall) == (0.0, 0.5)


def test_overlap_is_paid_for_and_not_counted_twice() -> None:
    """Overlapping chunks fill a prompt with the same text, and find the evidence once."""
    found = coverage([_quote(50, 70)], [_text(0, 100), _text(40, 140)])

    assert (found.covered, found.retrieved) == (20, 200)


def test_another_document_covers_nothing() -> None:
    """Offsets are those of a document."""
    assert coverage([_quote(0, 10, "a")], [_text(0, 10, "b")]).covered == 0


def test_one_of_several_places_is_enough() -> None:
    """What a corpus repeats need be found once."""
    quote = Quote((Stretch("v1", 0, 20), Stretch("v2", 5, 25)))

    assert coverage([quote], [_text(0, 100, "v2")]).n_whole == 1


def test_a_text_without_a_place_covers_what_it_quotes() -> None:
    """A chunk with a summary in front may have no place, and yet says the answer in its words."""
    text = RetrievedText(60, 15, held=frozenset({1}))
    found = coverage([_quote(0, 10), _quote(20, 50)], [text])

    assert (found.n_whole, found.covered) == (1, 30)


def test_nothing_retrieved_is_nothing_found() -> None:
    """An empty ranking has value 0 in each measure."""
    found = coverage([_quote(0, 10)], [])

    assert (found.token_recall, found.token_precision, found.token_iou) == (0.0, 0.0, 0.0)


def test_a_budget_ends_before_the_text_that_does_not_fit() -> None:
    """A prompt has no place for half a chunk, and a smaller one further down does not jump it."""
    ranking = [_text(0, 40), _text(100, 500), _text(600, 604)]

    assert within(ranking, tokens=20) == ranking[:1]


@pytest.mark.parametrize(("cutoff", "n"), [(1, 1), (3, 3), (9, 3), (None, 3)])
def test_a_cutoff_counts_texts(cutoff: int | None, n: int) -> None:
    """As in the measures that count chunks."""
    ranking = [_text(0, 40), _text(100, 500), _text(600, 604)]

    assert len(within(ranking, cutoff=cutoff)) == n


_OFFSETS = st.tuples(st.integers(0, 80), st.integers(1, 40)).map(lambda two: (two[0], sum(two)))


@given(st.lists(_OFFSETS, min_size=1, max_size=4), st.lists(_OFFSETS, max_size=5))
def test_recall_is_that_of_the_characters(
    quotes: list[tuple[int, int]], texts: list[tuple[int, int]]
) -> None:
    """Intervals are a fast way to count characters one by one, and must count the same."""
    found = coverage([_quote(*each) for each in quotes], [_text(*each) for each in texts])
    there = {at for start, end in texts for at in range(start, end)}

    assert found.covered == sum(len(there & set(range(*each))) for each in quotes)


@given(st.lists(_OFFSETS, min_size=1, max_size=3), st.integers(1, 60))
def test_cutting_the_retrieved_text_otherwise_moves_nothing(
    quotes: list[tuple[int, int]], cut: int
) -> None:
    """The point of these measures: the same text in other chunks has the same values."""
    needed = [_quote(*each) for each in quotes]

    assert coverage(needed, [_text(0, cut), _text(cut, 61)]) == coverage(needed, [_text(0, 61)])


def test_a_repeat_with_fewer_blanks_is_the_whole_quote() -> None:
    """A version of a document may set the same sentence in fewer characters."""
    quote = Quote((Stretch("v1", 0, 20), Stretch("v2", 5, 23)))
    found = coverage([quote], [_text(0, 100, "v2")])

    assert (found.n_whole, found.covered) == (1, 20)


def test_no_more_is_evidence_than_was_retrieved() -> None:
    """A text that lost marks of markup is shorter than the stretch of a document that it is."""
    found = coverage([_quote(0, 100)], [RetrievedText(90, 20, (Stretch("d", 0, 100),))])

    assert (found.token_precision, found.token_iou) == (1.0, 1.0)


def _of_run(**texts: list[RetrievedText]) -> RunEvidence:
    return RunEvidence({"q1": [_quote(0, 10)], "q2": [_quote(0, 10)]}, texts, failed=["q3"])


def test_a_query_that_the_run_lacks_has_value_0() -> None:
    """As in measures of chunks: what was not retrieved holds no evidence."""
    found = _of_run(q1=[_text(0, 10)])

    assert found.query_ids == ["q1", "q2"]
    assert found.values(parse_measure("EvidenceR@5")) == [1.0, 0.0]


def test_a_failed_retrieval_has_no_value_and_widens_the_bounds() -> None:
    """A failure is never a value: it could have found all, or nothing."""
    quotes = {"q1": [_quote(0, 10)], "q2": [_quote(0, 10)]}
    evidence = RunEvidence(quotes, {"q1": [_text(0, 10)]}, failed=["q2"])
    graded = evaluate({"q1": {"c": 1}, "q2": {"c": 1}}, {"q1": ["c"]}, ["RR"], failed=["q2"])
    scores = graded.with_evidence(evidence, ["TokenR@5", "RR"])

    assert scores.measures == ("TokenR@5", "RR")
    assert scores.summary("TokenR@5") == Summary(1.0, 1, 1, 0.5, 1.0)
    assert scores.possible("TokenR@5") == {"q2": Interval(0.0, 1.0)}


def test_queries_without_judgments_are_measured() -> None:
    """Their evidence is known, whoever graded what."""
    evidence = RunEvidence({"q2": [_quote(0, 10)]}, {"q2": [_text(0, 40)]}, warnings=["told"])
    graded = evaluate({"q1": {"c": 1}, "q2": {}}, {"q1": ["c"], "q2": ["c"]}, ["RR"])
    scores = graded.with_evidence(evidence, ["RR", "TokenP"])

    assert scores.per_query == {"q1": {"RR": 1.0}, "q2": {"TokenP": 0.25}}
    assert scores.query_ids_of("TokenP") == ("q2",)
    assert scores.worst(3, "TokenP") == [("q2", 0.25)]
    assert scores.warnings == ("told",)


def test_scores_of_evidence_are_computed_again_without_the_run() -> None:
    """Other cutoffs and budgets are of the same ranking."""
    evidence = RunEvidence({"q": [_quote(40, 50)]}, {"q": [_text(0, 40), _text(40, 80)]})
    scores = evaluate({"q": {"c": 1}}, {"q": ["c"]}, ["RR"]).with_evidence(evidence, ["TokenR"])
    again = scores.rescore(["EvidenceR@1", "EvidenceR@2", "EvidenceR(tokens=19)@2", "RR"])

    assert again.per_query["q"] == {
        "EvidenceR@1": 0.0,
        "EvidenceR@2": 1.0,
        "EvidenceR(tokens=19)@2": 0.0,
        "RR": 1.0,
    }


def test_rankings_that_end_before_their_budget_are_counted() -> None:
    """What a deeper ranking would hold of the evidence is not known."""
    quotes = {"q1": [_quote(40, 50)], "q2": [_quote(0, 10)], "q3": [_quote(0, 10)]}
    texts = {"q1": [_text(0, 40), _text(40, 80)], "q2": [_text(0, 400), _text(0, 4)], "q3": []}
    evidence = RunEvidence(quotes, texts)
    names = ["EvidenceR(tokens=50)", "EvidenceR(tokens=50)@2", "EvidenceR", "EvidenceR(tokens=20)"]

    assert [evidence.n_beyond(parse_measure(name)) for name in names] == [1, 0, 0, 0]


def test_a_sample_stands_for_the_queries_with_evidence() -> None:
    """A stratum weighs what it has of queries with evidence, not of all."""
    design = Design({"q1": "easy", "q2": "easy", "q3": "easy", "q4": "hard"})
    quotes = {"q1": [_quote(0, 10)], "q4": [_quote(0, 10)]}
    evidence = RunEvidence(quotes, {"q1": [_text(0, 10)]}, design=design)

    assert evidence.mean({"q1": 1.0, "q4": 0.0}) == 0.75


def test_judgments_alone_do_not_tell_of_evidence() -> None:
    """A file of grades says nothing of where quotes stand."""
    with pytest.raises(UsageError, match=r"'EvidenceR@5': needs a dataset: .* from evidence"):
        evaluate({"q": {"c": 1}}, {"q": ["c"]}, ["EvidenceR@5"])


_TEXTS = st.builds(
    lambda length, places, held: RetrievedText(
        length, length // 4, tuple(Stretch("d", *place) for place in places), frozenset(held)
    ),
    st.integers(0, 60),
    st.lists(_OFFSETS, max_size=3),
    st.sets(st.integers(0, 3)),
)


@given(st.lists(_OFFSETS, min_size=1, max_size=4), st.lists(_TEXTS, max_size=5))
def test_values_are_shares_whatever_texts_and_places(
    quotes: list[tuple[int, int]], texts: list[RetrievedText]
) -> None:
    """Intervals of bounded means, and gates, rest on it."""
    found = coverage([_quote(*each) for each in quotes], texts)
    values = (
        found.evidence_recall,
        found.token_recall,
        found.token_precision,
        found.token_iou,
    )

    assert all(0 <= value <= 1 for value in values)
    assert found.token_iou <= min(found.token_recall, found.token_precision)


@given(st.lists(_TEXTS, max_size=6), st.integers(1, 6), st.integers(1, 40))
def test_a_deeper_or_larger_prompt_holds_no_less(
    ranking: list[RetrievedText], cutoff: int, tokens: int
) -> None:
    """Recall rises with k and with the budget."""
    needed = [_quote(0, 20), _quote(40, 70)]
    less = coverage(needed, within(ranking, cutoff=cutoff, tokens=tokens))
    more = coverage(needed, within(ranking, cutoff=cutoff + 1, tokens=tokens + 9))

    assert less.covered <= more.covered
    assert less.n_whole <= more.n_whole
