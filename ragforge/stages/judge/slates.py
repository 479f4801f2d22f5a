"""What is judged in one go: the distinct texts of one query, alone or several together."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Protocol

from ragforge.errors import CallError
from ragforge.records import Failure, Judgment, Provenance, Vote
from ragforge.stages.asking import locate_shown, visible
from ragforge.stages.judge.pairs import Judge, Pair
from ragforge.stages.judge.votes import NoQuorumError
from ragforge.stages.runner import failure_of

TOGETHER = 2000
"""Pairs of one query that are looked at together for equal texts."""


@dataclass(frozen=True, slots=True)
class Twins:
    """Pairs of one query whose chunks read alike: the first is judged for all."""

    pairs: tuple[Pair, ...]

    @property
    def first(self) -> Pair:
        """The pair that is judged."""
        return self.pairs[0]


@dataclass(frozen=True, slots=True)
class Slate:
    """Distinct texts that are judged for one query in one go."""

    twins: tuple[Twins, ...]

    @property
    def pairs(self) -> list[Pair]:
        """All pairs."""
        return [pair for twins in self.twins for pair in twins.pairs]

    @property
    def key(self) -> str:
        """The ids of the first pair, for its failure record."""
        return self.twins[0].first.key


@dataclass(frozen=True, slots=True)
class Marked:
    """What became of a slate: a judgment a pair, and a failure for each that has no grade."""

    judgments: tuple[Judgment, ...]
    failures: tuple[Failure, ...] = ()


class SlateJudge(Protocol):
    """Grades slates."""

    @property
    def provenance(self) -> Provenance:
        """Who judges, for the pairs that get no judgment."""

    async def mark(self, slate: Slate) -> Marked:
        """Return a judgment for each pair.

        Called concurrently from one event loop; must not block it.

        Raises:
            CallError: No pair can be judged.
            EndpointError, BudgetError: No slate can be judged any more.
        """


@dataclass(frozen=True, slots=True)
class Alone:
    """A slate judge that has each text judged by itself."""

    judge: Judge

    @property
    def provenance(self) -> Provenance:
        """That of the judge."""
        return self.judge.provenance

    async def mark(self, slate: Slate) -> Marked:
        """Return the judgments; see `SlateJudge`."""
        return joined([await self._marked(twins) for twins in slate.twins])

    async def _marked(self, twins: Twins) -> Marked:
        try:
            judgment = await self.judge.judge(twins.first)
        except NoQuorumError as error:
            return unmarked(self.provenance, twins, error, error.votes)
        return Marked(tuple(for_all(judgment, twins)))


def slates(
    pairs: Iterable[Pair], most: int, singly: Callable[[Pair], bool] = lambda pair: False
) -> Iterator[Slate]:
    """Yield the pairs in slates; those of a query are looked at together while they are neighbours.

    Texts of a query come in an order that their content decides, so that the slates that are left
    of an interrupted run are the slates of the run.

    Args:
        pairs: Read as slates are taken, TOGETHER of a query at once.
        most: Distinct texts in a slate.
        singly: Whether a pair is to have a slate of its own.
    """
    for _, group in groupby(pairs, key=lambda pair: (pair.query_id, pair.query)):
        while found := _twins(islice(group, TOGETHER)):
            apart = [twins for twins in found if any(map(singly, twins.pairs))]
            yield from (Slate((twins,)) for twins in apart)
            shared = [twins for twins in found if twins not in apart] if apart else found
            if most > 1:
                shared.sort(key=lambda twins: _shuffled(twins.first))
            for start in range(0, len(shared), most):
                yield Slate(tuple(shared[start : start + most]))


def for_all(judgment: Judgment, twins: Twins) -> list[Judgment]:
    """Return a judgment and its copies for the pairs whose chunk reads the same."""
    first, *others = twins.pairs
    return [
        judgment,
        *(
            judgment.model_copy(
                update={
                    "chunk_id": pair.chunk_id,
                    "evidence": _in_words_of(pair, judgment.evidence, first),
                    "copied_from": first.chunk_id,
                }
            )
            for pair in others
        ),
    ]


def unmarked(
    provenance: Provenance, twins: Twins, error: CallError, votes: tuple[Vote, ...] = ()
) -> Marked:
    """Return what stands for a text that could not be judged, with the votes there are."""
    judgments, failures = [], []
    for pair in twins.pairs:
        failures.append(failure_of("judge", pair.key, error))
        judgments.append(
            Judgment(
                query_id=pair.query_id,
                chunk_id=pair.chunk_id,
                grade=None,
                failure=failures[-1].kind,
                votes=votes,
                copied_from="" if pair is twins.first else twins.first.chunk_id,
                provenance=provenance,
            )
        )
    return Marked(tuple(judgments), tuple(failures))


def joined(parts: Sequence[Marked]) -> Marked:
    """Return what became of the parts of a slate as one."""
    return Marked(
        tuple(judgment for part in parts for judgment in part.judgments),
        tuple(failure for part in parts for failure in part.failures),
    )


def _twins(pairs: Iterable[Pair]) -> list[Twins]:
    by_text: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_text.setdefault(visible(pair.text), []).append(pair)
    return [Twins(tuple(found)) for found in by_text.values()]


def _shuffled(pair: Pair) -> bytes:
    return hashlib.sha256(f"{pair.query}\n{visible(pair.text)}".encode("utf-8", "replace")).digest()


def _in_words_of(pair: Pair, evidence: str, first: Pair) -> str:
    """Return evidence as it stands in a text that differs at most in what no reader sees."""
    if pair.text == first.text or not evidence:
        return evidence
    at = locate_shown(evidence, pair.text)
    return pair.text[at.start : at.end] if at else evidence
