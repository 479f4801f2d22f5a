"""Time ragforge's evaluation against pytrec_eval-terrier, ir_measures, ranx and trec_eval.

Every tool computes nDCG@10, P@5, P@10, R@5, R@10, R@100, RR, AP and Success@10 for each query and
in the mean, of the same input, in a process of its own; the tools of a case take turns. The means
have to agree. The table on stdout gives ragforge's median wall time, and how many times as long
each other tool takes: above 1x ragforge is the faster one. The peers' memory is given likewise.

Examples:
  python benchmarks/evaluate.py --list
  python benchmarks/evaluate.py --case dicts-1000x20 --repeat 9
  python benchmarks/evaluate.py --case 'dicts-*' --tool ragforge --tool pytrec_eval
  python benchmarks/evaluate.py --peers-python peers/bin/python --trec-eval peers/bin/trec_eval
  python benchmarks/evaluate.py --scale 0.01 --repeat 1     everything, as a quick trial
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, get_args

from cases import CASES, Case
from measuring import By, Programs, Samples, measure, tools_of
from table import COLUMNS, disagreements, duration, notes, rows

DISAGREED: Final = 1
NO_CASE: Final = 2
PACKAGES: Final = ("ragforge", "numpy", "pytrec_eval-terrier", "ir_measures", "ranx", "orjson")
_ASK_VERSIONS: Final = """
import sys
from importlib.metadata import PackageNotFoundError, version
found = ["Python " + sys.version.split()[0]]
for name in sys.argv[1:]:
    try:
        found.append(name + " " + version(name))
    except PackageNotFoundError:
        pass
print(", ".join(found))
"""


def main() -> int:
    """Run the command."""
    arguments = _parser().parse_args()
    chosen = _chosen(arguments)
    if arguments.list:
        for case in CASES:
            print(f"{case.name:<20} {case.title}{' (with --large only)' if case.large else ''}")
        return 0
    if not chosen:
        print(f"no case {arguments.case}; see --list", file=sys.stderr)
        return NO_CASE
    programs = Programs(
        arguments.python, arguments.peers_python or arguments.python, arguments.trec_eval
    )
    environment = _environment(programs)
    print(_told(environment), file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="ragforge-bench-") as temporary:
        folder = arguments.data or Path(temporary)
        found = [_run(case, arguments, programs, folder) for case in chosen]
    pairs = list(zip(chosen, found, strict=True))
    if arguments.json:
        _write_json(arguments.json, environment, pairs)
    return _report(environment, pairs, arguments.by)


def _parser() -> argparse.ArgumentParser:
    summary, _, examples = (__doc__ or "").partition("Examples:")
    parser = argparse.ArgumentParser(
        description=summary,
        epilog=f"Examples:{examples}\nexit codes: 0 done, 1 tools disagree, 2 usage",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--list", action="store_true", help="name the cases and end")
    add("--case", action="append", metavar="NAME", help="only this case, * allowed; repeatable")
    add("--tool", action="append", metavar="NAME", help="only tools that begin so; repeatable")
    add("--repeat", type=_at_least_1, metavar="N", help="turns of each tool (default: the case's)")
    add("--by", choices=get_args(By), default="median", help="time compared: wall, or CPU median")
    add("--large", action="store_true", help="also the cases of gigabytes and many minutes")
    add("--scale", type=float, default=1.0, metavar="F", help="share of the queries, for a trial")
    add("--data", type=Path, metavar="DIR", help="keep the inputs here (default: a temporary one)")
    add("--json", type=Path, metavar="FILE", help="write every single time and mean")
    add("--python", default=sys.executable, metavar="FILE", help="has ragforge (default: this one)")
    add("--peers-python", metavar="FILE", help="has the other packages (default: that of --python)")
    add("--trec-eval", default="trec_eval", metavar="FILE", help="default: the one on PATH")
    return parser


def _at_least_1(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {number}")
    return number


def _chosen(arguments: argparse.Namespace) -> list[Case]:
    patterns = arguments.case or ["*"]
    return [
        case
        for case in CASES
        if any(fnmatchcase(case.name, pattern) for pattern in patterns)
        and (arguments.large or not case.large)
    ]


def _run(case: Case, arguments: argparse.Namespace, programs: Programs, folder: Path) -> Samples:
    wanted = tuple(arguments.tool or ("",))
    tools = [tool for tool in tools_of(case) if tool.startswith(wanted)]
    n_queries = max(1, round(case.shape.n_queries * arguments.scale))
    scaled = replace(case, shape=replace(case.shape, n_queries=n_queries))
    print(f"\n{case.name}, load {os.getloadavg()[0]:.2f}", file=sys.stderr)
    samples = measure(scaled, tools, programs, folder, arguments.repeat or case.repeat)
    for tool, sample in samples.items():
        if sample.failed:
            print(f"  {tool:<19} {sample.failed}", file=sys.stderr)
            continue
        wall, least = duration(sample.time_s("median")), duration(sample.time_s("least"))
        memory = "" if sample.memory_mib is None else f"{sample.memory_mib:8.1f} MiB"
        cpu = duration(sample.time_s("cpu"))
        line = f"{wall:>8} median {least:>8} least {cpu:>8} CPU {memory}"
        print(f"  {tool:<19} {line}", file=sys.stderr)
    return samples


def _environment(programs: Programs) -> dict[str, object]:
    return {
        "machine": f"{os.cpu_count()} x {_processor()}, {platform.system()} {platform.release()}",
        "versions": _versions(programs.python),
        "peers' versions": _versions(programs.peers_python),
        "trec_eval": _trec_eval_version(programs.trec_eval),
        "load": os.getloadavg()[0],
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in cpuinfo if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _versions(python: str) -> str:
    command = [python, "-c", _ASK_VERSIONS, *PACKAGES]
    return subprocess.check_output(command, text=True).strip()


def _trec_eval_version(program: str) -> str:
    try:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return "not found"
    return (told.stdout + told.stderr).strip().removeprefix("trec_eval version ")


def _told(environment: dict[str, object]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in environment.items())


def _write_json(
    path: Path, environment: dict[str, object], pairs: Iterable[tuple[Case, Samples]]
) -> None:
    cases = {
        case.name: {
            **asdict(case),
            "tools": {tool: asdict(sample) for tool, sample in samples.items()},
        }
        for case, samples in pairs
    }
    text = json.dumps({"environment": environment, "cases": cases}, indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")


def _report(environment: dict[str, object], pairs: Sequence[tuple[Case, Samples]], by: By) -> int:
    print(f"\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for case, samples in pairs:
        for row in rows(case, samples, by):
            print(f"| {' | '.join(row)} |")
    print(f"\n{_told(environment)}")
    for case, samples in pairs:
        for note in notes(case, samples):
            print(f"{case.name}: {note}")
    wrong = [f"{case.name}: {text}" for case, found in pairs for text in disagreements(case, found)]
    print("\n".join(wrong) if wrong else "means: all tools that ran agree")
    return DISAGREED if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
