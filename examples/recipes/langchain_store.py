from pathlib import Path

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from my_models import langchain_embeddings  # or OpenAIEmbeddings()

import ragforge as rf

pages = [Document(p.read_text(), metadata={"source": str(p)}) for p in Path("docs").rglob("*.md")]
pieces = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=60).split_documents(pages)
store = InMemoryVectorStore.from_documents(pieces, langchain_embeddings())
ds = rf.open("my-set")
ds.retrieve(store, name="store", k=5)  # with its scores
ds.retrieve(store.as_retriever(search_kwargs={"k": 5}), name="retriever", k=5)
