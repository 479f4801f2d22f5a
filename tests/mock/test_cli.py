"""The command, as a user or a CI job runs it."""

import contextlib
import json
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest

from ragforge.cli import mock
from ragforge.cli.invocation import invoke

CODE = (
    "import sys; from ragforge.cli import mock; from ragforge.cli.invocation import invoke; "
    "sys.exit(invoke(mock, ['mock', *sys.argv[1:]]))"
)


@contextlib.contextmanager
def running(*words):
    """Run the command on a free port; yields the process and its first line."""
    command = [sys.executable, "-c", CODE, "--port", "0", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_the_first_line_is_the_base_url():
    """A script reads it and hands it on."""
    with running() as (_, url), urlopen(f"{url}/models", timeout=10) as reply:
        assert json.load(reply)["object"] == "list"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_well_when_told_to(number):
    """A CI job that ends its endpoint must not fail for it."""
    with running("--p-hang", "1") as (process, _):
        process.send_signal(number)
        _, told = process.communicate(timeout=20)

    assert process.returncode == 0
    assert told.splitlines()[-1].startswith("mock: 0 requests, 0 rejected with 429, 0 billed")


def test_flags_reach_the_script():
    """Each field is a flag."""
    parser = mock.argparse.ArgumentParser()
    mock.configure(parser)
    words = (
        "--p429 .1 --retry-after ms --rpm 60 --max-inflight 4 --refuse seed --refuse json_schema"
    )
    script = mock.script_of(parser.parse_args(words.split()))

    assert script == mock.Script(
        p429=0.1, retry_after="ms", rpm=60, max_inflight=4, refuse=("seed", "json_schema")
    )


def test_no_flags_are_the_defaults():
    """What the help says is what happens."""
    parser = mock.argparse.ArgumentParser()
    mock.configure(parser)

    assert mock.script_of(parser.parse_args([])) == mock.Script()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--p429", "2"], "--p429: expected a probability from 0 to 1, got 2"),
        (["--rpm", "many"], "--rpm: expected a number, got 'many'"),
        (["--max-inflight", "1.5"], "--max-inflight: expected a whole number, got '1.5'"),
        (["--refuse", "all"], "--refuse: no 'all'; there are: json_schema"),
        (["--port", "70000"], "--port: expected 0 to 65535, got 70000"),
        (["--host", "example.org"], "--host: expected an IP address, got 'example.org'"),
        (["--host", "0.0.0.0"], "--host: 0.0.0.0 can be reached from other machines"),
    ],
)
def test_what_cannot_be_is_told(capsys, words, message):
    """With the flag, what was found and what is allowed."""
    code = invoke(mock, ["mock", *words])

    assert code == 2
    assert message in capsys.readouterr().err


def test_a_port_in_use_is_told(start, capsys):
    """With what to do instead."""
    port = start().address[1]
    code = invoke(mock, ["mock", "--port", str(port)])

    assert code == 2
    assert f"--port {port}: cannot be listened on" in capsys.readouterr().err


def test_all_addresses_can_be_asked_for():
    """In a container the endpoint's clients are elsewhere."""
    with running("--host", "::1", "--allow-remote") as (_, url):
        assert url.startswith("http://[::1]:")


def test_the_key_is_never_told():
    """Also a mock's key may be a real one, put in by mistake."""
    with running("--auth", "sk-very-secret") as (process, url):
        with pytest.raises(OSError, match="401"):
            urlopen(f"{url}/models", timeout=10)
        process.send_signal(signal.SIGINT)
        out, told = process.communicate(timeout=20)

    assert "very-secret" not in out + told


def test_the_help_names_every_flag():
    """It is the reference."""
    parser = mock.argparse.ArgumentParser()
    mock.configure(parser)
    shown = parser.format_help()

    assert all(mock.flag(name) in shown for name in mock.Script.__dataclass_fields__)
