"""Sweeps: which way of cutting and searching documents finds most evidence."""
