"""Completing pools by what probes find in the whole corpus."""
