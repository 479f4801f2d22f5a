"""Manual pages as documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.corpus.man_reading import is_man_page, man_title, read_man_page

PAGE = r""".\" comment
.TH LS 1 "May 2024" "GNU" "User Commands"
.SH NAME
ls \- list directory contents
.SH "LONG OPTIONS"
.PP
\fB\-a\fR, \fB\-\-all\fR
do not ignore entries that start with a dot.
See
.BR dir (1)
\(em or not.
.nf
$ ls \-l
.fi
"""
PARTS = (
    ".SH NAME", ".SS x", ".B a b", ".BR a (1),", ".PP", ".nf", ".fi", ".TP", '.IP "x" 2',
    "\\fBx\\fR", "a \\- b", ".Fl a", ".Op Fl a Ar f", ".de X", "..",
    "'br", ".", "\\", '.B "', ".It Fl x", "",
)  # fmt: skip


def test_macros_and_escapes_are_not_seen():
    """A reader sees what the formatter makes of them."""
    assert read_man_page(PAGE).text == (
        "# NAME\nls - list directory contents\n# LONG OPTIONS\n\n-a, --all\n"
        "do not ignore entries that start with a dot.\nSee\ndir(1)\n\u2014 or not.\n"
        "```\n$ ls -l\n```\n"
    )
    assert man_title(PAGE) == "ls(1)"


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (".Op Fl a Ar file", "[-a file]"),
        (".Fl v", "-v"),
        (".IR a b", "ab"),
        ('.B "a b" c', "a b c"),
        (".Sh NAME", "# NAME"),
        (".de XX\n.B gone\n..\nText", "Text"),
    ],
)
def test_lines_of_macros_say_what_they_show(line, read):
    """Both families of macros are in use."""
    assert read_man_page(line).text.strip() == read


@given(st.lists(st.sampled_from(PARTS), max_size=12))
def test_what_is_seen_leads_into_the_file(parts):
    """Offsets are of use where each character has its own, in order."""
    text = "\n".join(parts)
    read = read_man_page(text)
    offsets = [read.offset(place) for place in range(len(read.text))]

    assert offsets == sorted(set(offsets))
    assert all(offset < len(text) for offset in offsets)


def test_files_that_only_end_in_a_digit_are_no_pages(tmp_path):
    """Libraries and rotated logs end so, too."""
    (tmp_path / "ls.1").write_text(PAGE)
    (tmp_path / "libx.so.1").write_bytes(b"\x7fELF\x00\xff")
    (tmp_path / "server.log.2").write_text("started\n")
    told = []

    [document] = read_documents([tmp_path], skipped=lambda *what: told.append(what))

    assert (document.doc_id, document.title, told) == ("ls.1", "ls(1)", [])
    assert chunk_document(document)[0].heading_path[0] == "ls(1)"
    assert not is_man_page("started\n")
