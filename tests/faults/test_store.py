"""Rows 26-29 and 38: the place where replies are kept is full, closed, gone or damaged."""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest
from faults.harness import Product, endpoint, finish, rows

from ragforge.cli import main

AT_ONCE = 16
WIDE = ("--concurrency", str(AT_ONCE), "-q")


def small_files(size):
    """Return what limits the files of a process, which for SQLite is a disk that is full."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.fixture
def out_of_space(start, product):
    """A run whose store can grow to 300 kB, which is some dozens of replies."""
    run = product(start(latency="lognorm:40,0.4"), 160)
    return run, run.run(*WIDE, first=small_files(300_000))


def test_a_full_disk_stops_the_sends(out_of_space):
    """Row 26: replies that cannot be kept must not be bought (one commit is one reply here)."""
    run, _ = out_of_space

    assert 0 < run.bought < 160
    assert run.endpoint.count("requests") - run.bought <= AT_ONCE + 1


def test_a_full_disk_is_named(out_of_space):
    """Row 26: the user has to know which disk."""
    run, ended = out_of_space

    assert ended.code == 3
    assert str(run.store) in ended.err


def test_a_run_goes_on_when_there_is_space(out_of_space):
    """Row 26: at most the calls in flight were bought for nothing."""
    run, _ = out_of_space

    assert run.run(*WIDE).code == 0
    assert run.grades == run.expected
    assert run.endpoint.count("dup") <= AT_ONCE + 1


def test_an_output_that_does_not_fit_leaves_the_store_usable(start, product):
    """Row 26: the judgments are bought; only the file is missing."""
    run = product(start(), 60)
    run.run(*WIDE)
    old = run.out.read_bytes()

    ended = run.run(*WIDE, first=small_files(4000))

    assert ended.code == 3
    assert run.out.read_bytes() == old
    assert run.endpoint.count("dup") == 0


def without_overrides():
    """Make the modes of files count for root, too."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability)  # PR_CAPBSET_DROP


@pytest.fixture
def closed_folder(start, product):
    """A run whose output folder cannot be written."""
    run = product(start(), 20)
    run.out.parent.mkdir()
    run.out.parent.chmod(0o555)
    yield run
    run.out.parent.chmod(0o755)


def test_a_folder_that_cannot_be_written_is_told_before_any_call(closed_folder):
    """Row 27: a run that cannot keep what it buys must not buy."""
    ended = closed_folder.run(*WIDE, first=without_overrides)

    assert ended.code == 3
    assert "Permission denied" in ended.err or "unable to open" in ended.err
    assert str(closed_folder.out.parent) in ended.err
    assert closed_folder.endpoint.count("requests") == 0


def test_a_file_in_the_place_of_the_folder_is_told_before_any_call(start, product):
    """Row 27: the same, for everybody."""
    run = product(start(), 20)
    run.out.parent.mkdir()
    run.store.parent.write_text("not a folder")

    ended = run.main(*WIDE)

    assert ended.code == 3
    assert ended.took_s < 1
    assert run.endpoint.count("requests") == 0


def test_a_store_that_is_removed_stops_the_run(start, product):
    """Row 27: what goes into a file without a name is lost (less than a second later)."""
    run = product(start(latency="fixed:100"), 400)
    process = run.begin(*WIDE)
    run.endpoint.until_billed(100)
    shutil.rmtree(run.store.parent)
    at_s = run.endpoint.clock()

    ended = finish(process)

    assert ended.code == 3
    assert "removed or replaced" in ended.err
    assert [send for send in run.endpoint.sends if send > at_s + 0.2] == []


@pytest.fixture
def finished(start, product):
    """A finished run of 200 pairs, with its bytes."""
    run = product(start(), 200)
    run.main(*WIDE)
    return run, run.out.read_bytes()


@contextlib.contextmanager
def opened(path):
    """Open the store for writing."""
    with contextlib.closing(sqlite3.connect(path)) as store:
        yield store
        store.commit()


FLIPS = {
    "reply": "reply = replace(reply, 'grade', 'grads')",
    "one byte": "reply = 'X' || substr(reply, 2)",
    "checksum": "sha256 = substr(sha256, 2) || '0'",
    "binary": "reply = x'fffe00'",
    "key": "reply = (SELECT reply FROM calls AS other WHERE other.key < calls.key LIMIT 1)",
}


@pytest.mark.parametrize("flip", FLIPS.values(), ids=FLIPS.keys())
def test_damaged_rows_are_bought_again_and_no_others(finished, flip):
    """Row 28: damage must be seen, and must not cost what is whole (3 of 200 rows)."""
    run, whole = finished
    with opened(run.store) as store:
        keys = "SELECT key FROM calls ORDER BY key LIMIT 3 OFFSET 50"
        store.execute(f"UPDATE calls SET {flip} WHERE key IN ({keys})")
    run.out.unlink()

    assert run.main(*WIDE).code == 0
    assert run.out.read_bytes() == whole
    assert run.endpoint.count("dup") == 3


def test_damaged_rows_are_set_aside(finished):
    """Row 28: what happened to them can be found out."""
    run, _ = finished
    with opened(run.store) as store:
        store.execute(
            "UPDATE calls SET reply = 'gone' WHERE key IN (SELECT key FROM calls LIMIT 3)"
        )

    run.main(*WIDE)

    assert run.bought == 203


@pytest.fixture(scope="module")
def killed_once(tmp_path_factory):
    """A killed run of 200 pairs, with its journal beside the store, and the bytes of a calm one."""
    folder = tmp_path_factory.mktemp("killed")
    with endpoint(latency="fixed:20") as running:
        calm, run = Product(folder / "calm", running, 200), Product(folder / "run", running, 200)
        calm.main(*WIDE)
        running.reset()
        process = run.begin(*WIDE)
        running.until_billed(120)
        process.send_signal(signal.SIGKILL)
        finish(process)
        yield run, calm.out.read_bytes()


@pytest.fixture
def killed(killed_once, tmp_path):
    """A copy of the killed run, with the same endpoint."""
    run, whole = killed_once
    copy = Product(tmp_path, run.endpoint, run.n)
    shutil.copytree(run.out.parent, copy.out.parent)
    return copy, whole


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9], ids=["emptied", "cut", "torn"])
def test_a_torn_journal_costs_calls_but_never_correctness(killed, share):
    """Row 28: after a power cut the last pages may be missing."""
    run, whole = killed
    journal = run.store.with_name(run.store.name + "-wal")
    os.truncate(journal, int(share * journal.stat().st_size))

    assert run.main(*WIDE).code == 0
    assert run.out.read_bytes() == whole


def test_flipped_bytes_in_a_journal_cost_calls_but_never_correctness(killed):
    """Row 28: SQLite's checksums end the journal there."""
    run, whole = killed
    journal = run.store.with_name(run.store.name + "-wal")
    content = bytearray(journal.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 40] = bytes(40)
    journal.write_bytes(content)

    assert run.main(*WIDE).code == 0
    assert run.out.read_bytes() == whole


def test_an_empty_store_is_begun_anew(finished):
    """Row 28: a copy that was cut off at 0 bytes is no reason to stop."""
    run, whole = finished
    run.store.write_bytes(b"")

    assert run.main(*WIDE).code == 0
    assert run.out.read_bytes() == whole


@pytest.mark.parametrize("page", [2, 5, 20])
def test_a_damaged_page_costs_its_own_rows_only(finished, page):
    """Row 28: a bad sector is no reason to buy everything again."""
    run, whole = finished
    with opened(run.store) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with run.store.open("r+b") as raw:
        raw.seek((page - 1) * 4096)
        raw.write(os.urandom(4096))

    assert run.main(*WIDE).code == 0
    assert run.out.read_bytes() == whole
    assert run.endpoint.count("dup") <= 150


def test_a_torn_output_is_made_whole_without_a_call(finished):
    """Row 29: the output follows from the store."""
    run, whole = finished
    run.out.write_bytes(whole[: len(whole) // 2])

    assert run.main(*WIDE).code == 0
    assert run.out.read_bytes() == whole
    assert run.endpoint.count("dup") == 0


def test_torn_failures_are_told_before_any_call(start, product):
    """Row 29: what is to be asked again cannot be read."""
    run = product(start(p_schema=1.0), 20)
    run.main(*WIDE)
    run.failed.write_bytes(run.failed.read_bytes()[:-20])
    asked = run.endpoint.count("requests")

    ended = run.main(*WIDE, "--retry-failed")

    assert ended.code == 3
    assert f"{run.failed}:20" in ended.err
    assert run.endpoint.count("requests") == asked


def test_a_pair_that_comes_twice_is_told(start, product):
    """Row 29: which of two texts is the chunk's, nobody can tell."""
    run = product(start(), 5)
    run.pairs.write_text(run.pairs.read_text() + run.pairs.read_text())

    ended = run.main(*WIDE)

    assert ended.code == 3
    assert "comes twice" in ended.err


DOCUMENT = (
    "# {0}\n\nA {0} is a piece of furniture that the shop makes from oak. It is {0} no. {1}.\n"
)
NAMES = ("table", "chair", "bench", "shelf", "chest", "stool")


@pytest.fixture
def dataset(tmp_path):
    """A dataset of six queries with a run of five chunks each."""
    documents, folder = tmp_path / "docs", str(tmp_path / "set")
    documents.mkdir()
    for number, name in enumerate(NAMES):
        (documents / f"{name}.md").write_text(DOCUMENT.format(name, number))
    main(["generate", "--documents", str(documents), "-n", "6", "--out", folder, "-q"])
    main(["retrieve", "--dataset", folder, "--retriever", "bm25", "-k", "5", "-q"])
    return Path(folder)


def edited_prompts(tmp_path):
    """Return a folder with another version of the judge's prompt."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    [shipped] = Path(__file__).parents[2].glob("prompts/judge_relevance.toml")
    text = shipped.read_text(encoding="utf-8").replace("You are strict", "You are lenient")
    (folder / shipped.name).write_text(text, encoding="utf-8")
    return str(folder)


def judge(dataset, running, *flags):
    """Judge a dataset in this process."""
    model = ["--model", "mock", "--base-url", running.url, "--concurrency", "2", "-q"]
    return main(["judge", "--dataset", str(dataset), *model, *flags])


def judged_with(dataset, field):
    """Return the values of a field of the provenance of all judgments that the endpoint made."""
    found = rows(dataset / "judgments.jsonl")
    return {row["provenance"][field] for row in found if row["source"] == "judge"}


def test_two_prompts_are_not_mixed_in_one_set(start, dataset, tmp_path):
    """Row 38: a more lenient half is a difference between queries that is not there."""
    running = start()
    assert judge(dataset, running, "--max-calls", "8") == 5

    judge(dataset, running, "--prompts-dir", edited_prompts(tmp_path))

    assert len(judged_with(dataset, "prompt_sha256")) == 1


def test_two_models_are_not_mixed_in_one_set(start, dataset):
    """Row 38: likewise."""
    running = start()
    assert judge(dataset, running, "--max-calls", "8") == 5

    judge(dataset, running, "--model", "another")

    assert len(judged_with(dataset, "model")) == 1


def test_a_file_is_judged_with_one_prompt(start, product, tmp_path):
    """Row 38: a file is written whole, so a changed prompt judges all of it."""
    run = product(start(), 40)
    run.main(*WIDE, "--max-calls", "20")

    assert run.main(*WIDE, "--prompts-dir", edited_prompts(tmp_path)).code == 0

    assert len({row["provenance"]["prompt_sha256"] for row in run.judged}) == 1
    assert run.endpoint.count("billed") == 60


def test_a_prompt_that_is_edited_during_a_run_is_not_read_again(start, product, tmp_path):
    """Row 38: editors save while runs go on."""
    run = product(start(latency="fixed:50"), 80)
    folder = Path(edited_prompts(tmp_path))
    process = run.begin(*WIDE, "--prompts-dir", str(folder))
    run.endpoint.until_billed(20)
    [prompt] = folder.iterdir()
    prompt.write_text("not a prompt any more")

    assert finish(process).code == 0
    assert len({row["provenance"]["prompt_sha256"] for row in run.judged}) == 1
