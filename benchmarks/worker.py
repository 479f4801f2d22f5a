"""One tool in one process, driven through pipes by `evaluate.py`.

Call: worker.py TOOL KIND QRELS RUN TINY_QRELS TINY_RUN. A tiny input comes first, so
that imports and compilers that run at the first call are over. Then:

- KIND is a form of files: one call is timed and printed, and the process ends.
- KIND is `dicts` or `rescore`: the input is loaded and a first call made, of which the memory is
  printed; then every line on stdin asks for one batch of calls.

What is printed is one JSON object a line.
"""

import json
import sys
from collections.abc import Callable
from math import ceil
from pathlib import Path
from time import perf_counter, process_time
from typing import TypedDict

from data import load_qrels, load_run
from tools import DICTS, FILES, RESCORE, Means

MIN_BATCH_S = 0.1
"""Calls are repeated to this time, so that the clock and the first touch of caches do not count."""
MAX_BATCH = 1000


def main() -> None:
    """Serve one tool."""
    tool, kind, *paths = sys.argv[1:]
    qrels, run, tiny_qrels, tiny_run = map(Path, paths)
    if kind in FILES:
        evaluate = FILES[kind][tool]
        evaluate(tiny_qrels, tiny_run)
        _tell(**_timed(lambda: evaluate(qrels, run), 1), peak_mib=_status_mib("VmHWM"))
        return
    _call(kind, tool, tiny_qrels, tiny_run)()
    call = _call(kind, tool, qrels, run)
    before = _reset_peak()
    means = call()
    added_mib = max(0.0, _status_mib("VmHWM") - before)
    _tell(added_mib=added_mib, means=means)
    n_calls = min(MAX_BATCH, ceil(MIN_BATCH_S / _timed(call, 1)["wall_s"]))
    for _ in sys.stdin:
        _tell(**_timed(call, n_calls))


def _call(kind: str, tool: str, qrels_path: Path, run_path: Path) -> Callable[[], Means]:
    qrels, run = load_qrels(qrels_path), load_run(run_path)
    if kind == "rescore":
        return RESCORE[tool](qrels, run)
    return lambda: DICTS[tool](qrels, run)


class _Timed(TypedDict):
    wall_s: float
    """Of one call, like `cpu_s`, which counts all threads."""
    cpu_s: float
    n_calls: int
    means: Means


def _timed(call: Callable[[], Means], n_calls: int) -> _Timed:
    means: Means = {}
    wall_s, cpu_s = perf_counter(), process_time()
    for _ in range(n_calls):
        means = call()
    wall_s, cpu_s = perf_counter() - wall_s, process_time() - cpu_s
    return {
        "wall_s": wall_s / n_calls,
        "cpu_s": cpu_s / n_calls,
        "n_calls": n_calls,
        "means": means,
    }


def _reset_peak() -> float:
    """Set the kernel's peak of this process to what it holds, and return that in MiB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status_mib("VmRSS")


def _status_mib(field: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    [kib] = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return int(kib) / 1024


def _tell(**values: object) -> None:
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main()
