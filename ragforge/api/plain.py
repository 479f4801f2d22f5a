"""The functions of `ragforge` itself: plain calls, in and out of an event loop."""

from ragforge.api import evaluation_set, pairs
from ragforge.api.evaluation_set import from_beir, from_csv, from_queries
from ragforge.api.evaluation_set import open_set as open  # `rf.open`, as in many libraries
from ragforge.api.measuring import compare_files
from ragforge.api.running import each_plainly, plainly

__all__ = [
    "compare_files",
    "each_judgment",
    "estimate_generation",
    "from_beir",
    "from_csv",
    "from_queries",
    "generate",
    "ground_answers",
    "judge_pairs",
    "open",
]

generate = plainly(evaluation_set.generate)
estimate_generation = plainly(evaluation_set.estimate_generation)
judge_pairs = plainly(pairs.judge_pairs)
ground_answers = plainly(pairs.ground_answers)
each_judgment = each_plainly(pairs.each_judgment)
