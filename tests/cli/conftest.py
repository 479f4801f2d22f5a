"""A small dataset, made by the commands themselves."""

import json
from pathlib import Path

import pytest

from ragforge.cli import main

DOCUMENTS = {
    "returns.md": (
        "# Returns\n\nA restocking fee is a charge of ten percent for opened furniture.\n\n"
        "## Deadline\n\nUnopened goods go back within thirty days of delivery, free of charge.\n"
    ),
    "shipping.md": (
        "# Shipping\n\nA parcel locker is a public box that takes small deliveries at night.\n\n"
        "## Costs\n\nShipping costs five euros for orders below fifty euros, above it is free.\n"
    ),
    "care.txt": "Beeswax is a natural polish that keeps oak from drying out in heated rooms.\n",
}


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder of three documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def dataset(tmp_path: Path, documents: Path) -> Path:
    """A dataset of three offline queries with a bm25 run."""
    out = tmp_path / "set"
    assert (
        main(["generate", "--documents", str(documents), "-n", "3", "--out", str(out), "-q"]) == 0
    )
    assert main(["retrieve", "--dataset", str(out), "--retriever", "bm25", "-q"]) == 0
    return out


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A file of two pairs to judge."""
    rows = [
        {"query_id": "q1", "query": "What is beeswax?", "chunk_id": "a", "text": "Beeswax is wax."},
        {"query_id": "q1", "query": "What is beeswax?", "chunk_id": "b", "text": "Oak is a tree."},
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def run(capsys):
    """Run a command; return its exit code, stdout and stderr."""

    def go(*words):
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return go
