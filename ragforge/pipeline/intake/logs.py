"""Taking in what users asked: labelled questions become queries, the others tell how people ask."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median_low
from typing import Final, Literal, TypeVar

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.formats.queries import ImportedQueries
from ragforge.files.formats.query_log import read_labels
from ragforge.files.formats.query_rows import ImportedQuery
from ragforge.files.formats.row_relevance import GradedQuote, Relevance, settle_relevance
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import LabelNames
from ragforge.files.set.stale_runs import run_warnings
from ragforge.files.source_files import plain_name
from ragforge.files.text import shown
from ragforge.observe import Event, Observer
from ragforge.pipeline.intake.graded_before import OtherJudges
from ragforge.pipeline.intake.importing import ImportResult, add_logged
from ragforge.pipeline.intake.log_samples import Drawing, LogSample, draw_questions, log_digest
from ragforge.pipeline.intake.logged_questions import LoggedQuestion, LogReader, most_frequent
from ragforge.records import Hit, Query, Ranking, RealQuery
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked
from ragforge.stages.generate.truth import query_id

LANGUAGE: Final = "en"
"""Where the log names none."""
Clicks = Literal["ignore", "relevant"]
_EXAMPLES: Final = 3
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._+-]")
_MOST_NAME_CHARS: Final = 90
_Label = TypeVar("_Label", int, bool)
"""A grade, or whether a passage is listed as relevant."""


@dataclass(frozen=True, slots=True)
class LogResult:
    """What was taken in."""

    n_rows: int
    n_passed_over: int
    """Rows without words, or with more than a question."""
    n_added: int
    """Queries that became items though nobody labelled them."""
    n_real: int
    """Different questions without labels."""
    n_masked: int
    """E-mail addresses and numbers that were taken out."""
    n_clicked: int
    """Rows with clicks that were not taken for labels."""
    n_hidden: int
    """Rows with characters that nobody sees, which were taken out."""
    n_rejected: int
    """Questions that people rejected before; they do not come back."""
    n_labelled: int = 0
    """Queries with labels of people."""
    n_judgments: int = 0
    n_lost: int = 0
    """Labelled passages that are in no chunk."""
    n_missing: int = 0
    """Relevant ids that the corpus does not have; they are among the judgments."""
    n_disagreeing: int = 0
    """Labels that differ from grades that people gave before, which stand."""
    run: str = ""
    """Name of the run that holds what was retrieved; "" where the logs do not tell."""
    n_retrieved: int = 0
    """Queries that have a ranking in it."""
    drawing: Drawing | None = None
    """What was drawn, where only a share was to be taken in."""


def import_logs(
    paths: Sequence[Path],
    dataset: Dataset,
    observer: Observer,
    *,
    labels: Path | None = None,
    made_by: str = "",
    allow_missing: bool = False,
    clicks: Clicks = "ignore",
    unlabelled: Literal["keep", "add"] | LogSample = "keep",
    others: OtherJudges = "refuse",
) -> LogResult:
    """Add what users asked to a dataset.

    Questions that are the same but for case, blanks and punctuation are one. Those with labels of
    people become queries; where people disagree on a passage it gets the lower median of their
    grades. The others are added to `real_queries.jsonl`, near-duplicates counted together; of one
    that is there already the larger count stands, so that the same log may come again. A query
    that is in the dataset already, under any id, stays as it is, and gets the grades beside those
    it has; a retired one stays out. A query has the id that it has in the log. What the logged
    system retrieved for queries of the set becomes a run, named as the first log is.

    Args:
        paths: Logs, see `read_log`.
        dataset: Has chunks.
        labels: What people said of the logged questions, by id; see `read_labels`. None where that
            stands in the logs.
        observer: Told of what was passed over, masked and lost.
        made_by: Who labelled.
        allow_missing: As for `import_queries`.
        clicks: "relevant" to take what was clicked for relevant, "ignore" not to.
        unlabelled: "add" to make the questions without labels queries too, without an answer: to
            be retrieved for and judged. "keep" for `real_queries.jsonl` alone. A sample makes those
            that it draws queries, and leaves all others out.
        others: As for `import_queries`.

    Raises:
        UsageError: The set has the batch of a sample already, and it is another one; or as for
            `import_queries`.
        DataError: A log cannot be read, holds no question, none of the labelled passages is in any
            chunk, or relevant ids are missing and not allowed; nothing is written then.
    """
    reading = LogReader(clicks == "relevant", read_labels(labels) if labels is not None else {})
    asked = _questions(reading, paths)
    if labels is not None:
        _check_labels(labels, reading, observer)
    there = _SetQueries(dataset.all_queries())
    labelled = _labelled(asked, there)
    rest = _others(asked, there, unlabelled, paths, dataset)
    added: ImportResult | None = None
    if queries := [*labelled.queries, *rest.added]:
        where, new = ", ".join(map(str, paths)), replace(labelled, queries=queries)
        added = add_logged(
            new,
            dataset,
            observer,
            made_by=made_by,
            where=where,
            allow_missing=allow_missing,
            others=others,
        )
    dataset.write_real_queries(_merged_real_queries(dataset.real_queries(), rest.real))
    batch = rest.drawing.batch if rest.drawing else ""
    run, n_retrieved = _write_run(batch or plain_name(paths[0]), asked, dataset)
    warnings = run_warnings(dataset, [run]) if run else ()
    for message in (*(f"warning: {text}" for text in warnings), *reading.notes(), *there.notes()):
        observer(Event("note", message=message))
    result = replace(_result_of(reading, rest, there), run=run, n_retrieved=n_retrieved)
    return result if added is None else _with_added(result, labelled, added)


def _questions(reading: LogReader, paths: Sequence[Path]) -> Collection[LoggedQuestion]:
    """Read logs, and return what was asked in them.

    Raises:
        DataError: A log cannot be read, or nothing was asked.
    """
    asked = reading.read(paths).values()
    if not asked:
        raise DataError(f"{paths[0]}: holds no question; expected at least one")
    return asked


def _result_of(reading: LogReader, others: "_Unlabelled", there: "_SetQueries") -> LogResult:
    """Return the counts of reading logs, and of questions that nobody labelled."""
    return LogResult(
        n_rows=reading.n_rows,
        n_passed_over=reading.n_passed_over,
        n_added=len(others.added),
        n_real=len(others.real),
        n_masked=reading.n_masked,
        n_clicked=reading.n_clicked,
        n_hidden=reading.n_hidden,
        n_rejected=len(there.rejected),
        drawing=others.drawing,
    )


def _with_added(result: LogResult, labelled: ImportedQueries, added: ImportResult) -> LogResult:
    """Return a result with what became of the labels that came with queries."""
    return replace(
        result,
        n_labelled=len(labelled.queries),
        n_judgments=added.n_judgments,
        n_lost=added.n_lost,
        n_missing=added.n_missing,
        n_disagreeing=added.n_disagreeing,
    )


@dataclass(frozen=True, slots=True)
class _Unlabelled:
    """The questions that nobody labelled."""

    real: list[RealQuery]
    """Those that are kept as what users ask."""
    added: list[ImportedQuery]
    """Those that become queries."""
    drawing: Drawing | None = None


def _others(
    asked: Collection[LoggedQuestion],
    there: "_SetQueries",
    unlabelled: Literal["keep", "add"] | LogSample,
    paths: Sequence[Path],
    dataset: Dataset,
) -> _Unlabelled:
    """Return the unlabelled questions: those kept as what users ask, and those made queries."""
    real = real_queries(question for question in asked if not question.is_labelled)
    if unlabelled == "keep":
        return _Unlabelled(real, [])
    new = there.new(
        real, {question.spelling: question.query_id for question in asked if question.query_id}
    )
    if unlabelled == "add":
        return _Unlabelled(real, new)
    drawing = draw_questions(
        real,
        new,
        replace(unlabelled, batch=unlabelled.batch or plain_name(paths[0])),
        log=log_digest((question.spelling, question.spellings.total()) for question in asked),
        n_asked=sum(question.spellings.total() for question in asked),
        there=dataset.all_queries(),
    )
    drawn = {item.query.query for item in drawing.queries}
    kept = [question for question in real if question.query in drawn]
    return _Unlabelled(kept, [*drawing.queries], drawing)


def _check_labels(path: Path, reading: LogReader, observer: Observer) -> None:
    """Tell of labels whose id no log has.

    Raises:
        DataError: So it is with all of them.
    """
    missing = sorted(reading.labels.keys() - reading.texts.keys())
    if not missing:
        return
    examples = ", ".join(map(shown, missing[:_EXAMPLES]))
    if len(missing) == len(reading.labels):
        there = ", ".join(map(shown, sorted(filter(None, reading.texts))[:_EXAMPLES])) or "no ids"
        raise DataError(f"{path}: no id is in the logs: it holds {examples}; they hold {there}")
    told = f"{len(missing)} of {len(reading.labels)} labelled ids are in no log: {examples}"
    observer(Event("note", message=f"{path}: {told}"))


def _run_name(log: str, dataset: Dataset) -> str:
    """Return the name of a log as that of a run, another one where a retriever made such a run."""
    name = _NO_NAME.sub("-", log).lstrip("-._+")[:_MOST_NAME_CHARS] or "log"
    entry = dataset.manifest.files.get(f"runs/{name}.jsonl")
    is_retrieved = entry is not None and entry.run is not None and bool(entry.run.retriever)
    return f"{name}-log" if is_retrieved else name


def _write_run(log: str, asked: Iterable[LoggedQuestion], dataset: Dataset) -> tuple[str, int]:
    """Keep what was retrieved for the queries of a set: chunks, or documents by their names.

    Returns:
        The name of the run, and for how many queries it has a ranking; "" and 0 without any.
    """
    there = _SetQueries(dataset.all_queries())
    rankings: dict[str, Ranking] = {}
    names = LabelNames(dataset.chunks())
    for one in asked:
        query = there.same(_query(one)) if one.retrieved else None
        if query is not None and query.status == "accepted":
            # Scores of a log are of any scale; the order is what counts.
            ids = dict.fromkeys(names.id_of(name) for name in one.retrieved)
            hits = tuple(Hit(chunk_id=item, score=1 / rank) for rank, item in enumerate(ids, 1))
            ranking = Ranking(query_id=query.query_id, ranking=hits)
            rankings[query.query_id] = ranking.for_question(query.asked)
    if not rankings:
        return "", 0
    name = _run_name(log, dataset)
    dataset.write_run(name, rankings.values())
    return name, len(rankings)


def real_queries(asked: Iterable[LoggedQuestion]) -> list[RealQuery]:
    """Return different questions, sorted by text; the most frequent of near-duplicates stands."""
    taken = QuestionsAsked()
    counts: Counter[str] = Counter()
    languages: dict[str, str] = {}
    for question in sorted(
        asked, key=lambda question: (-question.spellings.total(), question.spelling)
    ):
        text = question.spelling
        clash = taken.clash(text)
        if clash is None:
            taken.add(text, text)
            languages[text] = most_frequent(question.languages) if question.languages else ""
        counts[clash.query_id if clash else text] += question.spellings.total()
    return [
        RealQuery(query=text, count=counts[text], language=languages[text])
        for text in sorted(languages)
    ]


def _merged_real_queries(before: Iterable[RealQuery], new: Iterable[RealQuery]) -> list[RealQuery]:
    """Return the questions of before and now; of nearly the same one the larger count."""
    by_text = {real.query: real for real in before}
    taken = QuestionsAsked((text, text) for text in by_text)
    for real in new:
        clash = taken.clash(real.query)
        if clash is None:
            taken.add(real.query, real.query)
            by_text[real.query] = real
        elif real.count > by_text[clash.query_id].count:
            old = by_text[clash.query_id]
            by_text[clash.query_id] = old.model_copy(update={"count": real.count})
    return [by_text[text] for text in sorted(by_text)]


class _SetQueries:
    """The queries of a dataset by what they ask, whatever their ids; retired ones too."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._by_id = {query.query_id: query for query in queries}
        standing = sorted(queries, key=lambda query: query.status == "retired")
        self._taken = QuestionsAsked((query.query_id, query.asked) for query in standing)
        self.rejected: set[str] = set()
        self.renamed: set[str] = set()
        """Ids of the logs that other questions of the set have."""

    def same(self, query: Query) -> Query | None:
        """Return the query that asks the same, or that did before it was worded otherwise."""
        clash = self._taken.clash(query.query)
        if clash is not None and clash.exact:
            return self._by_id[clash.query_id]
        text_id = query_id(query.query, LANGUAGE)
        if text_id in self._by_id:
            return self._by_id[text_id]
        named = self._by_id.get(query.query_id)
        is_reworded = named is not None and (
            named.revision > 1 or (clash is not None and clash.query_id == query.query_id)
        )
        return named if is_reworded else None

    def named(self, query: Query) -> Query:
        """Return a new query with an id that no other one has.

        Where logs number their rows anew each week, an id says nothing of the question.
        """
        if query.query_id not in self._by_id:
            return query
        self.renamed.add(query.query_id)
        return query.model_copy(update={"query_id": query_id(query.query, LANGUAGE)})

    def take(self, query: Query) -> Query | None:
        """Return the query that labels are for, the given one if it is new; None if rejected."""
        same = self.same(query)
        if same is None:
            query = self.named(query)
            self._by_id[query.query_id] = query
            self._taken.add(query.query_id, query.query)
            return query
        if same.status == "retired":
            self.rejected.add(same.query_id)
            return None
        return same

    def new(self, real: Iterable[RealQuery], ids: Mapping[str, str]) -> list[ImportedQuery]:
        """Return the unlabelled questions that nothing like is there of, as queries.

        Args:
            real: The questions.
            ids: Those that the logs give, by question.
        """
        queries = []
        for query in (_unlabelled_query(one, ids.get(one.query, "")) for one in real):
            clash = self._taken.clash(query.query)
            same = self._by_id[clash.query_id] if clash else self.same(query)
            if same is not None and same.status == "retired":
                self.rejected.add(same.query_id)
            elif same is None:
                queries.append(ImportedQuery(self.named(query)))
        return queries

    def notes(self) -> Iterator[str]:
        """Yield notes for the user."""
        if self.rejected:
            examples = ", ".join(sorted(self.rejected)[:3])
            yield f"{len(self.rejected)} questions were rejected before and stay out: {examples}"
        if self.renamed:
            examples = ", ".join(sorted(self.renamed)[:3])
            yield (
                f"{len(self.renamed)} ids of the log are those of other questions of the set, so "
                f"that these have ids of their own: {examples}"
            )


def _labelled(asked: Iterable[LoggedQuestion], there: _SetQueries) -> ImportedQueries:
    """Return the questions that people labelled, and how their lists and grades are read."""
    labelled = [question for question in asked if question.is_labelled]
    by_passage = {
        f"{number} {person}": labels
        for number, question in enumerate(labelled)
        for person, labels in enumerate(question.labels)
    }
    settled = settle_relevance(by_passage)
    items = []
    for number, question in enumerate(labelled):
        query = there.take(_query(question))
        if query is not None:
            keys = [f"{number} {person}" for person in range(len(question.labels))]
            # Where lists decide, ids without a grade get none.
            grades = [
                by_passage[key].grades if settled.relevant else settled.grades[key] for key in keys
            ]
            marks = _median_labels([settled.marks(key) for key in keys])
            one_grade: dict[str, int | None] = {**_median_labels(grades)}
            texts = dict.fromkeys(text for labels in question.labels for text in labels.texts)
            quotes = _quotes(question.labels)
            items.append(ImportedQuery(query, one_grade, quotes, marks, tuple(texts)))
    return ImportedQueries(items, settled.rel_threshold, settled.reading)


def _median_labels(given: Iterable[Mapping[str, _Label | None]]) -> dict[str, _Label]:
    """Return one label for each passage that people labelled: the lower median of theirs."""
    by_id: dict[str, list[_Label]] = {}
    for of_person in given:
        for chunk_id, label in of_person.items():
            if label is not None:
                by_id.setdefault(chunk_id, []).append(label)
    return {chunk_id: median_low(labels) for chunk_id, labels in by_id.items()}


def _quotes(labels: Iterable[Relevance]) -> tuple[GradedQuote, ...]:
    """Return each quote once, with one grade of those that people gave it."""
    given: dict[GradedQuote, list[int]] = {}
    for relevance in labels:
        for quote in relevance.graded_quotes:
            given.setdefault(replace(quote, grade=0), []).append(quote.grade)
    ordered = sorted(given.items(), key=lambda item: (item[0].doc_id, item[0].quote))
    return tuple(replace(quote, grade=median_low(grades)) for quote, grades in ordered)


def _query(question: LoggedQuestion) -> Query:
    language = most_frequent(question.languages) if question.languages else LANGUAGE
    return Query(
        query_id=question.query_id or query_id(question.spelling, LANGUAGE),
        query=question.spelling,
        expected_answer=most_frequent(question.answers) if question.answers else None,
        language=language,
        origin="log",
    )


def _unlabelled_query(real: RealQuery, given_id: str) -> Query:
    """Return a question that nobody labelled as a query."""
    name = given_id or query_id(real.query, LANGUAGE)
    language = real.language or LANGUAGE
    return Query(query_id=name, query=real.query, language=language, origin="log")
