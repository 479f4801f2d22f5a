"""Checks by a model other than the writer, where one is configured."""
