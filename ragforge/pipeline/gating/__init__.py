"""Deciding whether a run may ship."""
