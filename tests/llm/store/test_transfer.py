import gzip
import json
import sqlite3
from contextlib import closing

import pytest

from ragforge.errors import DataError
from ragforge.llm.chat import ChatReply, Usage
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.sqlite_file import row_sha256
from ragforge.llm.store.transfer import ExportCounts, SkippedLine, export_lines, import_file

COLUMNS = [
    "key",
    "endpoint",
    "model",
    "reply",
    "sha256",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "bought_at",
]


@pytest.fixture
def lines(path, fill):
    """The lines of a store of five replies."""
    fill(path, 5)
    return list(export_lines(path, ExportCounts()))


@pytest.fixture
def bring(tmp_path):
    """Import lines into another store."""

    def run(lines, name="rows.jsonl"):
        source = tmp_path / name
        source.write_bytes("".join(lines).encode())
        return import_file(source, tmp_path / "new" / "calls.sqlite")

    return run


def rows_of(path):
    with closing(CallStore(path)) as store:
        return list(store.rows())


def changed(line, **fields):
    return json.dumps({**json.loads(line), **fields}) + "\n"


def resealed(line, **fields):
    """Return a line with a changed reply whose digest fits."""
    row = json.loads(line)
    reply = json.dumps({**row["reply"], **fields})
    return changed(line, reply=json.loads(reply), sha256=row_sha256(row["key"], reply))


def test_a_row_is_one_object_with_all_columns(lines):
    """Other programs read it, too."""
    row = json.loads(lines[0])

    assert list(row) == COLUMNS
    assert row["reply"]["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "estimated": False,
    }


def test_rows_are_sorted_by_key(lines):
    """The same replies make the same file."""
    assert lines == sorted(lines)


def test_what_is_exported_and_imported_is_the_same(lines, path, bring, tmp_path):
    """Not a byte of a reply may change on the way."""
    told = bring(lines)

    assert (told.rows, told.new, told.faults) == (5, 5, [])
    assert rows_of(tmp_path / "new" / "calls.sqlite") == rows_of(path)


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "\x1b[31m", "文 🎉", "\u2028", ""])
def test_any_text_survives_the_way(store, path, key, bring, tmp_path, text):
    """Models say everything, and a line must stay one line."""
    store.put(key(1), "e", "m", ChatReply(text, latency_s=0.1 + 0.2), None)

    told = bring(list(export_lines(path, ExportCounts())))

    assert (told.new, told.faults) == (1, [])
    with closing(CallStore(tmp_path / "new" / "calls.sqlite")) as new:
        assert new.get(key(1)) == store.get(key(1))


def test_what_is_set_aside_or_damaged_is_left_out(store, path, fill, key):
    """Somebody else must not get what is no use here."""
    fill(path, 5)
    store.forget([key(1)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE calls SET reply = reply || ' ' WHERE key = ?", (key(2),))

    told = ExportCounts()
    keys = {json.loads(line)["key"] for line in export_lines(path, told)}

    assert keys == {key(0), key(3), key(4)}
    assert (told.rows, told.left_out, told.salvaged) == (3, 2, False)


def test_a_damaged_store_is_exported_as_far_as_it_can_be_read(path, fill):
    """Also one that was set aside long ago."""
    fill(path, 300)
    content = path.read_bytes()
    path.write_bytes(b"\xee" * 4096 + content[4096:])

    told = ExportCounts()
    lines = list(export_lines(path, told))

    assert told.salvaged
    assert len(lines) == told.rows >= 299
    assert lines == sorted(lines)


def test_a_file_that_is_no_store_is_not_exported(tmp_path):
    """It is named instead of giving an empty file."""
    (tmp_path / "x").write_bytes(b"")

    with pytest.raises(DataError, match="x: cannot be read as a call store"):
        list(export_lines(tmp_path / "x", ExportCounts()))


@pytest.mark.parametrize(
    "endpoint",
    ["https://u:secret@h/v1", "https://h/v1?key=secret", "https://h/v1#secret"],
)
def test_no_part_of_an_address_that_may_hold_a_key_is_exported(store, path, key, endpoint):
    """Exports are shared."""
    store.put(key(1), endpoint, "m", ChatReply("fine"), None)

    [line] = export_lines(path, ExportCounts())

    assert json.loads(line)["endpoint"] == "https://h/v1"


def test_a_second_import_changes_nothing(lines, bring, tmp_path):
    """A nightly job may bring the same file each time."""
    bring(lines)
    before = rows_of(tmp_path / "new" / "calls.sqlite")

    assert bring(lines).new == 0
    assert rows_of(tmp_path / "new" / "calls.sqlite") == before


@pytest.mark.parametrize("order", [1, -1])
def test_the_later_purchase_stays(lines, bring, tmp_path, order):
    """In whichever order the two come."""
    early = resealed(lines[0], text="early")
    late = changed(resealed(lines[0], text="late"), bought_at=4e9)
    for line in [early, late][::order]:
        bring([line])

    [row] = rows_of(tmp_path / "new" / "calls.sqlite")
    assert json.loads(row.reply)["text"] == "late"


def test_a_damaged_reply_is_replaced_by_the_whole_one(lines, path, bring, tmp_path, key):
    """This is how a copy mends a store."""
    bring(lines)
    store = tmp_path / "new" / "calls.sqlite"
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("UPDATE calls SET reply = reply || ' ' WHERE key = ?", (key(2),))

    assert bring(lines).new == 1
    assert rows_of(store) == rows_of(path)


def test_a_last_line_that_was_cut_off_is_passed_over(lines, bring):
    """A copy that was interrupted is still worth most of what it holds."""
    told = bring([*lines[:4], lines[4][:50]])

    assert (told.rows, told.faults) == (4, [SkippedLine(5, "was cut off")])


def test_a_last_line_without_its_end_is_whole(lines, bring):
    """Some editors leave the line feed away."""
    assert bring([*lines[:4], lines[4].rstrip("\n")]).rows == 5


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"key": "0" * 64}, "sha256: does not fit"),
        ({"key": "k"}, "key: expected 64"),
        ({"key": None}, "key: expected 64"),
        ({"sha256": 7}, "sha256: expected text"),
        ({"reply": {"text": "mine"}}, "sha256: does not fit"),
        ({"reply": None}, "sha256: does not fit"),
        ({"model": 3}, "model: expected text"),
        ({"prompt_tokens": 9}, "are not those of the reply"),
        ({"completion_tokens": 2.0}, "are not those of the reply"),
        ({"prompt_tokens": 10**30}, "are not those of the reply"),
        ({"cost_usd": -1}, "cost_usd: expected"),
        ({"cost_usd": 10**400}, "cost_usd: expected"),
        ({"cost_usd": True}, "cost_usd: expected"),
        ({"cost_usd": float("nan")}, "cost_usd: expected"),
        ({"bought_at": None}, "bought_at: expected"),
        ({"extra": 1}, "expected an object with key, endpoint"),
    ],
)
def test_a_damaged_row_is_passed_over(lines, bring, fields, why):
    """What is no whole reply must not be served as one; the line says where to look."""
    told = bring([lines[0], changed(lines[1], **fields), lines[2]])

    assert told.rows == 2
    [fault] = told.faults
    assert (fault.line, why in fault.why) == (2, True)


@pytest.mark.parametrize(
    "junk", ["{", "[]", "7", "null", "[" * 100_000, '{"key": "\ud800"}', "nul"]
)
def test_a_line_of_junk_is_passed_over(lines, tmp_path, junk):
    """Whatever stands there, the other lines are good."""
    source = tmp_path / "rows.jsonl"
    content = "".join([lines[0], junk, "\n\n", lines[1]])
    source.write_bytes(content.encode("utf-8", "surrogatepass"))

    told = import_file(source, tmp_path / "new.sqlite")

    assert (told.rows, [fault.line for fault in told.faults]) == (2, [2])


def test_a_reply_that_fits_its_digest_but_is_none_is_passed_over(lines, bring):
    """A made-up row would end the run that meets it."""
    told = bring([lines[0], resealed(lines[1], usage=None)])

    assert told.faults == [SkippedLine(2, "reply: expected an object with text and usage")]


def test_a_packed_file_is_read(lines, tmp_path):
    """Replies pack well."""
    source = tmp_path / "rows.jsonl.gz"
    source.write_bytes(gzip.compress("".join(lines).encode()))

    assert import_file(source, tmp_path / "new.sqlite").rows == 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no usable reply: it is empty"),
        ("{}\n[]\n", r"line 1: expected .*\(and 1 more\)"),
    ],
)
def test_a_file_without_a_usable_line_makes_no_store(tmp_path, content, message):
    """Else a mistyped path would leave an empty store behind."""
    (tmp_path / "rows.jsonl").write_text(content)

    with pytest.raises(DataError, match=message):
        import_file(tmp_path / "rows.jsonl", tmp_path / "new" / "calls.sqlite")

    assert not (tmp_path / "new").exists()


def test_a_file_that_is_no_store_is_not_imported_into(lines, tmp_path):
    """It would be set aside as a damaged store."""
    (tmp_path / "rows.jsonl").write_text("".join(lines))
    (tmp_path / "diary").write_text("dear diary")

    with pytest.raises(DataError, match="diary: is no call store"):
        import_file(tmp_path / "rows.jsonl", tmp_path / "diary")

    assert (tmp_path / "diary").read_text() == "dear diary"


def test_an_imported_reply_is_used(store, path, key, bring, tmp_path):
    """That is what it was brought for."""
    store.put(key(1), "e", "m", ChatReply("fine", usage=Usage(3, 1)), 0.5)
    bring(list(export_lines(path, ExportCounts())))

    with closing(CallStore(tmp_path / "new" / "calls.sqlite")) as new:
        assert (new.get(key(1)).text, new.spent().cost_usd) == ("fine", 0.5)
