import pytest

from ragforge.stages.ground.lexical import LexicalGrounder

PASSAGES = {
    "c1": "It is known. A restocking fee is a charge of ten percent for opened furniture.",
    "c2": "Shipping costs 5 euros. Orders above 50 euros ship free.",
}


@pytest.fixture
def ground(exchange, wait):
    """Check an answer by its words."""

    def go(answer, passages=PASSAGES):
        return wait(LexicalGrounder().judge(exchange(answer, passages)))

    return go


@pytest.mark.parametrize(
    ("sentence", "chunk_ids"),
    [
        ("The restocking fee is a charge of ten percent.", ("c1",)),
        ("Shipping costs 5 euros.", ("c2",)),
        ("Shipping costs 7 euros.", ()),
        ("Whales sing beautifully at night.", ()),
    ],
)
def test_a_sentence_is_supported_by_a_chunk_that_holds_its_words(ground, sentence, chunk_ids):
    """It is a floor that a judge must be shown to beat; numbers must agree all the same."""
    [claim] = ground(sentence).claims

    assert (claim.text, claim.chunk_ids) == (sentence, chunk_ids)


def test_a_doubtful_mark_is_no_number_of_the_sentence(ground):
    """The baseline would look for the number of the mark in the passages."""
    assert ground("Shipping costs 5 euros[2].").faithfulness == 1.0


def test_the_quote_is_the_nearest_sentence(ground):
    """The first sentence of the chunk says nothing of it."""
    [claim] = ground("The restocking fee is a charge of ten percent.").claims

    assert claim.quote == "A restocking fee is a charge of ten percent for opened furniture."


def test_the_record_says_that_it_is_a_baseline(ground):
    """Shared words must not be taken for a judge's finding."""
    assert ground("Shipping costs 5 euros.").provenance.kind == "baseline"


def test_a_question_is_no_claim(ground):
    """An offer of further help is not a hallucination."""
    assert ground("Do you want further help?").rule == "nothing claimed"
