import json

import pytest

from ragforge.cli import main


def judge(pairs, out, endpoint, *more):
    words = ["judge", "--pairs", str(pairs), "--out", str(out), "--model", "test-model", "-q"]
    return main([*words, "--base-url", endpoint.url, *more])


def test_events_go_to_a_file_without_texts(tmp_path, pairs, serve):
    """A nightly run is looked into afterwards, by people who may not see the corpus."""
    events = tmp_path / "events.jsonl"

    assert judge(pairs, tmp_path / "out.jsonl", serve(), "--observer", f"events={events}") == 0

    rows = [json.loads(line) for line in events.read_text().splitlines()]
    calls = [row for row in rows if row["name"] == "call"]
    assert len(calls) == 2
    assert {call["labels"]["model"] for call in calls} == {"test-model"}
    assert not any("content" in row for row in rows)


def test_grades_are_told_as_they_come(tmp_path, pairs, serve):
    """A dashboard shows what a judge gives while it judges."""
    events = tmp_path / "events.jsonl"
    judge(pairs, tmp_path / "out.jsonl", serve(), "--observer", f"events={events}")

    rows = [json.loads(line) for line in events.read_text().splitlines()]
    judged = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    told = {
        (row["labels"]["chunk_id"], row["numbers"]["grade"])
        for row in rows
        if row["name"] == "grade"
    }
    assert told == {(row["chunk_id"], row["grade"]) for row in judged}


def test_an_observer_of_the_users_own_is_told(tmp_path, pairs, serve, monkeypatch):
    """Extension points take `module:attribute` everywhere."""
    (tmp_path / "mine.py").write_text("seen = []\ndef observer(event):\n    seen.append(event)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    assert judge(pairs, tmp_path / "out.jsonl", serve(), "--observer", "mine:observer") == 0

    import mine

    assert {"call", "unit", "stage.end"} <= {event.name for event in mine.seen}


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("otell", 2, "did you mean otel?"),
        ("json:__name__", 2, "expected something that takes events"),
        ("events=gone/there/e.jsonl", 3, "gone/there/e.jsonl"),
    ],
)
def test_an_observer_that_is_not_there_is_named_before_any_call(
    tmp_path, pairs, serve, capsys, monkeypatch, name, code, said
):
    """A run that nobody watches as planned must not cost anything."""
    monkeypatch.chdir(tmp_path)
    endpoint = serve()

    assert judge(pairs, tmp_path / "out.jsonl", endpoint, "--observer", name) == code
    assert said in capsys.readouterr().err
    assert endpoint.seen == []
