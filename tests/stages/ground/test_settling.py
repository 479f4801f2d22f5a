import pytest

from ragforge.corpus.quote_locations import Location
from ragforge.records import Citation, Provenance
from ragforge.stages.ground.citations import read_marks
from ragforge.stages.ground.settling import (
    PlacedClaim,
    contradiction,
    counted_once,
    lay_out,
    settle,
    settled_by_rule,
)

BY = Provenance(kind="llm", model="m")
PASSAGES = {
    "c1": "Blue whales eat krill.",
    "c2": "Oak is a tree.",
    "c3": "Whales weigh 150 tonnes.",
}


@pytest.fixture
def settled(exchange):
    """Settle an answer of which some words, each with its supporting places, are the claims."""

    def go(answer, claims, passages=PASSAGES):
        case = exchange(answer, passages)
        cited = read_marks(answer, [passage.chunk_id for passage in case.passages])
        checked = [_checked(cited.text, words, places) for words, places in claims.items()]
        return settle(case, cited, checked, ("Hello!",), BY)

    def _checked(text, words, places):
        at = text.index(words)
        return PlacedClaim((Location(at, at + len(words)),), places, "quote" if places else "")

    return go


def statuses(found):
    return [(one.chunk_id, one.status) for one in found.citations]


@pytest.mark.parametrize(
    ("places", "faithfulness", "is_grounded"),
    [(((0,), (2,)), 1.0, True), (((0,), ()), 0.5, False), (((), ()), 0.0, False)],
)
def test_faithfulness_is_the_share_of_supported_claims(settled, places, faithfulness, is_grounded):
    """It is counted here; a model asked for a share gives a number that means nothing."""
    claims = dict(zip(["They eat krill.", "They weigh 150 tonnes."], places, strict=True))

    found = settled("They eat krill. They weigh 150 tonnes.", claims)

    assert (found.faithfulness, found.is_grounded) == (faithfulness, is_grounded)
    assert (found.citations, found.citation_precision, found.citation_recall) == ((), None, None)


def test_no_claims_are_no_faithfulness(settled):
    """An empty list read as 1.0 is how other tools call an evasive answer perfect."""
    found = settled("Hello! [7]", {})

    assert (found.faithfulness, found.is_grounded, found.rule) == (None, None, "nothing claimed")
    assert found.unclaimed == ("Hello!",)
    assert statuses(found) == [("7", "not in the context")]
    assert (found.citation_precision, found.citation_recall) == (0.0, None)


def test_a_claim_names_all_chunks_that_say_it(settled):
    """The quote is of the first; a citation of any of them is right."""
    [claim] = settled("They eat krill.", {"They eat krill.": (2, 0)}).claims

    assert (claim.text, claim.chunk_ids) == ("They eat krill.", ("c3", "c1"))


@pytest.mark.parametrize(
    ("answer", "places", "expected", "precision", "recall"),
    [
        ("They eat krill [c1].", (0,), [("c1", "supports")], 1.0, 1.0),
        ("They eat krill [c2].", (0,), [("c2", "does not support")], 0.0, 0.0),
        ("They eat krill [c2].", (), [("c2", "does not support")], 0.0, 0.0),
        ("They eat krill [c9].", (0,), [("c9", "not in the context")], 0.0, 0.0),
        (
            "They eat krill [c1][c2].",
            (0,),
            [("c1", "supports"), ("c2", "does not support")],
            0.5,
            1.0,
        ),
        ("They eat krill [c1][c1].", (0,), [("c1", "supports")], 1.0, 1.0),
        ("They eat krill [1], I say [c1].", (0,), [("c1", "supports")], 1.0, 1.0),
        ("They eat krill.\nSources: c1, c2", (0,), None, 0.5, 1.0),
    ],
)
def test_a_chunk_is_cited_rightly_where_it_says_a_claim_of_the_sentence(
    settled, answer, places, expected, precision, recall
):
    """That the chunk was retrieved, or is true, is not what a citation says."""
    found = settled(answer, {"They eat krill": places})

    assert expected is None or statuses(found) == expected
    assert (found.citation_precision, found.citation_recall) == (precision, recall)


def test_each_sentence_needs_citations_of_its_own(settled):
    """One good citation at the end does not bear out all that stands before it."""
    found = settled(
        "They eat krill. They weigh 150 tonnes [c3].",
        {"They eat krill.": (0,), "They weigh 150 tonnes.": (2,)},
    )

    assert found.citations == (
        Citation(sentence="They weigh 150 tonnes.", chunk_id="c3", status="supports"),
    )
    assert (found.citation_precision, found.citation_recall) == (1.0, 0.5)


def test_every_claim_of_a_sentence_needs_its_support_cited(settled):
    """A sentence of which a half is invented is not borne out."""
    found = settled("They eat krill and sing [c1].", {"They eat krill": (0,), "sing": ()})

    assert statuses(found) == [("c1", "supports")]
    assert (found.faithfulness, found.citation_recall) == (0.5, 0.0)


def test_a_citation_for_a_sentence_that_claims_nothing_is_not_counted(settled):
    """There is nothing that the chunk could support, or fail to."""
    found = settled("Here it is [c2]. They eat krill [c1].", {"They eat krill.": (0,)})

    assert statuses(found) == [("c1", "supports")]


def test_a_chunk_with_the_same_text_supports_as_well(settled):
    """The judge quotes one of two copies, and the system cited the other."""
    passages = {"c1": "Blue whales eat krill.", "c2": "Blue  whales eat krill."}

    found = settled("They eat krill [c2].", {"They eat krill": (0,)}, passages)

    assert statuses(found) == [("c2", "supports")]


@pytest.mark.parametrize(
    ("answer", "passages", "rule"),
    [
        ("", PASSAGES, "nothing said"),
        (" \n…", PASSAGES, "nothing said"),
        ("[c1]", PASSAGES, "nothing said"),
        ("I don't know.", PASSAGES, "abstains"),
        ("Das weiß ich leider nicht.", PASSAGES, "abstains"),
        ("I don't know.", {}, "abstains"),
        ("They eat krill.", {}, "no context"),
        ("They eat krill.", {"c1": " "}, "no context"),
    ],
)
def test_a_rule_says_where_there_is_nothing_to_check(exchange, answer, passages, rule):
    """These cost no call, and none of them is an answer that is faithful."""
    case = exchange(answer, passages)

    found = settled_by_rule(case, read_marks(answer, list(passages)))

    assert (found.rule, found.faithfulness, found.is_grounded) == (rule, None, None)
    assert found.provenance.kind == "rule"


def test_citations_without_any_context_lead_nowhere(exchange):
    """A system that retrieved nothing and cites all the same has made its sources up."""
    answer = "They eat krill [1]."

    found = settled_by_rule(exchange(answer), read_marks(answer, []))

    assert statuses(found) == [("1", "not in the context")]
    assert found.citation_precision == 0.0


def test_an_answer_with_claims_and_context_is_for_a_judge(exchange):
    """A rule must not hide what has to be read."""
    answer = "They eat krill."

    assert settled_by_rule(exchange(answer, PASSAGES), read_marks(answer, list(PASSAGES))) is None


TEXT = "The Alpha costs 40 euros and ships in a week. Alpha costs little."


def at(*parts):
    return [
        Location(start, start + len(part))
        for part in parts
        for start in range(len(TEXT))
        if TEXT.startswith(part, start)
    ]


@pytest.fixture
def counted():
    """Count claims, each with its places; return their words."""

    def go(claims):
        checked = [PlacedClaim(tuple(at(part)), places, "") for part, places in claims.items()]
        return [
            [TEXT[span.start : span.end] for span in claim.spans]
            for claim in counted_once(checked, TEXT)
        ]

    return go


@pytest.mark.parametrize("places", [(), (0,)])
def test_a_claim_within_another_does_not_count(counted, places):
    """Slices of one supported sentence would outvote any invention."""
    claims = ["40 euros", "The Alpha costs 40 euros", "costs 40 euros"]

    assert counted(dict.fromkeys(claims, places)) == [["The Alpha costs 40 euros"]]


def test_claims_that_overlap_count_as_one(counted):
    """Windows that slide over a sentence are slices of it, too."""
    claims = {"Alpha costs 40": (0,), "40 euros and": (1,), "and ships in a week": (0,)}

    assert counted(claims) == [["Alpha costs 40 euros and"], ["and ships in a week"]]


def test_a_claim_that_also_stands_by_itself_counts(counted):
    """Its other place is what it claims."""
    claims = {"The Alpha costs 40 euros": (0,), "Alpha costs": ()}

    assert counted(claims) == [["The Alpha costs 40 euros"], ["Alpha costs"]]


@pytest.mark.parametrize(
    ("one", "other", "contradicts"),
    [
        ("The Alpha costs 40 euros", "40 euros", True),
        ("Alpha costs 40 euros", "40 euros and ships", True),
        ("Alpha costs 40 euros", "euros and ships in a week", False),
        ("Alpha costs 40 euros and", "and ships", False),
        ("The Alpha costs 40 euros", "Alpha costs", False),
    ],
)
def test_the_same_words_cannot_be_supported_and_not(one, other, contradicts):
    """Whichever were counted, the judge has said the opposite."""
    layout = lay_out([at(one), at(other)], TEXT)

    assert (contradiction(layout, [True, False], TEXT) is not None) == contradicts
    assert contradiction(layout, [True, True], TEXT) is None
