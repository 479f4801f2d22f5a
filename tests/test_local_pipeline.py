"""The paid path on a real llama.cpp server with a very small real model.

What is checked is the protocol: records, usage, concurrency, failures. The model knows nothing.
"""

import json
import sqlite3

import pytest

from ragforge.cli import main
from ragforge.files.record_files import read_records
from ragforge.files.set.dataset import Dataset
from ragforge.records import Failure, Judgment

pytestmark = pytest.mark.local_model

TEXTS = (
    "Beeswax is a natural polish. It keeps oak from drying out in heated rooms.",
    "A restocking fee of ten percent applies to opened furniture that is sent back.",
    "Parcels up to thirty kilograms go to parcel lockers, which are open day and night.",
)


@pytest.fixture
def model(smollm2_path):
    """The flags that name the small model, with short replies."""
    words = ["--model", f"local:{smollm2_path}", "--max-output-tokens", "120", "-q"]
    return [*words, "--concurrency", "3"]


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_pairs_are_judged_or_failed_one_by_one(tmp_path, model):
    """Every pair comes out, as a grade by the schema or as a named failure."""
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "judged.jsonl"
    lines = [
        {"query_id": "q", "query": "What keeps oak from drying?", "chunk_id": f"c{n}", "text": text}
        for n, text in enumerate(TEXTS)
    ]
    pairs.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    main(["judge", "--pairs", str(pairs), "--out", str(out), *model])

    judged = list(read_records(out, Judgment))
    beside = tmp_path / "judged.jsonl.failures.jsonl"
    failed = list(read_records(beside, Failure)) if beside.exists() else []
    assert [item.chunk_id for item in judged] == ["c0", "c1", "c2"]
    assert [item.failure for item in judged if item.grade is None] == [f.kind for f in failed]
    assert {item.provenance.kind for item in judged if item.provenance} <= {"llm"}


def test_usage_is_counted_and_replies_are_kept(tmp_path, model):
    """The ledger is only as good as what the server reports."""
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "judged.jsonl"
    line = {"query_id": "q", "query": "What is wax?", "chunk_id": "c", "text": TEXTS[0]}
    pairs.write_text(json.dumps(line), encoding="utf-8")

    main(["judge", "--pairs", str(pairs), "--out", str(out), *model])

    store = sqlite3.connect(tmp_path / ".ragforge" / "calls.sqlite")
    found = store.execute("SELECT model, prompt_tokens, completion_tokens FROM calls").fetchall()
    store.close()
    assert found
    assert all(name.startswith("SmolLM2") for name, _, _ in found)
    assert all(prompt > 300 and completion > 0 for _, prompt, completion in found)


def test_generate_judge_and_answer_make_a_valid_dataset(tmp_path, model, capsys):
    """The whole path must end in files that hold to their formats, however poor the model."""
    documents, out = tmp_path / "docs", tmp_path / "set"
    documents.mkdir()
    for number, text in enumerate(TEXTS):
        (documents / f"{number}.md").write_text(f"# Topic {number}\n\n{text}\n", encoding="utf-8")
    dataset = Dataset(out)

    main(
        [
            "generate",
            "--documents",
            str(documents),
            "-n",
            "1",
            "--out",
            str(out),
            *model,
            "--per-call",
            "1",
            "--max-calls",
            "4",
        ]
    )
    golden = tmp_path / "golden.jsonl"
    row = {"query_id": "h1", "query": "What does it cost to return an opened sofa?"}
    golden.write_text(
        json.dumps({**row, "expected_answer": "Ten percent.", "relevant": []}), encoding="utf-8"
    )
    main(["import", str(golden), "--dataset", str(out), "-q"])
    main(["retrieve", "--dataset", str(out), "--retriever", "bm25", "-k", "1", "-q"])
    main(["judge", "--dataset", str(out), "--depth", "1", *model])
    answers = tmp_path / "rag.jsonl"
    answer = {"query_id": "h1", "answer": "A fee of ten percent.", "chunk_ids": []}
    answers.write_text(json.dumps(answer), encoding="utf-8")
    main(["answer", "--dataset", str(out), "--answers", str(answers), *model])

    assert main(["validate", "--dataset", str(out)]) == 0
    pooled = {
        (ranking.query_id, hit.chunk_id)
        for ranking in dataset.run("bm25")
        for hit in ranking.ranking
    }
    assert pooled <= {(item.query_id, item.chunk_id) for item in dataset.judgments()}
    assert [grade.query_id for grade in dataset.answer_grades("rag")] == ["h1"]
    assert dataset.manifest.spent.completion_tokens > 0
