"""The words that rows give beside ids of passages and questions, by which a wrong id is known."""

from dataclasses import field

from ragforge.deferred import dataclass
from ragforge.files.field_names import QUERY_OF_PAIR, TEXT
from ragforge.files.row import Row
from ragforge.scripts import reads_as_words


@dataclass(frozen=True, slots=True)
class NamedText:
    """What a row says that a passage reads, beside the id of its chunk or document."""

    name: str
    text: str
    where: str = field(default="", compare=False)
    """Where the row stands."""


def question_beside(row: Row, query_id: str) -> tuple[NamedText, ...]:
    """Return the question that a row has beside its id; () where it has none."""
    words = row.get(QUERY_OF_PAIR)
    if not isinstance(words, str) or words == query_id or not reads_as_words(words):
        return ()
    return (NamedText(query_id, words, row.where),)


def text_beside(row: Row, name: str, question: object = None) -> tuple[NamedText, ...]:
    """Return the text of a passage that a row has beside its id; () where it has none.

    A number, a name or a title of one word is none.

    Args:
        row: About a passage, or about a query with one.
        name: The id of the passage.
        question: What the row asks, which may stand under a name that texts have too.
    """
    for column in TEXT.accepted:
        text = row.named(column)
        if isinstance(text, str) and text not in (question, name) and reads_as_words(text):
            return (NamedText(name, text, row.where),)
    return ()
