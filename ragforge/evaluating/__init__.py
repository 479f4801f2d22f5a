"""What is decided about a dataset: which judgment counts, measures, history, gates, causes."""
