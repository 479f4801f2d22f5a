"""A language model as judge of answers, as a whole or fact by fact: one call an answer.

The score is computed here, and fact by fact the verdict too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Annotated, Final

from ragforge.corpus.quote_locations import Location, fold
from ragforge.deferred import dataclass
from ragforge.errors import CallError
from ragforge.records import (
    AnswerGrade,
    Claim,
    Fact,
    FactStatus,
    FactVerdict,
    Failure,
    Provenance,
    Verdict,
)
from ragforge.records.judgments import settled_verdict
from ragforge.records.model import ConfigDict, Field, Model
from ragforge.stages.answer.facts import lacks_facts
from ragforge.stages.answer.stage import Case
from ragforge.stages.asking import Asker, quoted, quoted_by_id, quoted_list, upto
from ragforge.stages.quotes import find_proof, proves
from ragforge.stages.runner import Judge

SCORES: dict[Verdict, float] = {
    "correct": 1.0,
    "partial": 0.5,
    "incorrect": 0.0,
    "not_attempted": 0.0,
}
_WEIGHTS: Final = {"vital": 1.0, "okay": 0.5}
_LENIENT: Final[Mapping[FactStatus, float]] = {"supported": 1.0, "partial": 0.5}
_STRICT: Final[Mapping[FactStatus, float]] = {"supported": 1.0}
_MOST_CLAIMS = 20

_UNANSWERABLE = "This question cannot be answered from the documents."


class AnswerReply(Model):
    """What the judge is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    explanation: Annotated[str, upto(500)]
    unsupported: Annotated[list[Annotated[str, upto(400)]], Field(max_length=20)]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class LLMAnswerJudge:
    """Grades answers by asking a model."""

    asker: Asker

    @property
    def provenance(self) -> Provenance:
        """The model and its prompt."""
        return self.asker.provenance()

    async def judge(self, case: Case) -> AnswerGrade:
        """Return the grade of an answer; see `Judge`."""
        holes = {
            "question": quoted(case.query.asked),
            "expected": quoted(case.query.expected_answer or _UNANSWERABLE),
            "answer": quoted(case.answer),
            "passages": quoted_list(list(case.contexts)),
        }
        answered = await self.asker.ask(
            holes, AnswerReply, lambda reply: _broken_rule(reply, case.answer)
        )
        reply = answered.value
        verdict = settled_verdict(reply.verdict, answerable=case.query.answerable)
        return AnswerGrade(
            query_id=case.query.query_id,
            verdict=verdict,
            score=SCORES[verdict],
            has_hallucination=bool(reply.unsupported) if case.contexts else None,
            explanation=_explanation(reply),
            provenance=self.asker.provenance(answered.reply),
        )


def _broken_rule(reply: AnswerReply, answer: str) -> str | None:
    for quote in reply.unsupported:
        if not proves(quote, answer):
            return (
                f"unsupported holds {quote!r}, which does not occur in the answer as whole words "
                "that say something; copy exactly"
            )
    return None


def _explanation(reply: AnswerReply) -> str:
    if not reply.unsupported:
        return reply.explanation
    quotes = "; ".join(repr(quote) for quote in reply.unsupported)
    return f"{reply.explanation} (not in the chunks: {quotes})"


@dataclass(frozen=True, slots=True)
class CheckedFact:
    """A fact of the expected answer, and whether an answer states it."""

    fact: Fact
    status: FactStatus


def score_of(checked: Sequence[CheckedFact]) -> float | None:
    """Return the weighted share of facts that are said, those said in part by half, in [0, 1].

    A fact that may be left out weighs half of a vital one. None where there are no facts: nothing
    was checked, so nothing was right.
    """
    return _share(checked, _LENIENT)


def strict_score_of(checked: Sequence[CheckedFact]) -> float | None:
    """Return what `score_of` returns if facts that are said in part count as missing."""
    return _share(checked, _STRICT)


def verdict_of(checked: Sequence[CheckedFact], *, says_more: bool) -> Verdict | None:
    """Return the verdict, None where there are no facts.

    Only vital facts decide; where a person marked none as vital, all do. But an answer that
    contradicts any fact is at most partly right.

    Args:
        checked: All facts of the query.
        says_more: Whether the answer also states something beyond the facts.
    """
    vital = [item.status for item in checked if item.fact.importance == "vital"]
    statuses = vital or [item.status for item in checked]
    if not statuses:
        return None
    if "contradicted" in statuses:
        return "incorrect"
    if set(statuses) == {"supported"}:
        return "partial" if any(item.status == "contradicted" for item in checked) else "correct"
    if not {"supported", "partial"}.isdisjoint(statuses):
        return "partial"
    silent = not says_more and all(item.status == "missing" for item in checked)
    return "not_attempted" if silent else "incorrect"


def explain(checked: Sequence[CheckedFact], claims: Iterable[Claim]) -> str:
    """Return in words what a score and a verdict come from."""
    counts = []
    for importance in _WEIGHTS:
        statuses = [item.status for item in checked if item.fact.importance == importance]
        if statuses:
            counts.append(f"{statuses.count('supported')} of {len(statuses)} {importance} facts")
    unsupported = [claim.text for claim in claims if not claim.is_supported]
    details = chain(
        (_named(status, checked) for status in ("contradicted", "missing", "partial")),
        (_listed("not in the chunks", unsupported),),
    )
    return "; ".join([f"says {' and '.join(counts)}", *filter(None, details)])


def _share(checked: Sequence[CheckedFact], values: Mapping[FactStatus, float]) -> float | None:
    total = sum(_WEIGHTS[item.fact.importance] for item in checked)
    if not total:
        return None
    return (
        sum(_WEIGHTS[item.fact.importance] * values.get(item.status, 0.0) for item in checked)
        / total
    )


def _named(status: str, checked: Iterable[CheckedFact]) -> str:
    word = "said in part" if status == "partial" else status
    return _listed(word, [item.fact.text for item in checked if item.status == status])


def _listed(word: str, texts: Sequence[str]) -> str:
    return f"{word}: {', '.join(map(repr, texts))}" if texts else ""


class FactReply(Model):
    """What the answer says of one fact; the quote first, so that the status follows from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    id: str
    quote: Annotated[str, upto(300)]
    status: FactStatus


class ClaimReply(Model):
    """A part of the answer that none of the facts says."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    claim: Annotated[str, upto(300)]
    quote: Annotated[str, upto(300)]
    supported: bool


class FactsGradeReply(Model):
    """What the judge is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    facts: list[FactReply]
    claims: Annotated[list[ClaimReply], Field(max_length=_MOST_CLAIMS)]


@dataclass(frozen=True, slots=True)
class FactJudge:
    """Grades answers by the facts of their queries.

    Args:
        asker: A model with the prompt for it.
        undrawn: Why queries have no facts, by query id.
    """

    asker: Asker
    undrawn: Mapping[str, Failure] = field(default_factory=dict)

    @property
    def provenance(self) -> Provenance:
        """The model and its prompt."""
        return self.asker.provenance()

    async def judge(self, case: Case) -> AnswerGrade:
        """Return the grade of an answer; see `Judge`."""
        facts = opaque(self._facts(case))
        holes = {
            "question": quoted(case.query.asked),
            "facts": quoted_by_id(((name, fact.text) for name, fact in facts.items()), "fact"),
            "answer": quoted(case.answer),
            "passages": quoted_list(list(case.contexts)),
        }
        found = await self.asker.ask(
            holes, FactsGradeReply, lambda reply: _broken_fact_rule(reply, list(facts), case)
        )
        return _grade(found.value, facts, case, self.asker.provenance(found.reply))

    def _facts(self, case: Case) -> Sequence[Fact]:
        if case.query.facts and not lacks_facts(case.query):
            return case.query.facts
        failure = self.undrawn.get(case.query.query_id)
        if failure is None:
            raise CallError("error", "the query has no facts to judge the answer by")
        raise CallError(failure.kind, f"the query's facts could not be drawn: {failure.message}")


@dataclass(frozen=True, slots=True)
class DividedJudge:
    """Leaves answers to questions that cannot be answered, which have no facts, to another judge.

    Args:
        by_facts: Grades where there is an answer to expect.
        otherwise: Grades where there is none.
    """

    by_facts: Judge[Case, AnswerGrade]
    otherwise: Judge[Case, AnswerGrade]

    @property
    def provenance(self) -> Provenance:
        """That of the judge by facts."""
        return self.by_facts.provenance

    async def judge(self, case: Case) -> AnswerGrade:
        """Return the grade of an answer; see `Judge`."""
        judge = self.by_facts if case.query.answerable else self.otherwise
        return await judge.judge(case)


def opaque(facts: Sequence[Fact]) -> dict[str, Fact]:
    """Return facts by ids that tell a model nothing, in their order."""
    return {f"f{number}": fact for number, fact in enumerate(facts, start=1)}


def _broken_fact_rule(reply: FactsGradeReply, sent: Sequence[str], case: Case) -> str | None:
    """Return the rule that a reply breaks, None where it breaks none.

    Args:
        reply: Well-formed.
        sent: The ids of the facts that were asked about.
        case: The answer, with the passages it was written from.
    """
    return (
        _broken_ids([said.id for said in reply.facts], sent)
        or next(filter(None, (_broken_fact(said, case) for said in reply.facts)), None)
        or next(filter(None, (_broken_claim(claim, case) for claim in reply.claims)), None)
        or _broken_claims(reply.claims)
        or _broken_contradictions(reply, case)
    )


def _broken_ids(given: Sequence[str], sent: Sequence[str]) -> str | None:
    twice = [name for name, count in Counter(given).items() if count > 1]
    unknown = sorted(set(given).difference(sent))
    missing = [name for name in sent if name not in given]
    if unknown:
        return f"facts holds the unknown id {unknown[0]!r}; the ids are {', '.join(sent)}"
    if twice:
        return f"facts holds the id {twice[0]!r} more than once; each comes exactly once"
    if missing:
        return f"facts lacks the ids {', '.join(missing)}; each comes exactly once"
    return None


def _broken_fact(reply: FactReply, case: Case) -> str | None:
    blank = not reply.quote.strip()
    if reply.status == "missing":
        return None if blank else f"fact {reply.id} is missing but a quote is given"
    if blank:
        return f"fact {reply.id} is {reply.status} but its quote is empty"
    if find_proof(reply.quote, case.answer) is None:
        return (
            f"the quote of fact {reply.id} is not in the answer as whole words that say something; "
            "copy exactly"
        )
    return None


def _broken_claim(claim: ClaimReply, case: Case) -> str | None:
    if find_proof(claim.claim, case.answer) is None:
        return (
            f"the claim {claim.claim!r} is not in the answer as whole words that say something; "
            "copy exactly"
        )
    if not claim.supported:
        given = claim.quote.strip()
        return f"the claim {claim.claim!r} is not supported but a quote is given" if given else None
    if _in_contexts(claim.quote, case) is None:
        return (
            f"the claim {claim.claim!r} is supported but its quote occurs in no passage as whole "
            "words that say something; copy exactly, from one passage"
        )
    return None


def _broken_claims(claims: Sequence[ClaimReply]) -> str | None:
    found: dict[str, bool] = {}
    for claim in claims:
        if found.setdefault(fold(claim.claim), claim.supported) != claim.supported:
            return f"the claim {claim.claim!r} is both supported and not"
    return None


def _broken_contradictions(reply: FactsGradeReply, case: Case) -> str | None:
    """Return the rule that is broken where what contradicts a fact is not checked as a claim."""
    if not case.contexts or len(reply.claims) == _MOST_CLAIMS:
        return None
    claimed = [place for claim in reply.claims if (place := find_proof(claim.claim, case.answer))]
    for fact in reply.facts:
        place = find_proof(fact.quote, case.answer)
        if fact.status != "contradicted" or place is None:
            continue
        if not any(claim.start < place.end and place.start < claim.end for claim in claimed):
            return (
                f"fact {fact.id} is contradicted, but no claim holds {fact.quote!r}; what "
                "contradicts a fact is a claim as well"
            )
    return None


def _grade(
    reply: FactsGradeReply, facts: Mapping[str, Fact], case: Case, by: Provenance
) -> AnswerGrade:
    replies = {stated.id: stated for stated in reply.facts}
    checked = [CheckedFact(fact, replies[name].status) for name, fact in facts.items()]
    claims = _claims(reply, case) if case.contexts else ()
    return AnswerGrade(
        query_id=case.query.query_id,
        verdict=verdict_of(checked, says_more=bool(reply.claims)),
        score=score_of(checked),
        strict_score=strict_score_of(checked),
        has_hallucination=_has_unsupported(claims) if case.contexts else None,
        explanation=explain(checked, claims),
        facts=tuple(
            FactVerdict(
                fact_id=fact.fact_id,
                status=replies[name].status,
                quote=_cut(case.answer, find_proof(replies[name].quote, case.answer)),
            )
            for name, fact in facts.items()
        ),
        claims=claims,
        provenance=by,
    )


def _claims(reply: FactsGradeReply, case: Case) -> tuple[Claim, ...]:
    """Return the claims as they were checked; one that is given twice, once."""
    claims = {
        fold(item.claim): Claim(
            text=_cut(case.answer, find_proof(item.claim, case.answer)),
            is_supported=item.supported,
            quote=_in_contexts(item.quote, case) or "",
        )
        for item in reply.claims
    }
    return tuple(claims.values())


def _has_unsupported(claims: Sequence[Claim]) -> bool:
    return any(not claim.is_supported for claim in claims)


def _in_contexts(quote: str, case: Case) -> str | None:
    """Return a quote as it stands in the first context that holds it."""
    for text in case.contexts:
        at = find_proof(quote, text)
        if at is not None:
            return _cut(text, at)
    return None


def _cut(text: str, at: Location | None) -> str:
    return text[at.start : at.end] if at else ""
