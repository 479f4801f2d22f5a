"""Check that answers say only what their retrieved chunks say; no reference answer is needed.

Answers of live traffic come as JSON Lines {query_id, query, answer, contexts}, contexts being texts
or {chunk_id, text}; with --dataset, answers name chunks of the dataset. Each is taken apart into
claims, and each claim needs a quote from a chunk. Citations such as [2], [c12] or (source: c12) are
looked up: a chunk is cited rightly where it says a claim of the sentence.

Examples:
  ragforge ground --answers traffic.jsonl --out grounded.jsonl --model gpt-5-mini
  ragforge ground --dataset set/ --system-name my-rag --out grounded.jsonl --model gpt-5-mini
"""

import argparse
import asyncio
from functools import partial
from pathlib import Path

from ragforge.api.progress import say
from ragforge.cli.flags import PAID, add_common, add_json, add_mode, job_of, observed, settings_of
from ragforge.cli.output import dumps, print_estimate
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import share
from ragforge.files.set.output_paths import refuse_to_replace
from ragforge.measures.rates import Rate
from ragforge.records import Grounding
from ragforge.stages.ground.summary import GroundingSummary


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--answers", type=Path, metavar="FILE", help="answers with their contexts")
    source.add_argument(
        "--system-name", metavar="NAME", help="check a system's answers in the dataset"
    )
    parser.add_argument(
        "--dataset", type=Path, metavar="DIR", help="where the chunks are that answers name"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="where groundings are written"
    )
    add_mode(parser)
    add_json(parser)
    add_common(parser, *PAID)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.grounding import ground_system, ground_traffic

    settings = settings_of(arguments)
    _check(arguments)
    if arguments.dataset is None:
        ground = partial(ground_traffic, arguments.answers, arguments.out)
    else:
        answers = arguments.answers or arguments.system_name
        ground = partial(ground_system, open_dataset(arguments.dataset), answers, arguments.out)
    with observed(arguments) as observer:
        result = asyncio.run(ground(job_of(arguments, settings, observer)))
    if result.summary is None:
        print_estimate(result.estimate or {}, as_json=arguments.json)
    elif arguments.json:
        print(dumps(_json(result.grounder, result.summary)))
    else:
        _print_result(result.grounder, result.summary)
        print(arguments.out)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if arguments.system_name is not None and arguments.dataset is None:
        raise UsageError("--system-name goes with --dataset DIR")
    answers = arguments.answers
    if arguments.system_name is not None:
        answers = arguments.dataset / "answers" / f"{arguments.system_name}.jsonl"
    if arguments.out.exists() and answers.exists() and arguments.out.samefile(answers):
        raise UsageError(f"--out {arguments.out}: is the file of answers itself; name another")
    refuse_to_replace(arguments.out, Grounding)


def _json(grounder: str, summary: GroundingSummary) -> dict[str, object]:
    return {
        "judge": grounder,
        "answers": summary.n_answers,
        "checked": summary.n_checked,
        "failed": summary.n_failed,
        "rules": summary.rules,
        "claims": summary.n_claims,
        "claims_supported": summary.n_supported,
        "grounded": _rate_json(summary.grounded),
        "faithfulness": _rate_json(summary.faithfulness),
        "answers_citing": summary.n_citing,
        "citations": summary.citations,
        "citation_precision": _rate_json(summary.citation_precision),
        "citation_recall": _rate_json(summary.citation_recall),
    }


def _rate_json(rate: Rate) -> dict[str, object]:
    interval, bounds = rate.interval, rate.bounds
    return {
        "mean": rate.mean,
        "interval": None if interval is None else [interval.low, interval.high],
        "n": rate.n,
        "n_failed": rate.n_failed,
        "low": None if bounds is None else bounds.low,
        "high": None if bounds is None else bounds.high,
    }


def _print_result(grounder: str, summary: GroundingSummary) -> None:
    rules = ", ".join(f"{rule} {count}" for rule, count in summary.rules.items())
    aside = f"; nothing to check: {rules}" if rules else ""
    say(
        f"judge {grounder}: {summary.n_checked} of {summary.n_answers} answers checked, "
        f"{summary.n_failed} failed{aside}"
    )
    say(f"fully grounded: {_shown(summary.grounded)}")
    say(
        f"faithfulness: {_shown(summary.faithfulness)}; "
        f"{summary.n_supported} of {summary.n_claims} claims supported"
    )
    if summary.citations:
        told = ", ".join(f"{status} {count}" for status, count in summary.citations.items())
        say(f"citations of {summary.n_citing} answers: {told}")
        say(f"citation precision: {_shown(summary.citation_precision)}")
    if summary.citation_recall.n:
        say(f"citation recall: {_shown(summary.citation_recall)}")


def _shown(rate: Rate) -> str:
    parts = [share(rate.mean)]
    if rate.interval is not None:
        parts.append(f"95 % interval {share(rate.interval.low)} to {share(rate.interval.high)}")
    if rate.n_failed and rate.bounds is not None:
        parts.append(f"with failures {share(rate.bounds.low)} to {share(rate.bounds.high)}")
    return f"{', '.join(parts)} (n {rate.n})"
