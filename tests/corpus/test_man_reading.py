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
        (".de1 XX\nlevel \\\\n[x]\n..\n.XX\nText", "Text"),
        ('.de XX\nsee \\fB\\\\$1\\fR, \\\\$2\n..\n.XX "a b" c', "see a b, c"),
        (".if n yes\n.if t no\n.ie t \\{\\\nno\n.\\}\n.el \\{\\\nelse\n.\\}", "yes\n\nelse"),
        (".nr X 2\n.if \\nX>1 two\n.if !\\nX one\n.ds n it\nread \\*n", "two\n\nread it"),
        ("a\\\nb", "ab"),
        (".TS\ntab(;);\nl l\nl lx.\na;b\n_\nc;T{\nd\nT}\n.TE", "a | b\n\nc | \nd"),
        (".UR https://x.org\n.UE", "https://x.org"),
        (".UR https://x.org\nthe site\n.UE .", "the site\n."),
        (".MR ls 1 ,", "ls(1),"),
    ],
)
def test_lines_of_macros_say_what_they_show(line, read):
    """Both families of macros are in use."""
    assert read_man_page(line).text.strip() == read


@pytest.mark.parametrize(
    ("typed", "seen"),
    [
        (r"caf\[u00E9] \['e]t\[\'e]", "café ét"),
        (r"\(:u \(<= \(^o \(co \(*a \[u0065_0301]", "ü ≤ ô © α é"),  # noqa: RUF001
        (r"\N'233'\[char233]\C'eu'", "éé€"),
        (r"\s[-2]small\s0 \m[red]red\m[] a\h'|4n'b\*(lqc\*(rq", "small red ab“c”"),
        (r"a\`b \[nothing]\[u110000]", "a`b "),
    ],
)
def test_escapes_are_read_as_their_signs(typed, seen):
    """Names of people, formulas and words of other languages are written so."""
    assert read_man_page(typed).text == seen


MDOC = r""".Dd May 1, 2024
.Dt TOOL 1
.Os
.Sh NAME
.Nm tool , tools
.Nd does it
.Sh SYNOPSIS
.Nm
.Op Fl a Ar file | Fl \&Fl
.Oo Ar word Oc Ns ...
.In stdio.h
.Fo open
.Fa "int a"
.Fa "int b"
.Fc
.Sh DESCRIPTION
.Nm
is
.Dq really quick ,
.Pq see Sx BUGS .
Mind
.Bk
.Em all
.Ek
of it.
.Bl -tag -width Ds
.It Fl x , Fl Fl long Ns = Ns Ar n
Value of
.Ev HOME .
.El
.Bl -enum
.It
One.
.It
Two.
.El
.Bd -literal
tool -x
.Ed
.Dl tool Fl y
.Sm off
.Ar user @ host
.Sm on
at home.
.Ex -std
.Sh SEE ALSO
.Xr ls 1 ,
.Xr sh 1
.Rs
.%A Ada
.%T Notes
.Re
.Sh AUTHORS
.An Ada Aq Mt ada@x.org
.St -p1003.1-2008
.Lb libc
"""


def test_mdoc_macros_say_what_a_formatter_shows():
    """Pages of BSD and of OpenSSH are written so; groff and mandoc show these words."""
    assert read_man_page(MDOC).text == (
        "# NAME\ntool, tools\n– does it\n# SYNOPSIS\ntool\n[-a file | -Fl]\n[word]...\n"  # noqa: RUF001
        "#include <stdio.h>\nopen(int a, int b)\n# DESCRIPTION\ntool\nis\n“really quick”,\n"
        "(see BUGS).\nMind\nall\nof it.\n\n-x, --long=n\nValue of\nHOME.\n\n1. One.\n2. Two.\n\n"
        "```\ntool -x\n```\n```\ntool -y\n```\nuser@host\nat home.\n"
        "The tool utility exits 0 on success, and >0 if an error occurs.\n# SEE ALSO\nls(1),\n"
        "sh(1)\n\nAda\nNotes\n\n# AUTHORS\nAda <ada@x.org>\nIEEE Std 1003.1-2008 (“POSIX.1”)\n"
        "Standard C Library (libc, -lc)\n"
    )


def test_words_that_a_macro_says_have_a_place_in_the_file():
    """Evidence of such words must be found where they are said."""
    text = ".Nm tool\nText.\n.Nm\n.Dq a b\n"
    read = read_man_page(text)
    quoted = read.text.index("“a b”")

    assert read.text == "tool\nText.\ntool\n“a b”\n"
    assert text[read.offset(quoted) : read.offset(quoted + 4) + 1] == ".Dq a b"
    assert text[read.offset(read.text.rindex("tool")) :].startswith(".Nm\n")


@given(st.lists(st.sampled_from(PARTS), max_size=12))
def test_what_is_seen_leads_into_the_file(parts):
    """Offsets are of use where they are in the order of what is seen."""
    text = "\n".join(parts)
    read = read_man_page(text)
    offsets = [read.offset(place) for place in range(len(read.text))]

    assert offsets == sorted(offsets)
    assert all(0 <= offset < len(text) for offset in offsets)


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


def test_an_address_parts_no_sentence():
    """What stands before the link would be a paragraph without an end."""
    text = ".TH A 1\n.SH NAME\nSee the\n.UR https://x.org\nSite\n.UE .\n"

    assert read_man_page(text).text == "# NAME\nSee the\nSite\n.\n"


def test_conditions_without_number_in_a_line_are_no_fault():
    """Nothing in a document may end a command."""
    text = ".TH A 1\n.SH NAME\na\n" + ".if n \\{" * 5_000 + "x\n.if n \\{.if n b\nend\n"

    assert read_man_page(text).text.split() == ["#", "NAME", "a", "b", "end"]


@pytest.mark.parametrize(
    "text",
    [
        ".ds s " + "x" * 400 + "\n" + "\\*s" * 20_000,
        ".Nm " + "x" * 400 + "\n" + ".Nm\n" * 20_000,
        ".de A\n"
        + ".B \\\\$1\n" * 150
        + "..\n.de C\n"
        + ".A \\\\$1\n" * 150
        + "..\n"
        + ".C x\n" * 999,
    ],
)
def test_pages_that_grow_when_read_are_cut_short(text):
    """A small file must not fill the memory, nor take minutes."""
    assert len(read_man_page(text).text) < 500_000
