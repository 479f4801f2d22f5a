import shutil

import pytest
from devtools import FLAGS, NEEDS_BROWSER, navigate, opened

from ragforge.config import EvaluateSettings
from ragforge.pipeline.reporting import write_report

pytestmark = NEEDS_BROWSER

READY = (
    "new Promise((done) => { const look = () => document.getElementById('queries-table')"
    ".dataset.ready ? done(1) : setTimeout(look, 10); look(); })"
)
OPENED = """new Promise((done) => { location.hash = 'q=%s';
  const look = () => { const dialog = document.getElementById('query-dialog');
    const text = dialog.open ? dialog.innerText : '';
    text.includes('%s') && (text.includes('Retrieved') || text.includes('folder'))
      ? done(text) : setTimeout(look, 20); };
  look(); })"""
LAST = "q2399"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser for the tests of this module."""
    folder = tmp_path_factory.mktemp("browser")
    blank = folder / "blank.html"
    blank.write_text("<title>blank</title>", encoding="utf-8")
    with opened(blank, folder / "profile", FLAGS) as page:
        for domain in ("Log", "Runtime"):
            page.call(f"{domain}.enable")
        yield page


@pytest.fixture
def large(many_queries):
    """A dataset that a page of a megabyte has no room for."""
    return many_queries(2400, chars=4000)


@pytest.fixture
def show(browser):
    """Open a page that is a file, and wait for its script."""

    def run(path):
        navigate(browser, path)
        browser.value(READY)
        return browser

    return run


def open_query(page, query_id):
    """Return what the dialog of a query says, once it does."""
    return page.value(OPENED % (query_id, query_id))


def test_every_query_opens_without_a_server(show, large, tmp_path):
    """The rest is in files beside the page, and browsers let no page read files."""
    out = tmp_path / "my set #1.html"
    write_report(large, out, "html", EvaluateSettings())

    page = show(out)
    text = open_query(page, LAST)

    assert out.stat().st_size < 1_300_000
    assert list((tmp_path / "my set #1_files").iterdir())
    assert "Its" not in text
    assert "c2399" in text
    assert "first 500 of 4,000 characters" in text
    assert page.complaints() == []
    assert page.value("document.querySelectorAll('script[src]').length") == 0


def test_page_without_its_folder_says_what_is_missing_and_takes_it_back(show, large, tmp_path):
    """A page is mailed, and its folder is forgotten."""
    out = tmp_path / "page.html"
    write_report(large, out, "html", EvaluateSettings())
    shutil.move(tmp_path / "page_files", tmp_path / "away")
    page = show(out)

    assert "in the folder page_files, which is not beside this page" in open_query(page, LAST)
    assert "Retrieved: top 1 of 1" in open_query(page, "q0000")
    shutil.move(tmp_path / "away", tmp_path / "page_files")
    assert "first 500 of 4,000 characters" in open_query(page, LAST)


def test_single_file_has_every_query(show, large, tmp_path):
    """One file is easier to send than a folder."""
    out = tmp_path / "page.html"
    write_report(large, out, "html", EvaluateSettings(), is_single=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    page = show(out.rename(elsewhere / "sent.html"))

    assert "first 500 of 4,000 characters" in open_query(page, LAST)
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith("_files")] == []


def test_markup_may_load_nothing(show, large, tmp_path):
    """Only the script of the page may: what gets in as text would run nothing."""
    out = tmp_path / "page.html"
    write_report(large, out, "html", EvaluateSettings())
    (tmp_path / "evil.js").write_text("document.title = 'owned'", encoding="utf-8")
    text = out.read_text(encoding="utf-8")
    out.write_text(text.replace("<main", "<script src='evil.js'></script><main"), encoding="utf-8")

    page = show(out)

    assert page.value("document.title") == "many: ragforge report"
