"""Auditing a judge: the same question asked with a text that somebody tampered with."""
