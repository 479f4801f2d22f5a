import subprocess
import sys

import pytest
from fakes import Recorder

from ragforge.config import ModelSettings
from ragforge.llm.endpoints import within_file_limit

pytestmark = pytest.mark.slow


SCRIPT = """
import resource, sys
from ragforge.config import ModelSettings
from ragforge.llm.endpoints import within_file_limit
soft, hard, concurrency = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
settings = ModelSettings(name="m", concurrency=concurrency)
told = []
fitted = within_file_limit(settings, lambda event: told.append(event.message))
print(fitted.concurrency)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
print(*told)
"""


@pytest.fixture
def fitted():
    """Fit settings in a process of its own with these limits; return calls, limits and words."""

    def run(soft, hard, concurrency):
        arguments = [sys.executable, "-c", SCRIPT, str(soft), str(hard), str(concurrency)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60)
        calls, limits, told = done.stdout.split("\n")[:3]
        return int(calls), tuple(map(int, limits.split())), told

    return run


def test_enough_descriptors_are_left_as_they_are(fitted):
    """A limit is somebody's wish."""
    assert fitted(200, 400, 64) == (64, (200, 400), "")


def test_a_soft_limit_is_raised_as_far_as_needed(fitted):
    """Many systems begin with 256 and allow far more."""
    assert fitted(100, 400, 128) == (128, (176, 400), "")


def test_a_hard_limit_lowers_the_calls_in_flight_and_says_so(fitted):
    """Calls without a descriptor would fail one by one, as if the endpoint were down."""
    assert fitted(128, 128, 256) == (
        80,
        (128, 128),
        "--concurrency 256 needs more open files than this process may have (128); "
        "80 calls at once instead",
    )


def test_a_hard_limit_is_used_up_first(fitted):
    """The fewest calls possible are given up."""
    calls, limits, _ = fitted(100, 160, 256)

    assert (calls, limits) == (112, (160, 160))


def test_a_very_low_limit_leaves_one_call(fitted):
    """Slow is better than not at all."""
    calls, _, _ = fitted(40, 40, 8)

    assert calls == 1


def test_a_system_without_such_limits_changes_nothing(monkeypatch):
    """Windows has no module for them."""
    monkeypatch.setitem(sys.modules, "resource", None)
    settings, recorder = ModelSettings(name="m", concurrency=100_000), Recorder()

    assert within_file_limit(settings, recorder) is settings
    assert recorder.events == []
