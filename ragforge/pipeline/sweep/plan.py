"""What a sweep tries: every splitter, size and overlap with every retriever."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from ragforge.corpus.sized_chunkers import LEAST_SIZE, takes_size
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.configurations import Configuration, Top
from ragforge.files.row import parse_number
from ragforge.measures.measure_names import OF_EVIDENCE, Measure, parse_measure
from ragforge.pipeline.run_list import shown_spec

SIZES: Final = ("200", "500", "1000", "2000")
OVERLAPS: Final = ("0",)
SPLITTERS: Final = ("headings", "recursive")
RETRIEVERS: Final = ("bm25",)
TOKENS: Final = ("1000", "2000", "4000")
OWN_INDEX: Final = (
    "--retriever {}: has an index of its own, and does not search what is cut here; expected bm25, "
    "chargram, minilm, static, dense, A+B or pkg.mod:attr"
)
_MOST: Final = 1000
"""Configurations of one sweep; beyond it a slip of the keyboard is likelier than patience."""
_LARGEST: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What is tried, and what decides.

    Args:
        configurations: Each once; those of one chunking stand together.
        tops: Budgets of tokens, then cutoffs.
        decided_by: A measure of evidence.
    """

    configurations: tuple[Configuration, ...]
    tops: tuple[Top, ...]
    decided_by: Measure

    @property
    def top(self) -> Top:
        """How much of a ranking the measure that decides takes."""
        return Top(self.decided_by.cutoff, self.decided_by.tokens)

    @property
    def most_tokens(self) -> int:
        """The largest budget."""
        budgets = [top.tokens or 0 for top in self.tops]
        return max([*budgets, self.decided_by.tokens or 0])

    @property
    def most_texts(self) -> int:
        """The largest cutoff."""
        cutoffs = [top.cutoff or 0 for top in self.tops]
        return max([*cutoffs, self.decided_by.cutoff or 0])


def sweep_plan(
    *,
    sizes: Sequence[str] = SIZES,
    overlaps: Sequence[str] = OVERLAPS,
    splitters: Sequence[str] = SPLITTERS,
    retrievers: Sequence[str] = RETRIEVERS,
    cutoffs: Sequence[str] = (),
    tokens: Sequence[str] = TOKENS,
    decide_by: str = "",
) -> SweepPlan:
    """Return what a sweep is to try.

    Args:
        sizes: Characters of a chunk.
        overlaps: Characters, or a share of the size such as `20%`.
        splitters: Specs as `sized_chunker` takes them.
        retrievers: Specs of retrievers that index chunks here.
        cutoffs: Texts taken of a ranking.
        tokens: Budgets of a prompt.
        decide_by: A measure of evidence; `EvidenceR` within the middle budget where "", or where
            there is none, at the middle cutoff.

    Raises:
        UsageError: Nothing is to be tried, a number cannot be taken, an overlap reaches the size,
            there is no such splitter or measure, or a retriever does not index what it is given.
    """
    for name, given in (("size", sizes), ("splitter", splitters), ("retriever", retrievers)):
        if not given:
            raise UsageError(f"--{name}: expected at least one")
    for retriever in retrievers:
        if retriever.startswith(("http:", "https:")):
            raise UsageError(OWN_INDEX.format(shown_spec(retriever)))
    tops = _tops(tokens, cutoffs)
    cuts = list(dict.fromkeys(_cuts(splitters, sizes, overlaps or OVERLAPS)))
    configurations = tuple(
        Configuration(splitter, size, overlap, retriever)
        for (splitter, size, overlap), retriever in product(cuts, dict.fromkeys(retrievers))
    )
    if len(configurations) > _MOST:
        raise UsageError(
            f"{len(configurations):,} configurations: expected at most {_MOST:,}; try fewer sizes, "
            "overlaps, splitters or retrievers"
        )
    return SweepPlan(configurations, tops, _deciding(decide_by, tops))


def _tops(tokens: Sequence[str], cutoffs: Sequence[str]) -> tuple[Top, ...]:
    budgets = sorted({_whole(text, "tokens") for text in tokens})
    ranks = sorted({_whole(text, "k") for text in cutoffs})
    tops = (*(Top(tokens=n) for n in budgets), *(Top(cutoff=n) for n in ranks))
    if not tops:
        raise UsageError("--tokens, -k: expected at least one of them")
    return tops


def _deciding(decide_by: str, tops: Sequence[Top]) -> Measure:
    if decide_by:
        measure = parse_measure(decide_by)
        if measure.name not in OF_EVIDENCE:
            listed = ", ".join(sorted(OF_EVIDENCE))
            raise UsageError(
                f"--decide-by {decide_by}: counts chunks, and cannot decide between chunkings; "
                f"expected one of {listed}"
            )
        if measure.cutoff is None and measure.tokens is None:
            raise UsageError(
                f"--decide-by {decide_by}: expected how much is taken of a ranking, as in "
                f"{measure.name}(tokens=2000) or {measure.name}@10"
            )
        return measure
    of_tokens = [top for top in tops if top.tokens is not None] or list(tops)
    return of_tokens[len(of_tokens) // 2].measure("EvidenceR")


def _cuts(
    splitters: Sequence[str], sizes: Sequence[str], overlaps: Sequence[str]
) -> Iterator[tuple[str, int | None, int]]:
    listed = [_whole(text, "size") for text in sizes]
    for splitter in dict.fromkeys(splitters):
        if not takes_size(splitter):
            yield splitter, None, 0
            continue
        for size, overlap in product(listed, overlaps):
            yield splitter, size, _overlap(overlap, size)


def _overlap(text: str, size: int) -> int:
    shown = f"--overlap {text}"
    is_share = text.endswith("%")
    value = parse_number(text.removesuffix("%"))
    if value is None or not 0 <= value <= _LARGEST or (not is_share and value != int(value)):
        raise UsageError(f"{shown}: expected characters, or a share of the size such as 20%")
    overlap = int(size * value / 100) if is_share else int(value)
    if size - overlap < LEAST_SIZE:
        raise UsageError(
            f"--size {size} with {shown}: expected a size of at least {LEAST_SIZE} characters more "
            "than the overlap"
        )
    return overlap


def _whole(text: str, name: str) -> int:
    written = text.replace("_", "").strip()
    if not (written.isascii() and written.isdecimal() and 0 < int(written) <= _LARGEST):
        dashes = "-" if len(name) == 1 else "--"
        raise UsageError(f"{dashes}{name} {text}: expected a whole number from 1")
    return int(written)
