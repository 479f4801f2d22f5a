"""Commands as processes of their own, with what they took and what they printed."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from command_processes import CommandProcess

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
    env = {**os.environ, "OPENAI_API_KEY": "sk-hostile-0123456789", **environment}
    process = CommandProcess(tuple(map(str, words)), folder, env, most_cpu_s=CPU_S)
    out, err = process.communicate()
    assert process.returncode is not None
    return Ran(tuple(process.words), process.returncode, out, err, process.mb, process.cpu_s)
