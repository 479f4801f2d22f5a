import json
from dataclasses import replace

import pytest
from label_samples import HOSTILE

from ragforge.errors import DataError
from ragforge.files.formats.label_rows import (
    LABEL_FORMS,
    LabelRow,
    read_label_rows,
    write_label_rows,
)

ROWS = [
    LabelRow("q1", "c1", 2, "Ann", seconds=4.5, at="2026-01-02T03:04:05+00:00", query="Why?"),
    LabelRow("q1", "c1", 0, "Bob, of =Sales", text_sha256="ab", passage=HOSTILE),
    LabelRow("q1", "c1", 1, "Ann", look=3, decides=True),
    LabelRow("q2", "=c,1", None, "Ann", skipped=True, seconds=1.5),
    LabelRow("q3", "c1", text_sha256="cd"),
]


def plain(rows):
    """Return what is read of rows, without texts and places."""
    return [
        replace(row, query="", before="", passage="", where="", grade=str(row.grade))
        for row in rows
    ]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_rows_come_back_as_they_were(form, tmp_path):
    """Nothing is lost in a table."""
    path = tmp_path / f"labels.{form}"
    written = write_label_rows(path, form, ROWS)
    expected = [
        replace(row, grade="" if form == "csv" and row.grade is None else row.grade) for row in ROWS
    ]

    assert (written.n_labels, written.n_open, written.lost) == (4, 1, ())
    assert plain(read_label_rows(path)) == plain(expected)


@pytest.mark.parametrize(
    ("form", "lost"),
    [
        ("label-studio", ("1 skips",)),
        ("argilla", ("1 skips", "1 times spent", "1 dates")),
    ],
)
def test_what_a_tool_cannot_hold_is_counted(form, lost, tmp_path):
    """Who brings labels back must know what is missing."""
    path = tmp_path / "labels.json"

    assert write_label_rows(path, form, ROWS).lost == lost


def test_label_studio_gives_all_back_but_skips(tmp_path):
    """A task holds a pair, its annotations the labels."""
    path = tmp_path / "labels.json"
    write_label_rows(path, "label-studio", ROWS)

    found = plain(read_label_rows(path))

    both = replace(ROWS[0], text_sha256=""), replace(ROWS[1], text_sha256="")
    assert found[:3] == plain([*both, ROWS[2]])
    assert [(row.query_id, row.is_open) for row in found[3:]] == [("q2", False), ("q3", False)]


def test_argilla_gives_names_and_grades_back(tmp_path):
    """Its users have ids alone; their names go along."""
    path = tmp_path / "labels.json"
    write_label_rows(path, "argilla", ROWS)

    found = [(row.query_id, row.labeller, row.grade, row.look) for row in read_label_rows(path)]

    assert found == [
        ("q1", "Ann", "2", 1),
        ("q1", "Bob, of =Sales", "0", 1),
        ("q1", "Ann", "1", 3),
        ("q2", "", None, 1),
        ("q3", "", None, 1),
    ]


def test_label_studio_as_the_server_exports_it_is_read(tmp_path):
    """What people click there has users, dates and cancelled tasks."""
    task = {
        "id": 7,
        "data": {"query_id": "q1", "chunk_id": "c1", "look": 1, "query": "Why?", "passage": "So."},
        "annotations": [
            {
                "completed_by": {"id": 4, "email": "ann@example.org"},
                "was_cancelled": False,
                "lead_time": 12.25,
                "updated_at": "2026-03-09T22:16:08.728353Z",
                "result": [
                    {
                        "from_name": "grade",
                        "to_name": "passage",
                        "type": "choices",
                        "value": {"choices": ["3"]},
                        "origin": "manual",
                    }
                ],
            },
            {"completed_by": 5, "was_cancelled": True, "result": []},
        ],
        "predictions": [],
        "project": 83,
    }
    path = tmp_path / "export.json"
    path.write_text(json.dumps([task]), encoding="utf-8")

    first, second = read_label_rows(path)

    assert (first.labeller, first.grade, first.seconds) == ("ann@example.org", "3", 12.25)
    assert (second.labeller, second.skipped, second.is_open) == ("5", True, False)


def test_label_studio_in_short_is_read(tmp_path):
    """JSON-MIN has a flat row a label."""
    row = {
        "query_id": "q1",
        "chunk_id": "c1",
        "look": 1,
        "grade": "2",
        "annotator": 4,
        "lead_time": 3.5,
        "updated_at": "2026-03-09T22:16:08Z",
    }
    path = tmp_path / "min.json"
    path.write_text(json.dumps([row]), encoding="utf-8")

    [found] = read_label_rows(path)

    assert (found.labeller, found.grade, found.seconds) == ("4", "2", 3.5)


@pytest.mark.parametrize("form", LABEL_FORMS)
def test_no_form_tells_stratum_or_probability(form, tmp_path):
    """They tell what the judge said to who labels the file."""
    path = tmp_path / "labels"
    write_label_rows(path, form, ROWS)
    text = path.read_text("utf-8")

    assert ("stratum" in text, "probability" in text) == (False, False)


def test_no_cell_is_a_formula(tmp_path):
    """A spreadsheet runs what begins with an equals sign."""
    path = tmp_path / "labels.csv"
    write_label_rows(path, "csv", [LabelRow("=q", "@c", 1, "-Ann", passage="=cmd|' /C calc'!A0")])
    row = path.read_text("utf-8-sig").splitlines()[1]

    assert row.startswith('"\'=q","\'@c"')
    assert "\"'=cmd|" in row
    assert [found.query_id for found in read_label_rows(path)] == ["=q"]


@pytest.mark.parametrize(
    "text",
    ['[{"data": {"text": "a"}, "annotations": []}]', '{"query_id": "q1", "grade": 2}', "a,b\n1,2"],
)
def test_files_without_ids_are_refused(text, tmp_path):
    """A label on nobody knows what is none."""
    path = tmp_path / ("labels.csv" if text.startswith("a") else "labels.json")
    path.write_text(text, encoding="utf-8")

    with pytest.raises(DataError, match="none of the shapes accepted"):
        read_label_rows(path)
