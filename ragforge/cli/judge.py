"""Grade how well chunks answer queries: 0 off topic, 1 same topic, 2 part, 3 all of the answer.

In a dataset, the top ranks of its runs are pooled and judged; pairs that have a grade are left
alone. With --complete the pool is what probes find in the whole corpus, with or without runs: the
query, its answer and its source as queries, neighbours and near-duplicates; it grows while its end
is relevant. Or judge the pairs of a file, a JSON object a line: {query_id, query, chunk_id, text},
or {query, chunks: [{id, text}]}; what has no id gets one from its text.
With --earlier-rankings it grades what rankings of earlier evaluations hold as well, so that they
and those of now can be held against each other on grades of one judge.
With --batch-api the calls go through the provider's batch API, at half the price, within a day; the
same command goes on where the last one stopped, and --wait stays until all is done.
A pair whose judgment fails gets no grade; it is counted and bounds what it could change.
Where rows hold the `grade` of a person, or with --on-labels in a dataset, the judge is held against
people with the lexical baseline beside it; it never sees their grades.
`ragforge judge audit --help` tells how to find out whether a judge can be talked into a grade, and
`ragforge judge canary --help` whether it still grades as it did.

Examples:
  ragforge judge --dataset set/ --run bm25 --depth 10 --model gpt-5-mini
  ragforge judge --dataset set/ --complete --model gpt-5-mini
  ragforge judge audit --dataset set/ --model gpt-5-mini
  ragforge judge --dataset set/ --earlier-rankings --again --model gpt-5 --dry-run
  ragforge judge --pairs pairs.jsonl --out judged.jsonl --model m --base-url http://127.0.0.1:8080/v1
"""

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.api.progress import say
from ragforge.cli.batch_api import add_batch_api, check_batch_api, done, is_batch_api
from ragforge.cli.canary import CANARY_COMMON as CANARY_COMMON
from ragforge.cli.canary import CANARY_HELP as CANARY_HELP
from ragforge.cli.canary import configure_canary as configure_canary
from ragforge.cli.canary import run_canary as run_canary
from ragforge.cli.flags import (
    PAID,
    add_common,
    add_json,
    add_mode,
    job_of,
    observed,
    run_async,
    settings_of,
)
from ragforge.cli.next_step import after_judging
from ragforge.cli.output import print_result, show, tell_overtaken
from ragforge.cli.parser import count
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.config import Settings
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.judge.judge_run import JudgingResult
    from ragforge.pipeline.judge.pooling import EarlierRankings

COMMON = (
    "--dataset",
    "--pairs",
    "--run",
    "--depth",
    "--model",
    "--base-url",
    "--complete",
    "--on-labels",
    "--out",
    "--batch",
    "--panel",
    "--dry-run",
    "--max-cost-usd",
    "--again",
    "--mix",
    "--json",
)
"""Options of the short help, in its order."""
_FEW_QUERIES = 10
"""Of a file of pairs, up to which the summary of each is printed unasked."""
AUDIT_COMMON = (
    "--dataset",
    "--pairs",
    "-n",
    "--attack",
    "--model",
    "--base-url",
    "--out",
    "--dry-run",
    "--max-cost-usd",
    "--json",
)
"""Options of the short help of the audit."""
AUDIT_HELP: Final = """\
Audit a judge: does its grade hold when somebody tampers with the text?

A seeded sample of pairs is judged plainly, then again with attacks in the text: keyword stuffing,
claims of relevance, authorities, citations, the query itself, beginnings of an answer, empty talk,
forged verdicts, role markers, escapes from the fence, padding, other orders, cuts, another query's
passage, and the same question once more. Printed is how often the judge did what a sound one would
not, with 95 % intervals that resample queries. Failures are no flips; they are counted, and bound
what they could change.

Three attacks need more: `translation` a file of translated chunks, `self-preference` a file of
passages that several models wrote of the same facts, `optimised` calls for a search, pair by pair.

In a dataset the audit is kept as judge_audit.json, and shown by `ragforge report`. Plain texts
that were judged before come from the call store. A dry run counts every attack on every pair;
which are left out depends on the plain grades.

Examples:
  ragforge judge audit --dataset set/ --model gpt-5-mini --dry-run
  ragforge judge audit --dataset set/ -n 100 --attack forged-verdict --attack relevance-claim
  ragforge judge audit --pairs pairs.jsonl --out audit.json
  ragforge judge audit --dataset set/ --translations german.jsonl --search-calls 20
  ragforge judge audit --dataset set/ --attack self-preference --written-by passages.jsonl
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--dataset", type=Path, metavar="DIR", help="the set")
    source.add_argument("--pairs", type=Path, metavar="FILE", help="judge the pairs of a file")
    parser.add_argument(
        "--run", action="append", default=[], metavar="NAME", help="run to pool (default: all)"
    )
    parser.add_argument(
        "--on-labels",
        action="store_true",
        help="judge the pairs that people graded, and compare; their grades stay",
    )
    parser.add_argument(
        "--complete",
        action="store_true",
        help="pool what probes find in the corpus instead of what runs retrieved",
    )
    parser.add_argument(
        "--earlier-rankings",
        nargs="?",
        const="1",
        metavar="N|FILE",
        help="judge what the N latest other rankings of each run need as well, those that its "
        "evaluations kept (default: 1), or those of a baseline FILE: a difference to them is known "
        "on grades of one judge only",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where judged pairs are written")
    add_batch_api(parser)
    parser.add_argument("--per-query", action="store_true", help="print the summary of each query")
    add_mode(parser, again=True)
    add_json(parser)
    add_common(parser, "judge", "pool", *PAID)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.batch_job import BatchJob
    from ragforge.pipeline.job import OutputFile
    from ragforge.pipeline.judge.judges import judging_models
    from ragforge.pipeline.judge.judging import judge_dataset, judge_file, judge_labels

    settings = settings_of(arguments)
    check_batch_api(arguments)
    _check(arguments)
    if arguments.setting_judge_permutations is not None and settings.judge.batch == 1:
        raise UsageError("--permutations goes with --batch")
    if arguments.complete:
        return _complete(arguments, open_dataset(arguments.dataset), settings)
    dataset = None
    if arguments.pairs:
        place = arguments.out
        store = OutputFile.beside(place).store_path
        judge = partial(judge_file, arguments.pairs, place)
    elif arguments.on_labels:
        dataset = open_dataset(arguments.dataset)
        place, store = dataset.files / "label_checks.jsonl", dataset.store_path
        judge = partial(judge_labels, dataset)
    else:
        dataset = open_dataset(arguments.dataset)
        place, store = dataset.files / "judgments.jsonl", dataset.store_path
        judge = partial(judge_dataset, dataset, arguments.run, earlier=_earlier(arguments))
    with observed(arguments) as observer:
        job = job_of(arguments, settings, observer)
        result = done(arguments, BatchJob(job, judging_models(settings), store, judge))
    if result is not None:
        _tell(arguments, result, dataset, place)
    return 0


def _tell(
    arguments: argparse.Namespace, result: "JudgingResult", dataset: "Dataset | None", place: Path
) -> None:
    from ragforge.api.judged import Judged

    overtaken = None
    if dataset is not None and result.estimate is None:
        overtaken = tell_overtaken(dataset, "judgments")
    if arguments.json or result.estimate is not None:
        print_result(Judged(result), as_json=arguments.json)
        return
    is_short = bool(arguments.pairs) and len(result.summaries) <= _FEW_QUERIES
    _print(
        result,
        overtaken / place.name if overtaken else place,
        per_query=arguments.per_query or is_short,
    )
    if dataset is not None and not overtaken:
        after_judging(arguments, dataset)


def _print(result: "JudgingResult", place: Path, *, per_query: bool) -> None:
    from ragforge.api.judged import agreement_text, judging_lines, summaries_text

    if per_query:
        show(summaries_text(result))
    if result.agreement is not None:
        show(f"{agreement_text(result.agreement)}\n")
    for line in judging_lines(result):
        say(line)
    if place.exists():
        print(place)


def _complete(arguments: argparse.Namespace, dataset: "Dataset", settings: "Settings") -> int:
    """Complete the pools of a dataset, and print what came of it."""
    from ragforge.api.judged import Completed, completion_lines
    from ragforge.pipeline.complete.completing import complete_whole
    from ragforge.pipeline.run_list import describe_holes, holes_of
    from ragforge.report.generation import completion_text

    with observed(arguments) as observer:
        done = run_async(complete_whole(dataset, job_of(arguments, settings, observer)))
    overtaken = tell_overtaken(dataset, "judgments") if done.summary is not None else None
    if arguments.json or done.summary is None:
        print_result(Completed(done), as_json=arguments.json)
        return 0
    show(completion_text(done.summary))
    for line in completion_lines(done):
        say(line)
    for line in filter(None, (describe_holes(holes, dataset) for holes in holes_of(dataset))):
        say(line)
    print((overtaken or dataset.files) / "pool.jsonl")
    if not overtaken:
        after_judging(arguments, dataset)
    return 0


def _earlier(arguments: argparse.Namespace) -> "EarlierRankings | None":
    """Return which earlier rankings are judged as well."""
    from ragforge.pipeline.judge.pooling import EarlierRankings

    text = arguments.earlier_rankings
    if text is None:
        return None
    if text.isascii() and text.isdigit() and int(text):
        return EarlierRankings(int(text))
    if not Path(text).is_file():
        raise UsageError(
            f"--earlier-rankings {text}: expected a number of rankings from 1, or the file of a "
            "baseline"
        )
    return EarlierRankings(1, (Path(text),))


def _check(arguments: argparse.Namespace) -> None:
    if arguments.earlier_rankings is not None and (
        arguments.pairs or arguments.on_labels or arguments.complete
    ):
        raise UsageError("--earlier-rankings goes with the pool of the runs of a --dataset")
    if arguments.pairs:
        _check_pairs(arguments)
    elif arguments.out is not None:
        raise UsageError("--out goes with --pairs; a dataset keeps its own judgments.jsonl")
    if arguments.complete:
        _check_complete(arguments)
    if arguments.on_labels and arguments.run:
        raise UsageError("--on-labels judges no run; leave out --run")


def _check_complete(arguments: argparse.Namespace) -> None:
    beside = {
        "--shards": arguments.shards,
        "--batch-api": is_batch_api(arguments),
        "--pairs": arguments.pairs,
        "--run": arguments.run,
        "--on-labels": arguments.on_labels,
        "--per-query": arguments.per_query,
        "--depth": arguments.setting_judge_depth is not None,
    }
    for flag in (name for name, given in beside.items() if given):
        raise UsageError(f"{flag} does not go with --complete, whose pool is found by probes")


def _check_pairs(arguments: argparse.Namespace) -> None:
    from ragforge.api.judged import check_place

    if arguments.out is None:
        raise UsageError("--pairs needs --out FILE for the judgments")
    check_place(arguments.out, arguments.pairs, "--out")
    if arguments.setting_judge_split not in (None, "all"):
        raise UsageError("--split goes with --dataset; the rows of --pairs have none")
    if arguments.run:
        raise UsageError("--run goes with --dataset, not with --pairs")
    if arguments.on_labels:
        raise UsageError("--on-labels goes with --dataset; in --pairs a row's grade is enough")


def configure_audit(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `judge audit`."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--dataset", type=Path, metavar="DIR", help="the set")
    source.add_argument("--pairs", type=Path, metavar="FILE", help="draw from the pairs of a file")
    parser.add_argument("-n", "--n", type=count, default=50, metavar="N", help="pairs (default 50)")
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
    parser.add_argument(
        "--translations",
        type=Path,
        metavar="FILE",
        help="for the attack translation: rows of {chunk_id, translation}",
    )
    parser.add_argument(
        "--written-by",
        type=Path,
        metavar="FILE",
        help="for self-preference: rows of {query, writer, text}, of several writers",
    )
    parser.add_argument(
        "--model-family",
        default="",
        metavar="NAME",
        help="the judge's own among the writers (default: told by the name of the model)",
    )
    parser.add_argument(
        "--search-calls",
        type=count,
        default=0,
        metavar="N",
        help="for the attack optimised: calls for each pair, at least 2 (default: no search)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the audit of --pairs goes")
    add_mode(parser)
    add_json(parser)
    add_common(parser, "judge", *PAID)


def run_audit(arguments: argparse.Namespace) -> int:
    """Run `judge audit`."""
    from ragforge.api.judged import Audited, audit_texts, audit_title
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.auditing import AuditPlan, audit_dataset, audit_file

    settings = settings_of(arguments)
    _check_audit(arguments)
    plan = AuditPlan(
        arguments.n,
        tuple(arguments.attack),
        tuple(arguments.run),
        translations=arguments.translations,
        written=arguments.written_by,
        model_family=arguments.model_family,
        search_calls=arguments.search_calls,
    )
    if arguments.pairs:
        place = arguments.out
        audit = partial(audit_file, arguments.pairs, place, plan)
    else:
        dataset = open_dataset(arguments.dataset)
        place = dataset.files / "judge_audit.json"
        audit = partial(audit_dataset, dataset, plan)
    with observed(arguments) as observer:
        result = run_async(audit(job_of(arguments, settings, observer)))
    if arguments.json or result.audit is None:
        print_result(Audited(result), as_json=arguments.json)
        return 0
    for table in audit_texts(result.audit):
        show(f"{table}\n")
    say(audit_title(result.audit))
    print(place)
    return 0


def _check_audit(arguments: argparse.Namespace) -> None:
    if arguments.pairs and arguments.out is None:
        raise UsageError("--pairs needs --out FILE for the audit")
    if arguments.pairs and arguments.out.exists() and arguments.out.samefile(arguments.pairs):
        raise UsageError(f"--out {arguments.out}: is the file of pairs itself; name another")
    if arguments.pairs:
        from ragforge.files.set.output_paths import refuse_to_replace
        from ragforge.records import JudgeAudit

        refuse_to_replace(arguments.out, JudgeAudit, whole=True)
    if arguments.pairs and arguments.run:
        raise UsageError("--run goes with --dataset, not with --pairs")
    if arguments.dataset and arguments.out is not None:
        raise UsageError("--out goes with --pairs; a dataset keeps its own judge_audit.json")
