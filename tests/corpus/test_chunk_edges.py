import pytest

from ragforge.corpus.quality import cuts, edge_of
from ragforge.records import Chunk


def found(*texts, gap=1, path=()):
    """Return (number of the chunk, kind) of what is cut in chunks that follow each other."""
    edges, at = [], 10
    for number, text in enumerate(texts):
        chunk = Chunk(
            chunk_id=str(number), doc_id="a", text=text, heading_path=path,
            start=at, end=at + len(text),
        )  # fmt: skip
        edges.append(edge_of(chunk))
        at = chunk.end + gap
    return [(cut.edge.chunk_id, cut.kind) for cut in cuts(edges)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The fee is", "ten percent of the price."),
        ("It costs ten,", "twenty or more."),
        ("الرسوم هي", "عشرة في المئة"),
        ("**bold words", "and more** words."),
    ],
)
def test_sentence_in_two_chunks_is_found_in_both(one, other):
    """Neither half answers a question."""
    assert found(one, other) == [("0", "sentence_cut"), ("1", "sentence_cut")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The fee is ten.", "it may change."),
        ("The fee is ten!”", "or not."),
        ("第一句。", "第二句。"),
        ("A line of a poem", "Another line of it"),
        ("```\ncode\n```", "and text"),
    ],
)
def test_whole_sentences_are_not_found(one, other):
    """A report of false alarms is not read twice."""
    assert found(one, other) == []


def test_cut_inside_a_word_is_found_whatever_follows():
    """Chunkers that count characters cut anywhere."""
    assert found("知識は力", "である。", gap=0) == [("0", "sentence_cut"), ("1", "sentence_cut")]
    assert found("HTT", "PS is used.", gap=0) == [("0", "sentence_cut"), ("1", "sentence_cut")]


def test_paragraphs_are_no_cut():
    """What blank lines part are two thoughts."""
    assert found("A title without a stop", "and text", gap=2) == []


def test_overlap_hides_no_cut():
    """The second chunk still begins in the middle."""
    assert found("One thing and another thing", "and another thing.", gap=-17) == [
        ("0", "sentence_cut"), ("1", "sentence_cut"),
    ]  # fmt: skip


def test_rows_without_their_header_are_found():
    """Nobody knows what the cells mean."""
    table = "| a | b |\n|---|---|\n| 1 | 2 |"

    assert found(table, "| 3 | 4 |\n| 5 | 6 |") == [("1", "table_cut")]
    assert found("a | b\n1 | 2", "3 | 4") == [("1", "table_cut")]


def test_another_table_is_no_cut():
    """It has a header of its own."""
    table = "| a | b |\n|---|---|\n| 1 | 2 |"

    assert found(table, table) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Steps:\n1. open\n2. close", "3. wait"),
        ("- one\n  goes on", "- two"),
        ("You need:", "- a box"),
        ("Run this:", "```\ncode\n```"),
    ],
)
def test_list_in_two_chunks_is_found_in_the_first(one, other):
    """Half of the steps read like all of them."""
    assert found(one, other, gap=2) == [("0", "list_cut")]


def test_lists_of_two_sections_are_no_cut():
    """They only stand behind each other."""
    assert found("- one", "## Next\n\n- two", gap=2) == []


def test_fence_in_three_chunks_is_found_in_all():
    """Code is of no use in parts."""
    assert found("```\nimport x", "x.run()", "x.end()\n```", "Text.") == [
        ("0", "code_cut"), ("1", "code_cut"), ("2", "code_cut"),
    ]  # fmt: skip


def test_mark_of_a_fence_cut_in_two_spoils_its_neighbours_only():
    """Else all that follows would count as code."""
    assert found("Text.\n```", "a\n```\n\n```\nb\n```", "c\n```\nd\n```\n", "Text.") == [
        ("0", "code_cut"), ("1", "code_cut"),
    ]  # fmt: skip


def test_without_offsets_small_letters_tell():
    """Foreign chunks do not say where they stand."""
    texts = ["The fee is", "ten percent.", "A stop", "Another"]
    edges = [
        edge_of(Chunk(chunk_id=str(number), doc_id="a", text=text))
        for number, text in enumerate(texts)
    ]

    assert [cut.edge.chunk_id for cut in cuts(edges)] == ["0", "1"]
