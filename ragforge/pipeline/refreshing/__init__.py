"""Refreshing a set: from what changed in its corpus to its next version."""
