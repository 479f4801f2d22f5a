import pytest

from ragforge.corpus.quote_locations import Location
from ragforge.stages.quotes import find_proof, has_content, is_evidence, proves


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("40 euros", "The Alpha costs 40 euros."),
        ("Alpha costs 40 euros.", "The  Alpha\ncosts 40 euros."),
        ("the  alpha", "Buy the alpha now."),
        ("40", "It costs 40."),
        ("1998", "In 1998 the firm moved."),
        ("40 euros", "It takes 30-40 euros."),
        ("C", "Vitamin C is sold."),
        ("C++", "It is C++ code."),
        ("No", "No, it does not ship."),
        ("No.", "No. It does not ship."),
        ("It is.", "Is it? It is. Really."),
        ("not", "not"),
        ("\u221e", " \u221e\n"),
        ("e", "e"),
        ("art", "A party of art."),
        ("40\u6b27\u5143", "\u4ef7\u683c\u662f40\u6b27\u5143\u3002"),
        ("\u4ef7\u683c", "\u4ef7\u683c\u662f40\u6b27\u5143\u3002"),
        ("\uc11c\uc6b8", "\uc11c\uc6b8\uc740 \ud06c\ub2e4."),
        ("Alpha", "The Al\u200bpha costs more."),
        ("7 kg", "It weighs 7\u00a0kg."),
    ],
)
def test_whole_words_with_content_prove_something(quote: str, text: str):
    """What a judge copies in good faith must not cost a repair."""
    assert proves(quote, text)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        (".", "The Alpha costs 40 euros."),
        ("e", "The Alpha costs 40 euros."),
        ("e", "Roma e Milano."),
        ("T", "The Alpha costs 40 euros."),
        ("The", "The Alpha costs 40 euros."),
        ("It", "It ships in a week."),
        ("It is", "It is heavy."),
        ("not", "It is not heavy."),
        ("So", "So, it is heavy."),
        ("lph", "The Alpha costs 40 euros."),
        ("Alp", "The Alpha costs 40 euros."),
        ("pha costs", "The Al\u200bpha costs 40 euros."),
        ("7", "It weighs 7 kg."),
        ("7", "It weighs 7kg."),
        ("40", "It costs \u20ac40 now."),
        ("40", "It costs \u20ac 40 now."),
        ("40", "It costs 40% more."),
        ("40", "It costs 1.40 here."),
        ("40", "It costs 40.5 here."),
        ("40", "It costs 140 here."),
        ("40 degrees", "It is -40 degrees."),
        ("40 euros", "It costs 1,40 euros."),
        ("retries", "Set max_retries to 3."),
        ("\u4ef7", "\u4ef7\u683c\u662f40\u6b27\u5143\u3002"),
        ("+", "Press + or -."),
        (".", "."),
        ("", "The Alpha costs 40 euros."),
        ("Beta", "The Alpha costs 40 euros."),
    ],
)
def test_parts_of_words_and_empty_words_prove_nothing(quote: str, text: str):
    """A judge that quotes a full stop has shown nothing, whatever it says."""
    assert not proves(quote, text)


def test_a_proof_is_told_as_it_stands_in_the_original():
    """What goes into a record must be the text's own words, hidden characters and all."""
    assert find_proof("Alpha  costs", "An Alphabet, the Al\u200bpha costs") == Location(17, 29)


@pytest.mark.parametrize("quote", ["C", "5", "1 2 3"])
def test_short_answers_are_quoted_whole_though_they_are_no_evidence_of_relevance(quote: str):
    """A letter or digit may be all that an answer says; a passage says more."""
    assert find_proof(quote, quote) == Location(0, len(quote))
    assert find_proof(quote, quote, is_evidence) is None


@pytest.mark.parametrize("text", ["of the", "e", "\u4ef7", "...", ""])
def test_function_words_and_single_letters_are_no_content(text: str):
    """They stand in every text."""
    assert not has_content(text)
