"""Runs of the version before on the chunks of now: what is gone goes along as text.

A retriever found texts. Most of them are chunks still, some under another id; the others are kept
as texts that are no chunks of the set, with their places in the documents of now, so that the run
can be measured until it is made again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ragforge.corpus.text_locations import TextLocator, documents_of
from ragforge.files.manifest import RunOrigin
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.stale_runs import RunStatus, chunks_of_runs
from ragforge.files.set.wholeness import corpus_digest
from ragforge.pipeline.text_grades import grade_by_evidence
from ragforge.records import (
    Hit,
    Judgment,
    Ranking,
    RetrievedText,
    is_text_id,
    text_id,
)
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.grades.moved_chunks import MovedChunks, doc_id_now, find_moved


@dataclass(frozen=True, slots=True)
class _Sought:
    """A text that is looked for in the documents of now.

    Args:
        text: As it was retrieved.
        doc_ids: Documents that had it.
        start: Where it stood in the first of them; None where that is not known.
    """

    text: str
    doc_ids: tuple[str, ...]
    start: int | None


def carry_runs(staged: Dataset, parent: Dataset, diff: CorpusDiff) -> list[str]:
    """Write the runs of the version before into the next, and return a sentence on each.

    Runs that were stale stay behind. Grades of chunks that are gone go along with their texts.

    Args:
        staged: Has the chunks, queries and judgments of now.
        parent: The version before.
        diff: What changed in the corpus.

    Raises:
        DataError: A file cannot be read or written.
    """
    statuses = chunks_of_runs(parent, parent.run_names())
    names = [name for name, status in statuses.items() if not status.is_stale]
    cited = {
        hit.chunk_id for name in names for item in parent.each_ranking(name) for hit in item.ranking
    }
    moves = find_moved(diff, cited)
    sought = dict(_sought(parent, cited, moves, diff))
    now = _ids_now(cited, moves, sought, diff)
    texts = list(_located(staged, {key: of for key, of in sought.items() if now[key] == key}))
    if texts:
        staged.write_retrieved_texts(texts)
    for name in names:
        _write(staged, parent, statuses[name], now)
    staged.drop_uncited_texts()
    gone = {chunk_id: now[chunk_id] for chunk_id in moves.gone if is_text_id(now[chunk_id])}
    _carry_grades(staged, parent, gone)
    grade_by_evidence(staged)
    return [_sentence(staged, parent, statuses[name], texts) for name in names]


def _sought(
    parent: Dataset, cited: set[str], moves: MovedChunks, diff: CorpusDiff
) -> Iterator[tuple[str, _Sought]]:
    """Yield id and text of what runs hold that is no chunk now."""
    for text in parent.retrieved_texts():
        if text.chunk_id in cited:
            doc_ids = [*(place.doc_id for place in text.places), *text.doc_ids]
            start = text.places[0].start if len(text.places) == 1 else None
            yield text.chunk_id, _Sought(text.text, _now(doc_ids, diff), start)
    if moves.gone - moves.now.keys():
        for chunk in diff.removed():
            if chunk.chunk_id in moves.gone and chunk.chunk_id not in moves.now:
                yield (
                    text_id(chunk.text),
                    _Sought(chunk.text, _now([chunk.doc_id], diff), chunk.start),
                )


def _now(doc_ids: Iterable[str], diff: CorpusDiff) -> tuple[str, ...]:
    return tuple(dict.fromkeys(doc_id_now(diff, doc_id) for doc_id in doc_ids))


def _ids_now(
    cited: set[str], moves: MovedChunks, sought: Mapping[str, _Sought], diff: CorpusDiff
) -> dict[str, str]:
    """Return the ids that retrieved chunks and texts have now; a text may be a chunk by now."""
    added = {text_id(chunk.text): chunk.chunk_id for chunk in diff.added()} if sought else {}
    now = {chunk_id: added.get(chunk_id, chunk_id) for chunk_id in (*cited, *sought)}
    now |= {chunk_id: ids[0] for chunk_id, ids in moves.now.items() if ids}
    if moves.gone - moves.now.keys():
        for chunk in diff.removed():
            if chunk.chunk_id in moves.gone and chunk.chunk_id not in moves.now:
                now[chunk.chunk_id] = now[text_id(chunk.text)]
    return now


def _located(staged: Dataset, sought: Mapping[str, _Sought]) -> Iterator[RetrievedText]:
    if not sought:
        return
    locator = TextLocator(documents_of(staged.chunks()))
    for chunk_id, each in sorted(sought.items()):
        location = locator.locate(each.text, doc_ids=each.doc_ids, near=each.start)
        yield RetrievedText(
            chunk_id=chunk_id,
            text=each.text,
            places=location.spans if location else (),
            likeness=location.likeness if location else 1.0,
            doc_ids=() if location else each.doc_ids,
        )


def _write(staged: Dataset, parent: Dataset, status: RunStatus, now: Mapping[str, str]) -> None:
    """Write a run under the ids of now, for the part of the queries that it was made for."""
    name = status.run
    made_for = parent.made_for(f"runs/{name}.jsonl")
    entry = parent.manifest.files.get(f"runs/{name}.jsonl")
    digest = corpus_digest(staged)
    made_on = _made_on(parent, entry.run if entry else None)
    origin = RunOrigin(
        chunks_sha256=digest,
        retriever=status.retriever,
        mapped_from="" if made_on == digest else made_on,
    )
    rankings = (_ranking(item, now) for item in parent.each_ranking(name))
    staged.choosing(made_for).write_run(name, rankings, origin)


def _made_on(parent: Dataset, origin: RunOrigin | None) -> str:
    """Return the digest of the chunks that a run was made on; those of the set where unknown."""
    if origin is None:
        return corpus_digest(parent)
    return origin.mapped_from or origin.chunks_sha256


def _ranking(item: Ranking, now: Mapping[str, str]) -> Ranking:
    hits: dict[str, Hit] = {}
    for hit in item.ranking:
        chunk_id = now[hit.chunk_id]
        hits.setdefault(chunk_id, Hit(chunk_id=chunk_id, score=hit.score))
    return item.model_copy(update={"ranking": tuple(hits.values())})


def _carry_grades(staged: Dataset, parent: Dataset, gone: Mapping[str, str]) -> None:
    """Give the texts of chunks that are gone the grades that these had."""
    if not gone:
        return
    there = {(item.query_id, item.chunk_id) for item in staged.each_judgment()}
    carried: dict[tuple[str, str], Judgment] = {}
    for item in parent.each_judgment():
        pair = item.query_id, gone.get(item.chunk_id, "")
        is_grade = item.source != "evidence" and not item.is_failed
        if pair[1] and is_grade and pair not in there:
            update = {"chunk_id": pair[1], "copied_from": ""}
            carried[pair] = item.model_copy(update=update)
    if carried:
        staged.add_judgments(iter([carried[pair] for pair in sorted(carried)]))


def _sentence(
    staged: Dataset, parent: Dataset, status: RunStatus, texts: Iterable[RetrievedText]
) -> str:
    placed = {text.chunk_id: bool(text.places) for text in texts}
    counts = Counter(
        placed.get(hit.chunk_id) for item in staged.each_ranking(status.run) for hit in item.ranking
    )
    return (
        f"run {status.run}: of {counts.total():,} hits {counts[None]:,} are chunks of now, "
        f"{counts[True]:,} texts that the documents have cut otherwise, {counts[False]:,} texts "
        f"that are gone; `{status.way_out(parent)}` makes it again"
    )
