"""Quotes that say nothing to a reader."""

import pytest

from ragforge.stages.generate.gates.prose import no_prose


@pytest.mark.parametrize(
    ("quote", "kind"),
    [
        ("{* ../../docs_src/first_steps/tutorial001.py hl[3] *}", "an include"),
        ('--8<-- "a.md"\n--8<-- "b.md"', "an include"),
        (".. literalinclude:: ../examples/pool.py", "an include"),
        ("include::partials/limits.adoc[]", "an include"),
        ("[![Test](https://x.org/b.svg)](https://x.org) ![p](p.svg)", "a badge or an image"),
        ("![The pool of a client](img/pool.png)", "a badge or an image"),
        ("| --- | :---: |", "a table rule"),
        ("====  =======", "a table rule"),
        ("{ #pool-limits }", "an anchor"),
        ("[pool]: https://x.org/pool 'Pool limits'", "a link's address"),
        ("!!! note inline", "a marker of a box or tab"),
        ('=== "Pool limits"', "a marker of a box or tab"),
        (":::tip[Pool limits]", "a marker of a box or tab"),
        ("```python hl_lines='3'", "a fence"),
        (":maxdepth: 2", "a directive"),
        ("{% hint style='info' %}", "a directive"),
        ("<!-- pool limits are tested -->", "a comment"),
        ("%%pool limits%%", "a comment"),
        ("{{< include 'pool.md' >}}", "a directive"),
        ("{{ page.pool_limits }}", "a directive"),
        ("ifdef::pool[]", "a directive"),
        (".TH POOL 1 limits", "a directive"),
        ("[TOC]", "a directive"),
        ("include-code::./PoolLimits[tag=a]", "an include"),
        ("![[Pool limits]]", "an include"),
        (".. |pool| image:: limits.png", "a badge or an image"),
        ("[source,java]", "a marker of a box or tab"),
        (".. note::", "a marker of a box or tab"),
        ("<PoolLimits>\n</PoolLimits>", "a tag"),
    ],
)  # fmt: skip
def test_markup_is_no_proof(quote, kind):
    """It holds words, and states nothing."""
    assert no_prose(quote) == kind


@pytest.mark.parametrize(
    "quote",
    [
        "An idle connection is closed after five seconds.",
        "{* a.py *}\nAn idle connection is closed.",
        "limits = httpx.Limits(max_connections=10)",
        "--max-connections=10",
        "- five seconds",
        "| 443 | HTTPS |",
        "[see] the limits",
        "https://www.python-httpx.org/",
        ":param timeout: How long to wait for an answer, in seconds.",
        "x = a[0]",
        '<bean id="pool" class="Pool"/>',
        "Set {{ pool }} to the limits.",
        "[source] of limits",
        "?",
    ],
)
def test_text_code_and_cells_may_be_proof(quote):
    """Answers stand in all of them."""
    assert no_prose(quote) == ""


@pytest.mark.parametrize("quote", ['[1, 2]: {"grade": 3}', "[1]: See the guide about keys."])
def test_words_behind_a_bracket_are_text(quote):
    """A link's definition has an address, and a title in quotes at most."""
    assert no_prose(quote) == ""


@pytest.mark.parametrize(
    "quote",
    [
        "See the guide.",
        "see also: Limits and timeouts",
        "(For more details, see section 4.2 of the\nreference.)",
        "Please refer to the API reference.",
        "Learn more about limits",
        "Siehe auch das Handbuch.",
    ],
)
def test_a_sentence_that_only_says_where_to_read_on_is_no_proof(quote):
    """What is asked stands there, and not here."""
    assert no_prose(quote) == "a pointer elsewhere"


@pytest.mark.parametrize(
    "quote",
    [
        "See the guide: the limit is five.",
        "Read the file with `open()`.",
        "See the guide. The limit is five.",
        "Seed the generator with 7.",
        "Refer to a pool by its name where the limit of ten connections must hold for all of it.",
    ],
)
def test_a_sentence_that_says_more_may_be_proof(quote):
    """An instruction is an answer."""
    assert no_prose(quote) == ""
