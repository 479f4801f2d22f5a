"""ragforge: make, judge and measure evaluation sets for retrieval-augmented generation.

PYTEST_DONT_REWRITE: the pytest plugin would otherwise make pytest warn when this is imported first.
"""

_PUBLIC = {
    "evaluate": "ragforge.evaluation",
    "parse_measure": "ragforge.measures.measure_names",
    "Scores": "ragforge.measures.scores",
    "mean_interval": "ragforge.measures.intervals",
    "randomisation_test": "ragforge.measures.paired",
    "signed_rank_test": "ragforge.measures.paired",
    "t_test": "ragforge.measures.paired",
    "benjamini_hochberg": "ragforge.measures.comparing",
    "holm": "ragforge.measures.comparing",
    "achieved_power": "ragforge.measures.power",
    "detectable_difference": "ragforge.measures.power",
    "effect_size": "ragforge.measures.power",
    "queries_needed": "ragforge.measures.power",
    "kendall_tau": "ragforge.measures.rank_correlation",
    "rank_biased_overlap": "ragforge.measures.rank_correlation",
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


def __dir__() -> list[str]:
    """List the public names; those that nobody used yet too."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import ragforge` stays free."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ragforge' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
