"""Explain a subject. There is one: `measures`, which measure is for what.

Examples:
  ragforge help measures
"""

import argparse
from typing import Final, NamedTuple

from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps, show
from ragforge.evaluating.formatting import render_table

_NOTES: Final = (
    "Binary measures (P, R, RR, AP, Success) count a chunk as relevant or not: from grade 2 on, or",
    "from 1 where no grade is higher; --rel-threshold or P(rel=1)@5 changes that. nDCG and ERR use",
    "the grades themselves.",
    "",
    "Patterns:",
    "  precision high, recall low    what is found is right, but too little: raise k, or let the",
    "                                retriever look further",
    "  recall high, precision low    it is there among much else: rerank, or lower k",
    "  recall high, RR low           it is found and stands too far down: rerank",
    "  hit rate high, nDCG low       something of use is found, the best is not at the top: rerank",
    "  all low                       look at the worst queries: `ragforge worst --dataset DIR`",
)


class Guidance(NamedTuple):
    """What a measure is for."""

    measure: str
    """An example, as it may be asked for."""
    also_called: str
    answers: str
    """The question that it answers."""
    look_when: str


GUIDE: Final = (
    Guidance(
        "nDCG@10",
        "normalised DCG",
        "Are the best chunks at the top?",
        "you have grades 0-3; the first measure to compare retrievers by",
    ),
    Guidance(
        "R@10",
        "recall",
        "How much of what is relevant was found?",
        "a model reads all k chunks, so that order matters less than what is missing",
    ),
    Guidance(
        "P@5",
        "precision",
        "How much of the top is of use?",
        "context is dear, or noise leads the model astray",
    ),
    Guidance(
        "Success@5",
        "hit rate, hit@5",
        "Is there anything of use at all?",
        "one chunk answers the question",
    ),
    Guidance(
        "RR",
        "MRR, reciprocal rank",
        "How far down is the first chunk of use?",
        "people, or a model, read from the top and stop",
    ),
    Guidance(
        "AP",
        "MAP, average precision",
        "Are all relevant chunks near the top?",
        "several chunks are relevant, and relevance is yes or no",
    ),
    Guidance(
        "ERR@10",
        "expected reciprocal rank",
        "When is a reader satisfied?",
        "one very good chunk is worth more than several fair ones",
    ),
    Guidance(
        "EvidenceR@10",
        "evidence recall",
        "Is the text with the answer there?",
        "chunks differ between runs; EvidenceR(tokens=2000): in so much of a prompt",
    ),
    Guidance(
        "TokenIoU@10",
        "IoU",
        "How much of the text is evidence?",
        "sizes of chunks differ; TokenR and TokenP tell its two sides apart",
    ),
    Guidance(
        "Judged@10",
        "",
        "How much of the top was graded?",
        "always: with many holes all other measures are too low",
    ),
)


def guide_text() -> str:
    """Return the guide as a terminal shows it."""
    headers = ("measure", "also called", "answers", "look at it when")
    return "\n".join([render_table(headers, GUIDE), "", *_NOTES])


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("subject", choices=("measures",), help="what to explain")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.json:
        print(dumps({"measures": [entry._asdict() for entry in GUIDE]}))
    else:
        show(guide_text())
    return 0
