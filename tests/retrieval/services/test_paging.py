"""Services that give their results page by page, until there are k."""

import pytest
from scripted_service import Answer

from ragforge.errors import ConfigError

ALL = [{"id": f"c{number}"} for number in range(7)]


def windows(start_of, size):
    """Answer with the window that a request asks for, and with a cursor behind it."""

    def answer(seen):
        start = start_of(seen)
        rows = ALL[start : start + size]
        after = start + size
        return {"items": rows, "next": str(after) if after < len(ALL) else None}

    return answer


@pytest.mark.parametrize(
    ("fields", "start_of"),
    [
        (
            {"params": {"q": "{query}", "from": "{offset}"}},
            lambda seen: int(seen.params["from"]),
        ),
        (
            {"params": {"q": "{query}", "page": "{page}"}},
            lambda seen: 3 * (int(seen.params["page"]) - 1),
        ),
        (
            {"params": {"q": "{query}", "page": "{page}"}, "first_page": 0},
            lambda seen: 3 * int(seen.params["page"]),
        ),
        (
            {"params": {"q": "{query}", "after": "{cursor}"}, "cursor": "next"},
            lambda seen: int(seen.params.get("after", 0)),
        ),
    ],
    ids=["offset", "page", "page from 0", "cursor"],
)
def test_pages_are_asked_for_until_there_are_k(scripted, retriever, ids, fields, start_of):
    """A service that gives three at a time would else have a ranking of three."""
    scripted.answer = windows(start_of, 3)

    found = ids(retriever(results="items", page_size=3, **fields), "q", k=5)

    assert found == ["c0", "c1", "c2", "c3", "c4"]
    assert len(scripted.seen) == 2


def test_the_last_page_ends_it(scripted, retriever, ids):
    """There are no more to ask for."""
    scripted.answer = windows(lambda seen: seen.json["from"], 3)

    body = {"q": "{query}", "from": "{offset}", "size": "{k}"}
    found = ids(retriever(results="items", page_size=3, body=body), "q", k=50)

    assert found == [row["id"] for row in ALL]
    assert [seen.json["from"] for seen in scripted.seen] == [0, 3, 6]
    assert {seen.json["size"] for seen in scripted.seen} == {3}


def test_without_a_size_the_service_may_give_fewer_than_asked(scripted, retriever, ids):
    """Many cap what one request gives."""
    scripted.answer = windows(lambda seen: seen.json["from"], 4)

    body = {"q": "{query}", "from": "{offset}", "size": "{k}"}

    assert len(ids(retriever(results="items", body=body), "q", k=6)) == 6


def test_a_service_that_ignores_the_page_is_found_out(scripted, retriever, failure):
    """The same results again and again are no ranking of k."""
    scripted.answer = Answer({"items": ALL[:3]})

    error = failure(
        retriever(results="items", params={"q": "{query}", "page": "{page}"}, page_size=3), k=9
    )

    assert "page 2 has the same results as those before" in str(error)


def test_a_page_that_fails_fails_the_query(scripted, retriever, failure):
    """Half of a ranking is none."""
    scripted.answers(Answer({"items": ALL[:3]}), Answer("down", 500))

    error = failure(
        retriever(results="items", params={"q": "{query}", "from": "{offset}"}, page_size=3), k=9
    )

    assert "status 500" in str(error)


def test_one_chunk_on_two_pages_counts_once(scripted, retriever, ids):
    """An index that changes between two pages moves results."""
    scripted.answers(
        Answer({"items": ALL[:3]}), Answer({"items": ALL[2:5]}), Answer({"items": ALL[5:]})
    )

    found = ids(
        retriever(results="items", params={"q": "{query}", "from": "{offset}"}, page_size=3), "q", 6
    )

    assert found == ["c0", "c1", "c2", "c3", "c4", "c5"]


def test_a_cursor_may_be_a_list(scripted, retriever, ids):
    """Elasticsearch goes on after the values that the last hit was sorted by."""
    scripted.answers(
        Answer({"hits": [{"id": "a"}, {"id": "b", "sort": [1.5, "b"]}]}),
        Answer({"hits": [{"id": "c", "sort": [1.1, "c"]}]}),
    )
    body = {"q": "{query}", "search_after": "{cursor}"}

    found = ids(retriever(results="hits", cursor="hits[-1].sort", body=body), "q", 3)

    assert found == ["a", "b", "c"]
    assert [seen.json.get("search_after") for seen in scripted.seen] == [None, [1.5, "b"]]
    assert "search_after" not in scripted.seen[0].json


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"page_size": 5}, r"page_size: expected \{offset\}, \{page\} or \{cursor\}"),
        ({"cursor": "next"}, r"cursor: goes with \{cursor\} in the request"),
        ({"params": {"q": "{query}", "c": "{cursor}"}}, r"cursor: goes with \{cursor\}"),
    ],
)
def test_half_of_a_paging_is_refused(retriever, fields, message):
    """A ranking would silently end with its first page."""
    with pytest.raises(ConfigError, match=message):
        retriever(**fields)
