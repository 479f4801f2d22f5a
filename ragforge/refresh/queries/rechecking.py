"""Checking queries again: first around their quotes, then wherever the corpus may answer them.

Quotes of one step each prove it; the steps of an answer are all needed. What stands verbatim is
kept as it is. A step that lost its quotes is proved again by a check of its own, whose words must
not be those that prove another step: so no evidence is ever left that does not prove its step.
"""

import functools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Final, Literal

from ragforge.config import Settings
from ragforge.corpus.quote_locations import evidence_at, fold
from ragforge.deferred import dataclass
from ragforge.observe import Observer
from ragforge.pipeline.backend import Backend
from ragforge.pipeline.surveying import StoredSurvey
from ragforge.records import Evidence, Failure, Provenance, Query
from ragforge.refresh.queries.passages import (
    CorpusNow,
    NearbyChunks,
    ShownPassage,
    best_part,
    gathered,
    searched,
)
from ragforge.refresh.quotes.locations import VERBATIM, LocatedQuery, LocatedQuote, in_place
from ragforge.stages.asking import Asker
from ragforge.stages.generate.checks.absence import Corpus, near, search
from ragforge.stages.generate.checks.batches import item_of_query
from ragforge.stages.recheck import PROMPT, Context, Finding, LexicalRecheck, LLMRecheck, Subject
from ragforge.stages.runner import Collected, Judge, Work, Workers, collect, nothing

_MULTI_HOP: Final = frozenset({"multi_hop", "multi_hop_across"})
SEARCH_PROMPT = "find_answer"
RecheckOutcome = Literal["answered", "open", "none", "absent"]
"""answered: every step is proved. open: there is an answer, and not all of it could be put in its
place. none: no passage that was shown answers it. absent: it was looked for, and is not there."""


@dataclass(slots=True)
class AnswerStep:
    """A step of an answer.

    Args:
        quotes: The quotes that proved it.
        evidence: What proves it now; () for nothing.
    """

    quotes: tuple[LocatedQuote, ...]
    evidence: tuple[Evidence, ...] = ()

    @property
    def hop(self) -> int:
        """Its number in the evidence."""
        return self.quotes[0].evidence.hop

    @property
    def is_gone(self) -> bool:
        """Whether nothing like its quotes is known to stand anywhere."""
        return all(located.state == "gone" for located in self.quotes)


def steps_of(located: LocatedQuery) -> list[AnswerStep]:
    """Return the steps of an answer: its hops, or the quotes of a multi-hop query with one hop."""
    hops = sorted({one.evidence.hop for one in located.quotes})
    parts: list[tuple[LocatedQuote, ...]] = [(one,) for one in located.quotes]
    if len(hops) > 1 or located.query.type not in _MULTI_HOP:
        parts = [tuple(one for one in located.quotes if one.evidence.hop == hop) for hop in hops]
    return [
        AnswerStep(part, tuple(in_place(one) for one in part if one.state in VERBATIM))
        for part in parts
    ]


@dataclass(slots=True)
class QueryDraft:
    """The next revision of a query that is checked again, as far as it is proved.

    Args:
        query: As it was.
        steps: Of its answer.
        answer: The other answer that was found; "" for none.
        by: Who said the last of it.
        is_relinked: Whether a quote took the place of one that is gone.
        is_reworded: Whether a quote came in.
    """

    query: Query
    steps: list[AnswerStep]
    answer: str = ""
    by: Provenance | None = None
    is_relinked: bool = False
    is_reworded: bool = False
    focuses: list[int | None] = field(init=False)
    """The steps to be proved again, each by a check of its own; None for the answer as a whole."""

    def __post_init__(self) -> None:
        self.focuses = [at for at, step in enumerate(self.steps) if not step.evidence] or [None]

    @property
    def expected(self) -> str:
        """The answer to be confirmed; of a query without one what its quotes say."""
        said = self.query.expected_answer or ""
        told = " ".join(one.evidence.quote for step in self.steps for one in step.quotes)
        return self.answer or (said if said.strip() else told)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What proves the answer now."""
        return tuple(dict.fromkeys(one for step in self.steps for one in step.evidence))

    def quotes(self, focus: int | None) -> tuple[str, ...]:
        """Return the old quotes of a step, or of all."""
        return tuple(one.quote for one in self._before(focus))

    def around(self, focus: int | None) -> tuple[tuple[str, str], ...]:
        """Return what stood before and behind each of these quotes."""
        return tuple((one.prefix, one.suffix) for one in self._before(focus))

    def contexts(self, focus: int | None) -> tuple[Context, ...]:
        """Return what told of what each of these quotes spoke."""
        return tuple(one.context for one in self._located(focus))

    def others(self, focus: int | None) -> tuple[str, ...]:
        """Return what proves the other steps."""
        if focus is None:
            return ()
        return tuple(
            one.quote for at, step in enumerate(self.steps) if at != focus for one in step.evidence
        )

    def take(
        self,
        focus: int | None,
        finding: Finding,
        passages: Sequence[ShownPassage],
        *,
        is_found: bool,
    ) -> bool:
        """Take in what a check found, and say whether every step still has what proves it.

        Args:
            focus: The step that was to be proved; None for the answer as a whole.
            finding: An answer, the same or another.
            passages: The passages.
            is_found: Whether a search in the whole corpus brought some of them.
        """
        assert finding.proof is not None
        self.by = finding.by
        part = passages[finding.proof.passage]
        new = part.evidence(finding.proof.place, 1)
        if finding.verdict == "changed":
            # Whether another answer still corrects a premise, or covers all that may be meant,
            # cannot be read off it; and two other answers are one too many.
            is_plain = self.query.expected_behaviour == "answer" and not self.answer
            self.answer = finding.answer
            at = self._nearest(new) if focus is None else focus
            return is_plain and at is not None and self._put(at, new)
        if focus is not None:
            return self._put(focus, self._wording(focus, new))
        if not is_found or self._has(new):
            return True
        self.is_relinked = True
        return len(self.steps) == 1 and self._put(0, new)

    def _before(self, focus: int | None) -> list[Evidence]:
        return [one.evidence for one in self._located(focus)]

    def _located(self, focus: int | None) -> list[LocatedQuote]:
        steps = self.steps if focus is None else [self.steps[focus]]
        return [one for step in steps for one in step.quotes]

    def _put(self, at: int, new: Evidence) -> bool:
        step = self.steps[at]
        self.is_relinked |= step.is_gone
        self.is_reworded = True
        step.evidence = (new.model_copy(update={"hop": step.hop}),)
        return True

    def _wording(self, focus: int, new: Evidence) -> Evidence:
        """Return the new wording of an old quote where a proof is a part of it, else the proof."""
        for located in self.steps[focus].quotes:
            placed = located.placement
            if placed is None or not placed.is_whole or located.doc_id != new.doc_id:
                continue
            if fold(new.quote) in fold(placed.text):
                return evidence_at(located.evidence, placed)
        return new

    def _has(self, new: Evidence) -> bool:
        said, is_one = fold(new.quote), len(self.steps) == 1
        here = (one for one in self.evidence if one.doc_id == new.doc_id or not is_one)
        known = [fold(one.quote) for one in here]
        return any(said in one or one in said for one in known)

    def _nearest(self, new: Evidence) -> int | None:
        """Return the step whose evidence stands nearest to a new one in its document."""
        if len(self.steps) == 1:
            return 0
        far = {
            at: min(abs((one.start or 0) - (new.start or 0)) for one in here)
            for at, step in enumerate(self.steps)
            if (here := [one for one in step.evidence if one.doc_id == new.doc_id])
        }
        return min(far, key=lambda at: far[at], default=None)


@dataclass(frozen=True, slots=True)
class Recheckers:
    """Who checks again.

    Args:
        recheck: Whether passages still give an expected answer.
        find: A model with the prompt for looking for answers that should not be there; None for
            the offline baseline, which cannot tell that there is none.
        concurrency: Queries in work at once.
        observer: Told of progress.
        on_stop: As in `Work`.
    """

    recheck: Judge[Subject, Finding]
    find: Asker | None
    concurrency: int
    observer: Observer
    on_stop: Callable[[], None] = nothing


def recheckers_of(backend: Backend, settings: Settings, observer: Observer) -> Recheckers:
    """Return who checks again, made from an open model; its prompts count as used from now on.

    Raises:
        ConfigError: A prompt cannot be taken.
    """
    concurrency = backend.workers(settings.model.concurrency)
    asker, find = backend.with_prompt(PROMPT), backend.with_prompt(SEARCH_PROMPT)
    recheck = LexicalRecheck() if asker is None else LLMRecheck(asker)
    return Recheckers(recheck, find, concurrency, observer, backend.stop)


@dataclass(frozen=True, slots=True)
class RecheckedQuery:
    """What came of checking a query.

    Args:
        located: Of the query.
        outcome: How it ended.
        draft: With what was found.
        by: Who said the last of it; None where there was nothing to look at.
    """

    located: LocatedQuery
    outcome: RecheckOutcome
    draft: QueryDraft
    by: Provenance | None

    @property
    def is_baseline(self) -> bool:
        """Whether it is the offline baseline that says so."""
        return self.by is not None and self.by.kind == "baseline"


@dataclass(slots=True)
class Rechecking:
    """Checks queries again, and counts the calls.

    Args:
        corpus: As it is now.
        recheckers: Checks.
        calls: By query id.
        failures: Of checks that gave nothing, by query id.
    """

    corpus: CorpusNow
    recheckers: Recheckers
    calls: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Failure] = field(default_factory=dict)
    _surroundings: NearbyChunks | None = None
    _survey: Callable[[], StoredSurvey] = field(init=False)

    def __post_init__(self) -> None:
        self._survey = functools.cache(self.corpus.survey)

    async def check(self, located_queries: Sequence[LocatedQuery]) -> list[RecheckedQuery]:
        """Return what came of each query that could be checked, sorted by id.

        Raises:
            EndpointError, BudgetError: Nothing can be asked any more; replies are in the call
                store, so that a rerun has them for nothing.
        """
        if not located_queries:
            return []
        self._surroundings = NearbyChunks(self.corpus.chunks_path, located_queries)
        return await self._each(located_queries, self._check)

    async def look_for(self, located_queries: Sequence[LocatedQuery]) -> list[RecheckedQuery]:
        """Return likewise what came of looking for answers that should not be there.

        Where one is found, the query is checked once more by it.
        """
        return await self._each(located_queries, self._look) if located_queries else []

    def near(self, located: LocatedQuery) -> list[ShownPassage]:
        """Return what stands around the quotes of a query, or where they stood."""
        return self._surroundings.of(located) if self._surroundings else []

    async def _each(
        self,
        located_queries: Sequence[LocatedQuery],
        do: Callable[[LocatedQuery], Awaitable[RecheckedQuery]],
    ) -> list[RecheckedQuery]:
        work: Work[LocatedQuery, RecheckedQuery] = Work(
            stage="recheck",
            key=_key,
            do=do,
            workers=Workers(
                self.recheckers.concurrency, self.recheckers.observer, self.recheckers.on_stop
            ),
        )
        done: Collected[RecheckedQuery] = await collect(located_queries, work)
        self.failures |= {failure.key: failure for failure in done.failures}
        return sorted(done.results, key=lambda one: _key(one.located))

    async def _check(self, located: LocatedQuery) -> RecheckedQuery:
        draft = QueryDraft(located.query, steps_of(located))
        for focus in draft.focuses:
            outcome = await self._settle(located, draft, focus)
            if outcome != "answered":
                return RecheckedQuery(located, outcome, draft, draft.by)
        return RecheckedQuery(located, "answered", draft, draft.by)

    async def _settle(
        self, located: LocatedQuery, draft: QueryDraft, focus: int | None
    ) -> RecheckOutcome:
        """Check a step around the quotes, unless they are gone, and then by what a search finds."""
        around = self.near(located)
        is_gone = focus is not None and draft.steps[focus].is_gone
        if not is_gone:
            outcome = await self._ask(draft, focus, around, is_found=False)
            if outcome != "none":
                return outcome
        hits = await searched(located, draft.expected, self._survey())
        shown = gathered([*around, *hits])
        if shown == around and not is_gone:
            return "none"
        return await self._ask(draft, focus, shown, is_found=True)

    async def _look(self, located: LocatedQuery) -> RecheckedQuery:
        find, survey = self.recheckers.find, self._survey()
        assert find is not None
        around = self.near(located)
        update = {"source_chunk_ids": tuple(passages.chunk.chunk_id for passages in around)}
        item = item_of_query(located.query.model_copy(update=update), ())
        corpus = Corpus(survey.bm25, lambda name: survey.chunk(name).text, survey.neighbours)
        texts = await near(item, corpus)
        self._count(located.query.query_id)
        found = await search(item, texts, find)
        draft = QueryDraft(located.query, steps_of(located))
        if not found.chunk_id:
            return RecheckedQuery(located, "absent", draft, found.by)
        part = best_part(survey.chunk(found.chunk_id), f"{item.asked} {found.quote}")
        passages = gathered([*around, part])
        for focus in draft.focuses:
            outcome = await self._ask(draft, focus, passages, is_found=True)
            if outcome != "answered":
                return RecheckedQuery(located, outcome, draft, draft.by)
        return RecheckedQuery(located, "answered", draft, draft.by)

    async def _ask(
        self,
        draft: QueryDraft,
        focus: int | None,
        passages: Sequence[ShownPassage],
        *,
        is_found: bool,
    ) -> RecheckOutcome:
        if not passages:
            return "none"
        query = draft.query
        subject = Subject(
            key=query.query_id,
            question=query.asked,
            expected=draft.expected,
            expects=query.expected_behaviour,
            language=query.language,
            quotes=draft.quotes(focus),
            others=draft.others(focus),
            passages=tuple(part.passage for part in passages),
            around=draft.around(focus),
            contexts=draft.contexts(focus),
        )
        self._count(query.query_id)
        finding = await self.recheckers.recheck.judge(subject)
        draft.by = finding.by
        if finding.verdict == "none":
            return "none"
        return "answered" if draft.take(focus, finding, passages, is_found=is_found) else "open"

    def _count(self, query_id: str) -> None:
        if self.recheckers.find is not None:
            self.calls[query_id] += 1


def _key(located: LocatedQuery) -> str:
    return located.query.query_id
