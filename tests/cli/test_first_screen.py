"""The two paths of the README's first screen, run as they stand there, to a gate that decides."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from endpoint import answering, serving

from ragforge.files.shipped_folders import shipped

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
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


@pytest.fixture
def service():
    """A search service behind a token, on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Search) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def commands(path):
    """Return the commands of a block of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(rf"<!-- {path} -->\n```sh\n(.*?)```\n<!-- end -->", text, re.DOTALL)
    assert block is not None
    return [shlex.split(line)[1:] for line in block[1].splitlines()]


def typed(words, **environment):
    """Run a command in a process of its own, as it is typed."""
    return subprocess.run(
        [sys.executable, "-m", "ragforge", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_folder_to_decision(tmp_path, monkeypatch):
    """Two commands tell which is better, without a key, and a gate decides by it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(Path(shipped("datasets")) / "helpcentre" / "documents", "docs")
    Path("my_app").mkdir()
    Path("my_app/search.py").write_text(SEARCH, encoding="utf-8")
    generate, compare, gate = commands("first path")

    assert typed(generate).returncode == 0
    compared, decided = typed(compare), typed(gate)

    assert "new is better in EvidenceR@10" in compared.stdout
    assert (decided.returncode, "gate: PASS" in decided.stdout) == (0, True)
    refused = typed([word if word != "new" else "old" for word in gate])
    assert (refused.returncode, "gate: FAIL" in refused.stdout) == (1, True)


def test_table_and_service_to_decision(tmp_path, monkeypatch, service):
    """A service behind a token, whose documents nobody else has, and three commands."""
    pytest.importorskip("jmespath")
    monkeypatch.chdir(tmp_path)

    Path("services.toml").write_text(SERVICES.format(url=service), encoding="utf-8")
    rows = "".join(f"How many euros does the {name} cost?;It depends.\n" for name in NAMES)
    Path("questions.csv").write_text(f"input;expected_output\n{rows}", encoding="utf-8-sig")

    with serving(answering) as judge:
        environment = {
            "DOCS_TOKEN": TOKEN,
            "OPENAI_API_KEY": "sk-test",
            "RAGFORGE_MODEL_BASE_URL": judge.url,
            "RAGFORGE_BUDGET_INPUT_USD_PER_MTOK": "1",
            "RAGFORGE_BUDGET_OUTPUT_USD_PER_MTOK": "1",
        }
        done = [typed(words, **environment) for words in commands("second path")]

    assert [one.returncode for one in done] == [0, 0, 0]
    assert "new is better in nDCG@10" in done[1].stdout
    assert "gate: PASS" in done[2].stdout
    everything = "".join(path.read_text() for path in Path("my-set").rglob("*.json*"))
    assert TOKEN not in everything + "".join(one.stdout + one.stderr for one in done)
    assert json.loads(Path("my-set/manifest.json").read_text())["models"] == ["gpt-5-mini"]
