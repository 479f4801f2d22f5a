import re
import subprocess

import pytest
from devtools import FLAGS, NEEDS_BROWSER

from ragforge.report.html import render_html
from ragforge.report.summary import summarise

pytestmark = NEEDS_BROWSER


@pytest.fixture
def opened(tmp_path):
    """Open a page from a file as a reader would."""

    def run(page, *flags):
        path = tmp_path / "report.html"
        path.write_text(page, encoding="utf-8")
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        return subprocess.run(
            ["chromium", *FLAGS, "--enable-logging=stderr", profile, *flags, path.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            cwd=tmp_path,
        )

    return run


def test_hostile_dataset_does_nothing_in_a_browser(opened, hostile_dataset):
    """A parser of ours may be kinder than the one that counts."""
    found = opened(render_html(summarise(hostile_dataset)), "--dump-dom")

    assert re.findall(r"<title>(.*?)</title>", found.stdout)[0].endswith("ragforge report")
    assert not re.search(r"<(script|img|iframe)\b", found.stdout)
    assert found.stdout.count("<style") == 1


def test_browser_takes_the_style_sheet_and_complains_of_nothing(opened, dataset):
    """A wrong digest in the policy would leave a bare page."""
    found = opened(render_html(summarise(dataset)), "--dump-dom")

    assert "CONSOLE" not in found.stderr


def test_page_draws_on_a_narrow_screen(opened, dataset, tmp_path):
    """A report is read on a phone too."""
    shot = tmp_path / "narrow.png"

    opened(render_html(summarise(dataset)), "--window-size=400,2000", f"--screenshot={shot}")

    assert shot.stat().st_size > 20_000
