"""Jupyter notebooks as documents."""

import json

import pytest

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.corpus.formats import UnreadableError
from ragforge.corpus.notebook import read_notebook


def notebook(*cells, **more):
    return {"cells": [*cells], "metadata": {"language_info": {"name": "python"}}, **more}


def markdown(*lines):
    return {"cell_type": "markdown", "metadata": {}, "source": [*lines]}


def code(*lines, outputs=()):
    return {"cell_type": "code", "metadata": {}, "outputs": [*outputs], "source": [*lines]}


def test_a_fence_that_a_cell_leaves_open_ends_with_it():
    """All behind it would change places: code would be text, and text code."""
    cells = notebook(markdown("```sh\n", "ls"), code("# no heading"), markdown("~~~\n", "a\n"))

    read = read_notebook(json.dumps(cells))

    assert read.text == "```sh\nls\n```\n\n```python\n# no heading\n```\n\n~~~\na\n~~~"


def test_a_fence_within_an_item_of_a_list_is_closed_once(tmp_path):
    """Its end was taken for a beginning, and prose behind it for code."""
    cell = markdown("1. ```bash\n", "   pip install x\n", "   ```\n", "2. Go on.")

    read = read_notebook(json.dumps(notebook(cell, markdown("Some *text*"))))

    assert read.text.count("```") == 2


@pytest.mark.parametrize("indent", [None, 1])
def test_cells_become_text_and_fences(indent):
    """That is what a reader of the notebook sees."""
    cells = notebook(
        markdown("# Pandas\n", "\n", 'Say "hi" \u00e9 \U0001f600.'),
        code("x = 1\n", "print(x)", outputs=[{"text": ["gone"]}]),
        {"cell_type": "raw", "source": ["gone"]},
        markdown(),
        markdown("Done."),
    )

    read = read_notebook(json.dumps(cells, indent=indent))

    assert read.text == (
        '# Pandas\n\nSay "hi" \u00e9 \U0001f600.\n\n```python\nx = 1\nprint(x)\n```\n\nDone.'
    )


@pytest.mark.parametrize(
    ("lines", "fence"),
    [
        (['x = """\n', "```\n", '"""'], "~~~"),
        (['x = """\n', "````\n", "~~~\n", '"""\n'], "`````"),
        (["x = '```'"], "```"),
    ],
)
def test_fences_in_code_do_not_end_it(tmp_path, lines, fence):
    """The text cells behind would be read as code, with all their markup."""
    cells = notebook(code(*lines), markdown("# Next\n", "\n", "See [it](https://x.org) now."))
    (tmp_path / "a.ipynb").write_text(json.dumps(cells))
    [document] = read_documents([tmp_path])

    text = "\n\n".join(chunk.text for chunk in chunk_document(document))

    inside = "".join(lines).rstrip("\n")
    assert text == f"{fence}python\n{inside}\n{fence}\n\n# Next\n\nSee it now."


def test_chunks_lead_into_the_file(tmp_path):
    """A person who checks a quote opens the file."""
    text = json.dumps(notebook(markdown("# A { #a }\n", "\n", "See [it](https://x.org) now.")))
    (tmp_path / "a.ipynb").write_text(text)
    [document] = read_documents([tmp_path])

    [chunk] = chunk_document(document)

    assert (chunk.text, chunk.heading_path) == ("# A\n\nSee it now.", ("A",))
    at = chunk.text.index("See")
    assert (
        text[chunk.offset(at) : chunk.end_offset(len(chunk.text))] == "See [it](https://x.org) now."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "without cells"),
        ('{"cells": []}', "without cells"),
        ("[1, 2]", "without cells"),
        ('{"cells": 3}', "without cells"),
        ('{"cells": [', "no notebook"),
        ("# Not JSON", "no notebook"),
        ("[" * 100_000, "no notebook"),
    ],
)
def test_what_is_no_notebook_is_passed_over(text, said):
    """The other documents can be read without it."""
    with pytest.raises(UnreadableError, match=said):
        read_notebook(text)


@pytest.mark.parametrize("cell", [3, {}, {"cell_type": "markdown", "source": 3}, markdown(1, None)])
def test_broken_cells_are_left_out(cell):
    """What is there can be read."""
    assert read_notebook(json.dumps(notebook(cell, markdown("Text.")))).text == "Text."
