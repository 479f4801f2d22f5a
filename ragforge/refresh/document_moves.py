"""What happened to each document, and the rows of all as they are now."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from ragforge.corpus.document_rows import succeeding
from ragforge.files.atomic import write_whole_bytes
from ragforge.files.manifest import FileEntry, digest_file
from ragforge.records import SourceDocument
from ragforge.refresh.corpus_diff import DocumentMove
from ragforge.refresh.known_documents import KnownDocuments

_CUT_BY = ", cut by "


class Moves(Mapping[str, DocumentMove]):
    """The documents that are not as they were, read from disk one by one.

    Args:
        before, now: All documents, or those among them that are not as they were.
        renamed: Earlier to present id.
        ids: Which ids are asked for; None for all.
    """

    def __init__(
        self,
        before: KnownDocuments,
        now: KnownDocuments,
        renamed: Mapping[str, str],
        ids: frozenset[str] | None,
    ) -> None:
        self._before = before
        self._now = now
        self._to = renamed
        self._from = {after: earlier for earlier, after in renamed.items()}
        self._ids = ids

    def __getitem__(self, doc_id: str) -> DocumentMove:
        if self._ids is None or doc_id in self._ids:
            before = self._before.get(self._from.get(doc_id, doc_id))
            now = self._now.get(self._to.get(doc_id, doc_id))
            if before or now:
                return DocumentMove(before, now)
        raise KeyError(doc_id)

    def __iter__(self) -> Iterator[str]:
        """Yield the ids, sorted."""
        if self._ids is not None:
            return iter(sorted(self._ids))
        both = heapq.merge(self._before.ids(), self._now.ids())
        return (doc_id for doc_id, _ in groupby(both))

    def __len__(self) -> int:
        return len(self._ids) if self._ids is not None else sum(1 for _ in self)


def renames(removed: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return which documents are found under another id: the earlier one to the one now.

    Args:
        removed: Id to digest of documents that are gone.
        added: Likewise of those that came. Where several have one digest, the first is taken for
            the first in the order of their ids, and so on.
    """
    gone: defaultdict[str, list[str]] = defaultdict(list)
    for doc_id in sorted(removed, reverse=True):
        gone[removed[doc_id]].append(doc_id)
    found: dict[str, str] = {}
    for doc_id in sorted(added):
        if gone.get(added[doc_id]):
            found[gone[added[doc_id]].pop()] = doc_id
    return dict(sorted(found.items()))


class DocumentRows:
    """Writes the rows of the documents as they are now.

    Args:
        before: The documents before.
        renamed: Earlier to present id.
        changed: Ids of documents that say something else now.
        version: The version that the rows are for.
        cut_by: How documents were cut that stay as they are while the others are cut anew; ""
            where none are. Their digest tells it, so that they are cut once they can be read.
    """

    def __init__(
        self,
        before: KnownDocuments,
        renamed: Mapping[str, str],
        changed: frozenset[str],
        version: int,
        cut_by: str = "",
    ) -> None:
        self._before = before
        self._from = {after: earlier for earlier, after in renamed.items()}
        self._changed = changed
        self._version = version
        self._cut_by = cut_by

    def write(
        self,
        path: Path,
        kept: Iterable[int],
        fresh: Iterable[SourceDocument],
        ids: frozenset[str] | None,
    ) -> tuple[FileEntry, KnownDocuments]:
        """Write the rows, and return their digest and number and the table of those in `ids`.

        Args:
            path: The file.
            kept: Numbers of the rows that stay as they are, ascending.
            fresh: Rows of the other documents, sorted by id.
            ids: Which documents to have in the table; None for all.

        Raises:
            DataError: The file cannot be written.
        """
        table = KnownDocuments()
        n_rows = 0

        def lines() -> Iterator[bytes]:
            nonlocal n_rows
            at = 0
            both = (self._old(kept), self._new(fresh))
            for row, line in heapq.merge(*both, key=lambda item: item[0].doc_id):
                if ids is None or row.doc_id in ids:
                    table.add(at, row)
                at += len(line)
                n_rows += 1
                yield line

        write_whole_bytes(path, lines())
        table.seal(path)
        return FileEntry(sha256=digest_file(path), records=n_rows), table

    def _old(self, kept: Iterable[int]) -> Iterator[tuple[SourceDocument, bytes]]:
        for number in kept:
            line = self._before.line(number)
            row = SourceDocument.model_validate_json(line)
            if self._cut_by:
                digest = row.sha256.partition(_CUT_BY)[0]
                row = row.model_copy(update={"sha256": f"{digest}{_CUT_BY}{self._cut_by}"})
                line = f"{row.model_dump_json()}\n".encode()
            yield row, line

    def _new(self, fresh: Iterable[SourceDocument]) -> Iterator[tuple[SourceDocument, bytes]]:
        for row in fresh:
            before = self._before.get(self._from.get(row.doc_id, row.doc_id))
            is_changed = row.doc_id in self._changed
            full = succeeding(row, before, self._version, is_changed=is_changed)
            yield full, f"{full.model_dump_json()}\n".encode()
