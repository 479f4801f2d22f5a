"""The product and the endpoint of one test."""

import contextlib

import pytest
from faults.harness import KEY, Product, endpoint


@pytest.fixture(autouse=True, scope="session")
def key():
    """Give every run a key, as its users have one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.delenv("OPENAI_BASE_URL", raising=False)
        yield


@pytest.fixture
def start():
    """Run endpoints with a script until the test ends."""
    with contextlib.ExitStack() as stack:
        yield lambda **script: stack.enter_context(endpoint(**script))


@pytest.fixture
def product(tmp_path):
    """Make the command over n pairs, in a folder of its own."""
    made = []

    def make(running, n=120, folder="run"):
        made.append(Product(tmp_path / folder, running, n))
        return made[-1]

    yield make
    for each in made:
        each.end()
