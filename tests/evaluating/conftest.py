from evaluated_sets import (
    answered,
    dataset,
    make_grade,
    make_ranking,
    new_dataset,
)
from version_diffs import cause, diff

__all__ = [
    "answered",
    "cause",
    "dataset",
    "diff",
    "make_grade",
    "make_ranking",
    "new_dataset",
]
