"""A service on loopback that answers each request alike, and can misbehave."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Service(ThreadingHTTPServer):
    """Answers each request alike and remembers what came."""

    status = 200
    headers: tuple[tuple[str, str], ...] = ()
    body = b"[]"
    silent = False
    endless = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/search"
        self.requests = []
        self.released = threading.Event()

    def handle_error(self, request, client_address):
        """Say nothing when a client has gone."""


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        content = self.rfile.read(int(self.headers["Content-Length"]))
        server.requests.append((self.path, dict(self.headers), content))
        if server.silent:
            server.released.wait()
            return
        self.send_response(server.status)
        for name, value in server.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(server.body)
        while server.endless and not server.released.wait(0.01):
            self.wfile.write(b" ")

    def log_message(self, *args):
        """Keep the test output clean."""


@contextlib.contextmanager
def running_service():
    """Serve until the block ends."""
    with Service() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()
