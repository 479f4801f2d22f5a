"""Readers of documents take time that grows with a document, not with its square."""

import time

import pytest

from ragforge.corpus.documents import read_plain
from ragforge.corpus.formats import FORMATS, suffix_of
from ragforge.corpus.html import read_page

TIMES = 4
MOST = 10.0
"""Of linear growth it is 4, of quadratic growth 16."""
FEWEST_S = 0.05
"""What takes less in the larger text as well does not count: clocks are coarse."""
TRIES = 5
N_CHARS = 30_000
UNITS = {
    "a.md": (
        "```\n", "```py\ncode\n\n", "~~~~", "{", "{{ ", "{\n", "[", "[a](", "*a ", "**", "`",
        "``a`", "<", "<A x={\n", '<A x="\n', "<!-- ", "<!-- a\n", "{++ ", "{~~ a ~> ", "{% a ",
        ":::\n", "{% highlight a %}\n", "{% comment %}\n", '{% include a content="', "{: a ",
        "{ #a .b ",
        "<th data-hidden>a</th><td>b", "<pre>a\n", "<table>\n", "{{< code >}}\n", "[a]({{ b ",
        "{{<\n", "```\n{% raw %}\n", "`{% raw %}`", "\n \n", '<a b="{{ ',
        "==a ", "~~a ", "a^b", "++a+", "!!! note\n    ", "> ", "- ",
        "1[<sup>1</sup>", "1<sup>[1](#a", "```{note}\n---\n", "::a{title='b\n", "`#!a b",
        ":a{b\n::\n",
        "&amp;", "![", "{{ page.title }} ", "_a", "--8<--\n", "---\na: b\n", ":x: y\n", "|a|b|\n",
    ),
    "a.mdx": (
        "<A x={", "<A x={\n", "<A x={{a: \"\n", "{a.map(() => (\n", "export const a = {\n", "{`",
        "<Tabs items={['a', ", '{a: "b ', '<T a={[{name: "x", description: "y"}]} />\n',
        "import {\n", "</A>\n",
    ),
    "a.adoc": (
        ":p: long\n{p} ", "====\n", "----\n", "Title\n-----\n", "<<a,", "*a ", "menu:a[", "a:: ",
        "2+|a", "https://x.org[", "footnote:[a ", "footnote:[[", "__a_", "**a*",
        "+a", "javadoc:a.", "[source]\n", "ifdef::a[b\n", "((", "[[[a", "__a", " lit\n", "{a",
        "#a", "xref:a#", "[[a]]\n== b\n\n<<a>>\n\n", "`+a{b}",
    ),
    "a.rst": (
        ":a:`", "`a <b", "``a", "**a ", "|a ", ".. note:: a\n   ", ".. |a| replace:: b\n",
        "a::\n\n b\n", "\\a", ".. _a: b\n", "+--+\n| a|\n", "== ==\n", "a\n b\n",
    ),
    "a.1": ("\\fB", '.B "a', ".TP\n", ".nf\n", "\\(", ".It Fl a Ar b\n", ".de\n"),
}  # fmt: skip


def seconds(read, text):
    """Return the processor time that it takes to read a text."""
    began = time.process_time()
    read(text)
    return time.process_time() - began


def growth(read, unit):
    """Return how much longer a text of repeated units takes that is longer by `TIMES`."""
    text = unit * (N_CHARS // len(unit))
    longer = seconds(read, text * TIMES)
    return longer / seconds(read, text) if longer > FEWEST_S else 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("doc_id", "unit"), [(doc_id, unit) for doc_id in UNITS for unit in UNITS[doc_id]]
)
def test_a_reader_takes_no_square_of_a_document(doc_id, unit):
    """Whoever writes a document must not decide how long it is read."""
    form = FORMATS[suffix_of(doc_id)]

    # A neighbour on the machine may disturb a try.
    assert any(
        growth(lambda text: read_plain(text, form, doc_id), unit) < MOST for _ in range(TRIES)
    )


@pytest.mark.slow
@pytest.mark.parametrize("signs", ["[]", "()", "{}", "<>", "**", "``"])
@pytest.mark.parametrize("doc_id", ["a.md", "a.rst", "a.adoc"])
def test_nor_do_signs_within_each_other(doc_id, signs):
    """Of thousands of brackets each was looked at with all that stand within it."""
    form = FORMATS[suffix_of(doc_id)]

    def read(half):
        read_plain(f"{half}a{half.replace(signs[0], signs[1])}", form, doc_id)

    assert any(growth(read, signs[0]) < MOST for _ in range(TRIES))


@pytest.mark.slow
def test_raised_numbers_in_one_open_link_take_no_square_of_a_page():
    """Pages leave links open, and each number was held against all of the link."""
    assert any(
        growth(lambda text: read_page(f"<a>{text}"), "1<sup>1</sup>") < MOST for _ in range(TRIES)
    )


@pytest.mark.slow
def test_growth_that_is_a_square_is_seen():
    """A test that overlooks it would hold nothing."""

    def each_with_each(text):
        return [text.count("b", at) for at in range(len(text))]

    assert any(growth(each_with_each, "a") > MOST for _ in range(TRIES))
