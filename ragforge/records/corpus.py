"""Chunks."""

from typing import Annotated

from pydantic import Field

from ragforge.records.record import NonEmpty, Record


class Chunk(Record):
    """A passage of a document, the unit that is retrieved and judged."""

    chunk_id: NonEmpty
    doc_id: NonEmpty
    text: NonEmpty
    heading_path: tuple[str, ...] = ()
    """Titles of the sections around the chunk, outermost first."""
    start: Annotated[int, Field(ge=0)] = 0
    """Offset of the first character in the normalised document text, in code points."""
    end: Annotated[int, Field(ge=0)] = 0
    """Offset behind the last character; `document[start:end] == text`. 0 where unknown."""
