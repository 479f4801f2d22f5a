"""The site in a browser: its search finds, and pages fit any window, light and dark."""

import functools
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from devtools import FLAGS, NEEDS_BROWSER, opened

pytestmark = NEEDS_BROWSER

ROOT = Path(__file__).parents[2]
PAGES = ("", "how-to/decide/", "coming-from/", "reference/commands/", "explanation/decisions/")
ARRIVED = "location.protocol === 'http:' && document.readyState === 'complete'"
FOUND = """new Promise((done) => {
  const links = (root) => [...root.querySelectorAll('*')].flatMap((each) =>
    [...(each.shadowRoot ? links(each.shadowRoot) : []), ...(each.tagName === 'A' ? [each] : [])]);
  const look = () => {
    const found = links(document).map((each) => each.href).filter((link) => link.includes('?h='));
    return found.length ? done(found) : setTimeout(look, 50);
  };
  look();
})"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Keep the test output clean."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Serve the site, and return where."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    (folder / "zensical.toml").write_bytes((ROOT / "zensical.toml").read_bytes())
    subprocess.run(
        [sys.executable, "-m", "zensical", "build"], cwd=folder, check=True, capture_output=True
    )
    handler = functools.partial(Quiet, directory=str(folder / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def window(tmp_path):
    """Open a window that has seen nothing yet."""
    blank = tmp_path / "blank.html"
    blank.write_text("<title>blank</title>", encoding="utf-8")
    with opened(blank, tmp_path / "profile", FLAGS) as page:
        yield page


def go(window, url):
    """Go to a page, and wait until it is there."""
    window.call("Page.navigate", url=url)
    looking = f"const look = () => {ARRIVED} ? done(1) : setTimeout(look, 20); look();"
    window.value(f"new Promise((done) => {{ {looking} }})")


def test_the_search_finds_a_word(site, window):
    """Whoever looks a word up does not read a menu."""
    go(window, site)
    window.value("document.querySelector('.md-search__button').click()")
    window.value("new Promise((done) => setTimeout(done, 300))")
    window.call("Input.insertText", text="kappa")

    assert any("explanation/" in link for link in window.value(FOUND))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_the_window(site, window, scheme):
    """A page that must be pushed sideways is left."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    window.call("Emulation.setEmulatedMedia", features=[feature])
    told = []
    for width in (400, 1280):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        window.call("Emulation.setDeviceMetricsOverride", **size)
        for page in PAGES:
            go(window, f"{site}/{page}")
            if window.value("document.documentElement.scrollWidth") > width:
                told.append(f"{page} at {width}")
            shown = window.value("document.body.getAttribute('data-md-color-scheme')")
            told += [f"{page} is {shown}"] if (shown == "slate") != (scheme == "dark") else []

    assert told == []
