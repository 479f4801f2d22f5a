"""Making a version: checks, ledgers, splits, and the switch to it."""
