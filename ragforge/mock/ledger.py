"""What the endpoint remembers: what it billed, and what happened."""

from array import array
from collections import Counter


class Ledger:
    """What was billed, by the sha256 of the request's canonical JSON."""

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
        found: dict[str, object] = {
            "bodies": len(self._times),
            "billed": self.billed,
            "dup": self.billed - len(self._times),
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._completion_tokens,
        }
        if full:
            found["by_body"] = {digest.hex(): times for digest, times in self._times.items()}
        return found


class Stats:
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
        found: dict[str, object] = {
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
            found["sends"] = [round(at_s, 3) for at_s in self._sends]
        return found
