"""The service of the examples in a real FastAPI, asked and graded over HTTP."""

import os
import shutil
import socket
import subprocess
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "service"


@pytest.fixture
def name():
    """Of the environment."""
    return "fastapi"


def answers(port):
    """Whether the service is there."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/openapi.json")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def test_the_service_is_asked_compared_and_graded(python, tmp_path):
    """As its head says: the service in one window, the script in another."""
    place = tmp_path / "service"
    shutil.copytree(EXAMPLE, place)
    folder = Path(python(tmp_path, "-c", "import sys; print(sys.executable)").strip()).parent
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    known = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    known["PATH"] = f"{folder}:{known['PATH']}"
    with subprocess.Popen(
        ["uvicorn", "service:app", "--port", str(port)],
        cwd=place,
        env=known,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as service:
        try:
            end = time.monotonic() + 30
            while not answers(port):
                assert time.monotonic() < end, "the service did not start"
                time.sleep(0.1)
            done = subprocess.run(
                ["sh", "evaluate.sh"],
                cwd=place,
                env={**known, "SERVICE": f"http://127.0.0.1:{port}"},
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            service.terminate()
            service.wait(20)

    assert done.returncode == 0, done.stderr
    assert "service" in done.stdout
    assert "correct" in done.stdout
    assert (place / "my-set" / "answer_grades" / "service.jsonl").exists()
