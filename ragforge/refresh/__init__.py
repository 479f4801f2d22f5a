"""Following a corpus: which documents and chunks changed, and where quotes stand now."""
