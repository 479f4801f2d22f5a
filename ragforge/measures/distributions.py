"""The normal and Student t distributions, to some twelve digits and far into the tails.

They stand in for scipy, which weighs 170 MB. Arguments and results are single floats; upper tails
are computed as such and not as 1 - cdf, so that a p value of 1e-200 is one. Beyond 100,000 degrees
of freedom digits get lost: nine are left with ten million.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import count
from math import erfc, exp, expm1, hypot, inf, isfinite, lgamma, log, log1p, pi, sqrt
from typing import Final

from ragforge.deferred import statistics
from ragforge.errors import UsageError
from ragforge.measures.checked_numbers import check_share

_EPS: Final = 2.0**-52
_TINY: Final = 1e-300
_STIRLING_FROM: Final = 30.0
_MANY: Final = 1000
_NEGLIGIBLE: Final = 40.0
"""exp(-40) is 4e-18."""
_MOST_NODES: Final = 100_000


def normal_cdf(x: float) -> float:
    """Return the probability that a standard normal value is at most `x`."""
    return 0.5 * erfc(-x / sqrt(2))


def normal_sf(x: float) -> float:
    """Return the probability that a standard normal value exceeds `x`."""
    return 0.5 * erfc(x / sqrt(2))


def normal_quantile(p: float) -> float:
    """Return the x of which `normal_cdf` is `p`, which lies between 0 and 1.

    Raises:
        UsageError: It does not.

    Source: Wichura 1988, algorithm AS 241, as `statistics.NormalDist` has it.
    """
    check_share(p, "probability")
    return statistics.NormalDist().inv_cdf(p)


def student_sf(t: float, df: float) -> float:
    """Return the probability that a Student t value with `df` degrees of freedom exceeds `t`.

    Args:
        t: Any number, infinities too.
        df: Above 0; need not be whole.

    Raises:
        UsageError: `df` is not above 0, or `t` is NaN.

    Source: half of the regularised incomplete beta function I_x(df / 2, 1 / 2) with
    x = df / (df + t^2): Abramowitz and Stegun 26.7.1, 26.5.27.
    """
    if not (df > 0 and isfinite(df)) or t != t:
        raise UsageError(f"expected a t and degrees of freedom above 0, got t = {t}, df = {df}")
    return _upper_tail(t, df) if t >= 0 else 1 - _upper_tail(-t, df)


@lru_cache(maxsize=1024)
def student_quantile(p: float, df: float) -> float:
    """Return the t that a Student t value does not exceed with probability `p` in (0, 1).

    Raises:
        UsageError: `p` is no such probability, or `df` is not above 0.
    """
    check_share(p, "probability")
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -student_quantile(1 - p, df)
    high = 1.0
    while student_sf(high, df) > p:
        high *= 2
    low = high / 2 if high > 1 else 0.0
    # Logarithms make the far tail as straight as the middle.
    return -root(lambda t: log(p) - log(max(student_sf(t, df), _TINY)), low, high)


def noncentral_t_sf(t: float, df: float, shift: float) -> float:
    """Return the probability that a noncentral t value exceeds `t`.

    That is (Z + shift) / S > t with Z standard normal and S^2 chi-squared / df. The normal tail is
    averaged over S by the trapezoid rule in log S, which converges exponentially: the integrand is
    analytic and vanishes at both ends. Absolute error below 1e-12 for |shift| up to 100.

    Args:
        t: Any finite number.
        df: Above 0.
        shift: The noncentrality: effect size times the square root of n.

    Raises:
        UsageError: `df` is not above 0, or an argument is not finite.
    """
    if not (df > 0 and isfinite(df) and isfinite(t) and isfinite(shift)):
        found = f"t = {t}, df = {df}, shift = {shift}"
        raise UsageError(f"expected finite numbers and df above 0, got {found}")
    reach = _NEGLIGIBLE / df
    low, high = -(reach + sqrt(reach)), sqrt(reach)
    # As fine as the density of log S and as the normal tail, wherever that one falls.
    step = min(0.7 / (abs(shift) + 8), 0.5 / sqrt(2 * df + 1))
    import numpy as np  # Loaded by what computes power, and not by who asks for a quantile.

    log_s = np.linspace(low, high, min(int((high - low) / step) + 2, _MOST_NODES))
    weight = np.exp(df * (log_s - np.expm1(2 * log_s) / 2))
    arguments = (t * np.exp(log_s) - shift).tolist()
    tail = np.fromiter(map(normal_sf, arguments), np.float64, len(arguments))
    return float(np.dot(weight, tail) / weight.sum())


def root(rises: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function crosses 0, to nearly the last digit.

    Args:
        rises: Continuous, and does not fall between `low` and `high`.
        low: Where it is at most 0.
        high: Where it is at least 0.

    Source: Ridders 1979, IEEE Transactions on Circuits and Systems 26(11): false position after
    bending the curve straight. The bracket at least halves each time.
    """
    at_low, at_high = rises(low), rises(high)
    if at_low >= 0 or at_high <= 0:
        return low if at_low >= 0 else high
    x, last = high, low
    while abs(x - last) > _EPS * abs(x) and low < (middle := (low + high) / 2) < high:
        at_middle = rises(middle)
        bend = sqrt(at_middle * at_middle - at_low * at_high)
        last, x = x, middle - (middle - low) * at_middle / bend if bend else middle
        at_x = rises(x)
        for point, value in sorted([(middle, at_middle), (x, at_x)]):
            if value >= 0:
                high, at_high = min((high, at_high), (point, value))
            if value <= 0:
                low, at_low = max((low, at_low), (point, value))
    return x


def _upper_tail(t: float, df: float) -> float:
    """Return P(T > t) for t >= 0."""
    scaled = t / sqrt(df)
    if scaled == 0:
        return 0.5
    # log(1 + scaled^2), without overflow and without loss.
    log_whole = log1p(scaled * scaled) if scaled < 1 else 2 * log(hypot(1.0, scaled))
    if log_whole == inf:
        return 0.0
    a = df / 2
    log_front = log(scaled) - (a + 0.5) * log_whole - 0.5 * log(pi) + log_gamma_ratio(a)
    x, y = exp(-log_whole), -expm1(-log_whole)
    # With many degrees of freedom x is so close to 1 that its last digit counts; there 0.5 - y's
    # half is better as long as it does not cancel.
    if x < (a + 1) / (a + 2.5) and (df < _MANY or t >= 3):
        return 0.5 * exp(log_front) * _beta_fraction(x, a, 0.5) / a
    return 0.5 - exp(log_front) * _beta_fraction(y, 0.5, a)


def log_gamma_ratio(a: float) -> float:
    """Return log(gamma(a + 1/2) / gamma(a)), where the difference of logarithms would cancel."""
    if a < _STIRLING_FROM:
        return lgamma(a + 0.5) - lgamma(a)
    square = a * a
    tail = 1 / 192 - (1 / 640 - (17 / 14336 - 31 / (18432 * square)) / square) / square
    return 0.5 * log(a) - 1 / (8 * a) + tail / (a * square)


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of I_x(a, b), evaluated as Lentz does.

    Source: Abramowitz and Stegun 26.5.8; Numerical Recipes, section 6.4.
    """
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in count(1):
        twice = a + 2 * m
        for term in (
            m * (b - m) * x / ((twice - 1) * twice),
            -(a + m) * (a + b + m) * x / (twice * (twice + 1)),
        ):
            d = 1 / (1 + term * d or _TINY)
            c = 1 + term / c or _TINY
            value *= c * d
        if abs(c * d - 1) <= _EPS:
            break
    return value
