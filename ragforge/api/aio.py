"""The functions of `ragforge` to be awaited: `await rf.aio.generate(…)`."""

from ragforge.api.evaluation_set import estimate_generation, generate
from ragforge.api.evaluation_set import from_beir as _from_beir
from ragforge.api.evaluation_set import from_csv as _from_csv
from ragforge.api.evaluation_set import from_queries as _from_queries
from ragforge.api.evaluation_set import open_set as _open
from ragforge.api.measuring import compare_files as _compare_files
from ragforge.api.pairs import each_judgment, ground_answers, judge_pairs
from ragforge.api.running import awaited

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

compare_files = awaited(_compare_files)
from_beir = awaited(_from_beir)
from_csv = awaited(_from_csv)
from_queries = awaited(_from_queries)
open = awaited(_open)  # as the plain one is called
