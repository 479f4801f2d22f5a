"""The functions of `ragforge` itself: plain calls, in and out of an event loop."""

from ragforge.api import making, pairs
from ragforge.api.files_compared import compare_files
from ragforge.api.making import from_beir, from_csv, from_queries
from ragforge.api.making import open_set as open  # `rf.open`, as in many libraries
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

generate = plainly(making.generate)
estimate_generation = plainly(making.estimate_generation)
judge_pairs = plainly(pairs.judge_pairs)
ground_answers = plainly(pairs.ground_answers)
each_judgment = each_plainly(pairs.each_judgment)
