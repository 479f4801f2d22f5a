"""Whether rows of labels show the words of the pairs that they name.

People grade what they read. A column that was sorted by itself in a spreadsheet puts their grades
beside the ids of other words.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ragforge.evaluating.formatting import visible
from ragforge.files.formats.label_rows import LabelRow
from ragforge.files.formats.review_sheet import sheet_text
from ragforge.files.text import shown
from ragforge.records import SampledPair, label_text_sha256
from ragforge.records.judgments import wording_digest
from ragforge.retrieval.object_fields import fold_text
from ragforge.scripts import reads_as_words

OTHER_QUESTION: Final = "question has other words since it was labelled"
OTHER_PASSAGE_SHOWN: Final = "the passage in the row is another than the pair's"
OTHER_QUESTION_SHOWN: Final = "the question in the row is another than the pair's"
_CUT_FROM: Final = 32_000
"""Characters from which on a passage may be the beginning of one: spreadsheets cut at 32,767."""

Texts = Mapping[str, str]
"""Texts of the set by their digest."""


def other_question(row: LabelRow, asked: str) -> str:
    """Return that a row is of other words than the question has; "" where it is not."""
    # Rows of others may call something else `query`.
    is_shown = row.is_exported and bool(row.query)
    is_other = is_shown and wording_digest(row.query) != wording_digest(visible(asked))
    if row.wording_sha256:
        is_of_now = row.wording_sha256 == wording_digest(asked)
        return (OTHER_QUESTION_SHOWN if is_other else "") if is_of_now else OTHER_QUESTION
    return OTHER_QUESTION if is_other else ""


def is_in_doubt(row: LabelRow, pair: SampledPair) -> bool:
    """Whether the text of a pair has to be looked up to tell what passage a row shows."""
    return bool(row.passage) and label_text_sha256(row.passage) != pair.text_sha256


def other_passage(row: LabelRow, pair: SampledPair, texts: Texts) -> str:
    """Return that a row shows another passage than that of its pair; "" where it does not.

    Blanks and case make no other passage. Other tools may cut a passage short or give it a
    heading, and call something of one word so. Of a text that is not in the set nothing is known.

    Args:
        row: Of a pair.
        pair: The pair.
        texts: Those of the pairs that are in doubt.
    """
    text = texts.get(pair.text_sha256)
    if text is None or not is_in_doubt(row, pair):
        return ""
    if row.is_exported:
        there, meant = (_words(of, str) for of in (row.passage, visible(text)))
        is_cut = len(row.passage) >= _CUT_FROM and meant.startswith(there)
        return "" if is_cut or there == meant else OTHER_PASSAGE_SHOWN
    there, meant = (_words(of, fold_text) for of in (row.passage, text))
    is_of = there in meant or meant in there or not reads_as_words(row.passage)
    return "" if is_of else OTHER_PASSAGE_SHOWN


def example_of(row: LabelRow, reason: str) -> str:
    """Return where a row that is left out stands, and what of it is amiss."""
    of = {OTHER_PASSAGE_SHOWN: row.passage, OTHER_QUESTION_SHOWN: row.query}
    return f"{row.where}: {shown(of.get(reason, row.grade))}"


def _words(text: str, fold: Callable[[str], str]) -> str:
    return " ".join(fold(sheet_text(text)).casefold().split())
