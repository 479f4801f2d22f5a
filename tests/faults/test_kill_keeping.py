"""Evaluating and going back a version, killed at moments of their work and run again."""

import json
import shutil
import signal

import pytest
from faults.commands import Commands, kill_at_each_step, kill_often
from faults.publishing import reader_of
from ranked_sets import ranked_set
from versioned_sets import everything, make_set, mixture, refreshed, tag_of

from ragforge.files.set.baseline import values_in
from ragforge.files.set.history import read_history
from ragforge.files.set.opening import open_dataset
from ragforge.records import Chunk

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")

RUNS = {"near": [1, 2, 1, 3] * 40, "far": [3, 1, 4, 2] * 40}
TIMELY = {"evaluation_id", "at", "timing", "bridge_to", "bridge"}
"""What differs between two evaluations of the same."""
WITH_TIMES = ("history", "manifest.json", "runs/bm25")
"""The manifest has the digest of a run, which has the latency of each query."""
BM25 = "runs/bm25.jsonl"
EVALUATE = ("--retriever", "bm25", "--run", "near", "--run", "far", "-m", "nDCG@3", "-m", "RR")


@pytest.fixture(scope="module")
def commands():
    """A process whose children run commands."""
    made = Commands()
    yield made
    made.end()


def history_of(path):
    """Return the lines of a history without times, the values of each, and what was passed over."""
    history = read_history(path)
    lines = [json.loads(line.model_dump_json(exclude=TIMELY)) for line in history.evaluations]
    values = [values_in(path, history, line) for line in history.evaluations]
    return lines, [found and found.items for found in values], history.notes


def other_files(path):
    """Return the digests of files without times, how many have some, and the run that was made."""
    found = everything(path)
    timeless = {name: digest for name, digest in found.items() if not name.startswith(WITH_TIMES)}
    made = [ranking.ranking for ranking in open_dataset(path).run("bm25")] if BM25 in found else []
    return timeless, len(found) - len(timeless), made


@pytest.fixture(scope="module", params=[kill_often, kill_at_each_step])
def evaluated(request, commands, tmp_path_factory):
    """What is there after evaluations that were killed, of a set that was evaluated before."""
    folder = tmp_path_factory.mktemp("evaluating")
    told, before, path = folder / "told.txt", folder / "before" / "set", folder / "now" / "set"
    made = ranked_set(before, RUNS)
    ids = ["right", "wrong0", "wrong1", "wrong2"]
    made.write_chunks(Chunk(chunk_id=id_, doc_id="d", text=f"What {id_} is.") for id_ in ids)
    assert commands.run(["evaluate", "--dataset", str(before), *EVALUATE[2:]], told) == 0

    def prepare():
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(before, path)
        return ["evaluate", "--dataset", str(path), *EVALUATE]

    return request.param(commands, told, prepare, lambda: (history_of(path), other_files(path)))


def lines_of(states):
    """Return the lines of each history."""
    return [lines for (lines, _, _), _ in states]


def test_a_killed_evaluation_leaves_the_history_whole(evaluated):
    """Its lines are all there or none is, and those of earlier nights are."""
    [(calm, _, _), _] = evaluated.calm
    torn = [notes for (_, _, notes), _ in evaluated.after if notes]

    assert len(evaluated.after) >= 20
    assert [lines for lines in lines_of(evaluated.after) if lines not in (calm[:2], calm)] == []
    assert torn == []


def test_evaluating_after_a_kill_keeps_what_a_calm_run_keeps(evaluated):
    """Or the same once more, where the kill came behind the writing: lines tell what was run."""
    [(calm, _, _), _] = evaluated.calm
    ends = lines_of(evaluated.ended)

    assert evaluated.last == [0] * len(evaluated.last)
    assert [lines for lines in ends if lines not in (calm, calm + calm[2:])] == []


def test_each_evaluation_after_a_kill_has_its_values(evaluated):
    """A line without them is nothing that tomorrow can be compared with."""
    values = [values for (_, values, _), _ in evaluated.ended]

    assert [lines for lines in values if None in lines] == []


def test_killed_evaluations_leave_no_other_file_than_a_calm_one(evaluated):
    """A bad week must not fill the disk, nor a run tell what the machine went through."""
    [_, calm] = evaluated.calm

    assert [files for _, files in evaluated.ended if files != calm] == []


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """A set of three versions."""
    path = tmp_path_factory.mktemp("versions") / "set"
    make_set(path)
    for tag in ("b", "c"):
        refreshed(path, tag)
    return path


@pytest.fixture(scope="module", params=[kill_often, kill_at_each_step])
def rolled_back(request, commands, versions, tmp_path_factory):
    """What is there after going back was killed, and what a process saw that read all the time."""
    folder = tmp_path_factory.mktemp("rolling")
    told, path = folder / "told.txt", folder / "set"
    shutil.copytree(versions, path, symlinks=True)
    words = ["refresh", "--dataset", str(path), "--rollback"]
    reader = reader_of(path)

    def prepare():
        assert commands.run([*words, "3"], told) == 0
        return [*words, "1"]

    def look():
        return tag_of(open_dataset(path)), mixture(path), everything(path)

    made = request.param(commands, told, prepare, look)
    reader.end()
    return made, reader


def test_a_killed_rollback_leaves_one_version_whole(rolled_back):
    """Half a version would be measured as if it were one."""
    made, _ = rolled_back
    seen = [(tag, mixed) for tag, mixed, _ in made.after]

    assert len(seen) >= 10
    assert [state for state in seen if state not in [("a", []), ("c", [])]] == []


def test_readers_see_whole_versions_while_rollbacks_are_killed(rolled_back):
    """Whoever measures meanwhile must measure one of them."""
    _, reader = rolled_back

    assert (reader.mixtures, reader.errors) == ([], [])
    assert reader.looks > 20


def test_the_rollback_after_a_kill_ends_with_the_files_of_a_calm_one(rolled_back):
    """What is published must not tell what the machine went through, and no stray may stay."""
    made, _ = rolled_back

    assert made.last == [0] * len(made.last)
    assert [files for files in made.ended if files != made.calm] == []
