"""The dataset: a directory with a manifest, its files, versions and history."""
