"""Source files as documents, where that is asked for."""

import pytest

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.corpus.formats import UnreadableError
from ragforge.corpus.source_code import read_source_code
from ragforge.errors import DataError

PYTHON = '''"""Clients \u00e9."""
import os

class Client(Base):
    """A client of a service.

    Args:
        url: Where it is.
    """

    def get(self, url: str) -> str:
        """Send a request."""
        return secret(url)

    def bare(self):
        return "x"
'''
SCRIPT = """/**
 * Adds two numbers.
 * @param a first
 */
export function add(a, b) {
  return a + b;
}
/* not for readers */
"""


def test_docstrings_stand_under_the_names_that_they_describe():
    """A reader of the reference sees them so; code is no prose."""
    assert read_source_code(PYTHON, ".py").text == (
        "Clients \u00e9.\n\n# Client(Base)\n\nA client of a service.\n\n"
        "Args:\n    url: Where it is.\n\n## get(self, url: str) -> str\n\nSend a request."
    )


def test_doc_comments_stand_before_what_they_describe():
    """Comments for the next programmer are left out."""
    read = read_source_code(SCRIPT, ".js").text

    assert read == "Adds two numbers.\n@param a first\n\nexport function add(a, b)"


def test_comments_of_go_may_have_empty_lines_and_directives():
    """The first paragraph is what most of them are read for."""
    text = (
        "// Package foo reads.\n//\n// It is fast.\npackage foo\n\n"
        "// Get gets it.\n//\n//go:noinline\nfunc Get() {}\n"
    )

    assert read_source_code(text, ".go").text == (
        "Package foo reads.\n\nIt is fast.\npackage foo\n\nGet gets it.\n\nfunc Get() {}"
    )


def test_a_pattern_of_paths_begins_no_comment():
    """Code up to the next comment would be text, and its first line lost."""
    text = "const files = ['src/**/*.js', '/**'];\nrun(files);\n/** Runs. */\nrun();\n"

    assert read_source_code(text, ".js").text == "Runs.\n\nrun()"


def test_rules_of_slashes_are_no_comments():
    """They part sections of a file."""
    text = "////////////\n/// Adds.\n////////////\nint add();\n"

    assert read_source_code(text, ".cpp").text == "Adds."


def test_what_is_defined_under_a_condition_has_a_docstring():
    """Versions of Python and missing packages are met so, by one branch after another."""
    text = (
        'try:\n    import x\nexcept ImportError:\n    def f():\n        """One."""\n'
        'if A:\n    class B:\n        """Two."""\nelse:\n    def g():\n        """Three."""\n'
    )

    assert read_source_code(text, ".py").text == "# f()\n\nOne.\n\n# B\n\nTwo.\n\n# g()\n\nThree."


def test_chunks_lead_into_the_file(tmp_path):
    """A person who checks a quote opens the file."""
    (tmp_path / "a.py").write_text(PYTHON, encoding="utf-8")
    [document] = read_documents([tmp_path], source_code=True)

    chunks = chunk_document(document, min_chars=0)

    assert [chunk.heading_path for chunk in chunks][-1] == (
        "Client(Base)",
        "get(self, url: str) -> str",
    )
    at = chunks[-1].text.index("Send")
    assert PYTHON[chunks[-1].offset(at) : chunks[-1].end] == "Send a request."


def test_source_files_are_read_by_a_flag_alone(tmp_path):
    """A folder of documents often has code beside them."""
    (tmp_path / "a.py").write_text(PYTHON, encoding="utf-8")
    (tmp_path / "b.md").write_text("Text.")

    assert [document.doc_id for document in read_documents([tmp_path])] == ["b.md"]
    with pytest.raises(DataError, match=r"expected one of .*, got \.py"):
        list(read_documents([tmp_path / "a.py"]))
    assert len(list(read_documents([tmp_path], source_code=True))) == 2


@pytest.mark.parametrize("text", ["def f(:\n", "\x00", "(" * 100_000])
def test_what_is_no_python_is_passed_over(text):
    """The other documents can be read without it."""
    with pytest.raises(UnreadableError, match="is no Python"):
        read_source_code(text, ".py")


@pytest.mark.parametrize(
    "text", ['""', '"""x"""', "def f(): 'd'", "class A:\n  'd'\n  class B: 'e'", "x = 1", ""]
)
def test_offsets_ascend_in_terse_code(text):
    """There is little room between two texts."""
    read = read_source_code(text, ".py")
    offsets = [read.offset(place) for place in range(len(read.text))]

    assert offsets == sorted(set(offsets))
    assert all(0 <= offset < len(text) for offset in offsets)


def test_comments_that_nobody_closes_are_left_out():
    """A file that is made so must not be looked through for each of them."""
    text = f"/** Said. */\nf()\n{'/** open ' * 50_000}"

    assert read_source_code(text, ".js").text == "Said. \n\nf()".replace(" \n", "\n")


def test_annotations_stand_between_a_comment_and_what_it_describes():
    """A text that does not say what it is about is found by nobody."""
    java = "/** Gets it. */\n@Override\n@Deprecated\npublic int get() {\n"
    rust = "/// Adds.\n#[inline]\npub fn add() {}\n"

    wide = java.replace("@Override", "@Foo(a = 1,\n  b = 2)")

    assert read_source_code(wide, ".java").text == "Gets it."
    assert read_source_code(java, ".java").text == "Gets it.\n\npublic int get()"
    assert read_source_code(rust, ".rs").text == "Adds.\n\npub fn add() {}"
