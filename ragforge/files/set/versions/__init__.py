"""The versions of a set on disk: staged, published in one step, rolled back, removed."""
