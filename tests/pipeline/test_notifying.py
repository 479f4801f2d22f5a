import json
import os
import shlex
import sys

import pytest
from fakes import Recorder

from ragforge.config import RefreshSettings
from ragforge.errors import UsageError
from ragforge.pipeline.notifying import check_hooks, notify, sentence

PUBLISHED = {
    "kind": "published",
    "dataset": "help",
    "version": 3,
    "parent": 2,
    "counts": {"kept": 40, "added": 2},
    "cost_usd": 0.12,
    "exit_code": 0,
}


@pytest.fixture
def tell():
    """Notify by some settings and return the notes; pauses are passed over."""

    def go(event=PUBLISHED, pauses=None, **settings):
        recorder = Recorder()
        pause = (lambda _: None) if pauses is None else pauses.append
        notify(event, RefreshSettings(**settings), recorder, pause=pause)
        return [event.message for event in recorder.named("note")]

    return go


def python(code):
    """Return a command that runs some Python."""
    return shlex.join([sys.executable, "-c", code])


def test_the_command_gets_the_event_and_its_kind(tell, tmp_path):
    """A hook decides by the kind, and may not have to read JSON for that."""
    found = tmp_path / "found.json"
    code = f"import os, sys; open({str(found)!r}, 'w').write(sys.stdin.read())"
    notes = tell(notify_command=python(f"{code}; print(os.environ['RAGFORGE_EVENT'])"))

    assert json.loads(found.read_text()) == {
        "text": "ragforge: help: version 3 is published",
        **PUBLISHED,
    }
    assert notes == [f"notify_command {sys.executable!r}: published"]


def test_a_command_that_says_nothing_gives_no_note(tell):
    """Silence is what a scheduler's mail is to show of what went well."""
    assert tell(notify_command=python("")) == []


def test_no_shell_reads_the_command(tell, tmp_path):
    """What a settings file names is one program with its words."""
    tell(notify_command=f"echo ; touch {tmp_path / 'made'}")

    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (python("raise SystemExit(3)"), "ended with exit code 3"),
        (python("import os; os.kill(os.getpid(), 9)"), "was killed by signal 9"),
        ("no-such-program --now", "'no-such-program' cannot be run: No such file or directory"),
        ("mail 'half", "notify_command cannot be run: no closing quotation"),
        (python("import sys; sys.exit('no room')"), "ended with exit code 1: no room"),
    ],
)
def test_a_command_that_fails_is_a_note(tell, command, message):
    """What was published stays published, whoever could be told."""
    [note] = tell(notify_command=command)

    assert message in note


def test_a_command_of_nothing_but_spaces_is_none(tell):
    """An empty value of the environment must not be run."""
    assert tell(notify_command="  ") == []


def test_a_command_that_does_not_read_is_no_failure(tell):
    """A hook that only rings a bell need not take the event."""
    event = PUBLISHED | {"counts": {f"count {n}": n for n in range(20_000)}}

    assert tell(event, notify_command=python("")) == []


def test_a_command_that_hangs_is_stopped_with_all_it_started(tmp_path):
    """A nightly run must end, and leave nothing behind."""
    held = tmp_path / "held"
    os.mkfifo(held)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    command = shlex.join(["sh", "-c", f"sleep 60 > {held} & wait"])
    recorder = Recorder()
    notify(PUBLISHED, RefreshSettings(notify_command=command), recorder, command_s=0.5)

    assert recorder.events[0].message == "notify_command 'sh' was stopped after 0.5 s"
    assert os.read(reader, 1) == b""  # Comes when nobody holds the other end any more.


def test_what_a_command_prints_cannot_steer_the_log(tell):
    """CI services obey what stands in a log, and terminals too."""
    [note] = tell(notify_command=python(r"print('::error::x\x1b[31m\n::set-output name=a::b')"))

    assert "\n" not in note
    assert "\x1b" not in note
    assert " ::" not in note


def test_the_event_is_posted_as_json(tell, server):
    """Chat services and alarm systems take it so."""
    assert tell(notify_url=server.url) == []
    [(_, headers, content)] = server.requests
    assert headers["Content-Type"] == "application/json"
    assert json.loads(content)["counts"] == {"kept": 40, "added": 2}


def test_a_reply_that_is_no_json_is_a_success(tell, server):
    """Chat services reply `ok`."""
    server.body = b"ok"

    assert tell(notify_url=server.url) == []


@pytest.mark.parametrize("status", [429, 503])
def test_what_may_pass_is_tried_three_times(tell, server, status):
    """An alarm is worth a few seconds; a publication does not wait longer."""
    server.status = status
    pauses = []
    notes = tell(notify_url=server.url, pauses=pauses)

    assert notes == [f"notify_url of 127.0.0.1: status {status}, 3 times"]
    assert (len(server.requests), pauses) == (3, [1, 2])


@pytest.mark.parametrize(
    ("status", "message"),
    [(404, "status 404"), (302, "status 302, a redirect, which is not followed")],
)
def test_what_will_not_pass_is_posted_once(tell, server, status, message):
    """A wrong address stays wrong."""
    server.status = status

    assert tell(notify_url=server.url) == [f"notify_url of 127.0.0.1: {message}"]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/services/T0/S3CRET?token=S3CRET",
        "http://user:S3CRET@127.0.0.1/x",
        "S3CRET",
        "http://[S3CRET",
    ],
)
def test_no_message_holds_the_address(tell, url):
    """The addresses of chat services are their keys."""
    [note] = tell(notify_url=url)

    assert "S3CRET" not in note
    assert note.startswith("notify_url")


def test_a_reply_that_repeats_the_address_is_not_shown(tell, server):
    """A server's page of an error says what was asked for."""
    server.status, server.body = 404, b"no /services/S3CRET here"

    assert tell(notify_url=f"{server.url}/services/S3CRET") == [
        "notify_url of 127.0.0.1: status 404"
    ]


def test_without_hooks_nothing_happens(tell):
    """Most sets have none."""
    assert tell() == []


def test_what_json_has_no_word_for_is_null(tell, server):
    """A receiver that cannot read the event is not told."""
    tell(PUBLISHED | {"found": float("nan")}, notify_url=server.url)

    assert json.loads(server.requests[0][2])["found"] is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("published", "version 3 is published"),
        ("rejected", "version 3 was stopped by its checks; the published one stays"),
        ("pins_broken", "pinned queries lost their evidence; the published version stays"),
        ("churn", "too much of the documents is gone; the published version stays"),
        ("gate_failed", "bm25 failed its gate on version 3"),
        ("failed", "the refresh failed; the published version stays"),
        ("something new", "something new"),
    ],
)
def test_each_kind_is_a_sentence(kind, words):
    """People read this line on a phone."""
    event = {"dataset": "help", "version": 3, "run": "bm25", "kind": kind}

    assert sentence(event) == f"ragforge: help: {words}"


def test_names_in_a_sentence_are_data():
    """A folder may be called anything."""
    assert sentence({"kind": "published", "dataset": "{kind}\x1b[31m", "version": 1}) == (
        "ragforge: {kind}\\x1b[31m: version 1 is published"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"notify_url": "ftp://127.0.0.1/S3CRET"}, "notify_url: expected http://HOST"),
        ({"notify_url": "http://user:S3CRET@127.0.0.1/x"}, "notify_url: .* without a user name"),
        ({"notify_url": "S3CRET"}, "notify_url: expected http://HOST"),
        ({"notify_command": "mail 'half"}, "notify_command cannot be run: no closing quotation"),
        ({"notify_command": "no-such-program --now"}, "'no-such-program': no such program"),
        ({"notify_command": "/etc"}, "'/etc': no such program"),
    ],
)
def test_a_hook_that_can_never_work_is_refused(settings, message):
    """Found only after publishing, it would be the one night nobody hears of."""
    with pytest.raises(UsageError, match=message) as raised:
        check_hooks(RefreshSettings(**settings))

    assert "S3CRET" not in str(raised.value)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"notify_command": "  "},
        {"notify_command": "sh -c 'echo x'", "notify_url": "http://127.0.0.1:1/services/T0"},
    ],
)
def test_a_hook_that_may_work_is_not_asked(settings):
    """Whether anybody listens is not known until there is something to tell."""
    assert check_hooks(RefreshSettings(**settings)) is None
