"""What a reader sees of AsciiDoc, and where that stands in the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.corpus.asciidoc_reading import read_asciidoc
from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents

PARTS = (
    ":p: A long value", "{p} and {p}", "Title", "-----", "{caret}",
    "= Title", "== Part", "", "", "Text *bold* <<a,b>>.", "[source,python]", "----", "....", "====",
    "[NOTE]", "NOTE: x", "|===", "|a |b", "include::a[]", ":toc:", "// gone", "////", "[[id]]",
    "image::a[]", ".Title", "* item", "+", "https://x.org[x]", "```", "--", "  literal", "[",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("= Title\n:toc: left\n:icons: font\n\nText.", "# Title\n\nText."),
        ("[[intro]]\n== Intro\n// gone\nText.", "## Intro\n\nText."),
        ("See xref:g.adoc#x[the guide], <<a,above>>.", "See the guide, above."),
        ("See https://x.org[the site] or https://y.org[].", "See the site or https://y.org."),
        ("*Bold*, _lean_, `code *x*`, [.red]#red#.", "Bold, lean, `code *x*`, red."),
        ("[source,python]\n----\nx = 1\n----", "```python\nx = 1\n```"),
        ("....\nraw *x*\n....", "```\nraw *x*\n```"),
        ("[source,java]\nFoo x;", "Foo x;"),
        (":p: Acme \\\nCloud\n\nBuy {p}.", "Buy Acme Cloud."),
        (".2+|a\n2+|b\n.Title\n|===", "|a\n|b\nTitle"),
        ("[source%linenums,ruby]\n----\nx\n----", "```ruby\nx\n```"),
        ('[%header,cols="1,2"]\n|===\n|a |b\n|===', "|a |b"),
        ("[%header%footer,format=csv]\n|===\na,b\n|===", "a,b"),
        ("NOTE: Mind.\n\n[WARNING]\n====\nHot.\n====", "NOTE: Mind.\n\nWarning\n\nHot."),
        ("include::a.adoc[]\n\nimage::a.png[Alt]\n\nText.", "Text."),
        ("ifdef::x[]\nText.\nendif::[]", "Text."),
        ("////\ngone\n////\nText.", "Text."),
        (".A list\n* item\n+\nmore", "A list\n* item\n\nmore"),
        ("|===\n|a |b\n|===", "|a |b"),
        ("[quote, Ada, Notes]\n____\nIt weaves.\n____", "Ada, Notes\n\nIt weaves."),
        ("Line +\nof #marked# H~2~O, x^2^.", "Line\nof marked H2O, x^2."),
        ("C# and F#, #1 and #2, ~/a and ~/b, 1 + 2.", "C# and F#, #1 and #2, ~/a and ~/b, 1 + 2."),
        (":p: Acme Cloud\n\nBuy {p} now, {caret}, {x}.", "Buy Acme Cloud now, ^, {x}."),
        (":q: Acme\n:p: {q} 2\n\nBuy {p}.", "Buy Acme 2."),
        ("See {api}/a/B.html[`B`] or {api}[it].", "See `B` or it."),
        (":u: https://x.org\n\nSee {u}[the\ndocs].", "See the\ndocs."),
        ("Use menu:File[Open > Recent], kbd:[Ctrl+S].", "Use File > Open > Recent, Ctrl+S."),
        ("NAME\n----\nText.\n\nSub\n~~~\nMore.", "## NAME\nText.\n\n### Sub\nMore."),
        ("-a::\n--all::\n\tAll of it.", "-a:\n--all:\n\tAll of it."),
        ("include-code::./Foo[tag=a]\n\nText.", "Text."),
        ("ifdef::env[Shown.]\nifndef::env[]", "Shown."),
        ("|===\na| x 2+| y\n|===", "| x | y"),
        ("Set `+a.*+`, `b-\\{c}`, `{asterisk}/` and `{d}`.", "Set `a.*`, `b-{c}`, `*/` and `{d}`."),
        ("Set configprop:a.b[] or configprop:a.b-c[format=envvar].", "Set a.b or a.b-c."),
        (":v: 2\n\nSee xref:a.adoc#one[], <<two>>, link:c/d[].\n\n[[one]]\n== The `it` of {v}",
         "See The `it` of 2, two, c/d.\n\n## The `it` of 2"),
        ("See <<id,the\nguide>> in *very\nbold*.", "See the\nguide in very\nbold."),
        ("See <<id,__the Core__>>, *a <<b,c>>*, https://x.org[`A` _b_], <<i,`<a/>`>>.",
         "See the Core, a c, `A` b, `<a/>`."),
        ("un__lean__ed **A*b**c, __$A_HOME/x__\n\n* a\n** b **c** d\n** e",
         "unleaned A*bc, $A_HOME/x\n\n* a\n** b c d\n** e"),
        ("link:a.html[Docs,window=_blank] and https://x.org[text^].", "Docs and text."),
        ("IoC is known.footnote:[See\npass:a,macros[<<id,the part>>] here.]",
         "IoC is known. (See\nthe part here.)"),
        ("[source,java]\n.Foo.java\n----\nx\n----", "Foo.java\n```java\nx\n```"),
        ("A javadoc:org.x.Scope[format=a], +a-{b}.zip+, C++, a+b, 1 +2.",
         "A Scope, a-{b}.zip, C++, a+b, 1 +2."),
        ("- [[[3]]] A book, at \\{now}.", "- 3 A book, at {now}."),
    ],
)  # fmt: skip
def test_markup_is_not_seen(text, read):
    """Nobody asks about an attribute, and an include proves nothing."""
    assert read_asciidoc(text).text.strip() == read


@given(st.lists(st.sampled_from(PARTS), max_size=12))
def test_what_is_seen_leads_into_the_file(parts):
    """Offsets are of use where each character has its own, in order."""
    text = "\n".join(parts)
    read = read_asciidoc(text)
    offsets = [read.offset(place) for place in range(len(read.text))]

    assert offsets == sorted(offsets)
    assert all(offset < len(text) for offset in offsets)


def test_chunks_follow_the_headings(tmp_path):
    """A page is cut as it is written."""
    code = "[source,sh]\n----\nls\n----"
    text = f"= Guide\n\n== One\n\n{'First. ' * 40}\n\n== Two\n\n{code}\n\n{'B. ' * 90}\n"
    (tmp_path / "a.adoc").write_text(text)
    [document] = read_documents([tmp_path])

    chunks = chunk_document(document)

    assert document.title == "Guide"
    assert [chunk.heading_path for chunk in chunks] == [("Guide", "One"), ("Guide", "Two")]
    assert "```sh\nls\n```" in chunks[1].text
    assert text[chunks[1].start :].startswith("== Two")


@pytest.mark.parametrize(
    ("typed", "seen"),
    [
        ('He said "`*go* now`".', "He said “go now”."),
        ("An '`old`' one, `code`.", "An ‘old’ one, code."),  # noqa: RUF001
        ("+++<u>raw *x*</u>+++ here, C+++ there", "raw *x* here, C+++ there"),
    ],
)
def test_quotation_marks_and_raw_html_are_read(typed, seen):
    """A reader sees curved marks, and no tags."""
    read = read_asciidoc(typed)

    assert read.text.replace("`code`", "code") == seen
    assert typed[read.offset(read.text.index(" ")) + 1] != ""


def test_file_with_no_other_markup_is_cut_at_its_headings(tmp_path):
    """As many characters are seen as are written, yet others."""
    (tmp_path / "a.adoc").write_text("= Title\n\n== One\n\nText.\n\n== Two\n\nMore.\n", "utf-8")

    [document] = read_documents([tmp_path])

    found = chunk_document(document, min_chars=0)
    assert [chunk.heading_path for chunk in found] == [("Title", "One"), ("Title", "Two")]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ('[source,xml,subs="attributes+"]', "v 2.5 {unknown}"),
        ("[source,xml,subs=verbatim+attributes]", "v 2.5 {unknown}"),
        ("[source,xml]", "v {ver} {unknown}"),
        ('[source,xml,subs="-attributes"]', "v {ver} {unknown}"),
        ("[subs=attributes]\nText.\n\n[source,xml]", "v {ver} {unknown}"),
    ],
)
def test_names_in_code_stand_for_values_where_it_says_so(given, code):
    """What to install is asked for by its version."""
    read = read_asciidoc(f":ver: 2.5\n\n{given}\n----\nv {{ver}} {{unknown}}\n----\n").text

    assert read.endswith(f"```xml\n{code}\n```\n")
