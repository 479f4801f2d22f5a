"""What a reader sees of reStructuredText, and where that stands in the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.corpus.rst_reading import read_rst

PARTS = (
    ".. |n| replace:: A long value", "|n| and |n|", ".. |m| image:: x",
    "Title", "=====", "", "", "Plain text.", "See :ref:`a <b>`.", ".. note:: Mind", ".. warning::",
    "   inside", "      deeper", ".. code-block:: python", "   :linenos:", ".. toctree::",
    ".. _target:", "target_", "Literal::", ":orphan:", "``code``", "**bold**", ".. comment",
    "`Text <https://x.org>`_", ".. versionadded:: 2", "\ttab", ":class:`~a.B`", "..", "::", "`",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (".. _top:\n\n:orphan:\n\nTitle\n=====\n\nText.", "Title\n=====\n\nText."),
        ("See :ref:`the guide <guide>`, :doc:`intro`.", "See the guide, intro."),
        ("Use :class:`~flask.Flask` and :py:func:`!run`.", "Use `Flask` and `run`."),
        ("`Py <https://p.org>`_, `Perl`_ and guide_.\n\n.. _guide: x", "Py, Perl and guide."),
        ("It is **bold** and *slanted* [1]_.", "It is bold and slanted [1]."),
        (".. toctree::\n   :maxdepth: 2\n\n   a\n   b\n\nText.", "Text."),
        (".. note:: Mind it.\n   It is wide.\n\nOut.", "Note: Mind it.\nIt is wide.\n\nOut."),
        (".. warning::\n\n   Hot.\n\nOut.", "Warning\n\nHot.\n\nOut."),
        (".. admonition:: Heads up\n   :class: x\n\n   Inside.", "Heads up\n\nInside."),
        (".. versionadded:: 2.0\n   A thing.", "New in version 2.0\nA thing."),
        (".. tip::\n\n      Deep.\n\n   Less deep.\n", "Tip\n\nDeep.\n\nLess deep."),
        (".. note ::\n\n   Mind it.\n", "Note\n\nMind it."),
        (".. function:: f()\n\n   :returns: One.\n", "f()\n\n:returns: One."),
        ("`It`__ is.\n\n__ https://x.org\n\nEnd.", "It is.\n\nEnd."),
        ("Text\n__ init__\nmore.", "Text\n__ init__\nmore."),
        (".. py:function:: get(url)\n   :module: httpx\n\n   Sends.", "get(url)\n\nSends."),
        (".. image:: a.png\n   :alt: x\n\nText.", "Text."),
        ("See :pep:`8`, :rfc:`2616`, :pep:`it <8>`.", "See PEP 8, RFC 2616, `it`."),
        (
            '.. csv-table:: T\n   :header: "Plan", "Requests"\n   :widths: 1, 2\n\n   Free, 1',
            '.. csv-table:: T\n   "Plan", "Requests"\n\n   Free, 1',
        ),
        (".. confval:: a\n   :type: :code-py:`int`\n\n   It.", "a\n   type: `int`\n\nIt."),
        ("See `<https://x.org>`_.", "See https://x.org."),
        (".. grid:: 2\n\n   .. grid-item::\n\n      :octicon:`bell` It :bdg:`new`.", "It new."),
        (".. only:: html\n\n   Seen.\n\nOut.", "Seen.\n\nOut."),
        ("Add *builder*\\s.", "Add builders."),
        ("A \\*star\\*, :class:`B`\\ s, ``\\*``.", "A *star*, `B`s, ``\\*``."),
        ("Use |name|.\n\n.. |name| replace:: The *Widget*", "Use The Widget."),
        (".. |n| replace:: The\n   Widget\n\nUse |n|, |m|, a|n|b.", "Use The Widget, |m|, a|n|b."),
        ("See |logo| it.\n\n.. |logo| image:: a.png\n   :alt: x", "See  it."),
        ("See :ref:`the\nguide <guide>` and `Py\n<https://p.org>`_.", "See the\nguide and Py."),
        ("It is **very\nbold**, ``a\nb``.", "It is very\nbold, ``a\nb``."),
        (".. |v| image:: 1\n.. a comment\n   of two lines\n\nText.", "Text."),
        (
            ".. code-block:: python\n   :linenos:\n\n   x = 1",
            ".. code-block:: python\n\n   x = 1",
        ),
    ],
)  # fmt: skip
def test_directives_and_roles_are_not_seen(text, read):
    """Sphinx reads them; a reader sees what it makes of them."""
    assert read_rst(text).text.strip() == read


@pytest.mark.parametrize(
    "text",
    [
        "Example::\n\n    raw :ref:`x` **y** name_\n",
        ".. code-block:: rst\n\n   .. note:: :ref:`x`\n",
        "2*3*4, x_y, name_ and ``**code** :ref:`x` ``.",
        ".. [1] A footnote.",
        "Title\n=====\n\nText.",
    ],
)
def test_code_and_text_that_look_like_markup_stay(text):
    """What a reader sees must not get lost."""
    assert read_rst(text).text == text


@given(st.lists(st.sampled_from(PARTS), max_size=12))
def test_what_is_seen_leads_into_the_file(parts):
    """Offsets are of use where each character has its own, in order."""
    text = "\n".join(parts)
    read = read_rst(text)
    offsets = [read.offset(place) for place in range(len(read.text))]

    assert offsets == sorted(offsets)
    assert all(offset < len(text) for offset in offsets)


def test_labels_change_no_chunk(tmp_path):
    """A site that gives its sections labels says what it said."""
    body = "".join(f"Part {n}\n------\n\n{f'Sentence {n} of it. ' * 14}\n\n" for n in range(9))
    labelled = body.replace("Part ", ".. _part:\n\nPart ")
    ids = []
    for text in (body, labelled):
        (tmp_path / "a.rst").write_text(text)
        [document] = read_documents([tmp_path])
        ids.append([chunk.chunk_id for chunk in chunk_document(document)])

    assert ids[0] == ids[1]


def test_power_is_no_digit_of_its_number():
    """10 with a raised 6 is not 106; the number of a footnote is no power."""
    text = "To 10\\ :sup:`6` in H\\ :sub:`2`\\ O, fees\\ :sup:`1`.\n"

    assert read_rst(text).text == "To 10^6 in H2O, fees1.\n"


def test_options_that_a_page_shows_are_read():
    """Captions and values are seen; what else a builder is told is not."""
    code = ".. code-block:: py\n   :linenos:\n   :caption: One\n\n   x = 1\n"
    data = ".. py:data:: T\n   :type: int\n   :value: 30\n   :no-index:\n\n   Its use.\n"

    assert read_rst(code).text == ".. code-block:: py\n   One\n\n   x = 1\n"
    assert read_rst(data).text == "T\n   type: int\n   value: 30\n\nIts use.\n"
