"""Sections: the blocks under one heading, with the titles around them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ragforge.corpus.blocks import Block

_VISIBLE = re.compile(r"[^\W_]")
_TITLE_PARTS = re.compile(r"(?<!\s)\s+[-–—|·»:]\s+")  # noqa: RUF001  # dashes as page titles have them


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks in order; its own heading, and empty headings before it, come first."""

    path: tuple[str, ...]
    blocks: list[Block] = field(default_factory=list)


def sections(text: str, blocks: Iterable[Block], title: str) -> list[Section]:
    """Return the sections that say something, each with the titles from outermost to innermost.

    A heading with nothing under it is put before the section that follows, or behind the last
    one. A document of headings alone has no sections.

    Args:
        text: The text that the blocks are offsets in.
        blocks: All blocks of a document, in order.
        title: Of the document; heads each path unless the first heading repeats it.
    """
    found: list[Section] = []
    pending: list[Block] = []
    for section in _headed(blocks):
        if not _says_something(text, section):
            pending.extend(section.blocks)
            continue
        found.append(Section(section.path, pending + section.blocks))
        pending = []
    if found:
        found[-1].blocks.extend(pending)
    elif any(block.kind != "heading" for block in pending):
        found.append(Section((), pending))
    root = _root(title, found)
    return [Section(root + section.path, section.blocks) for section in found]


def _headed(blocks: Iterable[Block]) -> Iterator[Section]:
    section = Section(())
    open_headings: list[Block] = []
    for block in blocks:
        if block.kind == "heading":
            yield section
            while open_headings and open_headings[-1].level >= block.level:
                open_headings.pop()
            open_headings.append(block)
            section = Section(tuple(heading.title for heading in open_headings))
        section.blocks.append(block)
    yield section


def _says_something(text: str, section: Section) -> bool:
    return any(
        block.kind not in {"heading", "mark"} and _VISIBLE.search(text, block.start, block.end)
        for block in section.blocks
    )


def _root(title: str, found: list[Section]) -> tuple[str, ...]:
    """Return the title as the head of all paths; nothing where the first heading repeats it.

    Page titles often are "Heading - Name of the site".
    """
    first = next((section.path[0] for section in found if section.path), "")
    return () if not title or first in {title, *_TITLE_PARTS.split(title)} else (title,)
