"""Queries and labels that are there when a file brings them: what stays, and what it replaces.

A file speaks for itself. What it does not say stays as it is, and so do labels that people gave in
other ways. Another question under an id of the set is no edit, and takes nobody's place unasked.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from ragforge.corpus.quote_locations import fold
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import plural
from ragforge.files.set.sorted_records import Key, key_of
from ragforge.files.text import shown, shown_names
from ragforge.pipeline.graded_quotes import note_quotes
from ragforge.pipeline.intake.brought_answers import answered, is_answered_now, is_refused_still
from ragforge.pipeline.intake.imported_truth import FILE_MARK
from ragforge.pipeline.intake.reviewing import is_of_former_wording
from ragforge.records import Judgment, Query, is_text_id
from ragforge.retrieval.tokens import tokenize
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked, normal_question
from ragforge.stages.words import stem

_SETTLED: Final = (
    *("split", "split_before", "status", "revision", "gates", "measured", "reviewed", "pinned"),
    *("history", "standalone", "drawn"),
)
"""What a file of questions and answers does not tell."""
_MADE_HERE: Final = frozenset(
    ("lineage", "origin", "source_chunk_ids", "facts", "facts_by", "facts_of")
)
"""What follows from the rest, or from the import."""
_COUNTED: Final = MappingProxyType({"expected_answer": "answers", "evidence": "evidence"})
"""Fields whose loss would cost most, as they are told."""
_ALIKE: Final = 0.5
"""Share of words from which on another wording in the file that brought a query is an edit."""
_EXAMPLES: Final = 3
Fate: TypeAlias = Literal[
    "stays", "replaced", "regraded", "dropped", "of another question", "out of date"
]


@dataclass(frozen=True, slots=True)
class Reimported:
    """Imported queries, after what is there was taken into account.

    Args:
        queries: What is to be written.
        reworded: Ids of those of them that ask something else than before.
        held: Ids of queries that people approved, edited or pinned: they stay as they are.
        retired: Ids of queries that people rejected, or that were taken out: they stay out.
        differing: Ids of held queries that the file has otherwise.
        others: Queries of before, and those of the file that ask another thing under their ids.
        kept: By field, of how many queries it stays because the file does not say it.
        answered: Ids of queries that were to be refused, and to which the file brings an answer or
            its place: they are answerable.
        refused_still: Ids of such whose new answer says that something is not so, or not told, and
            for which the file does not say that they can be answered.
    """

    queries: list[Query] = field(default_factory=list)
    reworded: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    retired: set[str] = field(default_factory=set)
    differing: set[str] = field(default_factory=set)
    others: dict[str, "Clash"] = field(default_factory=dict)
    kept: Counter[str] = field(default_factory=Counter)
    answered: set[str] = field(default_factory=set)
    refused_still: set[str] = field(default_factory=set)

    @property
    def fixed(self) -> set[str]:
        """Queries that the file changes nothing of, nor of their grades."""
        return self.held | self.retired

    @property
    def replaced(self) -> set[str]:
        """Queries whose place another question takes."""
        return self.others.keys() - self.fixed


class Clash(NamedTuple):
    """Two questions under one id."""

    there: str
    brought: str


def reimported(
    new: Iterable[Query],
    before: Mapping[str, Query],
    unsaid: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Reimported:
    """Return imported queries with what is known about those they replace.

    A query that a person approved, edited or pinned stays as it is, and a retired one stays so. Of
    the others, one whose wording is the same keeps its split, status, revision and checks, unless
    the file brings its own; another wording is another revision in the same split.

    Args:
        new: Those of the file.
        before: Those of the set, by id.
        unsaid: By query, the fields of which the file says nothing; see `ImportedQuery`.
    """
    result = Reimported()
    for query in new:
        old = before.get(query.query_id)
        if old is None:
            result.queries.append(query)
        elif _is_another(query, old):
            result.others[old.query_id] = Clash(old.asked, query.asked)
            _take(query, old, result)
        else:
            given = _filled(query, old, unsaid.get(query.query_id, ()))
            if query.answerable and not given.answerable:
                given = _answered(query, given, old, result)
            _take(given, old, result)
            _count_kept(query, given, result)
    return result


def _take(query: Query, old: Query, result: Reimported) -> None:
    if old.status == "retired":
        result.retired.add(old.query_id)
    elif old.reviewed is not None or old.pinned is not None:
        result.held.add(old.query_id)
        if _as_in_file(_with_settled(query, old)) != _as_in_file(old):
            result.differing.add(old.query_id)
    elif _wording(query) == _wording(old):
        result.queries.append(_with_settled(query, old))
    else:
        result.queries.append(_next_revision(query, old))
        if query.asked != old.asked:
            result.reworded.add(query.query_id)


def _count_kept(query: Query, given: Query, result: Reimported) -> None:
    if given.query_id not in result.fixed:
        result.kept.update(
            name for name in _COUNTED if getattr(given, name) != getattr(query, name)
        )


def _is_another(query: Query, old: Query) -> bool:
    """Whether a query asks another thing than the one that has its id.

    The file that brought the query may put it in other words, most of which are the same; any other
    file only in nearly the same ones. What a review made of it may be far from both.
    """
    if query.query == old.query or normal_question(query.query) == normal_question(old.asked) != "":
        return False
    if _is_of_one_file(query, old):
        is_settled = old.reviewed is not None or old.pinned is not None or old.status == "retired"
        return not is_settled and _likeness(query.asked, old.asked) < _ALIKE
    return QuestionsAsked([(old.query_id, old.asked)]).clash(query.asked) is None


def _is_of_one_file(query: Query, old: Query) -> bool:
    """Whether a file brings a query again; of older queries of people it is not known."""
    if old.lineage is None or query.lineage is None:
        return old.lineage is None
    if query.lineage.kind != "human" or old.lineage.kind != "human":
        return query.lineage == old.lineage
    return old.lineage.protocol in ("", query.lineage.protocol)


def _is_marked(query: Query) -> bool:
    """Whether the file that brings a query says nothing of where it comes from."""
    return query.lineage is not None and query.lineage.protocol.startswith(FILE_MARK)


def _likeness(one: str, other: str) -> float:
    """Return the share of the words of two questions that both have."""
    words, others = ({stem(word) for word in tokenize(text)} for text in (one, other))
    return 2 * len(words & others) / max(1, len(words) + len(others))


def _filled(query: Query, old: Query, unsaid: Collection[str]) -> Query:
    """Return a query with what the file does not say as it is there."""
    names = set(unsaid)
    if _is_marked(query) and not _is_of_one_file(query, old):
        # Who labels a question that is there did not write it, and takes no quotes from it.
        names |= {"origin", "lineage"} if query.query == old.query else set()
        names |= set() if query.evidence else {"evidence"}
    if "evidence" in names:
        names.add("source_chunk_ids")
    return query.model_copy(update={name: getattr(old, name) for name in names})


def _answered(query: Query, given: Query, old: Query, result: Reimported) -> Query:
    """Return a query that was to be refused as one that is not, where a file brings its answer.

    Args:
        query: As the file has it; it does not say that it is to be refused.
        given: With what the file does not say.
        old: As it is there.
        result: Told.
    """
    is_held = old.reviewed is not None or old.pinned is not None or old.status == "retired"
    if _places(query) - _places(old) or is_answered_now(old, query.expected_answer):
        result.answered.update(() if is_held else {old.query_id})
        return given.model_copy(update=answered(given))
    if is_refused_still(old, query.expected_answer) and not is_held:
        result.refused_still.add(old.query_id)
    return given


def _places(query: Query) -> set[tuple[str, str]]:
    return {(item.doc_id, item.quote) for item in query.evidence}


def _with_settled(query: Query, old: Query) -> Query:
    blank = Query(query_id="q", query="q")
    update = {
        name: getattr(old, name)
        for name in _SETTLED
        if getattr(query, name) == getattr(blank, name)
    }
    if query.split is not None:
        update.pop("split_before", None)
    return query.model_copy(update=update)


def _next_revision(query: Query, old: Query) -> Query:
    """Return a query of another wording, in the split of the old one unless the file names one."""
    update: dict[str, object] = {"revision": max(query.revision, old.revision + 1)}
    if query.split is None:
        update |= {"split": old.split, "split_before": old.split_before}
    return query.model_copy(update=update)


def _as_in_file(query: Query) -> Query:
    """Return a query with what a file can tell of it, and no more."""
    blank = Query(query_id="q", query="q")
    return query.model_copy(update={name: getattr(blank, name) for name in _MADE_HERE})


def _wording(query: Query) -> tuple[str, str]:
    return (query.query, query.expected_answer or "")


def refuse_other_questions(taken: Reimported, where: str, there: Path) -> None:
    """Refuse a file that has other questions under ids of a set.

    Raises:
        UsageError: It has.
    """
    if not taken.others:
        return
    some = list(taken.others.items())[:_EXAMPLES]
    told = "; ".join(
        f"{shown(name)} asks {shown(clash.there)} there, {shown(clash.brought)} in the file"
        for name, clash in some
    )
    n_more = len(taken.others) - len(some)
    more = f"; and {n_more:,} more" if n_more else ""
    n = plural(len(taken.others), "id is", "ids are")
    raise UsageError(
        f"{where}: {n} of another question in {there}: {told}{more}. Give those of the file other "
        "ids; --replace puts them in the place of those that are there, whose labels then go; "
        "nothing was taken in"
    )


@dataclass(slots=True)
class LabelsBefore:
    """What becomes of the judgments that are there.

    Args:
        taken: The queries.
        graded: Queries of which the file says by people what is relevant.
        new: Judgments of the file, by pair.
        mark: Of labels that the file gave before; see `file_mark`.
    """

    taken: Reimported
    graded: Collection[str]
    new: Mapping[Key, Judgment]
    mark: str = ""
    _quotes: dict[str, dict[str, int]] = field(default_factory=dict)

    def fate(self, old: Judgment) -> Fate:
        """Return what becomes of a judgment."""
        name = old.query_id
        if name in self.taken.fixed:
            return "stays"
        if name in self.taken.replaced:
            return "of another question"
        if is_of_former_wording(old, self.taken.reworded):
            return "out of date"
        if old.source == "human" and name in self.graded:
            now = self.new.get(key_of(old))
            if now is not None and now.source == "human":
                return "stays" if self._is_told_again(old, now) else "replaced"
            if self.mark and _protocol(old) == self.mark:
                return "dropped"
            if is_text_id(old.chunk_id) and self._names_quotes(old):
                return "regraded"
        return "stays"

    def _names_quotes(self, old: Judgment) -> bool:
        """Whether a text of before has its grade by quotes, which the file all grades anew."""
        if not self._quotes:
            for judgment in self.new.values():
                note_quotes(self._quotes, judgment)
        of_query, given = self._quotes.get(old.query_id, {}), old.given_to_quotes
        return bool(given) and all(fold(one.quote) in of_query for one in given)

    def _is_told_again(self, old: Judgment, now: Judgment) -> bool:
        """Whether a person gave the same label in another way: it keeps its quotes and its name."""
        quotes = now.given_to_quotes
        is_same = (old.grade, old.relevant) == (now.grade, now.relevant)
        if not is_same or (quotes and quotes != old.given_to_quotes):
            return False
        return _protocol(old) not in ("", self.mark) or _person(old) != _person(now)

    def sorted_out(self, there: Iterable[Judgment]) -> "SortedLabels":
        """Return which judgments stay, and what the others were."""
        found = SortedLabels()
        brought = {query.query_id for query in self.taken.queries}
        for old in there:
            fate = self.fate(old)
            if fate == "stays":
                found.kept.append(old)
                is_named = old.source != "human" or key_of(old) in self.new
                found.n_standing += old.query_id in brought and not is_named
            elif fate == "replaced":
                now = self.new[key_of(old)]
                found.n_replaced += (old.grade, old.relevant) != (now.grade, now.relevant)
            elif fate == "dropped":
                found.n_dropped += 1
                if old.query_id not in self.taken.reworded:
                    found.returning.add(key_of(old))
            elif fate == "of another question":
                found.n_of_others += 1
        return found


@dataclass(slots=True)
class SortedLabels:
    """The judgments that were there."""

    kept: list[Judgment] = field(default_factory=list)
    n_replaced: int = 0
    """People's grades that are others in the file."""
    n_standing: int = 0
    """People's grades of the file's queries that the file does not name."""
    n_of_others: int = 0
    """Grades of questions whose place others take."""
    n_dropped: int = 0
    """Labels that the file gave before, and does not give any more."""
    returning: set[Key] = field(default_factory=set)
    """Their pairs, for which the grade of a judge counts again, if there is one."""

    def return_to_judges(self, checks: Iterable[Judgment]) -> list[Judgment]:
        """Put grades of judges back where no person's is left, and return the other checks.

        Args:
            checks: Grades of judges beside those of people.
        """
        found = list(checks)
        returned = {key_of(check): check for check in found if key_of(check) in self.returning}
        self.kept.extend(returned.values())
        return [check for check in found if check is not returned.get(key_of(check))]


def replaced_notes(taken: Reimported, labels: SortedLabels) -> Iterator[str]:
    """Yield in numbers what a file replaced in a set, and what of it stays."""
    if taken.replaced:
        n = plural(len(taken.replaced), "question")
        grades = plural(labels.n_of_others, "grade")
        gone = "is gone" if labels.n_of_others == 1 else "are gone"
        yield (
            f"{n} replaced by others of the file under the same ids "
            f"({shown_names(sorted(taken.replaced))}); {grades} given for what was asked before "
            f"{gone}"
        )
    if reworded := taken.reworded - taken.replaced:
        n = plural(len(reworded), "question is", "questions are")
        yield f"{n} worded otherwise than before: {shown_names(sorted(reworded))}"
    if kept := [
        f"{what} of {taken.kept[name]:,}" for name, what in _COUNTED.items() if name in taken.kept
    ]:
        yield f"what the file does not say stays: {' and '.join(kept)}"
    yield from _answer_notes(taken)
    if labels.n_replaced:
        n = plural(labels.n_replaced, "grade")
        yield f"{n} that people gave before replaced by those of the file"
    if labels.n_dropped:
        n = plural(labels.n_dropped, "label")
        yield f"{n} that the file gave before and does not give any more taken out"
    if labels.n_standing:
        n = plural(labels.n_standing, "grade")
        verb = "stands" if labels.n_standing == 1 else "stand"
        yield f"{n} of people that the file does not name {verb}"


def _answer_notes(taken: Reimported) -> Iterator[str]:
    if taken.answered:
        n = plural(len(taken.answered), "question")
        yield (
            f"{n} that had to be refused, to which the file brings an answer, answerable now: "
            f"{shown_names(sorted(taken.answered))}"
        )
    if taken.refused_still:
        n = plural(len(taken.refused_still), "question")
        yield (
            f"{n} still to be refused, as the new answer says that something is not so, or not "
            f"told: {shown_names(sorted(taken.refused_still))}; answerable: true in the file says "
            "otherwise"
        )


def _protocol(old: Judgment) -> str:
    return old.provenance.protocol if old.provenance is not None else ""


def _person(judgment: Judgment) -> str:
    return judgment.provenance.model if judgment.provenance is not None else ""
