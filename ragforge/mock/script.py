"""The script of the endpoint: latencies, limits, faults and refusals; and draws by its seed."""

import ast
import hashlib
import inspect
import math
from collections.abc import Callable
from dataclasses import field, fields
from itertools import pairwise
from typing import Literal, get_args

from ragforge.deferred import dataclass, pattern
from ragforge.errors import UsageError, did_you_mean
from ragforge.mock.weaknesses import Weakness

_FORM = pattern(r"(fixed|lognorm|uniform):([0-9.]+)(?:,([0-9.]+))?")
_TAIL = 1e-6
"""Draws are kept this far from 0 and 1, where the normal distribution has no quantile."""

RetryAfter = Literal["none", "seconds", "ms", "date", "lie", "huge"]
Embeddings = Literal["random", "minilm", "static"]
Refusable = Literal["json_schema", "json_object", "seed", "temperature", "max_tokens"]
BatchFault = Literal[
    "none", "failed", "expired", "torn", "cut", "half", "duplicated", "errors", "untold"
]
_MASK_64 = (1 << 64) - 1


def parse_latency(text: str) -> Callable[[float], float]:
    """Return the function from a draw in [0, 1) to seconds that a text such as `fixed:20` names.

    Raises:
        UsageError: The text has no known form.
    """
    match = _FORM.fullmatch(text)
    try:
        if match and match[1] == "fixed" and match[3] is None:
            return _fixed(float(match[2]))
        if match and match[1] == "lognorm" and match[3] is not None:
            return _lognorm(float(match[2]), float(match[3]))
        if match and match[1] == "uniform" and match[3] is not None:
            return _uniform(float(match[2]), float(match[3]))
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
    from statistics import NormalDist

    normal = NormalDist()

    def sample(draw: float) -> float:
        inside = min(max(draw, _TAIL), 1 - _TAIL)
        return median_ms * math.exp(sigma * normal.inv_cdf(inside)) / 1000

    return sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What the endpoint does; each field is a flag of `ragforge mock`.

    Each attempt draws at most one of the faults p…, each of which is a probability.

    Raises:
        UsageError: A value, or a pair of values, cannot be taken.
    """

    seed: int = 0
    """Changes replies, latencies and faults, which else depend on the request alone."""
    latency: str = "fixed:0"
    """Time before a reply: fixed:MS, lognorm:MEDIAN_MS,SIGMA or uniform:LOW_MS,HIGH_MS."""
    reject_latency_ms: float = 2.0
    """Time before a 429."""
    rpm: float | None = None
    """Requests per minute above which 429 comes."""
    tpm: float | None = None
    """Tokens per minute, prompt and reply, above which 429 comes."""
    burst_s: float = 1.0
    """How many seconds of its rate a limit lets through at once."""
    rl_headers: Literal["on", "off"] = "on"
    """Whether replies carry x-ratelimit headers where --rpm or --tpm is given."""
    retry_after: RetryAfter = "seconds"
    """How a 429 says when the limit has room: header form, lie (0), huge (3600) or none."""
    max_inflight: int | None = None
    """Requests at once above which 429 comes, without a time where no lie or huge is asked for."""
    p429: float = 0.0
    """429 whatever the load, without a time where no lie or huge is asked for."""
    p500: float = 0.0
    """500 with an error body."""
    p502_html: float = 0.0
    """502 with a gateway's HTML page."""
    p503: float = 0.0
    """503 with an error body."""
    p_hang: float = 0.0
    """No reply ever; billed."""
    p_slow: float = 0.0
    """A body that dribbles in over --slow-s; billed."""
    slow_s: float = 30.0
    """How long a slow body takes."""
    p_reset: float = 0.0
    """The connection is reset before any reply; not billed."""
    p_abort: float = 0.0
    """The connection closes after half the body; billed."""
    p_badbody: float = 0.0
    """200 with a body that is no JSON; billed."""
    p_html200: float = 0.0
    """200 with an HTML page; billed."""
    p_empty: float = 0.0
    """200 with an empty list of choices; billed."""
    p_no_usage: float = 0.0
    """A good reply without a count of tokens."""
    p_badjson: float = 0.0
    """Content that is broken JSON, in one of eight ways."""
    p_fence: float = 0.0
    """Good content inside a ```json fence."""
    p_think: float = 0.0
    """Good content behind <think>…</think>."""
    p_schema: float = 0.0
    """Content that breaks its schema: value out of range, key missing, key added, wrong type."""
    p_length: float = 0.0
    """Content cut off with finish_reason length."""
    p_filter: float = 0.0
    """No content, with finish_reason content_filter."""
    p_refusal: float = 0.0
    """A refusal in place of content."""
    p_hostile: float = 0.0
    """Content with terminal escapes, NUL, a lone surrogate, 1 MB of text or 10,000 brackets."""
    quota_after: int | None = None
    """Billed replies after which 429 insufficient_quota comes until a reset."""
    auth: str = field(default="", repr=False)
    """The only key that is taken; all others get 401."""
    always_status: int | None = None
    """An error status that every request gets, such as 403 or 404."""
    bad_text: str = ""
    """A request whose messages hold this text gets 400."""
    down_from_s: float | None = None
    """Seconds after the start or the last reset from which connections are reset."""
    down_to_s: float | None = None
    """Seconds after the start or the last reset until which connections are reset."""
    redirect_to: str = ""
    """A URL that every request is redirected to with 307."""
    refuse: tuple[Refusable, ...] = ()
    """A parameter that gets 400: json_schema, json_object, seed, temperature or max_tokens."""
    falls_for: tuple[Weakness, ...] = ()
    """What it takes for relevance as a judge: master-key, authority, citations, query-echo,
    verbosity, style or words; or for none: language."""
    embeddings: Embeddings = "random"
    """What /embeddings gives: random vectors, equal for equal texts, or those of a local model."""
    batch_s: float = 0.0
    """Seconds until a batch is over, whatever its size."""
    batch_fault: tuple[BatchFault, ...] = ()
    """What becomes of the first batch, the second, …: none, failed (before any work), expired (half
    is done), torn (the output file is cut), cut (only its first download is), half (the rest is in
    no file), duplicated (lines twice, and one of nobody), errors (only an error file), untold
    (made, but the connection breaks)."""

    def __post_init__(self) -> None:
        """Check the values."""
        parse_latency(self.latency)
        _check_faults(self)
        _check_choices(self)
        _check_ranges(self)
        if (self.down_from_s is None) != (self.down_to_s is None):
            raise UsageError("--down-from-s and --down-to-s: expected both or neither, got one")
        if not self.redirect_to.isprintable() or not self.redirect_to.isascii():
            raise UsageError(f"--redirect-to: expected an ASCII URL, got {self.redirect_to!r}")


def flag(name: str) -> str:
    """Return the flag of a field."""
    return "--" + name.replace("_", "-")


def fault_of(name: str) -> str:
    """Return the fault that a field holds the probability of, "" where it holds none.

    >>> fault_of("p429"), fault_of("p_hang"), fault_of("seed")
    ('429', 'hang', '')
    """
    return name[1:].lstrip("_") if name[0] == "p" and not name[1].isalpha() else ""


def fault_chances(script: Script) -> dict[str, float]:
    """Return the probability of each fault that can happen, in the order of the fields."""
    named = {fault_of(item.name): getattr(script, item.name) for item in fields(Script)}
    return {name: chance for name, chance in named.items() if name and chance}


def descriptions() -> dict[str, str]:
    """Return the sentence below each field, by its name."""
    [definition] = ast.parse(inspect.getsource(Script)).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    return {
        item.target.id: below.value.value
        for item, below in pairwise(body)
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def _check_faults(script: Script) -> None:
    total = 0.0
    for item in fields(Script):
        if fault_of(item.name):
            chance = getattr(script, item.name)
            if not 0 <= chance <= 1:
                raise UsageError(
                    f"{flag(item.name)}: expected a probability from 0 to 1, got {chance:g}"
                )
            total += chance
    if total > 1 + 1e-9:
        raise UsageError(f"all faults together: expected probabilities up to 1, got {total:g}")


def _check_choices(script: Script) -> None:
    given = [
        ("rl_headers", script.rl_headers, ("on", "off")),
        ("retry_after", script.retry_after, get_args(RetryAfter)),
        ("embeddings", script.embeddings, get_args(Embeddings)),
        *(("refuse", value, get_args(Refusable)) for value in script.refuse),
        *(("falls_for", value, get_args(Weakness)) for value in script.falls_for),
        *(("batch_fault", value, get_args(BatchFault)) for value in script.batch_fault),
    ]
    for name, value, allowed in given:
        if value not in allowed:
            near = did_you_mean(value, allowed)
            raise UsageError(f"{flag(name)}: no {value!r}{near}; there are: {', '.join(allowed)}")


def _check_ranges(script: Script) -> None:
    above_zero = ("rpm", "tpm", "burst_s", "max_inflight")
    for name in (
        *above_zero,
        "reject_latency_ms",
        "slow_s",
        "quota_after",
        "down_from_s",
        "batch_s",
    ):
        value = getattr(script, name)
        least = "a number above 0" if name in above_zero else "0 or more"
        if value is not None and not (
            math.isfinite(value) and (value > 0 or (value == 0 and name not in above_zero))
        ):
            raise UsageError(f"{flag(name)}: expected {least}, got {value:g}")
    status = script.always_status
    if status is not None and not 400 <= status <= 599:
        raise UsageError(f"--always-status: expected 400 to 599, got {status}")
    if script.down_to_s is not None and script.down_to_s <= (script.down_from_s or 0.0):
        raise UsageError(
            f"--down-to-s: expected more than --down-from-s ({script.down_from_s:g}), "
            f"got {script.down_to_s:g}"
        )


class Draws:
    """A stream of random numbers that depends on nothing but what they are drawn for.

    Args:
        parts: What is drawn for; told apart by their text and their order.
    """

    __slots__ = ("_state",)

    def __init__(self, *parts: object) -> None:
        text = "\x1f".join(map(str, parts)).encode()
        self._state = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound); bound is at most 2**32."""
        return (self._next() >> 32) * bound >> 32

    def fraction(self) -> float:
        """Return a number in [0, 1)."""
        return (self._next() >> 11) / (1 << 53)

    def _next(self) -> int:
        """Return the next 64 bits.

        Source: splitmix64, Steele, Lea and Flood 2014, OOPSLA.
        """
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK_64
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK_64
        return mixed ^ (mixed >> 31)
