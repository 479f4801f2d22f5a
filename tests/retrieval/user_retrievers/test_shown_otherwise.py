# ruff: noqa: RUF001 -- signs of one script look like those of another; these are meant.

"""Tests of hits with the id of a chunk whose text a service shows in another way."""

import re

import pytest

from ragforge.corpus.file_text_locator import FileTextLocator
from ragforge.corpus.file_texts import file_texts
from ragforge.records import Chunk
from ragforge.retrieval.corpus_documents import CorpusDocuments
from ragforge.retrieval.retrieved_texts import RetrievedTexts
from ragforge.retrieval.user_retrievers import ResultReader

TEXT = """# Reset of the Acme® unit

1. Open the lid of the box for Müller valves.
2. Pour in 1,250 ml of water, as https://unit.example/water says.
3. Wait for 31 minutes. It never takes longer.

- [x] Tested at the works
- [ ] Tested at home

```sh
resetunit --now
```

A valve costs 40 €, its plate is 20 × 30 mm, and its dial reads 2×10⁵ Pa.
"""
GERMAN = "Die Straße ist 1.250 m lang und kostet 12,50 € Maut; Größere Änderungen meldet das Amt."
RUSSIAN = "Ещё в 1998 году завод выпустил 12 000 машин; самолёт весит 3,5 т. Всё описано ниже."
TURKISH = "İstanbul ofisi saat dokuzda açılır; kırmızı ışık yanıyorsa kapıyı açmayın."
ARABIC = "تبقى القوارير صالحة لمدة 6 ساعات في درجة حرارة الغرفة بعد فتح العلبة."


def without_list_numbers(text):
    return re.sub(r"^\d+\. ", "", text, flags=re.MULTILINE)


def without_fences(text):
    return text.replace("```sh\n", "").replace("```", "")


KEPT = {
    "no list numbers": without_list_numbers(TEXT),
    "no list numbers, in one line": " ".join(without_list_numbers(TEXT).split()),
    "a footnote": TEXT.replace("minutes.", "minutes.[1]"),
    "a footnote behind a word": TEXT.replace("minutes.", "minutes [1, 2]."),
    "a raised footnote": TEXT.replace("minutes.", "minutes.¹"),
    "a footnote in a tag": TEXT.replace("minutes.", "minutes<sup>1</sup>."),
    "a footnote in a link": TEXT.replace("minutes.", 'minutes.<sup><a href="#n1">[1]</a></sup>'),
    "a power in a tag": TEXT.replace("⁵", "<sup>5</sup>"),
    "no group of digits": TEXT.replace("1,250", "1250"),
    "code without its language": TEXT.replace("```sh", "```"),
    "code as text": without_fences(TEXT),
    "no tick boxes": re.sub(r"^- \[[ x]\] ", "- ", TEXT, flags=re.MULTILINE),
    "tick boxes as signs": TEXT.replace("[x]", "☑").replace("[ ]", "☐"),
    "tick boxes as signs, without bullets": TEXT.replace("- [x]", "☑").replace("- [ ]", "☐"),
    "an umlaut in two letters": TEXT.replace("ü", "ue"),
    "no accents": TEXT.replace("ü", "u"),
    "cut, as told in brackets": f"{TEXT[:200]} [truncated]",
    "cut, as told in other brackets": f"{TEXT[:200]} (text truncated)",
    "cut, with points apart": TEXT.replace("of the box for Müller", ". . ."),
    "a letter for a sign": TEXT.replace("×", "x"),
    "a currency by its code": TEXT.replace("€", "EUR"),
    "rights in letters": TEXT.replace("®", "(R)"),
    "no address": TEXT.replace("https://unit.example/water", ""),
    "line ends of JSON": TEXT.replace("\n", "\\n"),
    "several at once": without_fences(without_list_numbers(TEXT))
    .replace("ü", "ue")
    .replace("1,250", "1250")
    .replace("€", "EUR"),
}
CHANGES = {
    "another number": TEXT.replace("31 minutes", "41 minutes"),
    "another number in groups": TEXT.replace("1,250", "1520"),
    "a longer number": TEXT.replace("1,250", "12500"),
    "a smaller number": TEXT.replace("1,250", "1.25"),
    "no number": TEXT.replace("31 minutes", "minutes"),
    "another power": TEXT.replace("⁵", "<sup>6</sup>"),
    "a power as a number": TEXT.replace("⁵", "7"),
    "another currency": TEXT.replace("40 €", "$40"),
    "another currency by its code": TEXT.replace("€", "USD"),
    "another tick": TEXT.replace("[ ]", "[x]"),
    "another tick as a sign": TEXT.replace("[x]", "☑").replace("[ ]", "☑"),
    "another address": TEXT.replace("unit.example/water", "unit.example/oil"),
    "another language of code": TEXT.replace("```sh", "```bash"),
    "another name": TEXT.replace("Müller", "Möller"),
    "a negation": TEXT.replace("It never takes", "It takes"),
    "a step dropped": re.sub(r"\nPour.*", "", without_list_numbers(TEXT)),
    "no list numbers, another number": without_list_numbers(TEXT).replace("31", "41"),
    "a footnote, another number": TEXT.replace("31 minutes.", "41 minutes.[1]"),
    "an umlaut in two letters, a negation": TEXT.replace("ü", "ue").replace("Open", "Do not open"),
    "cut, another number": f"{TEXT[:200].replace('31', '41')} [truncated]",
    "line ends of JSON, another word": TEXT.replace("\n", "\\n").replace("home", "sea"),
    "no address, another number": TEXT.replace("https://unit.example/water", "it").replace(
        "31", "41"
    ),
}
OTHER_LANGUAGES = {
    "a German number": (GERMAN, GERMAN.replace("1.250", "1250")),
    "German letters": (GERMAN, GERMAN.replace("ö", "oe").replace("Ä", "Ae").replace("ß", "ss")),
    "no Russian points": (RUSSIAN, RUSSIAN.replace("ё", "е")),
    "a Russian number": (RUSSIAN, RUSSIAN.replace("12 000", "12000")),
    "Turkish capitals": (TURKISH, TURKISH.upper()),
    "Arabic digits": (ARABIC, ARABIC.replace("6", "٦")),
    "longer Arabic letters": (ARABIC, ARABIC.replace("تب", "تـب")),
}


def test_the_points_of_a_version_are_no_groups():
    """Version 1.250.3 is not 1250.3."""
    original = "The pump runs with version 1.250.3 of its software, and with no other."

    assert n_misnamed(original, original.replace("1.250.3", "1250.3")) == 1


def test_pictures_may_be_left_out_but_not_be_others():
    """Another mark in a table says something else."""
    original = "Fast mode ✅ is for a pump with two valves, and never for one with three."

    assert n_misnamed(original, original.replace("✅ ", "")) == 0
    assert n_misnamed(original, original.replace("✅", "❌")) == 1


def n_misnamed(original, text):
    chunks = [
        Chunk(chunk_id="it", doc_id="it.md", text=original),
        Chunk(chunk_id="ferry", doc_id="ferry.md", text="The ferry leaves from the pier at six."),
    ]
    taken = RetrievedTexts(CorpusDocuments(chunks, file_texts, FileTextLocator))
    ResultReader("it", chunks, texts=taken).read([{"id": "it", "text": text}], "q", 10)
    return taken.n_misnamed


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_a_chunk_that_is_shown_otherwise_is_itself(text):
    """Every hit would be a hole in people's labels of chunks."""
    assert text != TEXT
    assert n_misnamed(TEXT, text) == 0


@pytest.mark.parametrize("name", [name for name in KEPT if not name.startswith("cut")])
def test_a_text_that_shows_more_than_the_chunk_is_the_chunk_too(name):
    """The chunks of a set may be plain, and the texts of the service have the marks."""
    assert n_misnamed(KEPT[name], TEXT) == 0


@pytest.mark.parametrize("text", CHANGES.values(), ids=CHANGES)
def test_a_chunk_that_says_something_else_is_another_text(text):
    """A stale index would pass a gate."""
    assert text != TEXT
    assert n_misnamed(TEXT, text) == 1


@pytest.mark.parametrize(("original", "text"), OTHER_LANGUAGES.values(), ids=OTHER_LANGUAGES)
def test_a_chunk_in_other_letters_is_itself(original, text):
    """Indexes fold letters and digits."""
    assert n_misnamed(original, text) == 0
