"""What a system answered from which contexts, as a file that grows by a line an answer.

A process that is killed loses what was in flight, and no answer that it had.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.atomic import make_own_place


@dataclass(slots=True)
class AnswerLog:
    """The answers of a system by the digest of what it was asked.

    Args:
        path: Where they are kept; None to keep them in memory.
    """

    path: Path | None
    _answers: dict[str, str] = field(default_factory=dict)
    _ends_whole: bool = True

    @classmethod
    def opened(cls, path: Path | None, *, anew: bool = False) -> "AnswerLog":
        """Return the log with what is there; lines that a kill or a full disk cut are left out.

        Args:
            path: As the attribute.
            anew: Forget what is there.

        Raises:
            DataError: The file cannot be read or removed.
        """
        log = cls(path)
        if path is None:
            return log
        try:
            if anew:
                path.unlink(missing_ok=True)
            text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from error
        log._ends_whole = not text or text.endswith("\n")
        for line in text.split("\n"):
            with suppress(ValueError, KeyError, TypeError):
                record = json.loads(line)
                log._answers[str(record["key"])] = str(record["answer"])
        return log

    @property
    def answers(self) -> Mapping[str, str]:
        """Answers by key."""
        return self._answers

    def add(self, key: str, answer: str) -> None:
        """Keep an answer before it is used.

        Raises:
            DataError: The file cannot be written.
        """
        self._answers[key] = answer
        if self.path is None:
            return
        line = json.dumps({"key": key, "answer": answer}) + "\n"
        try:
            make_own_place(self.path.parent)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line if self._ends_whole else f"\n{line}")
        except OSError as error:
            self._ends_whole = False
            raise DataError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._ends_whole = True
