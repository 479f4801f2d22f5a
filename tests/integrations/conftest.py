"""Environments of frameworks, each its own, kept in a cache folder until something changes."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from evaluated_sets import dataset, hostile_dataset, make_ranking, many_queries, new_dataset

__all__ = ["dataset", "hostile_dataset", "make_ranking", "many_queries", "new_dataset"]

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragforge-environments"
FRAMEWORKS = {
    "langchain": ["langchain", "langchain-core", "langchain-text-splitters"],
    "llama-index": ["llama-index-core"],
    "haystack": ["haystack-ai"],
    "chroma": ["chromadb"],
    "qdrant": ["qdrant-client"],
    "lancedb": ["lancedb"],
    "langserve": ["langserve[server]", "langchain-core", "uvicorn"],
    "fastapi": ["fastapi", "uvicorn"],
    "labels": ["label-studio-sdk", "argilla"],
    "ray": ["ray"],
    "ragas": ["ragas==0.4.3", "langchain-community<0.4", "rapidfuzz"],
    "deepeval": ["deepeval==4.3.1"],
    "measures": ["pytrec_eval-terrier==0.5.11", "ir_measures==0.4.3", "ranx==0.3.21"],
    "splitters": [
        *("langchain-text-splitters", "llama-index-core", "haystack-ai", "nltk", "chonkie"),
    ],
}
"""What is installed beside ragforge, newest versions first, in the environment of each name."""
ALONE = ("ragas", "deepeval", "measures")
"""Other tools, which need none of ours: ragas has no version that goes with openai 3."""
QUIET = {"HAYSTACK_TELEMETRY_ENABLED": "False", "ANONYMIZED_TELEMETRY": "False"}


def pytest_collection_modifyitems(items):
    """Mark what is here; as slow too: a choice of marks replaces the one of the settings."""
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker("integrations")
            item.add_marker("slow")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Build the wheel of this checkout."""
    place = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(place), str(ROOT))
    [built] = place.glob("*.whl")
    return built


@pytest.fixture
def python(wheel, name):
    """Return a function that runs Python with a framework and this checkout installed."""
    place = _environment(name, wheel)

    def run(folder, *words):
        known = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return _run(str(place / "bin" / "python"), *words, cwd=folder, env={**known, **QUIET})

    return run


def _environment(name, wheel):
    """Return the folder of an environment, with the wheel; what it needs is installed once."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [sys.version, FRAMEWORKS[name], declared["dependencies"]]
    place = CACHE / f"{name}-{hashlib.sha256(repr(needed).encode()).hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers share it
        _fill(place, FRAMEWORKS[name], wheel)
    return place


def _fill(place, frameworks, wheel):
    # pip takes a minute for what uv takes a second for.
    uv = [sys.executable, "-m", "uv"]
    # Copies, as nltk reads no file that is linked elsewhere.
    how = ("-q", "--link-mode", "copy", "--python", str(place / "bin" / "python"))
    install = [*uv, "pip", "install", *how]
    installed, digest = place / "installed", hashlib.sha256(wheel.read_bytes()).hexdigest()
    is_alone = place.name.startswith(ALONE)
    if not installed.exists():
        shutil.rmtree(place, ignore_errors=True)
        _run(*uv, "venv", "-q", "--python", sys.executable, str(place))
        _run(*install, *frameworks, *([] if is_alone else [f"ragforge[rank] @ {wheel.as_uri()}"]))
        if not is_alone:
            _run(*install, "--no-deps", "wordllama")
        installed.write_text(digest, encoding="utf-8")
    elif installed.read_text("utf-8") != digest and not is_alone:
        _run(*install, "--no-deps", "--reinstall", f"ragforge @ {wheel.as_uri()}")
        installed.write_text(digest, encoding="utf-8")


def _run(*words, **settings):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **settings)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
