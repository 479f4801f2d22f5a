"""Taking a part of a set's queries: a split, a sample, or a sample of a split.

The same flags choose the same queries in every command. A run or answers made for a part carry that
in the manifest, so that whoever measures them later neither counts the queries that were never
asked, nor takes the mean of a sample for that of the set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.records.queries import Query, Selection, Stratum

if TYPE_CHECKING:
    from ragforge.measures.strata import Design

_FIELDS: Final = (
    "category",
    "difficulty",
    "type",
    "persona",
    "language",
    "split",
    "origin",
    "expected_behaviour",
)
"""What strata may be made by; `none` stands for none."""
_NONE: Final = "(none)"
"""The stratum of the queries without a value."""
_ALL: Final = "(all)"
"""The one stratum where there is nothing to part queries by."""
_UNANSWERABLE: Final = "(unanswerable)"
"""The stratum of the queries that cannot be answered, where some of their value can."""


@dataclass(frozen=True, slots=True)
class RequestedQueries:
    """Which queries somebody asks for."""

    split: Literal["dev", "test"] | None = None
    sample: int | None = None
    seed: int = 0
    by: str = ""
    """One of `_FIELDS`, "none", or "" for the category, else the difficulty, as far as queries have
    them."""


@dataclass(frozen=True, slots=True)
class ChosenQueries:
    """A part of a set's queries."""

    selection: Selection
    query_ids: frozenset[str]
    design: Design | None
    """What was drawn from; None where nothing was drawn, so that all queries weigh the same."""
    warnings: tuple[str, ...] = ()
    common_to: tuple[str, ...] = ()
    """The samples, in words, whose queries in common these are; () where they are of one."""

    @property
    def in_words(self) -> str:
        """How they are named in a sentence."""
        if self.common_to:
            return f"what {' and '.join(self.common_to)} have in common"
        return self.selection.in_words


def choose(queries: Sequence[Query], wanted: RequestedQueries) -> ChosenQueries | None:
    """Return the queries that somebody asks for; None where that is all of them.

    Args:
        queries: The accepted ones.
        wanted: Split and sample.

    Raises:
        UsageError: There is no such split or field, or the sample is below 1.
    """
    members = _of_split(queries, wanted.split)
    n, whole = wanted.sample, frozenset(query.query_id for query in members)
    if n is not None and n < 1:
        raise UsageError(f"--sample: expected a whole number from 1, got {n}")
    if wanted.seed < 0:
        raise UsageError(f"--seed: expected a whole number from 0, got {wanted.seed}")
    by = _field(members, wanted.by)
    if n is None or n >= len(members):
        if wanted.split is None:
            return None
        return ChosenQueries(Selection(split=wanted.split), whole, None)
    from ragforge.measures.strata import OTHERS, Design, draw, merged_strata

    labels = _labels(members, by)
    sizes = Counter(labels.values())
    small = merged_strata(sizes, n)
    rest = _ALL if len(small) == len(sizes) else OTHERS
    design = Design({key: rest if of in small else of for key, of in labels.items()})
    drawn = draw(design.stratum_of, n, wanted.seed)
    selection = Selection(split=wanted.split, sample=n, seed=wanted.seed, by=by)
    return _chosen(selection, drawn, design)


def recall(queries: Sequence[Query], selection: Selection) -> ChosenQueries:
    """Return the queries of now that something was made for, with what they stand for now.

    Args:
        queries: The accepted ones.
        selection: As it was recorded.
    """
    members = [item for item in queries if selection.split in (None, item.split)]
    if selection.sample is None:
        return ChosenQueries(selection, frozenset(item.query_id for item in members), None)
    from ragforge.measures.strata import OTHERS, Design

    recorded = {item.stratum: item.n_queries for item in selection.strata}
    rest = next((name for name in (OTHERS, _ALL) if name in recorded), None)
    labels = {
        key: of if of in recorded or rest is None else rest
        for key, of in _labels(members, selection.by).items()
    }
    design = Design(labels)
    drawn = frozenset(selection.query_ids) & labels.keys()
    warnings = []
    if design.sizes != recorded:
        warnings.append(
            f"the {selection.in_words} was drawn from {sum(recorded.values()):,} queries, and "
            f"there are {len(labels):,} now: those that came since could not be drawn; the sample "
            "stands for them as if they were like the others of their stratum"
        )
    found = _chosen(selection, drawn, design)
    return ChosenQueries(found.selection, drawn, design, tuple(warnings))


def combined(
    asked: ChosenQueries | None, made_for: ChosenQueries | None, what: str
) -> ChosenQueries | None:
    """Return the queries to measure something on: those asked for, of those it was made for.

    Args:
        asked: Those that somebody asks for now; None for all.
        made_for: Those that it was made for; None for all.
        what: Names it in a message, such as "run bm25".

    Raises:
        DataError: It was not made for those asked for.
    """
    if asked is None or made_for is None:
        return asked or made_for
    if asked.query_ids <= made_for.query_ids:
        return asked if asked.design or not made_for.design else _part(asked, made_for)
    common = asked.query_ids & made_for.query_ids
    if asked.design is not None or not common:
        raise DataError(
            f"{what}: was made for {made_for.selection.in_words} and lacks "
            f"{len(asked.query_ids - made_for.query_ids):,} of the {len(asked.query_ids):,} "
            f"queries of {asked.selection.in_words}; leave the flags out to measure it on its "
            "own queries, or make it again with these"
        )
    return _part(asked, made_for)


def shared(chosen: Mapping[str, ChosenQueries | None]) -> ChosenQueries | None:
    """Return the queries that several selections have in common; None where that is all.

    The weights are those of the queries in common within the strata of the smallest sample.

    Args:
        chosen: By the name of the run, or of the system, the queries it was made for.

    Raises:
        DataError: They have none in common.
    """
    parts = [item for item in chosen.values() if item is not None]
    if not parts:
        return None
    samples = [item for item in parts if item.design is not None]
    first = min(samples or parts, key=lambda item: len(item.query_ids))
    common = first.query_ids.intersection(*(item.query_ids for item in parts))
    if not common:
        made_for = ", ".join(
            f"{name} was made for {item.selection.in_words}"
            for name, item in chosen.items()
            if item is not None
        )
        raise DataError(f"no query in common: {made_for}; a comparison needs the same queries")
    if common == first.query_ids:
        return first
    splits = {item.selection.split for item in parts if item.selection.split}
    selection = first.selection
    if len(splits) == 1:
        selection = selection.model_copy(update={"split": next(iter(splits))})
    design = first.design
    if design is not None:
        whole_splits = [item.query_ids for item in parts if item.design is None]
        for query_ids in whole_splits:
            design = design.within(query_ids)
    names = tuple(dict.fromkeys(item.selection.in_words for item in samples))
    found = _chosen(selection, common, design, first.warnings)
    return replace(found, common_to=names) if len(names) > 1 else found


def _split_in_words(queries: Iterable[Query]) -> str:
    """Return the splits there are, such as "dev (20), test (80)"; "none" where there is none."""
    counts = Counter(query.split for query in queries if query.split)
    return ", ".join(f"{name} ({n:,})" for name, n in sorted(counts.items())) or "none"


def _of_split(queries: Sequence[Query], split: str | None) -> Sequence[Query]:
    if split is None:
        return queries
    members = [query for query in queries if query.split == split]
    if not members:
        raise UsageError(
            f"--split {split}: no query is in it; splits of the set: {_split_in_words(queries)}"
        )
    return members


def _field(queries: Sequence[Query], asked: str) -> str:
    """Return the field that strata are made by; "" for none."""
    with_values = [name for name in _FIELDS if any(getattr(query, name) for query in queries)]
    if not asked:
        return next((name for name in ("category", "difficulty") if name in with_values), "")
    if asked == "none":
        return ""
    if asked not in with_values:
        problem = "no query has one" if asked in _FIELDS else "no such field"
        raise UsageError(f"--by {asked}: {problem}; there are: {', '.join(with_values)}, none")
    return asked


def _labels(queries: Iterable[Query], by: str) -> dict[str, str]:
    """Return the stratum of each query: what cannot be answered is apart from what can.

    Measures of retrieval are over answerable queries alone: so each stratum keeps its share.
    """
    labels = {
        query.query_id: ((getattr(query, by) or _NONE) if by else _ALL, query.answerable)
        for query in queries
    }
    with_answers = {name for name, answerable in labels.values() if answerable}
    return {
        key: name if answerable or name not in with_answers else _UNANSWERABLE
        for key, (name, answerable) in labels.items()
    }


def _part(asked: ChosenQueries, made_for: ChosenQueries) -> ChosenQueries:
    """Return the part of what something was made for that a split holds."""
    selection = made_for.selection.model_copy(update={"split": asked.selection.split})
    design = made_for.design.within(asked.query_ids) if made_for.design else None
    ids = asked.query_ids & made_for.query_ids
    return _chosen(selection, ids, design, made_for.warnings)


def _chosen(
    selection: Selection,
    drawn: Collection[str],
    design: Design | None,
    warnings: tuple[str, ...] = (),
) -> ChosenQueries:
    """Return a selection with its strata and ids filled in."""
    strata: tuple[Stratum, ...] = ()
    if design is not None:
        counts: Mapping[str, int] = Counter(design.stratum_of[key] for key in drawn)
        strata = tuple(
            Stratum(stratum=name, n_queries=size, n_drawn=counts.get(name, 0))
            for name, size in design.sizes.items()
        )
    ids = tuple(sorted(drawn)) if design is not None else ()
    update = {"strata": strata, "query_ids": ids}
    return ChosenQueries(selection.model_copy(update=update), frozenset(drawn), design, warnings)
