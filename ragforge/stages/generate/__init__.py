"""Generating queries with answers and evidence: planned first, gated after."""
