"""Small corpora on disk, and sets made of them, for tests that change the corpus."""

from pathlib import Path

from ragforge.config import ChunkSettings
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.generation.source import ChunkSource, take_corpus

SETTINGS = ChunkSettings(max_chars=400)


def section(name, number):
    """Return a section that is a chunk of its own."""
    words = " ".join(f"{name}{number}word{at}" for at in range(30))
    return f"## Part {number} of {name}\n\nIt says {words}.\n"


def page(name, n=3):
    """Return a Markdown document of n chunks."""
    parts = "\n".join(section(name, number) for number in range(n))
    return f"# The {name} page\n\n{parts}"


def write_pages(folder, names, n=3):
    """Write pages into a folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.md").write_text(page(name, n), encoding="utf-8")
    return folder


def set_of(out, documents, settings=SETTINGS, chunk_file=None) -> Dataset:
    """Return a set without queries that is made of documents or of ready-made chunks."""
    source = ChunkSource([documents] if documents else [], chunk_file, settings, silent)
    with source.prepared(Path(out) / ".ragforge") as prepared:
        dataset = create_dataset(out, {"chunks": prepared.digest})
        take_corpus(dataset, prepared)
    return dataset
