"""Commands as processes of their own, with what they took and what they printed."""

import os
import re
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CPU_S = 120
"""After which a process is killed; what is bounded takes a few seconds."""
MOST_MB = 600
CRASHED = 70
_RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_OBEYED = re.compile(r"^\s*::(?!(?:error|warning|notice) title=(?:ragforge )?gate\b)|##(?:vso)?\[")


@dataclass(frozen=True)
class Ran:
    """What a command left.

    Args:
        words: The command.
        code: Its exit code; less than 0 where a signal ended it.
        out, err: What it printed.
        mb: The most memory that it had.
        cpu_s: The time that it computed.
    """

    words: tuple[str, ...]
    code: int
    out: str
    err: str
    mb: float
    cpu_s: float

    @property
    def raw(self) -> list[str]:
        """What a terminal would obey."""
        return _RAW.findall(self.out + self.err)

    @property
    def obeyed(self) -> list[str]:
        """Lines that a CI service would obey and the gate did not mean."""
        return [line for line in (self.out + self.err).splitlines() if _OBEYED.search(line)]


def ran(folder: Path, *words: object, **environment: str) -> Ran:
    """Run a command in a folder, to its end."""
    out, err = folder / ".out", folder / ".err"
    with out.open("wb") as to_out, err.open("wb") as to_err:
        process = subprocess.Popen(
            [sys.executable, "-m", "ragforge", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=to_out,
            stderr=to_err,
            cwd=folder,
            env={**os.environ, "OPENAI_API_KEY": "sk-hostile-0123456789", **environment},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S)),
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    texts = [path.read_bytes().decode("utf-8", "backslashreplace") for path in (out, err)]
    mb, cpu_s = used.ru_maxrss / 1024, used.ru_utime + used.ru_stime
    return Ran(tuple(map(str, words)), process.returncode, *texts, mb, cpu_s)
