"""The functions of `ragforge` that work in an event loop, as plain calls in and out of one."""

from ragforge.api import evaluation_set, pairs, prompts
from ragforge.api.evaluation_set import open_set as open  # `rf.open`, as in many libraries
from ragforge.api.running import each_plainly, plainly

__all__ = [
    "audit_judge",
    "demo",
    "each_judgment",
    "estimate_generation",
    "generate",
    "ground_answers",
    "judge_pairs",
    "open",
    "render_prompt",
]

generate = plainly(evaluation_set.generate)
estimate_generation = plainly(evaluation_set.estimate_generation)
demo = plainly(evaluation_set.demo)
judge_pairs = plainly(pairs.judge_pairs)
ground_answers = plainly(pairs.ground_answers)
audit_judge = plainly(pairs.audit_judge)
each_judgment = each_plainly(pairs.each_judgment)
render_prompt = plainly(prompts.render_prompt)
