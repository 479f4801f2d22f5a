"""What the recipes embed and answer with, in place of your own: word vectors, offline, no key.

`pip install 'ragforge[rank]' && pip install --no-deps wordllama` brings them.
"""

from ragforge.retrieval.local_vectors import LocalVectors

_words = LocalVectors("static")


def embed(texts):
    """Return a vector a text."""
    return _words.vectors(list(texts)).tolist()


def langchain_embeddings():
    from langchain_core.embeddings import Embeddings

    class Words(Embeddings):
        def embed_documents(self, texts):
            return embed(texts)

        def embed_query(self, text):
            return embed([text])[0]

    return Words()


def langchain_model():
    from langchain_core.language_models import FakeListChatModel

    return FakeListChatModel(responses=["It stands in the context."])


def llama_index_embeddings():
    from llama_index.core.embeddings import BaseEmbedding

    class Words(BaseEmbedding):
        def _get_text_embedding(self, text):
            return embed([text])[0]

        def _get_query_embedding(self, query):
            return embed([query])[0]

        async def _aget_query_embedding(self, query):
            return embed([query])[0]

    return Words()


def llama_index_model():
    from llama_index.core.llms import MockLLM

    return MockLLM(max_tokens=20)


def haystack_model():
    from haystack import component

    @component
    class Model:
        @component.output_types(replies=list[str])
        def run(self, prompt: str):
            return {"replies": ["It stands in the context."]}

    return Model()


def chroma_embeddings():
    from chromadb import EmbeddingFunction

    class Words(EmbeddingFunction):
        def __init__(self):
            pass

        def __call__(self, input):
            return embed(input)

    return Words()
