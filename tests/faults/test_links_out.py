"""Received datasets whose files are links: nothing outside of them is read or written."""

import os
import shutil
from pathlib import Path

import pytest
from versioned_sets import make_set, refreshed

from ragforge.cli import main
from ragforge.files.set.output_paths import _LINES
from ragforge.files.set.paths import FOLDERS

SECRET = "the-secret-of-the-house"
MORE = (
    *(f"{name}.jsonl" for name in (*_LINES, "dormant_grades", "moved_chunks")),
    *("diff.json", "generation.json", "judge_audit.json", "calibration.json", "baseline.json"),
    *("CHANGELOG.md", "README.md", "runs/other.jsonl", "answers/a.jsonl", "answer_grades/a.jsonl"),
    *("history/0123456789abcdef.jsonl.gz", ".ragforge/calls.sqlite", ".ragforge/calls.sqlite-wal"),
    *(".ragforge/calls.sqlite-shm", ".ragforge/calls.sqlite.check", ".ragforge/refresh.lock"),
    *(".ragforge/survey-0/cards", ".ragforge/sources/x"),
)
"""What a set may have beside the files of a small one."""
COMMANDS = {
    "evaluate": "evaluate --dataset {set}",
    "compare": "compare --dataset {set} bm25 bm25",
    "retrieve": "retrieve --dataset {set} --retriever bm25",
    "judge": "judge --dataset {set} --run bm25",
    "answer": "answer --dataset {set} --answers {golden}",
    "ground": "ground --dataset {set} --system-name a --out {out}",
    "gate": "gate --dataset {set} --min nDCG@10=0",
    "history": "history --dataset {set}",
    "report": "report --dataset {set} --out {out}",
    "worst": "worst --dataset {set}",
    "review": "review export --out {out} --dataset {set}",
    "validate": "validate --dataset {set}",
    "accept": "validate --dataset {set} --accept",
    "diff": "diff {set} {set}",
    "refresh": "refresh --dataset {set} --documents {documents}",
    "rollback": "refresh --dataset {set} --rollback 1",
    "generate": "generate --documents {documents} --out {set}",
    "import": "import {golden} --dataset {set}",
    "cache": "cache stats --dataset {set}",
}


@pytest.fixture
def world(tmp_path):
    """A folder with a set, documents, and a file of the user's that is none of them."""
    make_set(tmp_path / "set")
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.md").write_text("# Oil\n\nThe engine needs oil of grade 4.\n")
    (tmp_path / "golden.jsonl").write_text('{"query": "Which oil?", "relevant": ["c00"]}\n')
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text(f'{{"name": "{SECRET}"}}\n')
    return tmp_path


def places(folder):
    """Return all that a full set keeps, by name: files, and the folders that they are in."""
    there = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    within = {Path(name).parent.as_posix() for name in MORE} - {"."}
    return sorted({*there, *MORE, *within, *FOLDERS})


def replaced(folder, name, target):
    """Copy a set with a link in the place of one of its files."""
    copy = folder.with_name("received")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, symlinks=True)
    path = copy / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    return copy


def outcomes(command, world, names, capsys):
    """Return what a command came to for each place that leads out, but for what is right."""
    wrong = []
    before = (world / "mine" / "file").read_bytes()
    for name in names:
        leads_to = world / "mine" / ("" if "." not in name.rpartition("/")[2] else "file")
        received = replaced(world / "set", name, leads_to)
        words = {"documents": world / "documents", "golden": world / "golden.jsonl"}
        words |= {"set": received, "out": world / "out.html"}
        code = main([word.format(**words) for word in COMMANDS[command].split()])
        said = "".join(capsys.readouterr())
        outside = (world / "mine" / "file").read_bytes(), len(list((world / "mine").iterdir()))
        made = (world / "out.html").exists() or SECRET in said
        is_told = "which is outside of" in said or "expected a link to a version" in said
        if (code, outside, made, is_told) != (3, (before, 1), False, True):
            wrong.append((name, code, said[-200:]))
    return wrong


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_follows_a_link_out_of_a_set(world, command, capsys):
    """A received set could overwrite any file of its reader's, or show it to others."""
    assert outcomes(command, world, places(world / "set"), capsys) == []


@pytest.mark.parametrize("command", ["evaluate", "retrieve", "refresh", "validate"])
def test_no_command_follows_a_link_out_of_a_set_with_versions(world, command, capsys):
    """There the files are reached through links of its own."""
    refreshed(world / "set", "b")
    there = [path.relative_to(world / "set") for path in (world / "set").rglob("*")]

    assert outcomes(command, world, sorted(map(str, there)), capsys) == []


@pytest.mark.parametrize("name", ["queries.jsonl", "runs/bm25.jsonl", ".ragforge/refresh.lock"])
def test_no_command_waits_for_a_pipe(world, name, capsys):
    """Opening it would hang for ever."""
    (world / "set" / ".ragforge").mkdir(exist_ok=True)
    (world / "set" / name).unlink(missing_ok=True)
    os.mkfifo(world / "set" / name)

    assert main(["evaluate", "--dataset", str(world / "set")]) == 3
    assert "got a pipe, a socket or a device; remove it" in capsys.readouterr().err


def test_a_set_behind_a_link_is_fine(world):
    """That is how somebody on this machine keeps it on a larger disk."""
    (world / "link").symlink_to(world / "set")

    assert main(["evaluate", "--dataset", str(world / "link")]) == 0
    assert (world / "set" / "history.jsonl").is_file()


def test_a_link_that_is_none_of_the_sets_is_left_alone(world):
    """People keep a way to the documents beside the set."""
    (world / "set" / "documents").symlink_to(world / "documents")

    assert main(["evaluate", "--dataset", str(world / "set")]) == 0


def test_a_link_that_the_manifest_makes_the_sets_is_not(world, capsys):
    """Else a refresh would publish what it leads to."""
    manifest = world / "set" / "manifest.json"
    (world / "set" / "extra").symlink_to(world / "mine")
    listed = manifest.read_text().replace('"queries.jsonl"', '"e\\u0078tra/file"')
    manifest.write_text(listed)

    assert main(["evaluate", "--dataset", str(world / "set")]) == 3
    assert "extra: leads to" in capsys.readouterr().err


def test_links_inside_of_a_set_lead_no_further(world, capsys):
    """A link to a folder that is nobody's could have links of its own."""
    (world / "set" / "stuff").mkdir()
    (world / "set" / "stuff" / "a.jsonl").symlink_to(world / "mine" / "file")
    (world / "set" / "answers").symlink_to("stuff")

    assert main(["evaluate", "--dataset", str(world / "set")]) == 3
    assert "answers/a.jsonl: leads to" in capsys.readouterr().err


def test_names_of_links_and_of_their_ends_are_shown_escaped(world, capsys):
    """A name may hold what a terminal obeys."""
    (world / "set" / "runs" / "a\x1b[2J.jsonl").symlink_to(world / "mi\x1b[1mne")

    assert main(["evaluate", "--dataset", str(world / "set")]) == 3
    assert "\x1b" not in capsys.readouterr().err


def test_nothing_is_added_to_a_history_that_has_other_names(world, capsys):
    """A hard link may be any file of the user's, and lines are added in place."""
    (world / "set" / "history.jsonl").hardlink_to(world / "mine" / "file")
    before = (world / "mine" / "file").read_bytes()

    assert main(["evaluate", "--dataset", str(world / "set")]) == 0
    assert "is a file with 2 names (hard links)" in capsys.readouterr().err
    assert (world / "mine" / "file").read_bytes() == before


@pytest.mark.parametrize("name", ["set", "set/history.jsonl"])
def test_a_circle_of_links_is_no_bug(world, name, capsys):
    """Whoever unpacks a damaged archive gets such links."""
    shutil.rmtree(world / name, ignore_errors=True)
    (world / name).symlink_to(world / name)

    assert main(["evaluate", "--dataset", str(world / "set")]) == 3
    assert "Too many levels of symbolic links" in capsys.readouterr().err
