"""The one package that names `openai`: single attempts at an OpenAI-compatible endpoint."""

from ragforge.llm.openai_endpoint.endpoint import OpenAIEndpoint

__all__ = ["OpenAIEndpoint"]
