import pytest

from ragforge.errors import DataError
from ragforge.files import record_files
from ragforge.files.record_files import ExternalSorter, read_object, read_records, write_object
from ragforge.files.set.opening import create_dataset
from ragforge.records import Hit, JudgeAudit, Provenance

AUDIT = JudgeAudit(
    judge=Provenance(kind="baseline", model="rule"),
    temperature=None,
    seed=0,
    n_pairs=1,
    n_queries=1,
    grades=(1, 0, 0, 0),
    n_plain=1,
    n_plain_failed=0,
    attacks=(),
)


def test_an_audit_is_read_as_it_was_written(tmp_path):
    """A gate reads it in another process, perhaps in another year."""
    path = tmp_path / "audit.json"

    write_object(path, AUDIT)

    assert read_object(path, JudgeAudit) == AUDIT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "audit.json: is not one complete JSON object"),
        ("{}", "audit.json: judge: field required"),
        (AUDIT.model_dump_json().replace("[1,0,0,0]", "[1]"), "audit.json: grades: "),
        (AUDIT.model_dump_json().replace('"seed"', '"sed"'), "audit.json: seed: field required"),
    ],
)
def test_what_is_no_audit_is_refused(tmp_path, text, message):
    """A file that was edited into something else must not pass a gate."""
    path = tmp_path / "audit.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(DataError, match=message):
        read_object(path, JudgeAudit)


def test_a_dataset_keeps_one_audit_with_its_digest(tmp_path):
    """It is published with the grades it speaks of."""
    dataset = create_dataset(tmp_path / "set", {})

    assert dataset.audit() is None
    dataset.write_audit(AUDIT)
    assert dataset.audit() == AUDIT
    assert dataset.manifest.files["judge_audit.json"].records == 1
    assert not dataset.changed_by_hand("judge_audit.json")


def names(opened):
    return [Hit.model_validate_json(line).chunk_id for line in opened.lines()]


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """A sorter that holds three records in memory and eight parts on disk."""
    monkeypatch.setattr(record_files, "_PART_RECORDS", 3)
    monkeypatch.setattr(record_files, "_MOST_PARTS", 8)
    with ExternalSorter(lambda hit: (hit.chunk_id,), tmp_path) as made:
        yield made


@pytest.mark.parametrize("n", [0, 1, 3, 4, 100])
def test_records_come_back_sorted_however_many_there_are(opened, n):
    """Files are sorted by id, whatever came first and whatever memory holds."""
    ids = [f"c{(37 * number) % 101:03}" for number in range(n)]
    for chunk_id in ids:
        opened.add(Hit(chunk_id=chunk_id, score=1.0))

    assert names(opened) == sorted(ids)
    assert opened.count == n


def test_a_record_is_written_anew_once_for_each_size_of_parts(opened, monkeypatch):
    """Merging all there is again and again made ten million records take hours."""
    written, put = [], ExternalSorter._part

    def counting(self, rows):
        return put(self, (written.append(1) or row for row in rows))

    monkeypatch.setattr(ExternalSorter, "_part", counting)
    n = 3 * 8 * 8 * 3
    ids = [f"c{(37 * number) % 577:03}" for number in range(n)]
    for chunk_id in ids:
        opened.add(Hit(chunk_id=chunk_id, score=1.0))

    assert names(opened) == sorted(ids)
    assert len(written) == 3 * n


def test_records_can_be_read_again_and_more_be_added(opened):
    """The file is written first and summed up afterwards."""
    for chunk_id in "dbca":
        opened.add(Hit(chunk_id=chunk_id, score=1.0))

    first = names(opened)
    opened.add(Hit(chunk_id="aa", score=1.0))

    assert first == ["a", "b", "c", "d"]
    assert names(opened) == ["a", "aa", "b", "c", "d"]


@pytest.mark.parametrize("chunk_id", ["a\tb", "a\nb", "文", "\x85\u2028"])
def test_any_id_survives_the_disk(opened, tmp_path, chunk_id):
    """Ids are the user's; a tab in one must not tear a line."""
    for known in (chunk_id, "x", "y", "z"):
        opened.add(Hit(chunk_id=known, score=1.0))

    opened.write(tmp_path / "out.jsonl")

    found = {hit.chunk_id for hit in read_records(tmp_path / "out.jsonl", Hit)}
    assert found == {chunk_id, "x", "y", "z"}


def test_nothing_is_left_in_the_folder(opened, tmp_path):
    """A killed run must not leave gigabytes behind."""
    for number in range(10):
        opened.add(Hit(chunk_id=str(number), score=1.0))

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_no_files_is_named(tmp_path, monkeypatch):
    """A full disk is the user's to mend."""
    monkeypatch.setattr(record_files, "_PART_RECORDS", 1)
    with (
        ExternalSorter(lambda hit: (hit.chunk_id,), tmp_path / "gone") as made,
        pytest.raises(DataError, match="gone"),
    ):
        made.add(Hit(chunk_id="a", score=1.0))


def hits(path, *chunk_ids):
    """Write hits by id, and return the file."""
    path.write_text("".join(f'{{"chunk_id":"{name}","score":1}}\n' for name in chunk_ids), "utf-8")
    return path


@pytest.mark.parametrize(
    ("chunk_ids", "message"),
    [
        (("a", "b", "b"), "hits.jsonl:3: b comes twice, first in line 2"),
        (("b", "a", "c", "b"), "hits.jsonl:4: b comes twice, first in line 1"),
        (("c", "a", "d", "a"), "hits.jsonl:4: a comes twice, first in line 2"),
    ],
)
def test_a_key_that_comes_twice_is_found_in_any_order(tmp_path, chunk_ids, message):
    """Keys of a sorted file are not held; those of any other have to be."""
    path = hits(tmp_path / "hits.jsonl", *chunk_ids)

    with pytest.raises(DataError, match=message):
        list(read_records(path, Hit, key=lambda hit: hit.chunk_id))


def test_records_in_any_order_are_read_once_each(tmp_path):
    """The file is read anew for the keys before the first that is out of order."""
    path = hits(tmp_path / "hits.jsonl", "b", "c", "a", "d")

    found = read_records(path, Hit, key=lambda hit: hit.chunk_id)

    assert [hit.chunk_id for hit in found] == ["b", "c", "a", "d"]
