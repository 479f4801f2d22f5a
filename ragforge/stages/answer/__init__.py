"""Grading what a RAG system answered: against the expected answer and the chunks it saw."""
