"""The stages of a run, and the one runner they share."""
