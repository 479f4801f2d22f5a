from version_diffs import cause, diff

__all__ = ["cause", "diff"]
