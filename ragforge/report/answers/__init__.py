"""Answers of RAG systems: what their grades come to."""
