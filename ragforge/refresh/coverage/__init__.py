"""New queries: for documents that came, and for those that too few are about."""
