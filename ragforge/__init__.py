"""ragforge: make, judge and measure evaluation sets for retrieval-augmented generation."""

_PUBLIC = {
    "evaluate": "ragforge.measures",
    "parse_measure": "ragforge.measures",
    "Scores": "ragforge.measures",
    "Answer": "ragforge.records",
    "AnswerGrade": "ragforge.records",
    "Chunk": "ragforge.records",
    "Evidence": "ragforge.records",
    "Failure": "ragforge.records",
    "Judgment": "ragforge.records",
    "Query": "ragforge.records",
    "Ranking": "ragforge.records",
}

__all__ = sorted([*_PUBLIC, "__version__"])
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import ragforge` stays free."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ragforge' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
