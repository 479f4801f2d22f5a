"""A set, the folder of its documents, and the command that refreshes it, night after night."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.generation.making import Done, generate, run

from ragforge.files.manifest import digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import open_dataset
from ragforge.files.shipped_folders import shipped
from ragforge.records import Query

POLICIES = shipped("datasets") / "helpcentre" / "documents" / "policies"
WIDE = ("--churn-most", "1", "--accepted-least", "0", "--vanished-most", "1")
"""Flags that let much change in a set as small as these."""
SIX = ("payment", "price-match", "privacy", "returns-2024", "shipping-2024", "warranty-2023")
"""Policies enough for a small set, of which no two contradict each other."""
CLUB = """# The Heron Club

The Heron Club meets on the first Tuesday of each month at noon.

## Fees

A membership of the Heron Club costs forty euros a year, payable in March.
"""
"""A document that no policy knows of."""
PLAIN = "fact=100"
"""A type whose queries have one quote each."""


@dataclass(frozen=True)
class Night:
    """One set and its documents.

    Args:
        folder: Has `docs` and `set`.
        flags: Of every refresh: the model and how much may change.
    """

    folder: Path
    flags: tuple[str, ...] = WIDE

    @property
    def docs(self) -> Path:
        """The documents."""
        return self.folder / "docs"

    @property
    def set(self) -> Path:
        """The set."""
        return self.folder / "set"

    @property
    def dataset(self) -> Dataset:
        """The version that is published."""
        return open_dataset(self.set)

    @property
    def queries(self) -> dict[str, Query]:
        """All queries of the published version, by id."""
        return {query.query_id: query for query in self.dataset.all_queries()}

    def words(self, *flags: str) -> list[str]:
        """Return the command."""
        named = ["--documents", str(self.docs)]
        return ["refresh", *named, "--dataset", str(self.set), *self.flags, *flags]

    def refresh(self, *flags: str) -> Done:
        """Run the command in this process."""
        return run(self.words("-q", *flags))

    def json(self, *flags: str) -> dict[str, Any]:
        """Run the command, which must print an object, and return that."""
        return self.refresh("--json", *flags).json

    def copy(self, folder: Path, *flags: str) -> "Night":
        """Return the same once more, with other flags where they are named."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return replace(self, folder=folder, flags=flags or self.flags)

    def about(self, name: str) -> Query:
        """Return the first query with one quote, which a document has."""
        return next(
            query
            for _, query in sorted(self.queries.items())
            if [item.doc_id for item in query.evidence] == [name]
        )

    def edit(self, name: str, change: Callable[[str], str]) -> None:
        """Change the text of a document, which must make it another one."""
        path = self.docs / name
        before = path.read_text(encoding="utf-8")
        after = change(before)
        assert before != after
        path.write_text(after, encoding="utf-8")

    def add_beside(self, name: str) -> str:
        """Add a sentence right behind the quote of a document's query, whose id is returned."""
        query = self.about(name)
        quote = query.evidence[0].quote
        self.edit(name, lambda text: text.replace(quote, f"{quote} So it has been for years."))
        return query.query_id

    def lose(self, name: str) -> str:
        """Take the quote of a document's query away, whose id is returned."""
        query = self.about(name)
        quote = query.evidence[0].quote
        self.edit(name, lambda text: text.replace(quote, "Nothing is said here any longer."))
        return query.query_id

    def add_document(self) -> None:
        """Add one on something else."""
        (self.docs / "club.md").write_text(CLUB, encoding="utf-8")

    def version(self, number: int) -> dict[str, str]:
        """Return the digests of all files of a version, by name."""
        folder = self.set / "versions" / f"{number:06}"
        return {
            path.relative_to(folder).as_posix(): digest_file(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    def version_files(self) -> dict[str, object]:
        """Return what `state` does, without versions that were stopped."""
        return {name: what for name, what in self.state().items() if "rejected/" not in name}

    def state(self) -> dict[str, object]:
        """Return what is in the set's directory: bytes and times of files, targets of links."""
        return {
            path.relative_to(self.set).as_posix(): (
                str(path.readlink())
                if path.is_symlink()
                else (digest_file(path), path.stat().st_mtime_ns)
            )
            for path in sorted(self.set.rglob("*"))
            if path.is_symlink() or (path.is_file() and ".ragforge" not in path.parts)
        }


def make_night(folder: Path, url: str, *names: str, n: int = 6) -> Night:
    """Generate a set of the help centre's policies, or of those that are named."""
    night = Night(folder, ("--model", "mock", "--base-url", url, *WIDE))
    night.docs.mkdir(parents=True)
    for path in sorted(POLICIES.glob("*.md")):
        if not names or path.stem in names:
            shutil.copy(path, night.docs)
    model = ("--model", "mock", "--base-url", url, "--types", PLAIN)
    done = generate(night.set, *model, n=n, documents=night.docs)
    assert done.code == 0, done.err
    return night
