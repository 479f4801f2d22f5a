"""Answers of systems, which a refresh leaves in the version that they were written for."""

import json

import pytest
from pipeline.generation.making import run
from refresh.changed_corpora import FIRST, folder_of

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset
from ragforge.records import Failure

LINE = (
    "answers: 2 of live stay in version 1 with their grades, as they were written from its "
    "documents; `ragforge answer --system …` asks the systems again"
)


@pytest.fixture
def refreshed(tmp_path, capsys):
    """A set whose answers were graded, after a night; and what the night said."""
    documents, out = folder_of(tmp_path / "documents", FIRST), tmp_path / "set"
    run(["generate", "--documents", str(documents), "-n", "4", "--out", str(out)])
    dataset = open_dataset(out)
    first, second, third, *_ = (query.query_id for query in dataset.queries())
    answers = tmp_path / "answers.jsonl"
    rows = [{"query_id": name, "answer": "In 30 days."} for name in (first, second)]
    answers.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    words = ["answer", "--dataset", str(out), "--answers", str(answers), "--name", "live", "-q"]
    assert main(words) == 0
    failed = [Failure(what="ask", key=f"live/{third}", kind="error", message="no reply")]
    dataset.replace_failures("ask", failed, lambda _: True)
    path = min(documents.glob("*.md"))
    path.write_text(path.read_text(encoding="utf-8") + "\nCall us on Mondays.\n", encoding="utf-8")
    capsys.readouterr()
    words = ["refresh", "--documents", str(documents), "--dataset", str(out), "--accept-churn"]
    assert main(words) == 0
    return open_dataset(out), capsys.readouterr().out


def test_a_night_says_whose_answers_stay_behind(refreshed):
    """Graded answers that are gone without a word are searched for."""
    dataset, said = refreshed

    assert LINE in said
    assert f"- {LINE}" in dataset.past.changelog()
    assert dataset.past.diff().answers_left == {"live": 2}


def test_answers_stay_whole_in_their_version(refreshed):
    """They and their grades were paid for."""
    dataset, _ = refreshed
    before = open_dataset(dataset.path / "versions" / "000001")

    assert (dataset.answer_names(), before.answer_names()) == ([], ["live"])
    assert len(before.answer_grades("live")) == 2


def test_what_failed_of_a_system_stays_behind_with_its_answers(refreshed):
    """Else it counts as a system of the new version, which failed at all that it was asked."""
    dataset, _ = refreshed

    assert [failure for failure in dataset.failures() if failure.what == "ask"] == []


def test_a_comparison_says_where_the_answers_are(refreshed, capsys):
    """Who compared them yesterday is not told that there never were any."""
    dataset, _ = refreshed

    assert main(["compare", "--dataset", str(dataset.path), "--answers"]) == 2
    assert (
        "has answers of no system, and version 1 those of live, which a refresh left there: "
        "`ragforge answer` grades" in capsys.readouterr().err
    )
