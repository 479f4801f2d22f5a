"""The judgments of a set in columns: a few bytes each, where an object takes hundreds.

What many judgments say alike (the grade, its source, who gave it) is one `Grading`. What each says
in words stays in the file, and is read for the queries that somebody opens.
"""

import os
import re
import threading
import weakref
from array import array
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import compress, pairwise, starmap
from pathlib import Path
from sys import intern
from typing import IO, Final, NamedTuple, TypeVar

from ragforge.deferred import pattern
from ragforge.errors import DataError
from ragforge.files.record_files import read_records
from ragforge.files.set.sorted_records import key_of
from ragforge.records import Judgment, is_text_id
from ragforge.records.judgments import Grading, grading_of
from ragforge.records.model import pydantic

T = TypeVar("T")
_Kind = tuple[bytes | None, ...]
"""The parts of a line that make its grading, as they are written."""

_TEXT: Final = rb'"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt])*+"'
_AS_WRITTEN: Final = pattern(
    rb"""
    \{"query_id":"([^"\\\x00-\x1f]++)","chunk_id":"([^"\\\x00-\x1f]++)",
    ((?:"level":"document",)?+"grade":(?:null|[0-3])),"contains_answer":(?:null|true|false),
    "evidence":TEXT,"reasoning":TEXT,("source":"[a-z]++","failure":(?:null|"[a-z]++")),
    "grade_mean":(?:null|[0-2](?:\.[0-9]++)?+|3(?:\.0++)?+),
    "entropy_bits":(?:null|[01](?:\.[0-9]++)?+|2(?:\.0++)?+),
    "votes":\[\],"flags":\[\],"copied_from":TEXT,
    ((?:"relevant":(?:true|false),)?+
    "provenance":(?:null|\{"kind":"[a-z]++","model":TEXT,"prompt":TEXT,"prompt_sha256":TEXT))
    (?:,"call_key":TEXT((?:,"protocol":TEXT)?+)\})?+\}[\x20\t\r\n]*+
    """.replace(b"TEXT", _TEXT),
    re.VERBOSE,
)
"""How ragforge writes a judgment. The groups are its pair and its `_Kind`: of each kind, the first
line is read in full, as is every line of another form."""

_QUOTES_NOTHING: Final = b'"evidence":"","reasoning":"'


class GradedPair(NamedTuple):
    """A query and a chunk with what is known of them, words left out."""

    query_id: str
    chunk_id: str
    grading: Grading


class JudgmentTable:
    """The judgments of a set, in the order of their file, those of a query together.

    Iterating yields the grading of each.

    Attributes:
        gradings: All that occur in the file.
    """

    def __init__(self, columns: "_Columns | None" = None, at: dict[str, int] | None = None) -> None:
        self._columns = columns or _Columns()
        self._at = self._columns.at if at is None else at
        self.gradings: Sequence[Grading] = self._columns.gradings

    def __len__(self) -> int:
        return sum(rows.stop - rows.start for rows in map(self._rows, self._at))

    def __iter__(self) -> Iterator[Grading]:
        for rows in map(self._rows, self._at):
            yield from map(self.gradings.__getitem__, self._columns.given[rows])

    @property
    def query_ids(self) -> Collection[str]:
        """The queries with judgments."""
        return self._at.keys()

    def of_queries(self, query_ids: Collection[str]) -> "JudgmentTable":
        """Return the judgments of some queries."""
        at = {key: place for key, place in self._at.items() if key in query_ids}
        return JudgmentTable(self._columns, at)

    def counts(self) -> Counter[Grading]:
        """Return how often each grading was given."""
        counts = Counter[int]()
        for rows in map(self._rows, self._at):
            counts.update(self._columns.given[rows])
        return Counter({self.gradings[number]: n for number, n in counts.items()})

    def counts_of(self, counted: Callable[[str, str], bool]) -> Counter[Grading]:
        """Return how often each grading was given to some of the pairs.

        Args:
            counted: Whether the pair of a query and a chunk is one of them, by their ids.
        """
        columns, counts = self._columns, Counter[int]()
        for query_id in self._at:
            rows = self._rows(query_id)
            of_ids = (columns.chunk_ids[chunk] for chunk in columns.chunks[rows])
            is_counted = (counted(query_id, chunk_id) for chunk_id in of_ids)
            counts.update(compress(columns.given[rows], is_counted))
        return Counter({self.gradings[number]: n for number, n in counts.items()})

    @property
    def has_texts(self) -> bool:
        """Whether texts are judged that are no chunks of the set, be it for other queries."""
        return self._columns.has_texts

    @property
    def repeating(self) -> list[str]:
        """The queries with quotes that people graded at several places of a document."""
        return [query_id for query_id in self._at if query_id in self._columns.repeating]

    def pairs(self, wanted: Callable[[Grading], bool]) -> Iterator[GradedPair]:
        """Yield the pairs with a grading that is wanted, in the order of the file."""
        columns = self._columns
        is_wanted = [wanted(grading) for grading in self.gradings]
        if not any(is_wanted):
            return
        for query_id in self._at:
            rows = self._rows(query_id)
            for chunk, number in zip(columns.chunks[rows], columns.given[rows], strict=True):
                if is_wanted[number]:
                    yield GradedPair(query_id, columns.chunk_ids[chunk], self.gradings[number])

    def chunk_ids(self, wanted: Callable[[Grading], bool]) -> set[str]:
        """Return the ids of chunks, and of documents, that have a grading that is wanted."""
        is_wanted = [wanted(grading) for grading in self.gradings]
        columns, found = self._columns, set[int]()
        for rows in map(self._rows, self._at) if any(is_wanted) else ():
            given = map(is_wanted.__getitem__, columns.given[rows])
            found.update(compress(columns.chunks[rows], given))
        return {columns.chunk_ids[chunk] for chunk in found}

    def of_query(self, query_id: str, in_place: Sequence[T]) -> dict[str, T]:
        """Return what is known of the chunks of a query; {} where nothing is.

        Args:
            query_id: The query.
            in_place: What stands for each of `gradings`.
        """
        if query_id not in self._at:
            return {}
        rows, columns = self._rows(query_id), self._columns
        chunk_ids = map(columns.chunk_ids.__getitem__, columns.chunks[rows])
        return dict(zip(chunk_ids, map(in_place.__getitem__, columns.given[rows]), strict=True))

    def judgments(self, query_id: str, *, quoting: bool = False) -> list[Judgment]:
        """Return the judgments of a query as they are in the file, words and all.

        Args:
            query_id: The query.
            quoting: Whether those that quote no evidence may be left out, which saves reading them.

        Raises:
            DataError: The file was written over in place.
        """
        if query_id not in self._at:
            return []
        return self._columns.judgments(self._at[query_id], quoting=quoting)

    def _rows(self, query_id: str) -> slice:
        at, starts = self._at[query_id], self._columns.starts
        return slice(starts[at], starts[at + 1])


def read_judgment_table(path: Path) -> JudgmentTable:
    """Return the judgments of a file; none where it is not there.

    A file that stays as it is gets read once, as long as somebody holds what was read.

    Raises:
        DataError: The file cannot be read, a line is no judgment, or a pair comes twice; the
            message names file and line.
    """
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        return JudgmentTable()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    state = os.fstat(stream.fileno())
    stamp = path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
    held = _HELD.get(stamp)
    if held is not None:
        stream.close()
        return JudgmentTable(held)
    columns = _Columns(_Words(path, stream))
    try:
        columns.read(stream)
    except (_UnfitError, UnicodeDecodeError, pydantic.ValidationError, OSError):
        # It says what is wrong, and in which line.
        for _ in read_records(path, Judgment, key=key_of):
            pass
        raise DataError(f"{path}: was changed while it was read") from None
    _HELD[stamp] = columns
    return JudgmentTable(columns)


class _UnfitError(Exception):
    """A file does not hold to its format."""


class _Words:
    """The file of the judgments, open as long as somebody may ask for what they say in words."""

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path = path
        self._stream = stream
        self._lock = threading.Lock()
        weakref.finalize(self, stream.close)

    def judgments(self, begin: int, end: int, *, quoting: bool) -> Iterator[Judgment]:
        """Yield the judgments between two places of the file, in bytes."""
        with self._lock:
            self._stream.seek(begin)
            lines = self._stream.read(end - begin).split(b"\n")
        try:
            for line in lines:
                if quoting and _QUOTES_NOTHING in line:
                    continue
                if text := line.removeprefix(BOM_UTF8).strip():
                    yield Judgment.model_validate_json(text)
        except pydantic.ValidationError as error:
            raise DataError(f"{self._path}: was changed while it was read") from error


class _Columns:
    """A row for each judgment of a file, those of a query together.

    Attributes:
        at: The place of each query among the queries, which come as in the file.
        chunk_ids: Every id that occurs, once.
        gradings: Every grading that occurs, once.
        chunks: For each row the index of its chunk.
        given: For each row the index of its grading, in a byte as long as there are few.
        starts: For each query its first row; one more closes the last.
        repeating: The queries with quotes that people graded at several places.
    """

    def __init__(self, words: _Words | None = None) -> None:
        self.at: dict[str, int] = {}
        self.chunk_ids: list[str] = []
        self.gradings: list[Grading] = []
        self.chunks = array("I")
        self.given = array("B")
        self.starts = array("Q")
        self.repeating: set[str] = set()
        self._words = words
        self._begins = array("Q")
        """Where each run of lines of one query begins, in bytes; one more closes the last."""
        self._of_query: Sequence[Sequence[int]] = ()
        """For each query its runs of lines, where it has not one in the order of the queries."""
        self._numbers: dict[tuple[object, ...], int] = {}
        """Of the gradings, by all that they say."""

    def judgments(self, at: int, *, quoting: bool) -> list[Judgment]:
        """Return the judgments of the query at a place, words and all."""
        assert self._words is not None
        runs = self._of_query[at] if self._of_query else (at,)
        found: list[Judgment] = []
        for run in runs:
            begin, end = self._begins[run : run + 2]
            found += self._words.judgments(begin, end, quoting=quoting)
        return found

    def read(self, stream: IO[bytes]) -> None:
        """Read all rows.

        Raises:
            _UnfitError: A pair comes twice.
            UnicodeDecodeError, ValidationError: A line is no judgment.
        """
        queries = array("Q")
        places: dict[str, int] = {}
        last_id = last_chunk_id = ""
        is_ascending = True
        for begin, query_id, chunk_id, number in self._rows(stream):
            if query_id != last_id:
                last_id, last_chunk_id = intern(query_id), ""
                queries.append(self.at.setdefault(last_id, len(self.at)))
                self._begins.append(begin)
                self.starts.append(len(self.given))
            is_ascending = is_ascending and chunk_id > last_chunk_id
            last_chunk_id = chunk_id
            chunk = places.get(chunk_id)
            if chunk is None:
                chunk = places[intern(chunk_id)] = len(places)
            self.chunks.append(chunk)
            try:
                self.given.append(number)
            except OverflowError:
                self.given = array("I", self.given)
                self.given.append(number)
        self.chunk_ids += places
        self._begins.append(stream.tell())
        self.starts.append(len(self.given))
        is_apart = len(queries) > len(self.at)
        if is_apart:
            self._put_together(queries)
        if (is_apart or not is_ascending) and self._repeats_pairs():
            raise _UnfitError

    def _rows(self, stream: IO[bytes]) -> Iterator[tuple[int, str, str, int]]:
        """Yield where each judgment begins, its query and chunk, and the index of its grading."""
        match = _AS_WRITTEN.fullmatch
        kinds: dict[_Kind, int] = {}
        written, query_id = b"", ""
        end = 0
        for line in stream:
            begin, end = end, end + len(line)
            found = match(line)
            if found is not None and (line.isascii() or line.decode()):
                groups = found.groups()
                kind = groups[2:]
                number = kinds.get(kind)
                if number is None:
                    number = kinds[kind] = self._number_of(Judgment.model_validate_json(line))
                if groups[0] != written:
                    written = groups[0]
                    query_id = written.decode()
                yield begin, query_id, groups[1].decode(), number
                continue
            text = line.decode("utf-8" if begin else "utf-8-sig")
            if text.strip():
                judgment = Judgment.model_validate_json(text)
                number = self._number_of(judgment)
                if any(one.again for one in judgment.quote_grades):
                    self.repeating.add(judgment.query_id)
                yield begin, judgment.query_id, judgment.chunk_id, number

    @cached_property
    def has_texts(self) -> bool:
        """Whether there are ids of texts that are no chunks of the set."""
        return any(map(is_text_id, self.chunk_ids))

    def _number_of(self, judgment: Judgment) -> int:
        grading = grading_of(judgment)
        number = self._numbers.setdefault(grading.as_tuple, len(self.gradings))
        if number == len(self.gradings):
            self.gradings.append(grading)
        return number

    def _put_together(self, queries: Sequence[int]) -> None:
        """Bring rows of one query together that are apart in the file.

        Args:
            queries: For each run of lines the place of its query.
        """
        runs: list[list[int]] = [[] for _ in self.at]
        for run, query in enumerate(queries):
            runs[query].append(run)
        rows = [slice(*self.starts[run : run + 2]) for run in range(len(queries))]
        chunks, given, starts = array("I"), array(self.given.typecode), array("Q")
        for of_query in runs:
            starts.append(len(given))
            for run in of_query:
                chunks.extend(self.chunks[rows[run]])
                given.extend(self.given[rows[run]])
        starts.append(len(given))
        self.chunks, self.given, self.starts, self._of_query = chunks, given, starts, runs

    def _repeats_pairs(self) -> bool:
        """Whether a query has a chunk twice."""
        rows = starmap(slice, pairwise(self.starts))
        return any(len(set(of := self.chunks[some])) < len(of) for some in rows)


_HELD: "Final[weakref.WeakValueDictionary[object, _Columns]]" = weakref.WeakValueDictionary()
"""What was read and is in use, by the file and its state."""
