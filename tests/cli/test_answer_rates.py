"""What `ragforge answer` says about a system once its answers are graded."""

import json

import pytest

from ragforge.cli import main


@pytest.fixture
def graded(tmp_path, dataset, capsys):
    """Grade one right answer and one refusal offline, of three queries; return what is printed."""
    lines = (dataset / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    first, second, _ = map(json.loads, lines)
    path = tmp_path / "mine.jsonl"
    rows = [
        {"query_id": first["query_id"], "answer": first["expected_answer"], "chunk_ids": []},
        {"query_id": second["query_id"], "answer": "I do not know.", "chunk_ids": []},
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

    def run(*more):
        capsys.readouterr()
        words = ["answer", "--dataset", str(dataset), "--answers", str(path), "-q", *more]
        assert main(words) == 0
        return capsys.readouterr().out

    return run


def test_rates_are_printed_and_the_file_last(graded, dataset):
    """A script takes the last line; a person reads the others."""
    *shown, last = graded("--verbose").splitlines()

    assert last == str(dataset / "answer_grades" / "mine.jsonl")
    row = next(line for line in shown if "correct given attempted" in line)
    assert row.split()[4:] == ["1.000", "1", "of", "2", "0", "0.500", "to", "1.000"]


def test_json_holds_rates_slices_and_diagnosis(graded):
    """One of two is correct; the third was not answered, so 1 / 3 to 2 / 3 of all are."""
    found = json.loads(graded("--json"))

    correct = found["rates"]["correct"]
    assert (correct["mean"], correct["bound_low"], correct["bound_high"]) == (0.5, 1 / 3, 2 / 3)
    assert found["rates"]["correct_given_attempted"]["mean"] == 1.0
    assert {part["dimension"] for part in found["slices"]} >= {"difficulty", "document"}
    assert len(found["diagnosis"][0]["queries"]) == 3
