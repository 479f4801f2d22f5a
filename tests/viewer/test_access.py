import re

import pytest

from ragforge.files.set.opening import create_dataset
from ragforge.viewer.access import SiteAccess
from ragforge.viewer.server import serving

TOKEN = "a-token-of-some-length"
ADDRESSES = ("/", "/datasets/first", "/datasets/first/report", "/api/datasets", "/view.js", "/none")


@pytest.fixture(scope="module")
def only_read(tmp_path_factory):
    """A dataset that no test changes."""
    return create_dataset(tmp_path_factory.mktemp("sets") / "first", {"seed": "0"}).path


@pytest.fixture(scope="module")
def site(only_read, site_at):
    """The site of it, for all tests of this module."""
    with serving([only_read], lambda dataset: "report") as access:
        yield site_at(access)


@pytest.fixture(scope="module")
def token_site(only_read, site_at):
    """The same, behind a token."""
    with serving([only_read], lambda dataset: "report", TOKEN) as access:
        yield site_at(access)


@pytest.mark.parametrize("path", ADDRESSES)
def test_a_forged_host_is_answered_nowhere(site, path):
    """A name that was made to lead to loopback must not read the datasets."""
    assert site.ask(path, Host=f"evil.example:{site.access.port}").status == 421


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:1", "", "127.0.0.1:", "localhost.evil.example", "a b", None]
)
def test_another_port_or_no_host_is_not_this_site(site, host):
    """Only what leads here by its own name is served; HTTP/1.1 demands a Host at all."""
    assert site.ask("/", Host=host).status in (400, 421)


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"])
def test_the_names_of_loopback_are_served(site, name):
    """People type any of them."""
    assert site.ask("/", Host=f"{name}:{site.access.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_requests_of_other_sites_are_turned_away(site, headers):
    """A page elsewhere in the browser must not ask in the user's name."""
    assert site.ask("/api/datasets", **headers).status == 403


def test_the_own_origin_is_served(site):
    """The script of the page asks from there."""
    origin = f"http://127.0.0.1:{site.access.port}"

    assert site.ask("/", Origin=origin, Sec_Fetch_Site="same-origin").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_but_reading_is_allowed(site, method):
    """Nothing can be changed from a page."""
    reply = site.ask("/", method)

    assert (reply.status, reply.getheader("Allow")) == (405, "GET, HEAD")


def test_head_has_the_headers_and_no_body(site):
    """It is how a monitor asks."""
    reply = site.ask("/", "HEAD")

    assert (reply.status, reply.text, reply.getheader("ETag") is not None) == (200, "", True)


@pytest.mark.parametrize("path", [*ADDRESSES, "/datasets/first/none"])
def test_every_reply_tells_the_browser_to_be_strict(site, path):
    """Errors show texts too."""
    reply = site.ask(path)
    policy = reply.getheader("Content-Security-Policy")

    assert policy.startswith("default-src 'none'")
    assert policy.endswith("frame-ancestors 'none'")
    assert reply.getheader("X-Content-Type-Options") == "nosniff"
    assert reply.getheader("Referrer-Policy") == "no-referrer"
    assert reply.getheader("Cache-Control") == "no-store"


def test_a_refusal_is_as_strict(site):
    """It goes to a browser as well."""
    reply = site.ask("/", Host="evil.example")

    assert reply.getheader("Content-Security-Policy").startswith("default-src 'none'")


@pytest.mark.parametrize("path", ADDRESSES)
def test_without_the_token_nothing_is_told(token_site, path):
    """Not even which datasets there are."""
    assert (token_site.ask(path).status, "first" in token_site.ask(path).text) == (401, False)


@pytest.mark.parametrize("given", ["wrong-token-of-length", TOKEN[:-1], TOKEN + "x", "", "\u00fc"])
def test_a_wrong_token_lets_nobody_in(token_site, given):
    """Near is not enough, and odd bytes are no error."""
    shown = given.encode("utf-8").decode("latin-1")

    assert token_site.ask("/", Authorization=f"Bearer {shown}").status == 401


def test_the_token_in_a_header_lets_programs_in(token_site):
    """They need no cookie."""
    assert token_site.ask("/api/datasets", Authorization=f"Bearer {TOKEN}").status == 200


def test_the_token_in_the_address_becomes_a_cookie_once(token_site):
    """It does not stay in the address bar, and no script can read it."""
    reply = token_site.ask(f"/datasets/first?token={TOKEN}")
    cookie = reply.getheader("Set-Cookie")

    assert (reply.status, reply.getheader("Location")) == (303, "/datasets/first")
    assert re.search("HttpOnly", cookie)
    assert re.search("SameSite=strict", cookie, re.IGNORECASE)


def test_the_cookie_lets_browsers_in(token_site):
    """It is all they send from then on."""
    cookie = token_site.ask(f"/?token={TOKEN}").getheader("Set-Cookie").partition(";")[0]

    assert token_site.ask("/", Cookie=cookie).status == 200


def test_the_way_back_stays_on_the_site(token_site):
    """An address that looks like another host must not become one."""
    reply = token_site.ask(f"//evil.example/?token={TOKEN}")

    assert reply.getheader("Location") == "/evil.example/"


def test_a_token_in_the_address_helps_no_forged_host(token_site):
    """Who knows it may still be another site."""
    assert token_site.ask(f"/?token={TOKEN}", Host="evil.example").status == 421


@pytest.mark.parametrize(
    ("host", "asked", "known"),
    [
        ("127.0.0.1", "localhost:80", True),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "10.0.0.1:80", False),
        ("::1", "[::1]:80", True),
        ("10.0.0.1", "10.0.0.1:80", True),
        ("10.0.0.1", "localhost:80", False),
        ("0.0.0.0", "10.0.0.7:80", True),
        ("0.0.0.0", "evil.example:80", False),
        ("::", "[fd00::1]:80", True),
    ],
)
def test_a_door_knows_its_names(host, asked, known):
    """Where any address leads here, a name that somebody else may own still does not."""
    assert SiteAccess(host, 80).knows(asked) is known


def test_the_address_holds_the_token():
    """It is printed once, and opened as it is."""
    assert SiteAccess("0.0.0.0", 80, TOKEN).address == f"http://127.0.0.1:80/?token={TOKEN}"
