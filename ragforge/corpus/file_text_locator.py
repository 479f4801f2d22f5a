"""Where a retrieved text stands in files, whether it has their markup or is as a reader sees it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

from ragforge.corpus.documents import read_plain
from ragforge.corpus.formats import FORMATS, Format, suffix_of
from ragforge.corpus.text_locations import TextLocation, TextLocator
from ragforge.errors import DataError

_REFERENCE: Final = re.compile(r"\[([^\[\]]+)\]\[[^\[\]]*\]")
_WITH_MARKUP: Final = ("rst", "asciidoc", "man")
"""Formats that texts are read in, beside Markdown, where there are documents of them."""


class FileTextLocator:
    """Finds texts in documents, with the markup of their files or as they are read.

    Args:
        documents: Texts by id, as of `file_texts`.
    """

    def __init__(self, documents: Mapping[str, str]) -> None:
        self._locator = TextLocator(documents)
        forms = {FORMATS.get(suffix_of(doc_id.partition("#")[0])) for doc_id in documents}
        self._forms = ("markdown", *(form for form in _WITH_MARKUP if form in forms))

    def locate(
        self, text: str, *, doc_ids: Iterable[str] = (), near: int | None = None
    ) -> TextLocation | None:
        """Return where a text stands, as `TextLocator.locate` does; the likeliest of its readings.

        An index of the user's may hold the files as they are, with targets of links and anchors.
        """
        doc_ids = tuple(doc_ids)
        best = self._locator.locate(text, doc_ids=doc_ids, near=near)
        for read in self.readings(text):
            if best is not None and best.likeness == 1:
                break
            other = self._locator.locate(read, doc_ids=doc_ids, near=near)
            if other is not None and (best is None or other.likeness > best.likeness):
                best = other
        return best

    def readings(self, text: str) -> Iterator[str]:
        """Yield what a reader sees of a text in each format, where that is another one."""
        told = {text}
        pieces = [(form, text) for form in self._forms]
        # A piece may lack what its links refer to.
        pieces.append(("markdown", _REFERENCE.sub(r"\1", text)))
        for form, piece in pieces:
            try:
                read = read_plain(piece, cast("Format", form), "").text
            except DataError:
                continue
            if read not in told:
                told.add(read)
                yield read
