from pathlib import Path

import lancedb
from my_models import embed  # yours

import ragforge as rf

pieces = [(t, str(p)) for p in Path("docs").rglob("*.md") for t in p.read_text().split("\n\n")]
vectors = embed(text for text, _ in pieces)
rows = [{"vector": v, "text": t, "source": s} for v, (t, s) in zip(vectors, pieces, strict=True)]
table = lancedb.connect("lance").create_table("docs", rows, mode="overwrite")
rf.open("my-set").retrieve(
    lambda query, k: table.search(embed([query])[0]).metric("cosine"), name="lance", k=5
)
