"""Evaluations over time: what changed between two, and where a measure goes."""
