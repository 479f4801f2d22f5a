import sys
import unicodedata

import pytest

from ragforge.stages.visible_text import locate_shown, visible, visible_text


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937",
        "\u0d28\u0d4d\u200d\u0d2e",
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    ],
    ids=["Persian", "Hindi", "Malayalam", "emoji"],
)
def test_a_joiner_stays_where_the_script_needs_it(text):
    """Without it the word is another one, and the model would be asked about that."""
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u0645\u200c\u200d\u200c\u0646", "\u0645\u0646"),
        ("\u2764\ufe0f\u200d\U0001f525", "\u2764\u200d\U0001f525"),
        ("a\ufe0f\u200d\ufe0f\u200cb", "ab"),
        ("\u0645\u200c", "\u0645"),
    ],
)
def test_a_row_of_joiners_goes(text, shown):
    """Letters can be spelled in them, and a model reads what no person sees."""
    assert visible(text) == shown


def test_no_character_without_a_glyph_is_left():
    """Each new one of Unicode is a new place to hide words."""
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    formats = [it for it in every if unicodedata.category(it) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]

    left = {it for it in formats if it in visible(f"a{it}b")}

    # Number signs of Arabic, Syriac and Kaithi and joiners of hieroglyphs have looks of their own.
    seen = {it for it in left if it not in "\t\n"}
    assert seen == set(
        "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    ) | {it for it in seen if "\U00013430" <= it <= "\U0001343f"}


@pytest.mark.parametrize(
    ("quote", "text", "stands"),
    [
        ("rooms with oak", "a \u202brooms\u202c with oak b", "rooms\u202c with oak"),
        ("ten percent", "a fee of ten\x07 percent", "ten\x07 percent"),
        ("ten percent", "a fee of ten\n  percent", "ten\n  percent"),
        ("ten percent", "a fee of ten\u2028per\xadcent", "ten\u2028per\xadcent"),
        ("ten\npercent", "a fee\u200b of ten\x0cpercent", "ten\x0cpercent"),
        ("cooperation", "co\xadop\u200ber\ufe0fation b", "co\xadop\u200ber\ufe0fation"),
        ("a b", "\U000e0067a\r\n\u2060b\U000e0067", "a\r\n\u2060b"),
    ],
)
def test_a_quote_is_found_in_what_the_model_did_not_get_to_see(quote, text, stands):
    """The model copies faithfully what it was shown; that must count as verbatim."""
    at = locate_shown(quote, text)

    assert at is not None
    assert text[at.start : at.end] == stands


def test_what_is_shown_knows_where_it_stands():
    """What a model quotes must be found in the text that holds more than it saw."""
    shown = visible_text("a\u200bb\r\nc")

    assert shown.text == visible("a\u200bb\r\nc") == "ab\nc"
    assert list(shown.places) == [0, 2, 4, 5]
