import json

import pytest

from ragforge.errors import DataError
from ragforge.files.set.judgment_table import read_judgment_table
from ragforge.records import Judgment, Provenance, Vote

LLM = Provenance(kind="llm", model="müde", prompt="p", prompt_sha256="ab" * 32, call_key="k1")
ITEMS = [
    Judgment(query_id="a", chunk_id="c1", grade=3, reasoning='says "so"\n\u0007é', provenance=LLM),
    Judgment(query_id="a", chunk_id="c2", grade=None, failure="refused", provenance=LLM),
    Judgment(query_id="b", chunk_id="c1", grade=1, source="human", relevant=True),
    Judgment(query_id="b", chunk_id="d", level="document", grade=2, source="human"),
    Judgment(
        query_id="ü",
        chunk_id="c1",
        grade=2,
        grade_mean=1.5,
        entropy_bits=1.0,
        votes=(Vote(model="m", grade=1), Vote(model="m", grade=2)),
        flags=("orders",),
        provenance=LLM.model_copy(update={"call_key": "k2", "protocol": "votes 2"}),
    ),
    Judgment(query_id="ü", chunk_id="c3", grade=0, grade_mean=0.25, entropy_bits=0.5),
]


def written(path, lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return read_judgment_table(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "judgments.jsonl"


def by_query(items):
    ids = dict.fromkeys(item.query_id for item in items)
    return {name: [item for item in items if item.query_id == name] for name in ids}


def told(table):
    """Return what a table tells of each pair, by query and chunk."""
    return {
        query_id: {
            name: of.as_tuple for name, of in table.of_query(query_id, table.gradings).items()
        }
        for query_id in table.query_ids
    }


def expected(items):
    return {
        query_id: {
            one.chunk_id: (
                one.grade,
                one.source,
                one.level,
                one.relevant,
                one.provenance and one.provenance.model_copy(update={"call_key": ""}),
            )
            for one in of
        }
        for query_id, of in by_query(items).items()
    }


def as_written(items):
    return [item.model_dump_json() for item in items]


def with_spaces(items):
    return [json.dumps(json.loads(line)) for line in as_written(items)]


def short(items):
    rows = [json.loads(item.model_dump_json(exclude={"evidence"})) for item in items]
    return [json.dumps(row, separators=(",", ":")) for row in rows]


@pytest.mark.parametrize("form", [as_written, with_spaces, short])
@pytest.mark.parametrize("order", [1, -1], ids=["sorted", "turned round"])
def test_columns_say_what_the_records_say(path, form, order):
    """Files of other hands, and of earlier versions, are in other forms and other orders."""
    items = ITEMS[::order]

    table = written(path, form(items))

    assert told(table) == expected(items)
    assert list(told(table)) == list(expected(items))
    assert len(table) == len(items)
    assert {name: table.judgments(name) for name in table.query_ids} == by_query(items)


def test_rows_of_a_query_that_lie_apart_come_together(path):
    """Somebody may have put lines at the end of the file."""
    items = [ITEMS[0], ITEMS[2], ITEMS[4], ITEMS[1], ITEMS[5], ITEMS[3]]

    table = written(path, [*as_written(items[:2]), "", " \r", *with_spaces(items[2:])])

    assert told(table) == expected(items)
    assert {name: table.judgments(name) for name in table.query_ids} == by_query(items)


def test_mark_of_byte_order_and_line_ends_of_windows_are_no_part_of_a_line(path):
    """An editor on another system may have saved the file."""
    lines = as_written(ITEMS)

    table = written(path, [f"\ufeff{lines[0]}\r", *(f"{line}\r" for line in lines[1:])])

    assert told(table) == expected(ITEMS)
    assert table.judgments("a") == ITEMS[:2]


@pytest.mark.parametrize("form", [as_written, with_spaces])
def test_judgments_that_quote_are_all_there_where_others_may_be_left_out(path, form):
    """What a judge quotes is looked for in a hundred thousand judgments that quote nothing."""
    quoting = ITEMS[1].model_copy(update={"evidence": 'It "is" so.'})
    tricky = ITEMS[2].model_copy(update={"reasoning": '"evidence":"","reasoning":"'})
    tricky = tricky.model_copy(update={"query_id": "a", "chunk_id": "c3", "evidence": "so"})

    table = written(path, form([ITEMS[0], quoting, tricky]))

    found = table.judgments("a", quoting=True)
    assert [item for item in found if item.evidence] == [quoting, tricky]
    assert len(found) == (3 if form is with_spaces else 2)


def test_many_kinds_of_gradings_are_told_apart(path):
    """More than fit into a byte: a panel of models, each asked in several ways."""
    items = [
        Judgment(
            query_id=f"q{number // 100}",
            chunk_id=f"c{number}",
            grade=number % 4,
            provenance=LLM.model_copy(update={"protocol": f"way {number}"}),
        )
        for number in range(300)
    ]

    assert told(written(path, as_written(items))) == expected(items)


def test_gradings_are_shared_whatever_the_call(path):
    """Each judgment has a call of its own; what it was asked by is that of thousands."""
    items = [
        Judgment(
            query_id="q",
            chunk_id=f"c{number}",
            grade=number % 2,
            provenance=LLM.model_copy(update={"call_key": f"k{number}"}),
        )
        for number in range(20)
    ]

    table = written(path, as_written(items))

    assert [of.grade for of in table.gradings] == [0, 1]
    assert list(table.counts().values()) == [10, 10]


def test_part_of_the_queries_has_their_rows_alone(path):
    """Queries that were retired count nowhere."""
    table = written(path, as_written(ITEMS)).of_queries({"b", "ü", "none"})

    assert told(table) == expected(ITEMS[2:])
    assert sorted(of.grade for of in table) == [0, 1, 2, 2]
    assert sum(table.counts().values()) == len(table) == 4
    assert table.of_query("a", table.gradings) == {}
    assert table.judgments("a") == []
    assert table.chunk_ids(lambda of: of.level == "document") == {"d"}
    assert [pair[:2] for pair in table.pairs(lambda of: of.source == "human")] == [
        ("b", "c1"),
        ("b", "d"),
    ]


GOOD = as_written(ITEMS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD[0].replace('"grade":3', '"grade":4'), ":7: grade: "),
        (GOOD[0].replace('"grade":3', '"grade":"3"'), ":7: grade: "),
        (GOOD[0].replace('"grade":3', '"grade":true'), ":7: grade: "),
        (GOOD[0].replace('"source":"judge"', '"source":"judges"'), ":7: source: "),
        (GOOD[0].replace('"kind":"llm"', '"kind":"llms"'), ":7: provenance.kind: "),
        (GOOD[0].replace('"failure":null', '"failure":"lost"'), ":7: failure: "),
        (GOOD[0].replace('"chunk_id":"c1"', '"chunk_id":""'), ":7: chunk_id: "),
        (GOOD[5].replace('"grade_mean":0.25', '"grade_mean":3.25'), ":7: grade_mean: "),
        (GOOD[5].replace('"entropy_bits":0.5', '"entropy_bits":2.5'), ":7: entropy_bits: "),
        (GOOD[0].replace('"flags":[]', '"flags":[],"more":1'), ":7: more: "),
        (GOOD[0].replace("says", "say\ts"), ":7: is not one complete JSON object"),
        (GOOD[0].replace("says", "say\\xs"), ":7: is not one complete JSON object"),
        (GOOD[0][:-1], ":7: is not one complete JSON object"),
        (f"{GOOD[0]}}}", ":7: is not one complete JSON object"),
        (GOOD[2].replace('"provenance":null', '"provenance":null,"call_key":"k"}'), ":7: is not"),
        (GOOD[1], r":7: \('a', 'c2'\) comes twice, first in line 2"),
        (GOOD[5], r":7: \('ü', 'c3'\) comes twice, first in line 6"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(path, line, message):
    """A line that only looks like the others must not be taken by its looks."""
    with pytest.raises(DataError, match=f"^{path}{message}"):
        written(path, [*GOOD, line])


def test_bytes_that_are_no_text_are_told(path):
    """A torn character is a torn file."""
    path.write_bytes("\n".join(GOOD).encode() + GOOD[0].encode("latin-1").replace(b"a", b"\xff"))

    with pytest.raises(DataError, match="is not UTF-8 text"):
        read_judgment_table(path)


def test_file_that_is_not_there_has_no_judgments(path):
    """A new set has none."""
    table = read_judgment_table(path)

    assert (len(table), list(table), dict(table.counts())) == (0, [], {})


def test_words_are_those_that_were_read_when_the_file_was_written_anew(path):
    """A nightly run may put new judgments in place while a page is open."""
    table = written(path, GOOD)
    other = path.with_suffix(".new")
    other.write_text(f"{GOOD[2]}\n")
    other.replace(path)

    assert table.judgments("a") == ITEMS[:2]
    assert read_judgment_table(path).judgments("a") == []
