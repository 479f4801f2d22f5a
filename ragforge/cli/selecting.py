"""The flags that choose a part of a set's queries, and the set with that part chosen."""

import argparse
from typing import TYPE_CHECKING

from ragforge.cli.talk import complain
from ragforge.config import each_setting
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.files.set.dataset import Dataset


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add `--sample`, `--by` and `--split`; the seed is that of the settings, see `add_seed`."""
    group = parser.add_argument_group("queries")
    group.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="only N queries, drawn from each stratum in proportion; means are of the whole set",
    )
    group.add_argument(
        "--by",
        metavar="FIELD",
        help="strata of the sample: category, difficulty, type, persona, language, split, origin, "
        "expected_behaviour or none. Default: category, else difficulty, as far as queries have it",
    )
    group.add_argument(
        "--split", choices=("dev", "test"), help="only queries of this split; goes with --sample"
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add `--seed` where a command has no other settings of the model."""
    [setting] = [item for item in each_setting("model") if item.flag == "seed"]
    parser.add_argument(
        "--seed", dest=setting.dest, metavar="N", help="seed of the sample. Default: 0."
    )


def choose_queries(arguments: argparse.Namespace, dataset: "Dataset", seed: int) -> "Dataset":
    """Return the dataset with the part of its queries chosen that flags ask for.

    Args:
        arguments: Have what `add_selection` added.
        dataset: The whole set.
        seed: Of the sample: that of the settings.

    Raises:
        UsageError: A flag cannot be taken.
        DataError: There are no queries.
    """
    from ragforge.files.set.query_selection import Wanted, choose

    _check(arguments)
    sample, split = arguments.sample, arguments.split
    if sample is None and split is None:
        return dataset
    wanted = Wanted(split, sample, seed, arguments.by or "")
    chosen = choose(dataset.require_accepted_queries(), wanted)
    if sample is not None and (chosen is None or chosen.design is None):
        where = f"split {split}" if split else "the set"
        n = len(dataset.require_accepted_queries() if chosen is None else chosen.query_ids)
        complain(f"--sample {sample}: {where} has {n:,} queries, and all are taken")
    return dataset.choosing(chosen)


def refuse_selection(arguments: argparse.Namespace) -> None:
    """Refuse the flags where there is no dataset to choose from.

    Raises:
        UsageError: One is given.
    """
    given = [name for name in ("sample", "by", "split") if getattr(arguments, name) is not None]
    if given:
        raise UsageError(f"--{given[0]}: goes with --dataset DIR, which has the queries")


def tell_chosen(dataset: "Dataset") -> None:
    """Print on stderr which queries are chosen, with the weights of their strata."""
    from ragforge.evaluating.selection import drawn_lines

    if dataset.chosen is not None:
        for line in drawn_lines(dataset.chosen):
            complain(line)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.sample is None and arguments.by is not None:
        raise UsageError("--by: goes with --sample N")
