"""The functions of `ragforge` to be awaited: `await rf.aio.generate(…)`."""

from ragforge.api import about as _about
from ragforge.api import chunking as _chunking
from ragforge.api import evaluation_set as _sets
from ragforge.api import measuring as _measuring
from ragforge.api import prompts as _prompts
from ragforge.api import schedules as _schedules
from ragforge.api import serving as _serving
from ragforge.api.evaluation_set import demo, estimate_generation, generate
from ragforge.api.pairs import audit_judge, each_judgment, ground_answers, judge_pairs
from ragforge.api.prompts import render_prompt
from ragforge.api.running import awaited, lent_awaited

__all__ = [
    "audit_judge",
    "chunk",
    "compare_files",
    "copy_prompt",
    "demo",
    "diff_prompts",
    "each_judgment",
    "estimate_generation",
    "evaluate_files",
    "from_beir",
    "from_csv",
    "from_queries",
    "generate",
    "ground_answers",
    "judge_pairs",
    "list_prompts",
    "list_schedules",
    "mock_endpoint",
    "open",
    "render_prompt",
    "schedule",
    "schema",
    "schema_names",
    "settings",
    "show_prompt",
    "view",
]

chunk = awaited(_chunking.chunk)
compare_files = awaited(_measuring.compare_files)
copy_prompt = awaited(_prompts.copy_prompt)
diff_prompts = awaited(_prompts.diff_prompts)
evaluate_files = awaited(_measuring.evaluate_files)
from_beir = awaited(_sets.from_beir)
from_csv = awaited(_sets.from_csv)
from_queries = awaited(_sets.from_queries)
list_prompts = awaited(_prompts.list_prompts)
list_schedules = awaited(_schedules.list_schedules)
mock_endpoint = lent_awaited(_serving.mock_endpoint)
open = awaited(_sets.open_set)  # as the plain one is called
schedule = awaited(_schedules.schedule)
schema = awaited(_about.schema)
schema_names = awaited(_about.schema_names)
settings = awaited(_about.settings)
show_prompt = awaited(_prompts.show_prompt)
view = lent_awaited(_serving.view)
