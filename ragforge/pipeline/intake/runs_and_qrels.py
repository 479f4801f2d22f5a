"""Taking runs and qrels of files into a dataset, by the ids of queries and chunks that it knows."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, cast

from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.files.formats.export_note import Graded, Source
from ragforge.files.formats.named_texts import NamedText
from ragforge.files.formats.qrels import JudgedQrels, judgments_in, read_judged_qrels
from ragforge.files.formats.queries import ImportedQueries, has_zeros
from ragforge.files.formats.query_rows import ImportedQuery
from ragforge.files.formats.row_relevance import HIGHEST_GRADE
from ragforge.files.formats.runs import Ranked, Run, read_worded_run
from ragforge.files.manifest import RunOrigin
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import LabelNames
from ragforge.files.set.integrity import chunks_digest
from ragforge.files.set.stale_runs import MISSING_MOST, lacks_too_many
from ragforge.files.set.unknown_hits import none_known_text
from ragforge.files.source_files import plain_name
from ragforge.files.text import shown, shown_names
from ragforge.observe import Event, Observer
from ragforge.pipeline.intake.graded_before import OtherJudges
from ragforge.pipeline.intake.imported_truth import MODEL_MARK
from ragforge.pipeline.intake.importing import USUAL_THRESHOLD, ImportResult, add_logged
from ragforge.pipeline.intake.query_names import QueryNames
from ragforge.records import Failure, Hit, Provenance, Query, Ranking, id_in_set
from ragforge.records.judgments import GradeOrigin
from ragforge.records.record import JudgeKind

_EXAMPLES: Final = 3
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._+-]+")
_MOST_NAME_CHARS: Final = 100
_WHOLE: Final = re.compile(r"-?[0-9]{1,9}")
_GRADES: Final = frozenset(map(str, range(HIGHEST_GRADE + 1)))


@dataclass(slots=True)
class RunTaken:
    """What the import of a run came to.

    Args:
        name: Of the run in the set.
        n_queries: Of the set that have a ranking now.
        n_hits: Retrieved, over these queries.
    """

    name: str
    n_queries: int = 0
    n_hits: int = 0
    n_unknown_hits: int = 0
    """Hits of which the set knows no chunk and no document; they keep their ranks."""
    unknown_ids: dict[str, None] = field(default_factory=dict)
    """Their ids, in the order of the file."""
    unknown_queries: tuple[str, ...] = ()
    """Queries of the file that the set does not have; they are left out."""
    failed: dict[str, str] = field(default_factory=dict)
    """Queries of the set that failed by what the file says, and why."""
    n_without: int = 0
    """Queries of the set that the file lacks: they count 0."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Ids of the file that stand for another id of the set."""
    n_whole_documents: int = 0
    """Hits that name a document of several chunks, where the labels of the set name chunks."""
    n_repeated: int = 0
    """Hits that name what stands higher in the same ranking, by another id; they are left out."""
    has_replaced: bool = False
    """Whether another run had the name."""


@dataclass(frozen=True, slots=True)
class QrelsTaken:
    """What the import of qrels came to."""

    result: ImportResult
    unknown_queries: tuple[str, ...] = ()
    """Queries of the file that the set does not have; they are left out."""
    n_by_id: int = 0
    """New queries, of which the file tells no more than how they are called."""
    n_pairs: int = 0
    """Judgments of the file."""
    scale: Literal["binary", "graded"] = "graded"
    """Whether the file tells relevant from not, and no more; relevant is then grade 2."""
    n_ones: int = 0
    """Grades of 1 in the file, as far as the set has their queries."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Judgments that were not taken in, by the reason in words."""


def import_run(
    path: Path,
    dataset: Dataset,
    observer: Observer,
    name: str = "",
    *,
    allow_missing: bool = False,
) -> RunTaken:
    """Take the run of a file into a dataset; an imported one of that name is replaced, and told.

    Hits of unknown chunks keep their ranks, since without them the run would look better than it
    is. A document stands for its chunk where each has one.

    Args:
        path: A run in any of the shapes that `read_run` takes.
        dataset: Has queries; where it has no chunks, ids are taken as they are.
        observer: Told of ids that are unknown or stand for others.
        name: Of the run; that of the file where "".
        allow_missing: Take it though it would be held for one of other chunks, by the hits that the
            set does not know; it is one of the chunks that are there now.

    Raises:
        DataError: The file does not hold to its format, or the set knows none of its queries, or
            none of its chunks, or too few of them.
        UsageError: A retriever made the run of that name.
    """
    name = name or run_name_of(path)
    entry = dataset.manifest.files.get(f"runs/{name}.jsonl")
    if entry is not None and entry.run is not None and entry.run.retriever:
        raise UsageError(
            f"{path}: {dataset.path} has a run {name!r}, made by the retriever "
            f"{entry.run.retriever}; give the file's another --name"
        )
    run = read_worded_run(path)
    taken = RunTaken(name)
    rankings = _rankings(path, run, dataset, taken)
    _check_run(path, run, dataset, taken)
    origin = _allowed_origin(path, dataset, taken, allow_missing=allow_missing)
    with dataset.alone():
        dataset.write_run(name, rankings, origin)
        written = dataset.manifest.files[f"runs/{name}.jsonl"]
        taken.has_replaced = entry is not None and entry.sha256 != written.sha256
        failures = [
            Failure(what="retrieve", key=f"{name}/{query_id}", kind="error", message=why)
            for query_id, why in taken.failed.items()
        ]
        dataset.replace_failures("retrieve", failures, lambda key: key.startswith(f"{name}/"))
    for message in (*_place_notes(taken), *_run_notes(dataset, taken)):
        observer(Event("note", message=f"run {name}: {message}"))
    return taken


def _allowed_origin(
    path: Path, dataset: Dataset, taken: RunTaken, *, allow_missing: bool
) -> RunOrigin | None:
    """Return what keeps a run from being held for one of other chunks; None where nothing has to.

    Raises:
        DataError: It is held for one, and that is not allowed.
    """
    n_missing = taken.n_unknown_hits
    if taken.n_whole_documents and next(dataset.each_judgment(), None) is not None:
        n_missing += taken.n_whole_documents
    if not lacks_too_many(taken.n_hits, n_missing):
        return None
    if not allow_missing:
        raise DataError(
            f"{path}: {n_missing:,} of {taken.n_hits:,} hits are of no chunk of {dataset.path}, "
            f"more than {MISSING_MOST:.0%}: is it a run on other chunks? --allow-missing takes it: "
            "they keep their ranks"
        )
    return RunOrigin(chunks_sha256=chunks_digest(dataset))


def import_qrels(
    path: Path,
    dataset: Dataset,
    observer: Observer,
    *,
    made_by: str = "",
    allow_missing: bool = False,
    grades: Mapping[int, int] = MappingProxyType({}),
    others: OtherJudges = "refuse",
    judged: JudgedQrels | None = None,
) -> QrelsTaken:
    """Add the grades of a file of qrels to the queries of a dataset.

    A set without queries gets those of the file, which are called by their ids. A pair with a grade
    below 0 is not judged, as trec_eval has it. Who graded is kept where the file says it, else
    people did. Where somebody graded chunks as not relevant, what has no grade was not looked at.

    The whole file says which scale it is on, though the set may know a part of its queries. On one
    of 0 and 1 a 1 is relevant, and kept as grade 2, as on the set's scale 1 would say that no part
    of the answer is there. Beside grades of another scale that is refused, unless `grades` say what
    is meant: a file may be a part of one that goes to 3.

    Args:
        path: Qrels in any of the shapes that `read_judged_qrels` takes.
        dataset: Has queries, or none; where it has no chunks, ids are taken as they are.
        observer: Told of queries that are unknown.
        made_by: Who graded, for provenance.
        allow_missing: Keep ids that the corpus does not have.
        grades: What grades of the file are on the scale of the set, see `parse_grades`; others stay
            as they are.
        others: What becomes of grades that another model gave to the same pairs.
        judged: What of the file is taken; all of it where None.

    Raises:
        UsageError: There are such, and nobody said what becomes of them; nothing is written then.
        DataError: The file does not hold to its format, a grade is above 3, the scale is not that
            of the set, the set has none of its queries, or relevant ids are missing and not
            allowed; nothing is written then.
    """
    judged = _on_scale_of_set(judged or read_judged_qrels(path), grades)
    scale = _scale_of(judged, path, dataset, is_said=bool(grades))
    there = dataset.all_queries()
    names = QueryNames(there or [_called(key) for key in judged.grades])
    found = names.find(judged.grades)
    names.refuse_other_words(str(path), found, judged.questions)
    unknown = tuple(key for key, query in found.items() if query is None)
    if len(unknown) == len(found):
        raise _none_known(path, unknown, dataset)
    known = [(key, query) for key, query in found.items() if query is not None]
    imported = ImportedQueries(
        [_graded(judged, key, query) for key, query in known],
        judged.rel_threshold,
        judged.reading,
        is_graded=scale == "graded",
    )
    graders = _graders(path, judged, dict(known))
    for note in _notes(path, unknown, says_who=bool(graders or made_by)):
        observer(Event("note", message=note))
    result = add_logged(
        imported,
        dataset,
        observer,
        made_by=made_by,
        where=str(path),
        allow_missing=allow_missing,
        graders=graders,
        by_document=[query.query_id for key, query in known if key in judged.by_document],
        others=others,
    )
    _keep_labels(judged, dataset)
    if scale == "graded" and not judged.relevant:
        _keep_usual_threshold(dataset)
    return QrelsTaken(
        result,
        unknown,
        n_by_id=0 if there else len(known),
        n_pairs=sum(map(len, judged.grades.values())),
        scale=scale,
        n_ones=sum(grade == 1 for key, _ in known for grade in judged.grades[key].values()),
        left_out=_left_out(judged, unknown, result),
    )


def _notes(path: Path, unknown: Sequence[str], *, says_who: bool) -> Iterator[str]:
    """Yield what is to be known of a file whose grades are taken."""
    if unknown:
        yield f"{path}: left out {_listed(unknown, 'query', 'queries')} that the set does not have"
    if not says_who:
        yield (
            f"{path}: does not say who graded; the grades are taken for those of people. Where a "
            f"model gave them, import them with --made-by {MODEL_MARK}NAME"
        )


def parse_grades(text: str) -> dict[int, int]:
    """Return what grades of a file are on the scale of a set, of `2=1,3=2,4=3`.

    Raises:
        UsageError: A part is no GRADE=GRADE, comes twice, or leads to no grade from 0 to 3.
    """
    found: dict[int, int] = {}
    for part in text.split(","):
        given, _, grade = (piece.strip() for piece in part.partition("="))
        is_wrong = not (_WHOLE.fullmatch(given) and grade in _GRADES) or int(given) in found
        if is_wrong:
            raise UsageError(
                f"--grades {text}: expected each grade of the file once, and the one from 0 to 3 "
                "that it is in the set, such as 2=1,3=2,4=3"
            )
        found[int(given)] = int(grade)
    return found


def _on_scale_of_set(judged: JudgedQrels, grades: Mapping[int, int]) -> JudgedQrels:
    """Return qrels with the grades of a set for those of the file."""
    if not grades:
        return judged
    mapped = {
        key: {
            name: None if grade is None else grades.get(grade, grade)
            for name, grade in of_query.items()
        }
        for key, of_query in judged.grades.items()
    }
    threshold = judged.rel_threshold
    if threshold is not None:
        threshold = grades.get(threshold, threshold)
    return replace(judged, grades=mapped, rel_threshold=threshold)


def _scale_of(
    judged: JudgedQrels, path: Path, dataset: Dataset, *, is_said: bool
) -> Literal["binary", "graded"]:
    """Return whether a file tells relevant from not and no more, by all of its grades.

    Raises:
        DataError: The set is on another scale, and nobody said what is meant.
    """
    highest = max((grade or 0 for of in judged.grades.values() for grade in of.values()), default=0)
    if highest > HIGHEST_GRADE:
        steps = ",".join(f"{highest - n}={HIGHEST_GRADE - n}" for n in (2, 1, 0))
        raise DataError(
            f"{path}: has grades up to {highest}, and a set those from 0 to {HIGHEST_GRADE}: say "
            f"which of these they are, such as `ragforge import --grades {steps}`"
        )
    if is_said or any(origin.source != "human" for origin in judged.origins.values()):
        return "graded"
    is_binary = highest <= 1 and not judged.relevant and judged.rel_threshold in (None, 1)
    if is_binary and highest > 0 and _is_graded(dataset):
        raise DataError(
            f"{path}: has no grades but 0 and 1, and {dataset.path} is on a scale to "
            f"{HIGHEST_GRADE}, on which 1 is not relevant; say what a 1 of the file is: "
            "--grades 1=1 takes it for a 1 of that scale, --grades 1=2 for relevant"
        )
    if not is_binary and dataset.manifest.is_binary:
        raise DataError(
            f"{path}: has grades up to {highest}, and the labels of {dataset.path} tell relevant "
            "from not and no more: a 1 was kept as 2. Where all are of one scale, import them "
            "together, or into a new set, each with --grades 1=1; --grades 1=1 here takes this "
            "file as it is, beside what is relevant there"
        )
    return "binary" if is_binary else "graded"


def _is_graded(dataset: Dataset) -> bool:
    """Whether a set has labels, and they say more than what is relevant."""
    manifest = dataset.manifest
    if manifest.is_binary:
        return False
    return manifest.rel_threshold is not None or any(
        item.grade or item.relevant for item in dataset.each_judgment()
    )


def _left_out(judged: JudgedQrels, unknown: Iterable[str], result: ImportResult) -> dict[str, int]:
    """Return how many judgments were not taken in, by the reason in words."""
    others = frozenset(unknown)
    known = [of for key, of in judged.grades.items() if key not in others]
    counts = {
        "of queries that the set does not have": sum(len(judged.grades[key]) for key in others),
        "below 0, which is not judged": sum(
            grade is not None and grade < 0 for of in known for grade in of.values()
        ),
        "of grade 0, of chunks that the set does not have": result.n_unknown,
        "of chunks that another id of the file names too": result.n_repeated,
        "graded by people before": result.n_there,
        "graded by another judge before": len(result.met.kept),
    }
    return {why: n for why, n in counts.items() if n}


def _called(key: str) -> Query:
    """Return a query of which nothing but its id, or its text, is known."""
    return Query(query_id=key, query=key, origin="human")


def _keep_labels(judged: JudgedQrels, dataset: Dataset) -> None:
    """Keep what a chunk without a grade is, where the set does not say it yet."""
    manifest = dataset.manifest
    was_pooled = any(has_zeros(of_query.values()) for of_query in judged.grades.values())
    labels = judged.labels or ("pooled" if was_pooled else None)
    if labels is not None and manifest.labels is None:
        dataset.write_manifest(manifest.model_copy(update={"labels": labels}))


def _keep_usual_threshold(dataset: Dataset) -> None:
    """Keep that grade 1 is not relevant in a graded set of which no grade says it."""
    manifest = dataset.manifest
    is_plain = any((item.grade or 0) >= USUAL_THRESHOLD for item in dataset.each_judgment())
    if manifest.rel_threshold is None and not is_plain:
        dataset.write_manifest(manifest.model_copy(update={"rel_threshold": USUAL_THRESHOLD}))


def _graded(judged: JudgedQrels, key: str, query: Query) -> ImportedQuery:
    grades = {
        name: grade for name, grade in judged.grades[key].items() if grade is None or grade >= 0
    }
    listed = judged.relevant.get(key)
    marks = (
        {}
        if listed is None
        else {name: name in listed for name in {**grades} | dict.fromkeys(listed)}
    )
    return ImportedQuery(query, grades, marks=marks, texts=tuple(judged.texts.get(key, ())))


def _graders(
    path: Path, judged: JudgedQrels, known: Mapping[str, Query]
) -> dict[tuple[str, str], Graded]:
    """Return who gave the grades of a file that says so, by query of the set and id of the file."""
    graders = {pair: _graded_by(origin) for pair, origin in judged.origins.items()}
    for item in judgments_in(path):
        graders[item.query_id, item.chunk_id] = Graded(item.source, item.provenance)
    return {
        (known[key].query_id, chunk_id): by
        for (key, chunk_id), by in graders.items()
        if key in known
    }


def _graded_by(origin: GradeOrigin) -> Graded:
    if not origin.kind:
        return Graded(cast("Source", origin.source), None)
    by = Provenance(kind=cast("JudgeKind", origin.kind), model=origin.model, prompt=origin.prompt)
    return Graded(cast("Source", origin.source), by)


def _rankings(path: Path, run: Run, dataset: Dataset, taken: RunTaken) -> list[Ranking]:
    """Return the rankings of the queries that a set has, with its ids.

    Raises:
        UsageError: The words beside an id are those of another query.
        DataError: A text beside an id is that of another chunk.
    """
    queries = dataset.all_queries()
    names = QueryNames(queries)
    found = names.find(run.rankings)
    names.refuse_other_words(str(path), found, run.questions)
    ids = _HitNames(dataset, taken)
    ids.refuse_other_texts(run.texts)
    rankings: dict[str, Ranking] = {}
    unknown = []
    for key, query in found.items():
        if query is None:
            unknown.append(key)
            continue
        ranked = run.rankings[key]
        if key in run.failures:
            taken.failed[query.query_id] = run.failures[key]
            continue
        ranking = Ranking(
            query_id=query.query_id, ranking=ids.hits(ranked), latency_s=run.latencies_s.get(key)
        )
        rankings[query.query_id] = ranking.for_question(query.asked)
    taken.unknown_queries = tuple(unknown)
    taken.n_queries = len(rankings)
    asked = {query.query_id for query in queries if query.status == "accepted" and query.answerable}
    judged = {item.query_id for item in dataset.each_judgment()}
    taken.n_without = len(
        (asked & judged if judged else asked) - rankings.keys() - taken.failed.keys()
    )
    return list(rankings.values())


class _HitNames:
    """Finds the chunks that the ids of a run mean, and counts those that mean none.

    Args:
        dataset: Has the chunks, or none.
        taken: Counts.
    """

    def __init__(self, dataset: Dataset, taken: RunTaken) -> None:
        self._chunks = chunks = list(dataset.chunks())
        self._taken = taken
        self._has_chunks = bool(chunks)
        self._texts = {text.chunk_id for text in dataset.retrieved_texts()}
        self._names = LabelNames(chunks, self._texts)
        self._are_chunks_labelled = dataset.manifest.level is None

    def refuse_other_texts(self, texts: Sequence[NamedText]) -> None:
        """Refuse a run in which a text beside the id of a chunk stands in another one; see there.

        Raises:
            DataError: It does.
        """
        if texts and self._has_chunks:
            from ragforge.pipeline.intake.named_passages import refuse_other_texts

            refuse_other_texts(self._chunks, texts, self._names.find_hit)

    def hits(self, ranked: Ranked) -> tuple[Hit, ...]:
        """Return the hits of a ranking, best first, each once."""
        scores = _in_order(ranked)
        ids: dict[str, float] = {}
        for name, score in scores.items():
            ids.setdefault(self._id_of(name), score)
        self._taken.n_repeated += len(scores) - len(ids)
        if ids.keys() != scores.keys() or not all(map(isfinite, ids.values())):
            # Ties were broken by the ids of the file.
            ids = {name: 1 / rank for rank, name in enumerate(ids, 1)}
        self._taken.n_hits += len(ids)
        return tuple(Hit(chunk_id=name, score=score) for name, score in ids.items())

    def _id_of(self, name: str) -> str:
        if name in self._texts:
            return name
        if not self._has_chunks:
            return id_in_set(name)
        meant = self._names.find_hit(name)
        if len(meant) != 1:
            self._taken.n_unknown_hits += 1
            self._taken.unknown_ids[name] = None
            return name
        [label] = meant
        if label.id not in (name, id_in_set(name)):
            self._taken.renamed[name] = label.id
        if label.level == "document" and self._are_chunks_labelled:
            self._taken.n_whole_documents += 1
        return label.id


def _in_order(ranked: Ranked) -> dict[str, float]:
    """Return scores by id, best first, as trec_eval has them: of equal ones the higher id first."""
    if not isinstance(ranked, Mapping):
        return {name: 1 / rank for rank, name in enumerate(ranked, 1)}
    ordered = sorted(ranked.items(), key=lambda item: (item[1], item[0]), reverse=True)
    return dict(ordered)


def _check_run(path: Path, run: Run, dataset: Dataset, taken: RunTaken) -> None:
    """Refuse a run that has nothing to do with a set.

    Raises:
        DataError: The set knows none of its queries, or none of its chunks.
    """
    if run.rankings and not taken.n_queries and not taken.failed:
        raise _none_known(path, taken.unknown_queries, dataset)
    if taken.n_hits and taken.n_unknown_hits >= taken.n_hits:
        there = next(iter(dataset.chunks()))
        raise DataError(f"{path}: {none_known_text(dataset, taken.unknown_ids, there)}")


def _place_notes(taken: RunTaken) -> Iterator[str]:
    """Yield what gave way: a run of that name, and hits that come twice."""
    if taken.has_replaced:
        yield "takes the place of another run of that name"
    if taken.n_repeated:
        names = "hit names" if taken.n_repeated == 1 else "hits name"
        yield (
            f"{taken.n_repeated:,} {names} what stands higher in its ranking under another id; it "
            "counts once, and what is below moves up"
        )


def _run_notes(dataset: Dataset, taken: RunTaken) -> Iterator[str]:
    """Yield what deserves a line."""
    if taken.unknown_queries:
        unknown = _listed(taken.unknown_queries, "query", "queries")
        yield f"left out {unknown} that the set does not have"
    if taken.failed:
        why = next(iter(taken.failed.values()))
        yield f"{plural(len(taken.failed), 'query', 'queries')} failed by the file ({shown(why)})"
    if taken.n_without:
        n = plural(taken.n_without, "query", "queries")
        yield f"{n} of the set {'is' if taken.n_without == 1 else 'are'} not in it and count 0"
    if taken.n_unknown_hits:
        yield (
            f"{taken.n_unknown_hits:,} of {taken.n_hits:,} hits are of no chunk and no document of "
            f"the set ({_listed(tuple(taken.unknown_ids), 'id')}); they keep their ranks and "
            "are relevant only where labels name them"
        )
    if taken.renamed:
        some = "; ".join(f"{a} is {b}" for a, b in list(taken.renamed.items())[:_EXAMPLES])
        yield f"{plural(len(taken.renamed), 'id')} by document or end of path: {some}"
    if taken.n_whole_documents:
        has_grades = next(dataset.each_judgment(), None) is not None
        yield (
            f"{taken.n_whole_documents:,} of {taken.n_hits:,} hits name documents of several chunks"
            + (
                "; the set's labels name chunks, so that these cannot be relevant"
                if has_grades
                else ""
            )
        )


def _none_known(path: Path, unknown: Sequence[str], dataset: Dataset) -> DataError:
    there = [query.query_id for query in dataset.all_queries()]
    has = f"the set has {shown_names(there)}" if there else "it has none; bring them in first"
    return DataError(
        f"{path}: no query is in {dataset.path}: it holds {shown_names(unknown)}; {has}"
    )


def _listed(names: Sequence[str], one: str, several: str = "") -> str:
    return f"{plural(len(names), one, several or f'{one}s')} ({shown_names(names)})"


def run_name_of(path: Path) -> str:
    """Return the name of a file as one that a run may have."""
    return _NO_NAME.sub("-", plain_name(path)).lstrip("-._+")[:_MOST_NAME_CHARS] or "run"
