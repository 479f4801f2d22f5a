"""Gating a run against a baseline of other chunks."""

import re

import pytest

import ragforge as rf
from ragforge.files.set.opening import open_dataset
from ragforge.records import Judgment, Provenance
from tests.evidence_sets import random_set

JUDGE = Provenance(kind="llm", model="m", prompt="judge_relevance", prompt_sha256="ab" * 32)


@pytest.fixture
def handle(tmp_path):
    """A set whose one judge graded all that a run of its chunks and one of other texts hold."""
    made = random_set(tmp_path / "set", 5, n_queries=40)
    pairs = {
        (ranking.query_id, hit.chunk_id): at % 4
        for name in ("own", "cut")
        for ranking in made.run(name)
        for at, hit in enumerate(ranking.ranking)
    }
    made.write_judgments(
        Judgment(query_id=query_id, chunk_id=chunk_id, grade=grade, provenance=JUDGE)
        for (query_id, chunk_id), grade in pairs.items()
    )
    return rf.open(tmp_path / "set")


def baseline_of(handle, run, path, **least):
    handle.gate(run, min=least or {"RR": 0.01}, allow=["holes"], write_baseline_to=path)
    return path


@pytest.mark.parametrize(("before", "now"), [("own", "cut"), ("cut", "own")])
def test_a_drop_by_grades_is_refused_for_the_chunks(handle, tmp_path, before, now):
    """Grades that are bought make the two no more alike: no text is in both."""
    file = baseline_of(handle, before, tmp_path / "baseline.json")

    refusal = handle.gate(now, max_drop={"RR": 0.1}, baseline=file, allow=["holes"]).reasons[0]

    assert refusal == (
        "the runs have different chunks, and RR of each go by the grades of its own: a difference "
        "may be one of the chunks alone; EvidenceR@10, TokenR@10, TokenP@10, TokenIoU@10 do not "
        "depend on them: `--max-drop EvidenceR@10=…` can be decided, once `ragforge gate --dataset "
        f"{handle.path} --run {before} --min EvidenceR@10=0 --write-baseline FILE` made the "
        "baseline anew"
    )


def test_the_rule_that_the_refusal_names_decides(handle, tmp_path):
    """Advice is worth what following it gives."""
    file = baseline_of(handle, "own", tmp_path / "baseline.json", **{"EvidenceR@10": 0.0})

    refusal = handle.gate("cut", max_drop={"RR": 0.1}, baseline=file, allow=["holes"]).reasons[0]
    verdict = handle.gate("cut", max_drop={"EvidenceR@10": 0.3}, baseline=file)

    assert refusal.endswith("`--max-drop EvidenceR@10=…` can be decided")
    assert verdict.outcome == "PASS"
    assert "scored again" not in verdict.table()


def test_a_run_of_other_texts_is_held_against_its_own_earlier_one(handle, tmp_path):
    """What is cut alike is compared by grades, whatever the chunks of the set are."""
    file = baseline_of(handle, "cut", tmp_path / "baseline.json")

    verdict = handle.gate("cut", max_drop={"RR": 0.1}, baseline=file, allow=["holes"])

    assert verdict.outcome == "PASS"


def test_earlier_texts_that_nobody_has_any_more_are_not_called_other_chunks(handle, tmp_path):
    """They may be the same pieces of documents that changed since."""
    file = baseline_of(handle, "cut", tmp_path / "baseline.json")
    dataset = open_dataset(handle.path)
    held = {hit.chunk_id for ranking in dataset.run("cut") for hit in ranking.ranking}
    others = [item for item in dataset.retrieved_texts() if item.chunk_id not in held]
    dataset.write_retrieved_texts(others)

    verdict = handle.gate("own", max_drop={"RR": 0.1}, baseline=file, allow=["holes"])

    assert "different chunks" not in " ".join(verdict.reasons)


CHUNKS = [
    {
        "chunk_id": f"c{number:02}",
        "doc_id": f"{number:02}.md",
        "text": f"Valve {number} opens at {100 + 7 * number} degrees. It closes again by itself.",
    }
    for number in range(30)
]


def without_evidence(path, *labels):
    """Return a set with 30 labels, a run of its chunks and two of parts of them."""
    rows = [
        {"id": f"q{number:02}", "question": f"When does valve {number} open?", "relevant": [label]}
        for number, label in enumerate(labels)
    ]
    made = rf.from_queries(rows, chunks=CHUNKS, out=path / "set", quiet=True)

    def order(query, rank):
        number = int(re.findall(r"\d+", query)[0])
        found = [CHUNKS[(number + step) % 30] for step in range(1, 6)]
        return [*found[:rank], CHUNKS[number], *found[rank:]]

    def part(chunk):
        return {"text": chunk["text"].split(". ")[0], "document": chunk["doc_id"]}

    made.retrieve(lambda query, k: [of["chunk_id"] for of in order(query, 0)], name="own")
    made.retrieve(lambda query, k: [part(of) for of in order(query, 0)], name="parts")
    made.retrieve(lambda query, k: [part(of) for of in order(query, 3)], name="worse")
    return made


def test_runs_are_held_against_each_other_however_they_cut_labelled_documents(tmp_path):
    """Chunks count as their documents there, as `compare` has it."""
    handle = without_evidence(tmp_path, *(chunk["doc_id"] for chunk in CHUNKS))
    file = baseline_of(handle, "own", tmp_path / "baseline.json")

    found = [handle.gate(run, max_drop={"RR": 0.1}, baseline=file) for run in ("parts", "worse")]

    assert [verdict.outcome for verdict in found] == ["PASS", "FAIL"]


def test_evidence_is_not_advised_where_no_query_has_any(tmp_path):
    """A rule by it has no value there, and the baseline anew would be refused."""
    handle = without_evidence(tmp_path, *(chunk["chunk_id"] for chunk in CHUNKS))
    file = baseline_of(handle, "own", tmp_path / "baseline.json")

    refusal = handle.gate("parts", max_drop={"RR": 0.1}, baseline=file, allow=["holes"]).reasons[0]

    assert refusal == (
        "the runs have different chunks, and RR of each go by the grades of its own: a difference "
        "may be one of the chunks alone; measures of evidence do not depend on them, and no query "
        "has any"
    )
