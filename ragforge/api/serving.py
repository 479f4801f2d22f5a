"""Serving for as long as a context lasts: a mock of a model, and live pages about sets."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from ragforge.api.call import EVALUATE, Handle, begin, check, naming_keywords
from ragforge.api.keywords import EvaluateKeywords, MockKeywords
from ragforge.config import EvaluateSettings
from ragforge.errors import UsageError
from ragforge.files.set.dataset import Dataset
from ragforge.mock.bodies import Embed
from ragforge.mock.running import Running
from ragforge.mock.running import serving as serving_mock
from ragforge.mock.script import Script


@contextmanager
def mock_endpoint(**script: Unpack[MockKeywords]) -> Iterator[Running]:
    """Serve an OpenAI-compatible endpoint on a free port of this machine, to rehearse with.

    It answers the prompts of every job well, for nothing, and as fast or as badly as told:
    `with rf.mock_endpoint(p500=0.1) as mock: ds.judge(model="mock", base_url=mock.url)`.

    Args:
        script: latency, rpm, p_hang and others, as the flags of `ragforge mock`; see
            `ragforge.api.keywords`.

    Yields:
        The endpoint: its `url`, and what it was asked, `ledger()` and `stats()`.

    Raises:
        UsageError: A value cannot be taken.
        ConfigError: The local model for embeddings is not installed.
    """
    check("mock_endpoint", script, [item.name for item in fields(Script)])
    given: dict[str, Any] = {**script}
    if "refuse" in given:
        refused = given["refuse"]
        given["refuse"] = (refused,) if isinstance(refused, str) else tuple(refused)
    with naming_keywords():
        made = Script(**given)
    with serving_mock(made, embed_of(made)) as running:
        yield running


def embed_of(script: Script) -> Embed | None:
    """Return the local model that makes the embeddings of a mock; None where they are random.

    Raises:
        ConfigError: It is not installed.
    """
    if script.embeddings == "random":
        return None
    from ragforge.retrieval.local_models import open_model

    model = open_model(script.embeddings)

    def embed(texts: Sequence[str], dimensions: int) -> list[list[float]]:
        rows: list[list[float]] = model.vectors(texts).tolist()
        return rows

    return embed


@contextmanager
def view(
    *sets: str | PathLike[str] | Handle, token: str = "", **settings: Unpack[EvaluateKeywords]
) -> Iterator[str]:
    """Serve live pages about sets on a free port of this machine: measures, history, reports.

    New evaluations appear by themselves, and nothing can be changed from the page.

    Args:
        sets: Sets, their directories, or folders of some.
        token: Ask for it: 16 to 200 letters, digits, dots, dashes, underscores and tildes.
        settings: rel_threshold and others; see `ragforge.api.keywords`.

    Yields:
        The address for a browser.

    Raises:
        UsageError: starlette and uvicorn are not installed (extra `view`), no set is named, or the
            token has another form.
        DataError: There is no such directory.
    """
    require_web_server()
    from ragforge.viewer.access import TOKEN_FORM
    from ragforge.viewer.served import check_roots
    from ragforge.viewer.server import serving as serving_pages

    roots = [item.path if isinstance(item, Handle) else Path(item) for item in sets]
    if not roots:
        raise UsageError("view: expected at least one set")
    if token and not TOKEN_FORM.fullmatch(token):
        raise UsageError(
            "token: expected 16 to 200 letters, digits, dots, dashes, underscores and tildes"
        )
    check_roots(roots)
    with begin(EVALUATE, settings, {}) as call:
        measured = call.settings.evaluate
        render = partial(report_page, settings=measured)
        with serving_pages(roots, render, token, settings=measured) as access:
            yield access.address


def require_web_server() -> None:
    """Check that what serves pages is installed.

    Raises:
        UsageError: It is not.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        names = " and ".join(missing)
        raise UsageError(f"view needs {names}: `pip install 'ragforge[view]'` installs all")


def report_page(dataset: Dataset, settings: EvaluateSettings) -> str:
    """Return the report of a set as a page."""
    from ragforge.pipeline.reporting import served_report

    return served_report(dataset, settings)
