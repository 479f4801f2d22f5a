"""What is recorded: command lines in order, on files that are small enough to read."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

DOCUMENTS = {
    "returns.md": (
        "# Returns\n\nA restocking fee is a charge of ten percent for opened furniture.\n\n"
        "## Deadline\n\nUnopened goods go back within thirty days of delivery, free of charge.\n"
    ),
    "shipping.md": (
        "# Shipping\n\nA parcel locker is a public box that takes small deliveries at night.\n\n"
        "## Costs\n\nShipping costs five euros for orders below fifty euros, above it is free.\n"
    ),
    "care.txt": "Beeswax is a natural polish that keeps oak from drying out in heated rooms.\n",
    "hours.md": (
        "# Opening hours\n\nThe workshop is a room in the yard that opens at nine on weekdays.\n\n"
        "## Holidays\n\nOn public holidays the workshop stays closed, and so does the shop.\n"
    ),
}
EDITED = {
    "returns.md": DOCUMENTS["returns.md"].replace("ten percent", "twelve percent"),
    "repairs.md": (
        "# Repairs\n\nA repair voucher is a card that pays for one mended chair or table.\n"
    ),
}
CHUNKS = [
    {"id": "c1", "document": "a.md", "text": "Oil the hinge twice a year with a drop of oil."},
    {"id": "c2", "document": "a.md", "text": "A hinge that squeaks needs oil, not force."},
    {"id": "c3", "document": "b.md", "text": "Keys are cut while you wait, two euros each."},
    {"id": "c4", "document": "b.md", "text": "Locks are changed on Saturdays by appointment."},
    {"id": "c5", "document": "c.md", "text": "The key counter is beside the paint shelf."},
]
GOLDEN = {
    "queries": [
        {
            "id": "q1",
            "query": "hinge squeaks what to do",
            "relevant_doc_ids": ["c1", "c2"],
            "graded_relevance": {"c1": 2, "c2": 3},
            "expected_answer": "Oil it.",
        },
        {"id": "q2", "query": "what does a key cost", "relevant_doc_ids": ["c3"]},
        {"id": "q3", "query": "when are locks changed", "relevant_doc_ids": ["c4"]},
        {"id": "q4", "query": "where is the key counter", "relevant_doc_ids": ["c5", "c3"]},
    ]
}
RUNS = {
    "old": {"q1": ["c2", "c5", "c1"], "q2": ["c5", "c3"], "q3": ["c3", "c4"], "q4": ["c1", "c5"]},
    "new": {"q1": ["c2", "c1"], "q2": ["c3", "c4"], "q3": ["c4"], "q4": ["c5", "c3"]},
}
LOG = [
    {"query": "hinge squeaks what to do", "retrieved": ["c2", "c4"]},
    {"query": "do you sell paint", "retrieved": ["c5"]},
    {"query": "do you sell paint", "retrieved": ["c5"]},
]
ANSWERS = [
    {"query_id": "q1", "answer": "Oil it.", "chunk_ids": ["c2"]},
    {"query_id": "q2", "answer": "Nine euros, and a dog goes with it.", "chunk_ids": ["c3"]},
]
PAIRS = [
    {"query_id": "p1", "query": "What is beeswax?", "chunk_id": "a", "text": "Beeswax is wax."},
    {"query_id": "p1", "query": "What is beeswax?", "chunk_id": "b", "text": "Oak is a tree."},
]
MODEL = "--model m"
"""How a command names the model, whose address is in the environment."""


@dataclass(frozen=True, slots=True)
class Act:
    """Command lines that follow one another in one folder; a function changes files between."""

    name: str
    steps: tuple[str | Callable[[Path], None], ...]
    kept: tuple[str, ...] = ()
    """Files whose bytes must stay as they are, by pattern."""
    needs_replies: bool = False
    """Whether a model is asked, whose replies come from the recorded ones."""


def write_files(folder: Path) -> None:
    """Write everything that the command lines read."""
    _documents(folder, DOCUMENTS)
    rows = {"log.jsonl": LOG, "answers.jsonl": ANSWERS, "pairs.jsonl": PAIRS}
    for name, listed in rows.items():
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in listed))
    for name, value in {"chunks.json": CHUNKS, "golden.json": GOLDEN, **_runs()}.items():
        (folder / name).write_text(json.dumps(value))
    (folder / "broken.jsonl").write_text('{"query_id": "q1"\n')
    (folder / "empty.jsonl").write_text("")


def _runs() -> dict[str, object]:
    return {f"{name}.json": rankings for name, rankings in RUNS.items()}


def _documents(folder: Path, texts: Mapping[str, str]) -> None:
    (folder / "docs").mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")


def _edit(folder: Path) -> None:
    """Change one document, add one and remove one."""
    _documents(folder, EDITED)
    (folder / "docs" / "care.txt").unlink()


def _answer(folder: Path) -> None:
    """Answer each query of the set with its chunk's text, the last one wrongly."""
    lines = (folder / "set" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line) for line in lines]
    answers = [
        {
            "query_id": query["query_id"],
            "answer": query["expected_answer"] or "That is not told.",
            "chunk_ids": query["source_chunk_ids"],
        }
        for query in queries
    ]
    answers[-1]["answer"] = "Four hundred lighthouses stand on the northern coast."
    rows = "".join(f"{json.dumps(answer)}\n" for answer in answers)
    (folder / "answers.jsonl").write_text(rows, encoding="utf-8")


_SET_FILES = ("chunks", "documents", "queries", "judgments", "pool", "plan", "rejected")
_KEPT = tuple(f"set/**/{name}.jsonl" for name in _SET_FILES)

ACTS = (
    Act(
        "offline",
        (
            "chunk docs --out chunks.jsonl",
            "generate --documents docs -n 4 --out set --dry-run",
            "generate --documents docs -n 4 --out set",
            "generate --documents docs -n 4 --out set --json",
            "retrieve --dataset set --retriever bm25",
            "retrieve --dataset set --retriever chargram -k 3 --json",
            "runs list --dataset set",
            "judge --dataset set --depth 3",
            "judge --dataset set --complete --json",
            "evaluate --dataset set",
            "evaluate --dataset set --json --per-query",
            "compare --dataset set bm25 chargram",
            "compare --dataset set bm25 chargram --json",
            "gate --dataset set --run bm25 --min nDCG@10=0.2",
            "gate --dataset set --run bm25 --min nDCG@10=0.2 --allow-baseline-judge --allow-few",
            "gate --dataset set --run bm25 --min RR=0.99 --allow-baseline-judge --allow-few --json",
            "gate --dataset set --run bm25 --write-baseline b.json --allow-baseline-judge",
            "history --dataset set",
            "worst --dataset set -n 2",
            "report --dataset set --out report.md",
            "report --dataset set --json",
            "validate --dataset set",
            "diff --dataset set --since 1",
            "export --dataset set --as trec --out trec",
            "export --dataset set --as json --out out.json",
            "review export --dataset set --out review.csv --reviewer Ann",
            _edit,
            "refresh --documents docs --dataset set --dry-run",
            "refresh --documents docs --dataset set",
            "refresh --documents docs --dataset set --accept-churn --json",
            "refresh --documents docs --dataset set",
            "diff --dataset set --since 1",
            "evaluate --dataset set",
            "retrieve --dataset set --retriever bm25",
            "evaluate --dataset set -m RR -m P@3 --interval",
            "history --dataset set --json",
            "validate --dataset set --json",
            "judge --pairs pairs.jsonl --out judged.jsonl",
            "judge --pairs pairs.jsonl --out judged.jsonl --json --per-query",
            "prompts list",
            "prompts render judge_relevance --pairs pairs.jsonl",
            "schema Judgment",
            "schedule cron --dataset set --directory /srv --program /opt/ragforge/bin/ragforge",
            "config",
            "help measures",
            "--help",
        ),
        (*_KEPT, "trec/*", "out.json", "review.csv"),
    ),
    Act(
        "files",
        (
            "import golden.json --chunks chunks.json --out set",
            "import golden.json --chunks chunks.json --out set --json",
            "validate --dataset set",
            "evaluate --qrels golden.json --run old.json --run new.json",
            "evaluate --qrels golden.json --run old.json --json --per-query",
            "compare --qrels golden.json --run old.json --run new.json -m RR",
            "retrieve --dataset set --retriever bm25",
            "evaluate --dataset set",
            "gate --dataset set --run bm25 --min RR=0.2",
            "worst --dataset set --below 0.9",
            "report --dataset set --out report.md",
            "answer --dataset set --answers answers.jsonl --name mine",
            "answer --dataset set --answers answers.jsonl --name mine --json",
            "ground --dataset set --system-name mine --out grounded.jsonl",
            "gate --dataset set --answers mine --min correct=0 --allow-baseline-judge --allow-few",
            "compare --dataset set --answers mine other",
            "import --logs log.jsonl --dataset set",
            "export --dataset set --as beir --out beir",
            "evaluate --qrels broken.jsonl --run old.json",
            "evaluate --qrels empty.jsonl --run old.json",
            "evaluate --qrels golden.json --run old.json -m nDGC@10",
            "evaluate --qrels nowhere.json --run old.json",
            "retrieve --dataset set --retriever bm52",
            "judge --dataset set --votes 3 --model m",
            "gate --dataset set --run nobody --min RR=1",
            "generate --documents nowhere --out elsewhere",
            "nonsense",
        ),
        (*_KEPT, "beir/*"),
    ),
    Act(
        "model",
        (
            f"generate --documents docs -n 3 --out set {MODEL}",
            "retrieve --dataset set --retriever bm25",
            f"judge --dataset set --depth 3 {MODEL}",
            f"judge --dataset set --depth 3 --again --votes 2 --temperature 0.5 {MODEL}",
            f"judge --pairs pairs.jsonl --out judged.jsonl --batch 2 {MODEL}",
            "evaluate --dataset set",
            "gate --dataset set --run bm25 --min RR=0.1",
            _answer,
            f"answer --dataset set --answers answers.jsonl --name mine {MODEL}",
            f"ground --dataset set --system-name mine --out grounded.jsonl {MODEL}",
            "report --dataset set --out report.md",
            _edit,
            f"refresh --documents docs --dataset set --accept-churn {MODEL}",
            "evaluate --dataset set",
            "cache stats --dataset set",
        ),
        (*_KEPT, "judged.jsonl", "grounded.jsonl", "set/answer_grades/*"),
        needs_replies=True,
    ),
)
