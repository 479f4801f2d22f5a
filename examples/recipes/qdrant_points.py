from pathlib import Path

from my_models import embed  # yours
from qdrant_client import QdrantClient, models

import ragforge as rf

client = QdrantClient(":memory:")
client.create_collection("docs", models.VectorParams(size=256, distance=models.Distance.COSINE))
pieces = [(t, str(p)) for p in Path("docs").rglob("*.md") for t in p.read_text().split("\n\n")]
payloads = [{"text": text, "source": source} for text, source in pieces]
client.upload_collection("docs", embed(text for text, _ in pieces), payloads)
rf.open("my-set").retrieve(
    lambda query, k: client.query_points("docs", embed([query])[0], limit=k), name="qdrant", k=5
)
