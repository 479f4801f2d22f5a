from evaluated_sets import (
    answered,
    dataset,
    hostile_dataset,
    hostile_texts,
    make_grade,
    make_ranking,
    many_queries,
    new_dataset,
)

__all__ = [
    "answered",
    "dataset",
    "hostile_dataset",
    "hostile_texts",
    "make_grade",
    "make_ranking",
    "many_queries",
    "new_dataset",
]
