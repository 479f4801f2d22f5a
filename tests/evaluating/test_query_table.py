import pytest

from ragforge.evaluating.causes.finder import CauseFinder
from ragforge.evaluating.evaluation_data import load_evaluation_data
from ragforge.evaluating.query_table import QueryTableBuilder, RunCell
from ragforge.evaluating.summary import take_census
from ragforge.records import Chunk, Evidence, Judgment, Query


@pytest.fixture
def table_of():
    """Make the table of a dataset."""

    def make(dataset, causes=None, **options):
        data = load_evaluation_data(dataset)
        bad = CauseFinder(data.runs, data.task, data.task.primary).bad_queries()
        draft = QueryTableBuilder(data, bad, **options)
        chunks = take_census(dataset, draft.chunk_quotes, set())
        return draft.fill(chunks.starts, chunks.documents, lambda _: {}, causes or {})

    return make


def test_every_accepted_query_has_a_row_and_failures_come_first(table_of, dataset):
    """A query that is not in the table cannot be looked for."""
    assert [row.query_id for row in table_of(dataset).rows] == ["q3", "q2", "q1", "q4"]


def test_cells_say_what_a_run_made_of_a_query(table_of, dataset):
    """A failure has no value, and is not the same as finding nothing."""
    found = {row.query_id: row.cells for row in table_of(dataset).rows}

    assert found["q1"] == (RunCell(1.0, 1, 0, "measured"),)
    assert found["q2"][0].holes == 2
    assert found["q3"] == (RunCell(None, None, 0, "failed"),)
    assert found["q4"][0].state == "unanswerable"


def test_rows_tell_of_answers_and_properties(table_of, dataset):
    """The table is filtered by them."""
    found = {row.query_id: row for row in table_of(dataset).rows}

    assert [found[key].verdicts for key in ("q1", "q2", "q3", "q4")] == [
        ("correct",),
        ("incorrect",),
        ("",),
        ("no answer",),
    ]
    assert found["q1"].facets == ("easy", "fact", "", "en", "d1", "")


def test_causes_come_with_the_run(table_of, dataset):
    """Two runs may go wrong for two reasons."""
    found = table_of(dataset, {"bm25": {"q2": "ranked low"}})

    assert [row.cells[0].cause for row in found.rows] == ["", "ranked low", "", ""]


def test_worst_query_shows_what_came_and_what_was_missed(table_of, dataset):
    """Without the chunks a bad value cannot be acted upon."""
    table = table_of(dataset)
    [worst] = table.worst_cells()
    detail = table.detail(worst.query_id)
    [run] = detail.runs

    assert (worst.run, worst.query_id) == ("bm25", "q2")
    assert [(c, detail.chunks[c].grade, detail.chunks[c].state) for c in run.top] == [
        ("c3", 1, "graded"),
        ("c4", None, "failed"),
        ("c5", None, "unjudged"),
    ]
    assert (run.missed, run.ranks, detail.chunks["c2"].grade) == (("c2",), {}, 2)
    assert table.starts["c2"].text.text == "Text of chunk 2."


def test_perfect_queries_are_not_among_the_worst(table_of, dataset):
    """A list of ten must not fill up with what is fine."""
    assert "q1" not in table_of(dataset).worst["bm25"]


def test_queries_without_any_relevant_chunk_are_not_the_fault_of_a_run(table_of, dataset):
    """No ranking can do well on them, so they would crowd out what can be fixed."""
    dataset.write_queries([Query(query_id="q1", query="?")])
    dataset.write_judgments([Judgment(query_id="q1", chunk_id="c1", grade=0)])

    found = table_of(dataset)

    assert found.worst == {"bm25": ()}
    assert found.rows[0].cells[0].state == "no_relevant"


def test_quotes_of_query_and_judge_are_looked_for_in_a_chunk(table_of, dataset):
    """The judge may have found the answer where the query's author did not look."""
    others = [Chunk(chunk_id=f"c{n}", doc_id="d", text="Other.") for n in range(2, 6)]
    dataset.write_chunks(
        [Chunk(chunk_id="c1", doc_id="d", text="x" * 900 + " at the end"), *others]
    )
    dataset.write_queries(
        [
            Query(
                query_id="q1",
                query="?",
                evidence=(Evidence(doc_id="d", chunk_id="c9", quote="elsewhere"),),
            )
        ]
    )
    dataset.write_judgments(
        [Judgment(query_id="q1", chunk_id="c1", grade=3, evidence="at the end")]
    )

    found = table_of(dataset)

    assert found.detail("q1").chunks["c1"].quotes == ("at the end", "elsewhere")
    assert found.starts["c1"].text.text.endswith("at the end")


def test_texts_are_kept_of_the_worst_queries_where_room_is_short(table_of, dataset):
    """A corpus may be larger than memory, and a page has to stay fit for a mail."""
    found = table_of(dataset, max_bytes=0)

    assert (found.reach, sorted(found.starts)) == (0, ["c2", "c3", "c4", "c5"])


def test_texts_of_all_are_wanted_where_there_are_files_beside_the_page(table_of, dataset):
    """Whatever the page links to can be opened."""
    found = table_of(dataset, max_bytes=0, has_all=True)

    assert (found.reach, len(found.starts)) == (4, 5)
