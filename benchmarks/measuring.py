"""Run the tools of one case in processes of their own, in turn: A B C A B C."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import IO, Final, Literal

import cold
from cases import Case
from data import FILES as DATA_FILES
from data import Shape
from tools import DICTS, FILES, RESCORE, Means, trec_eval_command, trec_eval_means

HERE: Final = Path(__file__).parent
TINY: Final = Shape(12, 10, judged=5)
"""First input of every process. ranx stays on one thread once it has seen fewer than 10 queries."""


By = Literal["median", "least", "cpu"]
"""Which time of several: the median or the least by the wall clock, or the median of the CPU's."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the tools are."""

    python: str
    peers_python: str
    trec_eval: str

    def python_of(self, tool: str) -> str:
        """Return the interpreter that has a tool."""
        return self.python if tool.startswith("ragforge") else self.peers_python


@dataclass(slots=True)
class Sample:
    """What was measured of one tool in one case; one value per repetition, but for memory."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    memory_mib: float | None = None
    """Added to the loaded input for dicts; peak of the process for files; not for cold ones."""
    means: Means = field(default_factory=dict)
    failed: str = ""
    """Why there is nothing; empty where there is something."""

    def time_s(self, by: By) -> float:
        """Return the time of one call."""
        if by == "least":
            return min(self.wall_s)
        return median(self.cpu_s if by == "cpu" else self.wall_s)


Samples = dict[str, Sample]


def tools_of(case: Case) -> list[str]:
    """Return the tools of a case in the order in which they take turns."""
    if case.kind == "cold":
        return list(cold.TOOLS)
    if case.kind == "dicts":
        return list(DICTS)
    if case.kind == "rescore":
        return list(RESCORE)
    both = [*FILES[case.kind], *(["trec_eval"] if case.kind == "trec" else [])]
    return [tool for tool in both if tool not in case.skipped]


def measure(case: Case, tools: list[str], programs: Programs, folder: Path, repeat: int) -> Samples:
    """Measure tools on a case; what fails says so in its sample and stops nothing.

    Args:
        case: What to measure.
        tools: Of `tools_of(case)`.
        programs: Where they are.
        folder: For the inputs; those that are there are used.
        repeat: Turns of each tool.
    """
    if case.kind in ("dicts", "rescore"):
        form = "columns"
    else:
        form = "trec" if case.kind == "cold" else case.kind
    inputs = [*_inputs(folder, case.shape, form), *_inputs(folder, TINY, form)]
    if form == "columns" and case.kind != "columns":
        return _in_memory(case, tools, programs, inputs, repeat)
    return _in_files(case, tools, programs, inputs, repeat)


def _inputs(folder: Path, shape: Shape, form: str) -> list[Path]:
    """Make qrels and run in another process: the peak of this one is the least seen of others."""
    text = json.dumps(asdict(shape))
    script, paths = str(HERE / "data.py"), []
    for wanted in ("qrels", form):
        subprocess.run([sys.executable, script, str(folder), text, wanted], check=True)
        paths.append(folder / str(shape) / DATA_FILES[wanted])
        _into_page_cache(paths[-1])
    return paths


def _into_page_cache(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def _in_memory(
    case: Case, tools: list[str], programs: Programs, inputs: list[Path], repeat: int
) -> Samples:
    samples: Samples = {tool: Sample() for tool in tools}
    processes: dict[str, subprocess.Popen[str]] = {}
    try:
        for tool in tools:
            process = _first_call(_worker(tool, case.kind, programs, inputs), samples[tool])
            if process is not None:
                processes[tool] = process
        for _ in range(repeat):
            for tool, process in processes.items():
                if not samples[tool].failed:
                    _take_turn(process, samples[tool])
    finally:
        for process in processes.values():
            process.communicate()
    return samples


def _first_call(command: list[str], sample: Sample) -> subprocess.Popen[str] | None:
    """Start a worker and wait until it is ready to be timed; None where it fails."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as error:
        process = _start(command, subprocess.PIPE, error, stdin=subprocess.PIPE)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            process.communicate()
            sample.failed = _last_line(error)
            return None
    told = json.loads(line)
    sample.memory_mib, sample.means = told["added_mib"], told["means"]
    return process


def _take_turn(process: subprocess.Popen[str], sample: Sample) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        sample.failed = "ended between two turns"
        return
    told = json.loads(line)
    sample.wall_s.append(told["wall_s"])
    sample.cpu_s.append(told["cpu_s"])


@dataclass(frozen=True, slots=True)
class _Ended:
    """A process that is over."""

    failed: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mib: float = 0.0
    """At least what this process held at its peak: the kernel counts it in, until exec."""


def _in_files(
    case: Case, tools: list[str], programs: Programs, inputs: list[Path], repeat: int
) -> Samples:
    samples: Samples = {tool: Sample() for tool in tools}
    # The first processes fill caches of bytecode and of compiled code, and count only for these.
    turns = repeat + (case.kind == "cold")
    for turn in range(turns):
        for tool, sample in samples.items():
            if sample.failed:
                continue
            command, read = _command(tool, case, programs, inputs)
            with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
                ended = _run(command, out)
                sample.failed = ended.failed
                if not ended.failed and turn >= turns - repeat:
                    out.seek(0)
                    _add(sample, ended, out, read)
            if case.kind == "cold":
                sample.memory_mib = None
    return samples


def _command(
    tool: str, case: Case, programs: Programs, inputs: list[Path]
) -> tuple[list[str], Callable[[IO[str]], Means] | None]:
    """Return a command, and what reads the means of one that is timed from outside."""
    qrels, run = inputs[:2]
    if case.kind == "cold":
        python = programs.python_of(tool)
        return cold.command(tool, python, programs.trec_eval, qrels, run), cold.means_reader(tool)
    if tool == "trec_eval":
        return trec_eval_command(programs.trec_eval, qrels, run), trec_eval_means
    return _worker(tool, case.kind, programs, inputs), None


def _add(
    sample: Sample, ended: _Ended, out: IO[str], read: Callable[[IO[str]], Means] | None
) -> None:
    told = json.load(out) if read is None else {**asdict(ended), "means": read(out)}
    sample.wall_s.append(told["wall_s"])
    sample.cpu_s.append(told["cpu_s"])
    sample.memory_mib = max(sample.memory_mib or 0.0, told["peak_mib"])
    sample.means = told["means"]


def _worker(tool: str, kind: str, programs: Programs, inputs: list[Path]) -> list[str]:
    script = str(HERE / "worker.py")
    return [programs.python_of(tool), script, tool, kind, *map(str, inputs)]


def _run(command: list[str], out: IO[str]) -> _Ended:
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as error:
        start = perf_counter()
        try:
            process = _start(command, out, error)
        except OSError as failure:
            return _Ended(str(failure))
        with _killed_if_left(process):
            _, status, used = os.wait4(process.pid, 0)
        wall_s = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        failed = _last_line(error) if process.returncode else ""
    return _Ended(failed, wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


@contextmanager
def _killed_if_left(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        process.kill()
        raise


def _start(
    command: list[str], out: int | IO[str], error: IO[str], stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(
        command, stdin=stdin, stdout=out, stderr=error, text=True, env=environment
    )


def _last_line(error: IO[str]) -> str:
    error.seek(0)
    lines = error.read().strip().splitlines()
    return lines[-1] if lines else "ended without a word"
