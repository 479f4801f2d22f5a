"""Grades and other values that frames and records lack."""

import pytest

import ragforge as rf

CHUNKS = [
    {"chunk_id": str(i), "doc_id": f"d{i}", "text": f"The code of topic {i} is {1000 + 37 * i}."}
    for i in range(4)
]
FIRST = {"query_id": "1", "query": "code 1?", "chunk_id": "1", "grade": 3}
SECOND = {"query_id": "1", "query": "code 1?", "chunk_id": "3"}


class NAType:
    """The missing value of pandas, by its name."""


class Frame:
    """A data frame as far as pandas' ways are needed."""

    columns = tuple(FIRST)

    def __init__(self, missing, chunks=("1", "3")):
        self.cells = [("1", "code 1?", chunks[0], 3), ("1", "code 1?", chunks[1], missing)]

    def itertuples(self, index, name):
        return iter(self.cells)


class Listing(Frame):
    """A data frame with a list of chunks a row."""

    columns = ("query_id", "query", "relevant_chunk_ids", "grade")


MISSING = [
    Frame(float("nan")),
    Frame(NAType()),
    Listing(float("nan"), (["1"], ["3"])),
    [FIRST, SECOND | {"grade": float("nan")}],
    [FIRST, SECOND | {"grade": None}],
    [FIRST, SECOND],
    [FIRST, SECOND | {"grade": None, "rating": 2}],
]


@pytest.mark.parametrize("given", MISSING)
def test_a_missing_grade_beside_others_is_refused(given, tmp_path):
    """Such a passage had grade 2 of a person."""
    with pytest.raises(rf.DataError, match="row 2: grade: is blank, where given, row 1 has one"):
        rf.from_queries(given, chunks=CHUNKS, out=tmp_path / "set", quiet=True)


@pytest.mark.parametrize("given", MISSING)
def test_a_missing_grade_does_not_replace_one_of_the_set(given, tmp_path):
    there = [FIRST, SECOND | {"grade": 0}]
    made = rf.from_queries(there, chunks=CHUNKS, out=tmp_path / "set", quiet=True)

    with pytest.raises(rf.DataError, match="row 2: grade: is blank"):
        made.add_queries(given, quiet=True)

    assert {each.chunk_id: each.grade for each in made.judgments()} == {"1": 3, "3": 0}


def test_passages_are_relevant_where_no_record_has_a_grade(tmp_path):
    given = [FIRST | {"grade": float("nan")}, SECOND]

    made = rf.from_queries(given, chunks=CHUNKS, out=tmp_path / "set", quiet=True)

    assert {each.grade for each in made.judgments()} == {2}


def test_qrels_of_a_frame_may_lack_grades(tmp_path):
    """The frame was refused, as if its row had no such column."""
    made = rf.from_queries([FIRST], chunks=CHUNKS, out=tmp_path / "set", quiet=True)
    rows = [{"query_id": "1", "chunk_id": "3", "grade": float("nan")}]

    made.add_qrels(rows, quiet=True)

    assert {each.chunk_id: each.grade for each in made.judgments()} == {"1": 3, "3": None}


NAN = float("nan")
OF_TWO_FRAMES = [
    FIRST | {"relevance": NAN},
    SECOND | {"query_id": "2", "query": "code 3?", "grade": NAN, "relevance": 3},
]


@pytest.mark.parametrize("rows", [OF_TWO_FRAMES, OF_TWO_FRAMES[1:]])
def test_a_blank_grade_beside_one_of_another_name_is_refused(rows, tmp_path):
    """Of two frames put together, or a column not yet filled: 3 came to the usual 2, or to none."""
    made = rf.from_queries([FIRST], chunks=CHUNKS, out=tmp_path / "set", quiet=True)

    with pytest.raises(rf.DataError, match="'grade' is blank, 'relevance' is not"):
        made.add_qrels(rows, quiet=True)
    with pytest.raises(rf.DataError, match="'grade' is blank, 'relevance' is not"):
        rf.from_queries(rows, chunks=CHUNKS, out=tmp_path / "other", quiet=True)


def test_a_blank_grade_of_a_pair_beside_its_mark_is_refused(tmp_path):
    """Both passages had none."""
    made = rf.from_queries([FIRST], chunks=CHUNKS, out=tmp_path / "set", quiet=True)
    row = {"query_id": "1", "chunk_id": "3", "relevance": None, "relevant": True}

    with pytest.raises(rf.DataError, match="'relevance' is blank, 'relevant' is not"):
        made.add_qrels([row], quiet=True)


@pytest.mark.parametrize("beside", [{"relevance": 1}, {"relevant": False}, {"correct": True}])
@pytest.mark.parametrize("passage", [{"chunk_id": "1"}, {"quote": "The code of topic 1 is 1037."}])
def test_a_blank_grade_in_a_list_is_refused_likewise(passage, beside, tmp_path):
    """A passage had no grade, and a quote the highest."""
    item = passage | {"grade": None} | beside
    name = "relevant" if "chunk_id" in passage else "evidence"
    row = {"query_id": "1", "query": "code 1?", name: [item]}

    with pytest.raises(rf.DataError, match=r"'grade' is blank, '\w+' is not"):
        rf.from_queries([row], chunks=CHUNKS, out=tmp_path / "set", quiet=True)


def test_own_records_may_stand_in_a_frame_with_others(tmp_path):
    """What one of two frames lacks is null in both, and the language must be a text."""
    made = rf.from_queries([FIRST], chunks=CHUNKS, out=tmp_path / "set", quiet=True)
    [own] = [query.model_dump(mode="json") for query in made.queries()]
    rows = [own | {"language": NAN}, dict.fromkeys(own, NAN) | {"query_id": "2", "query": "Why?"}]

    again = rf.from_queries(rows, chunks=CHUNKS, out=tmp_path / "other", quiet=True)

    assert {each.query_id: each.language for each in again.queries()} == {"1": "en", "2": "en"}


def test_a_missing_answer_is_not_the_one_that_a_system_gave(tmp_path):
    """Beside a column of expected answers, `answer` is what a system said, in every row."""
    rows = [
        {"query_id": "1", "query": "code 1?", "expected_answer": "1037", "answer": "37"},
        {"query_id": "2", "query": "code 2?", "expected_answer": float("nan"), "answer": "7"},
    ]

    made = rf.from_queries(rows, chunks=CHUNKS, out=tmp_path / "set", quiet=True)

    assert {each.query_id: each.expected_answer for each in made.queries()} == {
        "1": "1037",
        "2": None,
    }


class Index:
    names = ("query_id",)


class Indexed(Frame):
    """A data frame of pandas whose ids are its index."""

    columns = ("query",)
    index = Index()

    def reset_index(self, level):
        frame = Frame(1)
        frame.columns = (*level, "query")
        frame.cells = [("7", "code 1?")]
        return frame


def test_the_index_of_a_frame_is_a_column_where_it_has_a_name(tmp_path):
    """Queries were called otherwise, and runs and labels by their ids found none."""
    made = rf.from_queries(Indexed(1), chunks=CHUNKS, out=tmp_path / "set", quiet=True)

    assert [each.query_id for each in made.queries()] == ["7"]
