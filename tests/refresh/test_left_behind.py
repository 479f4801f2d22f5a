import pytest
from versioned_sets import make_set, refreshed

from ragforge.files.set.opening import open_dataset
from ragforge.files.set.versions import open_version
from ragforge.records import Judgment, MovedChunk, Pin, Query, Review
from ragforge.refresh.left_behind import LeftBehind, left_behind


@pytest.fixture
def home(tmp_path):
    """A set with two versions that have the same grades of people."""
    path = make_set(tmp_path / "set").path
    refreshed(path, "b")
    return path


def given(home):
    return left_behind(open_dataset(home), open_version(home, 1))


def test_nothing_is_left_where_both_have_the_same(home):
    """Whoever goes back right away loses nothing."""
    assert given(home) == LeftBehind(2, 0, 0)


def test_grades_that_people_gave_since_are_counted(home):
    """New ones, and those that are others now."""
    dataset = open_dataset(home)
    first, *others = dataset.judgments()
    new = Judgment(query_id="q00", chunk_id="c01", grade=0, source="human")
    judge = new.model_copy(update={"chunk_id": "c02", "source": "judge"})
    dataset.write_judgments([first.model_copy(update={"grade": 1}), new, judge, *others])

    assert given(home) == LeftBehind(2, 2, 0)


def test_a_grade_whose_text_moved_is_the_same(home):
    """Its document was renamed in the night that is undone."""
    dataset = open_dataset(home)
    first, *others = dataset.judgments()
    dataset.write_judgments([*others, first.model_copy(update={"chunk_id": "new"})])
    dataset.past.write_moved_chunks([MovedChunk(before="c00", now=("new",))])

    assert given(home) == LeftBehind(2, 0, 0)


def test_a_grade_that_followed_its_words_is_the_same(home):
    """45 grades were told to be lost of which nobody had given one since."""
    dataset = open_dataset(home)
    first, *others = dataset.judgments()
    followed = first.model_copy(update={"chunk_id": "edited"})
    new = Judgment(query_id="q00", chunk_id="c01", grade=first.grade, source="human")
    dataset.write_judgments([*others, followed, new])

    assert given(home) == LeftBehind(2, 1, 0)


def test_decisions_that_people_made_since_are_counted(home):
    """A rejected query is asked again."""
    dataset = open_dataset(home)
    first, second, *others = dataset.all_queries()
    review = Review(decision="reject", by="Ann")
    rejected = first.model_copy(update={"reviewed": review, "status": "retired"})
    pinned = second.model_copy(update={"pinned": Pin(by="Ann")})
    made = Query(query_id="z", query="A new one?", reviewed=review)
    dataset.write_queries([rejected, pinned, *others, made])

    assert given(home) == LeftBehind(2, 0, 3)
