import json
import re
import sys
import zlib
from base64 import b64decode

import pydantic_core
import pytest

from ragforge.evaluating.causes.finder import CauseFinder
from ragforge.evaluating.evaluation_data import load_evaluation_data
from ragforge.evaluating.query_table import QueryTableBuilder
from ragforge.evaluating.summary import take_census
from ragforge.report.page import packed_queries
from ragforge.report.page.packed_queries import pack_table


@pytest.fixture
def packed():
    """Pack a dataset and read its blocks again, by key."""

    def run(dataset, room=1_000_000):
        data = load_evaluation_data(dataset)
        bad = CauseFinder(data.runs, data.task, data.task.primary).bad_queries()
        draft = QueryTableBuilder(data, bad)
        chunks = take_census(dataset, draft.chunk_quotes, set())
        found = pack_table(draft.fill(chunks.starts, {}, lambda _: {}, {}), room)
        blocks = {}
        for block in found.blocks:
            key, text = re.fullmatch(
                r'<script type="application/zlib" id="([\w-]+)">([\w+/=]+)</script>', block.code
            ).groups()
            blocks[key] = json.loads(zlib.decompress(b64decode(text)))
        return blocks

    return run


def test_rows_are_packed_by_column(packed, dataset):
    """Columns take less room than rows, and are what is sorted by."""
    found = packed(dataset)

    assert found["queries-index"]["n"] == 4
    assert found["queries-rows-0"]["id"] == ["q3", "q2", "q1", "q4"]
    assert found["queries-rows-0"]["runs"][0]["value"] == [None, 0.380093767, 1.0, None]
    assert found["queries-rows-0"]["runs"][0]["first"] == [None, None, 1, None]


def test_values_are_told_by_number(packed, dataset):
    """A word a row would be the larger part of the page."""
    found = packed(dataset)
    difficulty = found["queries-index"]["facets"][0]["values"]

    assert difficulty == ["", "easy", "hard"]
    assert found["queries-rows-0"]["facets"][0] == [2, 2, 1, 0]


def test_drill_down_names_chunks_that_are_stored_once(packed, dataset):
    """Queries share chunks, and chunks are long."""
    found = packed(dataset)
    texts = [chunk[2] for chunk in found["queries-texts-0"]]

    assert found["queries-detail-0"]["chunks"] == ["c3", "c4", "c5", "c2", "c1"]
    assert found["queries-detail-0"]["at"] == [[0, place] for place in range(5)]
    assert texts == [f"Text of chunk {n}." for n in (3, 4, 5, 2, 1)]


def test_later_blocks_lead_to_texts_of_earlier_ones(packed, many_queries, make_ranking):
    """A chunk that many queries show is in the page once, however many blocks there are."""
    made = many_queries(120)
    made.write_run("same", [make_ranking(f"q{n:04}", "c0003") for n in range(120)])

    found = packed(made)
    later = found["queries-detail-1"]

    assert later["at"][later["chunks"].index("c0003")] == [0, 2]
    assert sum(len(texts) for key, texts in found.items() if "-texts-" in key) == 121


def test_drill_down_marks_the_evidence_in_code_points(packed, dataset):
    """The script counts as Python does, whatever is in the text."""
    found = packed(dataset)
    at = found["queries-rows-0"]["id"].index("q1")

    assert found["queries-detail-0"]["queries"][at]["marks"] == {"0": [0, 7], "1": [0, 7]}


def test_drill_downs_are_left_out_where_there_is_no_room(packed, many_queries):
    """The page stays fit for a mail, and says what is missing."""
    found = packed(many_queries(600, chars=4000), room=0)

    assert len(found["queries-rows-0"]["id"]) == 600
    assert 0 < found["queries-index"]["details"] < 600
    assert found["queries-index"]["details"] % 100 == 0


class Beside:
    """Takes files into memory."""

    def __init__(self):
        self.files = {}

    def put(self, name, code):
        self.files[name] = code

    @property
    def address(self):
        return "./page_files/0/" if self.files else ""


def test_what_the_page_has_no_room_for_goes_beside_it(many_queries):
    """Whatever the page links to can be opened."""
    data = load_evaluation_data(many_queries(1200, chars=4000))
    bad = CauseFinder(data.runs, data.task, data.task.primary).bad_queries()
    draft = QueryTableBuilder(data, bad, has_all=True)
    table = draft.fill({}, {}, lambda _: {}, {})
    beside = Beside()

    found = pack_table(table, 0, beside)
    inside = re.findall(r'id="queries-detail-(\d+)"', "".join(block.code for block in found.blocks))
    outside = re.findall(r"queries-detail-(\d+)\.js", " ".join(beside.files))

    assert [*inside, *outside] == [str(place) for place in range(12)]
    assert inside
    assert outside
    name, code = next(iter(beside.files.items()))
    key, text = re.fullmatch(r'ragforgeBlock\("([\w-]+)","([\w+/=]+)"\)\n', code).groups()
    assert f"{key}.js" == name
    assert len(json.loads(zlib.decompress(b64decode(text)))["queries"]) == 100


def test_hidden_characters_are_visible_in_every_block(packed, hostile_dataset):
    """The script shows texts as they come, and marks of direction would still steer."""
    found = json.dumps(packed(hostile_dataset), ensure_ascii=False)

    assert not re.search("[\x00-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", found)
    assert r"\\u202egnitirw" in found


def test_equal_tables_give_equal_bytes(packed, dataset):
    """A report that differs without a cause cannot be compared or cached."""
    assert packed(dataset) == packed(dataset)


def test_json_is_the_same_with_and_without_pydantic(monkeypatch):
    """The page of a set must not depend on what else was loaded."""
    value = {
        "texts": ['"quoted" \\ back', "line\nfeed\ttab", "\x00\x1f\x7f", "café \u2028 \U0001f600"],
        "numbers": [0, -1, 10**12, 0.0, 0.5, -0.25, 0.0001, 1.0, None, True, False],
        "by_place": {0: [1, 2], 12: []},
        "nested": ({}, [], {"a": (1, "b")}),
    }
    monkeypatch.setitem(sys.modules, "pydantic_core", pydantic_core)
    with_it = packed_queries._json(value)
    monkeypatch.delitem(sys.modules, "pydantic_core")

    assert packed_queries._json(value) == with_it
