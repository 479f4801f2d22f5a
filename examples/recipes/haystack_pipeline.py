from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack_store import ds, store
from my_models import haystack_model  # or OpenAIGenerator()

pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=4))
pipeline.add_component("prompt", PromptBuilder("{{documents}} {{question}}", "*"))
pipeline.add_component("model", haystack_model())
pipeline.connect("retriever", "prompt.documents")
pipeline.connect("prompt", "model")
ds.retrieve(pipeline, name="pipeline", k=4)
ds.answer(pipeline, name="pipeline")
