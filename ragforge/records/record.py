"""What all records are, and the values that several of them hold."""

import base64
import operator
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Final, Literal, Self

from ragforge.deferred import hashlib
from ragforge.records.model import ConfigDict, Field, Model, model_validator

Grade = Annotated[int, Field(strict=True, ge=0, le=3)]
FailureKind = Literal["invalid", "refused", "truncated", "filtered", "error"]
JudgeKind = Literal["llm", "baseline", "human", "rule", "mock", "file"]
"""A mock is a test endpoint in the place of a model: what it says is made up."""
MOCK_FINGERPRINT = "mock"
"""What `ragforge mock` sends as `system_fingerprint`, by which its replies are known."""
NonEmpty = Annotated[str, Field(min_length=1)]

Stage = Literal[
    "generate", "check", "retrieve", "judge", "ask", "facts", "answer", "ground", "audit", "recheck"
]


class Record(Model):
    """Base of all records: immutable, unknown fields refused, NaN and infinity refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)


HiddenPart = tuple[Annotated[int, Field(ge=1)], int]


class Chunk(Record):
    """A passage of a document, the unit that is retrieved and judged."""

    chunk_id: NonEmpty
    doc_id: NonEmpty
    text: NonEmpty
    heading_path: tuple[str, ...] = ()
    """Titles of the sections around the chunk, outermost first."""
    start: Annotated[int, Field(ge=0)] = 0
    """Offset of the first character in the normalised text of the file, in code points."""
    end: Annotated[int, Field(ge=0)] = 0
    """Offset behind the last character; `file[start:end] == text` but for what is hidden. 0 where
    unknown."""
    hidden: Annotated[tuple[HiddenPart, ...], Field(exclude_if=operator.not_)] = ()
    """Markup between `start` and `end` that a reader does not see, and `text` does not have: its
    place in the text, and how many characters of the file are left out before that; -1 where a
    character stands at the same place of the file as the one before it, as in what a name stands
    for that is longer than the name."""

    @property
    def has_offsets(self) -> bool:
        """Whether it is known where each character of the text stands in the file."""
        left_out = sum(length for _, length in self.hidden)
        return self.end - self.start == len(self.text) + left_out

    def offset(self, place: int) -> int:
        """Return where in the file a character of the text stands; needs offsets."""
        return self.start + place + sum(length for at, length in self.hidden if at <= place)

    def end_offset(self, place: int) -> int:
        """Return where in the file `text[:place]` ends, before what is hidden there."""
        return self.offset(place - 1) + 1 if place else self.start

    def place(self, offset: int) -> int:
        """Return where in the text that begins which stands at an offset of the file or behind."""
        place = offset - self.start
        for at, length in self.hidden:
            if place < at:
                break
            place = max(at, place - length)
        return min(max(place, 0), len(self.text))

    @model_validator(mode="after")
    def _hides_in_order(self) -> Self:
        places = [0, *(at for at, _ in self.hidden), len(self.text)]
        if self.hidden and any(one >= other for one, other in pairwise(places)):
            raise ValueError("hidden: expected ascending places within the text")
        if any(length < -1 or not length for _, length in self.hidden):
            raise ValueError("hidden: expected lengths of 1 and more, or -1")
        return self


class Span(Record):
    """A stretch of a document: its text[start:end], in code points."""

    doc_id: NonEmpty
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]


_TEXT_ID: Final = re.compile(r"t_[a-z2-7]{16}(_[a-z2-7]{8})?")
_NO_TEXT: Final = "id_"


def text_id(text: str, place: str = "") -> str:
    """Return the id of a text that is no chunk of a set; blanks alone make no other text.

    Args:
        text: As it was retrieved.
        place: Which it is, where the documents hold it several times; "" where nothing tells.
    """
    own = f"t_{_digest(' '.join(text.split()))[:16]}"
    return with_place(own, place) if place else own


def with_place(own: str, place: str) -> str:
    """Return the id of a text of which nothing tells the place, at one that is known."""
    return f"{own}_{_digest(place)[:8]}"


def _digest(text: str) -> str:
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode().lower()


def is_text_id(chunk_id: str) -> bool:
    """Whether an id is one that `text_id` gives."""
    return _TEXT_ID.fullmatch(chunk_id) is not None


def id_in_set(name: str) -> str:
    """Return the id that a chunk or document has in a set, by that of the file it comes from.

    One that looks like that of a text is another: else its grades would be those of a text.
    """
    return f"{_NO_TEXT}{name}" if is_text_id(name) else name


def is_given_in_set(chunk_id: str) -> bool:
    """Whether an id is another one than in the file that it comes from; see `id_in_set`."""
    return chunk_id.startswith(_NO_TEXT) and is_text_id(chunk_id.removeprefix(_NO_TEXT))


def without_place(chunk_id: str) -> str:
    """Return the id of a text, whichever of its places an id is of; other ids as they are."""
    return chunk_id[: len("t_") + 16] if is_text_id(chunk_id) else chunk_id


class RetrievedText(Record):
    """A text that a retriever gave and that is no chunk of the set; one row a text, for all runs.

    A splitter of the user's cut it. It is judged and measured under an id that is made of the text,
    so that its grades are found again whatever id it comes with; and of its place, where documents
    hold the text several times and the hit told which.
    """

    chunk_id: NonEmpty
    text: NonEmpty
    places: tuple[Span, ...] = ()
    """Where it stands in the documents: several where they repeat it, none where it was not found
    there."""
    likeness: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of its letters, or of its place's, that both have; 1 where they are the same, and for
    one that stands nowhere."""
    doc_ids: tuple[NonEmpty, ...] = ()
    """Documents that it came with, where nothing of it was found in those of the set."""


def distinct_places(places: Iterable[Span]) -> tuple[Span, ...]:
    """Return the places of one text, sorted, of two that hold each other the shorter one.

    The longer one has the same words, with blanks or marks around them.
    """
    kept: list[Span] = []
    for span in sorted(places, key=lambda span: (span.doc_id, span.end - span.start, span.start)):
        if not any(
            span.doc_id == each.doc_id and span.start <= each.start and each.end <= span.end
            for each in kept
        ):
            kept.append(span)
    return tuple(sorted(kept, key=lambda span: (span.doc_id, span.start, span.end)))


class Provenance(Record):
    """Who made a record: enough to tell whether two records are comparable."""

    kind: JudgeKind
    model: str = ""
    prompt: str = ""
    prompt_sha256: str = ""
    call_key: str = ""
    """Key of the reply in the call store; "" where no call was made, or several were."""
    protocol: str = ""
    """How the model was asked where it was not by one call with one reply, such as "votes 5", and
    with which fields of an extra body. Of people, how their grades came in: "sample NAME" of a
    calibration, "file NAME" with queries."""


class Lineage(Provenance):
    """Where a query comes from: who wrote it, as what, and after which calls."""

    seed: int | None = None
    """Of the plan; None where there was none."""
    slot: str = ""
    """Of the plan, see `Slot`; "" where there was none."""
    call_keys: tuple[str, ...] = ()
    """Keys of the replies that checked it, sorted."""


class Failure(Record):
    """A unit of work that gave no result. Never a value: the unit stays open."""

    what: Stage
    key: NonEmpty
    """The ids of the unit: `query_id`, `query_id/chunk_id`, `run/query_id` or `chunk_id`."""
    kind: FailureKind
    message: str
    raw: str = ""
    """The model's reply as it came."""
    call_keys: tuple[str, ...] = ()
    """Keys of the stored replies that were no use; forgotten when failed units are asked again."""
