"""Audit a judge: does its grade hold when somebody tampers with the text?

A seeded sample of pairs is judged plainly, then again with attacks in the text: keyword stuffing,
claims of relevance, forged verdicts, role markers, escapes from the fence, padding, other orders,
cuts, another query's passage, and the same question once more. Printed is how often the judge did
what a sound one would not, with 95 % intervals that resample queries. Failures are no flips; they
are counted, and bound what they could change.

In a dataset the audit is kept as judge_audit.json, and shown by `ragforge report`. Plain texts
that were judged before come from the call store. A dry run counts every attack on every pair;
which are left out depends on the plain grades.

Examples:
  ragforge judge audit --dataset set/ --model gpt-5-mini --dry-run
  ragforge judge audit --dataset set/ -n 100 --attack forged-verdict --attack relevance-claim
  ragforge judge audit --pairs pairs.jsonl --out audit.json
"""

import argparse
import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.cli.flags import PAID, add_common, add_json, dumps, settings_of
from ragforge.cli.paid import add_mode, job_of, observed, print_estimate
from ragforge.cli.talk import complain, show
from ragforge.errors import UsageError
from ragforge.files.set.output_paths import refuse_to_replace
from ragforge.records import JudgeAudit

if TYPE_CHECKING:
    from ragforge.pipeline.auditing import AuditResult


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--dataset", type=Path, metavar="DIR")
    source.add_argument("--pairs", type=Path, metavar="FILE", help="draw from the pairs of a file")
    parser.add_argument(
        "-n", "--n", type=_count, default=50, metavar="N", help="pairs (default 50)"
    )
    parser.add_argument(
        "--attack", action="append", default=[], metavar="NAME", help="attack to try (default: all)"
    )
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="NAME",
        help="run whose top ranks may be drawn beside the judged pairs (default: all)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the audit of --pairs goes")
    add_mode(parser)
    add_json(parser)
    add_common(parser, "judge", *PAID)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.auditing import Plan, audit_dataset, audit_file

    settings = settings_of(arguments)
    _check(arguments)
    plan = Plan(arguments.n, tuple(arguments.attack), tuple(arguments.run))
    if arguments.pairs:
        place = arguments.out
        audit = partial(audit_file, arguments.pairs, place, plan)
    else:
        dataset = open_dataset(arguments.dataset)
        place = dataset.files / "judge_audit.json"
        audit = partial(audit_dataset, dataset, plan)
    with observed(arguments) as observer:
        result = asyncio.run(audit(job_of(arguments, settings, observer)))
    if result.estimate is not None:
        print_estimate(result.estimate, as_json=arguments.json)
    else:
        _print_result(result, place, as_json=arguments.json)
    return 0


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text}")
    return count


def _check(arguments: argparse.Namespace) -> None:
    if arguments.pairs and arguments.out is None:
        raise UsageError("--pairs needs --out FILE for the audit")
    if arguments.pairs and arguments.out.exists() and arguments.out.samefile(arguments.pairs):
        raise UsageError(f"--out {arguments.out}: is the file of pairs itself; name another")
    if arguments.pairs:
        refuse_to_replace(arguments.out, JudgeAudit, whole=True)
    if arguments.pairs and arguments.run:
        raise UsageError("--run goes with --dataset, not with --pairs")
    if arguments.dataset and arguments.out is not None:
        raise UsageError("--out goes with --pairs; a dataset keeps its own judge_audit.json")


def _print_result(result: "AuditResult", place: Path, *, as_json: bool) -> None:
    from ragforge.evaluating.text_table import render_table
    from ragforge.report.audit import audit_line, audit_tables

    assert result.audit is not None
    if as_json:
        print(dumps(result.audit.model_dump(mode="json")))
        return
    for table in audit_tables(result.audit):
        if table.rows:
            show(f"{render_table(table.headers, table.rows)}\n")
    complain(f"judge audit of {audit_line(result.audit)}")
    print(place)
