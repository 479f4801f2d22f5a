"""CPU that a command takes before its own work: `python benchmarks/startup.py [COMMAND…]`.

Each command runs on a small set in processes of its own. Its start-up is the CPU (user and system,
the least of several runs, bytecode kept) above `python -c pass`, less that of its own work: what
the same command takes in a process that ran it before. `--help` has no work of its own. With
`--before DIR`, another checkout is measured in turns with this one.

Below the table stand the packages that commands import, asyncio among them, with what these alone
take: no command that computes with numpy can start in less than numpy does.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from ragforge.cli import COMMANDS
from ragforge.mock import serving

RUNS = 7
TARGET_MS = 150
DOCUMENTS = {
    "returns.md": "# Returns\n\nA restocking fee is a charge of ten percent on opened goods.\n\n"
    "## Deadline\n\nUnopened goods go back within thirty days of delivery, free of charge.\n",
    "shipping.md": "# Shipping\n\nA parcel locker is a public box that takes parcels at night.\n\n"
    "## Costs\n\nShipping costs five euros for orders below fifty euros, above it is free.\n",
    "care.txt": "Beeswax is a natural polish that keeps oak from drying out in heated rooms.\n",
}
FILES = {
    "golden.csv": "question,answer,doc_id,quote\nWhat is beeswax?,A natural polish.,care.txt,"
    "Beeswax is a natural polish that keeps oak from drying out\n",
    "traffic.jsonl": '{"query_id": "q1", "query": "What is beeswax?", "answer": "A polish.", '
    '"contexts": ["Beeswax is a natural polish that keeps oak from drying out."]}\n',
    "answers.jsonl": '{"question": "What is beeswax?", "answer": "A natural polish."}\n',
    "qrels.trec": "q1 0 a 2\nq1 0 b 0\nq2 0 a 3\n",
    "run.trec": "q1 Q0 a 1 2.5 x\nq1 Q0 b 2 1.5 x\nq2 Q0 b 1 1.0 x\n",
    "pairs.jsonl": '{"query_id": "q1", "query": "What is wax?", "chunk_id": "a", "text": "Wax."}\n',
}
MAKING = (
    "import golden.csv --documents docs --out set -q",
    "generate --documents docs -n 3 --out other -q",
    "retrieve --dataset set --retriever bm25 -q",
    "retrieve --dataset set --retriever chargram -q",
    "evaluate --dataset set",
)
BOUGHT = "judge --pairs pairs.jsonl --out bought.jsonl --model m --base-url {} -q"
WORK = {
    "init": "init --yes",
    "demo": "demo --out demo -q",
    "chunk": "chunk docs --out chunks.jsonl -q",
    "generate": "generate --documents docs -n 3 --out new -q",
    "generate, dry run": "generate --documents docs -n 3 --out new --dry-run -q",
    "import": "import golden.csv --documents docs --out new -q",
    "review": "review export --dataset set --out review.html",
    "validate": "validate --dataset set",
    "plan": "plan --dataset set",
    "shard": "shard plan --pairs pairs.jsonl --into shards --model m --base-url http://127.0.0.1:9/v1",
    "calibrate": "calibrate report --human qrels.trec --judge qrels.trec",
    "diff": "diff set other",
    "completion": "completion bash",
    "export": "export --dataset set --as trec --out exported",
    "retrieve": "retrieve --dataset set --retriever bm25 --name again -q",
    "judge": "judge --dataset set -q",
    "judge, dry run": "judge --dataset set --dry-run",
    "judge, of files": "judge --pairs pairs.jsonl --out judged.jsonl -q",
    "answer": "answer --dataset set --answers answers.jsonl --name mine -q",
    "ground": "ground --answers traffic.jsonl --out grounded.jsonl -q",
    "sweep": "sweep --dataset set --size 500 --splitter headings --retriever bm25 --dry-run",
    "runs": "runs list --dataset set",
    "evaluate": "evaluate --dataset set",
    "evaluate, of files": "evaluate --qrels qrels.trec --run run.trec",
    "compare": "compare --dataset set bm25 chargram",
    "gate": "gate --dataset set --run bm25 --min RR=0.1 --point",
    "worst": "worst --dataset set --run bm25",
    "report": "report --dataset set --out report.html",
    "plot": "plot compare --dataset set --out picture.svg",
    "history": "history --dataset set",
    "refresh": "refresh --dataset other --documents docs -q",
    "schedule": "schedule",
    "help": "help measures",
    "config": "config",
    "prompts": "prompts list",
    "cache": "cache stats --store .ragforge/calls.sqlite",
    "schema": "schema Judgment",
}
"""What is run for each command; those that serve until they are stopped have their help only."""
WARM = """
import os, sys, time
from ragforge.cli import main
sys.stdout = sys.stderr = open(os.devnull, "w")
words = sys.argv[3:]
os.chdir(sys.argv[1]); main(words)
os.chdir(sys.argv[2]); before = time.process_time(); main(words)
os.write(1, str(time.process_time() - before).encode())
"""
LOADED = """
import json, os, sys
from ragforge.cli import main
out, sys.stdout = os.dup(1), open(os.devnull, "w")
main(sys.argv[1:])
os.write(out, json.dumps(sorted({name.partition(".")[0] for name in sys.modules})).encode())
"""
NO_LOCAL_MODEL = {"RAGFORGE_POOL_POOL_MODEL": "none", "RAGFORGE_MODEL_OFFLINE_MODEL": "none"}
"""A model that is installed would be loaded, which is work and no start-up."""
NO_IDLE_THREADS = {"OPENBLAS_THREAD_TIMEOUT": "4"}
"""As commands have it: threads of numpy that wait for work take as long again."""


HERE = Path(__file__).parents[1]
LIMIT_S = 60.0


class FailedError(Exception):
    """A command cannot be measured."""


def environment(bytecode: Path, checkout: Path = HERE) -> dict[str, str]:
    """Return the environment of the processes: that of a user, whose bytecode is kept."""
    left_out = ("PYTHONDONTWRITEBYTECODE", "RAGFORGE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    kept.setdefault("OPENAI_API_KEY", "none")
    places = {"PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONPATH": str(checkout)}
    return {**kept, **places, **NO_LOCAL_MODEL, **NO_IDLE_THREADS}


def cpu_ms(arguments: list[str], cwd: Path, checkout: Path = HERE) -> float:
    """Return the CPU of a process and its children in milliseconds.

    Raises:
        FailedError: It failed, or took more than a minute.
    """
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(cwd.parent / "bytecode", checkout),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        timer = threading.Timer(LIMIT_S, process.kill)
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
    if process.returncode not in (0, 1):
        raise FailedError(f"{' '.join(arguments)}: exit code {process.returncode}")
    return 1000 * (used.ru_utime + used.ru_stime)


class Workplace:
    """A folder with a small set, of which each run gets a copy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.original = folder / "original"
        (self.original / "docs").mkdir(parents=True)
        for name, text in DOCUMENTS.items():
            (self.original / "docs" / name).write_text(text, encoding="utf-8")
        for name, text in FILES.items():
            (self.original / name).write_text(text, encoding="utf-8")
        for line in MAKING:
            cpu_ms(["-m", "ragforge", *line.split()], self.original)
        with serving() as endpoint:
            cpu_ms(["-m", "ragforge", *BOUGHT.format(endpoint.url).split()], self.original)
        self.n_copies = 0

    def copy(self) -> Path:
        """Return a new copy."""
        self.n_copies += 1
        return shutil.copytree(self.original, self.folder / str(self.n_copies), symlinks=True)

    def cold_ms(self, line: str, checkout: Path = HERE) -> float:
        """Return the CPU of a command in a process of its own."""
        return cpu_ms(["-m", "ragforge", *line.split()], self.copy(), checkout)

    def warm_ms(self, line: str) -> float:
        """Return the CPU of a command in a process that ran it before."""
        done = subprocess.run(
            [sys.executable, "-c", WARM, self.copy(), self.copy(), *line.split()],
            env=environment(self.folder / "bytecode"),
            capture_output=True,
            check=True,
            timeout=LIMIT_S,
        )
        return 1000 * float(done.stdout)


def packages(place: Workplace, line: str) -> str:
    """Return the packages that a command imports, asyncio among them, parted by commas."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *line.split()],
        cwd=place.copy(),
        env=environment(place.folder / "bytecode"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=LIMIT_S,
    )
    own = {*sys.stdlib_module_names, "ragforge", "cython_runtime"} - {"asyncio"}
    found = (name for name in json.loads(done.stdout) if name not in own)
    return ", ".join(name for name in found if not name.startswith("_"))


def print_packages(place: Workplace, imported: dict[str, str], runs: int) -> None:
    """Print what the packages of each command take alone."""
    of_names: dict[str, list[str]] = {}
    for command, names in imported.items():
        of_names.setdefault(names, []).append(command)
    print("\n| packages | ms | commands |", "| --- | ---: | --- |", sep="\n")
    for names, commands in of_names.items():
        if names:
            taken = [
                cpu_ms(["-c", code], place.original)
                for _ in range(runs)
                for code in ("pass", f"import {names}")
            ]
            alone = min(taken[1::2]) - min(taken[::2])
            print(f"| {names} | {alone:.0f} | {', '.join(commands)} |", flush=True)


def measured(place: Workplace, line: str, runs: int, before: Path | None) -> list[str]:
    """Return the cells of a command: whole, own work and start-up, and what stood before."""
    nothing, old, cold, warm = [], [], [], []
    for _ in range(runs):
        nothing.append(cpu_ms(["-c", "pass"], place.original))
        if before is not None:
            with suppress(FailedError):  # It may not have had the command.
                old.append(place.cold_ms(line, before))
        cold.append(place.cold_ms(line))
        warm.append(place.warm_ms(line))
    starting = min(cold) - min(nothing) - min(warm)
    mark = " (over)" if starting > TARGET_MS else ""
    then = [f"{min(old):.0f}" if old else "-"] if before is not None else []
    times = f"{min(cold) / min(nothing):.0f}x"
    return [*then, f"{min(cold):.0f}", times, f"{min(warm):.0f}", f"{starting:.0f}{mark}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("commands", nargs="*")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--before", type=Path, help="another checkout, measured in turns")
    arguments = parser.parse_args()
    wanted = set(arguments.commands)
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder))
        here = place.original
        nothing = min(cpu_ms(["-c", "pass"], here) for _ in range(4 * arguments.runs))
        print(f"python -c pass: {nothing:.0f} ms of CPU\n")
        then = ["before"] if arguments.before else []
        heads = ["command", "--help", *then, "whole", "of `pass`", "own work", "start-up"]
        print(f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}", sep="\n")
        rows = {**{name: "" for name in ("(none)", *COMMANDS)}, **WORK}
        imported = {}
        for name, line in rows.items():
            command = name.partition(",")[0]
            if wanted and command not in wanted:
                continue
            words = ["--help"] if command == "(none)" else [command, "--help"]
            helps = [cpu_ms(["-m", "ragforge", *words], here) for _ in range(arguments.runs)]
            cells = [""] * (len(heads) - 2)
            try:
                if line:
                    cells = measured(place, line, arguments.runs, arguments.before)
                    imported[name] = packages(place, line)
            except (FailedError, subprocess.SubprocessError) as error:
                cells[0] = f"not measured: {error}"
            shown = "" if "," in name else f"{min(helps):.0f}"
            print(f"| {name} | {shown} | {' | '.join(cells)} |", flush=True)
        print_packages(place, imported, arguments.runs)


if __name__ == "__main__":
    main()
