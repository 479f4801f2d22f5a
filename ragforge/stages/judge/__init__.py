"""Judging: which chunks of a pool answer a query, on the scale 0-3."""
