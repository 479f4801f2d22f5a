"""How much text runs return for a query: what finds evidence in more of it is no better for that.

A run that returns the whole corpus as one hit has all evidence in its top 10. Where one of two runs
returns much more text, measures of evidence @k do not decide between them; those of a number of
tokens do.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Final

from ragforge.evaluating.formatting import enumerated
from ragforge.measures import parse_measure
from ragforge.measures.measure_names import Measure
from ragforge.pipeline.comparing.basis import ComparisonBasis, RankedRun
from ragforge.pipeline.comparing.deciding import Key, MoreText, Undecided

_RISES_WITH_TEXT: Final = frozenset({"EvidenceR", "TokenR"})
_MUCH_MORE: Final = 2
"""Times the text that one run returns, from which on it is no like for like."""


def _rising(measures: Iterable[str]) -> dict[int | None, list[Measure]]:
    """Return by their cutoff the measures that rise with the text returned, whatever it is."""
    found: dict[int | None, list[Measure]] = {}
    for measure in map(parse_measure, measures):
        if measure.name in _RISES_WITH_TEXT and measure.tokens is None:
            found.setdefault(measure.cutoff, []).append(measure)
    return found


def more_text(
    basis: ComparisonBasis, runs: Sequence[RankedRun], couples: Iterable[tuple[str, str]]
) -> dict[Key, MoreText]:
    """Return of which couples one run returns much more text, by measures that rise with it."""
    if basis.evidence is None:
        return {}
    found: dict[Key, MoreText] = {}
    ranked = {run.name: run.retrieved for run in runs}
    for a, b in couples:
        for cutoff, measures in _rising(basis.measures).items():
            sizes = basis.evidence.returned({name: ranked[name] for name in (a, b)}, cutoff)
            less, more = sorted(sizes, key=lambda name: sizes[name].n_chars)
            if not 0 < _MUCH_MORE * sizes[less].n_chars <= sizes[more].n_chars:
                continue
            for measure in measures:
                fair = str(measure._replace(cutoff=None, tokens=_budget(sizes[less].n_tokens)))
                reason = (
                    f"{more} returns {sizes[more].n_chars:,.0f} characters for a query "
                    f"{_in_top(cutoff)} and {less} {sizes[less].n_chars:,.0f}, and {measure} rises "
                    f"with the text; compare by {fair}"
                )
                found[a, b, str(measure)] = MoreText(more, reason, fair)
    return found


def unlike_amounts(
    basis: ComparisonBasis, runs: Sequence[RankedRun], undecided: Mapping[Key, Undecided]
) -> Iterator[str]:
    """Yield a sentence for each cutoff at which some run returns much more text than another.

    Args:
        basis: What they were measured on.
        runs: The runs.
        undecided: What is open about the couples.
    """
    keys = [key for key, item in undecided.items() if item.more_text is not None]
    if basis.evidence is None:
        return
    for cutoff, measures in _rising(basis.measures).items():
        rising = [str(measure) for measure in measures]
        names = {name for a, b, measure in keys for name in (a, b) if measure in rising}
        if not names:
            continue
        of_these = {run.name: run.retrieved for run in runs if run.name in names}
        sizes = basis.evidence.returned(of_these, cutoff)
        listed = ", ".join(f"{name} {size.n_chars:,.0f}" for name, size in sizes.items())
        budget = _budget(min(size.n_tokens for size in sizes.values()))
        fair = measures[0]._replace(cutoff=None, tokens=budget)
        words = ["ragforge", "compare", "--dataset", str(basis.where), *sizes, "-m", str(fair)]
        yield (
            f"the runs return unlike amounts of text for a query {_in_top(cutoff)} (characters in "
            f"the mean: {listed}), and {enumerated(rising)} {'rise' if rising[1:] else 'rises'} "
            f"with it: `{shlex.join(words)}` gives each the same room in a prompt"
        )


def _in_top(cutoff: int | None) -> str:
    return "in all" if cutoff is None else f"in the top {cutoff}"


def _budget(n_tokens: float) -> int:
    """Return a round number of tokens in which so many fit."""
    step = 100 if n_tokens > 100 else 10
    return max(1, ceil(n_tokens / step)) * step
