import re
import subprocess
import sys

import pytest

from ragforge.errors import DataError
from ragforge.stages.words import (
    NAMES,
    all_entries,
    content_stems,
    entries,
    languages,
    numbers,
    read_language,
    sentences,
    words,
)


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a language file."""

    def write(text):
        path = tmp_path / "xx.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("language", languages())
def test_every_phrase_of_a_language_is_a_regular_expression(language):
    """A slip in one file would stop whoever meets a text in that language."""
    listed = [name for name in NAMES if entries(language, name)]

    assert listed
    assert all(re.compile(entry) for name in listed for entry in entries(language, name))


def test_a_phrase_takes_the_entries_of_a_list():
    """Nouns are written once, and stand in many phrases."""
    phrases = entries("de", "pointing.away")

    assert r"\bdiese[rsmn]? (?:\w+ )?(?:Text(?:es|s|stelle" in "".join(phrases)


def test_words_are_parted_by_blanks_and_brackets_capture_nothing(file):
    """Who adds words needs no regular expressions, and who adds phrases only simple ones."""
    path = file(
        '[absence]\nwords = """\nno\nnot"""\nphrases = [\'no (a|b\\()? {x}\']\n'
        "[absence.lists]\nx = ['one', 'two?']\n"
    )

    assert read_language(path) == {
        "absence.words": ("no", "not"),
        "absence.phrases": ("no (?:a|b\\()? (?:one|two?)",),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[absense]\n", r"xx\.toml: absense: expected one of words, questions"),
        ("[absence]\nword = 'no'\n", r"xx\.toml: \[absence\]: word: expected one of words, beg"),
        ("[absence]\nwords = 3\n", r"xx\.toml: \[absence\] words: expected words in one text or a"),
        ("absence = 3\n", r"xx\.toml: absence: expected a section, got 3"),
        ("[absence]\nphrases = ['{x}']\n", r"\[absence\] phrases: '\{x\}': .* none, got \{x\}"),
        ("[absence\n", r"xx\.toml: is not TOML"),
    ],
)
def test_a_slip_in_a_file_is_named(file, text, message):
    """A list under a wrong name would be looked for by no rule."""
    with pytest.raises(DataError, match=message):
        read_language(file(text))


def test_a_language_without_a_file_has_no_entries():
    """Languages come from settings: a path is none."""
    assert entries("xx", "absence.words") == ()
    assert entries("../languages/en", "absence.words") == ()


def test_words_of_all_languages_begin_with_english_and_come_once():
    """What is reported must not depend on the order of a folder."""
    words = all_entries("absence.words")

    assert words[:2] == ("no", "not")
    assert len(words) == len(set(words))


@pytest.mark.slow
def test_imports_read_no_language():
    """Every command would pay for lists that few need."""
    code = (
        "import ragforge.stages.generate.gates.checking, ragforge.stages.judge.llm\n"
        "from ragforge.stages.words import languages, _language\n"
        "print(languages.cache_info().misses + _language.cache_info().misses)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout == "0\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don\u2019t panic, it's v1.2.", ["don't", "panic", "it's", "v1.2"]),
        ("\ufb01le \uff21\uff22\uff23", ["file", "abc"]),
        ("蓝鲸eat磷虾", ["蓝", "鲸", "eat", "磷", "虾"]),
        ("snake_case", ["snake", "case"]),
        ("", []),
    ],
)
def test_words_are_folded(text, expected):
    """Baselines compare words, not the way they were typed."""
    assert words(text) == expected


def test_stems_leave_out_stop_words_and_endings():
    """`How are retries configured?` and `configure a retry` are about the same."""
    assert content_stems("How are the settings configured?") == ["sett", "configur"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,000 users in 2023.", {"1000", "2023"}),
        ("3.5 or 3,5", {"3.5", "3,5"}),
        ("v1.2.", {"1.2"}),
        ("none", set()),
    ],
)
def test_numbers_are_found_however_they_are_separated(text, expected):
    """A number that no chunk holds is the clearest sign of an invention."""
    assert numbers(text) == expected


def test_sentences_are_stripped_and_never_empty():
    """They become evidence."""
    assert sentences(" One.  Two!\n\n三。 Four ") == ["One.", "Two!", "三。", "Four"]
