"""What a browser may do with a page that says so itself."""

import html
import re
from typing import Final

from starlette.responses import Response

_POLICY: Final = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_HEAD_CHARS: Final = 4000


def with_own_policy(reply: Response, page: str) -> Response:
    """Put the policy of a page into the header of its reply: hashes of what is in it, no frames."""
    policy = _POLICY.search(page[:_HEAD_CHARS])
    if policy is not None:
        own = f"{html.unescape(policy[1])}; frame-ancestors 'none'"
        reply.headers["Content-Security-Policy"] = own
    return reply
