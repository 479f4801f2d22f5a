"""Pages about a set in which every text is an attack, opened in the browser that people have."""

import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest
from devtools import FLAGS, NEEDS_BROWSER, opened
from hostile_corpus import make_hostile_set

from ragforge.cli import main

pytestmark = NEEDS_BROWSER

STATE = """(() => ({
    pwned: window.__pwned ?? null,
    title: document.title.includes('owned'),
    scripts: [...document.scripts].filter((each) => !each.type && !each.src).length,
    strangers: document.querySelectorAll(
        'iframe, object, embed, base, img, main style, '
        + 'meta[http-equiv=refresh], [autofocus], svg use').length,
    sheets: [...document.querySelectorAll('link[rel=stylesheet]')].filter(
        (each) => !each.href.startsWith('http://' + location.host + '/')).length,
    handlers: [...document.querySelectorAll('*')].filter((each) => [...each.attributes].some(
        (attribute) => attribute.name.startsWith('on'))).length,
    links: [...document.querySelectorAll('a')].map(
        (each) => new URL(each.getAttribute('href') ?? '', document.baseURI).href).filter(
        (address) => !/^(https?:\\/\\/127\\.0\\.0\\.1|file:|about:)/.test(address)).length,
}))()"""
"""What a payload would change."""
TOUCH = """(async () => {
    for (const each of document.querySelectorAll('details')) each.open = true;
    for (const each of [...document.querySelectorAll('button, summary, input, select')]) {
        each.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
        each.focus();
        if (each.tagName === 'BUTTON' && !each.disabled) each.click();
    }
    for (const each of document.querySelectorAll('*'))
        each.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
    await new Promise((done) => setTimeout(done, 300));
})()"""
"""Opens, presses and passes over everything there is."""
DEAD = {"pwned": None, "title": False, "strangers": 0, "sheets": 0, "handlers": 0, "links": 0}


class Canary(ThreadingHTTPServer):
    """A server that nobody may ask anything."""

    def __init__(self):
        self.asked = asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_error(404)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/canary"


@pytest.fixture(scope="module")
def canary():
    """See `Canary`."""
    with Canary() as server:
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def place(tmp_path_factory, canary):
    """The set, and the pages that commands write of it."""
    folder = tmp_path_factory.mktemp("pages")
    make_hostile_set(folder / "set", canary.url)
    on = ("--dataset", str(folder / "set"))
    commands = (
        ("evaluate", *on),
        ("report", *on, "--out", str(folder / "report.html")),
        ("review", "export", *on, "--sample", "40", "--out", str(folder / "review.html")),
    )
    assert [main([*words]) for words in commands] == [0, 0, 0]
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser that tells what it asks for."""
    folder = tmp_path_factory.mktemp("browser")
    blank = folder / "blank.html"
    blank.write_text("<!DOCTYPE html><title>blank</title>", encoding="utf-8")
    with opened(blank, folder / "profile", FLAGS) as page:
        for domain in ("Log", "Runtime", "Network"):
            page.call(f"{domain}.enable")
        yield page


@contextmanager
def viewing(*words):
    """Serve pages beside the test, and yield their address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ragforge", "view", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def go(page, address):
    """Open an address, and wait until it is there."""
    page.call("Page.navigate", url=address)
    page.value(
        f"new Promise((done) => {{ const look = () => location.href.startsWith({address!r}) && "
        "document.readyState === 'complete' ? setTimeout(done, 200) : setTimeout(look, 20); "
        "look(); })"
    )


def state_of(page, address):
    """Open a page, touch all of it, and return what a payload would have changed."""
    go(page, address)
    page.value(TOUCH)
    state = page.value(STATE)
    del state["scripts"]
    return state


def asked_elsewhere(page, own):
    """Return the addresses that the browser asked for and that are not those of the page."""
    urls = [
        event["params"]["request"]["url"]
        for event in page._events
        if event.get("method") == "Network.requestWillBeSent"
    ]
    return [url for url in urls if urlsplit(url).scheme != "data" and not url.startswith(own)]


@pytest.mark.parametrize("name", ["report.html", "review.html"])
def test_no_payload_lives_in_a_page(browser, place, canary, name):
    """Reports are mailed, and reviewers open what a stranger's documents say."""
    address = (place / name).as_uri()
    browser._events.clear()

    assert state_of(browser, address) == DEAD
    assert asked_elsewhere(browser, address.partition("#")[0]) == []
    assert canary.asked == []


@pytest.mark.parametrize("path", ["", "datasets/set", "datasets/set/report"])
def test_no_payload_lives_in_the_pages_that_view_serves(browser, place, canary, path):
    """They lie on loopback, where a script could ask for what else listens there."""
    with viewing(place / "set") as address:
        browser._events.clear()

        assert state_of(browser, f"{address}{path}") == DEAD
        assert asked_elsewhere(browser, address) == []
        go(browser, "about:blank")  # which looks for news no longer
    assert canary.asked == []


def test_payloads_live_in_a_page_that_does_not_defend_itself(browser, tmp_path, canary):
    """Else the tests above would pass with payloads that cannot do anything."""
    page = tmp_path / "open.html"
    page.write_text(f"<p><img src='{canary.url}/img' onerror='window.__pwned=1'>")

    state = state_of(browser, page.as_uri())

    assert (state["pwned"], canary.asked) == (1, ["/canary/img"])
    canary.asked.clear()
