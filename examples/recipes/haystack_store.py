from pathlib import Path

from haystack import Document
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

import ragforge as rf

files = Path("docs").rglob("*.md")
pages = [Document(content=p.read_text(), meta={"file_path": str(p)}) for p in files]
store = InMemoryDocumentStore()
store.write_documents(DocumentSplitter("word", 60, 10).run(pages)["documents"])
ds = rf.open("my-set")
ds.retrieve(InMemoryBM25Retriever(store), name="retriever", k=5)
