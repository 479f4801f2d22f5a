import pytest

from ragforge.files.manifest import Manifest, ReviewAudit, Spent
from ragforge.records import Coverage, FunnelStep, GenerationReport, ShareRow, Spread
from ragforge.report.generation import (
    generation_text,
    render_card,
    shortfall,
    size_advice,
    spent_line,
)


def report(**changes):
    step = FunnelStep(
        name="rules",
        unit="candidates",
        n=10,
        n_passed=6,
        low=0.31,
        high=0.83,
        reasons={"copied": 3, "deictic": 1},
    )
    fields = {
        "n_wanted": 8,
        "n_accepted": 6,
        "funnel": (step,),
        "documents": Coverage(total=3, covered=2, uncovered={"too short": 1}, examples={}),
        "chunks": Coverage(total=9, covered=5, uncovered={"not reached": 4}, examples={}),
        "shares": (ShareRow(margin="type", name="fact", target=0.5, n=6, share=1.0),),
        "variation": {"type": 0.5},
        "n_duplicates": 2,
        "overlap": Spread(n=6, q1=0.4, median=0.5, q3=0.6),
        "query_words": Spread(n=6, q1=6, median=8, q3=11),
        "real_overlap": 0.6,
        "real_words": None,
        "closed_book": {"not solved": 6},
        "agreement": {"agrees": 6},
        "evidence_rank": {"1": 5, "below": 1},
        "difficulty": {"easy": {"medium": 2}},
        "grades": {"0": 40, "3": 7},
        "splits": {"dev": 2, "test": 4},
        "relevant_per_query": 1.5,
        "completeness": 0.8,
        "completeness_low": 0.7,
        "completeness_high": 0.9,
    }
    return GenerationReport(**{**fields, **changes})


@pytest.mark.parametrize(
    "line",
    [
        "rules  candidates  10       6  60 % [31, 83]  copied 3, deictic 1",
        "documents      3        2  too short 1",
        "distance from the shares wanted (total variation, 0 none): type 0.50",
        "duplicates turned away: 2; in the set: 0",
        "words shared with the chunk: median 0.50 (0.40 to 0.60); real queries 0.60",
        "words of a query: median 8 (6 to 11)",
        "rank of the evidence by BM25: 1 5, below 1",
        "declared easy, measured: medium 2",
        "splits: dev 2, test 4",
        "relevant chunks (grade >= 2) a query, sources included: 1.50",
        "relevant chunks beside the sources that are in the pools, at most: 80 % [70 %, 90 %]",
    ],
)
def test_the_text_says_what_came_of_it(line):
    """Who generates a set must see at once what was thrown away and what is missing."""
    assert line in generation_text(report())


def test_questions_too_much_like_the_text_are_told():
    """They make BM25 look better than it is."""
    alike = Spread(n=6, q1=0.7, median=0.75, q3=0.9)

    assert "flatter lexical search" in generation_text(report(overlap=alike))


def test_a_set_without_judged_pools_says_so():
    """Measures on source chunks alone punish better retrievers."""
    unjudged = report(relevant_per_query=None, completeness=None)

    assert "relevance is known for the source chunks only" in generation_text(unjudged)


@pytest.mark.parametrize(
    ("n", "words"),
    [(5, "too few"), (30, "sanity check"), (150, "before deployment"), (400, "compare variants")],
)
def test_the_sample_size_is_put_into_decisions(n, words):
    """A number of queries says nothing to who does not know statistics."""
    assert words in size_advice(n)


def test_a_difference_beyond_the_scale_is_not_asked_for():
    """nDCG ends at 1; no two retrievers differ by more."""
    assert "no difference in nDCG@10 can be told apart" in size_advice(2)
    assert "two retrievers must differ by 0." in size_advice(30)


def test_the_shortfall_names_every_reason():
    """The next step depends on what stopped the candidates."""
    told = shortfall(report())

    assert told.startswith("6 of 8 queries")
    assert "copied 3, deictic 1" in told


def test_a_full_set_falls_short_of_nothing():
    """No reason is given where none is needed."""
    assert shortfall(report(n_accepted=8)) == ""


def test_unknown_cost_is_not_free():
    """A price nobody knows is never 0."""
    told = spent_line(Spent(calls=12, prompt_tokens=1000, completion_tokens=50), 6)

    assert told == "spent in all: 12 calls (2.0 an accepted query), 1,000 + 50 tokens, cost unknown"


def test_no_name_breaks_out_of_the_header_of_the_card():
    """A dataset hub reads the header; a name with a line feed could add a licence."""
    name = "set\n---\nlicense: mit"

    card = render_card(Manifest(name=name, licence="CC-BY-4.0"), report(), ["en"], 47)

    header = card.split("\n---\n")[0].splitlines()
    assert header[1] == 'pretty_name: "set\\n---\\nlicense: mit"'
    assert 'license: "CC-BY-4.0"' in header


def test_the_card_shows_corpus_text_as_text():
    """Names come from files; they must not become links or markup."""
    made = Manifest(name="<b>x</b> [a](http://b)", made_from={"model": "`m`"})

    body = render_card(made, report(), ["en"], 47).split("\n---\n", 1)[1]

    assert "<b>" not in body
    assert "[a](" not in body


def test_the_card_tells_counts_funnel_and_limits():
    """Who gets the set without its maker has nothing else."""
    card = render_card(Manifest(name="x"), report(), ["en"], 47)

    assert "6 queries over 3 documents in 9 chunks, 47 graded pairs" in card
    assert "## Funnel" in card
    assert "## Limits" in card


def test_the_card_counts_what_people_brought_and_tells_what_they_found():
    """Who reads the card judges the set as it is, not as it was when it was made."""
    audit = ReviewAudit(n=10, n_right=9, precision=0.9, low=0.6, high=0.98, reviewers=("Ann",))
    made = Manifest(name="x", audit=audit)

    card = render_card(made, report(), ["en"], 47, {"synthetic": 5, "human": 3, "log": 1})

    assert "9 queries (3 by people, 1 of a log, 5 generated) over 3 documents" in card
    assert "9 of 10 right as they were" in card
    assert "sample size: 9 queries" in card
    assert "are of the 6 generated queries, as they were made" in card
