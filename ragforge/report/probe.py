"""What a question to a service showed, as text and as JSON."""

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

from ragforge.config.toml_text import service_toml
from ragforge.evaluating.formatting import one_line
from ragforge.retrieval import ContextPassage
from ragforge.retrieval.services.client import Exchange
from ragforge.retrieval.services.probes import Probe
from ragforge.retrieval.services.retriever import Result

_TEXT_SHOWN: Final = 60
_ID_SHOWN: Final = 40
_WIDTH: Final = 90
_LINES: Final = 40
_ITEMS: Final = 2
_START: Final = 400
_VECTOR_LENGTH: Final = 8
"""From so many numbers on, a list is one of an embedding."""


def render_probe(probe: Probe) -> str:
    """Return a probe as text: request, reply, what was understood, and what may be missing."""
    return "\n".join(_lines(probe))


def probe_json(probe: Probe) -> dict[str, Any]:
    """Return a probe as plain values."""
    return {
        "service": probe.where,
        "question": probe.question,
        "state": probe.state,
        "reason": probe.reason,
        "exchanges": [_exchange_json(exchange) for exchange in probe.exchanges],
        "results": [
            {
                "rank": rank,
                "id": result.id,
                "document": result.document,
                "score": result.score,
                "text": result.text,
                **({"in_the_set": place} if place is not None else {}),
            }
            for rank, (result, place) in enumerate(_with_places(probe), 1)
        ],
        "answer": None if probe.answer is None else probe.answer.text,
        "contexts": [
            {"ids": [*passage.ids], "texts": [*passage.texts], "documents": [*passage.doc_ids]}
            for passage in (probe.answer.context if probe.answer else ())
        ],
        "missing": [*probe.missing],
        "proposals": [
            {"setting": item.setting, "path": item.path, "found": item.found}
            for item in probe.proposals
        ],
        "settings": dict(probe.settings),
    }


def _exchange_json(exchange: Exchange) -> dict[str, Any]:
    return {
        "request": {
            "method": exchange.method,
            "address": exchange.address,
            "headers": dict(exchange.headers),
            "body": exchange.body,
        },
        "reply": {
            "status": exchange.status,
            "content_type": exchange.content_type,
            "text": exchange.text[: _START * 10],
            "n_characters": len(exchange.text),
            "duration_s": round(exchange.duration_s, 3),
        },
    }


def _lines(probe: Probe) -> Iterator[str]:
    if probe.exchanges:
        yield from _exchange_lines(probe.exchanges[-1], len(probe.exchanges))
        yield ""
    yield f"{probe.state}{_summary(probe)}"
    if probe.results:
        yield ""
        yield from _result_lines(probe)
    if probe.answer is not None:
        yield from ("", *probe.answer.text.splitlines(), "")
        yield from _context_lines(probe.answer.context)
    if probe.missing:
        yield ""
        yield f"nothing was found for: {', '.join(probe.missing)}"
    if probe.proposals:
        yield from ("", *_proposal_lines(probe))
    if probe.settings and probe.state != "failed":
        yield from ("", "for a settings file, under a name of yours:")
        yield from (f"  {line}" for line in service_toml(probe.where, probe.settings))


def _summary(probe: Probe) -> str:
    if probe.reason:
        return f": {one_line(probe.reason, 500)}"
    if probe.answer is not None:
        return f": an answer, with {len(probe.answer.context):,} passages of context"
    if not probe.results:
        return ": nothing was found, which is a value"
    return f": {len(probe.results):,} results"


def _exchange_lines(exchange: Exchange, n_exchanges: int) -> Iterator[str]:
    which = f" (the last of {n_exchanges})" if n_exchanges > 1 else ""
    yield f"request{which}"
    yield f"  {exchange.method} {one_line(exchange.address, 300)}"
    for name, value in exchange.headers.items():
        yield f"  {name}: {one_line(value, 200)}"
    if exchange.body is not None:
        yield from _indented(_pretty(exchange.body))
    kind = exchange.content_type or "no content type"
    yield (
        f"reply  {exchange.status} {one_line(kind, 60)}, {len(exchange.text):,} characters, "
        f"{exchange.duration_s:.2f} s"
    )
    yield from _indented(_shortened(exchange.text))


def _shortened(text: str) -> str:
    """Return a reply with short texts and short lists; the start of one that is no JSON."""
    try:
        return _pretty(json.loads(text))
    except (ValueError, RecursionError):
        return text if len(text) <= _START else f"{text[:_START]}…"


def _pretty(value: object) -> str:
    return _laid_out(_cut(value), "")


def _laid_out(value: object, before: str) -> str:
    """Return JSON in which what fits on a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(before) + len(line) <= _WIDTH or not isinstance(value, dict | list):
        return line
    inner = f"{before}  "
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: {_laid_out(item, inner)}"
            for key, item in value.items()
        ]
        return "\n".join(["{", *(f"{inner}{part}" for part in _with_commas(parts)), f"{before}}}"])
    parts = [_laid_out(item, inner) for item in value]
    return "\n".join(["[", *(f"{inner}{part}" for part in _with_commas(parts)), f"{before}]"])


def _with_commas(parts: Sequence[str]) -> list[str]:
    return [*(f"{part}," for part in parts[:-1]), *parts[-1:]]


def _cut(value: object) -> object:
    match value:
        case str() if len(value) > _TEXT_SHOWN:
            return f"{value[:_TEXT_SHOWN]}…"
        case list() if len(value) >= _VECTOR_LENGTH and all(
            isinstance(item, int | float) for item in value
        ):
            return f"({len(value):,} numbers)"
        case list() if len(value) > _ITEMS:
            return [*map(_cut, value[:_ITEMS]), f"… {len(value) - _ITEMS:,} more"]
        case list():
            return list(map(_cut, value))
        case dict():
            return {key: _cut(item) for key, item in value.items()}
    return value


def _indented(text: str) -> Iterator[str]:
    lines = text.splitlines()
    for line in lines[:_LINES]:
        yield f"  {line}"
    if len(lines) > _LINES:
        yield f"  … {len(lines) - _LINES:,} lines more"


def _with_places(probe: Probe) -> list[tuple[Result, str | None]]:
    return list(zip_longest(probe.results, probe.places[: len(probe.results)]))


def _result_lines(probe: Probe) -> Iterator[str]:
    heads = ("rank", "id", *(("in the set",) if probe.places else ()), "document", "score", "text")
    rows: list[tuple[str, ...]] = [heads]
    for rank, (result, place) in enumerate(_with_places(probe), 1):
        rows.append(
            (
                str(rank),
                _cell(result.id, _ID_SHOWN),
                *((_cell(place, _ID_SHOWN),) if probe.places else ()),
                _cell(result.document, _ID_SHOWN),
                "-" if result.score is None else f"{result.score:g}",
                _cell(result.text, _TEXT_SHOWN),
            )
        )
    yield from _table(rows)


def _context_lines(context: Sequence[ContextPassage]) -> Iterator[str]:
    if not context:
        return
    rows = [("context", "id", "document", "text")]
    for number, passage in enumerate(context, 1):
        rows.append(
            (
                str(number),
                _cell(next(iter(passage.ids), None), _ID_SHOWN),
                _cell(next(iter(passage.doc_ids), None), _ID_SHOWN),
                _cell(next(iter(passage.texts), None), _TEXT_SHOWN),
            )
        )
    yield from _table(rows)


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _cell(value: str | None, length: int) -> str:
    return "-" if value is None else one_line(value, length)


def _proposal_lines(probe: Probe) -> Iterator[str]:
    yield f"these paths may be meant, in [{probe.where}]:"
    for item in probe.proposals:
        path = json.dumps(item.path, ensure_ascii=False)
        yield f"  {item.setting} = {path}   # {one_line(item.found, 80)}"
