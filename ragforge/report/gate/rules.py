"""Reading the rules of a gate as people write them: `nDCG@10=0.70`, `1%`."""

import re
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Final

from ragforge.errors import UsageError
from ragforge.measures import parse_measure
from ragforge.measures.formulas import FORMULAS
from ragforge.report.gate.verdict import Threshold

_NUMBER: Final = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?\s*%?", re.ASCII)
_LONGEST: Final = 200


def parse_thresholds(texts: Iterable[str], flag: str) -> tuple[Threshold, ...]:
    """Read thresholds of measures of retrieval.

    Args:
        texts: Each MEASURE=NUMBER.
        flag: What messages call it.

    Raises:
        UsageError: One cannot be read, is out of the measure's range, or comes twice.
    """
    return read_thresholds(texts, flag, _of_retrieval)


def read_thresholds(
    texts: Iterable[str], flag: str, name_and_top: Callable[[str], tuple[str, float | None]]
) -> tuple[Threshold, ...]:
    """Read thresholds of any measures.

    Args:
        texts: Each MEASURE=NUMBER.
        flag: What messages call it.
        name_and_top: Gives a measure's canonical name and its highest value, None without end.

    Raises:
        UsageError: As for `parse_thresholds`.
    """
    found: dict[str, Threshold] = {}
    for text in texts:
        where = f"{flag} {text[:_LONGEST]}"
        named, equals, written = text.rpartition("=")
        if not equals or not named.strip() or ")" in written:
            raise UsageError(f"{where}: expected MEASURE=NUMBER, such as nDCG@10=0.7")
        name, top = name_and_top(named)
        value = _number(written, where, top)
        if name in found:
            raise UsageError(f"{where}: {name} is given twice; one threshold a measure")
        found[name] = Threshold(name, value)
    return tuple(found.values())


def parse_share(text: str, flag: str) -> float:
    """Read a share written as `1%` or `0.01`.

    Raises:
        UsageError: It is no number from 0 to 1, or 0 % to 100 %.
    """
    return _number(text, f"{flag} {text[:_LONGEST]}", 1.0)


def parse_count(text: str, flag: str) -> int:
    """Read a whole number from 1 on.

    Raises:
        UsageError: It is none.
    """
    written = text.strip()
    if not (written.isascii() and written.isdecimal() and len(written) < 10 and int(written)):
        raise UsageError(f"{flag} {text[:_LONGEST]}: expected a whole number of at least 1")
    return int(written)


def _of_retrieval(text: str) -> tuple[str, float | None]:
    measure = parse_measure(text)
    return str(measure), None if FORMULAS[measure.name].unbounded else 1.0


def _number(text: str, where: str, top: float | None) -> float:
    written = text.strip()
    allowed = "a number from 0 on" if top is None else f"a number from 0 to {top:g}, or 0% to 100%"
    if not _NUMBER.fullmatch(written):
        raise UsageError(f"{where}: {written!r} is no number; expected {allowed}")
    if written.endswith("%") and top is None:
        raise UsageError(f"{where}: a percentage of what? Expected {allowed}")
    value = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    if not isfinite(value) or value < 0 or (top is not None and value > top):
        raise UsageError(f"{where}: {written} is out of range; expected {allowed}")
    return value
