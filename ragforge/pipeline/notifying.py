"""Telling a command or a web address what became of a refresh or a gate."""

import json
import os
import shlex
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from ragforge.config import RefreshSettings
from ragforge.deferred import shutil, subprocess, tempfile
from ragforge.errors import CallError, UsageError
from ragforge.evaluating.formatting import harmless
from ragforge.observe import Event, Observer

if TYPE_CHECKING:
    from ragforge.evaluating.gate import Verdict
    from ragforge.http_service import Service

EventKind: TypeAlias = Literal[
    "published", "rejected", "pins_broken", "churn", "gate_failed", "failed"
]
KIND_VARIABLE: Final = "RAGFORGE_EVENT"
"""Environment variable in which the command finds the kind of the event."""
COMMAND_S: Final = 30.0
_POST_S: Final = 10.0
_ATTEMPTS: Final = 3
_SHOWN: Final = 500
_TOO_MANY: Final = 429
_SENTENCES: Final[Mapping[str, str]] = {
    "published": "version {version} is published",
    "rejected": "version {version} was stopped by its checks; the published one stays",
    "pins_broken": "pinned queries lost their evidence; the published version stays",
    "churn": "too much of the documents is gone; the published version stays",
    "gate_failed": "{run} failed its gate on version {version}",
    "failed": "the refresh failed; the published version stays",
}


def check_hooks(settings: RefreshSettings) -> None:
    """Check that the hooks can work, before anything is done of which they are to be told.

    Raises:
        UsageError: The address is none, or the command cannot be found; no address is shown.
    """
    if settings.notify_url:
        _service(settings.notify_url)
    words = _words(settings.notify_command)
    if words and shutil.which(words[0]) is None:
        raise UsageError(
            f"notify_command {words[0]!r}: no such program is found; name one by its path, or one "
            "on PATH (no shell reads this line)"
        )


def notify(
    event: Mapping[str, object],
    settings: RefreshSettings,
    observer: Observer,
    *,
    command_s: float = COMMAND_S,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Hand an event to the command and the address that the settings name; nothing is raised.

    A hook that fails is a note. Blocks until both are done, a minute or so at most, so that it
    belongs behind all other work.

    Args:
        event: What JSON can hold, with its `kind` and the name of its `dataset`. A sentence is
            added as `text`, which chat services show.
        settings: `notify_command` is split into words as a shell does, and run without one.
            It gets the object on its standard input, and its kind as RAGFORGE_EVENT.
        observer: Told what the command printed and what failed; no address, for that may be secret.
        command_s: Seconds after which the command is stopped, with all that it started.
        pause: Waits so many seconds between attempts to post.
    """
    text = json.dumps({"text": sentence(event), **event}, default=str)
    message = json.loads(text, parse_constant=lambda _: None)  # JSON has no NaN
    if settings.notify_command:
        kind = str(message.get("kind", ""))
        _note(observer, _run(settings.notify_command, kind, json.dumps(message), command_s))
    if settings.notify_url:
        _note(observer, _post(settings.notify_url, message, pause))


def notify_gate(verdict: "Verdict", settings: RefreshSettings, observer: Observer) -> None:
    """Tell of a gate that did not pass; texts of queries stay here."""
    now = verdict.evaluation
    event = {
        "kind": "gate_failed",
        "dataset": now.dataset,
        "version": now.version,
        "run": now.run,
        "counts": {"queries": now.n_queries, "failed": now.n_failed},
        "checks": [
            {
                "name": check.name,
                "outcome": check.outcome,
                "found": check.value,
                "decided": check.decided,
                "limit": check.threshold,
            }
            for check in verdict.checks
        ],
        "refusals": [refusal.reason for refusal in verdict.refusals],
        "exit_code": 1,
    }
    notify(event, settings, observer)


def sentence(event: Mapping[str, object]) -> str:
    """Return an event in words, on one line."""
    known = {name: event.get(name, "?") for name in ("version", "run")}
    kind = str(event.get("kind", ""))
    what = _SENTENCES.get(kind, "{kind}").format(kind=kind, **known)
    return harmless(f"ragforge: {event.get('dataset', '?')}: {what}", _SHOWN)


def _note(observer: Observer, message: str) -> None:
    if message:
        observer(Event("note", message=harmless(message, _SHOWN)))


def _run(command: str, kind: str, text: str, limit_s: float) -> str:
    """Run the command; return what is to be told about it, "" for nothing."""
    try:
        words = _words(command)
    except UsageError as error:
        return str(error)
    if not words:
        return ""
    where = f"notify_command {words[0]!r}"
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(  # a command of the user's own, without shell
                words,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, KIND_VARIABLE: kind},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"{where} cannot be run: {getattr(error, 'strerror', None) or error}"
        outcome = _wait(process, text, limit_s)
        output.seek(0)
        printed = output.read(4 * _SHOWN).decode("utf-8", "replace").strip()
    return ": ".join(filter(None, [f"{where}{outcome}", printed])) if outcome or printed else ""


def _wait(process: "subprocess.Popen[bytes]", text: str, limit_s: float) -> str:
    """Return how the command ended, "" if well."""
    try:
        process.communicate(text.encode(), timeout=limit_s)
    except subprocess.TimeoutExpired:
        return f" was stopped after {limit_s:g} s"
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode < 0:
        return f" was killed by signal {-process.returncode}"
    return f" ended with exit code {process.returncode}" if process.returncode else ""


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise UsageError(f"notify_command cannot be run: {str(error).lower()}") from error


def _service(url: str) -> "Service":
    from ragforge.http_service import Service  # Few are told by an address.

    try:
        return Service(url, what="notify_url", function="", timeout_s=_POST_S)
    except UsageError:  # whose words hold the address
        raise UsageError(
            "notify_url: expected http://HOST[:PORT]/PATH or https://…, without a user name"
        ) from None


class _PassingError(Exception):
    """A post that may succeed when it is tried again."""


def _post(url: str, event: Mapping[str, object], pause: Callable[[float], None]) -> str:
    """Post the event; return what failed, "" for nothing."""
    from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

    try:
        service = _service(url)
    except UsageError as error:
        return str(error)
    where = f"notify_url of {urlsplit(url).hostname}"
    tries = Retrying(
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_exponential(multiplier=1, max=4),
        retry=retry_if_exception_type(_PassingError),
        sleep=pause,
        reraise=True,
    )
    try:
        failed = tries(_attempt, service, event)
    except _PassingError as error:
        failed = f"{error}, {_ATTEMPTS} times"
    return f"{where}: {failed}" if failed else ""


def _attempt(service: "Service", body: Mapping[str, object]) -> str:
    """Post once; return what failed for good, "" for nothing.

    Raises:
        _PassingError: It failed and may pass.
    """
    try:
        status = service.send(body).status
    except CallError as error:
        message = str(error).removeprefix(f"{service.shown}: ")
        raise _PassingError(message.replace(service.shown, "…")) from error
    if status >= 500 or status == _TOO_MANY:
        raise _PassingError(f"status {status}")
    if 300 <= status < 400:
        return f"status {status}, a redirect, which is not followed"
    return "" if status < 300 else f"status {status}"
