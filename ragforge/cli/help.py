"""Explain a subject, or show the help of a command; without a name, lists the subjects.

Examples:
  ragforge help
  ragforge help measures
  ragforge help budgets
  ragforge help judge audit
"""

import argparse
from collections.abc import Mapping
from typing import Final, NamedTuple

from ragforge.cli import COMMANDS, main
from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps, show
from ragforge.errors import UsageError, did_you_mean
from ragforge.files.shipped_folders import shipped

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
    width = max(len(entry.measure) for entry in GUIDE)
    lines = []
    for entry in GUIDE:
        names = f"({entry.also_called})" if entry.also_called else ""
        lines.append(f"{entry.measure:<{width}}  {entry.answers}  {names}".rstrip())
        lines.append(f"{'':<{width}}  {entry.look_when}")
    return "\n".join([*lines, "", *_NOTES])


def subjects() -> dict[str, str]:
    """Return what can be explained, each with its title."""
    titles = {"measures": "which measure is for what"}
    for path in sorted(shipped("docs/help").glob("*.md")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        titles[path.stem] = first.partition(": ")[2] or first.removeprefix("# ")
    return titles


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("subject", nargs="*", metavar="TOPIC", help="a subject, or a command")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    words = arguments.subject
    titles = subjects()
    if words and words[0] in COMMANDS:
        return main([*words, "--help"])
    subject = " ".join(words)
    if not subject:
        _list(titles, as_json=arguments.json)
    elif subject not in titles:
        near = did_you_mean(subject, [*titles, *COMMANDS])
        raise UsageError(f"no subject {subject!r}{near}; there are: {', '.join(titles)}")
    elif subject == "measures":
        measures = {"measures": [entry._asdict() for entry in GUIDE]}
        show(dumps(measures) if arguments.json else guide_text())
    else:
        text = (shipped("docs/help") / f"{subject}.md").read_text(encoding="utf-8").rstrip()
        show(dumps({"subject": subject, "text": text}) if arguments.json else text)
    return 0


def _list(titles: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        show(dumps({"subjects": dict(titles)}))
        return
    width = max(map(len, titles))
    show("\n".join(f"ragforge help {name:<{width}}  {title}" for name, title in titles.items()))
