"""A browser that a test steers, over the pipes that chromium offers for it."""

import json
import os
import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from itertools import count

import pytest

NEEDS_BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed"),
]
"""The marks of a module whose tests open pages."""

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""What chromium is started with: no window, and no word to anybody."""


LEAVING = (
    "Inspected target navigated or closed",
    "Execution context was destroyed.",
    "Cannot find context with specified id",
)
"""What chromium answers to a question to a page that is just being left."""


class LeavingError(Exception):
    """A question was put to a page that was being left for another."""


class Page:
    """An open page."""

    def __init__(self, to_browser, from_browser):
        self._to = to_browser
        self._from = from_browser
        self._numbers = count(1)
        self._session = {}
        self._events = []

    def call(self, method, **params):
        """Return the result of a command."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params, **self._session}
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while True:
            reply = json.loads(self._read())
            if reply.get("id") == number:
                if reply.get("error", {}).get("message") in LEAVING:
                    raise LeavingError(reply["error"]["message"])
                assert "error" not in reply, reply
                return reply["result"]
            self._events.append(reply)

    def attach(self, target):
        """Speak to a tab from now on."""
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}

    def event(self, **wanted):
        """Return the parameters of the first event that has these among them."""
        while True:
            params = (self._events.pop(0) if self._events else json.loads(self._read())).get(
                "params", {}
            )
            if wanted.items() <= params.items():
                return params

    def complaints(self):
        """Return what the console was told so far."""
        methods = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [event for event in self._events if event.get("method") in methods]

    def value(self, expression):
        """Return what an expression comes to in the page, waited for if it is a promise."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key):
        """Press a key."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key[:1])
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def _read(self):
        parts = []
        while (byte := self._from.read(1)) != b"\0":
            assert byte, "the browser is gone"
            parts.append(byte)
        return b"".join(parts)


@contextmanager
def opened(path, profile, flags):
    """Open a file in a browser without a window."""
    read_theirs, write_ours = os.pipe()
    read_ours, write_theirs = os.pipe()

    def place():
        # Chromium reads at 3 and writes at 4.
        spare = os.dup(read_theirs), os.dup(write_theirs)
        os.dup2(spare[0], 3)
        os.dup2(spare[1], 4)

    browser = subprocess.Popen(
        ["chromium", *flags, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
        preexec_fn=place,
        pass_fds=(3, 4),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_theirs)
    os.close(write_theirs)
    with os.fdopen(write_ours, "wb") as to_browser, os.fdopen(read_ours, "rb") as from_browser:
        try:
            page = Page(to_browser, from_browser)
            page.attach(page.call("Target.createTarget", url="about:blank")["targetId"])
            navigate(page, path)
            yield page
        finally:
            browser.kill()
            browser.wait()


def navigate(page, path):
    """Go to a file, and wait until it is there."""
    page.call("Page.enable")
    page.call("Page.navigate", url=path.as_uri())
    page.value(
        "new Promise((done) => document.readyState === 'complete' && location.protocol === 'file:'"
        " ? done(1) : addEventListener('load', () => done(1)))"
    )


def until(page, expression, patience_s=20):
    """Wait until something holds in a page; what fails for now does not hold yet.

    The page may be left for another meanwhile: then the next one is asked.
    """
    looks_ms = 200
    look = (
        f"new Promise((done) => {{ const end = Date.now() + {looks_ms};"
        f" const look = () => {{ let is = false; try {{ is = {expression}; }} catch {{}}"
        " if (is) done(true); else if (Date.now() > end) done(false);"
        " else setTimeout(look, 20); }; look(); })"
    )
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            if page.value(look):
                return
        except LeavingError:
            time.sleep(0.02)
    raise AssertionError(f"never: {expression}")


def contrast(one, other):
    """Return the contrast of two colours as WCAG 2 defines it."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour):
    """Return the relative luminance of a colour such as #1a2b3c or #abc."""
    digits = re.sub(r"^#(.)(.)(.)$", r"#\1\1\2\2\3\3", colour)[1:]
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
