"""Ranking measures: pure arithmetic on plain mappings, equal to trec_eval.

`evaluate` works in two steps. `rankings` finds the ranks of the judged chunks; every measure in
`formulas` is a function of those ranks. `bounds` says what failures could have changed.
"""

from ragforge.measures.evaluation import DEFAULT_MEASURES, evaluate
from ragforge.measures.names import Measure, parse_measure
from ragforge.measures.scores import Scores, Summary

__all__ = ["DEFAULT_MEASURES", "Measure", "Scores", "Summary", "evaluate", "parse_measure"]
