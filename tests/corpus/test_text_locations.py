"""Placing retrieved texts: what a splitter, a framework or a model did must not move them."""

import unicodedata

import numpy as np
import numpy.typing as npt
import pytest

from ragforge.corpus.text_locations import (
    MOST_PLACES,
    TextLocator,
    _chain,
    _GramIndex,
    documents_of,
)
from ragforge.records import Chunk, Span

RETURNS = (
    "# Returns\n\nSend goods back within *thirty* days of delivery.\n\n"
    "## Costs\n\nWe pay the postage of a return when the goods arrived damaged; "
    "otherwise the buyer pays it."
)
SHIPPING = (
    "# Shipping\n\nParcels leave the warehouse on the day of the order, if it came before noon.\n\n"
    "## Abroad\n\nParcels to islands take five days longer than parcels to the mainland."
)


@pytest.fixture
def locator() -> TextLocator:
    return TextLocator({"returns.md": RETURNS, "shipping.md": SHIPPING})


def _of(text: str) -> npt.NDArray[np.uint64]:
    """Return a number a letter, as the hashes of k-grams are."""
    return np.array([ord(char) for char in text], np.uint64)


def _text(span: Span) -> str:
    return {"returns.md": RETURNS, "shipping.md": SHIPPING}[span.doc_id][span.start : span.end]


def _place(locator: TextLocator, text: str, **said: object) -> str | None:
    location = locator.locate(text, **said)  # type: ignore[arg-type]
    return None if location is None else _text(location.spans[0])


def test_a_slice_stands_at_its_offsets(locator: TextLocator) -> None:
    """Evidence is compared by offsets: one character off would cut a quote."""
    location = locator.locate(SHIPPING[12:88])

    assert location is not None
    assert location.spans == (Span(doc_id="shipping.md", start=12, end=88),)
    assert location.likeness == 1.0


def test_marks_that_a_splitter_drops_do_not_move_a_text(locator: TextLocator) -> None:
    """Markdown splitters strip headings and stars."""
    text = "Returns Send goods back within thirty days of delivery."

    assert _place(locator, text) == RETURNS[2:60]


def test_marks_at_the_ends_belong_to_the_place(locator: TextLocator) -> None:
    """A chunk that begins with a heading's mark holds it."""
    assert _place(locator, "## Costs\n\nWe pay the postage of a return") == (
        "## Costs\n\nWe pay the postage of a return"
    )


def test_a_title_in_front_is_no_part_of_the_place(locator: TextLocator) -> None:
    """Retrievers put titles and summaries before a chunk; the place is the chunk's."""
    text = f"Shop handbook > Shipping > Abroad\n\n{SHIPPING[101:]}"
    location = locator.locate(text)

    assert location is not None
    assert _text(location.spans[0]).endswith("parcels to the mainland.")
    assert 0.6 < location.likeness < 1


def test_line_ends_and_blanks_do_not_move_a_text(locator: TextLocator) -> None:
    """Windows files, and frameworks that wrap lines anew."""
    text = SHIPPING[12:88].replace(" ", "\r\n")

    assert _place(locator, text) == SHIPPING[12:88]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_unicode_forms_do_not_move_a_text(form: str) -> None:
    """One file system gives é as one code point, another as two."""
    text = "Das Café öffnet um neun; die ﬁnalen Bestellungen nehmen wir bis zwölf Uhr entgegen."
    locator = TextLocator({"cafe": text})
    location = locator.locate(unicodedata.normalize(form, text))  # type: ignore[arg-type]

    assert location is not None
    assert location.spans == (Span(doc_id="cafe", start=0, end=len(text)),)


@pytest.mark.parametrize(
    "text",
    [
        "東京の図書館は月曜日に休館します。火曜日から日曜日までは午前九時に開きます。",
        "ร้านค้าปิดทุกวันอาทิตย์และเปิดทุกวันจันทร์ถึงวันเสาร์เวลาเก้าโมงเช้า",
        "도서관은 월요일에 문을 닫고 화요일부터 일요일까지 아침 아홉 시에 엽니다.",
    ],
)
def test_scripts_without_blanks_are_placed(text: str) -> None:
    """Letters are compared, not words."""
    locator = TextLocator({"other": SHIPPING, "own": f"{text}\n\n{SHIPPING}"})
    location = locator.locate(text[5:30])

    assert location is not None
    assert location.spans[0].doc_id == "own"
    assert location.spans[0].start == 5


def test_the_document_that_is_named_has_it(locator: TextLocator) -> None:
    """Copies of a page stand in several versions; metadata tells which one was retrieved."""
    both = TextLocator({"v1": SHIPPING, "v2": SHIPPING})
    location = both.locate(SHIPPING[12:88], doc_ids=["v2"])

    assert location is not None
    assert location.spans == (Span(doc_id="v2", start=12, end=88),)


def test_a_wrong_name_does_not_hide_the_place(locator: TextLocator) -> None:
    """Names in metadata are often of files that were moved."""
    location = locator.locate(SHIPPING[12:88], doc_ids=["gone.md", "returns.md"])

    assert location is not None
    assert location.spans == (Span(doc_id="shipping.md", start=12, end=88),)


def test_text_of_several_places_is_ambiguous() -> None:
    """A place must not be guessed: it would decide which evidence is covered."""
    both = TextLocator({"v1": SHIPPING, "v2": SHIPPING})
    location = both.locate(SHIPPING[12:88])

    assert location is not None
    assert [span.doc_id for span in location.spans] == ["v1", "v2"]
    assert location.is_ambiguous


def test_an_offset_tells_places_apart() -> None:
    """Splitters that know where a piece begins say so."""
    text = f"{SHIPPING}\n\n{SHIPPING}"
    location = TextLocator({"d": text}).locate(SHIPPING[12:88], near=len(SHIPPING) + 14)

    assert location is not None
    assert location.spans == (Span(doc_id="d", start=len(SHIPPING) + 14, end=len(SHIPPING) + 90),)


def test_spelling_tells_places_of_the_same_letters_apart() -> None:
    """`a == b` and `a != b` have the same letters."""
    text = "if limit == total: stop_the_process()\n\nif limit != total: stop_the_process()"
    location = TextLocator({"d": text}).locate("if limit != total: stop_the_process()")

    assert location is not None
    assert [span.start for span in location.spans] == [39]


@pytest.mark.parametrize(
    ("there", "text"),
    [
        ("is set to -11 degrees", "is set to 11 degrees"),
        ("is set to 1.10 GB now", "is set to 110 GB now"),
        ("is set to x <= 12 now", "is set to x >= 12 now"),
        ("is written in C++ now", "is written in C now"),
    ],
)
def test_a_text_with_another_sign_is_only_like_its_place(there: str, text: str) -> None:
    """A stale index says otherwise than the documents do."""
    documents = {"a.md": f"The limit of it {there} for all.", "b.md": f"The limit of it {there}."}
    locator = TextLocator(documents)

    stale = locator.locate(f"The limit of it {text}", doc_ids=["a.md"])
    marked = locator.locate(f"*The limit of it* **{there}**", doc_ids=["a.md"])
    assert stale is not None
    assert marked is not None
    assert [span.doc_id for span in stale.spans] == ["a.md"]
    assert stale.likeness < 1
    assert (marked.spans, marked.likeness) == (stale.spans, 1)


def test_a_text_without_any_punctuation_stands_where_its_letters_do() -> None:
    """Some indexes take out all of it."""
    document = "By day, it is -11 degrees at most (or 1.5 less), if x <= 12."
    cleaned = "By day it is 11 degrees at most or 15 less if x 12"
    location = TextLocator({"a.md": document}).locate(cleaned)

    assert location is not None
    assert location.likeness == 1


def test_signs_tell_places_of_the_same_letters_apart() -> None:
    """Two versions of a page may differ in nothing else."""
    texts = {"v1": "- The limit is x >= 12 now.", "v2": "- The limit is x <= 12 now."}
    location = TextLocator(texts).locate("* The limit is x \u2264 12 now.")

    assert location is not None
    assert ([span.doc_id for span in location.spans], location.likeness) == (["v2"], 1)


def test_boilerplate_keeps_some_places() -> None:
    """A licence at the end of each of a thousand pages must not fill the memory."""
    licence = "Licensed under the terms that everybody agreed upon in the year of the flood."
    location = TextLocator({str(at): licence for at in range(200)}).locate(licence)

    assert location is not None
    assert len(location.spans) == MOST_PLACES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "…!?",
        "Nothing of the kind is written in any of these pages, whoever may look for it there.",
        "The postage is something the shop covers whenever an item reached the customer broken.",
    ],
)
def test_what_stands_nowhere_has_no_place(locator: TextLocator, text: str) -> None:
    """A text that a model wrote anew is judged as it is, and covers no evidence by offsets."""
    assert locator.locate(text) is None


def test_a_text_cut_in_a_character_is_placed(locator: TextLocator) -> None:
    """Token splitters cut characters of several bytes; what is left of one is a replacement."""
    assert _place(locator, f"\ufffd{SHIPPING[13:88]}\ufffd") == SHIPPING[13:88]


def test_a_lone_surrogate_does_no_harm(locator: TextLocator) -> None:
    """Texts come from services, with what their decoders left."""
    assert _place(locator, f"\ud800{SHIPPING[12:88]}") == SHIPPING[12:88]


def test_an_offset_tells_nothing_of_another_document() -> None:
    """Two versions differ by a line: the offset in the one is about that in the other."""
    both = TextLocator({"v1": f"Draft.\n\n{SHIPPING}", "v2": f"{SHIPPING}\n\n{SHIPPING}"})
    location = both.locate(SHIPPING[12:88], near=13)

    assert location is not None
    assert [(span.doc_id, span.start) for span in location.spans] == [("v1", 20), ("v2", 12)]


@pytest.mark.parametrize("near", [100_000, 900])
def test_an_offset_at_which_nothing_stands_tells_nothing(near: int) -> None:
    """Some count bytes, or the characters of a text that they stripped."""
    text = SHIPPING + 8 * "We ship. \n" + SHIPPING
    location = TextLocator({"d": text}).locate(SHIPPING[12:88], doc_ids=["d"], near=near)

    assert location is not None
    assert len(location.spans) == 2


def test_an_offset_tells_one_of_very_many_places() -> None:
    """Logs and tables repeat a line more often than places are kept."""
    line = "the connection was closed by the peer before the reply came\n"
    location = TextLocator({"log": line * 500}).locate(line, doc_ids=["log"], near=400 * len(line))

    assert location is not None
    assert [span.start for span in location.spans] == [400 * len(line)]


def test_spelling_does_not_pick_one_of_more_places_than_were_looked_at() -> None:
    """The one that is spelled alike may be a second one, further on."""
    documents = {str(at): "if limit == total: stop_the_process()" for at in range(400)}
    documents |= {each: "if limit != total: stop_the_process()" for each in ("100", "300")}
    location = TextLocator(documents).locate("if limit != total: stop_the_process()")

    assert location is not None
    assert location.is_ambiguous


def test_a_short_text_is_no_part_of_a_word() -> None:
    """A lone heading "API" does not stand in "rapid"."""
    locator = TextLocator({"d": "A rapid start.\n\n## API\n\nCalls.", "e": "A rapid end."})

    assert locator.locate("API", doc_ids=["e"]) is None
    assert (named := locator.locate("API", doc_ids=["d"])) is not None
    assert [span.start for span in named.spans] == [19]


def test_a_short_text_without_blanks_is_placed() -> None:
    """Words of some scripts have nothing between them."""
    location = TextLocator({"d": "東京の図書館は月曜日に休館します。"}).locate(
        "図書館", doc_ids=["d"]
    )

    assert location is not None
    assert [(span.start, span.end) for span in location.spans] == [(3, 6)]


ERRORS = [
    *("Timeout", "Connect", "Read", "Write", "Pool", "Network", "Close", "Proxy", "Decoding"),
    *("Unsupported", "Redirect", "Status", "Url", "Cookie", "Stream", "Content"),
]


def test_a_list_of_like_entries_is_no_place_of_another_part_of_it() -> None:
    """Letters count in their order: entries of a list share all but a word."""
    entries = [f"::: package.exceptions.{name}Error\n    :docstring:\n" for name in ERRORS]
    text = "\n".join(entries)
    start, end = text.index(entries[8]), text.index(entries[12])
    damaged = text[start:end].replace("Decoding", "Dcoding").replace("Unsup", "Unsp")
    location = TextLocator({"d": text, "other": "\n".join(reversed(entries))}).locate(damaged)

    assert location is None or location.likeness <= 1
    assert location is None or any(
        span.doc_id == "d" and abs(span.start - start) < 40 for span in location.spans
    )


def test_what_is_like_a_text_counts_in_the_document_named(locator: TextLocator) -> None:
    """A text rewritten of one page may have a whole sentence of another."""
    text = f"Parcels leave. {SHIPPING[12:88]}. It takes them as long as it takes them."

    assert locator.locate(text) is not None
    assert locator.locate(text, doc_ids=["returns.md"]) is None


def test_a_text_with_its_middle_left_out_is_of_the_document_that_has_both_ends() -> None:
    """Highlights of search engines join what they found by dots."""
    text = f"{SHIPPING[12:99]} […] {RETURNS[60:]}"
    locator = TextLocator({"old": SHIPPING, "new": f"{SHIPPING}\n\n{RETURNS}"})
    location = locator.locate(text)

    assert location is not None
    assert [span.doc_id for span in location.spans] == ["new"]


def test_words_of_the_subject_are_no_place() -> None:
    """A third of a text may stand anywhere, if one asks enough pages."""
    text = (
        "Parcels to islands take five days longer. The ferry sails twice a week in winter and "
        "brings the mail as well as whatever people ordered for their gardens, and nobody minds."
    )

    assert TextLocator({"shipping.md": SHIPPING}).locate(text) is None


def test_documents_come_back_from_their_chunks() -> None:
    """Sets hold chunks and no documents; between two chunks there were blanks."""
    chunks = [
        Chunk(chunk_id="b", doc_id="d", text="two three", start=6, end=15),
        Chunk(chunk_id="a", doc_id="d", text="one", start=0, end=3),
        Chunk(chunk_id="c", doc_id="d", text="three four", start=10, end=20),
    ]

    assert documents_of(chunks) == {"d": "one\n\n\ntwo three four"}


def test_chunks_without_offsets_follow_each_other() -> None:
    """Chunks of other tools have none."""
    chunks = [Chunk(chunk_id=text, doc_id="d", text=text) for text in ("one", "two")]

    assert documents_of(chunks) == {"d": "one\ntwo"}


def test_a_stretch_that_repeats_itself_is_no_more_than_like_a_text():
    """It shares more letters with the text than that has."""
    line = "press the button and wait for the light to turn green again. "
    locator = TextLocator({"d": f"Then {line * 4}"})
    found = locator.locate(f"In short: then {line} And {line} Then stop.")

    assert found is not None
    assert found.likeness < 1


def test_a_text_with_a_hole_is_not_all_of_its_place() -> None:
    """What was cut out of the middle may be the answer."""
    page = f"{RETURNS}\n\n{SHIPPING}"
    sentence = "otherwise the buyer pays it."
    location = TextLocator({"d": page}).locate(page.replace(sentence, ""))

    assert location is not None
    assert location.likeness < 1


def test_letters_of_one_character_do_not_move_what_stands_behind_them() -> None:
    """Of a long document a part is read; it may begin within a ligature."""
    text = "".join(f"{number} o\ufb03ce \u00bd, " for number in range(3000))
    locator = TextLocator({"a.md": text})
    starts = [text.index(f" {number} o") + 1 for number in range(100, 3000, 7)]

    found = [locator.locate(text[start : start + 300]) for start in starts]

    assert [each and each.spans[0].start for each in found] == starts


@pytest.mark.parametrize(
    ("part", "other", "pairs"),
    [
        ("abcdef", "abcdef", 6),
        ("abcxdef", "abcdef", 6),
        ("abcdef", "abxcdef", 6),
        ("defabc", "abcdef", 3),
        ("abcabc", "abc", 3),
        ("abcdexefghi", "abcdefghi", 9),
        ("xyz", "abc", 0),
    ],
)
def test_the_longest_row_of_equal_parts_is_found(part: str, other: str, pairs: int) -> None:
    """Parts in another order, or repeated, are not all of a text."""
    row = _chain(_of(part), _GramIndex(_of(other)))

    assert len(row) == pairs
    assert (np.diff(row, axis=0) > 0).all()
    assert [part[at] for at, _ in row] == [other[at] for _, at in row]


def test_very_many_repeated_parts_are_put_in_a_row() -> None:
    """A table repeats itself; the longest parts tell its place."""
    part = "".join(f"{number % 10}|-" for number in range(60))

    assert len(_chain(_of(part), _GramIndex(_of(f"{part[135:]}?{part[:135]}")))) >= 135


def test_a_name_is_looked_into_where_many_documents_are_alike() -> None:
    """Versions of a document that fit as well must not crowd out the one that is named."""
    words = " ".join(f"word{number}" for number in range(60))
    documents = {f"{version:03}.md": f"{words} v{version}" for version in range(60)}
    altered = words.replace("word7 ", "").replace("word30 ", "wrd30 ")

    found = TextLocator(documents).locate(altered, doc_ids=["059.md"])

    assert found is not None
    assert [span.doc_id for span in found.spans] == ["059.md"]
