"""Judges beside people: how far they agree on pairs that people graded, and how fast they are.

    python benchmarks/judges.py PAIRS.jsonl.gz                    # the offline baseline, all pairs
    python benchmarks/judges.py PAIRS.jsonl.gz --model local:FILE.gguf --sample 200 --logprobs on

Pairs are rows of {query_id, query, chunk_id, text, grade}; `ragforge judge --pairs` judges them. A
sample takes some pairs of seeded queries, each pair of a query as likely as the next: never by the
grade of a person, which would change the very rates that agreement depends on. What follows `--`
goes to `ragforge judge` as it is. The table is Markdown; brackets hold 95 % intervals that resample
queries. Pairs per second count the whole command, with its start and the loading of a model.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from ragforge.files.formats.pairs import PairRow, read_pairs
from ragforge.files.record_files import read_records
from ragforge.measures.grader_agreement import AUC_OF_SCORE, Grader, agree
from ragforge.measures.intervals import ClusteredInterval
from ragforge.records import Failure, Judgment
from ragforge.stages.judge.lexical import share_of_words

FIGURES = (
    "kappa",
    "quadratic kappa",
    "kappa at threshold",
    "AUC of the grade",
    AUC_OF_SCORE,
    "judge rate",
    "human rate",
)
HEADER = (
    "| judge | pairs | queries | failed | kappa | quadratic kappa | kappa >= 2 | AUC by grade | "
    "AUC by score | judged >= 2 | people >= 2 | pairs/s |"
)

PairId = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Timed:
    """What a run of `ragforge judge` left."""

    judgments: dict[PairId, Judgment]
    seconds: float

    @property
    def grades(self) -> dict[PairId, int]:
        """The grades of the pairs that got one."""
        return {key: one.grade for key, one in self.judgments.items() if one.grade is not None}


def main() -> None:
    """Judge and compare."""
    arguments = _arguments()
    pairs = [pair for pair in read_pairs(arguments.pairs) if pair.human_grade is not None]
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print(HEADER)
        print("| --- |" + " ---: |" * (HEADER.count("|") - 2))
        _offline(pairs, folder / "all", "offline baseline")
        if arguments.model == "offline":
            return
        if arguments.sample:
            pairs = sample(pairs, arguments.sample, arguments.per_query, arguments.seed)
            _offline(pairs, folder / "sample", "offline baseline, the same sample")
        _model(pairs, folder / "model", arguments)


def sample(pairs: Sequence[PairRow], n: int, per_query: int, seed: int) -> list[PairRow]:
    """Return n pairs spread over queries, grades unseen; fewer where there are no more.

    Args:
        pairs: Of any order.
        n: How many.
        per_query: Pairs of a query, as long as there are queries enough; then more.
        seed: For which queries and which of their pairs.
    """
    by_query: dict[str, list[PairRow]] = {}
    for pair in sorted(pairs, key=lambda pair: (pair.query_id, pair.chunk_id)):
        by_query.setdefault(pair.query_id, []).append(pair)
    draw = random.Random(seed)
    queries = draw.sample(sorted(by_query), min(ceil(n / per_query), len(by_query)))
    shuffled = [draw.sample(by_query[query], len(by_query[query])) for query in queries]
    rounds = (
        found[turn]
        for turn in range(max(map(len, shuffled)))
        for found in shuffled
        if turn < len(found)
    )
    return [pair for pair, _ in zip(rounds, range(n), strict=False)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, help="pairs with the grades of people, 0 to 3")
    parser.add_argument("--model", default="offline", help="as `ragforge judge` takes it")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="pairs for the model")
    parser.add_argument(
        "--per-query", type=int, default=8, metavar="N", help="of these, of a query"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--logprobs", choices=("off", "on"), default="off")
    parser.add_argument(
        "--folder",
        type=Path,
        help="keeps replies and judgments: a second run asks only what is new",
    )
    # Before Python 3.12 argparse leaves a "--" behind flags to nobody.
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:end])
    arguments.more = words[end + 1 :]
    return arguments


def _offline(pairs: Sequence[PairRow], folder: Path, name: str) -> None:
    found = _judge(pairs, folder, ["--model", "offline"])
    shares = {
        (pair.query_id, pair.chunk_id): share_of_words(pair.query, pair.text) for pair in pairs
    }
    _print_row(name, pairs, found.grades, shares, found.seconds)


def _model(pairs: Sequence[PairRow], folder: Path, arguments: argparse.Namespace) -> None:
    logprobs = ["--logprobs", "on"] if arguments.logprobs == "on" else []
    flags = ["--model", arguments.model, *logprobs, *arguments.more]
    found = _judge(pairs, folder, flags)
    name = Path(arguments.model.removeprefix("local:")).stem
    _print_row(f"{name}, grade of the reply", pairs, found.grades, {}, found.seconds)
    means = {k: one.grade_mean for k, one in found.judgments.items() if one.grade_mean is not None}
    if means:
        rounded = {key: ceil(mean - 0.5) for key, mean in means.items()}
        _print_row(f"{name}, weighted by logprobs", pairs, rounded, means, found.seconds)
    refused = _refused(folder / "judged.jsonl.failures.jsonl")
    if refused:
        both = {**refused, **found.grades}
        _print_row(f"{name}, refused replies counted in", pairs, both, {}, found.seconds)


def _refused(failures: Path) -> dict[PairId, int]:
    """Return the grades in replies of the right shape that the checks refused.

    No report has them: they show what the checks keep out.
    """
    found = {}
    for failure in read_records(failures, Failure) if failures.exists() else ():
        try:
            grade = json.loads(failure.raw)["grade"]
        except (ValueError, KeyError, TypeError):
            continue
        query_id, _, chunk_id = failure.key.partition("/")
        if type(grade) is int and 0 <= grade <= 3:
            found[query_id, chunk_id] = grade
    return found


def _judge(pairs: Iterable[PairRow], folder: Path, flags: Sequence[str]) -> Timed:
    folder.mkdir(parents=True, exist_ok=True)
    asked, out = folder / "pairs.jsonl", folder / "judged.jsonl"
    rows = [
        {"query_id": p.query_id, "query": p.query, "chunk_id": p.chunk_id, "text": p.text}
        for p in pairs
    ]
    asked.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    command = [sys.executable, "-m", "ragforge", "judge", "--pairs", str(asked), "--out", str(out)]
    start = time.perf_counter()
    subprocess.run([*command, "-q", *flags], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    judged = {(one.query_id, one.chunk_id): one for one in read_records(out, Judgment)}
    return Timed(judged, seconds)


def _print_row(
    name: str,
    pairs: Sequence[PairRow],
    grades: Mapping[PairId, int],
    scores: Mapping[PairId, float],
    seconds: float,
) -> None:
    people = {(p.query_id, p.chunk_id): p.human_grade for p in pairs if p.human_grade is not None}
    keys = [key for key in people if key in grades]
    own = [scores[key] for key in keys] if scores else None
    grader = Grader(name, [grades[key] for key in keys], own)
    found = agree([query_id for query_id, _ in keys], [people[key] for key in keys], [grader])
    figures = found.graders[0].figures
    counts = [found.n_pairs, found.n_queries, len(pairs) - found.n_pairs]
    cells = [*map(str, counts), *(_cell(figures.get(figure)) for figure in FIGURES)]
    print(f"| {name} | {' | '.join(cells)} | {_rate(len(pairs) / seconds)} |", flush=True)


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.2g}"


def _cell(found: ClusteredInterval | None) -> str:
    if found is None or found.value is None:
        return "-"
    if found.low is None or found.high is None:
        return f"{found.value:.2f}"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


if __name__ == "__main__":
    main()
