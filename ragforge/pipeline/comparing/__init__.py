"""Comparing runs, and answer systems: which is better?"""
