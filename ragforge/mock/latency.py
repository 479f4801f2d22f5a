"""How long a reply takes."""

import math
import re
from collections.abc import Callable
from statistics import NormalDist

from ragforge.errors import UsageError

_FORM = re.compile(r"(fixed|lognorm|uniform):([0-9.]+)(?:,([0-9.]+))?")
_NORMAL = NormalDist()
_TAIL = 1e-6
"""Draws are kept this far from 0 and 1, where the normal distribution has no quantile."""


def parse_latency(text: str) -> Callable[[float], float]:
    """Return the function from a draw in [0, 1) to seconds that a text such as `fixed:20` names.

    Raises:
        UsageError: The text has no known form.
    """
    found = _FORM.fullmatch(text)
    try:
        if found and found[1] == "fixed" and found[3] is None:
            return _fixed(float(found[2]))
        if found and found[1] == "lognorm" and found[3] is not None:
            return _lognorm(float(found[2]), float(found[3]))
        if found and found[1] == "uniform" and found[3] is not None:
            return _uniform(float(found[2]), float(found[3]))
    except ValueError:
        pass
    raise UsageError(
        f"--latency: expected fixed:MS, lognorm:MEDIAN_MS,SIGMA or uniform:LOW_MS,HIGH_MS, "
        f"got {text!r}"
    )


def _fixed(value_ms: float) -> Callable[[float], float]:
    return lambda _: value_ms / 1000


def _uniform(low_ms: float, high_ms: float) -> Callable[[float], float]:
    if low_ms > high_ms:
        raise ValueError
    return lambda draw: (low_ms + draw * (high_ms - low_ms)) / 1000


def _lognorm(median_ms: float, sigma: float) -> Callable[[float], float]:
    def sample(draw: float) -> float:
        inside = min(max(draw, _TAIL), 1 - _TAIL)
        return median_ms * math.exp(sigma * _NORMAL.inv_cdf(inside)) / 1000

    return sample
