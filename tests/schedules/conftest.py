import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset
from ragforge.files.shipped_folders import shipped

GATE = "--max-failures 0.5 --allow-baseline-judge --allow-few --allow-holes"
"""Rules that a small set of the offline baseline can hold to."""
SETTINGS = """
[refresh]
dataset = "sets/help"
documents = ["docs"]
churn_most = 1.0
holes_most = 1.0
"""
NEW_DOCUMENT = """# Repair evenings

On the first Thursday of each month the workshop in Alder Street is open from 18:00 to 21:00.
Volunteers mend toasters, lamps and bicycles together with their owners. Bring the thing, its power
supply, and fifteen minutes of patience; spare parts cost what they cost the shop.
"""


@dataclass(frozen=True)
class Night:
    """A directory with documents, settings and a set, as a schedule finds it."""

    place: Path
    bin: Path
    """A folder in which `ragforge` is found, and nothing else."""

    @property
    def program(self) -> str:
        """The command by its path."""
        return str(self.bin / "ragforge")

    @property
    def environment(self) -> dict[str, str]:
        """A bare one, in which `ragforge` is found."""
        return {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.place)}

    def end_refreshes_with(self, *codes: int) -> Path:
        """Have refreshes end with these codes, one after the other; later ones run in earnest.

        Nothing sleeps; returned is the file that gets the lengths of the pauses.
        """
        left, pauses = self.bin.parent / "codes", self.bin.parent / "pauses"
        left.write_text("".join(f"{code}\n" for code in codes), encoding="utf-8")
        command = self.bin / "ragforge"
        stop = f'[ "$1" != refresh ] || [ ! -s {left} ] || {{ '
        stop += f"code=$(head -n 1 {left}); sed -i 1d {left}; exit $code; }}\nexec"
        script = command.read_text(encoding="utf-8")
        command.write_text(script.replace("exec", stop), encoding="utf-8")
        (self.bin / "sleep").write_text(f'#!/bin/sh\necho "$1" >>{pauses}\n', encoding="utf-8")
        (self.bin / "sleep").chmod(0o755)
        return pauses

    def found(self) -> dict[str, object]:
        """Return what a night leaves: version, runs of it, and whether there is a report."""
        dataset = open_dataset(self.place / "sets" / "help")
        return {
            "version": dataset.manifest.version,
            "runs": list(dataset.run_names()),
            "report": (self.place / "report.html").is_file(),
        }


@pytest.fixture(scope="session")
def first_day(tmp_path_factory):
    """A set of the offline baseline with its documents; not to be changed."""
    place = tmp_path_factory.mktemp("schedules")
    documents = place / "docs"
    shutil.copytree(shipped("datasets") / "helpcentre" / "documents", documents)
    (place / "nightly.toml").write_text(SETTINGS, encoding="utf-8")
    words = ["--documents", str(documents), "-n", "4", "--out", str(place / "sets" / "help"), "-q"]
    assert main(["generate", *words]) == 0
    return place


@pytest.fixture
def night(first_day, tmp_path):
    """The same on the evening of a day on which a document was added."""
    place = tmp_path / "srv"
    shutil.copytree(first_day, place, symlinks=True)
    (place / "docs" / "repair-evenings.md").write_text(NEW_DOCUMENT, encoding="utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    command = programs / "ragforge"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m ragforge "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return Night(place, programs)


@pytest.fixture
def scheduled(night, capsys, monkeypatch):
    """Return a schedule as the command prints it for this directory."""
    monkeypatch.chdir(night.place)

    def printed(name, *words):
        capsys.readouterr()
        assert main(["schedule", name, "--program", night.program, "--gate", GATE, *words]) == 0
        return capsys.readouterr().out

    return printed


@pytest.fixture(autouse=True)
def outside_of_github(monkeypatch):
    """Tests run in CI services too; their variables and settings must not be used."""
    for name in [name for name in os.environ if name.startswith(("GITHUB_", "RAGFORGE_"))]:
        monkeypatch.delenv(name)
