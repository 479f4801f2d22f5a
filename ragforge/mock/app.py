"""From a request to a plan: what is sent, when, and how the connection ends.

Limits on the rate are token buckets; what was billed and what happened is counted.
"""

import json
import math
import time
from array import array
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from itertools import accumulate
from typing import Literal

from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.mock.batch_api import BatchApi, LineReply
from ragforge.mock.bodies import (
    HTML_200,
    HTML_502,
    NO_JSON,
    Embed,
    Job,
    Problem,
    Tokens,
    completion,
    embeddings,
    model_of,
    models,
    random_vectors,
    read_job,
    refused,
    status_problem,
)
from ragforge.mock.content import CONTENT_FAULTS, Choice, Content, SchemaError, good_content, spoil
from ragforge.mock.http_messages import Request, response
from ragforge.mock.script import Draws, RetryAfter, Script, fault_chances, parse_latency

_HUGE_S = 3600
_ERROR_FAULTS = {"500": 500, "503": 503}
_AUTH_SHOWN = 4


class RefillingBucket:
    """Room that refills at a rate.

    Args:
        per_minute: The rate; room for one always fits.
        burst_s: Seconds of the rate that fit.
        clock: Seconds from any start, never going back.
    """

    def __init__(self, per_minute: float, burst_s: float, clock: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self._per_s = per_minute / 60
        self._capacity = max(1.0, self._per_s * burst_s)
        self._clock = clock
        self._level = self._capacity
        self._at_s = clock()

    def room(self) -> float:
        """Return how much fits now; below 0 while more was charged than fitted."""
        now_s = self._clock()
        self._level = min(self._capacity, self._level + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        return self._level

    def wait_s(self, amount: float) -> float:
        """Return the seconds until an amount fits; what never fits waits for the full bucket."""
        return max(0.0, (min(amount, self._capacity) - self.room()) / self._per_s)

    def charge(self, amount: float) -> None:
        """Take an amount, whether it fits or not: the rate holds in the long run."""
        self._level = self.room() - amount

    def full_in_s(self) -> float:
        """Return the seconds until it is full."""
        return (self._capacity - self.room()) / self._per_s


@dataclass(frozen=True, slots=True)
class _Shortage:
    """A limit without room.

    Args:
        what: `requests` or `tokens`.
        limit: Per minute.
        wait_s: Until there is room.
    """

    what: str
    limit: float
    wait_s: float


class Limits:
    """The limits of a script.

    Args:
        script: Says which.
        clock: As of `RefillingBucket`.
    """

    def __init__(self, script: Script, clock: Callable[[], float]) -> None:
        self._sends_headers = script.rl_headers == "on"
        rates = {"requests": script.rpm, "tokens": script.tpm}
        self._buckets = {
            what: RefillingBucket(rate, script.burst_s, clock)
            for what, rate in rates.items()
            if rate
        }

    def take(self, tokens: int) -> _Shortage | None:
        """Take room for one request with so many tokens, or return the limit that has none."""
        amounts = {"requests": 1, "tokens": tokens}
        short = [
            _Shortage(what, bucket.per_minute, wait_s)
            for what, bucket in self._buckets.items()
            if (wait_s := bucket.wait_s(amounts[what])) > 0
        ]
        if short:
            return max(short, key=lambda shortage: shortage.wait_s)
        for what, bucket in self._buckets.items():
            bucket.charge(amounts[what])
        return None

    def charge_reply(self, tokens: int) -> None:
        """Take the tokens of a reply, which were not known when the request was let in."""
        if "tokens" in self._buckets:
            self._buckets["tokens"].charge(tokens)

    def headers(self) -> dict[str, str]:
        """Return the x-ratelimit headers: limit a minute, room left now, time until full."""
        headers: dict[str, str] = {}
        if self._sends_headers:
            for what, bucket in self._buckets.items():
                headers[f"x-ratelimit-limit-{what}"] = f"{bucket.per_minute:.0f}"
                headers[f"x-ratelimit-remaining-{what}"] = str(max(0, math.floor(bucket.room())))
                headers[f"x-ratelimit-reset-{what}"] = duration(bucket.full_in_s())
        return headers


def retry_after_headers(form: RetryAfter, wait_s: float | None, now_s: float) -> dict[str, str]:
    """Return the header that says when to come again.

    Args:
        form: How it says it.
        wait_s: The true time, None where there is none to tell.
        now_s: The wall clock.
    """
    if form == "lie":
        return {"retry-after": "0"}
    if form == "huge":
        return {"retry-after": str(_HUGE_S)}
    if form == "none" or wait_s is None:
        return {}
    if form == "ms":
        return {"retry-after-ms": str(math.ceil(wait_s * 1000))}
    if form == "date":
        until = formatdate(math.ceil(now_s + wait_s), usegmt=True)
        return {"date": formatdate(now_s, usegmt=True), "retry-after": until}
    return {"retry-after": str(math.ceil(wait_s))}


def duration(seconds: float) -> str:
    """Return a time as OpenAI's headers write it: 6ms, 1.2s, 2m3s."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    if seconds < 60:
        return f"{math.ceil(seconds * 1000) / 1000:g}s"
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes}m{rest}s"


class _BilledCalls:
    """Billed replies, by the sha256 of the request's canonical JSON."""

    def __init__(self) -> None:
        self.billed = 0
        self._times: Counter[bytes] = Counter()
        self._attempts: Counter[bytes] = Counter()
        self._prompt_tokens = 0
        self._completion_tokens = 0

    def attempt(self, digest: bytes) -> int:
        """Return how many attempts at this body came before, and count one more."""
        number = self._attempts[digest]
        self._attempts[digest] = number + 1
        return number

    def bill(self, digest: bytes, prompt_tokens: int, completion_tokens: int) -> None:
        """Count a reply that the model made."""
        self.billed += 1
        self._times[digest] += 1
        self._prompt_tokens += prompt_tokens
        self._completion_tokens += completion_tokens

    def to_dict(self, *, full: bool = False) -> dict[str, object]:
        """Return the ledger as /__ledger shows it.

        Args:
            full: How often each body was billed, too.
        """
        counts: dict[str, object] = {
            "bodies": len(self._times),
            "billed": self.billed,
            "dup": self.billed - len(self._times),
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._completion_tokens,
        }
        if full:
            counts["by_body"] = {digest.hex(): times for digest, times in self._times.items()}
        return counts


class _Stats:
    """What happened since the start or the last reset."""

    def __init__(self, in_flight: int = 0, open_requests: int = 0) -> None:
        self.connections = 0
        self.in_flight = in_flight
        self.max_in_flight = in_flight
        self.open_requests = open_requests
        self.by_status: Counter[int] = Counter()
        self.faults: Counter[str] = Counter()
        self._sends = array("d")

    def arrived(self, at_s: float) -> None:
        """Count a request."""
        self._sends.append(at_s)

    def accepted(self) -> None:
        """Count a request that is being worked on."""
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def to_dict(self, *, full: bool = False) -> dict[str, object]:
        """Return the counts as /__stats shows them.

        Args:
            full: When each request arrived, too.
        """
        counts: dict[str, object] = {
            "requests": len(self._sends),
            "by_status": {str(status): n for status, n in sorted(self.by_status.items())},
            "rejected": self.by_status[429],
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "in_flight_now": self.open_requests,
            "connections": self.connections,
            "faults": dict(self.faults),
        }
        if full:
            counts["sends"] = [round(at_s, 3) for at_s in self._sends]
        return counts


@dataclass(frozen=True, slots=True)
class Plan:
    """What a connection does with a request.

    Args:
        payload: All bytes of the reply; of one that aborts, those that are sent.
        delay_s: Before the first byte.
        end: keep and close say what becomes of the connection behind the reply; reset sends
            nothing, hang sends nothing and waits, slow dribbles and then keeps.
        accepted: Whether the model works on it until the reply is sent.
    """

    payload: bytes = b""
    delay_s: float = 0.0
    end: Literal["keep", "close", "reset", "hang", "slow"] = "keep"
    accepted: bool = False


class App:
    """The endpoint apart from its connections.

    Args:
        script: What it does.
        clock: Seconds from any start, never going back.
        wall_clock: For HTTP dates.
        embed: The local model that the script names; it computes while other requests wait.

    Raises:
        UsageError: The script names a local model, and there is none.
    """

    def __init__(
        self,
        script: Script,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        embed: Embed | None = None,
    ) -> None:
        if script.embeddings != "random" and embed is None:
            raise UsageError(
                f"--embeddings {script.embeddings}: `ragforge mock` and `rf.mock_endpoint` have "
                "local models; what serves a script alone has none"
            )
        self.script = script
        self._embed = embed or random_vectors
        self._clock = clock
        self._wall_clock = wall_clock
        self._latency = parse_latency(script.latency)
        chances = fault_chances(script)
        self._faults = list(zip(accumulate(chances.values()), chances, strict=True))
        self.stats = _Stats()
        self.reset()

    def reset(self) -> None:
        """Forget all that happened; limits are full, and the clock of outages starts anew."""
        self._start_s = self._clock()
        self._limits = Limits(self.script, self._clock)
        self._number = 0
        self.ledger = _BilledCalls()
        self._batch_api = BatchApi(self.script, self._clock, self._batch_line)
        self.stats = _Stats(self.stats.in_flight, self.stats.open_requests)

    @property
    def is_down(self) -> bool:
        """Whether connections are to be reset now."""
        script = self.script
        if script.down_from_s is None or script.down_to_s is None:
            return False
        return script.down_from_s <= self._clock() - self._start_s < script.down_to_s

    def counts(self, *, full: bool = False) -> dict[str, object]:
        """Return what happened, as /__stats shows it.

        Args:
            full: When each request arrived, too.
        """
        return {**self.stats.to_dict(full=full), "batches": self._batch_api.made}

    def answer(self, request: Request) -> Plan:
        """Return the plan for a request; counts it, and bills it where the model works."""
        path = request.path.removeprefix("/v1").rstrip("/")
        if path.startswith("/__"):
            return self._control_plan(self._control(request, path))
        self._number += 1
        self.stats.arrived(self._clock() - self._start_s)
        if self.script.redirect_to:
            self.stats.by_status[307] += 1
            return Plan(response(307, b"", {"location": self.script.redirect_to}))
        problem = self._refused_by_script(request)
        if problem is not None:
            return self._refuse(problem)
        if (request.method, path) == ("GET", "/models"):
            return self._send(200, json.dumps(models()).encode(), {})
        if path.startswith(("/files", "/batches")):
            return self._on_batch_api(request, path)
        if request.method != "POST" or path not in ("/chat/completions", "/embeddings"):
            message = f"Invalid URL ({request.method} {request.path})"
            return self._refuse(Problem(404, message))
        job = read_job(request.body, is_chat=path == "/chat/completions")
        if isinstance(job, Problem):
            return self._refuse(job)
        return self._work(job)

    def _on_batch_api(self, request: Request, path: str) -> Plan:
        try:
            found = self._batch_api.answer(request, path)
        except ConnectionError:
            return Plan(end="reset")
        if found is None:
            found = Problem(404, f"Invalid URL ({request.method} {request.path})")
        return self._refuse(found) if isinstance(found, Problem) else self._send(200, found, {})

    def _batch_line(self, content: bytes) -> LineReply:
        """Work on a request of a batch: its reply may be spoilt, but no connection is."""
        job = read_job(content, is_chat=True)
        problem = job if isinstance(job, Problem) else refused(self.script, job)
        if isinstance(job, Problem) or problem is not None:
            assert problem is not None
            return LineReply(problem.status, json.loads(problem.body()))
        try:
            good = self._good_content(job)
        except (SchemaError, ArithmeticError, AttributeError, TypeError, LookupError) as error:
            wrong = Problem(400, f"Invalid schema for response_format: {error}")
            return LineReply(400, json.loads(wrong.body()))
        draws = Draws(self.script.seed, job.digest.hex(), self.ledger.attempt(job.digest))
        draws.fraction()  # The latency of the same request, asked live.
        drawn = draws.fraction()
        fault = next((name for below, name in self._faults if drawn < below), "")
        choice = spoil(fault if fault in CONTENT_FAULTS else "", good, draws)
        written = len(choice.content or choice.refusal or "") // 4
        self.ledger.bill(job.digest, job.prompt_tokens, written)
        tokens = None if fault == "no_usage" else Tokens(job.prompt_tokens, written)
        shown = None if fault == "empty" else choice
        return LineReply(200, completion(job.body, job.digest, shown, tokens))

    def _control(self, request: Request, path: str) -> bytes | Problem:
        full = "full=1" in request.query.split("&")
        if (request.method, path) == ("GET", "/__ledger"):
            return json.dumps(self.ledger.to_dict(full=full)).encode()
        if (request.method, path) == ("GET", "/__stats"):
            return json.dumps(self.counts(full=full)).encode()
        if (request.method, path) == ("POST", "/__reset"):
            self.reset()
            return b"{}"
        return Problem(404, f"Invalid URL ({request.method} {request.path})")

    @staticmethod
    def _control_plan(found: bytes | Problem) -> Plan:
        if isinstance(found, Problem):
            return Plan(response(found.status, found.body(), {}))
        return Plan(response(200, found, {}))

    def _refused_by_script(self, request: Request) -> Problem | None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if self.script.auth and given != self.script.auth:
            shown = f"{given[:_AUTH_SHOWN]}****" if given else "(none)"
            message = f"Incorrect API key provided: {shown}."
            return Problem(401, message, code="invalid_api_key")
        if self.script.always_status is not None:
            return status_problem(self.script.always_status, model_of(request.body))
        return None

    def _good_content(self, job: Job) -> Content:
        return good_content(job.body, job.digest, self.script.seed, self.script.falls_for)

    def _work(self, job: Job) -> Plan:
        """Let the model work on a job, if nothing stands against it."""
        problem = refused(self.script, job)
        if problem is not None:
            return self._refuse(problem)
        tokens = Tokens(job.prompt_tokens)
        rejection = self._rejection(tokens.prompt)
        if rejection is not None:
            return rejection
        try:
            good = self._good_content(job) if job.is_chat else None
        except (SchemaError, ArithmeticError, AttributeError, TypeError, LookupError) as error:
            message = f"Invalid schema for response_format: {error}"
            return self._refuse(Problem(400, message, param="response_format"))
        draws = Draws(self.script.seed, job.digest.hex(), self.ledger.attempt(job.digest))
        delay_s, drawn = self._latency(draws.fraction()), draws.fraction()
        fault = next((name for below, name in self._faults if drawn < below), "")
        if fault in CONTENT_FAULTS and not job.is_chat:
            fault = ""
        if fault:
            self.stats.faults[fault] += 1
        if fault == "429":
            return self._reject(status_problem(429, ""), self._retry_after(None))
        plan = self._failed(fault) or self._reply(job, good, fault, draws, tokens)
        return Plan(plan.payload, delay_s, plan.end, accepted=True)

    def _rejection(self, tokens: int) -> Plan | None:
        script = self.script
        if script.quota_after is not None and self.ledger.billed >= script.quota_after:
            message = "You exceeded your current quota, please check your plan and billing details."
            kind = "insufficient_quota"
            return self._reject(Problem(429, message, kind, kind), {})
        if script.max_inflight is not None and self.stats.in_flight >= script.max_inflight:
            problem = Problem(429, "Too many requests at once", "requests", "rate_limit_exceeded")
            return self._reject(problem, self._retry_after(None))
        short = self._limits.take(tokens)
        if short is None:
            return None
        message = (
            f"Rate limit reached for mock on {short.what} per min: Limit {short.limit:.0f}. "
            f"Please try again in {short.wait_s * 1000:.0f}ms."
        )
        problem = Problem(429, message, short.what, "rate_limit_exceeded")
        return self._reject(problem, self._retry_after(short.wait_s))

    def _failed(self, fault: str) -> Plan | None:
        """Return the plan of a fault that keeps the model from working, None for all others."""
        if fault in _ERROR_FAULTS:
            return self._refuse(status_problem(_ERROR_FAULTS[fault], ""))
        if fault == "502_html":
            return self._send(502, HTML_502, {}, "text/html")
        return Plan(end="reset") if fault == "reset" else None

    def _reply(
        self, job: Job, good: Content | None, fault: str, draws: Draws, tokens: Tokens
    ) -> Plan:
        """Bill a job and return the plan of its reply."""
        choice = spoil(fault, good, draws) if good else None
        if choice is not None:
            tokens = Tokens(tokens.prompt, len(choice.content or choice.refusal or "") // 4)
        self.ledger.bill(job.digest, tokens.prompt, tokens.completion)
        self._limits.charge_reply(tokens.completion)
        if fault == "hang":
            return Plan(end="hang")
        body, kind = _body(job, choice, fault, tokens, self._embed)
        plan = self._send(200, body, self._limits.headers(), kind)
        if fault == "abort":
            cut = len(plan.payload) - len(body) + len(body) // 2
            return Plan(plan.payload[:cut], end="close")
        return Plan(plan.payload, end="slow") if fault == "slow" else plan

    def _retry_after(self, wait_s: float | None) -> dict[str, str]:
        return retry_after_headers(self.script.retry_after, wait_s, self._wall_clock())

    def _reject(self, problem: Problem, headers: dict[str, str]) -> Plan:
        plan = self._refuse(problem, {**self._limits.headers(), **headers})
        return Plan(plan.payload, self.script.reject_latency_ms / 1000)

    def _refuse(self, problem: Problem, headers: dict[str, str] | None = None) -> Plan:
        return self._send(problem.status, problem.body(), headers or {})

    def _send(
        self, status: int, body: bytes, headers: dict[str, str], kind: str = "application/json"
    ) -> Plan:
        self.stats.by_status[status] += 1
        all_headers = {"x-request-id": f"req_{self._number:012d}", **headers}
        return Plan(response(status, body, all_headers, content_type=kind))


def _body(
    job: Job, choice: Choice | None, fault: str, tokens: Tokens, embed: Embed
) -> tuple[bytes, str]:
    """Return the body of a 200 and its type."""
    if fault == "html200":
        return HTML_200, "text/html"
    if fault == "badbody":
        return NO_JSON, "application/json"
    counted = None if fault == "no_usage" else tokens
    if job.is_chat:
        body = completion(job.body, job.digest, None if fault == "empty" else choice, counted)
    else:
        body = embeddings(job.body, [] if fault == "empty" else job.texts, counted, embed)
    return json.dumps(body).encode(), "application/json"
