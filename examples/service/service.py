"""A RAG service in FastAPI: `uvicorn service:app --port 8001`, then `sh evaluate.sh`.

The retriever finds paragraphs by shared words and the answer is the best of them: put your index
and your model in their places.
"""

from pathlib import Path

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
PARTS = [
    (path.name, part)
    for path in sorted(Path("documents").glob("*.md"))
    for part in path.read_text(encoding="utf-8").split("\n\n")
    if not part.startswith("#")
]


class Question(BaseModel):
    """What ragforge sends."""

    query: str
    k: int = 5


def ranked(query: str, k: int) -> list[tuple[str, str]]:
    """Return the parts that share most words with the query."""
    words = set(query.lower().strip("?").split())
    return sorted(PARTS, key=lambda part: -len(words & set(part[1].lower().split())))[:k]


@app.post("/search")
def search(question: Question) -> dict[str, list[dict[str, str]]]:
    """Return passages, best first."""
    found = ranked(question.query, question.k)
    return {"results": [{"document": name, "text": text} for name, text in found]}


@app.post("/answer")
def answer(question: Question) -> dict[str, object]:
    """Return an answer with what it was made of."""
    found = ranked(question.query, question.k)
    return {"answer": found[0][1], "contexts": [text for _, text in found]}
