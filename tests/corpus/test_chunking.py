import subprocess
import sys
import unicodedata
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.corpus.chunking import chunk_document, chunk_id
from ragforge.corpus.documents import Document
from ragforge.corpus.formats import Lines
from ragforge.corpus.markdown import scanned_blocks
from ragforge.errors import UsageError
from ragforge.files.text import normalise

PARAGRAPH = "This sentence has some words. " * 12


def document(text, form="markdown", title=""):
    return Document("a", title, text, form)


def texts(text, form="markdown", **options):
    return [chunk.text for chunk in chunk_document(document(text, form), **options)]


def paths(text, form="markdown", title="", **options):
    found = chunk_document(document(text, form, title), **options)
    return [chunk.heading_path for chunk in found]


def visible(text):
    return "".join(text.split())


PIECES = st.sampled_from(
    [
        "# Top\n", "## Sub\n", "### Deep\n\n", "Title\n=====\n", "Under\n---\n", "\n", "\n\n",
        "```\ncode\n\n# no\n```\n", "~~~\n", "```", "    indented\n", "- item\n", "  - nested\n",
        "1. one\n", "> quote\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "---\n", "<!-- note -->\n",
        "<div>\n", "word ", "A sentence. ", "::\n\n    literal\n", ".. note:: x\n   y\n",
        "=== ===\na   b\n=== ===\n", "+--+\n|a |\n+--+\n", "é漢", "\u00a0", "x" * 70, "!", "\t",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(PIECES, max_size=40).map(lambda parts: normalise("".join(parts))),
    st.text().map(normalise),
)
FORMATS = st.sampled_from(["markdown", "rst", "text", "html"])


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(TEXTS, FORMATS, st.integers(20, 200))
def test_chunks_are_slices_and_nothing_visible_is_lost(text, form, max_chars):
    """Evidence is anchored by offsets, and a lost passage can never be retrieved."""
    body = f"body\n\n{text}"
    chunks = chunk_document(document(body, form), max_chars=max_chars, min_chars=10)

    assert all(body[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert visible("".join(chunk.text for chunk in chunks)) == visible(body)


@settings(deadline=None)
@given(TEXTS, FORMATS, st.integers(20, 200))
def test_no_chunk_is_longer_than_twice_max_chars(text, form, max_chars):
    """Embedding models cut off what is too long, without a word."""
    chunks = chunk_document(document(text, form), max_chars=max_chars, min_chars=10)

    assert max((len(chunk.text) for chunk in chunks), default=0) <= 2 * max_chars


@settings(deadline=None)
@given(TEXTS, FORMATS)
def test_ids_are_unique_within_a_document(text, form):
    """Two chunks under one id would share their judgments."""
    found = [
        chunk.chunk_id for chunk in chunk_document(document(text, form), max_chars=60, min_chars=0)
    ]

    assert len(found) == len(set(found))


def test_each_section_is_a_chunk_with_the_titles_around_it():
    """A passage without its headings cannot be understood alone."""
    text = f"# Top\n\n{PARAGRAPH}\n\n## Sub\n\n{PARAGRAPH}\n\n# Next\n\n{PARAGRAPH}\n"

    assert paths(text) == [("Top",), ("Top", "Sub"), ("Next",)]


def test_heading_is_part_of_the_first_chunk_of_its_section():
    """Its words are what users search for."""
    text = f"# Top\n\n{PARAGRAPH}\n\n{PARAGRAPH}"

    assert [part[:5] for part in texts(text, max_chars=500)] == ["# Top", "This "]


def test_document_title_heads_the_path():
    """Front matter often is the only place that names the subject."""
    assert paths(f"## Sub\n\n{PARAGRAPH}", title="Top") == [("Top", "Sub")]


@pytest.mark.parametrize("title", ["Top", "Top - Site", "Site | Top"])
def test_title_that_repeats_the_first_heading_is_left_out(title):
    """The same words twice would weigh double in retrieval."""
    assert paths(f"# Top\n\n{PARAGRAPH}", title=title) == [("Top",)]


def test_setext_headings_open_sections():
    """Older Markdown has no other."""
    text = f"Top\n===\n\n{PARAGRAPH}\n\nSub *it*\n---\n\n{PARAGRAPH}"

    assert paths(text) == [("Top",), ("Top", "Sub it")]


@pytest.mark.parametrize(
    "fence",
    [
        "```sh\n# comment\n```",
        "~~~\n# comment\n```\n# more\n~~~",
        "````md\n```\n# comment\n```\n````",
        "    # comment",
        "- item\n\n  ```\n  # comment\n  ```",
        "```\n# never closed",
    ],
)
def test_heading_in_code_is_no_heading(fence):
    """Shell comments look like headings."""
    assert paths(f"# Top\n\ntext\n\n{fence}\n") == [("Top",)]


def test_heading_in_a_quote_opens_no_section():
    """A quoted message has its own structure."""
    assert paths(f"# Top\n\n> # Quoted\n>\n> {PARAGRAPH}\n") == [("Top",)]


def test_fence_longer_than_a_chunk_stays_whole():
    """Half a program answers nothing."""
    fence = "```\n" + "call(argument)\n" * 20 + "```"

    assert fence in texts(f"{PARAGRAPH}\n\n{fence}\n\n{PARAGRAPH}", max_chars=200)


def test_fence_beyond_the_hard_limit_is_cut_at_line_ends():
    """A log file in a fence must not become one chunk."""
    lines = [f"call(argument_{number})" for number in range(100)]
    parts = texts("```\n" + "\n".join(lines) + "\n```", max_chars=200)

    assert max(len(part) for part in parts) <= 200
    assert set("\n".join(parts).split("\n")) == {"```", *lines}


def test_fence_in_a_long_list_stays_whole():
    """Instructions are lists with commands in them."""
    fence = "  ```\n  make all\n  make install\n  ```"
    text = "\n".join(f"- step\n\n{fence}" for _ in range(20))

    assert sum(part.count(fence.strip()) for part in texts(text, max_chars=200)) == 20


def test_table_stays_whole():
    """A row without its header means nothing."""
    table = "| key | value |\n|---|---|\n" + "| some | thing |\n" * 15

    assert table.strip() in texts(f"{PARAGRAPH}\n\n{table}\n{PARAGRAPH}", max_chars=200)


def test_code_goes_with_the_paragraph_before_it():
    """The paragraph says what the code is for."""
    lead = "Set the timeout like this."
    parts = texts(f"{PARAGRAPH}\n\n{lead}\n\n```\ntimeout = 5\n```", max_chars=380)

    assert parts[-1] == f"{lead}\n\n```\ntimeout = 5\n```"


def test_list_goes_with_the_line_that_introduces_it():
    """A list without its subject cannot be found."""
    parts = texts(f"{PARAGRAPH}\n\nThe methods are:\n\n- get\n- put\n", max_chars=380)

    assert parts[-1] == "The methods are:\n\n- get\n- put"


def test_long_paragraph_is_cut_at_sentence_ends():
    """Half a sentence makes a poor quote."""
    assert all(part.endswith(".") for part in texts(PARAGRAPH * 5, "text", max_chars=200))


def test_long_chinese_paragraph_is_cut_at_sentence_ends():
    """Not every language has a blank behind its full stop."""
    assert all(
        part.endswith("。") for part in texts("天地玄黄宇宙洪荒。" * 50, "text", max_chars=100)
    )


def test_text_without_blanks_is_cut_hard():
    """A minified file must not break the chunker."""
    assert [len(part) for part in texts("x" * 450, "text", max_chars=200, min_chars=0)] == [
        200, 157, 93,
    ]  # fmt: skip


def test_combining_mark_stays_with_its_letter():
    """A chunk that starts with a lone accent is broken text."""
    parts = texts("x\u0323\u0307" * 100, "text", max_chars=20, min_chars=0)

    assert {part[0] for part in parts} == {"x"}


def test_small_section_goes_with_the_next_one():
    """A passage of one line is too little to ask about."""
    text = f"# Top\n\n{PARAGRAPH}\n\n## A\n\nshort\n\n## B\n\n{PARAGRAPH}"

    assert paths(text) == [("Top",), ("Top",)]
    assert texts(text)[1].startswith("## A\n\nshort\n\n## B")


def test_last_small_section_goes_with_the_one_before():
    """There is no next one."""
    text = f"# Top\n\n## A\n\n{PARAGRAPH}\n\n## B\n\nshort"

    assert paths(text) == [("Top",)]


def test_small_section_does_not_go_with_a_stranger():
    """Its path would then name neither."""
    text = f"# Top\n\n## A\n\n### Deep\n\n{PARAGRAPH}\n\n# Other\n\n## B\n\nshort"

    assert paths(text) == [("Top", "A", "Deep"), ("Other", "B")]


def test_empty_heading_is_put_before_the_section_that_follows():
    """A chunk of nothing but a heading answers nothing."""
    assert texts(f"# Top\n\n## Sub\n\n---\n\n### Deep\n\n{PARAGRAPH}")[0].startswith(
        "# Top\n\n## Sub"
    )


def test_heading_is_not_cut_off_its_long_paragraph():
    """The cut at the empty line below it would be the natural one."""
    [first, *_] = texts(f"# {'Long heading ' * 9}\n\n{PARAGRAPH}", max_chars=200, min_chars=0)

    assert "This sentence" in first


def test_trailing_heading_is_put_behind_the_last_section():
    """An unwritten chapter at the end is no passage."""
    assert texts(f"# Top\n\n{PARAGRAPH}\n\n# Later")[0].endswith("# Later")


@pytest.mark.parametrize("text", ["# Top\n\n## Sub\n", "Top\n===\n", "---\ntitle: x\n---\n# Top\n"])
def test_document_of_headings_alone_has_no_chunks(text):
    """There is nothing to ask about."""
    assert chunk_document(document(text)) == []


@pytest.mark.parametrize("end", ["---\n", "...\n", "---"])
def test_front_matter_is_left_out(end):
    """Layout settings are not content."""
    text = f"---\ntitle: Top\ntags:\n- a\n  b: c\n# note\n\n{end}"

    assert texts(f"{text}\nbody" if end.endswith("\n") else text) == ["body"] * end.endswith("\n")


def test_text_between_two_rules_is_no_front_matter():
    """Leaving it out would lose content."""
    assert "Not a setting at all." in texts("---\nNot a setting at all.\n\n---\n\nbody")[0]


def test_long_underlined_paragraph_is_text():
    """A rule right under a paragraph makes it a heading by the letter of Markdown."""
    assert paths(f"{PARAGRAPH.strip()}\n---\n\nbody") == [()]


def test_link_definitions_are_kept():
    """Markdown parsers swallow them, and offsets must not jump."""
    assert texts("see [a]\n\n[a]: http://example.org\n")[0].endswith("example.org")


RST = f"""\
.. _label:

=====
 Top
=====

{PARAGRAPH}

Sub ``code``
------------

Like this::

    not a heading
    =============

    more

.. code-block:: python

   x = 1

   y = 2

{PARAGRAPH}

Other
-----

=====  =====
a      b
=====  =====
1      2

3      4
=====  =====

+---+---+
| a | b |
+---+---+

{PARAGRAPH}
"""


def test_rst_titles_open_sections_by_the_order_of_their_styles():
    """RST fixes no level to a character."""
    assert paths(RST, "rst") == [("Top",), ("Top", "Sub code"), ("Top", "Other")]


@pytest.mark.parametrize(
    "whole",
    [
        "    not a heading\n    =============\n\n    more",
        ".. code-block:: python\n\n   x = 1\n\n   y = 2",
        "=====  =====\na      b\n=====  =====\n1      2\n\n3      4\n=====  =====",
        "+---+---+\n| a | b |\n+---+---+",
    ],
)
def test_rst_literals_directives_and_tables_stay_whole(whole):
    """They are cut at blank lines only by who does not know RST."""
    assert sum(whole in part for part in texts(RST, "rst", max_chars=75, min_chars=0)) == 1


def test_rst_label_goes_with_the_title_it_labels():
    """A chunk of a label alone answers nothing."""
    assert texts(RST, "rst")[0].startswith(".. _label:\n\n=====\n Top")


def test_html_sections_and_tables_are_seen():
    """Headings written by the HTML reader must be read back."""
    text = f"# Top\n\n{PARAGRAPH}\n\n```\n# no\n\nx\n```\n\n## Sub\n\na | b\n1 | 2\n\n{PARAGRAPH}"

    assert paths(text, "html", "Top - Site") == [("Top",), ("Top", "Sub")]


def test_edit_elsewhere_changes_no_other_id():
    """Judgments are kept by id: a nightly edit must cost what it touches, no more."""
    sections = [f"## {name}\n\n{name} {PARAGRAPH}\n" for name in ("One", "Two", "Three")]
    before = chunk_document(document("# Top\n\n" + "\n".join(sections)))
    sections[0] = f"## One\n\nAll new. {PARAGRAPH}{PARAGRAPH}\n"
    after = chunk_document(document("# Top\n\n" + "\n".join(sections)))

    assert [chunk.chunk_id for chunk in after[1:]] == [chunk.chunk_id for chunk in before[1:]]
    assert after[0].chunk_id != before[0].chunk_id


def test_reflowed_text_keeps_its_id():
    """A new line width changes no meaning."""
    [one] = chunk_document(document(PARAGRAPH))
    [other] = chunk_document(document(PARAGRAPH.replace(". ", ".\n")))

    assert one.chunk_id == other.chunk_id


def test_composed_and_decomposed_text_have_one_id():
    """Editors differ in how they write an accent."""
    one, other = (
        chunk_document(document(normalise(unicodedata.normalize(form, "# Café\n\nÉté à Orléans"))))
        for form in ("NFC", "NFD")
    )

    assert one == other


def test_same_text_twice_has_two_ids():
    """Both places can be retrieved."""
    text = f"# A\n\n{PARAGRAPH}\n\n# A\n\n{PARAGRAPH}"
    one, other = chunk_document(document(text))

    assert one.text == other.text
    assert one.chunk_id != other.chunk_id


def test_id_depends_on_the_document():
    """Boilerplate stands in many documents."""
    [one] = chunk_document(document(PARAGRAPH))
    [other] = chunk_document(replace(document(PARAGRAPH), doc_id="b"))

    assert one.chunk_id != other.chunk_id


def test_id_is_frozen():
    """Published judgments refer to it: a new formula would orphan them all."""
    assert chunk_id("a.md", ("Top", "Sub"), "00ff", 1) == "c_dgcoibqns6q5f3zu"


def test_parts_of_an_id_cannot_run_into_each_other():
    """Joined without marks, two different chunks would have one id."""
    assert chunk_id("a", ("b", "c"), "d", 1) != chunk_id("a", ("b,c",), "d", 1)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"max_chars": 5}, "max_chars: expected at least 20, got 5"),
        ({"min_chars": -1}, "min_chars: expected at least 0, got -1"),
    ],
)
def test_sizes_out_of_range_are_refused(sizes, message):
    """They come from the command line."""
    with pytest.raises(UsageError, match=message):
        chunk_document(document("text"), **sizes)


def test_importing_the_package_loads_no_parser():
    """Every command pays for imports."""
    code = "import ragforge.corpus, ragforge.corpus.chunking, sys; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert not {"markdown_it", "selectolax"} & set(loaded.split())


def test_a_code_block_of_nothing_but_blanks_is_no_chunk():
    """A tab makes indented code in Markdown, even where nothing visible follows."""
    assert chunk_document(Document("a.md", "", "\t\xa0", "markdown")) == []


LANGUAGES = {
    "chinese": "知識就是力量而退貨需要在三十天內完成。費用是價格的百分之十。" * 40,
    "arabic": "رسوم إعادة التخزين هي عشرة في المئة من السعر. تعاد البضائع خلال ثلاثين يوما. " * 40,
    "thai": "ค่าธรรมเนียมคือสิบเปอร์เซ็นต์ของราคา คืนสินค้าได้ภายในสามสิบวัน " * 40,
    "mixed": "The fee is ten percent. 費用是百分之十。 Die Gebühr beträgt zehn Prozent. " * 40,
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_of_any_language_is_cut_into_even_chunks(language):
    """Scripts without blanks or capitals must not come as one chunk or as crumbs."""
    text = normalise(LANGUAGES[language]).strip()

    sizes = [len(piece) for piece in texts(text, "text", max_chars=500)]

    assert 200 <= min(sizes) <= max(sizes) <= 500


@pytest.mark.parametrize("language", ["chinese", "arabic", "mixed"])
def test_sentences_of_any_language_stay_whole(language):
    """A chunk that begins in the middle of a sentence answers nothing."""
    text = normalise(LANGUAGES[language]).strip()

    assert {piece[-1] for piece in texts(text, "text", max_chars=500)} <= {".", "。"}


def test_corpus_of_one_sentence_is_one_chunk():
    """The smallest corpus there is must not be left out as too small."""
    assert texts("A fee is due.") == ["A fee is due."]


def test_document_of_tables_alone_keeps_them_whole():
    """Reference data has no prose between its tables."""
    table = "| a | b |\n|---|---|\n" + "| cell one | cell two |\n" * 20

    assert texts("\n".join([table] * 3), max_chars=600) == [table.strip()] * 3


def test_document_of_code_alone_keeps_its_fences_whole():
    """A listing without its end does not run."""
    fence = "```python\n" + "call(argument)\n\n" * 20 + "```"

    assert texts("\n\n".join([fence] * 3), max_chars=400) == [fence] * 3


LARGE = (
    "# Top\n\nSome *text* that goes on.\n\n```python\n# no heading\n\ncall()\n```\n\nUnder\n---\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- two\n\n## Deep `code` ##\n\nMore text.\n\n***\n"
)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_scan_of_markdown_loses_nothing(text):
    """A lost passage can never be retrieved."""
    blocks = list(scanned_blocks(Lines(text), 0))

    assert all(one.end <= other.start for one, other in pairwise(blocks))
    assert visible("".join(text[block.start : block.end] for block in blocks)) == visible(text)


def test_large_markdown_is_cut_as_small_is():
    """The way for large files must not be another chunker."""
    count = 1_000_000 // len(LARGE) + 1
    small = chunk_document(document(LARGE), max_chars=100, min_chars=0)

    large = chunk_document(document(LARGE * count), max_chars=100, min_chars=0)

    assert [(chunk.text, chunk.heading_path) for chunk in large] == count * [
        (chunk.text, chunk.heading_path) for chunk in small
    ]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("word " * 400_000, "markdown"),
        ("x" * 2_000_000, "text"),
        ("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 200_000, "markdown"),
        ("- item of a list\n" * 120_000, "markdown"),
        ("```\n" + "code\n" * 400_000, "markdown"),
        ("=== ===\na   b\n=== ===\n" + "x   y\n" * 300_000 + "=== ===\n", "rst"),
    ],
    ids=["line", "word", "table", "list", "fence", "rst-table"],
)
def test_large_document_of_one_block_is_cut_to_size(text, form):
    """An export of 20 MB in one line must neither hang nor come as one chunk."""
    chunks = chunk_document(document(text, form))

    assert max(len(chunk.text) for chunk in chunks) <= 2000
    assert visible("".join(chunk.text for chunk in chunks)) == visible(text)
