"""Checking a dataset as a whole: what no single file can tell."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import field
from functools import partial
from typing import Final, NamedTuple, TypeVar

from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.evaluating.formatting import plural
from ragforge.files.set.baseline import KeptValues, kept_values, values_path
from ragforge.files.set.calibrations import CalibrationFiles, calibration_files, calibration_names
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import ids_of_corpus
from ragforge.files.set.history import History, read_history
from ragforge.files.set.integrity import accept_changes, missing_files
from ragforge.files.set.judgment_table import JudgmentTable
from ragforge.files.set.paths import CURRENT, number_of, own_files
from ragforge.pipeline.lost_grades import (
    LostAnswerGrades,
    LostGrades,
    grades_of_other_words,
    lost_answer_grades,
    lost_grades,
)
from ragforge.records import (
    Calibration,
    Evaluation,
    Judgment,
    LabelSample,
    Query,
    RetrievedText,
    is_text_id,
    text_id,
    without_place,
)
from ragforge.records.judgments import Grading
from ragforge.stages.generate.splits import Connections, names_of, with_names

T = TypeVar("T")
_EXAMPLES = 3
_OTHER_TEXTS: Final = "texts that their chunks no longer have"
_OTHER_WORDS: Final = "questions that read otherwise in all runs"
_LEVELS: Final = {
    "document": "labels name whole documents: runs of chunks are measured by their documents",
    "both": "some labels name whole documents: their queries are measured by documents, the others "
    "by chunks",
}


class _EveryId:
    """What a set without chunks knows: nothing tells which ids are wrong."""

    def __contains__(self, _: object) -> bool:
        """Return that it does."""
        return True


_EVERY_ID: Final = _EveryId()


@dataclass(slots=True)
class Findings:
    """What is wrong, and what is merely noteworthy."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def validate(dataset: Dataset) -> Findings:
    """Read every file of a dataset and compare them with each other and with the manifest."""
    findings = Findings()
    every = _read(dataset.all_queries, findings)
    queries = [query for query in every if query.status == "accepted"]
    texts = _texts(dataset, {item.chunk_id for one in queries for item in one.evidence}, findings)
    findings.problems += _like_texts(texts)
    query_ids = {query.query_id for query in every}
    tables = _read(lambda: [dataset.judgment_table()], findings)
    judgments = tables[0] if tables else JudgmentTable()
    _read(dataset.failures, findings)
    _check_evidence(dataset, queries, texts, findings)
    judged = "judgments.jsonl"
    findings.problems += _unknown(judged, "query", judgments.query_ids, query_ids)
    retrieved = _read(dataset.retrieved_texts, findings)
    findings.problems += _wrong_texts(retrieved, texts)
    of_set: Collection[str] = texts if dataset.manifest.level is None else ids_of_corpus(dataset)
    of_corpus = {*of_set, *(text.chunk_id for text in retrieved)}
    known: Container[str] = of_corpus if texts else _EVERY_ID
    findings.problems += _level_problems(dataset, judgments)
    by_people = judgments.chunk_ids(lambda of: of.source == "human")
    made = judgments.chunk_ids(lambda of: of.source != "human") - by_people
    # A grade belongs to its text, and waits for a run that has it again.
    of_chunks = (chunk_id for chunk_id in made if not is_text_id(chunk_id))
    findings.problems += _unknown(judged, "chunk", of_chunks, texts or _EVERY_ID)
    findings.notes += _unfindable(judgments, known)
    for documents in _read(lambda: [_documents(dataset, queries)], findings):
        findings.notes += _splits(queries, documents)
    checks = _read(dataset.label_checks, findings)
    _read(lambda: [dataset.audit()], findings)
    _read(dataset.real_queries, findings)
    _check_version(dataset, findings)
    findings.notes += _ungraded(checks, judgments)
    for name in dataset.run_names():
        for ids in _read(partial(_ids_in_run, dataset, name), findings):
            where = f"runs/{name}.jsonl"
            findings.problems += _unknown(where, "chunk", ids.chunk_ids, known)
            findings.notes += _unknown(where, "query", ids.query_ids, query_ids)
    for name in dataset.answer_names():
        answers, where = _read(partial(dataset.answers, name), findings), f"answers/{name}.jsonl"
        findings.notes += _unknown(where, "query", (a.query_id for a in answers), query_ids)
    for name in dataset.answer_grade_names():
        _read(partial(dataset.answer_grades, name), findings)
    _check_history(dataset, findings)
    _check_calibrations(dataset, findings)
    findings.notes += [_LEVELS[level]] if (level := dataset.manifest.level) is not None else []
    audit = dataset.manifest.audit
    findings.notes += [f"manifest.json: {audit.in_words()}"] if audit else []
    findings.problems += _missing(dataset)
    for lost in _read(lambda: [lost_grades(dataset)], findings):
        findings.notes += _lost(lost, _OTHER_TEXTS)
    for lost in _read(lambda: [grades_of_other_words(dataset, dataset.judgments)], findings):
        findings.notes += _lost(lost, _OTHER_WORDS)
    findings.notes += _lost_of_answers(_read(lambda: lost_answer_grades(dataset), findings))
    findings.notes += [
        f"{name}: changed since ragforge wrote it"
        for name in dataset.manifest.files
        if dataset.changed_by_hand(name)
    ]
    return findings


class _IdsInRun(NamedTuple):
    """What a run names."""

    query_ids: set[str]
    chunk_ids: set[str]


def _ids_in_run(dataset: Dataset, name: str) -> list[_IdsInRun]:
    ids = _IdsInRun(set(), set())
    for item in dataset.each_ranking(name):
        ids.query_ids.add(item.query_id)
        ids.chunk_ids.update(hit.chunk_id for hit in item.ranking)
    return [ids]


def _wrong_texts(texts: Iterable[RetrievedText], chunks: Container[str]) -> Iterator[str]:
    """Yield a line for each text of a run under an id that is not its own, or is a chunk's."""
    for text in texts:
        if text.chunk_id in chunks:
            yield f"retrieved.jsonl: {text.chunk_id} is a chunk of the set; expected other ids"
        elif text_id(text.text) != without_place(text.chunk_id):
            yield (
                f"retrieved.jsonl: {text.chunk_id}: its text has the id {text_id(text.text)}; was "
                "it edited?"
            )


def accept(dataset: Dataset) -> Findings:
    """Take what was changed by hand for the set's own, where that is all there is to find."""
    findings = validate(dataset)
    missing = _missing(dataset)
    if any(problem not in missing for problem in findings.problems):
        findings.notes.append("nothing was accepted: first mend the problems")
        return findings
    lost, of_answers = lost_grades(dataset), lost_answer_grades(dataset)
    if lost.n_of_judges:
        dataset.write_judgments(lost.kept)
    reworded = grades_of_other_words(dataset, dataset.judgments)
    checks = grades_of_other_words(dataset, dataset.label_checks)
    if reworded.n_of_judges:
        dataset.write_judgments(reworded.kept)
    if checks.n_of_judges:
        dataset.write_label_checks(checks.kept)
    for system in of_answers:
        dataset.write_answer_grades(system.system, system.kept)
    accepted = accept_changes(dataset)
    findings = validate(dataset)
    findings.notes += [f"{name}: accepted as it is" for name in accepted]
    findings.notes += _lost(lost, _OTHER_TEXTS, dropped=True)
    findings.notes += _lost(reworded, _OTHER_WORDS, dropped=True)
    findings.notes += [*_lost_of_answers(of_answers, dropped=True)]
    return findings


def _level_problems(dataset: Dataset, judgments: JudgmentTable) -> list[str]:
    """Return a line where the manifest does not say that labels name documents."""
    of_documents = judgments.chunk_ids(lambda of: of.level == "document")
    if dataset.manifest.level is not None or not of_documents:
        return []
    return ["manifest.json: level: labels name documents; expected document or both, got none"]


def _lost(lost: LostGrades, of: str, *, dropped: bool = False) -> list[str]:
    """Return a line about grades of judges of what is gone, and one about those of people."""
    notes = []
    if lost.n_of_judges:
        become = "dropped; `ragforge judge` makes new ones" if dropped else "--accept drops them"
        notes.append(
            f"judgments.jsonl: {lost.n_of_judges:,} grades of judges are of {of}: {become}"
        )
    if lost.n_of_people:
        notes.append(
            f"judgments.jsonl: {lost.n_of_people:,} grades of people are of {of}: they stay"
        )
    return notes


def _lost_of_answers(lost: Iterable[LostAnswerGrades], *, dropped: bool = False) -> Iterator[str]:
    """Yield a line for each system with grades of answers whose contexts have other texts now."""
    become = "dropped; `ragforge answer` makes new ones" if dropped else "--accept drops them"
    for of in lost:
        n = plural(of.n, "grade is", "grades are")
        yield (
            f"answer_grades/{of.system}.jsonl: {n} of answers whose contexts have other texts "
            f"now: {become}"
        )


def _missing(dataset: Dataset) -> list[str]:
    return [f"{name}: is missing, though manifest.json lists it" for name in missing_files(dataset)]


def _read(what: Callable[[], Iterable[T]], findings: Findings) -> list[T]:
    try:
        return list(what())
    except DataError as error:
        findings.problems.append(str(error))
        return []


def _texts(dataset: Dataset, wanted: Container[str], findings: Findings) -> dict[str, str]:
    """Return the texts of the chunks that are wanted, and "" for all others."""
    texts = dict[str, str]()
    try:
        for chunk in dataset.chunks():
            texts[chunk.chunk_id] = chunk.text if chunk.chunk_id in wanted else ""
    except DataError as error:
        findings.problems.append(str(error))
        return {}
    return texts


def _like_texts(chunk_ids: Iterable[str]) -> list[str]:
    """Return a line about chunks with ids as texts of runs have them, [] where there is none."""
    found = sorted(filter(is_text_id, chunk_ids))
    if not found:
        return []
    return [
        f"chunks.jsonl: {plural(len(found), 'id')} of the look of {found[0]}, which texts of runs "
        f"get: {'its' if len(found) == 1 else 'their'} grades are left out; `ragforge import` into "
        "a new set gives others"
    ]


def _check_evidence(
    dataset: Dataset, queries: list[Query], texts: dict[str, str], findings: Findings
) -> None:
    quotes = [(query.query_id, item) for query in queries for item in query.evidence]
    ids = (item.chunk_id for _, item in quotes)
    findings.problems += _unknown("queries.jsonl", "chunk", ids, texts)
    sources = (chunk_id for query in queries for chunk_id in query.source_chunk_ids)
    findings.notes += _unknown("queries.jsonl", "source chunk", sources, texts)
    apart = [
        (query_id, item)
        for query_id, item in quotes
        if item.chunk_id in texts and item.quote not in texts[item.chunk_id]
    ]
    if not apart:
        return
    documents = {item.doc_id for _, item in apart}
    chunks = [chunk for chunk in dataset.chunks() if chunk.doc_id in documents]
    index = ChunkIndex(sorted(chunks, key=lambda chunk: (chunk.start, chunk.chunk_id)))
    for query_id, item in apart:
        placed = index.place(item)
        # A quote may run over several chunks.
        if placed is None or item.chunk_id not in {chunk.chunk_id for chunk in placed.chunks}:
            findings.problems.append(
                f"queries.jsonl: {query_id}: evidence does not occur in chunk {item.chunk_id}"
            )


def _documents(dataset: Dataset, queries: list[Query]) -> dict[str, set[str]]:
    """Return the documents that each query rests on, by all ids that they have and had."""
    if len({query.split for query in queries if query.split}) < 2:
        return {}
    wanted = {chunk_id for query in queries for chunk_id in query.source_chunk_ids}
    homes = {chunk.chunk_id: chunk.doc_id for chunk in dataset.chunks() if chunk.chunk_id in wanted}
    documents = {
        query.query_id: {item.doc_id for item in query.evidence}
        | {homes[chunk_id] for chunk_id in query.source_chunk_ids if chunk_id in homes}
        for query in queries
    }
    return with_names(documents, names_of(dataset.documents()))


def _splits(queries: list[Query], documents: dict[str, set[str]]) -> list[str]:
    """Return a line about queries between the splits, and one about those that connect them.

    Near-duplicates of documents are not looked for: that takes a survey of the corpus.
    """
    problems = []
    out = [query.query_id for query in queries if query.split_before and not query.split]
    if out:
        problems.append(
            f"queries.jsonl: {len(out)} queries are in no split, as their documents connect them "
            f"with the other one, such as {', '.join(out[:_EXAMPLES])}"
        )
    in_one = [query for query in queries if query.split]
    clashes = Connections(documents, {query.query_id for query in in_one}).clashes(in_one)
    if clashes:
        some = [f"{name} with {clashes[name]}" for name in sorted(clashes)[:_EXAMPLES]]
        problems.append(
            f"queries.jsonl: documents connect dev and test through {len(clashes)} queries, such "
            f"as {', '.join(some)}: what tunes a system on dev may give away answers in test"
        )
    return problems


def _check_version(dataset: Dataset, findings: Findings) -> None:
    """Check what refreshes wrote, and that scripts read by name what is published."""
    _read(dataset.documents, findings)
    _read(dataset.past.revisions, findings)
    _read(dataset.past.events, findings)
    _read(dataset.past.dormant_grades, findings)
    version = dataset.manifest.version
    for diff in _read(lambda: [dataset.past.diff()], findings):
        if diff is not None and diff.version != version:
            findings.problems.append(
                f"diff.json: version: expected {version}, as in manifest.json, got {diff.version}"
            )
    number = number_of(dataset.files.name) if dataset.files != dataset.home else None
    if number not in (None, version):
        findings.problems.append(f"manifest.json: version: expected {number}, got {version}")
    findings.problems += [
        f"{name}: differs from {CURRENT}/{name}, which is published; it should be a link to it"
        for name in own_files(dataset.home)
    ]


def _check_calibrations(dataset: Dataset, findings: Findings) -> None:
    """Check that samples and labels hold to their formats."""
    for name in calibration_names(dataset):
        files = calibration_files(dataset, name)
        _read(partial(_sample, files), findings)
        _read(files.labels, findings)


def _sample(files: CalibrationFiles) -> list[LabelSample | Calibration | None]:
    return [files.sample(), files.calibration()]


def _check_history(dataset: Dataset, findings: Findings) -> None:
    for history in _read(lambda: [read_history(dataset.home)], findings):
        findings.notes += history.notes
        for item in history.evaluations:
            if values_path(dataset.home, item.evaluation_id).exists():
                _read(partial(_values, dataset, history, item), findings)


def _values(dataset: Dataset, history: History, item: Evaluation) -> list[KeptValues | None]:
    return [kept_values(dataset.home, history, item)]


def _ungraded(checks: list[Judgment], judgments: JudgmentTable) -> list[str]:
    """Return one line about the checks of pairs that no person grades, [] where all are."""
    checked = judgments.of_queries({check.query_id for check in checks})
    human = {pair[:2] for pair in checked.pairs(lambda of: of.source == "human")}
    lost = sum((check.query_id, check.chunk_id) not in human for check in checks)
    return [f"label_checks.jsonl: {lost} pairs have no grade of a person any more"] if lost else []


def _unfindable(judgments: JudgmentTable, known: Container[str]) -> list[str]:
    """Return a line about chunks, and one about documents, that the corpus does not have.

    That is such as people call relevant. Texts of other cuts are no chunks: their grades wait.
    """
    warnings = []
    for level in ("chunk", "document"):
        of_level = judgments.chunk_ids(partial(_is_relevant_by_people, level))
        of_corpus = (name for name in of_level if not is_text_id(name))
        gone = sorted(name for name in of_corpus if name not in known)
        if gone:
            shown = ", ".join(gone[:_EXAMPLES])
            warnings.append(
                f"judgments.jsonl: {plural(len(gone), f'relevant {level}')} of people's not in the "
                f"corpus, such as {shown}: no run can find them"
            )
    return warnings


def _is_relevant_by_people(level: str, of: Grading) -> bool:
    return of.source == "human" and of.level == level and bool(of.grade or of.relevant)


def _unknown(where: str, what: str, ids: Iterable[str], known: Container[str]) -> list[str]:
    """Return one line about the ids that are not known, [] where all are."""
    unknown = sorted({name for name in ids if name not in known})
    if not unknown:
        return []
    shown = ", ".join(unknown[:_EXAMPLES])
    return [f"{where}: {len(unknown)} {what} ids are unknown, such as {shown}"]
