"""A set that follows a real corpus through its releases: what is kept, and what each step costs.

A set is generated from the first folder and refreshed with each further one. `ragforge mock`
answers from the text, in a process of its own. After each step this is looked at from outside:
that every quote of an accepted query stands in the documents, that no question comes twice in any
version, that each change names its cause, and that a refresh without a change buys nothing.

    python benchmarks/replay.py docs-0.18 docs-0.20 docs-0.22
    python benchmarks/replay.py -n 200 releases/*

Shares are of the queries that were accepted before: what is kept or remapped took no call to be
found true, what is re-verified took one. Calls for new chunks (judging them, and looking for
conflicts with what they say) and for new queries stand beside.
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from ragforge.mock import Script, serving
from ragforge.records import Action

COLUMNS = (
    "version",
    "accepted before",
    "kept",
    "remapped",
    "re-verified",
    "relinked",
    "answer changed",
    "retired",
    "converted",
    "quarantined",
    "revived",
    "new",
    "accepted",
    "calls: verify",
    "judge",
    "conflicts",
    "generate",
    "at 0 calls",
    "at 0 or 1",
)
ACTIONS = ("kept", *get_args(Action))
ALIKE = 0.8


def main() -> None:
    """Replay and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="+", type=Path, metavar="DIR", help="oldest first")
    parser.add_argument("-n", type=int, default=100, help="queries to begin with")
    parser.add_argument("--keep", type=Path, help="where the set stays; a temporary folder else")
    arguments = parser.parse_args()
    with serving(Script()) as endpoint, tempfile.TemporaryDirectory() as folder:
        dataset = arguments.keep or Path(folder) / "set"
        replay(arguments.releases, dataset, arguments.n, endpoint.url)


def replay(releases: list[Path], dataset: Path, n: int, url: str) -> None:
    """Generate from the first release, refresh with the others, and print what was seen."""
    model = ["--model", "mock", "--base-url", url]
    run(["generate", "--documents", str(releases[0]), "--out", str(dataset), "-n", str(n), *model])
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    free, cheap = [], []
    for release in releases[1:]:
        before = len(accepted(dataset))
        command = ["refresh", "--documents", str(release), "--dataset", str(dataset), *model]
        # Releases lie months apart: what a night must not change, they may.
        found = run([*command, "--accept-churn"])
        check(dataset, release, found)
        again = run(command)
        assert (again["status"], again["spent"]["calls"]) == ("unchanged", 0), again
        items, calls = found["items"], found["calls"]
        assert sum(items.values()) - items.get("added", 0) - items.get("revived", 0) == before
        at_once = items.get("kept", 0) + items.get("remapped", 0)
        verified = at_once + items.get("reverified", 0)
        free.append(at_once / before)
        cheap.append(verified / before)
        cells = [
            release.name,
            before,
            *(items.get(action, 0) for action in ACTIONS),
            len(accepted(dataset)),
            *(calls[purpose] for purpose in ("verify", "judge", "conflicts", "generate")),
            f"{free[-1]:.0%}",
            f"{cheap[-1]:.0%}",
        ]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print(f"\nmean over steps: {mean(free):.1%} kept at 0 calls, {mean(cheap):.1%} at 0 or 1")


def check(dataset: Path, release: Path, found: Mapping[str, Any]) -> None:
    """Check a version from outside."""
    folder = dataset / "current"
    queries = rows(folder / "queries.jsonl")
    for query in accepted(dataset):
        for item in query["evidence"]:
            text = (release / item["doc_id"]).read_text(encoding="utf-8")
            assert fold(item["quote"]) in fold(text), (release.name, query["query_id"], item)
    told = [query["standalone"] or query["query"] for query in queries]
    for one, other in itertools.combinations([words(text) for text in told], 2):
        assert len(one & other) < ALIKE * len(one | other), (one, other)
    for change in found["changes"]:
        assert change["causes"], change


def accepted(dataset: Path) -> list[dict[str, Any]]:
    """Return the accepted queries of the published version."""
    current = dataset / "current"
    folder = current if current.exists() else dataset
    return [query for query in rows(folder / "queries.jsonl") if query["status"] == "accepted"]


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def fold(text: str) -> str:
    """Return a text in the form in which quotes are compared."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def words(text: str) -> frozenset[str]:
    """Return the words of a question."""
    return frozenset(re.findall(r"\w+", text.casefold()))


def mean(values: Iterable[float]) -> float:
    """Return the mean."""
    found = list(values)
    return sum(found) / len(found)


def run(command: list[str]) -> dict[str, Any]:
    """Run a command of ragforge and return what it printed."""
    environment = {**os.environ, "OPENAI_API_KEY": "none"}
    done = subprocess.run(
        [sys.executable, "-m", "ragforge", *command, "--json", "--quiet"],
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return dict(json.loads(done.stdout))


if __name__ == "__main__":
    main()
