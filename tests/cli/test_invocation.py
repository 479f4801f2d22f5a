import shlex
import subprocess
import sys

import pytest

from ragforge.cli.invocation import invoke, resume_hint
from ragforge.corpus.origins.origin import shown_host
from ragforge.errors import EndpointError

NOTE = "\n(… stands for what may be secret: put it back)"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--documents", "sql:postgresql://me@h/kb?password=X1Y2#SELECT 1"), "'sql:postgresql://…@h/kb?…#…'"),
        (("--documents=sql:postgresql://me:X1Y2@h/kb#S",), "'--documents=sql:postgresql://…@h/kb#…'"),
        (("--documents", "sql:postgresql://me:12#X1Y2@h/kb#S"), "'sql:…#…'"),
        (("--documents", "sql:postgresql:me:X1Y2@h/kb#S"), "'sql:…#…'"),
        (("--documents", "simplecache::s3://k:X1Y2@b/x"), "…"),
        (("--documents", "git:me:X1Y2@h/x"), "git:…"),
        (("--documents", "https://h/x.md#token=X1Y2"), "'https://h/x.md#…'"),
        (("--notify-url", "http://h:8080/X1Y2"), "http://h:8080/…"),
        (("--notify-url=http://h/X1Y2",), "--notify-url=http://h/…"),
        (("--notify-url", "h/X1Y2"), "--notify-url '…'"),
        (("--notify-command", "curl http://h/X1Y2"), "'curl http://h/…'"),
    ],
)  # fmt: skip
def test_secrets_of_a_command_are_not_in_the_hint(words, shown):
    """It is printed into logs; that something is missing must be said."""
    hint = resume_hint(("refresh", *words))

    assert shown in hint
    assert "X1Y2" not in hint
    assert hint.endswith(NOTE)


@pytest.mark.parametrize(
    "words",
    [
        ("--documents", "git:../handbook@main:docs"),
        ("--documents", "s3://kb/docs"),
        ("--base-url", "http://localhost:8080/v1"),
        ("-m", "nDCG@10", "run.trec"),
    ],
)
def test_a_command_without_secrets_is_shown_as_it_is(words):
    """It is there to be copied."""
    assert resume_hint(("refresh", *words)) == f"  ragforge refresh {shlex.join(words)}"


def test_the_hint_of_an_endpoint_that_failed_has_no_secrets(capsys):
    """An endpoint that is down is the commonest end of a night."""

    class Command:
        __doc__ = "x"

        @staticmethod
        def configure(parser):
            parser.add_argument("--notify-url")

        @staticmethod
        def run(arguments):
            raise EndpointError("down")

    assert invoke(Command, ["refresh", "--notify-url", "http://h/X1Y2"]) == 4
    assert "--notify-url 'http://h/…'" in capsys.readouterr().err


def test_the_hint_of_an_interrupt_has_no_secrets():
    """A scheduler that stops the command keeps what it printed."""
    code = (
        "from unittest.mock import patch\n"
        "import ragforge.cli as c\n"
        "patch.object(c, '_dispatch', side_effect=KeyboardInterrupt).start()\n"
        "c.main(['refresh', '--notify-url', 'http://h/X1Y2'])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "--notify-url 'http://h/…'" in done.stderr
    assert "X1Y2" not in done.stderr


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pw@h:1/a/b?c", "https://h:1/…"),
        ("https://h?c", "https://h/…"),
        ("h/secret", "…"),
    ],
)
def test_a_hook_is_shown_as_its_host(url, shown):
    """Chat services put the key into the path."""
    assert shown_host(url) == shown
