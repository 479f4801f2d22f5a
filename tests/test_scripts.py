import pytest

from ragforge.scripts import (
    count_syllabic,
    count_unspaced,
    has_syllabic,
    has_unspaced,
    reads_as_words,
    without_syllabic,
)


@pytest.mark.parametrize(
    ("text", "n_unspaced", "n_syllabic"),
    [
        ("plain words", 0, 0),
        ("größer, другой", 0, 0),
        ("蜜蝋 wax", 2, 2),
        ("ขี้ผึ้ง", 7, 7),
        ("ပျား", 4, 4),
        ("밀랍", 0, 2),
        ("𠮷野", 2, 2),
        ("人々", 2, 2),
    ],
)
def test_characters_of_scripts_without_blanks_are_told_apart(text, n_unspaced, n_syllabic):
    """Korean is written with blanks, but one of its characters says a syllable all the same."""
    assert count_unspaced(text) == n_unspaced
    assert has_unspaced(text) == (n_unspaced > 0)
    assert count_syllabic(text) == n_syllabic
    assert has_syllabic(text) == (n_syllabic > 0)


def test_a_text_without_them_keeps_all_others():
    assert without_syllabic("밀랍 wax 蜜") == "   wax  "
    assert without_syllabic("wax") == "wax"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a passage", True),
        ("passage-7", False),
        ("第3号许可证的费用为121元整", True),
        ("費用は年に一度だけ払います", True),
        ("ใบอนุญาตตกปลาราคาหนึ่งร้อยบาท", True),
        ("许可证-7", False),
        ("许可证办理费用说明.md#3", False),
        ("说明/许可证办理费用/3", False),
        ("许可证办理费用以及渔船停泊费用说明见附件a.pdf", True),
    ],
)
def test_a_sentence_is_told_from_an_id(text, expected):
    """Retrievers return texts and ids as bare strings, and Chinese texts were taken for ids."""
    assert reads_as_words(text) == expected
