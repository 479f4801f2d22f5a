"""The commands on a set that was refreshed, and on one of its versions."""

import json
import shutil

import pytest
from measured_set import make_measured_set

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.versions import publish, refresh_lock, roll_back, stage_version

READING = [
    ("validate",),
    ("evaluate",),
    ("history",),
    ("worst", "--run", "bad"),
    ("compare", "good", "bad"),
    ("report", "--out", "report.html"),
    ("review", "export", "--out", "review.csv", "--reviewer", "Ann"),
    ("gate", "--run", "bad", "--min", "RR=0.1", "--max-holes", "0.9"),
]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder `set` with the versions 1 and 2; both have the runs."""
    monkeypatch.chdir(tmp_path)
    flat = make_measured_set(tmp_path / "set", 30)
    runs = {name: flat.run(name) for name in flat.run_names()}
    with refresh_lock(flat.path), stage_version(flat, 2) as staged:
        staged.write_queries(q.model_copy(update={"revision": 2}) for q in flat.all_queries())
        made = publish(staged, flat.path)
    for name, rankings in runs.items():
        made.write_run(name, rankings)
    return flat.path


@pytest.mark.slow
@pytest.mark.parametrize("place", ["set", "set/current", "set/versions/000001"])
@pytest.mark.parametrize("words", READING, ids=lambda words: words[0])
@pytest.mark.usefixtures("home")
def test_a_command_reads_the_published_version_or_the_one_that_is_named(words, place, capsys):
    """Whoever used a set before its first refresh goes on as ever."""
    code = main([*words, "--dataset", place])

    assert (code, capsys.readouterr().err.count("error")) == (0, 0)


@pytest.mark.parametrize("place", ["set", "set/current", "set/versions/000001"])
def test_evaluations_of_what_was_published_are_in_one_history(home, place, capsys):
    """What changed from one to the next is what one wants to know."""
    roll_back(home, 1)
    main(["evaluate", "--dataset", "set/versions/000001"])
    roll_back(home, 2)
    main(["evaluate", "--dataset", "set/current"])
    capsys.readouterr()

    main(["history", "--dataset", place, "--json", "--run", "bad"])

    [told] = json.loads(capsys.readouterr().out)["datasets"]
    [run] = told["runs"]
    assert [item["version"] for item in run["evaluations"]] == [1, 2]
    assert not (home / "versions" / "000001" / "history.jsonl").exists()


@pytest.mark.parametrize("place", ["set/versions/000001", "set/rejected/000003", "look"])
def test_a_look_at_what_is_not_published_stays_out_of_the_history(home, place, capsys):
    """A gate would hold the published set against a night that nobody published."""
    shutil.copytree(home / "versions" / "000002", home / "rejected" / "000003")
    (home.parent / "look").symlink_to("set/rejected/000003")
    main(["evaluate", "--dataset", "set"])
    before = (home / "history.jsonl").read_bytes()
    shown = capsys.readouterr().out

    code = main(["evaluate", "--dataset", place])

    told = capsys.readouterr()
    assert (code, told.out.splitlines()[-3:]) == (0, shown.splitlines()[-3:])
    assert (
        f"warning: not kept in the history: {place} is not what set publishes"
        in told.err.replace(f"{home}", "set")
    )
    assert (home / "history.jsonl").read_bytes() == before
    assert sorted(path.name for path in home.rglob("history*")) == ["history", "history.jsonl"]


def test_what_commands_write_goes_to_the_published_version(home, capsys):
    """The version before stays what it was when it was measured."""
    before = (home / "versions" / "000001" / "judgments.jsonl").read_bytes()

    main(["retrieve", "--dataset", "set", "--retriever", "bm25", "-q"])
    main(["judge", "--dataset", "set", "--run", "bm25", "--model", "offline", "-q"])

    assert open_dataset(home).run_names() == ["bad", "bm25", "good"]
    assert (home / "runs" / "bm25.jsonl").is_file()
    assert (home / "versions" / "000001" / "judgments.jsonl").read_bytes() == before
    assert (home / "judgments.jsonl").is_symlink()
    assert main(["validate", "--dataset", "set"]) == 0
    assert "0 problems, 0 notes" in capsys.readouterr().out


def test_what_was_written_is_measured_after_a_rollback_too(home, capsys):
    """Going back takes the runs of that version with it."""
    main(["retrieve", "--dataset", "set", "--retriever", "bm25", "-q"])
    roll_back(home, 1)
    capsys.readouterr()

    code = main(["evaluate", "--dataset", "set", "--json"])

    assert code == 0
    assert sorted(json.loads(capsys.readouterr().out)["runs"]) == ["bad", "good"]


def graded_since(home):
    """Let a person grade a chunk of the published version."""
    dataset = open_dataset(home)
    first, *others = dataset.judgments()
    given = first.model_copy(update={"source": "human", "grade": 3 - first.grade})
    dataset.write_judgments([given, *others])


def test_a_rollback_says_how_much_of_people_stays_in_the_later_version(home, capsys):
    """Twenty grades and two decisions were gone without a word."""
    graded_since(home)

    code = main(["refresh", "--dataset", "set", "--rollback", "1"])

    said = "1 grade and 0 decisions of people are in version 2 alone, and do not count now"
    assert (code, said in capsys.readouterr().err) == (0, True)


def test_a_rollback_counts_for_programs_what_it_leaves(home, capsys):
    """A script decides whether somebody is asked first."""
    graded_since(home)
    main(["refresh", "--dataset", "set", "--rollback", "1", "--json"])

    told = json.loads(capsys.readouterr().out)

    assert (told["grades_left_behind"], told["decisions_left_behind"]) == (1, 0)


def test_a_version_that_cannot_be_read_is_rolled_back_from(home, capsys):
    """That is what going back is for."""
    (home / "versions" / "000002" / "judgments.jsonl").write_text("{", encoding="utf-8")

    code = main(["refresh", "--dataset", "set", "--rollback", "1"])

    assert (code, "cannot be read" in capsys.readouterr().err) == (0, True)
    assert open_dataset(home).manifest.version == 1


@pytest.mark.parametrize("extra", [(), ("--dry-run",)])
def test_generating_into_a_refreshed_set_points_to_the_refresh(home, extra, capsys):
    """A set that is refreshed is not made of one corpus any more."""
    (home.parent / "doc.md").write_text("# Wax\n\nBeeswax is put on tables.", "utf-8")

    code = main(["generate", "--documents", "doc.md", "--out", "set", "--model", "offline", *extra])

    assert code == 2
    assert "`ragforge refresh --dataset set --at-least N` adds" in capsys.readouterr().err
    assert open_dataset(home).manifest.version == 2
