"""What imported queries say is relevant, as the chunks of a dataset hold it."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import one_line, plural
from ragforge.files.formats.export_note import Graded
from ragforge.files.formats.named_texts import NamedText
from ragforge.files.formats.query_rows import ImportedQuery
from ragforge.files.formats.row_relevance import HIGHEST_GRADE, GradedQuote
from ragforge.files.row import value_items
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import Label, LabelNames
from ragforge.files.source_files import plain_name
from ragforge.files.text import shown
from ragforge.observe import Event, Observer
from ragforge.pipeline.graded_quotes import with_quotes
from ragforge.pipeline.intake.quoted_passages import (
    LostQuote,
    MisplacedQuote,
    PlacedQuote,
    find_in_chunk,
    find_passage,
)
from ragforge.records import (
    Chunk,
    Evidence,
    Judgment,
    Lineage,
    Provenance,
    Query,
    QuoteGrade,
    id_in_set,
)
from ragforge.stages.generate.gates.repeated_questions import normal_question
from ragforge.stages.generate.truth import derive

if TYPE_CHECKING:
    from ragforge.pipeline.intake.named_passages import NamedPassages

LEAST_EVIDENCE_GRADE = 2
MODEL_MARK: Final = "model:"
"""Before the name of a model that graded."""
FILE_MARK: Final = "file "
"""Before the name of a file, in the protocol of what it brought."""
_MOST_NAME_CHARS: Final = 100
_DIGEST_CHARS = 12
_MISSING_SHOWN = 20
"""Ids that are listed in an error."""


class ImportedTruth:
    """Collects queries and judgments, quotes resolved to chunks.

    Args:
        dataset: Has chunks.
        made_by: Who graded: a name of people, or `model:NAME`.
        binary: Whether the file tells relevant from not, and no more; relevant is then grade 2.
        there: Ids of queries that get grades and nothing else.
        allow_missing: Keep relevant ids that the corpus does not have, rather than refuse them.
        graders: Who graded, by query and id of the file, where the file says so; else `made_by`.
        by_document: Queries whose labels name documents, where the file says so.
        mark: What the provenance of people's labels, and of queries without one, says of the file
            that brought them, see `file_mark`; "" where nothing.
        is_named: Whether labels of before with that mark are of the same file.
    """

    def __init__(
        self,
        dataset: Dataset,
        made_by: str,
        *,
        binary: bool,
        there: Collection[str] = (),
        allow_missing: bool = False,
        graders: Mapping[tuple[str, str], Graded] = MappingProxyType({}),
        by_document: Collection[str] = (),
        mark: str = "",
        is_named: bool = True,
    ) -> None:
        chunks = list(dataset.chunks())
        self._dataset = dataset
        self._chunks = chunks
        self._has_chunks = bool(chunks)
        self._has_texts = False
        self._index = ChunkIndex(chunks)
        texts = () if chunks else dataset.retrieved_texts()
        self._labels = LabelNames(chunks, (text.chunk_id for text in texts))
        self._copies = _copies(chunks)
        self._relevant = LEAST_EVIDENCE_GRADE if binary else 1
        self.mark = mark
        self.mark_before = mark if is_named else ""
        """Of labels that the file gave before."""
        self._by = _marked(_grader(made_by), mark)
        self._there = there
        self._graders = {pair: _marked(of, mark) for pair, of in graders.items()}
        self._by_document = frozenset(by_document)
        self._repeated: list[str] = []
        self._counting_again: list[str] = []
        self._allow_missing = allow_missing
        self.missing: list[str] = []
        """Relevant ids that are of no chunk and no document; they have judgments all the same."""
        self._unfindable: set[tuple[str, str]] = set()
        """Their pairs, and those of quotes that stand nowhere."""
        self.n_unknown = 0
        """Grades of 0, or none, of ids that are of no chunk and no document; they are left out."""
        self.n_repeated = 0
        """Grades of chunks and documents that another id of the file names too."""
        self._n_unplaced = 0
        """Quotes that nothing is known about, as there are no documents."""
        self._with_other_marks: list[str] = []
        """Quotes whose words stand with other marks or case."""
        self._passed_over: list[str] = []
        """Texts of other tools that stand nowhere as they are."""
        self._misnamed: dict[str, str] = {}
        """What is wrong with rows that have an id and the words of another passage, by where."""
        self._n_unknown_chunks = 0
        """Quotes that were found though the set has no chunk of the id beside them."""
        self._renamed: dict[str, str] = {}
        """Names of documents as the file has them, and the ids that they mean."""
        self.queries: list[Query] = []
        self.judgments: dict[tuple[str, str], Judgment] = {}
        self.lost: list[str] = []
        self.graded: set[str] = set()
        """Queries of which the file says what is relevant, by people."""

    def take_all(self, imported: Iterable[ImportedQuery], where: str, observer: Observer) -> None:
        """Take queries with their passages, and tell what was lost.

        Raises:
            DataError: All passages are, the corpus lacks relevant ids or quotes and that is not
                allowed, or an id stands beside the words of another passage.
        """
        for item in imported:
            try:
                self._take(item)
            except DataError as error:
                raise DataError(f"{where}: {error}") from error
        if self._misnamed:
            raise DataError(self._describe_misnamed())
        gone = [*self.lost, *(f"{item} is no chunk and no document" for item in self.missing)]
        none_found = bool(gone) and self.judgments.keys() <= self._unfindable
        if none_found and not (self._allow_missing and self._unfindable):
            loss = f"{len(gone)} relevant passages are lost: {'; '.join(gone[:3])}"
            raise DataError(f"{where}: {loss}; is it a set for other documents?")
        if self._unfindable:
            self._report_missing(where, observer)
            self._level_missing()
        elif self.lost:
            loss = f"{len(self.lost)} relevant passages are lost: {'; '.join(self.lost[:3])}"
            observer(Event("note", message=loss))
        for message in self._notes():
            observer(Event("note", message=message))

    def level_of(self, values: Iterable[object]) -> str:
        """Return what all of some cells name: "chunk" or "document"; "" where one names neither."""
        found: set[str] = set()
        for value in values:
            names = _names_in(value) if self._has_chunks else []
            levels = [{label.level for label in self._labels.find(name)} for name in names]
            if not levels or not all(levels):
                return ""
            found.update(*levels)
        return found.pop() if len(found) == 1 else ""

    def _notes(self) -> Iterator[str]:
        """Yield what is to be told of names and quotes that are not lost."""
        if self._by_document and not self._has_chunks:
            n = plural(len(self._by_document), "query is", "queries are")
            yield (
                f"{n} labelled by whole documents, and the set has no chunks: only hits that name "
                "documents count there; for runs of chunks import into a set with --chunks FILE"
            )
        if self._n_unplaced:
            n = plural(self._n_unplaced, "quote")
            yield (
                f"{n} not looked up, as the set has no documents; import the file into a new set "
                "with --documents DIR --out NEW"
            )
        if self._with_other_marks:
            n = plural(len(self._with_other_marks), "quote stands", "quotes stand")
            some = "; ".join(self._with_other_marks[:3])
            yield f"{n} there with other marks, blanks or case, and counts as found: {some}"
        if self._passed_over:
            n = plural(len(self._passed_over), "reference text")
            yield f"{n} in no document as they are, passed over: {self._passed_over[0]}"
        if self._renamed:
            loss = "; ".join(f"{name} is {now}" for name, now in sorted(self._renamed.items())[:3])
            n = plural(len(self._renamed), "document")
            yield f"{n} by the end of the path: {loss}"
        if self._n_unknown_chunks:
            n = plural(self._n_unknown_chunks, "quote")
            yield f"{n} found by the words alone: the set does not have the chunk named beside them"
        if n_parts := self._passages.n_parts if self._has_texts else 0:
            n = plural(n_parts, "label is", "labels are")
            yield (
                f"{n} of a whole document, beside the text of a part of it; in a column quote that "
                "text labels the passage"
            )
        yield from self._repeated_quotes()
        yield from self._unlabelled_copies()

    def _repeated_quotes(self) -> Iterator[str]:
        """Yield which quotes stand several times, and whether one place counts or each."""
        if self._repeated:
            quotes = plural(len(self._repeated), "quote stands", "quotes stand")
            yield (
                f"{quotes} several times in one document, and the first place alone counts: "
                f"{'; '.join(self._repeated[:3])}"
            )
        if self._counting_again:
            quotes = plural(len(self._counting_again), "quote stands", "quotes stand")
            yield (
                f"{quotes} in several chunks of one document; any of these counts, and one is all "
                f"there is to find: {'; '.join(self._counting_again[:3])}"
            )

    def _unlabelled_copies(self) -> Iterator[str]:
        """Yield how many relevant chunks read as others do that have no label."""
        found = [
            (query_id, chunk_id, other)
            for (query_id, chunk_id), of in self.judgments.items()
            if (of.grade or 0) >= self._relevant
            for other in self._copies.get(chunk_id, ())
            if other != chunk_id and (query_id, other) not in self.judgments
        ]
        if found:
            n = len({chunk_id for _, chunk_id, _ in found})
            many = "1 relevant chunk reads" if n == 1 else f"{n:,} relevant chunks read"
            yield (
                f"{many} word for word as others that have no label, such as {found[0][1]} as "
                f"{found[0][2]}: a run that names the other one gets nothing for it, and a text "
                "without an id counts as the labelled one in runs made from now on; label both, or "
                "compare by EvidenceR, which counts what a text says"
            )
        yield from self._runs_of_copies({(query_id, other) for query_id, _, other in found})

    def _runs_of_copies(self, unlabelled: Set[tuple[str, str]]) -> Iterator[str]:
        """Yield which runs of before hold chunks without a label that read as labelled ones."""
        for name in self._dataset.run_names() if unlabelled else ():
            n = sum(
                (item.query_id, hit.chunk_id) in unlabelled
                for item in self._dataset.each_ranking(name)
                for hit in item.ranking
            )
            if n:
                yield (
                    f"run {name} holds {plural(n, 'such chunk')} without a label; if they came as "
                    "texts without ids, `ragforge retrieve` now takes the labelled ones"
                )

    @cached_property
    def _passages(self) -> "NamedPassages":
        from ragforge.pipeline.intake.named_passages import NamedPassages

        return NamedPassages(self._chunks, self._index)

    @cached_property
    def _documents(self) -> Mapping[str, str]:
        """Documents by chunk."""
        return {chunk.chunk_id: chunk.doc_id for chunk in self._chunks}

    def _compare(self, query: Query, named: NamedText) -> None:
        """Note a text that is not of the passage whose id stands beside it."""
        meant = self._meant(query.query_id, named.name) if self._has_chunks else []
        if len(meant) != 1 or normal_question(named.text) == normal_question(query.query):
            return
        self._has_texts = True
        if not self._passages.is_of(named, meant[0]):
            there = "" if self._misnamed else self._passages.holding(named.text)
            told = _other_words(named.name, named.text, there)
            self._misnamed.setdefault(named.where, told)

    def _describe_misnamed(self) -> str:
        first, *others = self._misnamed
        more = f"; so it is in {_some(others, ', ')}" if others else ""
        return (
            f"{first}: {self._misnamed[first]}{more}. Mend the ids or the words, or leave one of "
            "them out: without an id, a column quote is looked up in the documents; nothing was "
            "taken in"
        )

    def _report_missing(self, where: str, observer: Observer) -> None:
        """Tell of relevant ids and quotes that the corpus lacks, where they are allowed.

        Raises:
            DataError: They are not: without them recall would rise in silence.
        """
        missing = "; ".join(self._describe_missing())
        if not self._allow_missing:
            raise DataError(
                f"{where}: {missing}; nothing was taken in. Mend the file or bring the documents, "
                "or keep them with --allow-missing as relevant chunks that no run can find"
            )
        observer(
            Event("note", message=f"{missing}; no run can find them, and all are measured by it")
        )

    def _describe_missing(self) -> Iterator[str]:
        if self.missing:
            n = len(self.missing)
            what = "relevant id is" if n == 1 else "relevant ids are"
            yield f"{n} {what} of no chunk and no document: {_some(self.missing, ', ')}"
        if self.lost:
            n = len(self.lost)
            what = "relevant passage is" if n == 1 else "relevant passages are"
            yield f"{n} {what} lost: {_some(self.lost, '; ')}"

    def _level_missing(self) -> None:
        """Take missing ids for documents where all that are there are documents."""
        gone = {pair for pair, item in self.judgments.items() if not self._labels.find(pair[1])}
        levels = {item.level for pair, item in self.judgments.items() if pair not in gone}
        if levels == {"document"}:
            for pair in gone:
                update = {"level": "document"}
                self.judgments[pair] = self.judgments[pair].model_copy(update=update)

    def _take(self, item: ImportedQuery) -> None:
        query = item.query
        for named in item.texts:
            self._compare(query, named)
        for chunk_id in dict.fromkeys((*item.grades, *item.marks)):
            mark = item.marks.get(chunk_id)
            self._grade(query, chunk_id, item.grades.get(chunk_id), mark)
        evidence = self._quoted(query.query_id, item.graded_quotes)
        if query.query_id in self._there:
            return
        if query.evidence:
            self._derive(query)
            return
        is_by_people = self._by.source == "human"
        if query.lineage is None and is_by_people and "evidence" not in item.unsaid:
            self.graded.add(query.query_id)
        name = self._by.by.model if is_by_people and self._by.by else ""
        lineage = query.lineage or Lineage(kind="human", model=name, protocol=self.mark)
        update = {"evidence": evidence, "lineage": lineage}
        self.queries.append(query.model_copy(update=update))

    def _grade(self, query: Query, name: str, grade: int | None, mark: bool | None) -> None:
        if grade is None and mark is False:
            return
        checked = None if grade is None else _checked(query, name, grade)
        is_wanted = bool(checked or mark)
        meant, pair = self._meant(query.query_id, name), (query.query_id, name)
        if len(meant) > 1 and is_wanted:
            shown = ", ".join(one.id for one in meant[:3])
            self.missing.append(f"{query.query_id}: {name} (it may be any of {shown})")
        elif not meant and is_wanted:
            self.missing.append(f"{query.query_id}: {name}")
        if len(meant) != 1 and is_wanted:
            self._unfindable.add(pair)
        is_known = len(meant) == 1
        label = meant[0] if is_known else Label(name, "chunk")
        if label.level == "document" and label.id not in (name, id_in_set(name)):
            self._renamed[name] = label.id
        self.n_repeated += is_known and (query.query_id, label.id) in self.judgments
        if is_known or is_wanted or self._allow_missing:
            relevant = self._relevant if checked == 1 else checked
            self._judge(query.query_id, label, relevant, mark=mark, by=self._graders.get(pair))
        else:
            self.n_unknown += 1

    def _meant(self, query_id: str, name: str) -> list[Label]:
        """Return what a label may name: documents where the file says so, chunks before others."""
        if query_id not in self._by_document:
            return self._labels.find(name)
        doc_ids = self._labels.documents(name) if self._has_chunks else (id_in_set(name),)
        return [Label(doc_id, "document") for doc_id in doc_ids] or self._labels.find(name)

    def _on_scale(self, graded: GradedQuote) -> GradedQuote:
        return replace(graded, grade=self._relevant) if graded.grade == 1 else graded

    def _quoted(self, query_id: str, graded_quotes: Iterable[GradedQuote]) -> tuple[Evidence, ...]:
        """Judge the chunks that hold the quotes of a query, and return its evidence."""
        evidence: list[Evidence] = []
        repeated: list[tuple[str, QuoteGrade]] = []
        if not self._has_chunks:
            self._n_unplaced += sum(1 for _ in graded_quotes)
            return ()
        for graded_quote in map(self._on_scale, self._apart(graded_quotes)):
            places = filter(None, (query_id, graded_quote.doc_id))
            quoted = ": ".join((*places, f"{graded_quote.quote[:60]!r}"))
            passage = self._place(graded_quote)
            if isinstance(passage, MisplacedQuote):
                name, there = graded_quote.chunk_id, passage.chunk_id
                told = _other_words(name, graded_quote.quote, there)
                self._misnamed.setdefault(graded_quote.where, told)
                continue
            if isinstance(passage, LostQuote) and not graded_quote.must_stand:
                self._passed_over.append(f"{quoted} {passage.reason}")
                continue
            if isinstance(passage, LostQuote):
                self.lost.append(f"{quoted} {passage.reason}")
                self._judge_lost(query_id, graded_quote)
                continue
            self._note_place(graded_quote, passage, quoted)
            given = QuoteGrade(quote=passage.evidence.quote, grade=graded_quote.grade)
            for chunk_id, grade in passage.grades.items():
                self._judge(query_id, Label(chunk_id, "chunk"), grade, given=given)
            again = given.model_copy(update={"again": True})
            repeated += [(chunk_id, again) for chunk_id in passage.repeating]
            if graded_quote.grade >= LEAST_EVIDENCE_GRADE:
                evidence.append(passage.evidence)
        self._judge_repeated(query_id, repeated)
        return tuple(evidence)

    def _apart(self, graded_quotes: Iterable[GradedQuote]) -> Iterator[GradedQuote]:
        """Yield quotes, those of several that stand nowhere as a whole one by one."""
        for quote in graded_quotes:
            is_one = not quote.parts or isinstance(self._place(quote), PlacedQuote)
            yield from [quote] if is_one else quote.parts

    def _place(self, graded_quote: GradedQuote) -> PlacedQuote | LostQuote | MisplacedQuote:
        """Return where a quote stands: in the chunk that is named for it, if the set has it."""
        name = id_in_set(graded_quote.chunk_id)
        if name and name in self._documents:
            named = replace(graded_quote, chunk_id=name)
            return find_in_chunk(named, self._documents[name], self._index)
        passage = find_passage(graded_quote, self._index, self._labels)
        self._n_unknown_chunks += bool(name) and isinstance(passage, PlacedQuote)
        return passage

    def _judge_repeated(self, query_id: str, repeated: Iterable[tuple[str, QuoteGrade]]) -> None:
        """Judge chunks that hold quotes of a query again, as far as people gave them no grade."""
        for chunk_id, given in repeated if self._by.source == "human" else ():
            there = self.judgments.get((query_id, chunk_id))
            if there is None or there.only_repeats:
                self._judge(query_id, Label(chunk_id, "chunk"), given.grade, given=given)

    def _note_place(self, graded_quote: GradedQuote, passage: PlacedQuote, quoted: str) -> None:
        """Note what is to be told of where a quote was found."""
        doc_id = passage.evidence.doc_id
        if graded_quote.doc_id and doc_id not in (named := graded_quote.doc_id, id_in_set(named)):
            self._renamed[named] = doc_id
        if not passage.is_as_is:
            self._with_other_marks.append(f"{quoted} as {passage.evidence.quote[:60]!r}")
        if passage.n_places > 1:
            counts_again = passage.repeating and self._by.source == "human"
            told = self._counting_again if counts_again else self._repeated
            told.append(f"{quoted} {passage.n_places} times")

    def _judge_lost(self, query_id: str, graded_quote: GradedQuote) -> None:
        """Keep a relevant passage that stands nowhere, under an id that no chunk has."""
        if graded_quote.grade:
            digest = hashlib.sha256(graded_quote.quote.encode()).hexdigest()[:_DIGEST_CHARS]
            name = f"{'_'.join(graded_quote.doc_id.split())}#quote_{digest}"
            given = QuoteGrade(quote=graded_quote.quote, grade=graded_quote.grade)
            self._judge(query_id, Label(name, "chunk"), graded_quote.grade, given=given)
            self._unfindable.add((query_id, name))

    def _derive(self, query: Query) -> None:
        """Take a query of another dataset, whose evidence may stand in other chunks here."""
        derived = derive(query, self._index)
        self.queries.append(derived.query)
        for item in derived.lost:
            told = f"{query.query_id}: {item.doc_id}: {item.quote[:60]!r}"
            self.lost.append(f"{told} is in no chunk of the document")
        for judgment in derived.judgments:
            self.judgments.setdefault((judgment.query_id, judgment.chunk_id), judgment)

    def _judge(
        self,
        asked: str,
        label: Label,
        grade: int | None,
        *,
        given: QuoteGrade | None = None,
        mark: bool | None = None,
        by: Graded | None = None,
    ) -> None:
        """Note a grade, and whether it is listed; of two of a chunk or document the higher one.

        What people gave to quotes is kept of each, for chunks in which the quotes stand otherwise.
        """
        by = by or self._by
        old = self.judgments.get((asked, label.id))
        quotes = (*(old.given_to_quotes if old else ()), *((given,) if given else ()))
        if old is not None:
            mark = old.relevant if mark is None else mark or old.relevant
            if (old.grade or 0) >= (grade or 0):
                noted = old.model_copy(update={"relevant": mark})
                self.judgments[asked, label.id] = with_quotes(noted, quotes)
                return
        judgment = Judgment(
            query_id=asked,
            chunk_id=label.id,
            level=label.level,
            grade=grade,
            contains_answer=None if grade is None else grade >= LEAST_EVIDENCE_GRADE,
            evidence=given.quote if given else "",
            source=by.source,
            relevant=mark,
            provenance=by.by,
        )
        self.judgments[asked, label.id] = with_quotes(judgment, quotes)


def _other_words(name: str, text: str, there: str) -> str:
    stands = f"which stands in {shown(there)}" if there else "which does not stand there"
    return f"{shown(name)} is named beside {shown(text)}, {stands}"


def _copies(chunks: Iterable[Chunk]) -> dict[str, tuple[str, ...]]:
    """Return the ids of chunks of one text, by each of them; of texts that there are once, none."""
    ids: dict[int, list[str]] = {}
    for chunk in chunks:
        ids.setdefault(hash(" ".join(chunk.text.split())), []).append(chunk.chunk_id)
    alike = (tuple(each) for each in ids.values() if len(each) > 1)
    return {chunk_id: each for each in alike for chunk_id in each}


def _grader(made_by: str) -> Graded:
    """Return who gave the grades of a file that does not say it itself.

    Raises:
        UsageError: A model without a name.
    """
    if made_by.startswith(MODEL_MARK):
        model = made_by.removeprefix(MODEL_MARK).strip()
        if not model:
            raise UsageError(f"made by {made_by!r}: expected {MODEL_MARK}NAME, or who graded")
        return Graded("judge", Provenance(kind="llm", model=model))
    return Graded("human", Provenance(kind="human", model=made_by))


def file_mark(path: Path) -> str:
    """Return what provenance says of the file that brought a query, or a label with it.

    It tells labels of the file from those that people gave in other ways. The folder and the kind
    of the file are no part of it.
    """
    return f"{FILE_MARK}{one_line(plain_name(path), _MOST_NAME_CHARS)}"


def _marked(of: Graded, mark: str) -> Graded:
    """Return who graded, with the file where people did and nothing says in which other way."""
    by = of.by or Provenance(kind="human")
    is_open = not by.protocol or by.protocol.startswith(FILE_MARK)
    if not mark or of.source != "human" or not is_open:
        return of
    return Graded(of.source, by.model_copy(update={"protocol": mark}))


def _names_in(value: object) -> list[str]:
    """Return the names that a cell may hold, one or several."""
    try:
        items = value_items(value)
    except ValueError:
        return []
    names = items if isinstance(items, list) else [items]
    return [name if isinstance(name, str) else "" for name in names]


def _some(items: Sequence[str], between: str) -> str:
    more = f"{between}…" if len(items) > _MISSING_SHOWN else ""
    return f"{between.join(items[:_MISSING_SHOWN])}{more}"


def _checked(query: Query, chunk_id: str, grade: int) -> int:
    if not 0 <= grade <= HIGHEST_GRADE:
        raise DataError(
            f"query {query.query_id}: grade of {chunk_id}: expected 0, 1, 2 or 3, got {grade}; "
            "those of another scale come in with --qrels FILE --grades 2=1,3=2,4=3"
        )
    return grade
