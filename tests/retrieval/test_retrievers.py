import subprocess
import sys

import pytest

from ragforge.errors import ConfigError, UsageError
from ragforge.retrieval import local_models
from ragforge.retrieval.bm25 import BM25Retriever
from ragforge.retrieval.chargram import ChargramRetriever
from ragforge.retrieval.combined import FusedRetriever, LocalRetriever, RerankedRetriever
from ragforge.retrieval.dense import DenseRetriever
from ragforge.retrieval.retrievers import make_retriever, reranked


class Embedder:
    async def embed(self, texts):
        return [[1.0] for _ in texts]


@pytest.fixture
def make(chunks):
    return lambda spec, embedder=None: make_retriever(spec, chunks(a="red", b="blue"), embedder)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [("bm25", BM25Retriever), ("chargram", ChargramRetriever), ("dense", DenseRetriever)],
)
def test_built_in_retrievers_have_names(make, spec, kind):
    """The names are what users put into scripts."""
    assert isinstance(make(spec, Embedder()), kind)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("minilm", LocalRetriever),
        ("static", LocalRetriever),
        ("bm25+minilm", FusedRetriever),
        ("bm25+chargram+static", FusedRetriever),
        ("bm25>minilm", RerankedRetriever),
        ("bm25+static>minilm", RerankedRetriever),
    ],
)
def test_local_models_are_named_alone_fused_and_behind_another(make, monkeypatch, spec, kind):
    """What a flag says is what the manifest keeps; the weights are read when they are needed."""
    monkeypatch.setattr(local_models, "is_installed", lambda name: True)

    assert isinstance(make(spec), kind)


def test_a_model_that_is_not_installed_is_refused_at_once(make, monkeypatch):
    """Not at the first query, when other retrievers have worked already."""
    monkeypatch.setattr(local_models, "is_installed", lambda name: False)

    with pytest.raises(ConfigError, match="minilm: its weights are not installed"):
        make("bm25+minilm")


def test_only_local_models_rank_anew():
    """A second retriever would find, not rank."""
    with pytest.raises(
        UsageError, match="no local model 'bm25' to rank anew with; there are minilm, static"
    ):
        reranked("bm25", "bm25")


@pytest.mark.parametrize("prefix", ["", "http:"])
def test_addresses_are_asked_over_http(make, server, ids, prefix):
    """An address alone says what it is; the prefix is accepted for those who write it."""
    server.body = b'["b"]'

    assert ids(make(f"{prefix}{server.url}"), "q") == ["b"]


def test_objects_are_loaded_from_modules(make, ids, tmp_path, monkeypatch):
    """A user's own retriever needs no package and no registration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "own_retriever.py").write_text("def search(query, k):\n    return ['b', 'a'][:k]\n")

    assert ids(make("own_retriever:search"), "q", k=1) == ["b"]


def test_dense_without_an_embedding_model_names_the_setting(make):
    """The user must learn what to set, not that something is None."""
    with pytest.raises(ConfigError, match="--embedding-model"):
        make("dense")


def test_an_unknown_name_lists_what_there_is(make):
    """A misspelt name is mended fastest by the list of the right ones."""
    message = "no 'BM-25'; did you mean bm25.; there are: bm25, chargram, dense, http:URL, minilm"
    with pytest.raises(UsageError, match=message):
        make("BM-25")


@pytest.mark.parametrize("spec", ["http:", "http:host/x", "https:host"])
def test_an_address_without_a_scheme_is_refused(make, spec):
    """Guessing between http and https would send queries in the clear."""
    with pytest.raises(UsageError, match="expected an address such as http://"):
        make(spec)


def test_importing_the_package_loads_no_index_library():
    """Commands that retrieve nothing must not wait for numpy."""
    heavy = "{'numpy', 'ssl'}"
    script = f"import sys, ragforge.retrieval.retrievers; print({heavy} & {{*sys.modules}})"

    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)

    assert run.stdout == "set()\n"
