"""The retrievers and the search service that the documentation calls yours."""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "tok-0123456789abcdefg"
SEARCH = """
from collections import Counter
from pathlib import Path
import re

def words(text):
    return set(re.findall("[a-z0-9]+", text.lower()))

FILES = [(path.name, path.read_text()) for path in sorted(Path("docs").rglob("*.md"))]
PARTS = [(name, f"## {part}") for name, text in FILES for part in text.split("\\n## ")[1:]]
RARE = Counter(word for _, part in PARTS for word in words(part))

def ranked(query, k, parts):
    def score(part):
        return sum(1 / RARE[word] for word in words(query) & words(part[1]))
    return [{"text": text, "source": name} for name, text in sorted(parts, key=score)[-k:][::-1]]

def old(query, k):
    return ranked(query, k, PARTS[: len(PARTS) // 8])

def new(query, k):
    return ranked(query, k, PARTS)
"""
SERVICES = """
[retrievers.old]
url = "{url}/old"
headers = {{ Authorization = "Bearer ${{DOCS_TOKEN}}" }}
body = {{ question = "{{query}}", top = "{{k}}" }}
results = "passages"
text = "body"

[retrievers.new]
url = "{url}/new"
headers = {{ Authorization = "Bearer ${{DOCS_TOKEN}}" }}
body = {{ question = "{{query}}", top = "{{k}}" }}
results = "passages"
text = "body"
"""
NAMES = """
table chair bench shelf lamp desk stool sofa couch chest drawer mirror frame rack hook crate basket
ladder cabinet trolley carpet curtain pillow blanket vase clock plant candle tray
""".split()
FACTS = [f"The {name} costs {at + 3} euros." for at, name in enumerate(NAMES)]


class _Search(BaseHTTPRequestHandler):
    """Finds the fact asked about first at /new, and only others at /old."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = re.search(r"the (\w+) cost", asked["question"])[1]
        right = [fact for fact in FACTS if f"The {name} " in fact]
        others = [fact for fact in FACTS if fact not in right][:4]
        listed = [*right, *others] if self.path == "/new" else others
        body = json.dumps({"passages": [{"body": fact} for fact in listed]}).encode()
        self.send_response(200 if self.headers["Authorization"] == f"Bearer {TOKEN}" else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Keep the test output clean."""


@contextmanager
def searching():
    """Serve the search behind its token on loopback; gives its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Search) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
