"""Find out how far a judge can be trusted, by labels of people.

  report  hold files of judges' grades against one of people's: no model, no texts, no dataset

Files are TREC qrels, CSV with a header or JSON Lines with query_id, chunk_id and grade. A column
`labeller` tells several people apart: their middle grade counts, and their own agreement is the
most that a judge could reach. Grades outside of 0-3 are left out and counted.

kappa is 1 for agreement and 0 for chance; quadratic kappa and alpha forgive near misses. At the
threshold: sensitivity is the share of relevant pairs that the judge finds, specificity that of the
others that it leaves. bias is its grade minus people's. In brackets are 95 % intervals that
resample queries. tau says how alike judge and people order runs, top tau the better half of them.

With --answers the files are about answers: query_id, system and verdict (correct, partial,
incorrect, not_attempted) or score; or which of two answers people prefer: query_id, system_a,
system_b, preference. A judge's scores of both are held against it.

Examples:
  ragforge calibrate report --human people.trec --judge gpt.trec
  ragforge calibrate report --human people.csv --judge a.jsonl --judge b.jsonl --json
  ragforge calibrate report --human people.trec --judge judges/*.trec --run runs/*.trec
  ragforge calibrate report --answers --human people.csv --graded set/answer_grades/rag.jsonl
"""

import argparse
from pathlib import Path

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps, show
from ragforge.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="report")
    report = actions.add_parser(
        "report", help="agreement of judges with people", description=__doc__
    )
    report.add_argument(
        "--human", required=True, type=Path, metavar="FILE", help="labels of people"
    )
    report.add_argument(
        "--judge",
        nargs="+",
        action="extend",
        default=[],
        type=Path,
        metavar="FILE",
        help="grades of a judge; as many as there are",
    )
    report.add_argument(
        "--answers", action="store_true", help="the files are about answers: see --graded"
    )
    report.add_argument(
        "--graded",
        nargs="+",
        action="extend",
        default=[],
        type=Path,
        metavar="FILE",
        help="answers graded by a judge; as many as there are",
    )
    report.add_argument(
        "--run",
        nargs="+",
        action="extend",
        default=[],
        type=Path,
        metavar="FILE",
        help="runs, three or more, whose order is compared",
    )
    report.add_argument(
        "-m", "--measure", default="nDCG@10", metavar="NAME", help="that orders runs (nDCG@10)"
    )
    report.add_argument(
        "--rel-threshold",
        type=int,
        default=2,
        metavar="N",
        help="lowest grade that counts as relevant (2)",
    )
    report.add_argument(
        "--by-query", action="store_true", help="show the queries with the largest bias too"
    )
    report.add_argument("--seed", type=int, default=0, metavar="N", help="of the intervals (0)")
    add_json(report)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.answers:
        return _report_answers(arguments)
    if arguments.graded:
        raise UsageError("--graded names graded answers: give --answers too, or --judge FILE")
    from ragforge.pipeline.judge_table import compare_judge_files
    from ragforge.report.judge_table import judge_table_json, judge_table_text, skipped_lines

    found = compare_judge_files(
        arguments.human,
        arguments.judge,
        threshold=arguments.rel_threshold,
        runs=arguments.run,
        measure=arguments.measure,
        seed=arguments.seed,
    )
    for line in skipped_lines(found.labels):
        say(line)
    if arguments.json:
        print(dumps(judge_table_json(found.report)))
    else:
        show(judge_table_text(found.report, by_query=arguments.by_query))
    return 0


def _report_answers(arguments: argparse.Namespace) -> int:
    from ragforge.pipeline.judge_table import compare_answer_files
    from ragforge.report.judge_table import answer_table_json, answer_table_text

    if arguments.judge:
        raise UsageError("--judge names grades of chunks: with --answers give --graded FILE")
    report = compare_answer_files(arguments.human, arguments.graded)
    if arguments.json:
        print(dumps(answer_table_json(report)))
    else:
        show(answer_table_text(report))
    return 0
