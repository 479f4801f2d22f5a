"""Behind a reverse proxy: a real one on loopback, which shows the site below a path of its own."""

import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urljoin

import pytest

from ragforge.viewer.access import PublicAddress, SiteAccess
from ragforge.viewer.server import serving

TOKEN = "a-token-of-thirty-letters-long"
PREFIX = "/team/sets"


@contextmanager
def proxied(strips, keeps_host):
    """Serve a proxy; yields its port, and where to say which port it leads to."""
    target = {}

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.removeprefix(PREFIX) or "/" if strips else self.path
            connection = HTTPConnection("127.0.0.1", target["port"], timeout=20)
            headers = dict(self.headers)
            if not keeps_host:
                headers["Host"] = f"127.0.0.1:{target['port']}"
            connection.request("GET", path, headers=headers)
            reply = connection.getresponse()
            body = reply.read()
            self.send_response(reply.status)
            for name, value in reply.getheaders():
                if name.lower() not in {"content-length", "date", "transfer-encoding"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        def log_message(self, *_):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], target
        server.shutdown()


@pytest.fixture(params=[(True, True), (True, False), (False, True), (False, False)])
def ask(request, folder, dataset, render):
    """Ask the proxy for a path; it takes its own off or not, and keeps the host's name or not."""
    with proxied(*request.param) as (port, target):
        public = PublicAddress.parse(f"http://127.0.0.1:{port}{PREFIX}")
        with serving([folder], render, TOKEN, public=public) as access:
            target["port"] = access.port

            def run(path, **headers):
                connection = HTTPConnection("127.0.0.1", port, timeout=20)
                connection.request("GET", path, headers=headers)
                reply = connection.getresponse()
                reply.text = reply.read().decode()
                connection.close()
                return reply

            run.access = access
            yield run


def test_the_printed_address_lets_in_and_leads_on(ask):
    """Token, cookie, style sheet, a dataset and its report: all below the proxy's path."""
    printed = ask.access.address.split("127.0.0.1", 1)[1].partition("/")
    entry = ask(f"/{printed[2]}")
    cookie = entry.getheader("Set-Cookie")
    assert (entry.status, entry.getheader("Location")) == (303, f"{PREFIX}/")
    assert f"Path={PREFIX}/" in cookie

    held = {"Cookie": cookie.partition(";")[0]}
    home = ask(f"{PREFIX}/", **held)
    assert home.status == 200
    for link in ("view.css", "view.js", "datasets/first"):
        assert f'"{link}"' in home.text
        assert ask(urljoin(f"{PREFIX}/", link), **held).status == 200
    page = ask(f"{PREFIX}/datasets/first", **held)
    for link in ("../view.css", "../", "first/report"):
        assert f'"{link}"' in page.text
        assert ask(urljoin(f"{PREFIX}/datasets/first", link), **held).status == 200


def test_nobody_is_let_in_without_the_token(ask):
    """A proxy opens the site to a network; only whether it answers is told to all."""
    assert ask(f"{PREFIX}/").status == 401
    assert ask(f"{PREFIX}/metrics").status == 401
    health = ask(f"{PREFIX}/healthz")
    assert (health.status, health.text) == (200, "ok\n")


def test_metrics_are_those_of_the_latest_evaluation(ask, dataset, add, make_evaluation):
    """For a Prometheus that scrapes the proxy."""
    add(dataset, make_evaluation(mean=0.625, at="2026-01-02T00:00:00+00:00"))

    told = ask(f"{PREFIX}/metrics", Authorization=f"Bearer {TOKEN}")

    assert told.getheader("Content-Type").startswith("text/plain; version=0.0.4")
    wanted = 'ragforge_measure{dataset="first",run="bm25",measure="nDCG@10"} 0.625'
    assert told.text.count(wanted) == 1
    assert " 0.5\n" not in told.text.partition("ragforge_measure_low")[0]


def test_problems_are_told_with_links_that_arrive(ask):
    """However deep the address that leads nowhere."""
    held = {"Authorization": f"Bearer {TOKEN}"}
    page = ask(f"{PREFIX}/datasets/none/report", **held)

    assert page.status == 404
    assert 'href="../../"' in page.text
    assert ask(urljoin(f"{PREFIX}/datasets/none/report", "../../view.css"), **held).status == 200


def test_another_host_is_still_answered_nowhere(ask, site_at):
    """The proxy's name is known, and no other."""
    reply = site_at(ask.access).ask("/", Host="evil.example")

    assert reply.status == 421


@pytest.mark.parametrize(
    "url",
    ["host.example", "ftp://host.example", "https://host.example/../x", "https://h/a?b", "//h"],
)
def test_what_is_no_address_is_refused(url):
    """Before anything is served."""
    with pytest.raises(ValueError, match="expected an address"):
        PublicAddress.parse(url)


def test_a_site_behind_a_proxy_needs_a_token():
    """Whoever builds one otherwise is told."""
    with pytest.raises(ValueError, match="with a token only"):
        SiteAccess("127.0.0.1", 80, public=PublicAddress.parse("https://host.example"))


def test_a_secure_proxy_gets_a_secure_cookie(folder, dataset, render, site_at):
    """It would go over the wire in the clear else."""
    public = PublicAddress.parse("https://host.example/sets/")
    with serving([folder], render, TOKEN, public=public) as access:
        reply = site_at(access).ask(f"/?token={TOKEN}", Host="host.example")

    assert access.address == f"https://host.example/sets/?token={TOKEN}"
    assert (reply.status, "Secure" in reply.getheader("Set-Cookie")) == (303, True)
