import hashlib
import json
import re

import pytest

from ragforge.errors import DataError
from ragforge.files.set.baseline import parse_baseline, read_baseline, write_baseline
from ragforge.records import (
    Baseline,
    Digests,
    Evaluation,
    ItemValues,
    MeasuredMean,
    Spending,
    Timing,
)


def evaluation(**changed):
    fields = {
        "evaluation_id": "0" * 16,
        "at": "2026-01-02T03:04:05+00:00",
        "dataset": "set",
        "version": 3,
        "run": "bm25",
        "rel_threshold": 2,
        "n_queries": 2,
        "n_failed": 0,
        "n_retrieved": 20,
        "n_holes": 0,
        "measures": {"RR": MeasuredMean(mean=0.75, low=0.5, high=1.0, n=2)},
        "graders": (),
        "digests": Digests(corpus="a", queries="b", judgments="c", rankings="d", prompts="e"),
        "spent": Spending(calls=0, prompt_tokens=0, completion_tokens=0, cost_usd=None),
        "timing": Timing(n=2, median_s=0.1, p95_s=0.2, p99_s=0.2),
        "tool_version": "1",
        "git_commit": "f" * 40,
        "git_branch": "feature",
    }
    return Evaluation.model_validate(fields | changed)


def item(query_id, value):
    return ItemValues(
        query_id=query_id,
        item="i",
        grades="g",
        values={"RR": value},
        ranking=("c1", "c2"),
        n_retrieved=9,
    )


ITEMS = (item("q2", 1.0), item("q1", 0.5))


@pytest.fixture
def path(tmp_path):
    """A baseline, written."""
    path = tmp_path / "baseline.json"
    write_baseline(path, Baseline(evaluation=evaluation(), items=ITEMS))
    return path


def test_values_come_back_sorted_by_query(path):
    """What a later run is held against must be what was measured."""
    assert read_baseline(path).items == (ITEMS[1], ITEMS[0])


def test_measures_come_back(path):
    """Means and intervals are shown beside those of the run."""
    assert read_baseline(path).evaluation.measures == evaluation().measures


def test_same_values_give_the_same_bytes_at_another_time_and_place(path, tmp_path):
    """A baseline made anew without any change must leave nothing to commit."""
    other = evaluation(
        at="2027-01-01T00:00:00+00:00", git_commit="", git_branch="main", timing=None
    )
    write_baseline(tmp_path / "b.json", Baseline(evaluation=other, items=ITEMS[::-1]))

    assert (tmp_path / "b.json").read_bytes() == path.read_bytes()


def test_an_item_is_a_line(path):
    """Git then shows which queries moved."""
    line = (
        '{"grades": "g", "item": "i", "n_retrieved": 9, "query_id": "q1", '
        '"ranking": ["c1", "c2"], "values": {"RR": 0.5}},'
    )

    assert line in path.read_text("utf-8").splitlines()


def test_a_header_says_what_the_file_is(path):
    """Who finds it in a repository is to know whose it is."""
    assert path.read_text("utf-8").startswith('{\n"format": "ragforge baseline",\n"schema": 2,\n')


def test_characters_beyond_ascii_come_back(tmp_path):
    """Query ids are any text."""
    odd = item("q\u202eé\n", 1.0)
    write_baseline(tmp_path / "b.json", Baseline(evaluation=evaluation(), items=(odd,)))

    assert read_baseline(tmp_path / "b.json").items == (odd,)


def test_a_torn_file_is_refused(path):
    """Half of the items would be another baseline."""
    path.write_text(path.read_text("utf-8")[:-40], "utf-8")

    with pytest.raises(DataError, match=r"baseline\.json: is not one complete JSON .*anew"):
        read_baseline(path)


def test_marks_of_a_conflict_are_named(path):
    """That is how a baseline in git breaks most often."""
    path.write_text("<<<<<<< HEAD\n" + path.read_text("utf-8"), "utf-8")

    with pytest.raises(DataError, match="holds conflict marks of git"):
        read_baseline(path)


def test_a_value_edited_by_hand_is_refused(path):
    """A lower baseline lets any run pass."""
    path.write_text(path.read_text("utf-8").replace('"RR": 0.5}', '"RR": 0.1}'), "utf-8")

    with pytest.raises(DataError, match="edited or merged by hand"):
        read_baseline(path)


def test_a_line_lost_in_a_merge_is_refused(path):
    """Git merges such files line by line, without a conflict."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"query_id": "q1"' not in line), "utf-8")

    with pytest.raises(DataError, match="edited or merged by hand"):
        read_baseline(path)


@pytest.mark.parametrize(
    "text", ["[]", "3", '{"nDCG@10": 0.7}', '{"format": "promptfoo"}', '{"format": null}']
)
def test_a_file_of_another_tool_is_refused(text):
    """Its numbers mean something else."""
    with pytest.raises(DataError, match=r"^f: is no baseline: expected"):
        parse_baseline(text, "f")


def test_another_schema_is_refused(path):
    """Without rankings, or with other ones, it cannot be held against."""
    text = path.read_text("utf-8").replace('"schema": 2', '"schema": 1')

    with pytest.raises(DataError, match=r"^f: schema: expected 2, got 1.*--write-baseline"):
        parse_baseline(text, "f")


def test_nesting_without_end_is_refused():
    """A hostile file must not end in a traceback."""
    with pytest.raises(DataError, match="is not one complete JSON"):
        parse_baseline("[" * 100_000, "f")


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_refused(path, value):
    """A file that was changed by a script is no bug of ragforge."""
    text = re.sub(r'"RR": [\d.]+', f'"RR": {value}', path.read_text("utf-8"))

    with pytest.raises(DataError, match=r"^f: expected finite numbers, found one that is not"):
        parse_baseline(text, "f")


def test_a_query_that_comes_twice_is_refused(tmp_path):
    """One of the two would be lost without a word."""
    twice = Baseline(evaluation=evaluation(), items=(ITEMS[0], ITEMS[0]))
    write_baseline(tmp_path / "b.json", twice)

    with pytest.raises(DataError, match="items: 'q2' comes twice"):
        read_baseline(tmp_path / "b.json")


def test_a_record_of_another_shape_is_refused(path):
    """A digest says that nobody edited it, not that it fits."""
    found = json.loads(path.read_text("utf-8"))
    del found["evaluation"]["run"]
    content = {name: found[name] for name in ("evaluation", "items")}
    found["sha256"] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    with pytest.raises(DataError, match=r"^f: evaluation\.run: field required"):
        parse_baseline(json.dumps(found), "f")


def test_a_missing_file_is_named(tmp_path):
    """The message must name the path that was tried."""
    with pytest.raises(DataError, match=r"none\.json: cannot be read: No such file"):
        read_baseline(tmp_path / "none.json")
