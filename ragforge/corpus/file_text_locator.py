"""Where a retrieved text stands in files, whether it has their markup or is as a reader sees it."""

from collections.abc import Iterable, Mapping

from ragforge.corpus.markdown_reading import read_markdown
from ragforge.corpus.text_locations import TextLocation, TextLocator


class FileTextLocator:
    """Finds texts in documents, with the markup of their files or as they are read.

    Args:
        documents: Texts by id, as of `file_texts`.
    """

    def __init__(self, documents: Mapping[str, str]) -> None:
        self._locator = TextLocator(documents)

    def locate(
        self, text: str, *, doc_ids: Iterable[str] = (), near: int | None = None
    ) -> TextLocation | None:
        """Return where a text stands, as `TextLocator.locate` does; the likelier of its readings.

        An index of the user's may hold the files as they are, with targets of links and anchors.
        """
        doc_ids = tuple(doc_ids)
        found = self._locator.locate(text, doc_ids=doc_ids, near=near)
        if found is not None and found.likeness == 1:
            return found
        read = read_markdown(text).text
        other = None if read == text else self._locator.locate(read, doc_ids=doc_ids, near=near)
        if other is None or (found is not None and found.likeness >= other.likeness):
            return found
        return other
