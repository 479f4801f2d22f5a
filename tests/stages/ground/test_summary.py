import pytest

from ragforge.records import Citation, Claim, Grounding
from ragforge.stages.ground.summary import summarise


def grounding(query_id, faithfulness=None, **changes):
    grounded = None if faithfulness is None else faithfulness == 1
    fields = {"query_id": query_id, "is_grounded": grounded, "faithfulness": faithfulness}
    return Grounding(**fields, **changes)


CITED = Citation(sentence="So.", chunk_id="c1", status="supports")
MIXED = [
    grounding("q1", 1.0, claims=(Claim(text="So.", is_supported=True),)),
    grounding("q2", 0.5, citations=(CITED, CITED), citation_precision=1.0, citation_recall=0.5),
    grounding("q3", rule="abstains"),
    grounding("q4", failure="refused"),
]


def test_means_are_over_answers_that_claim_something():
    """An abstention is neither faithful nor unfaithful."""
    found = summarise(MIXED)

    assert (found.n_answers, found.n_checked, found.n_failed) == (4, 2, 1)
    assert (found.faithfulness.mean, found.grounded.mean) == (0.75, 0.5)
    assert found.rules == {"abstains": 1}
    assert (found.n_claims, found.n_supported) == (1, 1)


def test_bounds_say_what_failures_could_have_been():
    """A judge that fails on the bad answers would else make the system look good."""
    bounds = summarise(MIXED).faithfulness.bounds

    assert (bounds.low, bounds.high) == pytest.approx((0.5, 2.5 / 3))


def test_citations_are_of_the_answers_that_cite():
    """A system that is not meant to cite has no precision of 0."""
    found = summarise(MIXED)

    assert (found.n_citing, found.citations) == (1, {"supports": 2})
    assert (found.citation_precision.mean, found.citation_recall.mean) == (1.0, 0.5)


def test_without_citations_there_is_no_rate_of_them():
    """Bounds of 0 and 1 for what nobody does would only puzzle."""
    assert summarise([MIXED[0], MIXED[3]]).citation_precision.bounds is None


def test_nothing_checked_has_no_mean():
    """Never 1.0, which is what an empty list gives elsewhere."""
    found = summarise([MIXED[2]])

    assert (found.faithfulness.mean, found.grounded.mean) == (None, None)
