"""A refresh publishes another version while a command is at work."""

import pytest
from two_judges import OLD, judge, make_set, rank

from ragforge.api import answered
from ragforge.cli import main
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.versions import next_version, publish, refresh_lock, stage_version
from ragforge.mock import Script, serving
from ragforge.pipeline import retrieving
from ragforge.pipeline.complete import completing
from ragforge.pipeline.judge import judging

pytestmark = pytest.mark.slow


def published(path):
    """Publish another version of a set, as a refresh does."""
    with refresh_lock(path):
        parent = open_dataset(path)
        with stage_version(parent, next_version(path)) as staged:
            staged.past.write_changelog("another one\n")
            publish(staged, path)


@pytest.fixture(params=["never refreshed", "refreshed"])
def dataset(request, tmp_path):
    made = make_set(tmp_path / "set")
    if request.param == "refreshed":
        published(made.path)
        rank(open_dataset(made.path), OLD)
    return open_dataset(made.path)


def overtaken(monkeypatch, module, name, path):
    """Publish another version before a function does its work."""
    work = getattr(module, name)

    async def late(*arguments, **options):
        published(path)
        return await work(*arguments, **options)

    monkeypatch.setattr(module, name, late)


@pytest.mark.parametrize(
    ("module", "name", "more", "file"),
    [
        (judging, "judge_dataset", (), "judgments.jsonl"),
        (completing, "complete_whole", ("--complete",), "pool.jsonl"),
    ],
    ids=["runs", "pools"],
)
def test_a_judge_tells_that_another_version_was_published_meanwhile(
    dataset, monkeypatch, capsys, module, name, more, file
):
    """Its path named the new version, which has none of the grades that were paid for."""
    number = max(dataset.manifest.version, 1)
    overtaken(monkeypatch, module, name, dataset.path)

    with serving(Script()) as endpoint:
        assert judge(dataset, endpoint, "lenient", *more) == 0
    said = capsys.readouterr()

    where = dataset.path / "versions" / f"{number:06}"
    told = f"version {number + 1} of {dataset.path} was published meanwhile, and the judgments are"
    assert f"{told} in the one before: {where}; run it again" in said.err
    assert said.out.splitlines()[-1] == str(where / file)
    assert (where / "judgments.jsonl").stat().st_size > 0
    assert "next:" not in said.err


@pytest.mark.parametrize(
    ("words", "module", "name", "file"),
    [
        ("retrieve --retriever bm25 --name late", retrieving, "make_runs", "runs/late.jsonl"),
        ("answer --answers told.jsonl", answered, "grade", "answer_grades/told.jsonl"),
        (
            "answer --system late_system:tell --name late --answers-only",
            answered,
            "ask_and_grade",
            "answers/late.jsonl",
        ),
    ],
    ids=["retrieve", "answer", "answers only"],
)
def test_runs_and_answers_of_the_version_before_are_told_where_they_are(
    dataset, tmp_path, monkeypatch, capsys, words, module, name, file
):
    """What comes next would not find them in the new version."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "late_system.py").write_text(
        "def tell(question):\n    return {'answer': 'It is 2.'}\n"
    )
    (tmp_path / "told.jsonl").write_text('{"query_id": "q00", "answer": "It is 2."}\n')
    number = max(dataset.manifest.version, 1)
    overtaken(monkeypatch, module, name, dataset.path)
    command, *rest = words.split()

    assert main([command, "--dataset", str(dataset.path), *rest, "-q"]) == 0
    said = capsys.readouterr()

    where = dataset.path / "versions" / f"{number:06}"
    assert f"version {number + 1} of {dataset.path} was published meanwhile" in said.err
    assert said.out.splitlines()[-1] == str(where / file)
    assert (where / file).stat().st_size > 0
    assert "next:" not in said.err


def test_nothing_is_told_of_a_version_that_was_named(dataset, capsys):
    """Whoever judges an earlier version knows where its grades are."""
    published(dataset.path)
    published(dataset.path)
    named = open_dataset(dataset.path / "versions" / "000001")
    rank(named, OLD)

    with serving(Script()) as endpoint:
        assert judge(named, endpoint, "lenient") == 0

    assert "published meanwhile" not in capsys.readouterr().err
