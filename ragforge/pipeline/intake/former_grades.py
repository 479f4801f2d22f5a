"""People's grades when the words of a question change: they count for those words alone."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from ragforge.calibration.text_places import TextPlaces
from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.files.set.calibrations import calibration_files, calibration_names
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.former_grades import read_former_grades, write_former_grades
from ragforge.files.set.sorted_records import DocumentLines, Key, key_of
from ragforge.records import FormerGrade, Judgment, Query
from ragforge.records.judgments import wording_digest
from ragforge.stages.generate.truth import derive


class RewordedGrades:
    """What becomes of the grades of queries that ask something else now.

    Those of models are taken out. Those of people are set aside, unless the words are the same,
    and come back when the question is worded so again. Where a chunk that people graded
    holds evidence of the query, it has what the evidence says meanwhile.

    Args:
        dataset: Has the grades; they are read, and only `write` changes them.
        before: The queries as they were, by id.
        now: The same as they are.
    """

    n_stale: int
    """Grades of models that are taken out."""
    n_aside: int
    """Grades of people that are set aside."""
    n_back: int
    """Grades of people that are back."""

    def __init__(
        self, dataset: Dataset, before: Mapping[str, Query], now: Mapping[str, Query]
    ) -> None:
        self._dataset, self._now = dataset, now
        self._wordings = {name: wording_digest(query.asked) for name, query in now.items()}
        former = {name: wording_digest(query.asked) for name, query in before.items()}
        self._former = {name: old for name, old in former.items() if old != self._wordings[name]}
        judgments = dataset.judgments()
        left_by_models = [one for one in judgments if not self._is_stale(one)]
        standing = {key_of(one): one for one in left_by_models if not self._is_former(one)}
        self._known = read_former_grades(dataset)
        self._dormant = dataset.past.dormant_grades()
        self._aside = list(self._set_aside(one for one in left_by_models if self._is_former(one)))
        self._back = self._brought_back(standing)
        vacated = {key_of(one.judgment) for one in self._aside} - standing.keys()
        standing |= {key_of(one): one for one in self._by_evidence(vacated)}
        self._judgments = [*standing.values()]
        checks = sum(map(self._is_stale, dataset.label_checks()))
        self.n_stale = len(judgments) - len(left_by_models) + checks
        self.n_aside, self.n_back = len(self._aside), len(self._back)

    def write(self) -> None:
        """Write the grades. One of a person is in some file at all times."""
        dataset = self._dataset
        if self._aside:
            write_former_grades(dataset, [*self._known, *self._aside])
        dormant = [one for one in self._dormant if not self._is_former(one.judgment)]
        dormant += [one.dormant for one in self._back if one.dormant is not None]
        if dormant != self._dormant:
            dataset.past.write_dormant_grades(dormant)
        dataset.write_judgments(self._judgments)
        checks = dataset.label_checks()
        kept = [one for one in checks if one.query_id not in self._now]
        if len(kept) < len(checks):
            dataset.write_label_checks(kept)
        if self._back:
            left = [one for one in self._known if one not in self._back]
            write_former_grades(dataset, [*left, *self._aside])
        self._mark_labels()

    def _is_stale(self, judgment: Judgment) -> bool:
        return judgment.query_id in self._now and judgment.source in ("judge", "carried")

    def _is_former(self, judgment: Judgment) -> bool:
        """Whether a person gave it for other words."""
        return judgment.source == "human" and judgment.query_id in self._former

    def _set_aside(self, given: Iterable[Judgment]) -> Iterator[FormerGrade]:
        """Yield grades with the words and the text that they are of."""
        given = list(given)
        places = TextPlaces(self._dataset, (one.chunk_id for one in given))
        for one in given:
            yield FormerGrade(
                judgment=one,
                wording_sha256=self._former[one.query_id],
                text_sha256=places.digest(one.chunk_id),
            )
        for waiting in self._dormant:
            if self._is_former(waiting.judgment):
                yield FormerGrade(
                    judgment=waiting.judgment,
                    wording_sha256=self._former[waiting.judgment.query_id],
                    dormant=waiting,
                )

    def _brought_back(self, standing: dict[Key, Judgment]) -> list[FormerGrade]:
        """Put grades for words that are back where their texts are, and return which."""
        wanted = [
            one
            for one in self._known
            if one.judgment.query_id in self._former
            and one.wording_sha256 == self._wordings[one.judgment.query_id]
        ]
        places = TextPlaces(self._dataset, (one.judgment.chunk_id for one in wanted))
        of_texts = (one for one in wanted if one.text_sha256)
        places.look_for(([one.judgment.chunk_id], one.text_sha256) for one in of_texts)
        back = []
        for one in wanted:
            judgment = one.judgment
            now = [judgment.chunk_id]
            if one.text_sha256:
                now = list(places.of(now, one.text_sha256))
            free = [
                chunk_id
                for chunk_id in now
                if (judgment.query_id, chunk_id) not in standing
                or standing[judgment.query_id, chunk_id].source != "human"
            ]
            if one.dormant is None:
                standing |= {
                    (judgment.query_id, chunk_id): judgment.model_copy(
                        update={"chunk_id": chunk_id}
                    )
                    for chunk_id in free
                }
            if free:
                back.append(one)
        return back

    def _by_evidence(self, vacated: Collection[Key]) -> Iterator[Judgment]:
        """Yield what evidence says of chunks whose grades are set aside."""
        query_ids = {query_id for query_id, _ in vacated}
        queries = [query for name, query in self._now.items() if name in query_ids]
        doc_ids = {item.doc_id for query in queries for item in query.evidence}
        if not doc_ids or not self._dataset.chunks_path.exists():
            return
        with DocumentLines(self._dataset.chunks_path, doc_ids) as lines:
            for query in queries:
                named = sorted({item.doc_id for item in query.evidence})
                index = ChunkIndex(chunk for name in named for chunk in lines.chunks_of(name))
                for judgment in derive(query, index).judgments if named else ():
                    if key_of(judgment) in vacated:
                        yield judgment

    def _mark_labels(self) -> None:
        """Let labels of calibrations from before they said so say which words they are of."""
        for name in calibration_names(self._dataset) if self._former else ():
            files = calibration_files(self._dataset, name)
            with files.alone():
                labels = files.labels()
                marked = [
                    label.model_copy(update={"wording_sha256": self._former[label.query_id]})
                    if label.query_id in self._former and not label.wording_sha256
                    else label
                    for label in labels
                ]
                if marked != labels:
                    files.write_labels(marked)
