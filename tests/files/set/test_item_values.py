"""Values per item are those of their evaluation, or are refused."""

import gzip

import pytest
from evaluations import baseline

from ragforge.errors import DataError
from ragforge.files.set.baseline import (
    KEPT,
    drop_old_values,
    drop_stray_values,
    values_of,
    write_values,
)
from ragforge.files.set.history import appending, read_history


def add(folder, *evaluations):
    with appending(folder) as ledger:
        ledger.append(evaluations)


def test_values_come_back_with_their_evaluation(tmp_path):
    """Later runs are held against them item by item."""
    kept = baseline([0.5, 1.0, 0.25])
    write_values(tmp_path, kept)
    add(tmp_path, kept.evaluation)

    assert values_of(tmp_path, kept.evaluation.evaluation_id) == kept


def test_values_of_an_unknown_evaluation_are_none(tmp_path):
    """An id out of another history names nothing here."""
    assert values_of(tmp_path, "0123456789abcdef") is None


def test_the_same_values_make_the_same_bytes(tmp_path):
    """A file with the time in it would differ for nothing."""
    kept = baseline([0.5, 1.0])
    write_values(tmp_path / "a", kept)
    write_values(tmp_path / "b", kept)

    name = f"history/{kept.evaluation.evaluation_id}.jsonl.gz"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_values_with_another_mean_than_the_evaluation_are_refused(tmp_path):
    """Differences from values of something else would be believed."""
    kept = baseline([0.5, 1.0])
    other = kept.model_copy(update={"items": kept.items[:1]})
    write_values(tmp_path, other)
    add(tmp_path, kept.evaluation)

    with pytest.raises(DataError, match=r"RR: expected values with a mean of 0\.75, got 0\.5"):
        values_of(tmp_path, kept.evaluation.evaluation_id)


@pytest.mark.parametrize("cut", [5, 30])
def test_damaged_values_are_bad_data(tmp_path, cut):
    """A copy that stopped half-way must not pass for the whole."""
    kept = baseline([0.5, 1.0])
    write_values(tmp_path, kept)
    add(tmp_path, kept.evaluation)
    path = tmp_path / "history" / f"{kept.evaluation.evaluation_id}.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-cut])

    with pytest.raises(DataError, match=r"jsonl\.gz: is damaged"):
        values_of(tmp_path, kept.evaluation.evaluation_id)


def test_old_values_are_dropped_and_their_lines_stay(tmp_path):
    """Values of every night would outgrow the set."""
    made = [baseline([0.5, index / 100], version=index) for index in range(1, KEPT + 3)]
    for item in made:
        write_values(tmp_path, item)
    add(tmp_path, *(item.evaluation for item in made))

    drop_old_values(tmp_path, read_history(tmp_path))

    assert len(read_history(tmp_path).evaluations) == KEPT + 2
    assert len(list((tmp_path / "history").iterdir())) == KEPT
    assert values_of(tmp_path, made[1].evaluation.evaluation_id) is None


def test_nights_without_a_change_push_out_no_values(tmp_path):
    """After a month without a change the state before is what the next change is held against."""
    before = baseline([0.5, 0.25])
    nights = [baseline([0.5, 1.0], at=f"night {index}") for index in range(KEPT + 5)]
    for item in (before, *nights):
        write_values(tmp_path, item)
    add(tmp_path, *(item.evaluation for item in (before, *nights)))

    drop_old_values(tmp_path, read_history(tmp_path))

    assert values_of(tmp_path, before.evaluation.evaluation_id) == before
    assert len(list((tmp_path / "history").iterdir())) == 2


def test_the_newest_of_equal_evaluations_has_the_values_of_all(tmp_path):
    """What found the same need not be kept twice."""
    first, second = baseline([0.5, 1.0], at="one"), baseline([0.5, 1.0], at="two")
    write_values(tmp_path, second)
    add(tmp_path, first.evaluation, second.evaluation)

    assert values_of(tmp_path, first.evaluation.evaluation_id) == first


def test_values_without_rankings_are_of_another_version(tmp_path):
    """They could not be scored on the grades of today."""
    kept = baseline([0.5, 1.0])
    write_values(tmp_path, kept)
    add(tmp_path, kept.evaluation)
    path = tmp_path / "history" / f"{kept.evaluation.evaluation_id}.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"query_id":"q0","item":"i","values":{"RR":0.5}}\n'))

    with pytest.raises(DataError, match=r"grades: field required.*another version of ragforge"):
        values_of(tmp_path, kept.evaluation.evaluation_id)


def test_values_whose_line_was_never_written_go(tmp_path):
    """Nights on which an evaluation is killed must not fill the disk."""
    kept, lost = baseline([0.5, 1.0]), baseline([0.25, 1.0])
    write_values(tmp_path, kept)
    write_values(tmp_path, lost)
    add(tmp_path, kept.evaluation)

    drop_stray_values(tmp_path)

    names = [path.name for path in (tmp_path / "history").iterdir()]
    assert names == [f"{kept.evaluation.evaluation_id}.jsonl.gz"]


def test_values_of_a_line_that_was_changed_by_hand_stay(tmp_path):
    """Whoever takes the change back wants them."""
    kept = baseline([0.5, 1.0])
    write_values(tmp_path, kept)
    add(tmp_path, kept.evaluation)
    path = tmp_path / "history.jsonl"
    path.write_text(path.read_text().replace('"n_queries":2', '"n_queries":3'))

    drop_stray_values(tmp_path)

    assert read_history(tmp_path).evaluations == ()
    assert len([*(tmp_path / "history").iterdir()]) == 1
