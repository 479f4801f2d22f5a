"""A retriever of your own: a function from a query and k to the best chunks, best first."""

from pathlib import Path

PARTS = [
    (path.name, part)
    for path in sorted(Path("documents").glob("*.md"))
    for part in path.read_text(encoding="utf-8").split("\n\n")
    if not part.startswith("#")
]


def search(query: str, k: int) -> list[str]:
    """Return the parts that share most words with the query: put your index here."""
    words = set(query.lower().strip("?").split())
    ranked = sorted(PARTS, key=lambda part: -len(words & set(part[1].lower().split())))
    return [text for _, text in ranked[:k]]
