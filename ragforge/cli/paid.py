"""What commands that may ask a model share."""

import argparse
from typing import Any

from ragforge.cli.flags import dumps


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add `--dry-run`."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print calls, tokens and money that a run would take, and ask nothing",
    )


def print_estimate(estimate: dict[str, Any], *, as_json: bool) -> None:
    """Print what a dry run counted."""
    if as_json:
        print(dumps(estimate))
        return
    print(f"calls: {estimate['calls']} (and {estimate['cached']} in the call store)")
    if "tokens" not in estimate:
        print("the offline baseline asks nothing and costs nothing")
        return
    print(f"calls if every reply needs its repair turn: {estimate['calls_high']}")
    for name, tokens in estimate["tokens"].items():
        cost = estimate["cost_usd"][name]
        money = "price unknown" if cost is None else f"{cost:.4f} USD"
        print(f"{name}: {tokens} tokens, {money}")
