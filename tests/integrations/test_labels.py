"""Files of labels are taken by the classes of Label Studio and Argilla, and come back from them."""

import json

import pytest

from ragforge.files.formats.label_rows import (
    LABEL_STUDIO_CONFIG,
    LabelRow,
    read_label_rows,
    write_label_rows,
)

ROWS = [
    LabelRow("q1", "c1", 2, "Ann", seconds=4.5, query="Why?", passage="So <b>it</b> is."),
    LabelRow("q1", "c1", 0, "Bob", query="Why?", passage="So <b>it</b> is."),
    LabelRow("q1", "c1", 1, "Ann", look=3, decides=True, query="Why?", passage="So."),
    LabelRow("q3", "c1", query="When?", passage="Then."),
]
STUDIO = """
import json, sys
from label_studio_sdk.label_interface import LabelInterface

interface = LabelInterface(open("config.xml").read())
interface.validate()
tasks = json.load(open("tasks.json"))
assert all(interface.validate_task({"data": task["data"]}) for task in tasks)
labels = [label for task in tasks for label in task["annotations"]]
assert all(interface.validate_annotation(label) for label in labels)
print(len(tasks), len(labels))
"""
ARGILLA = """
from argilla.records._io import JsonIO

records = JsonIO._records_from_json("records.json")
JsonIO.to_json(records, "back.json")
print(len(records))
"""


@pytest.mark.parametrize("name", ["labels"])
def test_label_studio_takes_tasks_and_labels(python, tmp_path):
    """A task that its interface refuses is found after an hour of setting up."""
    write_label_rows(tmp_path / "tasks.json", "label-studio", ROWS)
    (tmp_path / "config.xml").write_text(LABEL_STUDIO_CONFIG, encoding="utf-8")
    (tmp_path / "check.py").write_text(STUDIO, encoding="utf-8")
    python(tmp_path, "check.py")

    tasks = json.loads((tmp_path / "tasks.json").read_text("utf-8"))
    assert [len(task["annotations"]) for task in tasks] == [2, 1, 0]


@pytest.mark.parametrize("name", ["labels"])
def test_argilla_gives_back_what_it_was_given(python, tmp_path):
    """Its own classes write what is read again."""
    write_label_rows(tmp_path / "records.json", "argilla", ROWS)
    (tmp_path / "check.py").write_text(ARGILLA, encoding="utf-8")
    python(tmp_path, "check.py")

    found = read_label_rows(tmp_path / "back.json")
    assert [(row.labeller, row.grade, row.look) for row in found] == [
        ("Ann", "2", 1), ("Bob", "0", 1), ("Ann", "1", 3), ("", None, 1)
    ]  # fmt: skip
