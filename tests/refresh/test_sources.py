import pytest
from refresh.two_versions import asking, diff_of, id_of

from ragforge.records import Query
from ragforge.refresh.grades.moved_chunks import with_sources
from ragforge.refresh.queries.updates import UpdatedQuery

ONE, TWO = "Herons fish at dawn.", "Owls sleep by day."
BEFORE = {"a": (ONE, TWO), "b": (ONE,)}


def open_query(*sources, status="accepted"):
    return Query(
        query_id="u",
        query="Who sings?",
        answerable=False,
        source_chunk_ids=sources,
        status=status,
    )


def sources_of(query, now, place):
    found = with_sources([UpdatedQuery(query, query)], diff_of(BEFORE, now, place / "diff"))
    return [item.query.source_chunk_ids for item in found]


def test_source_that_moved_is_followed(tmp_path):
    """Probes start from it, and a report shows it."""
    query = open_query(id_of("a", TWO), id_of("b", ONE))
    now = {"b": (ONE,), "c": (TWO,)}

    assert sources_of(query, now, tmp_path) == [(id_of("c", TWO), id_of("b", ONE))]


def test_source_that_is_gone_is_let_go(tmp_path):
    """An id that names nothing helps nobody."""
    query = open_query(id_of("a", TWO))

    assert sources_of(query, {"a": (ONE,), "b": (ONE,)}, tmp_path) == [()]


def test_source_that_stays_is_left_alone(tmp_path):
    """What did not change is not written anew."""
    assert sources_of(open_query(id_of("b", ONE)), {"b": (ONE,)}, tmp_path) == []


@pytest.mark.parametrize(
    "query",
    [
        open_query(id_of("a", TWO), status="retired"),
        asking("q", "a", TWO, TWO, status="quarantined"),
    ],
)
def test_query_that_is_out_of_the_set_stays_as_it_was(tmp_path, query):
    """A search for what it lost starts from what it had."""
    assert sources_of(query, {"b": (ONE,)}, tmp_path) == []
