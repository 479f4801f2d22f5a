import asyncio
import json

import pytest

from ragforge.errors import CallError, UsageError
from ragforge.foreign.posting import Service, address_of


@pytest.fixture
def post():
    """Post to an address and wait."""
    return lambda url, body=None: asyncio.run(
        Service(url, what="thing", function="f(x)", timeout_s=10).post(body or {})
    )


def test_the_json_of_the_reply_is_returned_with_its_start(server, post):
    """The start goes into failure records, where all of it may be too long."""
    server.body = json.dumps({"a": "b" * 1000}).encode()

    reply = post(server.url, {"x": 1})

    assert reply.value == {"a": "b" * 1000}
    assert reply.start == server.body.decode()[:200]
    assert json.loads(server.requests[0][2]) == {"x": 1}


def test_an_error_status_is_no_reply(server, post):
    """Whatever its body says."""
    server.status, server.body = 404, b"{}"

    with pytest.raises(CallError, match=r"status 404: '\{\}'") as caught:
        post(server.url)

    assert (caught.value.kind, caught.value.raw) == ("error", "{}")


def test_messages_name_the_thing(post):
    """The user knows it by the flag it was given with."""
    with pytest.raises(UsageError, match="thing address 'ftp://x'; expected http://HOST"):
        post("ftp://x")


@pytest.mark.parametrize("spec", ["http://h/x", "http:http://h/x"])
def test_an_address_may_have_a_prefix(spec):
    """Both ways of writing it are in use."""
    assert address_of(spec, "thing") == "http://h/x"
