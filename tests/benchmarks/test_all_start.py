"""Every benchmark can be started: what it takes from the product is there, under that name."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LOADED = """
import runpy, sys, traceback
for path in sys.argv[1:]:
    try:
        runpy.run_path(path, run_name="loaded")
    except Exception:
        print(path, traceback.format_exc())
"""


def test_every_benchmark_is_loaded():
    paths = sorted(map(str, BENCHMARKS.glob("*.py")))

    done = subprocess.run(
        [sys.executable, "-c", LOADED, *paths],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        check=False,
    )

    assert paths
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
