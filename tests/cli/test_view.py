"""`ragforge view` from the command line."""

import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import create_dataset


@pytest.fixture
def folder(tmp_path):
    """A folder with a dataset."""
    create_dataset(tmp_path / "sets" / "one", {"seed": "0"})
    return tmp_path / "sets"


@contextmanager
def viewing(*words):
    """Run the command beside the test."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ragforge", "view", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_address_comes_first_and_a_stop_ends_it_quietly(folder, stop):
    """A script reads the line, and a terminal shows no traceback."""
    with viewing(folder) as process:
        address = process.stdout.readline().strip()
        with urlopen(address) as reply:
            page = reply.read().decode()
        process.send_signal(stop)
        rest, said = process.communicate(timeout=30)

    assert ("one" in page, rest, process.returncode) == (True, "", 0)
    assert said == "ragforge view: Ctrl-C ends it\n"


@pytest.mark.slow
def test_labels_are_taken_with_a_token_that_is_made_and_printed(folder):
    """Whoever can run programs on this machine must not grade in another's name."""
    with viewing(folder, "--label", "Ann") as process:
        address, _, token = process.stdout.readline().strip().partition("?token=")
        asked = Request(f"{address}datasets/one", headers={"Authorization": f"Bearer {token}"})
        with urlopen(asked) as reply:
            page = reply.read().decode()

    assert (len(token), 'href="one/label"' in page) == (32, True)


@pytest.mark.slow
def test_beyond_loopback_a_token_is_made_and_printed(folder):
    """Whoever can reach the machine must not read the datasets."""
    with viewing(folder, "--host", "0.0.0.0") as process:
        address, _, token = process.stdout.readline().strip().partition("?token=")

    assert (address.startswith("http://127.0.0.1:"), len(token)) == (True, 32)


@pytest.mark.slow
def test_people_who_edit_get_an_address_each(folder):
    """The first line stays the one for reading."""
    with viewing(folder, "--edit", "Ann", "--edit", "Bo Smith") as process:
        reading = process.stdout.readline().strip()
        lines = [process.stdout.readline().strip().split("\t") for _ in range(2)]
        asked = f"{reading.partition('?')[0]}datasets/one"
        with urlopen(Request(asked, headers=own(lines[1][1]))) as reply:
            page = reply.read().decode()

    tokens = {address.partition("?token=")[2] for address in (reading, lines[0][1], lines[1][1])}
    assert [name for name, _ in lines] == ["Ann", "Bo Smith"]
    assert (len(tokens), "as Bo Smith" in page) == (3, True)


def own(address):
    """Return the header that opens an address."""
    return {"Authorization": f"Bearer {address.partition('?token=')[2]}"}


@pytest.mark.slow
def test_tokens_of_a_file_are_not_printed(folder, tmp_path):
    """They are known to those who have them, and output ends in logs."""
    people = tmp_path / "people.toml"
    people.write_text('"Bo Smith" = "a-token-that-only-bo-has"\n', encoding="utf-8")
    with viewing(folder, "--edit-from", people) as process:
        reading = process.stdout.readline().strip()
        asked = f"{reading.partition('?')[0]}datasets/one"
        with urlopen(Request(asked, headers=own("?token=a-token-that-only-bo-has"))) as reply:
            page = reply.read().decode()
        process.send_signal(signal.SIGTERM)
        rest, said = process.communicate(timeout=30)

    assert ("as Bo Smith" in page, rest) == (True, "")
    assert "only-bo-has" not in reading + said


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ('Ann = "short"', 2, "Ann'"),
        ("Ann = 7", 2, "expected 16 to 200 letters"),
        ("Ann", 3, "expected TOML with lines such as"),
        ('Ann = "a-token-of-some-length"\nBo = "a-token-of-some-length"', 2, "nobody else has"),
        ('" " = "a-token-of-some-length"', 2, "labeller"),
    ],
)
def test_people_who_cannot_be_told_apart_are_refused(folder, tmp_path, capsys, text, code, said):
    """Nothing is served then, and no token is shown."""
    people = tmp_path / "people.toml"
    people.write_text(text, encoding="utf-8")
    found = main(["view", str(folder), "--edit-from", str(people)])
    shown = capsys.readouterr()

    assert (found, "of-some-length" in shown.err, '"short"' in shown.err) == (code, False, False)
    assert said in shown.err


def test_a_name_that_comes_twice_is_refused(folder, capsys):
    """It would say nothing of who decided."""
    assert main(["view", str(folder), "--edit", "Ann", "--edit", "Ann"]) == 2
    assert "Ann comes twice" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told(folder, capsys):
    """Two people may use one machine."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = main(["view", str(folder), "--port", str(port)])

    assert code == 2
    assert capsys.readouterr().err == (
        f"ragforge: error: --host 127.0.0.1 --port {port}: cannot be listened on: Address already "
        "in use; --port 0 takes a free port\n"
    )


def test_a_missing_extra_is_told_in_one_line(folder, capsys, monkeypatch):
    """It is the next thing to type."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    assert main(["view", str(folder)]) == 2
    assert capsys.readouterr().err == (
        "ragforge: error: view needs uvicorn: `pip install 'ragforge[view]'` installs all\n"
    )


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--host", "example.com"], 2, "expected an IP address, got 'example.com'"),
        (["--port", "65536"], 2, "expected 0 to 65535, got 65536"),
        (["--token", "short"], 2, "expected 16 to 200 letters"),
        (["--token", "with spaces in the token"], 2, "expected 16 to 200 letters"),
    ],
)
def test_bad_input_is_told_in_a_sentence(folder, capsys, more, code, said):
    """Nothing is served then."""
    found = main(["view", str(folder), *more])

    assert (found, said in capsys.readouterr().err) == (code, True)


def test_a_directory_without_a_dataset_is_told(tmp_path, capsys):
    """A slip of the path must not serve an empty page."""
    assert main(["view", str(tmp_path)]) == 3
    assert "holds no dataset, nor does a folder directly in it" in capsys.readouterr().err


def test_a_directory_that_is_not_there_is_told(tmp_path, capsys):
    """Likewise."""
    assert main(["view", str(tmp_path / "none")]) == 3
    assert "no such directory" in capsys.readouterr().err
