"""What is measured: one case per row of the table, or two where ragforge is called in two ways."""

from dataclasses import dataclass
from typing import Final, Literal

from data import Shape

Kind = Literal["dicts", "rescore", "trec", "objects", "columns", "cold"]


@dataclass(frozen=True, slots=True)
class Case:
    """One input, given to all tools in one way."""

    name: str
    title: str
    kind: Kind
    shape: Shape
    repeat: int
    """How often each tool is timed unless the command line says otherwise."""
    large: bool = False
    """Whether it takes a wish to run it: gigabytes and many minutes."""
    skipped: tuple[str, ...] = ()
    """Tools that the input is too large for."""


SMALL: Final = Shape(1000, 100)
MARCO: Final = Shape(6980, 1000)
"""The size of MS MARCO's small development set with the usual depth."""
DEEP: Final = Shape(700, 1000)

CASES: Final = (
    Case("dicts-200x10", "dicts 200 x 10, 5 judged", "dicts", Shape(200, 10, judged=5), 9),
    Case("dicts-1000x20", "dicts 1,000 x 20, 10 judged", "dicts", Shape(1000, 20), 9),
    Case("dicts-1000x100", "dicts 1,000 x 100", "dicts", SMALL, 9),
    Case("dicts-6980x1000", "dicts 6,980 x 1,000", "dicts", MARCO, 5),
    Case("dicts-700x1000", "dicts 700 x 1,000, best first", "dicts", DEEP, 7),
    Case(
        "dicts-shuffled",
        "dicts 700 x 1,000, shuffled",
        "dicts",
        Shape(700, 1000, shuffled=True),
        7,
    ),
    Case(
        "dicts-ties",
        "dicts 700 x 1,000, scores to 1 decimal",
        "dicts",
        Shape(700, 1000, scores="one-decimal"),
        7,
    ),
    Case(
        "dicts-all-tied",
        "dicts 700 x 1,000, all tied",
        "dicts",
        Shape(700, 1000, scores="all-tied"),
        7,
    ),
    Case(
        "dicts-200-judged",
        "dicts 700 x 1,000, 200 judged",
        "dicts",
        Shape(700, 1000, judged=200),
        7,
    ),
    Case("trec-6980x1000", "TREC file 6,980 x 1,000", "trec", MARCO, 3),
    Case(
        "trec-50000x1000",
        "TREC file 50,000 x 1,000",
        "trec",
        Shape(50_000, 1000),
        1,
        large=True,
        skipped=("ir_measures", "ranx-classes"),
    ),
    Case("objects-6980x1000", "JSONL 6,980 x 1,000, objects", "objects", MARCO, 3),
    Case("columns-6980x1000", "JSONL 6,980 x 1,000, columns", "columns", MARCO, 3),
    Case("cold-1000x100", "cold process, TREC 1,000 x 100", "cold", SMALL, 9),
    Case("rescore-1000x100", "re-scoring 1,000 x 100", "rescore", SMALL, 9),
    Case("rescore-6980x1000", "re-scoring 6,980 x 1,000", "rescore", MARCO, 5),
)
