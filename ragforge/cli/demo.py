"""Run the whole pipeline on the shipped sample: no key, no network, under a minute.

The sample is the help centre of an imaginary shop, a golden set of queries with graded passages,
and the answers of two imaginary RAG systems. It makes a dataset, two runs, judgments, measures and
report.html.

Examples:
  ragforge demo
  ragforge demo --out somewhere
"""

import argparse
from pathlib import Path

from ragforge.cli.flags import add_common, run_async, settings_of
from ragforge.observe import silent

_WHAT_IT_SAYS = {
    False: "The baseline judge compares words; it shows that things run, not how good they are.",
    True: "The baseline judge compares vectors of all-MiniLM-L6-v2, by which the run minilm ranks: "
    "that\nrun agrees with it by construction. It shows that things run, not how good they are.",
}
"""By whether a local model judged."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("ragforge-demo"),
        metavar="DIR",
        help="where its files go (default: ragforge-demo)",
    )
    add_common(parser, "generate")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.measured import evaluation_text
    from ragforge.pipeline.demo import run_demo

    demo = run_async(run_demo(arguments.out, settings_of(arguments), silent))
    judged = demo.judging.n_judged
    baseline = (
        "offline baseline by all-MiniLM-L6-v2" if demo.local_model else "offline lexical baseline"
    )
    print(
        f"corpus     {demo.n_documents} documents, {demo.n_chunks} chunks\n"
        f"queries    {demo.imported.n_queries} of the golden set, "
        f"{demo.n_generated} drawn from the text by rule\n"
        f"judgments  {demo.imported.n_judgments} of the golden set, {judged} by the judge: "
        f"the {baseline} (no language model was asked)\n"
    )
    print(evaluation_text(demo.evaluation))
    for system in demo.answering:
        right = sum(item.verdict == "correct" for item in system.grades)
        print(f"answers of {system.system!r}: {right} of {system.n_answers} correct by token F1")
    print(
        f"\n{_WHAT_IT_SAYS[bool(demo.local_model)]}\n\n"
        f"files      {demo.dataset.path}/\nreport     {demo.report}\n\n"
        "next, with your own documents:\n"
        "  ragforge generate --documents DOCS -n 50 --out my-set\n"
        "  ragforge compare --dataset my-set --retriever bm25 --retriever chargram --judge "
        "--model NAME --base-url URL"
    )
    return 0
