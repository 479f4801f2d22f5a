"""`python -m ragforge` in a folder that holds files with the names of modules."""

import subprocess
import sys

import pytest
from measured_set import make_measured_set

from ragforge.cli import main

pytestmark = pytest.mark.slow


MODULE = ("-m", "ragforge")
SCRIPT = ("-P", "-c", "import sys; from ragforge.cli import main; sys.exit(main(sys.argv[1:]))")
"""What the installed script does: its own folder is first on the path, not the current one."""
SAFE = ("-P", "-m", "ragforge")

SHADOWED = ("argparse", "csv", "json", "numpy", "openai", "pydantic", "tomllib", "tqdm", "brotli")


@pytest.fixture
def folder(tmp_path):
    """A folder with a set and documents beside it."""
    documents = tmp_path / "docs"
    documents.mkdir()
    (documents / "a.md").write_text("# Wax\n\nBeeswax keeps oak from drying out.\n")
    place = tmp_path / "here"
    place.mkdir()
    make_measured_set(place / "set", 3)
    return place


def start(place, how, *words):
    """Start a process in a folder."""
    return subprocess.run(
        [sys.executable, *how, *words], cwd=place, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("how", [MODULE, SCRIPT, SAFE], ids=["module", "script", "safe"])
def test_no_file_of_the_working_directory_is_imported(folder, how):
    """Measuring in a folder that came from elsewhere must not run what is in it."""
    for name in SHADOWED:
        (folder / f"{name}.py").write_text(f"open('ran', 'a').write('{name} ')\n")

    done = start(folder, how, "retrieve", "--dataset", "set", "--retriever", "bm25", "-q")

    assert (done.returncode, done.stdout) == (0, "set/runs/bm25.jsonl\n")
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("how", [MODULE, SCRIPT, SAFE], ids=["module", "script", "safe"])
def test_a_named_module_of_the_working_directory_is_found(folder, how):
    """A user's own retriever lies where the user works, however ragforge is called."""
    (folder / "my_app").mkdir()
    (folder / "my_app" / "search.py").write_text("def retriever(query, k):\n    return []\n")

    words = ("--dataset", "set", "--retriever", "my_app.search:retriever", "--name", "mine", "-q")
    done = start(folder, how, "retrieve", *words)

    assert (done.returncode, done.stdout) == (0, "set/runs/mine.jsonl\n")


@pytest.mark.parametrize("how", [MODULE, SCRIPT, SAFE], ids=["module", "script", "safe"])
def test_a_name_is_no_plugin_because_a_folder_says_so(folder, how):
    """What pip lays out can be laid into any folder, and names code to run."""
    (folder / "evil.py").write_text("open('ran', 'w')\n")
    information = folder / "evil-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[ragforge.chunkers]\nneat = evil:chunk\n")
    (folder / "ragforge.toml").write_text('[chunk]\nchunker = "neat"\n')

    done = start(folder, how, "chunk", "../docs", "--out", "chunks.jsonl")

    assert done.returncode == 2
    assert "chunkers: no 'neat'" in done.stderr
    assert not (folder / "ran").exists()


def test_the_import_path_of_the_user_stays(folder, monkeypatch, tmp_path):
    """Who sets PYTHONPATH, be it to the current folder, wants what is there."""
    place = tmp_path / "more"
    place.mkdir()
    (place / "far.py").write_text("def retriever(query, k):\n    return []\n")
    before = [path for path in sys.path if path]
    monkeypatch.setenv("PYTHONPATH", ":".join([str(folder), str(place), *before]))

    words = ("--dataset", "set", "--retriever", "far:retriever", "-q")
    done = start(folder, MODULE, "retrieve", *words)

    assert (done.returncode, done.stdout) == (0, "set/runs/far-retriever.jsonl\n")


def test_a_caller_keeps_the_streams(capsys):
    """Both may be one stream, and are the caller's again afterwards."""
    out, err = sys.stdout, sys.stderr

    assert main(["help", "exit-codes"]) == 0

    assert (sys.stdout, sys.stderr) == (out, err)
    out.write("still there\n")
    assert capsys.readouterr().out.endswith("still there\n")
