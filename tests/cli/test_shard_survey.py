"""A corpus that is looked through in shards: the survey is that of one pass, byte by byte."""

import hashlib
import shutil
from pathlib import Path

import pytest

from ragforge.config import Settings
from ragforge.corpus.chunk_files import write_corpus
from ragforge.observe import silent
from ragforge.pipeline.shards.plan import ShardFolder
from ragforge.pipeline.surveying import open_survey

DOCUMENTS = Path(__file__).parents[2] / "datasets" / "helpcentre" / "documents"


@pytest.fixture
def chunks(tmp_path):
    """The chunks of the shipped corpus."""
    write_corpus([DOCUMENTS], Settings().chunk, silent, tmp_path / "chunks.jsonl")
    return tmp_path / "chunks.jsonl"


@pytest.fixture
def work(tmp_path):
    return tmp_path / "work"


@pytest.fixture
def planned(run, chunks, work):
    """Plan shards of fifty chunks."""

    def go(*how):
        size = ("--chunks-per-shard", "50")
        return run("shard", "plan", "--chunks", chunks, "--into", work, *size, "-q", *how)

    return go


def surveyed(place):
    """Return the survey among a set's own files."""
    [survey] = place.glob("survey-*")
    return survey


def same_survey(one, other):
    return digests(surveyed(one)) == digests(surveyed(other))


def digests(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("seed", [0, 7])
def test_the_survey_of_shards_is_that_of_one_pass(run, planned, chunks, work, tmp_path, seed):
    """Queries must not depend on how many machines looked through the corpus."""
    with open_survey(chunks, tmp_path / "alone", silent, seed=seed):
        pass

    assert planned("--seed", seed)[0] == 0
    assert run("shard", "run", work, "-q")[0] == 0
    assert run("shard", "merge", work, "--out", tmp_path / "set")[0] == 0

    assert len(ShardFolder(work).read_plan().shards) == 5
    assert digests(surveyed(tmp_path / "set" / ".ragforge")) == digests(
        surveyed(tmp_path / "alone")
    )


def test_generate_takes_the_survey_that_is_there(run, planned, chunks, work, tmp_path):
    """Else the corpus would be looked through once more, on one machine."""
    planned()
    run("shard", "run", work, "-q")
    run("shard", "merge", work, "--out", tmp_path / "set")
    survey = surveyed(tmp_path / "set" / ".ragforge")
    made = survey.stat().st_mtime_ns

    code, _, err = run("generate", "--chunks", chunks, "--out", tmp_path / "set", "-n", 3)

    assert (code, "survey:" in err, survey.stat().st_mtime_ns) == (0, False, made)


def test_a_shard_that_is_not_done_is_named(run, planned, work, tmp_path):
    """A survey of half a corpus would find half of the relevant chunks."""
    planned()
    run("shard", "run", work, "--index", 1, "-q")

    code, _, err = run("shard", "merge", work, "--out", tmp_path / "set")

    assert (code, "4 shards are not done: 0, 2, 3, 4" in err) == (5, True)


def test_chunks_of_another_dataset_are_refused(run, planned, chunks, work, tmp_path):
    """Its survey would never be found, or worse, be taken for one of its chunks."""
    planned()
    run("shard", "run", work, "-q")
    (tmp_path / "set").mkdir()
    lines = chunks.read_text().splitlines(keepends=True)
    (tmp_path / "set" / "chunks.jsonl").write_text("".join(lines[1:]))

    code, _, err = run("shard", "merge", work, "--out", tmp_path / "set")

    assert (code, "is not the file of chunks that was planned" in err) == (3, True)


@pytest.mark.parametrize("bounds", [(50, 100), (1, 2)], ids=["shards", "lines"])
def test_chunks_out_of_order_are_refused_when_they_are_planned(run, chunks, work, bounds):
    """All workers did their work, or each failed, and nothing could be merged."""
    lines = chunks.read_text().splitlines(keepends=True)
    begin, end = bounds
    chunks.write_text("".join([*lines[begin:end], *lines[:begin], *lines[end:]]))
    size = ("--chunks-per-shard", "50")

    code, _, err = run("shard", "plan", "--chunks", chunks, "--into", work, *size, "-q")

    assert (code, "as the file is sorted by id" in err) == (3, True)
    assert not (work / "plan.json").exists()


@pytest.mark.parametrize("name", ["postings/lengths", "cards/level", "sketches/estimators"])
def test_a_part_that_was_changed_is_refused(run, planned, work, tmp_path, name):
    """A copy that was cut gave another survey, and with it other queries."""
    planned()
    run("shard", "run", work, "-q")
    file = ShardFolder(work).survey_path(1) / "read" / name
    file.write_bytes(file.read_bytes()[:-8])

    code, _, err = run("shard", "merge", work, "--out", tmp_path / "set")

    assert (code, "is not as it was when the shard was done" in err) == (3, True)
    (work / "shards" / "00001" / "done.json").unlink()
    assert run("shard", "run", work, "-q")[0] == 0
    assert run("shard", "merge", work, "--out", tmp_path / "set")[0] == 0


def test_what_a_set_that_is_begun_with_a_survey_keeps_gets_into_no_repository(
    run, planned, work, tmp_path
):
    """Replies that were bought later were staged by `git add`."""
    planned()
    run("shard", "run", work, "-q")
    run("shard", "merge", work, "--out", tmp_path / "set")

    assert (tmp_path / "set" / ".ragforge" / ".gitignore").read_text().endswith("*\n")


def test_a_part_that_is_gone_is_told(run, planned, work, tmp_path):
    """Somebody may tidy up between the last shard and the merge."""
    planned()
    run("shard", "run", work, "-q")
    shutil.rmtree(ShardFolder(work).survey_path(2))

    code, _, err = run("shard", "merge", work, "--out", tmp_path / "set")

    assert (code, "Traceback" in err) == (3, False)
    assert "shards/00002/survey: is not as it was when the shard was done" in err


def test_a_plan_of_chunks_is_kept_for_the_same_chunks(planned, work):
    """A driver that is started again must not lose what is done."""
    planned()
    before = digests(work)

    assert planned()[0] == 0
    assert digests(work) == before
    assert planned("--seed", 3)[0] == 2


def test_status_says_how_many_chunks_are_read(run, planned, work):
    """Nobody is asked, so that no judge is named."""
    planned()
    run("shard", "run", work, "--index", 0, "-q")

    assert run("shard", "status", work)[1].splitlines() == [
        "shards  1 of 5 done, 0 in work, 4 left",
        "done    50 of 219 chunks",
    ]


def test_nothing_can_be_estimated_of_chunks(planned):
    """No model is asked."""
    code, _, err = planned("--dry-run")

    assert (code, "--dry-run: looking through --chunks asks no model" in err) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no chunk"),
        ("\n\n", "holds no chunk"),
        ('{"query_id":"q","query":"q","chunk_id":"c","text":"t"}\n', "1: doc_id: field required"),
        ("\xff\xfe", "chunks.jsonl"),
    ],
)
def test_what_holds_no_chunks_is_told_when_it_is_planned(run, work, tmp_path, text, said):
    """Workers of a cluster are no place to learn that the wrong file was named."""
    (tmp_path / "chunks.jsonl").write_bytes(text.encode("latin-1"))

    code, _, err = run("shard", "plan", "--chunks", tmp_path / "chunks.jsonl", "--into", work)

    assert (code, said in err, work.exists()) == (3, True, False)


def test_empty_lines_are_no_chunks(run, chunks, planned, work, tmp_path):
    """Files of others have them, and where a chunk begins is counted in bytes."""
    chunks.write_text(chunks.read_text().replace("\n", "\n\n"))
    with open_survey(chunks, tmp_path / "alone", silent):
        pass
    planned()
    assert run("shard", "run", work, "-q")[0] == 0
    assert run("shard", "merge", work, "--out", tmp_path / "set")[0] == 0

    assert ShardFolder(work).read_plan().size == 219
    assert digests(surveyed(tmp_path / "set" / ".ragforge")) == digests(
        surveyed(tmp_path / "alone")
    )
