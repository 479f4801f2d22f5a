"""What the container file runs, run here: there is no container in which to try it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "examples" / "view" / "Containerfile"


def instruction(name):
    """Return the words of an instruction in the form of a list."""
    [line] = [line for line in FILE.read_text("utf-8").splitlines() if line.startswith(name)]
    return json.loads(line[line.index("[") :])


@pytest.mark.slow
def test_the_command_serves_and_the_check_finds_it_healthy(folder, dataset, tmp_path):
    """A token that is not there, or an option that is gone, would end it at once."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    shell, flag, served = instruction("CMD")
    served = served.replace("/sets ", f"{folder} ").replace("8080", port)
    served = served.replace("ragforge view", f"{sys.executable} -m ragforge view")
    variables = {"PUBLIC_URL": "https://host.example/sets", "TOKEN": "a-token-of-thirty-letters"}
    with subprocess.Popen(
        [shell, flag, served], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            printed = process.stdout.readline()
            check = [word.replace("8080", port) for word in instruction("HEALTHCHECK")]
            found = subprocess.run([sys.executable, *check[1:]], check=False, timeout=20)
        finally:
            process.terminate()
            process.wait(20)

    assert printed == "https://host.example/sets/?token=a-token-of-thirty-letters\n"
    assert found.returncode == 0
