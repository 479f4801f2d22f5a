from pathlib import Path

import chromadb
from my_models import chroma_embeddings  # or leave it to Chroma

import ragforge as rf

pieces = [(t, str(p)) for p in Path("docs").rglob("*.md") for t in p.read_text().split("\n\n")]
texts, sources = zip(*pieces, strict=True)
client = chromadb.EphemeralClient()
collection = client.create_collection("docs", embedding_function=chroma_embeddings())
ids = [str(number) for number in range(len(texts))]
collection.add(ids, documents=list(texts), metadatas=[{"source": source} for source in sources])
rf.open("my-set").retrieve(collection, name="chroma", k=5)
