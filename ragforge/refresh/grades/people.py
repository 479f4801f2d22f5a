"""Grades that people gave to chunks that are gone: where they hold now, and which have to wait.

A judge can be asked again, and its replies are stored; a person cannot. So no grade of a person is
given up: it stands where its text or its quote does, and waits where that is gone.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.corpus.chunking import text_sha256
from ragforge.corpus.quote_locations import ChunkIndex, fold
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import pair_of
from ragforge.pipeline.graded_quotes import Followed, GradedQuotes, at_chunks, place_grades
from ragforge.records import DormantGrade, Evidence, Judgment
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.grades.documents import documents_back, waiting_label
from ragforge.refresh.grades.moved_chunks import MovedChunks, doc_id_now, new_places
from ragforge.refresh.items.settled import SettledItem
from ragforge.refresh.quotes.similar import likeness_of

_ALIKE: Final = 0.75
"""Likeness from which a quote that proves the same answer is another wording of the old one, where
the check took it for a new one or the query was out of the set."""


@dataclass(frozen=True, slots=True)
class PeoplesGrades:
    """Grades by people whose chunk is gone, now or since an earlier version.

    Args:
        gone: Those whose chunk is gone now.
        dormant: Those that waited already.
        quotes: Those among the gone that were given to quotes.
        items: The queries as they are now, by id; all that are graded here.
        moves: Where chunks are now.
        back: Ids of the new chunks with the text of a dormant grade, by its document and digest.
        changed: Ids of documents that are not as they were; a dormant grade waits for these only.
    """

    gone: Sequence[DormantGrade]
    dormant: Sequence[DormantGrade]
    quotes: GradedQuotes
    items: Mapping[str, SettledItem]
    moves: MovedChunks
    back: Mapping[tuple[str, str], tuple[str, ...]]
    changed: Container[str]

    @property
    def documents(self) -> set[str]:
        """Those that may hold quotes of them."""
        found = set(self.quotes.documents)
        found |= {item.doc_id for _, item in self._dormant_quotes()}
        return found | {item.doc_id for _, item in self._reworded([*self.dormant, *self.gone])}

    def place(self, index: ChunkIndex) -> tuple[Followed, list[DormantGrade]]:
        """Return the grades that stand in other chunks or stand again, and those that wait.

        Args:
            index: Of the `documents`.
        """
        places = [
            place_grades(self._dormant_quotes(), index),
            self._returned(),
            self.quotes.place(index),
        ]
        settled = {pair for placed in places for pair in placed.pairs}
        settled |= {pair_of(grade) for grade in self.gone if self.moves.of(grade.judgment.chunk_id)}
        open_ = [grade for grade in (*self.dormant, *self.gone) if pair_of(grade) not in settled]
        # What stands verbatim says more than what reads alike, so that it comes last.
        places = [place_grades(self._reworded(open_), index), *places]
        pairs = {pair for placed in places for pair in placed.pairs}
        waiting = {pair_of(grade): grade for grade in open_ if pair_of(grade) not in pairs}
        judgments = [judgment for placed in places for judgment in placed.judgments]
        return Followed(judgments, pairs), [*waiting.values()]

    def _returned(self) -> Followed:
        returned: list[Judgment] = []
        pairs: set[tuple[str, str]] = set()
        for one in self.dormant:
            now = self.back.get(_text_of(one), ())
            returned += at_chunks(one.judgment, now)
            pairs |= {pair_of(one)} if now else set()
        return Followed(returned, pairs)

    def _dormant_quotes(self) -> Iterator[tuple[Judgment, Evidence]]:
        for one in self.dormant:
            quote, is_back = one.judgment.evidence, _text_of(one) in self.back
            if quote and not is_back and one.doc_id in self.changed:
                chunk_id = one.judgment.chunk_id
                yield one.judgment, Evidence(doc_id=one.doc_id, chunk_id=chunk_id, quote=quote)

    def _reworded(self, grades: Iterable[DormantGrade]) -> Iterator[tuple[Judgment, Evidence]]:
        """Yield grades with what the evidence of their query says now in the place of what it said.

        A grade of a chunk as a whole is taken for one of the evidence that the chunk held.
        """
        gone = {pair_of(one) for one in self.gone}
        for one in grades:
            judgment, item = one.judgment, self.items.get(one.judgment.query_id)
            for now in _wordings(item, judgment) if item else ():
                if pair_of(one) in gone or now.doc_id in self.changed:
                    update = {"evidence": now.quote} if judgment.evidence else {}
                    yield judgment.model_copy(update=update), now


def peoples_grades(
    parent: Dataset, diff: CorpusDiff, items: Iterable[SettledItem], moves: MovedChunks
) -> PeoplesGrades:
    """Return the grades that people gave to chunks that a changed corpus does not have.

    Args:
        parent: The version before.
        diff: What changed in the corpus.
        items: The queries as they are now.
        moves: Where the chunks that the version before names are now.
    """
    dormant = [_renamed(grade, diff) for grade in parent.past.dormant_grades()]
    lost = [
        judgment
        for judgment in parent.each_judgment()
        if judgment.source == "human" and not judgment.is_failed and judgment.chunk_id in moves.gone
    ]
    gone = [*_gone(lost, diff)]
    graded = {grade.judgment.query_id for grade in (*dormant, *gone)}
    named = {item.query.query_id: item for item in items if item.query.query_id in graded}
    queries = [item.before for item in named.values() if item.before is not None]
    return PeoplesGrades(
        gone=gone,
        dormant=dormant,
        quotes=GradedQuotes(lost, diff.removed(), queries, lambda doc_id: doc_id_now(diff, doc_id)),
        items=named,
        moves=moves,
        back={
            **new_places(
                diff, (_text_of(grade) for grade in dormant if _is_of_chunk(grade.judgment))
            ),
            **documents_back(dormant, diff),
        },
        changed=diff.moves,
    )


def _gone(lost: Sequence[Judgment], diff: CorpusDiff) -> Iterator[DormantGrade]:
    wanted = {judgment.chunk_id for judgment in lost if _is_of_chunk(judgment)}
    chunks = {
        chunk.chunk_id: (doc_id_now(diff, chunk.doc_id), text_sha256(chunk.text))
        for chunk in (diff.removed() if wanted else ())
        if chunk.chunk_id in wanted
    }
    for judgment in lost:
        if not _is_of_chunk(judgment):
            yield waiting_label(judgment, doc_id_now(diff, judgment.chunk_id), diff)
            continue
        doc_id, digest = chunks[judgment.chunk_id]
        yield DormantGrade(judgment=judgment, doc_id=doc_id, text_sha256=digest)


def _is_of_chunk(judgment: Judgment) -> bool:
    return judgment.level == "chunk"


def _renamed(one: DormantGrade, diff: CorpusDiff) -> DormantGrade:
    return one.model_copy(update={"doc_id": doc_id_now(diff, one.doc_id)})


def _text_of(one: DormantGrade) -> tuple[str, str]:
    return one.doc_id, one.text_sha256


def _wordings(item: SettledItem, judgment: Judgment) -> Iterator[Evidence]:
    """Yield the evidence of a query that says what a person graded, where the answer is the same.

    That is the same quote, or one that stands for it in other words.
    """
    before, now = item.before, item.query
    if before is None or before.revision != now.revision:
        return
    said = fold(judgment.evidence)
    graded = [
        old
        for old in before.evidence
        if (fold(old.quote) == said if said else old.chunk_id == judgment.chunk_id)
    ]
    known = {fold(old.quote) for old in before.evidence}
    is_checked = item.change is not None and item.change.action == "reverified"
    for new in now.evidence:
        words = fold(new.quote)
        for old in graded:
            is_new = words not in known and new.hop == old.hop
            if words == fold(old.quote) or (
                is_new and (is_checked or likeness_of(old.quote, new.quote) >= _ALIKE)
            ):
                yield new
                break
