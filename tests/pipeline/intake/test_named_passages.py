import csv
import json

import pytest

from ragforge.errors import DataError
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.intake.importing import import_queries
from ragforge.pipeline.intake.logs import import_logs
from ragforge.pipeline.intake.runs_and_qrels import import_qrels
from ragforge.records import Chunk, Query

BILLS = "Invoices lie in the account under orders."
BIKES = "We deliver by bike in town on weekdays."
TEXTS = {
    "c1": ("k.md", "Close the lid before boiling; a leak is mended for free."),
    "c2": ("i.md", BILLS),
    "c3": ("d.md", BIKES),
    "c4": ("d.md", "Returns are free within 30 days of the order."),
}


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        Chunk(chunk_id=chunk_id, doc_id=doc_id, text=text)
        for chunk_id, (doc_id, text) in TEXTS.items()
    )
    made.write_queries([Query(query_id="q", query="Where?", origin="human")])
    return made


@pytest.fixture
def notes():
    return []


@pytest.fixture
def bring(dataset, tmp_path, notes):
    """Import rows as queries; those of a table where a name says so."""

    def run(*rows, name="rows.jsonl", take=import_queries):
        path = tmp_path / name
        if path.suffix == ".csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader()
                writer.writerows(rows)
        else:
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return take(path, dataset, lambda event: notes.append(event.message))

    return run


def grades(dataset):
    return {item.chunk_id: item.grade for item in dataset.judgments()}


def passage(chunk_id, text, **fields):
    return {"question": "Where?", "chunk_id": chunk_id, "text": text, "grade": 3} | fields


MISNAMED = [
    passage("c1", BILLS),
    passage("c1", f"<p>{BILLS.upper()}</p>"),
    {"question": "Where?", "passage_id": "c1", "passage": BILLS, "grade": 3},
    {"question": "Where?", "chunk_id": "c1", "context": BILLS, "grade": 3},
    {"question": "Where?", "chunk_id": "c1", "quote": "Invoices lie in the account"},
    {"question": "Where?", "relevant_chunk_ids": "c1", "quote": "Invoices lie in the account"},
    {"question": "Where?", "source_chunk_id": "c1", "content": BILLS},
    {"question": "Where?", "doc_id": "k.md", "text": BILLS, "grade": 3},
]
LISTED = [
    {"question": "Where?", "relevant": [{"chunk_id": "c1", "text": BILLS, "grade": 3}]},
    {"question": "Where?", "relevant": [{"chunk_id": "c1", "quote": "Invoices lie in the"}]},
]


@pytest.mark.parametrize("row", MISNAMED)
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
def test_an_id_beside_the_words_of_another_passage_is_refused(dataset, bring, row, name):
    """Ids shift when an index is made anew: people's grades went to words that nobody read."""
    with pytest.raises(
        DataError, match=rf"{name}:\d: '(c1|k.md)' is named beside .*in 'c2'\. Mend"
    ):
        bring(row, name=name)

    assert dataset.judgments() == []


@pytest.mark.parametrize("row", LISTED)
def test_so_it_is_in_a_list(bring, row):
    with pytest.raises(DataError, match=r"rows\.jsonl:1: relevant: 'c1' is named beside"):
        bring(row)


def test_all_such_rows_are_named(bring):
    """Whoever mends a sheet wants to know where."""
    with pytest.raises(DataError, match=r"rows\.csv:2: 'c1'.*; so it is in \S*rows\.csv:4\. Mend"):
        bring(passage("c1", BILLS), passage("c2", BILLS), passage("c4", BIKES), name="rows.csv")


@pytest.mark.parametrize(
    "row",
    [
        {"query_id": "q", "chunk_id": "c1", "text": BILLS, "grade": 3},
        {"question": "Where?", "chunk_id": "c1", "content": BILLS, "grade": 3},
        {"query_id": "q", "relevant": [{"chunk_id": "c1", "text": BILLS, "grade": 3}]},
    ],
)
def test_so_it_is_in_qrels(bring, row):
    with pytest.raises(DataError, match=r"'c1' is named beside .* which stands in 'c2'"):
        bring(row, take=import_qrels)


def test_so_it_is_in_the_labels_of_a_log(bring):
    with pytest.raises(DataError, match=r"'c1' is named beside .* which stands in 'c2'"):
        bring(
            {"query": "Where?", "chunk_id": "c1", "label": 3, "text": BILLS},
            take=lambda path, *rest: import_logs([path], *rest),
        )


@pytest.mark.parametrize(
    "text",
    [
        BILLS,
        "Invoices lie in the account",
        "Orders: **Invoices** lie in the account under orders",
        "invoices lie in the account…",
        "c2",
        "7",
        "Where?",
    ],
)
def test_the_words_of_a_passage_in_other_writing_are_its_words(dataset, bring, text):
    """As hits of a service are read; a number, a name and the question are no words of it."""
    bring(passage("c2", text))

    assert grades(dataset) == {"c2": 3}


def test_a_question_under_the_name_of_a_text_is_none(dataset, bring):
    """Rows of BEIR have it there."""
    bring({"query_id": "q", "text": "Where?", "chunk_id": "c2", "grade": 3}, take=import_qrels)

    assert grades(dataset) == {"c2": 3}


def test_a_quote_is_taken_where_the_chunk_named_has_it(dataset, bring):
    """Two documents may hold it."""
    dataset.write_chunks([*dataset.chunks(), Chunk(chunk_id="c5", doc_id="z.md", text=BILLS)])

    bring({"question": "Where?", "chunk_id": "c5", "quote": "Invoices lie in the account"})

    assert grades(dataset) == {"c5": 3}
    [query] = dataset.all_queries()
    assert [item.doc_id for item in query.evidence] == ["z.md"]


def test_a_quote_beside_a_chunk_of_another_index_is_found_and_told(dataset, bring, notes):
    """Its words say where it stands."""
    bring({"question": "Where?", "chunk_id": "x9", "quote": "Invoices lie in the account"})

    assert grades(dataset) == {"c2": 3}
    assert "1 quote found by the words alone: the set does not have the chunk" in notes[0]


@pytest.mark.parametrize(("text", "n"), [(BIKES, 1), (f"{BIKES} {TEXTS['c4'][1]}", 0)])
def test_a_label_of_a_whole_document_beside_a_part_of_it_is_told(dataset, bring, notes, text, n):
    """A person may have meant the passage."""
    bring({"question": "Where?", "doc_id": "d.md", "text": text, "grade": 3})

    assert grades(dataset) == {"d.md": 3}
    assert sum("1 label is of a whole document, beside the text" in note for note in notes) == n


def test_a_set_of_questions_alone_compares_nothing(tmp_path):
    """It knows no words."""
    made = create_dataset(tmp_path / "questions", {"chunks": ""})
    made.write_chunks(())
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(passage("c1", BILLS)), encoding="utf-8")

    import_queries(path, made, silent)

    assert grades(made) == {"c1": 3}
