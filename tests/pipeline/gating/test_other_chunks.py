"""Gating a run against a baseline of other chunks."""

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
