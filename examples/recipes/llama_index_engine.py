from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from my_models import llama_index_embeddings, llama_index_model  # or OpenAI's

import ragforge as rf

nodes = SentenceSplitter(chunk_size=128, chunk_overlap=20)(
    SimpleDirectoryReader("docs", recursive=True).load_data()
)
index = VectorStoreIndex(nodes, embed_model=llama_index_embeddings())
engine = index.as_query_engine(llm=llama_index_model(), similarity_top_k=4)
ds = rf.open("my-set")
ds.retrieve(index, name="index", k=5)
ds.retrieve(index.as_retriever(similarity_top_k=5), name="retriever", k=5)
ds.answer(engine, name="engine")
