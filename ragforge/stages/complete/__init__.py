"""Finding what else in the corpus is relevant to a query: probes, and pools that grow."""
