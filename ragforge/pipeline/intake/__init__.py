"""What people bring: hand-made queries, logs, decisions of a review."""
