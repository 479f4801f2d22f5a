"""Packing the blocks of sections into stretches that make good units of retrieval."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragforge.corpus.blocks import Block, Kind
from ragforge.corpus.sections import Section
from ragforge.corpus.splitting import Stretch, split, trim

_BARE = {"heading", "mark"}
_TAIL_CHARS = 200


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in code points.

    Attributes:
        max_chars: What packed text does not exceed.
        min_chars: Below it a section is put together with a neighbour.
        whole_chars: Up to here a fence or a table stays whole, alone in its chunk.
    """

    max_chars: int
    min_chars: int
    whole_chars: int


@dataclass(frozen=True, slots=True)
class Passage:
    """What becomes a chunk."""

    stretch: Stretch
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """Blocks that belong together: a heading and what follows it, a lead-in and its list."""

    start: int
    end: int
    kind: Kind
    body: int
    """Where the first block that is no heading and no mark starts."""

    @property
    def bare(self) -> bool:
        return self.kind in _BARE


def passages(text: str, sections: Iterable[Section], limits: Limits) -> list[Passage]:
    """Return the passages of all sections in order; together they leave out nothing but blanks."""
    packed = [
        Passage(stretch, section.path)
        for section in sections
        for stretch in _packed(text, section.blocks, limits)
    ]
    return _merged_backward(_merged_forward(packed, limits), limits)


def _packed(text: str, blocks: Sequence[Block], limits: Limits) -> list[Stretch]:
    groups: list[list[Stretch]] = []
    for atom in _atoms(text, blocks, limits):
        if groups and atom.end - groups[-1][0].start <= limits.max_chars:
            groups[-1].append(atom)
        else:
            groups.append([atom])
    if len(groups) > 1 and _joined(groups[-1]).size < limits.min_chars:
        groups[-2:] = _evened(groups[-2] + groups[-1], limits.max_chars)
    return [_joined(group) for group in groups]


def _joined(atoms: Sequence[Stretch]) -> Stretch:
    return Stretch(atoms[0].start, atoms[-1].end)


def _evened(atoms: list[Stretch], max_chars: int) -> list[list[Stretch]]:
    """Cut atoms in two where the larger part is smallest, so that no scrap is left over."""

    def larger(cut: int) -> int:
        return max(_joined(atoms[:cut]).size, _joined(atoms[cut:]).size)

    best = min(range(1, len(atoms)), key=larger)
    cut = best if larger(best) <= max_chars else len(atoms) - 1
    return [atoms[:cut], atoms[cut:]]


def _atoms(text: str, blocks: Sequence[Block], limits: Limits) -> Iterator[Stretch]:
    for unit in _units(text, blocks, limits.max_chars):
        stretch = trim(text, unit.start, unit.end)
        whole = unit.kind in {"code", "table"} and stretch.size <= limits.whole_chars
        if whole:
            yield stretch
        else:
            yield from split(text, stretch, unit.kind, limits.max_chars, unit.body)


def _units(text: str, blocks: Sequence[Block], max_chars: int) -> Iterator[_Unit]:
    unit: _Unit | None = None
    for block in blocks:
        if unit is None:
            unit = _Unit(block.start, block.end, block.kind, block.start)
        elif unit.bare:
            unit = _Unit(unit.start, block.end, block.kind, block.start)
        elif block.end - unit.start <= max_chars and _belongs(text, unit, block):
            kind = unit.kind if block.kind in _BARE else block.kind
            unit = _Unit(unit.start, block.end, kind, unit.body)
        else:
            yield unit
            unit = _Unit(block.start, block.end, block.kind, block.start)
    if unit is not None:
        yield unit


def _belongs(text: str, unit: _Unit, block: Block) -> bool:
    """Say whether a block is read with the paragraph before: code, tables, and what `:` opens."""
    if block.kind in _BARE:
        return True
    if unit.kind != "text" or block.kind != "text":
        return unit.kind == "text"
    tail = text[max(unit.start, unit.end - _TAIL_CHARS) : unit.end]
    return tail.rstrip().endswith(":")


def _merged_forward(packed: Iterable[Passage], limits: Limits) -> list[Passage]:
    """Put small passages together with what follows them."""
    merged: list[Passage] = []
    for passage in packed:
        if (
            merged
            and merged[-1].stretch.size < limits.min_chars
            and _may_merge(merged[-1], passage, limits)
        ):
            merged[-1] = _merge(merged[-1], passage)
        else:
            merged.append(passage)
    return merged


def _merged_backward(packed: Iterable[Passage], limits: Limits) -> list[Passage]:
    """Put passages that are small still together with what precedes them."""
    merged: list[Passage] = []
    for passage in packed:
        if (
            merged
            and passage.stretch.size < limits.min_chars
            and _may_merge(merged[-1], passage, limits)
        ):
            merged[-1] = _merge(merged[-1], passage)
        else:
            merged.append(passage)
    return merged


def _may_merge(one: Passage, other: Passage, limits: Limits) -> bool:
    """Say whether two neighbours fit and are siblings, or one is around the other."""
    shared = _shared(one.path, other.path)
    related = len(shared) >= min(len(one.path), len(other.path)) or (
        len(one.path) == len(other.path) == len(shared) + 1
    )
    return related and other.stretch.end - one.stretch.start <= limits.max_chars


def _merge(one: Passage, other: Passage) -> Passage:
    path = _shared(one.path, other.path) or one.path or other.path
    return Passage(Stretch(one.stretch.start, other.stretch.end), path)


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    length = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return one[:length]
