import pytest

from ragforge.corpus.quality import EXAMPLES, KINDS, Inspector, Sizes
from ragforge.records import Chunk

FINE = "A restocking fee is a charge of ten percent that is due for opened furniture number {}."


def chunk(number, text, doc_id="a.md", **fields):
    return Chunk(chunk_id=f"c{number:03}", doc_id=doc_id, text=text, **fields)


def inspected(*chunks):
    inspector = Inspector(2000)
    for item in chunks:
        inspector.add(item)
    return inspector.quality()


def counts(quality):
    return {found.kind: found.n_chunks for found in quality.found if found.n_chunks}


def test_each_kind_is_found():
    """A kind that is never found would read as a clean corpus."""
    number = iter(range(100))
    words = " ".join(f"w{n}" for n in range(40))
    chunks = [
        chunk(next(number), "Too small.", "small"),
        chunk(next(number), "word " * 1000, "large"),
        chunk(next(number), FINE.format(1)[:-1] + " and", "sentence"),
        chunk(next(number), "then it goes on for more words than a small chunk has.", "sentence"),
        chunk(next(number), "| number | fee |\n|---|---|\n| 1 | 2 |", "table"),
        chunk(next(number), "| 3 | 4 |", "table"),
        chunk(next(number), "- one", "list"),
        chunk(next(number), "- two", "list"),
        chunk(next(number), "```\ncode", "code"),
        chunk(next(number), "# Heading", "heading"),
        chunk(next(number), FINE.format(2), "one"),
        chunk(next(number), FINE.format(2), "two"),
        chunk(next(number), words, "near"),
        chunk(next(number), f"{words} more", "nearer"),
        chunk(next(number), "Version one of the text.", "v1/x", heading_path=("X",)),
        chunk(next(number), "Another, second text.", "v2/x", heading_path=("X",)),
        *(chunk(next(number), f"Page {n}.\n\nWas this page helpful?", f"p{n}") for n in range(9)),
        chunk(next(number), "lost \ufffd\ufffd characters", "unreadable"),
    ]  # fmt: skip

    assert counts(inspected(*chunks)).keys() == set(KINDS)


def test_good_chunks_have_no_finding():
    """A report of false alarms is not read twice."""
    quality = inspected(*(chunk(n, FINE.format("x" * n), f"d{n}") for n in range(1, 9)))

    assert (counts(quality), quality.n_flagged, quality.n_documents) == ({}, 0, 8)


def test_order_of_the_chunks_does_not_change_what_is_cut():
    """Chunk files are sorted by id, not by place."""
    one = chunk(9, "The fee that is due is", start=0, end=22)
    other = chunk(1, "ten percent.", start=23, end=35)

    assert counts(inspected(other, one))["sentence_cut"] == 2


def test_chunk_with_two_faults_is_counted_once():
    """The share of bad chunks must not go beyond all."""
    quality = inspected(chunk(1, "# One"))

    assert (quality.n_flagged, counts(quality)) == (1, {"too_small": 1, "heading_alone": 1})


def test_few_examples_stand_for_many():
    """A report has to fit on a screen."""
    quality = inspected(*(chunk(n, f"Small {n}.", f"d{n}") for n in range(50)))
    [small] = [found for found in quality.found if found.kind == "too_small"]

    assert (small.n_chunks, len(small.examples)) == (50, EXAMPLES)


def test_examples_do_not_hang_on_the_order():
    """Same inputs, same bytes."""
    chunks = [chunk(n, f"Small {n}.", f"d{n}") for n in range(50)]

    assert inspected(*chunks) == inspected(*reversed(chunks))


def test_sizes_are_quartiles():
    """The least and the most hide what the rest is like."""
    quality = inspected(*(chunk(n, "x" * n, f"d{n}") for n in range(1, 6)))

    assert quality.chars == Sizes(1, 2, 3, 4, 5)


@pytest.mark.slow
@pytest.mark.parametrize("n_copies", [10_000])
def test_corpus_of_identical_documents_is_told_as_such(n_copies):
    """It is what a crawler with a cookie wall brings home."""
    text = FINE.format(1)

    quality = inspected(*(chunk(n, text, f"d{n}") for n in range(n_copies)))

    assert counts(quality) == {"duplicate": n_copies - 1, "boilerplate": n_copies}


def test_nothing_has_no_quality():
    """There are no quartiles of nothing."""
    assert Inspector(2000).quality() is None
