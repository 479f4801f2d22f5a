import csv
import io
import json

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.records import Chunk, Evidence, Judgment, Query


def run(capsys, *words):
    code = main(["review", *map(str, words)])
    return code, *capsys.readouterr()


@pytest.fixture
def reviewable(tmp_path):
    """A dataset of three queries."""
    quote = Evidence(doc_id="a.md", chunk_id="c1", quote="so it is")
    dataset = create_dataset(tmp_path / "set", {})
    dataset.write_chunks([Chunk(chunk_id="c1", doc_id="a.md", text="so it is")])
    dataset.write_queries(
        Query(query_id=f"q{n}", query=f"Why {n}?", expected_answer="So.", evidence=(quote,))
        for n in range(3)
    )
    dataset.write_judgments([Judgment(query_id="q1", chunk_id="c1", grade=3)])
    return dataset.path


def filled(path, decision):
    text = path.read_bytes().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, "decision": decision} for row in rows)


def test_table_goes_out_and_its_decisions_come_back(reviewable, tmp_path, capsys):
    """This is how a set gets signed."""
    sheet = tmp_path / "review.csv"

    code, out, told = run(capsys, "export", "--dataset", reviewable, "--out", sheet)
    assert (code, out) == (0, f"{sheet}\n")
    assert "3 queries to decide about, 3 drawn at random" in told
    filled(sheet, "approve")
    code, out, told = run(
        capsys, "import", sheet, "--dataset", reviewable, "--reviewer", "Ann", "--json"
    )

    found = json.loads(out)
    assert code == 0
    assert (found["approve"], found["audit"]["n"], found["audit"]["n_right"]) == (3, 3, 3)
    assert open_dataset(reviewable).manifest.audit.reviewers == ("Ann",)


def test_page_is_written_for_a_reviewer(reviewable, tmp_path, capsys):
    """It is sent to somebody by name."""
    page = tmp_path / "review.html"

    code, out, _ = run(
        capsys, "export", "--dataset", reviewable, "--out", page, "--reviewer", "Ann", "--json"
    )

    assert (code, json.loads(out)["queries"]) == (0, 3)
    assert "Review for Ann" in page.read_text(encoding="utf-8")


def test_validate_tells_what_the_audit_found(reviewable, tmp_path, capsys):
    """Whoever takes a set over wants to know who signed it."""
    sheet = tmp_path / "review.csv"
    run(capsys, "export", "--dataset", reviewable, "--out", sheet)
    filled(sheet, "reject")
    run(capsys, "import", sheet, "--dataset", reviewable, "--reviewer", "Ann")

    code = main(["validate", "--dataset", str(reviewable)])

    told = capsys.readouterr()
    assert (code, "0 problems" in told.out) == (0, True)
    assert "0 of 3 right as they were, 0.00 [0.00, 0.56], decided by Ann" in told.err


def test_dry_run_says_so(reviewable, tmp_path, capsys):
    """Nobody should believe that a tried sheet was taken in."""
    sheet = tmp_path / "review.csv"
    run(capsys, "export", "--dataset", reviewable, "--out", sheet)
    filled(sheet, "pin")

    words = ("import", sheet, "--dataset", reviewable, "--reviewer", "Ann", "--dry-run")
    code, _, told = run(capsys, *words)

    assert (code, "nothing written; it would be: pin 3" in told) == (0, True)
    assert open_dataset(reviewable).manifest.audit is None


@pytest.mark.parametrize(
    ("name", "message"), [("a.xlsx", "ends in .csv or .html"), ("there.csv", "is there already")]
)
def test_sheet_goes_to_a_new_file_of_a_known_kind(reviewable, tmp_path, capsys, name, message):
    """A sheet with decisions in it must not be written over."""
    (tmp_path / "there.csv").write_text("mine", encoding="utf-8")

    code, _, told = run(capsys, "export", "--dataset", reviewable, "--out", tmp_path / name)

    assert (code, message in told) == (2, True)
    assert (tmp_path / "there.csv").read_text(encoding="utf-8") == "mine"


def test_faulty_sheet_is_bad_data(reviewable, tmp_path, capsys):
    """A script must be able to tell."""
    sheet = tmp_path / "review.csv"
    sheet.write_text("query_id,revision,decision\nq9,1,approve\n", encoding="utf-8")

    code, _, told = run(capsys, "import", sheet, "--dataset", reviewable, "--reviewer", "Ann")

    assert code == 3
    assert "review.csv:2: query 'q9': is no query of this dataset" in told
    assert "nothing was taken in" in told
