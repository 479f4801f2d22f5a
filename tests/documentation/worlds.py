"""What pages begin with: documents, code, files of other tools, and a set with runs and grades."""

import gzip
import json
import re
import shutil
import subprocess

from documentation.reader import DOCS, blocks_of

import ragforge as rf
from ragforge.files.set.dataset import Dataset
from ragforge.files.shipped_folders import shipped

SAMPLE = shipped("datasets") / "helpcentre"
RAG = '''
import re

from my_app.search import new


def ask(query):
    """Answer from the first texts that are found."""
    texts = new(query, 5)
    return {"answer": texts[0], "contexts": texts}


def read(query, contexts):
    """Answer from the texts that are given."""
    words = set(re.findall("[a-z]{4,}", query.lower()))
    told = [line for text in contexts for line in re.split(r"(?<=[.!?])\\s", text)]
    return max(told, key=lambda line: sum(word in line.lower() for word in words), default="")
'''
CUT = '''
def paragraphs(text):
    """Cut at empty lines."""
    return [part for part in text.split("\\n\\n") if part.strip()]
'''
NIGHTLY = """
[corpus]
documents = ["docs/"]
"""


def write_documents(folder):
    """Put the sample's documents there as `docs/`, and the sample itself."""
    shutil.copytree(SAMPLE, folder / "datasets" / "helpcentre")
    shutil.copytree(SAMPLE / "documents", folder / "docs")


def write_app(folder):
    """Put the reader's own code there: two retrievers of the first tutorial, and a RAG system."""
    [searches] = [
        block.text
        for block in blocks_of(DOCS / "tutorials" / "first-set.md")
        if block.text.startswith("# my_app/search.py")
    ]
    (folder / "my_app").mkdir()
    (folder / "my_app" / "search.py").write_text(searches, "utf-8")
    (folder / "my_app" / "rag.py").write_text(RAG, "utf-8")
    (folder / "my_app" / "cut.py").write_text(CUT, "utf-8")


def write_set(reader):
    """Make `my-set` of fifty queries with five runs, graded by the model, and measured twice."""
    for line in (
        "ragforge generate --documents docs/ -n 50 --out my-set -q",
        "ragforge retrieve --dataset my-set --retriever bm25 -q",
        "ragforge retrieve --dataset my-set --retriever chargram -q",
        "ragforge retrieve --dataset my-set --retriever my_app.search:old --name old -q",
        "ragforge evaluate --dataset my-set --run bm25 -q",
        "cp -r my-set ungraded",
        "ragforge retrieve --dataset my-set --retriever my_app.search:new --name new -q",
        "ragforge judge --dataset my-set --depth 10 --model gpt-5-mini -q",
        "ragforge evaluate --dataset my-set -q",
        "ragforge gate --dataset my-set --run old --min RR=0 --write-baseline my-set/baseline.json",
        "ragforge answer --dataset my-set --system my_app.rag:ask --name my-rag --answers-only -q",
        "ragforge import datasets/helpcentre/golden.jsonl --documents docs/ --out labelled-set -q",
    ):
        reader.type(line)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "A set"]):
        subprocess.run([*git, *words], cwd=reader.folder, check=True)


def write_files(folder):
    """Put files of other tools there, made from the set and the sample."""
    dataset = Dataset(folder / "my-set")
    queries = list(dataset.queries())
    chunks = {chunk.chunk_id: chunk for chunk in dataset.chunks()}
    judgments = [each for each in dataset.judgments() if each.grade is not None]
    qrels = [f"{each.query_id} 0 {each.chunk_id} {each.grade}" for each in judgments]
    softer = [
        f"{each.query_id} 0 {each.chunk_id} {max(0, each.grade - at % 2)}"
        for at, each in enumerate(judgments)
    ]
    _write(folder / "people.trec", qrels)
    _write(folder / "qrels.trec", [line for line in qrels if line.split()[2] in chunks])
    for name in ("judge", "a", "b", "c"):
        _write(folder / f"{name}.trec", softer)
    rows = [
        {
            "query_id": each.query_id,
            "chunk_id": each.chunk_id,
            "grade": max(0, each.grade - at % 3),
            "grade_mean": max(0, each.grade - at % 3) + 0.1 * (at % 5),
        }
        for at, each in enumerate(judgments)
    ]
    for name in ("cheap", "dear"):
        _write_rows(folder / f"{name}.jsonl", rows)
    for name in ("bm25", "old", "new", "dense"):
        rankings = rf.open(folder / "my-set").rankings("chargram" if name == "dense" else name)
        _write(folder / f"{name}.trec", _run_lines(rankings, name))
    pairs = [
        {
            "query_id": each.query_id,
            "query": next(q.query for q in queries if q.query_id == each.query_id),
            "chunk_id": each.chunk_id,
            "text": chunks[each.chunk_id].text,
        }
        for each in judgments[:60]
        if each.chunk_id in chunks
    ]
    _write_rows(folder / "pairs.jsonl", pairs)
    answers = [
        {"query_id": each.query_id, "answer": each.expected_answer or "I do not know."}
        for each in queries
    ]
    _write_rows(folder / "answers.jsonl", answers)
    traffic = [
        {
            "query_id": f"t{at}",
            "query": each["query"],
            "answer": re.split(r"(?<=[.])\s", each["text"])[0],
            "contexts": [each["text"]],
        }
        for at, each in enumerate(pairs[:8])
    ]
    for name in ("traffic", "log"):
        _write_rows(folder / f"{name}.jsonl", traffic)
    asked = [{"query": f"What about {word} in week 47?"} for word in _words(folder)]
    _write_rows(folder / "week47.jsonl", asked)
    with gzip.open(folder / "export.jsonl.gz", "wt", encoding="utf-8") as export:
        for page in sorted((folder / "docs").glob("*.md"))[:3]:
            row = {"id": page.name, "text": page.read_text("utf-8"), "format": "md"}
            export.write(json.dumps(row) + "\n")
    logs = [{"queryId": f"l{at}", "query": f"So, {row['query']}"} for at, row in enumerate(traffic)]
    (folder / "logs.json").write_text(json.dumps(logs), "utf-8")
    labels = [
        {"queryId": f"l{at}", "relevant": [each["chunk_id"]]} for at, each in enumerate(pairs[:8])
    ]
    (folder / "labels.json").write_text(json.dumps(labels), "utf-8")
    dense = [line.split() for line in (folder / "dense.trec").read_text().splitlines()]
    table = [f"{query},{chunk},{score}" for query, _, chunk, _, score, _ in dense]
    shutil.copy(folder / "dense.trec", folder / "elastic.trec")
    _write(folder / "vectors.csv", ["query_id,chunk_id,score", *table])
    shutil.copytree(folder / "my-set", folder / "my-sets" / "first")
    golden = [json.loads(line) for line in (SAMPLE / "golden.jsonl").read_text().splitlines()]
    table = ["question,answer"]
    table += [
        ",".join('"' + each[key].replace('"', '""') + '"' for key in ("query", "expected_answer"))
        for each in golden[:30]
    ]
    for name in ("questions", "golden"):
        _write(folder / f"{name}.csv", table)


def _words(folder):
    text = " ".join(page.read_text("utf-8") for page in sorted((folder / "docs").glob("*.md")))
    return sorted(set(re.findall("[a-z]{8,}", text)))[:400]


def _run_lines(rankings, name):
    for ranking in rankings:
        for rank, hit in enumerate(ranking.ranking, start=1):
            yield f"{ranking.query_id} Q0 {hit.chunk_id} {rank} {100 - rank} {name}"


def _write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _write_rows(path, rows):
    _write(path, [json.dumps(row) for row in rows])
