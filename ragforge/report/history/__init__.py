"""Evaluations over time: what changed, and where measures go."""
