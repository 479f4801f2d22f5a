"""A run whose ids the set does not know says nothing of the retriever."""

import pytest

from ragforge.config import EvaluateSettings
from ragforge.evaluating.gate import Rules, Threshold
from ragforge.files.manifest import RunOrigin
from ragforge.files.set.integrity import chunks_digest
from ragforge.files.set.opening import create_dataset
from ragforge.files.set.unknown_hits import unknown_run_text
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.pipeline.gating.verdict import check_run, evaluate_for
from ragforge.records import Chunk, Evidence, Hit, Judgment, Query, Ranking

IDS = [f"c{n:02}" for n in range(30)]
RULES = Rules(least=(Threshold("RR", 0.5),))
SETTINGS = EvaluateSettings(measures=("RR", "EvidenceR@10"))
WHY = "no id is of a chunk or document of"


@pytest.fixture
def dataset(tmp_path):
    """Thirty queries with a relevant chunk each, and a run that finds them."""
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        [Chunk(chunk_id=name, doc_id=f"{name}.md", text=f"Word of {name}.", end=12) for name in IDS]
    )
    made.write_queries(
        [
            Query(
                query_id=f"q{name}",
                query=f"Which word is {name}?",
                evidence=(Evidence(doc_id=f"{name}.md", chunk_id=name, quote=f"of {name}."),),
            )
            for name in IDS
        ]
    )
    made.write_judgments(
        [Judgment(query_id=f"q{name}", chunk_id=name, grade=3, source="human") for name in IDS]
    )
    write(made, "good", lambda name: name)
    return made


def write(dataset, run, named):
    """Write a run of the chunk of each query, by another name."""
    dataset.write_run(
        run,
        [
            Ranking(query_id=f"q{name}", ranking=(Hit(chunk_id=named(name), score=1),))
            for name in IDS
        ],
        RunOrigin(chunks_sha256=chunks_digest(dataset), retriever="own:search"),
    )


def compared(dataset, *runs):
    """Return what is called better, and why nobody is, by each measure."""
    report = compare_runs(dataset, runs, SETTINGS)
    return {item.comparison.measure: (item.better, item.withheld) for item in report.items}


def gated(dataset, run):
    return check_run(dataset, evaluate_for(RULES, dataset, run, EvaluateSettings()), RULES)


def test_a_run_with_other_names_for_all_loses_to_nobody(dataset):
    """It found the same documents, with a path in front, and lost by 1.000."""
    write(dataset, "path", lambda name: f"/srv/data/{name}.md")

    found = compared(dataset, "good", "path")

    assert [better for better, _ in found.values()] == [None, None]
    assert all(f"run path: {WHY}" in why for _, why in found.values())
    assert "it holds '/srv/data/c00.md'" in found["RR"][1]
    assert "the set has 'c00' of 'c00.md'" in found["RR"][1]


def test_a_gate_refuses_a_run_with_other_names_for_all(dataset):
    """FAIL would say that the retriever is bad."""
    write(dataset, "path", lambda name: f"/srv/data/{name}.md")

    verdict = gated(dataset, "path")

    assert verdict.outcome == "REFUSED"
    assert WHY in verdict.refusals[0].reason


@pytest.mark.parametrize("named", [lambda _: "x", lambda _: "x.md"])
def test_a_run_of_known_chunks_that_are_not_relevant_loses(dataset, named):
    """It searched this corpus, and found nothing."""
    other = Chunk(chunk_id="x", doc_id="x.md", text="Nothing.", end=8)
    dataset.write_chunks([*dataset.chunks(), other])
    write(dataset, "good", lambda name: name)
    write(dataset, "bad", named)

    assert compared(dataset, "good", "bad")["RR"] == ("good", "")
    assert gated(dataset, "bad").outcome == "FAIL"


def test_a_run_with_one_known_hit_is_measured(dataset):
    """Its ids are those of the set; an index may be ahead of it."""
    write(dataset, "ahead", lambda name: "c01" if name == "c00" else f"new-{name}")

    assert compared(dataset, "good", "ahead")["RR"] == ("good", "")


def test_a_label_of_an_unknown_id_is_known_by_its_label(dataset):
    """Who keeps ids that the corpus lacks can have runs of them."""
    assert unknown_run_text(dataset, {"qc00": ["elsewhere"]}, {"qc00": {"elsewhere": 3}}) == ""


def test_labels_of_ids_that_the_set_lacks_say_nothing_of_a_run_s(dataset):
    """Neither are of the corpus; which of them is wrong nobody can tell."""
    assert unknown_run_text(dataset, {"qc00": ["one"]}, {"qc00": {"other": 3}}) == ""


def test_a_run_that_found_nothing_has_no_wrong_names(dataset):
    """It is as bad as it looks."""
    assert unknown_run_text(dataset, {"qc00": []}, {"qc00": {"c00": 3}}) == ""
