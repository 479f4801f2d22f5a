"""The site builds without a warning, and its links lead somewhere."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from documentation.reference import PAGES, text_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WRITTEN = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"(?<!`)\]\((?!https?:)([^)\s]+)\)")


def _places(nav):
    for entry in nav if isinstance(nav, list) else [nav]:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from _places(value)


def _anchors(path):
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _plain(path):
    """Return the text of a page without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)


def test_every_page_is_in_the_menu():
    """A page that no menu names is found by nobody."""
    settings = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))

    assert sorted(_places(settings["project"]["nav"])) == sorted(
        path.relative_to(DOCS).as_posix() for path in WRITTEN
    )


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *WRITTEN], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_links_lead_somewhere(path):
    """A link that leads nowhere ends the reading."""
    broken = []
    for link in LINK.findall(_plain(path)):
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        if not target.is_file() or (
            anchor and target.suffix == ".md" and anchor not in _anchors(target)
        ):
            broken.append(link)

    assert broken == []


@pytest.mark.parametrize("name", PAGES)
def test_reference_is_what_the_code_says(name):
    """A reference that the code has left behind is worse than none.

    `python tests/documentation/reference.py` writes it anew.
    """
    assert (DOCS / "reference" / name).read_text("utf-8") == text_of(name)


def test_the_site_builds_without_a_warning(tmp_path):
    """What the builder warns of is broken on the page."""
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)

    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert built.returncode == 0, built.stdout + built.stderr
    assert "arning" not in built.stdout + built.stderr
    assert (tmp_path / "site" / "search.json").stat().st_size > 0
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert re.findall(r'(?:src|href)="(https?://(?!zensical)[^"]+)"', page) == []


def test_the_readme_is_short():
    """A page that nobody reads to its end persuades nobody."""
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120
