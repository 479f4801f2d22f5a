"""How many queries of each kind: shares become cells, one for each query to deliver."""

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from itertools import chain, groupby, product, repeat
from operator import itemgetter
from typing import TypeVar, get_args

from ragforge.config import GenerateSettings
from ragforge.deferred import dataclass, pattern
from ragforge.errors import ConfigError
from ragforge.records import Difficulty, QueryType

Name = TypeVar("Name", bound=str)
Row = tuple[QueryType, Difficulty, str, str]

_TYPES: dict[str, QueryType] = {name: name for name in get_args(QueryType)}
_DIFFICULTIES: dict[str, Difficulty] = {name: name for name in get_args(Difficulty)}

_LANGUAGE = pattern(r"[a-z]{2}(-[A-Z]{2}|-[A-Z][a-z]{3})?")

_SENSELESS: Mapping[str, str] = {
    "definition": "hard",
    "keyword": "hard",
    "multi_hop": "easy",
    "multi_hop_across": "easy",
}
"""What is stated in one place needs no inference; what needs two places is not just stated."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A query to deliver, before it is known about what.

    Args:
        number: From 0; any first part of the cells has about the shares of the whole.
    """

    number: int
    type: QueryType
    difficulty: Difficulty
    persona: str
    language: str


@dataclass(frozen=True, slots=True)
class Targets:
    """The shares that are aimed at: name to part of 1, in the order of the settings."""

    types: dict[QueryType, Fraction]
    difficulties: dict[Difficulty, Fraction]
    personas: dict[str, Fraction]
    languages: dict[str, Fraction]


def targets(settings: GenerateSettings) -> Targets:
    """Return the shares of the settings; names with a share of 0 are left out.

    Raises:
        ConfigError: A type or difficulty is unknown, or a language is no code of two letters,
            with a region or script at most (pt-BR, zh-Hant).
    """
    types = _parsed(settings.types)
    difficulties = _parsed(settings.difficulties)
    languages = _parsed(settings.language)
    _check_known("types", types, _TYPES)
    _check_known("difficulties", difficulties, _DIFFICULTIES)
    for code in languages:
        if not _LANGUAGE.fullmatch(code):
            raise ConfigError(
                f"generate.language: {code!r} is no ISO 639-1 code; expected two small letters "
                "such as en, with a region or script where that matters, such as pt-BR"
            )
    return Targets(
        types={_TYPES[name]: share for name, share in types.items()},
        difficulties={_DIFFICULTIES[name]: share for name, share in difficulties.items()},
        personas=_parsed(settings.personas),
        languages=languages,
    )


def make_cells(settings: GenerateSettings, seed: int) -> list[Cell]:
    """Return a cell for each of the n queries to deliver.

    Each type, difficulty, persona and language comes as often as its share says, rounded by
    largest remainder. Difficulties are spread over the types, personas over both, languages over
    all three; where a type makes no sense at a difficulty, two types change difficulties.

    Raises:
        ConfigError: As `targets` raises it.
    """
    wanted, n = targets(settings), settings.n
    types = largest_remainder(wanted.types, n)
    levels = _scattered(largest_remainder(wanted.difficulties, n), f"{seed} difficulty")
    table = Counter(zip(_in_row(types), levels, strict=True))
    _make_sense(table, types, list(wanted.difficulties))
    kinds = [
        kind for kind in product(types, wanted.difficulties) for _ in range(table.get(kind, 0))
    ]
    askers = _scattered(largest_remainder(wanted.personas, n), f"{seed} persona")
    places = {name: place for place, name in enumerate(wanted.personas)}
    asked = [
        (*kind, who)
        for kind, group in groupby(zip(kinds, askers, strict=True), key=itemgetter(0))
        for who in sorted((who for _, who in group), key=places.__getitem__)
    ]
    codes = _scattered(largest_remainder(wanted.languages, n), f"{seed} language")
    rows = [(*row, code) for row, code in zip(asked, codes, strict=True)]
    return [Cell(number, *row) for number, row in enumerate(_interleaved(rows, types, seed))]


def largest_remainder(shares: Mapping[Name, Fraction], n: int) -> dict[Name, int]:
    """Return whole numbers that add up to n, each less than 1 from its share of n.

    Args:
        shares: Add up to 1. Of equal remainders the earlier name's is rounded up.
        n: What is shared out.
    """
    counts = {name: int(share * n) for name, share in shares.items()}
    by_remainder = sorted(shares, key=lambda name: counts[name] - shares[name] * n)
    for name in by_remainder[: n - sum(counts.values())]:
        counts[name] += 1
    return counts


def _parsed(shares: Sequence[str]) -> dict[str, Fraction]:
    parts = (share.rpartition("=") for share in shares)
    percents = {name: Fraction(number) for name, _, number in parts if Fraction(number)}
    total = sum(percents.values())
    return {name: percent / total for name, percent in percents.items()}


def _check_known(setting: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, list(known), n=1, cutoff=0)
            raise ConfigError(
                f"generate.{setting}: there is no {name!r}; did you mean {near[0]}? "
                f"There are: {', '.join(known)}"
            )


def _in_row(counts: Mapping[Name, int]) -> Iterator[Name]:
    return chain.from_iterable(repeat(name, count) for name, count in counts.items())


def _scattered(counts: Mapping[Name, int], seed: str) -> list[Name]:
    """Return each name as often as its count says, so that any stretch holds its share of each."""
    stops = [
        ((2 * place + 1) / (2 * count), name)
        for name, count in counts.items()
        for place in range(count)
    ]
    row = [name for _, name in sorted(stops, key=itemgetter(0))]
    start = int.from_bytes(sha256(seed.encode()).digest()) % len(row)
    return row[start:] + row[:start]


def _make_sense(
    table: Counter[tuple[QueryType, Difficulty]],
    types: Mapping[QueryType, int],
    difficulties: Sequence[Difficulty],
) -> None:
    """Let types of senseless difficulties exchange them with types that can take them.

    Args:
        table: How many cells there are of each; changed in place, its margins stay.
        types: How many cells each type has.
        difficulties: Those that there are.
    """
    for kind, refused in product(types, difficulties):
        while table[kind, refused] and not _is_sensible(kind, refused):
            others = [
                (other, taken)
                for other, taken in product(types, difficulties)
                if table[other, taken]
                and _is_sensible(other, refused)
                and _is_sensible(kind, taken)
            ]
            if not others:
                break
            other, taken = min(
                others, key=lambda one: ((table[one[0], refused] + 1) / types[one[0]], -table[one])
            )
            table.subtract([(kind, refused), (other, taken)])
            table.update([(kind, taken), (other, refused)])


def _is_sensible(kind: QueryType, difficulty: Difficulty) -> bool:
    return _SENSELESS.get(kind) != difficulty


def _interleaved(rows: Sequence[Row], types: Mapping[QueryType, int], seed: int) -> list[Row]:
    """Return the rows so that the types take turns, those of one type in an order by the seed.

    Args:
        rows: Together by type.
        types: How many there are of each, in the order of the rows.
        seed: Decides the order.
    """
    order = {name: place for place, name in enumerate(types)}
    stops: list[tuple[float, int, Row]] = []
    for kind, group in groupby(rows, key=itemgetter(0)):
        numbered = list(enumerate(group))
        numbered.sort(key=lambda one: sha256(f"{seed}\n{kind}\n{one[0]}".encode()).digest())
        stops += [
            ((2 * place + 1) / (2 * types[kind]), order[kind], row)
            for place, (_, row) in enumerate(numbered)
        ]
    return [row for *_, row in sorted(stops, key=itemgetter(0, 1))]
