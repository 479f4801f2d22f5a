"""Each recipe runs with its real framework, and its hits stand where its texts stand."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

import ragforge as rf
from ragforge.files.set.dataset import Dataset

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "examples" / "recipes"
DOCUMENTS = ROOT / "datasets" / "helpcentre" / "documents"
N_QUERIES = 12


class Recipe(NamedTuple):
    """A recipe: the runs that it makes with scores, and without, and the systems that answer."""

    environment: str
    file: str
    scored: tuple[str, ...] = ()
    ranked: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()


ALL = [
    Recipe("langchain", "langchain_store", scored=("store",), ranked=("retriever",)),
    Recipe("langchain", "langchain_chain", ranked=("chain",), systems=("chain",)),
    Recipe("llama-index", "llama_index_engine", ("index", "retriever"), systems=("engine",)),
    Recipe("haystack", "haystack_store", scored=("retriever",)),
    Recipe("haystack", "haystack_pipeline", scored=("pipeline",), systems=("pipeline",)),
    Recipe("chroma", "chroma_collection", scored=("chroma",)),
    Recipe("qdrant", "qdrant_points", scored=("qdrant",)),
    Recipe("lancedb", "lance_table", scored=("lance",)),
]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a set, the documents of the index, and a copy of one in the set only."""
    shutil.copytree(DOCUMENTS, tmp_path / "docs")
    (tmp_path / "older").mkdir()
    shutil.copy(tmp_path / "docs" / "gift-cards.md", tmp_path / "older" / "gift-cards-2019.md")
    golden = (DOCUMENTS.parent / "golden.jsonl").read_text("utf-8").splitlines()
    queries = [{"query_id": "gift", "query": "gift cards", "relevant": []}]
    queries += [json.loads(line) for line in golden[:N_QUERIES]]
    rf.from_queries(
        queries, [tmp_path / "docs", tmp_path / "older"], out=tmp_path / "my-set", quiet=True
    )
    return tmp_path


@pytest.mark.parametrize(
    ("name", "recipe"), [pytest.param(each.environment, each, id=each.file) for each in ALL]
)
def test_the_hits_of_a_recipe_stand_in_the_documents_that_it_names(python, folder, recipe):
    """A framework that says something else about its hits shows here first."""
    python(folder, str(RECIPES / f"{recipe.file}.py"))
    ds = rf.open(folder / "my-set")
    hits = {run: list(ds.rankings(run)) for run in (*recipe.scored, *recipe.ranked)}
    places = {chunk.chunk_id: [chunk.doc_id] for chunk in ds.chunks()}
    texts = {chunk.chunk_id: chunk.text for chunk in ds.chunks()}
    for text in Dataset(folder / "my-set").retrieved_texts():
        places[text.chunk_id] = [place.doc_id for place in text.places]
        texts[text.chunk_id] = text.text

    ids = {hit.chunk_id for rankings in hits.values() for each in rankings for hit in each.ranking}
    assert {len(rankings) for rankings in hits.values()} == {N_QUERIES + 1}
    assert [each for each in ids if not _is_placed(texts[each], places[each])] == []
    assert not any("older" in doc_id or "2019" in doc_id for each in ids for doc_id in places[each])
    assert all(_has_scores(hits[run]) for run in recipe.scored)
    assert [run for run in recipe.ranked if _has_scores(hits[run])] == []
    for system in recipe.systems:
        assert all(answer.answer and answer.chunk_ids for answer in ds.answers(system))


@pytest.mark.parametrize("name", ["langchain"])
def test_an_object_of_a_framework_is_named_on_the_command_line(python, folder):
    """Whoever works in a shell names the module and the object."""
    shutil.copytree(RECIPES, folder, dirs_exist_ok=True)
    words = ["retrieve", "--dataset", "my-set", "--retriever", "langchain_store:store"]
    python(folder, "-m", "ragforge", *words, "--name", "shell")

    assert _has_scores(list(rf.open(folder / "my-set").rankings("shell")))


def _is_placed(text, doc_ids):
    """Whether a text stands, letter by letter, in each of its documents, of which there is one."""
    return len(set(doc_ids)) == 1 and all(
        _letters(text) in _letters((DOCUMENTS / doc_id).read_text("utf-8")) for doc_id in doc_ids
    )


def _letters(text):
    return "".join(char for char in text if char.isalnum())


def _has_scores(rankings):
    """Whether scores are those of the retriever, and not 1/r."""
    return any(
        [hit.score for hit in ranking.ranking]
        != [1 / at for at in range(1, 1 + len(ranking.ranking))]
        for ranking in rankings
    )
