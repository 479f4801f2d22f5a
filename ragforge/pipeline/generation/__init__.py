"""The parts of generating a dataset: who works, from what, in which rounds, into which files."""
