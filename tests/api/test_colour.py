import io

import pytest

from ragforge.api.colour import coloured_message, coloured_result, has_colours

TABLE = "gate: REFUSED\n\ncheck  verdict\n─────  ───────\nRR     PASS"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def usual(monkeypatch):
    """A terminal's environment."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_pipe_gets_no_colours():
    """What a program reads must be the text alone."""
    assert coloured_result(TABLE, io.StringIO()) == TABLE
    assert coloured_message("warning: x", io.StringIO()) == "warning: x"
    assert not has_colours(None)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "")])
def test_who_wants_no_colours_gets_none(monkeypatch, name, value):
    """Some read them as noise, and some terminals show the codes."""
    monkeypatch.setenv(name, value)

    assert not has_colours(Terminal())


def test_no_color_goes_before_force_color(monkeypatch):
    """A user's refusal outweighs a CI's wish."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert has_colours(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")

    assert not has_colours(io.StringIO())


def test_a_verdict_and_a_head_stand_out():
    """They are what one looks for first."""
    shown = coloured_result(TABLE, Terminal())

    assert "\x1b[31mREFUSED\x1b[0m" in shown
    assert "\x1b[32mPASS\x1b[0m" in shown
    assert "\x1b[1mcheck  verdict\x1b[0m\n\x1b[2m─────  ───────\x1b[0m" in shown


def test_an_error_stands_out_by_its_beginning():
    """Its words are data, and stay as they are."""
    shown = coloured_message("ragforge: error: no FAIL here", Terminal())

    assert shown == "\x1b[31mragforge: error:\x1b[0m no FAIL here"
