"""Labels out of files of any usual shape."""

import json

import pytest

from ragforge.calibration.label_files import (
    CONTRADICTED,
    NO_GRADE,
    NOT_WHOLE,
    OUTSIDE,
    PairKey,
    read_labels,
)
from ragforge.errors import DataError

PAIRS = {PairKey("q1", "d1"): 3, PairKey("q1", "d2"): 0, PairKey("q2", "d1"): 2}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.trec", "q1 0 d1 3\nq1 0 d2 0\nq2 0 d1 2\n"),
        ("labels.csv", "query_id,chunk_id,grade\nq1,d1,3\nq1,d2,0\nq2,d1,2\n"),
        (
            "labels.jsonl",
            '{"query_id": "q1", "chunk_id": "d1", "grade": 3}\n'
            '{"query_id": "q1", "chunk_id": "d2", "grade": 0}\n'
            '{"query_id": "q2", "chunk_id": "d1", "grade": 2}\n',
        ),
    ],
)
def test_labels_are_read_from_any_usual_file(tmp_path, name, text):
    """Nobody converts labels before they see a number."""
    path = tmp_path / name
    path.write_text(text)

    found = read_labels(path, 4)

    assert found.grades() == PAIRS
    assert found.name == "labels"


def test_grades_outside_of_the_scale_are_left_out_and_counted(tmp_path):
    """Junk of -2 or a fifth grade would be another scale's."""
    path = tmp_path / "labels.trec"
    path.write_text("q1 0 d1 3\nq1 0 d2 -2\nq1 0 d3 4\nq1 0 d4 1.5\n")

    found = read_labels(path, 4)

    assert found.grades() == {PairKey("q1", "d1"): 3}
    assert found.skipped == {OUTSIDE: 2, NOT_WHOLE: 1}
    assert found.examples[OUTSIDE].endswith("labels.trec:2: '-2'")


def test_a_pair_graded_twice_and_differently_has_no_grade(tmp_path):
    """Which of the two is meant is not known."""
    path = tmp_path / "labels.trec"
    path.write_text("q1 0 d1 3\nq1 0 d1 1\nq1 0 d2 2\nq1 0 d2 2\n")

    found = read_labels(path, 4)

    assert found.grades() == {PairKey("q1", "d2"): 2}
    assert found.skipped == {CONTRADICTED: 2}


@pytest.mark.parametrize("grades", [(3, 3, 1), (3, 1, 3), (1, 3, 3)])
def test_rows_of_a_pair_graded_in_two_ways_are_counted_alike_in_any_order(grades, tmp_path):
    """It was two or three, as the rows stood."""
    path = tmp_path / "labels.trec"
    path.write_text("".join(f"q1 0 d1 {grade}\n" for grade in grades) + "q1 0 d2 2\n")

    assert read_labels(path, 4).skipped == {CONTRADICTED: 3}


def test_a_scale_that_begins_at_1_is_refused(tmp_path):
    """Only its best grades would be left out, and each of the others be taken for a higher one."""
    path = tmp_path / "labels.trec"
    path.write_text("".join(f"q{n} 0 d1 {1 + n % 5}\n" for n in range(20)))

    with pytest.raises(DataError, match="of 20 grades 0 are 0 and 8 above 3"):
        read_labels(path, 4)


def test_a_slip_of_0_makes_no_scale_that_begins_at_0(tmp_path):
    """One row in a thousand would turn a refusal into a table of wrong figures."""
    path = tmp_path / "labels.trec"
    rows = [f"q{n} 0 d1 {1 + n % 5}\n" for n in range(1000)]
    path.write_text("".join([*rows, "q0 0 d2 0\n"]))

    with pytest.raises(DataError, match="grades 1 are 0 and 400 above 3"):
        read_labels(path, 4)


def test_a_fifth_grade_of_a_scale_from_0_is_left_out_and_counted(tmp_path):
    """People of some tracks grade from 0 to 4: the others of their grades count."""
    path = tmp_path / "labels.trec"
    path.write_text("".join(f"q{n} 0 d1 {n % 5}\n" for n in range(1000)))

    found = read_labels(path, 4)

    assert (found.n_outside, len(found.grades())) == (200, 800)


def test_several_labellers_give_the_middle_grade(tmp_path):
    """Two people who differ by one meet at the stricter grade."""
    path = tmp_path / "labels.csv"
    path.write_text("query_id,chunk_id,grade,labeller\nq1,d1,3,ann\nq1,d1,2,bob\nq1,d2,1,ann\n")

    found = read_labels(path, 4)

    assert sorted(found.by_labeller) == ["ann", "bob"]
    assert found.grades() == {PairKey("q1", "d1"): 2, PairKey("q1", "d2"): 1}


def test_a_row_without_a_grade_is_a_failure_and_no_grade(tmp_path):
    """A judge that gave no grade has not said 0."""
    path = tmp_path / "judge.csv"
    path.write_text("query_id,chunk_id,grade\nq1,d1,\nq1,d2,2\n")

    found = read_labels(path, 4)

    assert found.failed == {PairKey("q1", "d1")}
    assert found.skipped == {NO_GRADE: 1}


def test_a_file_without_a_usable_grade_is_refused(tmp_path):
    """An empty table would look like an answer."""
    path = tmp_path / "labels.trec"
    path.write_text("q1 0 d1 9\n")

    with pytest.raises(DataError, match="no grade from 0 to 3: grade outside of the scale"):
        read_labels(path, 4)


def test_a_line_of_another_width_is_refused(tmp_path):
    """A run file is no file of labels."""
    path = tmp_path / "labels.trec"
    path.write_text("q1 0 d1 3\nq1 Q0 d1 1 0.5 tag\n")

    with pytest.raises(DataError, match=r"labels.trec:2: expected 4 columns"):
        read_labels(path, 4)


def test_a_second_look_is_no_label(tmp_path):
    """A pair that its labeller saw twice would count as contradicted, and be lost."""
    path = tmp_path / "labels.jsonl"
    row = '{"query_id": "q1", "chunk_id": "d1", "labeller": "ann", "grade": %d, "look": %d}\n'
    path.write_text(row % (3, 1) + row % (1, 2))

    assert read_labels(path, 4).grades() == {PairKey("q1", "d1"): 3}


def test_a_label_that_settles_a_disagreement_counts_alone(tmp_path):
    """It has a third look, and was left out: people's mean stayed at what they had disagreed on."""
    path = tmp_path / "labels.jsonl"
    rows = [
        {"labeller": "Ann", "grade": 0, "look": 1},
        {"labeller": "Bob", "grade": 1, "look": 1},
        {"labeller": "Cyd", "grade": 3, "look": 3, "decides": True},
    ]
    path.write_text(
        "".join(json.dumps({"query_id": "q1", "chunk_id": "d1", **r}) + "\n" for r in rows)
    )

    found = read_labels(path, 4)

    assert found.all_grades() == {PairKey("q1", "d1"): [3]}
    assert sorted(found.by_labeller) == ["Ann", "Bob"]


@pytest.mark.parametrize("grades", [(3, 0), (0, 3)])
def test_a_pair_that_is_settled_in_two_ways_is_not_settled(tmp_path, grades):
    """The first row of the file decided what judges were held against."""
    path = tmp_path / "labels.jsonl"
    rows = [
        {"labeller": "Ann", "grade": 1, "look": 1},
        *({"labeller": "Bob", "grade": grade, "look": 3, "decides": True} for grade in grades),
    ]
    path.write_text(
        "".join(json.dumps({"query_id": "q1", "chunk_id": "d1", **r}) + "\n" for r in rows)
    )

    found = read_labels(path, 4)

    assert found.all_grades() == {PairKey("q1", "d1"): [1]}
    assert found.skipped == {CONTRADICTED: 2}


@pytest.mark.parametrize(
    ("source", "grade", "reason"),
    [("human", 3, "source is no person"), ("judge", 1, "source is not the judge")],
)
def test_rows_of_another_source_are_left_out_and_counted(tmp_path, source, grade, reason):
    """A set's judgments hold both: people's passed for the judge's, which agreed by kappa 1.000."""
    path = tmp_path / "judgments.jsonl"
    path.write_text(
        '{"query_id": "q1", "chunk_id": "d1", "grade": 3, "source": "human"}\n'
        '{"query_id": "q1", "chunk_id": "d2", "grade": 1, "source": "judge"}\n'
    )

    found = read_labels(path, 4, source=source)

    assert [found.grades(), found.skipped] == [
        {PairKey("q1", "d1" if grade == 3 else "d2"): grade},
        {reason: 1},
    ]


def test_a_file_without_a_row_of_the_source_is_refused(tmp_path):
    """Grades of a model are no people's."""
    path = tmp_path / "judgments.jsonl"
    path.write_text('{"query_id": "q1", "chunk_id": "d2", "grade": 1, "source": "judge"}\n')

    with pytest.raises(DataError, match="no grade from 0 to 3: source is no person"):
        read_labels(path, 4, source="human")


def test_a_source_of_other_words_is_no_source(tmp_path):
    """A table may say where a text comes from."""
    path = tmp_path / "labels.csv"
    path.write_text("query_id,chunk_id,grade,source\nq1,d1,3,handbook\n")

    assert read_labels(path, 4, source="human").grades() == {PairKey("q1", "d1"): 3}
