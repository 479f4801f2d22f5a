import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def corpus():
    """The benchmark, which is a script and in no package."""
    path = Path(__file__).parents[2] / "benchmarks" / "corpus.py"
    if not path.exists():
        pytest.skip("benchmarks are not shipped")
    spec = importlib.util.spec_from_file_location("corpus", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_made_corpus_has_as_many_sections_as_were_asked_for(corpus):
    """Figures are given by chunks, of which each section makes one."""
    found = list(corpus.texts(45))

    assert [text.count("\n## ") for text in found] == [20, 20, 5]
    assert found == list(corpus.texts(45))


@pytest.mark.skipif(sys.platform == "win32", reason="measures with `resource`")
def test_every_step_runs_and_the_survey_knows_every_chunk(corpus, tmp_path, capsys):
    """A benchmark that stopped working would be found out only when it is needed."""
    rows = {name: corpus.measured(step, tmp_path, 60) for name, step in corpus.STEPS.items()}

    assert rows["chunk"]["note"].startswith("60 chunks")
    assert rows["open again"]["note"] == "60 chunks, 3 documents"
    assert rows["20 queries of each kind"]["note"].count("own chunk found") == 3
