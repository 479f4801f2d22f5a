import asyncio
import json

import pytest

from ragforge.config import ChunkSettings, Settings
from ragforge.files.set.dataset import Dataset
from ragforge.files.shipped_folders import shipped
from ragforge.observe import silent
from ragforge.pipeline.cards import renew_card
from ragforge.pipeline.generation.generating import generate_dataset
from ragforge.pipeline.generation.source import ChunkSource
from ragforge.pipeline.intake.importing import import_queries
from ragforge.pipeline.intake.reviewing import review_dataset
from ragforge.pipeline.job import Job

DOCUMENTS = shipped("datasets") / "helpcentre" / "documents"


@pytest.fixture
def made(tmp_path):
    """A set of the shipped sample, drawn by rule."""
    settings = Settings.model_validate({"generate": {"n": 10}})
    source = ChunkSource([DOCUMENTS], None, ChunkSettings(), silent)
    asyncio.run(generate_dataset(tmp_path / "set", source, Job(settings, silent)))
    return Dataset(tmp_path / "set")


def card(dataset):
    return (dataset.path / "README.md").read_text(encoding="utf-8")


def test_review_renews_the_card(made, tmp_path):
    """A rejected query is no part of the set that the card describes."""
    first, second, *_ = made.queries()
    rows = [
        {"query_id": name, "revision": 1, "decision": decision, "random": "random"}
        for name, decision in ((first.query_id, "reject"), (second.query_id, "approve"))
    ]
    (tmp_path / "review.json").write_text(json.dumps(rows))

    review_dataset(made, tmp_path / "review.json", "Ann")

    assert "9 queries over" in card(made)
    assert "drawn at random: 1 of 2 right as they were" in card(made)


@pytest.mark.slow
def test_import_renews_the_card(made, tmp_path):
    """What people brought counts, too."""
    quote = made.queries()[0].evidence[0]
    row = {"query": "Own?", "doc_id": quote.doc_id, "quote": quote.quote}
    (tmp_path / "own.json").write_text(json.dumps([row]))

    import_queries(tmp_path / "own.json", made, silent)

    assert "11 queries (1 by people, 10 generated) over" in card(made)


@pytest.mark.slow
def test_card_that_a_person_edited_is_left_alone(made):
    """Nobody writes a description twice."""
    (made.path / "README.md").write_text("# Mine\n")

    assert not renew_card(made)
    assert card(made) == "# Mine\n"


@pytest.mark.slow
def test_set_that_was_not_generated_has_no_card(tmp_path, made):
    """There is no funnel to tell of."""
    (made.path / "generation.json").unlink()

    assert not renew_card(made)
