"""Answers of RAG systems: asked for, taken in and graded."""
