"""Whole jobs, made of the stages: what a command does, without its talking and printing."""
