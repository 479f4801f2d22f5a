"""What became of a RAG system's answers: grades, rates, and where a failure came from."""
