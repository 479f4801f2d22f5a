"""The details of a query: rankings, grades, reasons of the judge, texts of chunks, answers."""

import json
import re
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple, TypeAlias

from ragforge.deferred import dataclass, tempfile
from ragforge.errors import DataError
from ragforge.evaluating.answers.records import SystemRecords
from ragforge.evaluating.evaluation_data import EvaluationData
from ragforge.evaluating.formatting import Excerpt, excerpt, visible
from ragforge.evaluating.runs import DEPTH, MeasuredRun, Task
from ragforge.records import Chunk, Evidence, Judgment, Query

CHUNK_CHARS: Final = 500
_BEFORE: Final = 80
"""Characters shown before a quote that is farther down than a chunk is shown."""
_NEEDLE: Final = 24
"""Characters by which a quote is known whose end is not shown."""
_LONGEST: Final = 2000

_REPLY_CHARS: Final = 800
_AT_ONCE: Final = 500
MISSED: Final = 5
"""Relevant chunks shown that were not in the top ranks."""
_QUOTES: Final = 5
_TEXT_CHARS: Final = 1500
_QUOTE_CHARS: Final = 600
_REASON_CHARS: Final = 400
_NOTHING: Final = Excerpt("", 0)
ChunkState: TypeAlias = Literal["graded", "failed", "listed", "unlisted", "unjudged"]
"""Graded; the judge gave no grade; relevant by a list without a grade; not relevant, as labels are
complete; nobody looked."""
NO_GRADE_SIGNS: Final[Mapping[str, str]] = {
    "unjudged": "?",
    "failed": "!",
    "listed": "+",
    "unlisted": "-",
}
"""What is shown in the place of a grade."""
NO_GRADE_MEANINGS: Final[Mapping[str, str]] = {
    "unjudged": "not judged",
    "failed": "judging failed",
    "listed": "listed as relevant, without a grade",
    "unlisted": "not listed, so not relevant",
}


@dataclass(frozen=True, slots=True)
class ChunkStart:
    """An excerpt of a chunk: its start, or the text around a quote farther down."""

    doc_id: str
    heading: str
    text: Excerpt
    offset: int = 0
    """Characters left out before the text."""

    @property
    def cut_note(self) -> str:
        """What was cut, in words; "" where nothing was."""
        if not self.offset:
            return self.text.cut_note
        first, last = self.offset + 1, self.offset + len(self.text.text)
        return f"characters {first:,} to {last:,} of {self.text.length:,}"


class Span(NamedTuple):
    """Part of a text, in characters, the end left out."""

    start: int
    end: int


def chunk_start(chunk: Chunk, quotes: Iterable[str] = ()) -> ChunkStart:
    """Return as much of a chunk as is shown.

    Args:
        chunk: The chunk.
        quotes: What is to be seen in it; the first that is found decides.
    """
    text = chunk.text
    offset = 0
    if len(text) > CHUNK_CHARS:
        quoted = next((span for quote in quotes if (span := _find(text, quote))), None)
        if quoted is not None and quoted.end > CHUNK_CHARS:
            offset = max(0, min(quoted.start - _BEFORE, len(text) - CHUNK_CHARS))
    part = Excerpt(text[offset : offset + CHUNK_CHARS], len(text))
    return ChunkStart(chunk.doc_id, " / ".join(chunk.heading_path), part, offset)


class SpooledStarts(Mapping[str, ChunkStart]):
    """Starts by id: some in memory, and of a million others where they are in a temporary file.

    Args:
        most: How many are in memory.
    """

    def __init__(self, most: int = 30_000) -> None:
        self._most = most
        self._at: dict[str, ChunkStart | int] = {}
        self._file: IO[bytes] | None = None

    def put(self, key: str, start: ChunkStart) -> None:
        """Keep a start, in the place of one that is there."""
        if key in self._at or len(self._at) < self._most:
            self._at[key] = start
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # closed when this is dropped
            weakref.finalize(self, self._file.close)
        text = start.text
        row = [start.doc_id, start.heading, text.text, text.length, start.offset]
        self._at[key] = self._file.seek(0, 2)
        self._file.write(f"{json.dumps(row)}\n".encode())

    def __getitem__(self, key: str) -> ChunkStart:
        found = self._at[key]
        if isinstance(found, ChunkStart):
            return found
        assert self._file is not None
        self._file.seek(found)
        doc_id, heading, text, length, offset = json.loads(self._file.readline())
        return ChunkStart(doc_id, heading, Excerpt(text, length), offset)

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)


class ChunkStarts:
    """Collects the starts of what is shown: chunks, and documents by their first chunk.

    Args:
        shown: Ids, with the quotes to be seen in each.
    """

    def __init__(self, quotes_of: Mapping[str, Sequence[str]]) -> None:
        self._chunk_detail = quotes_of
        self._starts = SpooledStarts()
        self._chunks: set[str] = set()
        self._firsts: dict[str, int] = {}

    def take(self, chunk: Chunk) -> None:
        """Take the next chunk of the corpus; most are of no account."""
        if chunk.chunk_id in self._chunk_detail:
            self._chunks.add(chunk.chunk_id)
            start = chunk_start(chunk, self._chunk_detail[chunk.chunk_id])
            self._starts.put(chunk.chunk_id, start)
        if chunk.doc_id in self._chunk_detail and chunk.doc_id not in self._chunks:
            first = self._firsts.get(chunk.doc_id)
            if first is None or chunk.start < first:
                self._firsts[chunk.doc_id] = chunk.start
                self._starts.put(chunk.doc_id, chunk_start(chunk))

    @property
    def has_all(self) -> bool:
        """Whether nothing is left to be found; a document may have an earlier chunk."""
        return len(self._chunks) == len(self._chunk_detail)

    def starts(self) -> Mapping[str, ChunkStart]:
        """Return the starts by id; an id that is of a chunk is that of no document."""
        return self._starts


def spans(text: str, quotes: Sequence[str]) -> tuple[Span, ...]:
    """Return where quotes stand in a shown text, in order and apart from one another."""
    # Most quotes stand in few of the chunks that they are looked for in.
    likely = [quote for quote in quotes if _longest_word(quote) in text]
    standing = sorted(span for quote in likely if (span := _find(text, quote) or _cut(text, quote)))
    joined: list[Span] = []
    for span in standing:
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return tuple(joined)


def visible_pieces(text: str, marked: Sequence[Span]) -> Iterator[str]:
    """Yield the text in pieces, plain and marked ones in turn, hidden characters visible."""
    at = 0
    for span in marked:
        yield visible(text[at : span.start])
        yield visible(text[span.start : span.end])
        at = span.end
    yield visible(text[at:])


def _find(text: str, quote: str) -> Span | None:
    """Return where a quote stands, however its words are spaced."""
    words = _words(quote)
    if not words:
        return None
    at = text.find(quote)
    if at >= 0:
        return Span(at, at + len(quote))
    if any(word not in text for word in words):
        return None
    match = re.search(r"\s+".join(map(re.escape, words)), text)
    return Span(*match.span()) if match else None


@lru_cache(maxsize=64)
def _words(quote: str) -> tuple[str, ...]:
    """Return the words of a quote, which is looked for in many chunks in turn."""
    return tuple(quote[:_LONGEST].split())


@lru_cache(maxsize=64)
def _longest_word(quote: str) -> str:
    """Return the longest word in the beginning of a quote, which stands wherever the quote does."""
    return max(quote[:_NEEDLE].split(), key=len, default="")


def _cut(text: str, quote: str) -> Span | None:
    """Return where a quote begins that goes on beyond the shown text."""
    at = text.find(quote[:_NEEDLE]) if len(quote) >= _NEEDLE else -1
    if at >= 0 and quote.startswith(text[at:]):
        return Span(at, len(text))
    return None


def reply_key(judgment: Judgment) -> str:
    """Return the key of the reply that a grade rests on, the first of several; "" without one."""
    own = judgment.provenance.call_key if judgment.provenance else ""
    if own or not judgment.votes:
        return own
    return next((vote.call_key for vote in judgment.votes if vote.call_key), "")


def stored_replies(path: Path, call_keys: Collection[str]) -> dict[str, Excerpt]:
    """Return the starts of replies by key; those that are not there any more are left out.

    Args:
        path: The call store; it is read only, and may be absent or damaged.
        call_keys: Which replies.
    """
    from ragforge.llm.store.sqlite_file import reading

    replies: dict[str, Excerpt] = {}
    if not call_keys:
        return replies
    keys = iter(sorted(call_keys))
    try:
        with reading(path) as connection:
            while some := list(islice(keys, _AT_ONCE)):
                marks = ",".join("?" * len(some))
                rows = connection.execute(
                    f"SELECT key, reply, sha256 FROM calls WHERE key IN ({marks})",  # noqa: S608  # marks only
                    some,
                )
                replies |= {
                    key: text for key, *row in rows if (text := _text(key, *row)) is not None
                }
    except DataError:
        return replies
    return replies


def _text(key: str, reply: object, sha256: object) -> Excerpt | None:
    from ragforge.llm.store.sqlite_file import stored_reply

    stored = stored_reply(key, reply, sha256)
    return None if stored is None else excerpt(stored.text, _REPLY_CHARS)


class ChunkDetail(NamedTuple):
    """A chunk that a run retrieved, or should have, with what its judge said."""

    chunk_id: str
    grade: int | None
    state: ChunkState
    source: str
    """Where the grade is from; "" without one."""
    reasoning: Excerpt
    call_key: str
    """Of the judge's reply; "" where none is known."""
    quotes: tuple[str, ...]
    """The evidence to be seen in its text."""


@dataclass(frozen=True, slots=True)
class RunDetail:
    """What a run made of a query."""

    name: str
    n_retrieved: int
    top: tuple[str, ...]
    """Chunk ids, best first."""
    missed: tuple[str, ...]
    """Relevant chunks that are not in the top ranks, best grade first."""
    n_missed: int
    ranks: dict[str, int]
    """Of the missed ones that were retrieved after all."""


@dataclass(frozen=True, slots=True)
class AnswerDetail:
    """What a system answered."""

    system: str
    answer: Excerpt | None
    """None where there is no answer."""
    verdict: str
    """"" where it has no grade."""
    has_hallucination: bool | None
    explanation: Excerpt


@dataclass(frozen=True, slots=True)
class QueryDetail:
    """One query, opened."""

    query_id: str
    text: Excerpt
    answerable: bool
    expected_answer: Excerpt | None
    evidence: tuple[Excerpt, ...]
    chunks: dict[str, ChunkDetail]
    """Every chunk that any run shows."""
    runs: tuple[RunDetail, ...]
    answers: tuple[AnswerDetail, ...]


def query_detail(records: EvaluationData, query_id: str) -> QueryDetail:
    """Return the details of a query, without texts of chunks and replies (see `Texts`)."""
    query, judged = records.queries[query_id], records.settled.judgments(query_id)
    runs = _runs(records, query_id)
    wanted = _shown(runs)
    answer = query.expected_answer

    def unlabelled(chunk_id: str) -> ChunkState:
        return "unjudged" if records.task.leaves_open(chunk_id) else "unlisted"

    return QueryDetail(
        query_id=query_id,
        text=excerpt(query.query, _TEXT_CHARS),
        answerable=query.answerable,
        expected_answer=None if answer is None else excerpt(answer, _TEXT_CHARS),
        evidence=tuple(excerpt(item.quote, _QUOTE_CHARS) for item in query.evidence[:_QUOTES]),
        chunks={
            item: _chunk_detail(item, judged.get(item), query, unlabelled(item)) for item in wanted
        },
        runs=runs,
        answers=tuple(filter(None, map(partial(_answer, query_id), records.systems))),
    )


def _runs(records: EvaluationData, query_id: str) -> tuple[RunDetail, ...]:
    of_all = records.task
    relevant = of_all.relevant_in(query_id)
    return tuple(
        _run(run, query_id, task, relevant if task is of_all else task.relevant_in(query_id))
        for run in records.runs
        for task in (run.cut_task(of_all),)
    )


def _shown(runs: Iterable[RunDetail]) -> dict[str, None]:
    """Return the chunks that runs show, in order."""
    return dict.fromkeys(item for run in runs for item in (*run.top, *run.missed))


def _run(run: MeasuredRun, query_id: str, task: Task, relevant: Collection[str]) -> RunDetail:
    ranked = run.ranked.get(query_id, ())
    top, below = ranked[:DEPTH], ranked[DEPTH:]
    missed = [chunk_id for chunk_id in relevant if chunk_id not in top]
    if len(missed) > 1:
        grades = task.qrels.get(query_id, {})
        missed.sort(key=lambda chunk_id: (-(grades.get(chunk_id) or 0), chunk_id))
    listed = tuple(missed[:MISSED])
    ranks = {item: DEPTH + 1 + below.index(item) for item in listed if item in below}
    return RunDetail(run.name, len(ranked), top, listed, len(missed), ranks)


def _chunk_detail(
    chunk_id: str, judgment: Judgment | None, query: Query, unlabelled: ChunkState
) -> ChunkDetail:
    quotes = _quotes(chunk_id, judgment.evidence if judgment else "", query)
    if judgment is None:
        return ChunkDetail(chunk_id, None, unlabelled, "", _NOTHING, "", quotes)
    return ChunkDetail(
        chunk_id=chunk_id,
        grade=judgment.grade,
        state=_state(judgment),
        source=judgment.source,
        reasoning=excerpt(judgment.reasoning, _REASON_CHARS),
        call_key=reply_key(judgment),
        quotes=quotes,
    )


def _quotes(chunk_id: str, judges: str, query: Query) -> tuple[str, ...]:
    """Return the evidence to be seen in a chunk: what its judge quotes, "" for nothing, first."""
    evidence: Sequence[Evidence] = query.evidence
    if len(evidence) > 1:
        # Where chunks overlap, or were cut again, the quote of another chunk may stand in this one.
        evidence = sorted(evidence, key=lambda item: item.chunk_id != chunk_id)
    quotes = [item.quote for item in evidence]
    if judges:
        quotes.insert(0, judges)
    return tuple(dict.fromkeys(quotes[:_QUOTES]))


def _state(judgment: Judgment) -> ChunkState:
    if judgment.grade is not None:
        return "graded"
    return "failed" if judgment.is_failed else "listed"


def _answer(query_id: str, system: SystemRecords) -> AnswerDetail | None:
    answer, grade = system.answers.get(query_id), system.grades.get(query_id)
    if answer is None and grade is None:
        return None
    return AnswerDetail(
        system=system.system,
        answer=None if answer is None else excerpt(answer.answer, _TEXT_CHARS),
        verdict=(grade.verdict or "").replace("_", " ") if grade else "",
        has_hallucination=grade.has_hallucination if grade else None,
        explanation=excerpt(grade.explanation if grade else "", _REASON_CHARS),
    )


@dataclass(frozen=True, slots=True)
class Texts:
    """The long texts that queries share: kept for those that are shown, and no others."""

    starts: Mapping[str, ChunkStart]
    """By chunk."""
    replies: Mapping[str, Excerpt]
    """By call key."""


@dataclass(frozen=True, slots=True)
class WantedTexts:
    """The texts that some queries need."""

    chunk_quotes: dict[str, tuple[str, ...]]
    """Chunk id to the quotes to be seen in it."""
    reach: int
    """How many of the first queries get all their texts."""


def wanted_texts(
    records: EvaluationData, query_ids: Sequence[str], most: int, always: Iterable[str]
) -> WantedTexts:
    """Return the texts of the first queries, until there are enough.

    Args:
        records: Where they are from.
        query_ids: Queries in order.
        most: Chunks after which no further query is looked at; a fifth as many queries are looked
            at, however many chunks they share.
        always: Queries whose texts are wanted in any case.
    """
    quotes: dict[str, tuple[str, ...]] = {}

    def take(query_id: str) -> None:
        query, judges = records.queries[query_id], records.settled.quotes(query_id)
        for chunk_id in _shown(_runs(records, query_id)):
            known = quotes.get(chunk_id, ())
            if len(known) < _QUOTES:
                own = _quotes(chunk_id, judges.get(chunk_id, ""), query)
                quotes[chunk_id] = (*known, *own)[:_QUOTES]

    reach = 0
    while reach < min(len(query_ids), most // 5) and len(quotes) < most:
        take(query_ids[reach])
        reach += 1
    for query_id in always:
        take(query_id)
    return WantedTexts(quotes, reach)
