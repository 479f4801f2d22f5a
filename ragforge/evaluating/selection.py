"""Describing a part of a set's queries: its strata, their weights, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import plural, render_table

if TYPE_CHECKING:
    from ragforge.files.set.query_selection import ChosenQueries
    from ragforge.measures.strata import Design
    from ragforge.records.queries import Selection


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a set's queries, on which something was measured."""

    chosen: ChosenQueries
    design: Design | None
    """That of the queries that count, drawn or not; None where nothing was drawn."""
    measured: frozenset[str]
    """Queries that count, of those chosen."""

    @property
    def selection(self) -> Selection:
        """What was chosen."""
        return self.chosen.selection

    @property
    def head(self) -> str:
        """What it was measured on, and what its means are of."""
        counts = self._drawn if self.design is not None else None
        n_drawn = len(self.measured) if counts is None else sum(counts.values())
        where = f"on {self.chosen.in_words}: {plural(n_drawn, 'query', 'queries')}"
        if self.design is None:
            return where
        total = sum(self.design.sizes.values())
        valued = f", {len(self.measured):,} with a value" if self._lacks_values else ""
        return (
            f"{where} of the {total:,} that count{valued}; means are of all of these, each stratum "
            "by its weight"
        )

    @property
    def lines(self) -> list[str]:
        """Its description: a sentence, and a table with the weights of the strata."""
        if self.design is None:
            return [self.head]
        valued = self._valued if self._lacks_values else None
        return [self.head, *_table(self.design.sizes, self._drawn, valued), *_remarks(self)]

    @property
    def sentences(self) -> list[str]:
        """The same without a table."""
        if self.design is None:
            return [self.head]
        total, drawn, valued = sum(self.design.sizes.values()), self._drawn, self._valued
        strata = ", ".join(
            f"{name} {size / total:.3f} ({drawn.get(name, 0):,} of {size:,}"
            f"{f', {valued.get(name, 0):,} with a value' if self._lacks_values else ''})"
            for name, size in self.design.sizes.items()
        )
        return [self.head, f"weights: {strata}", *_remarks(self)]

    @property
    def _drawn(self) -> Mapping[str, int]:
        """Queries by stratum that were drawn and count, with a value or not."""
        assert self.design is not None
        drawn = self.chosen.query_ids & self.design.stratum_of.keys()
        return Counter(self.design.stratum_of[key] for key in drawn | self.measured)

    @property
    def _valued(self) -> Mapping[str, int]:
        assert self.design is not None
        return Counter(self.design.stratum_of[key] for key in self.measured)

    @property
    def _lacks_values(self) -> bool:
        return self._drawn != self._valued


def drawn_lines(chosen: ChosenQueries) -> list[str]:
    """Return lines on which queries were chosen, with a table of strata for a drawn sample."""
    selection = chosen.selection
    queries = plural(len(chosen.query_ids), "query", "queries")
    if chosen.design is None:
        return [f"{selection.in_words}: {queries}"]
    total = sum(chosen.design.sizes.values())
    counts = {item.stratum: item.n_drawn for item in selection.strata}
    head = f"{selection.in_words}: {queries} of {total:,}"
    return [head, *_table(chosen.design.sizes, counts), *chosen.warnings]


def _remarks(part: Part) -> list[str]:
    """Return what the weights do not tell: strata without a value, and how the set changed."""
    if part.design is None:
        return []
    lacking = [
        f"no query of {name} has a value: means are of the other strata"
        for name in part.design.unseen(part.measured)
    ]
    return [*lacking, *part.chosen.warnings]


def selection_json(selection: Selection | None) -> dict[str, object] | None:
    """Return a selection as JSON has it, with the weight of each stratum; None for all queries."""
    if selection is None:
        return None
    fields = selection.model_dump(mode="json", exclude={"strata", "query_ids"})
    if not selection.strata:
        return fields
    total = sum(item.n_queries for item in selection.strata)
    strata = [{**item.model_dump(), "weight": item.n_queries / total} for item in selection.strata]
    return {**fields, "strata": strata}


def part_json(part: Part) -> dict[str, object] | None:
    """Return what was chosen as JSON has it; several samples where it is what they share."""
    found = selection_json(part.selection)
    if found is None or not part.chosen.common_to:
        return found
    shared = {key: value for key, value in found.items() if key not in ("sample", "seed")}
    return {"common_to": list(part.chosen.common_to), **shared}


def _table(
    sizes: Mapping[str, int], drawn: Mapping[str, int], valued: Mapping[str, int] | None = None
) -> Iterable[str]:
    counts = {"drawn": drawn} if valued is None else {"drawn": drawn, "with a value": valued}
    headers = ["stratum", "queries", *counts, "weight"]
    return render_table(headers, list(_rows(sizes, *counts.values()))).splitlines()


def _rows(sizes: Mapping[str, int], *counts: Mapping[str, int]) -> Iterator[list[str]]:
    total = sum(sizes.values())
    for name, size in sizes.items():
        shown = [f"{of.get(name, 0):,}" for of in counts]
        yield [name, f"{size:,}", *shown, f"{size / total:.3f}"]
