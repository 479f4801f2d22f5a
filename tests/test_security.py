"""What SECURITY.md promises is held by tests."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TEXT)
PROMISES = [
    line for line in TEXT.partition("## What is promised")[2].splitlines() if line.startswith("| ")
]


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_holds_a_promise_is_there(path, name):
    """A promise whose test was renamed or dropped is only a sentence."""
    text = (ROOT / path).read_text(encoding="utf-8")

    assert re.findall(rf"^(?:async )?def ({name})\(", text, re.MULTILINE) == [name]


def test_each_promise_names_a_test():
    """What no test holds belongs to what is not promised."""
    unheld = [line for line in PROMISES if "::test_" not in line and "| test |" not in line]

    assert len(PROMISES) > 25
    assert unheld == []


def test_the_readme_leads_there():
    """Who found a weakness looks in the README first."""
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
