import pytest

from ragforge.retrieval.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The cat, the CAT!", ["the", "cat", "the", "cat"]),
        ("set max_tokens=5", ["set", "max", "tokens", "5"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("\uff26\uff35\uff2c\uff2c ﬁle", ["full", "file"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("北京大学", ["北", "京", "大", "学", "北京", "京大", "大学"]),
        ("用Python写", ["用", "python", "写"]),
        ("ラーメン", ["ラ", "ー", "メ", "ン", "ラー", "ーメ", "メン"]),
        ("서울에", ["서", "울", "에", "서울", "울에"]),
        ("  \n—…", []),
    ],
)
def test_text_becomes_terms_in_any_script(text, terms):
    """A query must meet its chunk whatever the case, width or script either is written in."""
    assert tokenize(text) == terms


@pytest.mark.parametrize("text", ["Snake_case, kebab-case!", "a\x00b\tc\n", "", "3.14 'quoted'"])
def test_a_word_beyond_ascii_changes_nothing_in_the_others(text):
    """Text of ASCII alone is split in fewer steps, which must give the same terms."""
    assert [*tokenize(text), "é"] == tokenize(f"{text} é")
