"""The exception tree. Each class carries the exit code the command line ends with.

Messages have three parts: where, what was found, what is allowed.
"""

from collections.abc import Iterable
from typing import ClassVar


class RagforgeError(Exception):
    """Anything ragforge can explain to its user in one message, without a traceback."""

    exit_code: ClassVar[int] = 70


class UsageError(RagforgeError):
    """A flag, argument or combination of them cannot be taken."""

    exit_code = 2


class ConfigError(UsageError):
    """A settings file, environment variable or prompt file cannot be taken."""


class LockedError(UsageError):
    """Another process works on the same set; it is no failure, and that one will tell its end."""


class DataError(RagforgeError):
    """A file or record does not hold to its format, or cannot be read or written."""

    exit_code = 3


class ChurnError(DataError):
    """A corpus changed so much that it may not be all there."""


class ChangedMeanwhileError(DataError):
    """A set was written to while its next version was made; made again, it starts from that."""


class ContradictedError(DataError):
    """Another person decided otherwise, which stands until somebody overrules it."""


class EndpointError(RagforgeError):
    """The model endpoint cannot be used: every further call would fail alike, so the run stops."""

    exit_code = 4


class StoppedError(RagforgeError):
    """A call was not made because the run is being stopped; the reason is told elsewhere."""

    exit_code = 130


class LeaseLostError(StoppedError):
    """A call or a shard was left to another process, which took it over from this one."""


class BudgetError(RagforgeError):
    """A limit on calls, tokens or money is reached; what was done is saved."""

    exit_code = 5


class PlanLimitError(BudgetError):
    """A limit of a plan of shards is reached; the message says how it is raised."""


class ShortfallError(RagforgeError):
    """Fewer items than asked for could be delivered; the message says why."""

    exit_code = 5


class CallError(Exception):
    """One model call failed for good; the run goes on and the unit of work becomes a Failure.

    Args:
        kind: One of the kinds of `records.Failure`.
        message: What happened, in the provider's words where it gave any.
        raw: The reply as it came, "" where none came.
        call_keys: Keys of the stored replies that were no use.
    """

    def __init__(
        self, kind: str, message: str, raw: str = "", *, call_keys: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.raw = raw
        self.call_keys = call_keys
        self.is_kept = False
        """Whether all replies that were no use came from the call store."""


def did_you_mean(given: str, there: Iterable[str]) -> str:
    """Return `; did you mean NAME?` where one of some names is near to a given one, else ""."""
    from difflib import get_close_matches  # Its regular expressions are for mistakes alone.

    by_folded = {name.lower(): name for name in there}
    near = get_close_matches(given.lower(), by_folded, n=1)
    return f"; did you mean {by_folded[near[0]]}?" if near else ""
