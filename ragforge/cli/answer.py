"""Grade what a RAG system answered: verdict, score, and claims that no retrieved chunk supports.

Answers come as JSON Lines {query_id, answer, chunk_ids}. Verdicts are correct, partial, incorrect
and not_attempted; to abstain is correct where the question cannot be answered.

Example: ragforge answer --dataset set/ --answers answers.jsonl --name my-rag --model gpt-5-mini
"""

import argparse
import asyncio
from collections import Counter
from pathlib import Path

from ragforge.cli.flags import PAID, add_common, add_json, dumps, settings_of
from ragforge.cli.paid import add_mode, mode_of, observed, print_estimate
from ragforge.cli.talk import complain
from ragforge.pipeline.answering import AnsweringResult


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR")
    parser.add_argument("--answers", required=True, type=Path, metavar="FILE")
    parser.add_argument(
        "--name", metavar="NAME", help="name of the system (default: that of the file)"
    )
    add_mode(parser)
    add_json(parser)
    add_common(parser, *PAID)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.files.dataset import open_dataset
    from ragforge.pipeline.answering import grade_system

    settings = settings_of(arguments)
    dataset = open_dataset(arguments.dataset)
    system = arguments.answers.name.split(".")[0] if arguments.name is None else arguments.name
    answers, mode = arguments.answers, mode_of(arguments)
    with observed(arguments) as observer:
        result = asyncio.run(grade_system(dataset, answers, system, settings, observer, mode))
    if result.estimate is not None:
        print_estimate(result.estimate, as_json=arguments.json)
    elif arguments.json:
        print(dumps(_json(result)))
    else:
        verdicts = Counter(item.verdict or "failed" for item in result.grades)
        told = ", ".join(f"{name} {count}" for name, count in sorted(verdicts.items()))
        complain(f"{system}: {result.n_answers} answers, judge {result.judge}: {told}")
        print(dataset.path / "answer_grades" / f"{system}.jsonl")
    return 0


def _json(result: AnsweringResult) -> dict[str, object]:
    scores = [item.score for item in result.grades if item.score is not None]
    n, failed = len(scores), len(result.grades) - len(scores)
    verdicts = Counter(item.verdict or "failed" for item in result.grades)
    return {
        "system": result.system,
        "judge": result.judge,
        "verdicts": dict(sorted(verdicts.items())),
        "score": {
            "mean": sum(scores) / n if n else None,
            "n": n,
            "n_failed": failed,
            "low": sum(scores) / (n + failed),
            "high": (sum(scores) + failed) / (n + failed),
        },
        "has_hallucination": sum(item.has_hallucination is True for item in result.grades),
    }
