"""The same inputs give the same set, whatever happened on the way."""

import pytest
from pipeline.generation.making import accepted, at, endpoint, files, generate, ids, made, problems


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A set of six queries and the endpoint that it was made with."""
    out = tmp_path_factory.mktemp("first") / "set"
    with endpoint() as running:
        done = generate(out, *at(running))
        assert (done.code, done.out) == (0, f"{out}\n")
        yield out, running, files(out)


def test_exactly_as_many_as_asked_for(first):
    """A set of five that was sold as six is short where nobody looks."""
    out, *_ = first

    assert len(accepted(out)) == 6
    assert problems(out) == []


@pytest.mark.parametrize("flags", [(), ("--concurrency", "1"), ("--concurrency", "32")])
def test_a_rerun_asks_nothing_and_changes_nothing(first, flags):
    """A nightly job must neither pay nor leave a difference, wherever it runs."""
    out, running, before = first
    asked = len(running.seen)

    done = generate(out, *at(running), *flags)

    assert (done.code, len(running.seen) - asked) == (0, 0)
    assert files(out) == before


def test_another_directory_gets_the_same_bytes(first, tmp_path):
    """What depends on where or when it was made cannot be compared."""
    out, running, _ = first

    generate(tmp_path / "other", *at(running), "--concurrency", "3")

    assert made(tmp_path / "other") == made(out)


def test_another_seed_gives_another_set(first, tmp_path):
    """Who draws twice wants two draws."""
    out, running, _ = first

    generate(tmp_path / "other", *at(running), "--seed", "1")

    assert len(accepted(tmp_path / "other")) == 6
    assert not set(ids(tmp_path / "other")) & set(ids(out))
