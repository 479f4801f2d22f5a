"""Comparisons, as data, JSON and text."""
