"""Drawing a share of a log as queries: which questions, how likely, and standing for what."""

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count as counting
from typing import Final

from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.files.formats.query_rows import ImportedQuery
from ragforge.measures.proportional_sampling import inclusion_probabilities, systematic_draw
from ragforge.records import Draw, LogDraw, Query, RealQuery

_DIGEST_DIGITS: Final = 16
_SIZES: Final[Mapping[Draw, Callable[[int], float]]] = {
    "frequency": float,
    "rarity": lambda count: 1 / count,
    "even": lambda _: 1.0,
}
_STRATA: Final = (("once", 1), ("2 to 9 times", 9), ("10 to 99 times", 99), ("100 or more", None))
"""How often a question was asked: in words, and at most."""


@dataclass(frozen=True, slots=True)
class LogSample:
    """What is to be drawn of a log."""

    n: int
    """Questions, at least 1; all where there are no more."""
    draw: Draw = "frequency"
    seed: int = 0
    batch: str = ""
    """What they are called together; the name of the first log where ""."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Questions that were asked about as often."""

    asked: str
    n_distinct: int
    n_there: int
    """Of these, questions that are in the set already."""
    n_drawn: int
    share: float
    """Of all that was asked."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What was drawn of a log."""

    batch: str
    draw: Draw
    seed: int
    queries: tuple[ImportedQuery, ...]
    """With their weights; sorted as the questions were."""
    n_asked: int
    """Times that something was asked, in all."""
    n_distinct: int
    """Different questions without labels."""
    n_there: int
    """Of these, questions that are in the set already, or were rejected."""
    share: float
    """Of all that was asked, what the draw was from: the batch stands for that, and no more."""
    strata: tuple[Stratum, ...]
    before: int = 0
    """Queries of the batch that were drawn from this very log before; then nothing is drawn."""
    other_batches: tuple[str, ...] = ()
    """Batches of other names that were drawn from this very log before, sorted."""


def draw_questions(
    real: Sequence[RealQuery],
    new: Iterable[ImportedQuery],
    sample: LogSample,
    *,
    log: str,
    n_asked: int,
    there: Sequence[Query],
) -> Drawing:
    """Draw questions of a log that are not in the set, each with a probability that is known.

    Equal seeds draw equal questions, in whatever order the log has them.

    Args:
        real: The different questions of the log that nobody labelled.
        new: Those of them that are not in the set, as queries.
        sample: What is to be drawn; its batch has a name.
        log: Digest of the log.
        n_asked: Times that something was asked in it, labelled or not.
        there: The queries of the set.

    Raises:
        UsageError: The set has such a batch, drawn from another log or in another way.
    """
    before = _drawn_before(sample, log, there)
    counts = {one.query: one.count for one in real}
    fresh = sorted(new, key=lambda item: item.query.query)
    share = sum(counts[item.query.query] for item in fresh) / max(1, n_asked)
    chosen = [] if before else _choose([counts[item.query.query] for item in fresh], sample)
    way = LogDraw(
        batch=sample.batch,
        log=log,
        draw=sample.draw,
        seed=sample.seed,
        wanted=sample.n,
        count=1,
        inclusion=1,
        share=min(share, 1.0) or 1.0,
    )
    queries = [
        _as_drawn(fresh[place].query, way, counts[fresh[place].query.query], inclusion)
        for place, inclusion in chosen
    ]
    return Drawing(
        batch=sample.batch,
        draw=sample.draw,
        seed=sample.seed,
        queries=tuple(queries),
        n_asked=n_asked,
        n_distinct=len(real),
        n_there=len(real) - len(fresh),
        share=share,
        strata=tuple(_strata(counts, fresh, queries, n_asked)),
        before=before,
        other_batches=_other_batches(sample, log, there),
    )


def _as_drawn(query: Query, way: LogDraw, count: int, inclusion: float) -> ImportedQuery:
    """Return a query with how it was drawn: as the others, but for what is its own."""
    drawn = way.model_copy(update={"count": count, "inclusion": inclusion})
    return ImportedQuery(query.model_copy(update={"drawn": drawn}))


def _other_batches(sample: LogSample, log: str, there: Iterable[Query]) -> tuple[str, ...]:
    drawn = (query.drawn for query in there if query.drawn is not None)
    return tuple(sorted({one.batch for one in drawn if one.log == log} - {sample.batch}))


def log_digest(asked: Iterable[tuple[str, int]]) -> str:
    """Return a digest of what was asked in logs, and how often.

    Not of the file: packed, sorted or exported anew it is the same log.
    """
    rows = "\n".join(f"{count} {text}" for text, count in sorted(asked))
    return hashlib.sha256(rows.encode()).hexdigest()[:_DIGEST_DIGITS]


def _choose(counts: Sequence[int], sample: LogSample) -> list[tuple[int, float]]:
    """Return the places that are drawn, each with its probability."""
    if not counts:
        return []
    size = _SIZES[sample.draw]
    probabilities = inclusion_probabilities([size(count) for count in counts], sample.n)
    chance = random.Random(sample.seed)  # noqa: S311  # a sample, not a secret
    start = chance.random()
    keys = [chance.random() for _ in counts]
    order = sorted(range(len(counts)), key=lambda place: keys[place])
    drawn = systematic_draw(probabilities[order], start).tolist()
    places = sorted(order[place] for place in drawn)
    return [(place, float(probabilities[place])) for place in places]


def _drawn_before(sample: LogSample, log: str, there: Iterable[Query]) -> int:
    """Return the number of queries of the set that were drawn in this very way.

    Raises:
        UsageError: Its batch is there, and is another one.
    """
    taken = [query.drawn for query in there if query.drawn is not None]
    batch = [drawn for drawn in taken if drawn.batch == sample.batch]
    names = {drawn.batch for drawn in taken}
    free = next(of for n in counting(2) if (of := f"{sample.batch}-{n}") not in names)
    name = f"batch {sample.batch!r}"
    for drawn in batch:
        if drawn.log != log:
            raise UsageError(
                f"--batch: {name} is in the set already, drawn from another log; give this one a "
                f"name of its own, such as --batch {free}"
            )
        if (drawn.wanted, drawn.draw, drawn.seed) != (sample.n, sample.draw, sample.seed):
            raise UsageError(
                f"--batch: {name} is in the set already, drawn with --sample {drawn.wanted} --draw "
                f"{drawn.draw} --seed {drawn.seed}; another draw takes a name of its own"
            )
    return len(batch)


def _strata(
    counts: Mapping[str, int],
    fresh: Iterable[ImportedQuery],
    drawn: Iterable[ImportedQuery],
    n_asked: int,
) -> Iterable[Stratum]:
    new, taken = ({item.query.query for item in items} for items in (fresh, drawn))
    least = 1
    for asked, most in _STRATA:
        texts = [text for text, n in counts.items() if n >= least and (most is None or n <= most)]
        if texts:
            yield Stratum(
                asked=asked,
                n_distinct=len(texts),
                n_there=sum(text not in new for text in texts),
                n_drawn=sum(text in taken for text in texts),
                share=sum(counts[text] for text in texts) / max(1, n_asked),
            )
        least = (most or 0) + 1
