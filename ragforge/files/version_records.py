"""What a version of a set tells of those before it: what changed and why, and what was before."""

from collections.abc import Iterable
from dataclasses import dataclass

from ragforge.files.merging import change_key, id_and_revision, pair_of
from ragforge.files.set_files import SetFiles
from ragforge.files.text import read_text
from ragforge.records import DormantGrade, ItemChange, MovedChunk, Query, VersionDiff


@dataclass(frozen=True, slots=True)
class VersionRecords:
    """The records of a version that a refresh made; there are none of any other.

    Args:
        files: Of the version.
    """

    files: SetFiles

    def revisions(self) -> list[Query]:
        """Return what queries were before they were revised, by id and revision; [] for none."""
        return self.files.records("revisions.jsonl", Query, id_and_revision)

    def write_revisions(self, revisions: Iterable[Query]) -> None:
        """Write all earlier revisions."""
        self.files.write("revisions.jsonl", revisions, id_and_revision)

    def events(self) -> list[ItemChange]:
        """Return what refreshes did to queries, by version, query and action; [] for none."""
        return self.files.records("events.jsonl", ItemChange, change_key)

    def write_events(self, changes: Iterable[ItemChange]) -> None:
        """Write all that refreshes did so far."""
        self.files.write("events.jsonl", changes, change_key)

    def diff(self) -> VersionDiff | None:
        """Return what this version changed; None where it is the first."""
        return self.files.object("diff.json", VersionDiff)

    def write_diff(self, diff: VersionDiff) -> None:
        """Write what this version changed."""
        self.files.write_object("diff.json", diff)

    def changelog(self) -> str:
        """Return what all versions changed, for people; "" where there is nothing."""
        path = self.files.folder / "CHANGELOG.md"
        return read_text(path) if path.exists() else ""

    def write_changelog(self, text: str) -> None:
        """Write what all versions changed, for people."""
        self.files.write_text("CHANGELOG.md", text)

    def moved_chunks(self) -> dict[str, tuple[str, ...]]:
        """Return the ids of now of chunks that earlier versions called otherwise."""
        rows = self.files.records("moved_chunks.jsonl", MovedChunk, lambda moved: moved.before)
        return {moved.before: moved.now for moved in rows}

    def write_moved_chunks(self, moved: Iterable[MovedChunk]) -> None:
        """Write under which ids chunks of earlier versions are found now."""
        self.files.write("moved_chunks.jsonl", moved, lambda item: item.before)

    def dormant_grades(self) -> list[DormantGrade]:
        """Return what people gave to chunks that are gone, by query and chunk; [] for none."""
        return self.files.records("dormant_grades.jsonl", DormantGrade, pair_of)

    def write_dormant_grades(self, grades: Iterable[DormantGrade]) -> None:
        """Write what people gave to chunks that are gone."""
        self.files.write("dormant_grades.jsonl", grades, pair_of)
