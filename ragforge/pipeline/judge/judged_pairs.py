"""Judgments on their way into a dataset that others may have changed while they were made."""

from collections.abc import Callable, Iterable, Iterator

from ragforge.evaluating.formatting import plural
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.judgment_table import JudgmentTable
from ragforge.files.set.sorted_records import Key, key_of, pair_and_judge
from ragforge.observe import Event, Observer
from ragforge.pipeline.job import ResultSpool
from ragforge.records import Judgment
from ragforge.stages.judge.pairs import Pair


class JudgedPairs:
    """Puts what a judge graded into a dataset, as far as it stands when it is written.

    While a judge works, people label and edit questions. What a person graded meanwhile counts, and
    the judge's grade of that pair goes to the label checks. A grade for other words than a question
    has by then is of no query.

    Args:
        dataset: Its judgments are looked at now, and again when these are written.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._before = dataset.judgment_table()
        self._shown: dict[str, str] = {}

    def shown(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield pairs, and keep the words of their questions."""
        for pair in pairs:
            self._shown[pair.query_id] = pair.query
            yield pair

    def write(
        self, judged: ResultSpool[Judgment], observer: Observer, *, failures_alone: bool
    ) -> None:
        """Write what stands, and tell of the rest.

        Args:
            judged: What came of the pairs that were shown.
            observer: Told how much does not stand.
            failures_alone: Whether what other judges said stays as it was.

        Raises:
            DataError: A file cannot be read or written.
        """
        dataset = self._dataset
        with dataset.alone():
            people = _by_people(dataset.judgment_table()) - _by_people(self._before)
            reworded = self._reworded()

            def stands(one: Judgment) -> bool:
                return one.query_id not in reworded and key_of(one) not in people

            if not failures_alone:
                dataset.add_judgments(filter(stands, judged.results()))
            left = [one for one in judged.results() if not stands(one)]
            beside = [one for one in left if one.query_id not in reworded and not one.is_failed]
            if beside:
                checks = {pair_and_judge(one): one for one in (*dataset.label_checks(), *beside)}
                dataset.write_label_checks(checks.values())
            keys = {f"{one.query_id}/{one.chunk_id}" for one in left}
            add_failures(judged, dataset, lambda key: key not in keys)
        for message in _notes(len(reworded), len(beside)):
            observer(Event("note", message=message))

    def write_checks(
        self,
        judged: ResultSpool[Judgment],
        observer: Observer,
        is_by_judge: Callable[[Judgment], bool],
    ) -> None:
        """Write what stands to the label checks, in the place of what the judge said before.

        Args:
            judged: What came of the pairs that were shown.
            observer: Told how much does not stand.
            is_by_judge: Whether a check is of the judge, whatever it was asked in.

        Raises:
            DataError: A file cannot be read or written.
        """
        dataset = self._dataset
        with dataset.alone():
            reworded = self._reworded()
            new = [one for one in judged.results() if one.query_id not in reworded]
            anew = {key_of(one) for one in new}
            keys = {f"{query_id}/{chunk_id}" for query_id, chunk_id in anew}
            stay = (
                old
                for old in dataset.label_checks()
                if key_of(old) not in anew or not is_by_judge(old)
            )
            dataset.write_label_checks([*stay, *new])
            add_failures(judged, dataset, keys.__contains__)
        for message in _notes(len(reworded), 0):
            observer(Event("note", message=message))

    def _reworded(self) -> set[str]:
        """Return the ids of queries that ask something else than was shown."""
        asked = {query.query_id: query.asked for query in self._dataset.all_queries()}
        return {name for name, text in self._shown.items() if asked.get(name) != text}


def _by_people(table: JudgmentTable) -> set[Key]:
    graded = table.pairs(lambda grading: grading.source == "human")
    return {(pair.query_id, pair.chunk_id) for pair in graded}


def _notes(n_reworded: int, n_beside: int) -> Iterator[str]:
    if n_reworded:
        n = plural(n_reworded, "query asks", "queries ask")
        yield f"{n} something else than the judge was asked: left out; judge again"
    if n_beside:
        n = plural(n_beside, "pair", "pairs")
        yield f"{n} graded by people meanwhile: theirs count, the judge's are in label_checks.jsonl"


def add_failures(
    judged: ResultSpool[Judgment], dataset: Dataset, wanted: Callable[[str], bool] = bool
) -> None:
    """Write failures into a dataset, in the place of those of all pairs that were tried.

    Args:
        judged: Has them.
        dataset: Gets them.
        wanted: Whether one is of a pair that stands, by its key.

    Raises:
        DataError: The file cannot be written.
    """
    earlier = {old.key for old in dataset.failures() if old.what == "judge"}
    tried = earlier & {f"{one.query_id}/{one.chunk_id}" for one in judged.results()}
    failures = [one for one in judged.failures() if wanted(one.key)]
    dataset.replace_failures("judge", failures, tried.__contains__)
