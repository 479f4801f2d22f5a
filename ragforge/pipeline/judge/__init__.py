"""Judging relevance: of what runs retrieved, of pairs in a file, and beside people."""
