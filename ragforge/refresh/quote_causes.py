"""Why a quote does not stand where it stood: what happened to its document."""

from ragforge.records import Cause
from ragforge.refresh.corpus_diff import DocumentMove

_DIGITS = 16


def cause_of(doc_id: str, move: DocumentMove | None, detail: str = "") -> Cause:
    """Return what happened to the document of a quote.

    Args:
        doc_id: Of the document, as the set has it.
        move: Its document before and now; None where it is as it was, so that the quote was not
            there before either.
        detail: What was seen, in a sentence.
    """
    if move is None:
        return Cause(kind="document changed", doc_id=doc_id, detail=detail)
    before, now = move.before, move.now
    if before is None or now is None:
        return _one_sided(doc_id, move, detail)
    if before.doc_id != now.doc_id:
        return Cause(
            kind="document renamed",
            doc_id=now.doc_id,
            before=before.doc_id,
            after=now.doc_id,
            detail=detail,
        )
    return Cause(
        kind="document cut anew" if before.sha256 == now.sha256 else "document changed",
        doc_id=now.doc_id,
        before=before.sha256[:_DIGITS],
        after=now.sha256[:_DIGITS],
        detail=detail,
    )


def _one_sided(doc_id: str, move: DocumentMove, detail: str) -> Cause:
    if move.before:
        digest = move.before.sha256[:_DIGITS]
        return Cause(kind="document removed", doc_id=doc_id, before=digest, detail=detail)
    digest = move.now.sha256[:_DIGITS] if move.now else ""
    return Cause(kind="document added", doc_id=doc_id, after=digest, detail=detail)
