"""Judging runs on a set whose pools were judged when it was generated."""

import json

import pytest
from nights import Night
from pipeline.generation.making import PAGE, at, endpoint, generate, pages, problems, run, stages

from ragforge.files.set.dataset import Dataset


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A set with judged pools and a run that found other chunks as well."""
    out = tmp_path_factory.mktemp("searched") / "set"
    with endpoint() as running:
        assert generate(out, *at(running), n=4).code == 0
        words = ["retrieve", "--dataset", str(out), "--retriever", "chargram", "-k", "40"]
        assert run([*words, "-q"]).code == 0
        yield out, running


def protocols(out):
    lines = (out / "judgments.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["provenance"]["protocol"] for row in rows if row["source"] == "judge"}


def test_holes_are_judged_like_the_pools(searched):
    """Grades of two protocols in one set would look like a difference of retrievers."""
    out, running = searched

    done = run(["judge", "--dataset", str(out), "--depth", "40", *at(running)])

    assert done.code == 0
    assert "judged like the pools of this set, batch 10 x 1" in done.err
    assert {name.removesuffix(", alone") for name in protocols(out)} == {"batch 10 x 1"}
    assert problems(out) == []


def test_who_says_how_to_judge_is_heard(searched):
    """`--again` replaces what was judged in another way."""
    out, running = searched

    done = run(["judge", "--dataset", str(out), "--depth", "40", "--again", *at(running)])

    assert "judged like the pools" not in done.err
    assert done.code == 0


def test_a_copy_of_what_holds_the_evidence_has_its_grade(tmp_path):
    """A retriever that returns the other of two equal pages has found the answer as well."""
    documents, out = pages(tmp_path / "documents", "one.md", "two.md"), tmp_path / "set"

    with endpoint() as running:
        generate(out, *at(running), "--types", "fact=100", n=1, documents=documents)
        judged = [stage for stage in stages(running) if stage == "judge"]

    found = {(one.chunk_id, one.grade, one.source) for one in Dataset(out).judgments()}
    assert {(grade, source) for _, grade, source in found} == {(3, "evidence")}
    assert (len(found), judged) == (2, [])


def test_copies_keep_their_grades_under_other_chunks_and_back(tmp_path):
    """A set that is cut otherwise for a trial is what it was when it is cut as before."""
    documents, out = pages(tmp_path / "documents", "one.md", "two.md"), tmp_path / "set"
    with endpoint() as running:
        generate(out, *at(running), "--types", "fact=100", n=1, documents=documents)
    before = (out / "judgments.jsonl").read_bytes()
    assert before.count(b'"copied_from":"c_') == 1

    for size in ((), ("--max-chars", "100"), ()):
        generate(out, "--rederive", *size, documents=documents)

    assert (out / "judgments.jsonl").read_bytes() == before


def test_what_reads_the_same_under_other_titles_is_judged(tmp_path):
    """The title may be what says which product "it" is."""
    chunks, out = tmp_path / "chunks.jsonl", tmp_path / "set"
    rows = [
        {"chunk_id": name, "doc_id": name, "text": PAGE, "heading_path": [name]}
        for name in ("Alpha", "Beta")
    ]
    chunks.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    with endpoint() as running:
        words = ["generate", "--chunks", str(chunks), "-n", "1", "--out", str(out)]
        run([*words, *at(running), "--types", "fact=100"])
        judged = [stage for stage in stages(running) if stage == "judge"]

    assert sorted(one.source for one in Dataset(out).judgments()) == ["evidence", "judge"]
    assert judged == ["judge"]


def test_a_new_copy_has_the_grade_of_one_whose_original_has_changed(tmp_path):
    """The page with the evidence was edited since; what the others say of it is as it was."""
    night, more = Night(tmp_path), "\n## Damage\n\nSend a picture of it within a day.\n"
    pages(night.docs, "one.md", "two.md")
    with endpoint() as running:
        generate(night.set, *at(running), "--types", "fact=100", n=1, documents=night.docs)
        [query] = night.queries.values()
        home = query.evidence[0].doc_id
        [other] = {"one.md", "two.md"} - {home}
        night.edit(home, lambda text: f"{text}{more}")
        assert night.refresh(*at(running)).code == 0
        (night.docs / "three.md").write_bytes((night.docs / other).read_bytes())
        assert night.refresh(*at(running)).code == 0

    grades = [(one.grade, one.source) for one in night.dataset.judgments()]
    assert grades == [(3, "evidence")] * 3
