"""A refresh beside other commands that write into the set."""

import asyncio
import shutil

import pytest
from refresh.changed_corpora import FIRST, folder_of, make_set, settings_of

from ragforge.errors import ChangedMeanwhileError
from ragforge.files.set.opening import open_dataset
from ragforge.pipeline.job import Job
from ragforge.records import Hit, Ranking
from ragforge.refresh.refreshing import refresh_dataset


class Writer:
    """Writes a run into a set while a refresh looks through its corpus, so many times."""

    def __init__(self, path, times):
        self.path, self.left, self.notes = path, times, []

    def __call__(self, event):
        if event.name == "note":
            self.notes.append(event.message)
        if event.name == "stage.start" and event.stage == "retrieve" and self.left:
            self.left -= 1
            hit = Hit(chunk_id="c", score=1.0)
            ranking = Ranking(query_id=f"q{self.left}", ranking=(hit,))
            open_dataset(self.path).write_run("other", [ranking])


@pytest.fixture
def refresh(tmp_path):
    """Refresh a set whose corpus changed, beside a writer."""
    documents = folder_of(tmp_path / "docs", FIRST)
    made = make_set(tmp_path / "set", documents, settings_of(generate={"n": 6}))
    (documents / "club.md").write_text("# Club\n\nThe Heron Club meets on Tuesdays at noon.\n")
    settings = settings_of(
        generate={"n": 6, "complete": "on"},
        refresh={"documents": [str(documents)], "churn_most": 1.0},
        chunk={"max_chars": 600},
    )

    def run(times):
        writer = Writer(made.path, times)
        return asyncio.run(refresh_dataset(made.path, Job(settings, writer))), writer

    yield run
    shutil.rmtree(made.path)


def test_a_refresh_that_is_overtaken_starts_over(refresh):
    """Somebody who evaluates at night must not cost the night's version."""
    summary, writer = refresh(1)

    assert (summary.status, writer.left) == ("published", 0)
    assert any("starts over" in note for note in writer.notes)


def test_a_refresh_that_is_overtaken_again_and_again_gives_up(refresh):
    """Two programs that undo each other's work would go on for ever."""
    with pytest.raises(ChangedMeanwhileError, match="run it again"):
        refresh(9)
