"""What a protocol says of the fields that go into each request beside those of ragforge.

A model that reasons longer, or not at all, is another judge.
"""

import json
from typing import Final

from ragforge.deferred import hashlib, pattern

_TOLD: Final = pattern(r"(?:, |^)(body [^,]{1,200} [0-9a-f]{8})(?=,|$)")


def told_extra_body(extra_body: str) -> str:
    """Return the part of a protocol for fields; "" where there are none.

    Args:
        extra_body: See `ModelSettings.extra_body`. Values may be secret: a digest tells them apart.
    """
    fields = json.loads(extra_body or "{}")
    if not fields:
        return ""
    written = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return f"body {'+'.join(sorted(fields))} {hashlib.sha256(written.encode()).hexdigest()[:8]}"


def extra_body_in(protocol: str) -> str:
    """Return the part of a protocol that tells fields, or ""."""
    found = _TOLD.search(protocol)
    return found[1] if found else ""


def without_extra_body(protocol: str) -> str:
    """Return a protocol without that part."""
    return _TOLD.sub("", protocol).removeprefix(", ")
