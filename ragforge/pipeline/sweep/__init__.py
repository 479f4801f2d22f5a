"""Sweeps: which way of chunking and searching documents finds most evidence."""
