"""Running headers and footers: lines that stand at the edge of most pages of a document."""

import re
from collections import Counter
from collections.abc import Sequence

_EDGE_LINES = 3
_FEWEST_PAGES = 3
_NUMBER = re.compile(r"\d+|\b[ivxlc]+\b")


def without_running_lines(pages: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the pages without what is repeated at the top or the bottom of most of them.

    Digits and Roman numbers do not count: `Page 3 of 9` and `Page 4 of 9` are one line. The
    outermost line of a page goes already if it comes on three pages and holds their number, as
    the headers of chapters do. A document of fewer than three pages is left as it is.

    Args:
        pages: The lines of each page.
    """
    stripped = [_without_blank_edges(page) for page in pages]
    if len(stripped) < _FEWEST_PAGES:
        return stripped
    counts: Counter[str] = Counter()
    numbered: Counter[str] = Counter()
    for page in stripped:
        counts.update({_folded(page[at]) for at in _edges(page)})
        numbered.update({_folded(line) for line in (*page[:1], *page[-1:])})
    # Left and right pages may differ, and chapters begin without a header.
    fewest = max(_FEWEST_PAGES, len(stripped) * 2 // 5)
    running = {line for line, count in counts.items() if count >= fewest}
    running |= {
        line
        for line, count in numbered.items()
        if count >= _FEWEST_PAGES and (line.startswith("# ") or line.endswith(" #"))
    }
    return [_without(page, running) for page in stripped]


def _without_blank_edges(page: Sequence[str]) -> list[str]:
    filled = [at for at, line in enumerate(page) if line.strip()]
    return list(page[filled[0] : filled[-1] + 1]) if filled else []


def _edges(page: Sequence[str]) -> list[int]:
    top = range(min(_EDGE_LINES, len(page)))
    bottom = range(max(0, len(page) - _EDGE_LINES), len(page))
    return sorted({*top, *bottom})


def _without(page: list[str], running: set[str]) -> list[str]:
    edges = {at for at in _edges(page) if _folded(page[at]) in running}
    return _without_blank_edges([line for at, line in enumerate(page) if at not in edges])


def _folded(line: str) -> str:
    return _NUMBER.sub("#", " ".join(line.casefold().split()))
