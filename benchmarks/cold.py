"""Whole programs, from start to exit: what a user types for one evaluation of TREC files.

The scripts are run with `python -c SCRIPT QRELS RUN` and print the means as JSON. They import what
they need and nothing else; the module `tools` would add its own imports to their time.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from tools import (
    MEASURES,
    Means,
    ragforge_command,
    ragforge_command_means,
    ranx_name,
    trec_eval_command,
    trec_eval_means,
    trec_eval_name,
)

_ASKED: Final = {measure: trec_eval_name(measure, mark=".") for measure in MEASURES}
_PRINTED: Final = {measure: trec_eval_name(measure) for measure in MEASURES}
_RANX: Final = {measure: ranx_name(measure) for measure in MEASURES}

SCRIPTS: Final = {
    "ragforge-api": f"""
import json, sys, ragforge
measures = {MEASURES!r}
scores = ragforge.evaluate(sys.argv[1], sys.argv[2], measures, rel_threshold=1)
print(json.dumps({{name: scores.mean(name) for name in measures}}))
""",
    "pytrec_eval": f"""
import json, sys, pytrec_eval
with open(sys.argv[1]) as qrels, open(sys.argv[2]) as run:
    qrels, run = pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(run)
found = pytrec_eval.RelevanceEvaluator(qrels, {set(_ASKED.values())!r}).evaluate(run).values()
names = {_PRINTED!r}.items()
print(json.dumps({{n: sum(values[name] for values in found) / len(found) for n, name in names}}))
""",
    "ir_measures": f"""
import json, sys, ir_measures
from ir_measures import parse_measure, read_trec_qrels, read_trec_run
measures = {{parse_measure(name): name for name in {MEASURES!r}}}
qrels, run = read_trec_qrels(sys.argv[1]), read_trec_run(sys.argv[2])
found = ir_measures.calc(list(measures), qrels, run).aggregated
print(json.dumps({{measures[measure]: mean for measure, mean in found.items()}}))
""",
    "ranx-classes": f"""
import json, sys
from ranx import Qrels, Run, evaluate
qrels, run = Qrels.from_file(sys.argv[1], kind="trec"), Run.from_file(sys.argv[2], kind="trec")
names = {_RANX!r}
found = evaluate(qrels, run, list(names.values()))
print(json.dumps({{measure: float(found[name]) for measure, name in names.items()}}))
""",
}
TOOLS: Final = ("ragforge-api", "ragforge-command", *list(SCRIPTS)[1:], "trec_eval")


def command(tool: str, python: str, trec_eval: str, qrels: Path, run: Path) -> list[str]:
    """Return what to run for a tool, one of `TOOLS`.

    Args:
        tool: Its name.
        python: The interpreter that has it.
        trec_eval: The program of that name.
        qrels: TREC file.
        run: TREC file.
    """
    if tool == "trec_eval":
        return trec_eval_command(trec_eval, qrels, run)
    if tool == "ragforge-command":
        return ragforge_command(python, qrels, run)
    return [python, "-c", SCRIPTS[tool], str(qrels), str(run)]


def means_reader(tool: str) -> Callable[[IO[str]], Means]:
    """Return what reads the means out of a tool's output."""
    readers = {"trec_eval": trec_eval_means, "ragforge-command": ragforge_command_means}
    return readers.get(tool, json.load)
