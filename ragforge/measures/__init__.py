"""Ranking measures: pure arithmetic on plain mappings, equal to trec_eval.

`evaluate` works in two steps. `locating` (with numpy: `arrays`) finds the ranks of the judged
chunks and puts them into a `hit_table`; every measure in `formulas` is computed from that, over
`columns`. `bounds` says what failures could have changed.
"""

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
