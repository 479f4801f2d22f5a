"""Ranking measures: pure arithmetic on plain mappings, equal to trec_eval.

`evaluate` works in two steps. `locating` (with numpy: `arrays`) finds the ranks of the judged
chunks and puts them into a `hit_table`; every measure in `formulas` is computed from that, over
`columns`. `bounds` says what failures could have changed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragforge.measures.measure_names import Measure, parse_measure
    from ragforge.measures.run_evaluation import DEFAULT_MEASURES, evaluate, evaluate_hits
    from ragforge.measures.scores import Scores, Summary

__all__ = [
    "DEFAULT_MEASURES",
    "Measure",
    "Scores",
    "Summary",
    "evaluate",
    "evaluate_hits",
    "parse_measure",
]

if not TYPE_CHECKING:
    _NAMES = {
        "measure_names": ("Measure", "parse_measure"),
        "run_evaluation": ("DEFAULT_MEASURES", "evaluate", "evaluate_hits"),
        "scores": ("Scores", "Summary"),
    }
    _MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

    def __getattr__(name: str) -> object:
        """Import a module when something of it is first used."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        return found
