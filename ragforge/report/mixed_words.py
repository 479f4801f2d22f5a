"""The sentences of what no one judge graded: who did, what is missing, and the command for it."""

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from ragforge.records import MixedGrades, Provenance
from ragforge.report.shown import one_line, plural

_BATCHES: Final = re.compile(r"batch (\d+) x (\d+)")
_VOTES: Final = re.compile(r"votes (\d+) at ([\d.]+)")
_USUAL_PROMPTS: Final = ("", "judge_relevance", "judge_relevance_batch")


def judge_shown(judge: Provenance) -> str:
    """Return a judge in a few words: model, prompt, and how it was asked."""
    if judge.kind == "baseline":
        return "the offline baseline"
    if not judge.model:
        return "a judge that is not recorded"
    prompt = f" with {one_line(judge.prompt)} {judge.prompt_sha256[:8]}" if judge.prompt else ""
    how = f" ({one_line(judge.protocol)})" if judge.protocol else ""
    return f"{one_line(judge.model)}{prompt}{how}"


def judges_shown(judges: Iterable[Provenance]) -> str:
    """Return judges in a few words, with `and` before the last."""
    *others, last = map(judge_shown, judges)
    return f"{', '.join(others)} and {last}" if others else last


def missing_grades(mixed: MixedGrades, command: str) -> str:
    """Return what is missing, and the command that buys it, as a sentence."""
    gone = f" ({mixed.n_gone:,} of them had a grade that is gone)" if mixed.n_gone else ""
    are = "is" if mixed.n_pairs == 1 else "are"
    return (
        f"{plural(mixed.n_pairs, 'pair')} {are} without a grade of {judge_shown(mixed.ask)}{gone}; "
        f"`{command}` buys them, and tells the price with --dry-run"
    )


def judge_command(
    ask: Provenance, dataset: str, runs: Sequence[str] = (), *, n_earlier: int = 0, depth: int = 0
) -> str:
    """Return the command that lets a judge grade what it has not graded.

    Args:
        ask: The judge.
        dataset: Where the set is.
        runs: Whose rankings are needed.
        n_earlier: Earlier rankings of each that are needed too.
        depth: Ranks that are needed, where they are more than is usual.
    """
    words = ["ragforge", "judge", "--dataset", dataset]
    words += [word for run in runs for word in ("--run", run)]
    if n_earlier:
        words += ["--earlier-rankings", *([str(n_earlier)] if n_earlier > 1 else [])]
    words += ["--depth", str(depth)] if depth else []
    words.append("--again")
    words += ["--panel", ask.model.replace("+", ",")] if "+" in ask.model else _model(ask)
    if batches := _BATCHES.search(ask.protocol):
        words += ["--batch", batches[1], "--permutations", batches[2]]
    if votes := _VOTES.search(ask.protocol):
        words += ["--votes", votes[1], "--temperature", votes[2]]
    if "logprobs" in ask.protocol:
        words += ["--logprobs", "on"]
    if "examples" in ask.protocol:
        words += ["--examples", "FILE"]
    if ask.prompt not in _USUAL_PROMPTS:
        words += ["--prompt", ask.prompt]
    return one_line(shlex.join(words), 1000)


def _model(ask: Provenance) -> list[str]:
    if ask.kind == "baseline":
        return ["--model", "offline"]
    return ["--model", ask.model or "MODEL"]
