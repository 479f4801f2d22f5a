"""What the history says must be what was written, whatever happened to the file since."""

import json

import pytest
from evaluations import evaluation

from ragforge.errors import DataError
from ragforge.files.set import history as module
from ragforge.files.set.history import History, appending, read_history
from ragforge.records import MeasuredMean


def add(folder, *evaluations):
    with appending(folder) as ledger:
        return ledger.append(evaluations)


def test_without_a_file_the_history_is_empty(tmp_path):
    """A set that was never evaluated is no error."""
    assert read_history(tmp_path) == History()


def test_an_empty_file_is_an_empty_history(tmp_path):
    """A process that was killed before its first line leaves an empty file."""
    (tmp_path / "history.jsonl").touch()

    assert read_history(tmp_path) == History()


def test_what_was_added_is_read_in_the_order_of_the_file(tmp_path):
    """A clock that was set back must not turn the last evaluation into an earlier one."""
    first, second = evaluation(at="2026-03-02T00:00:00+00:00"), evaluation(at="2026-03-01T00:00:00")
    add(tmp_path, first)
    add(tmp_path, second)

    assert read_history(tmp_path) == History((first, second))


def test_a_torn_last_line_is_passed_over_and_named(tmp_path):
    """A process that was killed while it wrote must not cost the lines before."""
    kept = evaluation(0.5)
    add(tmp_path, kept, evaluation(0.6))
    path = tmp_path / "history.jsonl"
    path.write_bytes(path.read_bytes()[:-40])

    found = read_history(tmp_path)

    assert found.evaluations == (kept,)
    assert [note.partition("is not one")[0] for note in found.notes] == [
        f"{path}:2: the last line is torn: "
    ]


def test_a_line_after_a_torn_one_is_whole(tmp_path):
    """Without a line feed between them, the new line would be lost with the torn one."""
    old, new = evaluation(0.5), evaluation(0.7)
    add(tmp_path, old)
    with (tmp_path / "history.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"evaluation_id":"torn')

    was_torn = add(tmp_path, new)

    assert was_torn
    assert read_history(tmp_path).evaluations == (old, new)


def test_a_last_line_without_its_line_feed_counts(tmp_path):
    """Editors and copying drop the last line feed; the line still says what was measured."""
    added = evaluation()
    add(tmp_path, added)
    path = tmp_path / "history.jsonl"
    path.write_bytes(path.read_bytes().rstrip())

    assert read_history(tmp_path) == History((added,))


def test_a_line_changed_by_hand_is_left_out(tmp_path):
    """A mean that nobody measured must not make a trend."""
    add(tmp_path, evaluation(0.5))
    path = tmp_path / "history.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"mean":0.5', b'"mean":0.9'))

    found = read_history(tmp_path)

    assert found.evaluations == ()
    assert found.notes == (
        f"{path}:1: was changed by hand: its evaluation_id does not fit what it says; passed over",
    )


def test_a_line_that_was_only_laid_out_anew_counts(tmp_path):
    """A tool that formats JSON changes no value."""
    added = evaluation()
    add(tmp_path, added)
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps(json.loads(path.read_bytes())) + "\n", encoding="utf-8")

    assert read_history(tmp_path).evaluations == (added,)


def test_a_line_with_fewer_fields_than_a_record_has_now_counts(tmp_path):
    """A later version whose records have more fields must not take old lines for forged ones."""
    content = json.loads(evaluation().model_dump_json(exclude={"evaluation_id"}))
    del content["only_retrieved"], content["git_branch"]
    text = json.dumps(content, separators=(",", ":"))
    evaluation_id = module._id_of(text.encode())
    line = f'{{"evaluation_id":"{evaluation_id}",{text[1:]}\n'
    (tmp_path / "history.jsonl").write_text(line, encoding="utf-8")

    assert [item.evaluation_id for item in read_history(tmp_path).evaluations] == [evaluation_id]


def test_a_line_that_comes_twice_counts_once(tmp_path):
    """Merging two branches of a repository can repeat lines."""
    added = evaluation()
    add(tmp_path, added, added)

    assert read_history(tmp_path) == History((added,))


def test_a_binary_file_has_no_evaluations(tmp_path):
    """A file that was overwritten with something else is no crash."""
    (tmp_path / "history.jsonl").write_bytes(bytes(range(256)) * 100)

    found = read_history(tmp_path)

    assert found.evaluations == ()
    assert found.notes[-1] == f"{tmp_path / 'history.jsonl'}: 91 more lines are passed over"


def test_a_line_longer_than_any_evaluation_is_not_read(tmp_path, monkeypatch):
    """A line without an end must not fill the memory, nor hide what follows it."""
    monkeypatch.setattr(module, "LONGEST_LINE", 10_000)
    added = evaluation()
    (tmp_path / "history.jsonl").write_bytes(b"x" * 35_000 + b"\n")
    add(tmp_path, added)

    found = read_history(tmp_path)

    assert found.evaluations == (added,)
    assert len(found.notes) == 1


def test_a_history_that_is_a_folder_is_bad_data(tmp_path):
    """What cannot be read at all is not the same as nothing."""
    (tmp_path / "history.jsonl").mkdir()

    with pytest.raises(DataError, match=r"history\.jsonl: cannot be read"):
        read_history(tmp_path)


def test_a_line_whose_numbers_cannot_be_is_left_out(tmp_path):
    """An id that fits is soon computed; a mean outside of its interval is no mean."""
    forged = MeasuredMean(mean=0.9, low=0.1, high=0.2, n=50)
    add(tmp_path, evaluation(0.5), evaluation(measures={"RR": forged}))

    found = read_history(tmp_path)

    assert found.evaluations == (evaluation(0.5),)
    assert found.notes == (
        f"{tmp_path / 'history.jsonl'}:2: RR: mean 0.9 is not between 0.1 and 0.2; passed over",
    )


def test_a_mark_of_the_byte_order_does_not_cost_the_first_line(tmp_path):
    """Some editors put one before whatever they save."""
    first, second = evaluation(0.5), evaluation(0.6)
    add(tmp_path, first, second)
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    assert read_history(tmp_path) == History((first, second))
