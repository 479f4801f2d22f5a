"""What tutorials and comparisons show is run from top to bottom, as a reader would."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from ragforge.config import Settings
from ragforge.files.shipped_folders import shipped
from ragforge.mock import Script, serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *DOCS.glob("tutorials/*.md"),
        *DOCS.glob("coming-from/*.md"),
        *DOCS.glob("recipes/*.md"),
        DOCS / "how-to/ci.md",
    ]
)
BLOCK = re.compile(r"(?:<!-- ([^\n]*) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALLS = ("pip install", "python3 -m venv")
BEGUN = {
    "tutorials/own-service.md",
    "tutorials/calibrated.md",
    "recipes/models.md",
    "how-to/ci.md",
}
"""Pages that begin with a set."""
RETRIEVED = {"how-to/ci.md", "recipes/models.md"}
"""Those of them that begin with a run, too."""
TABLES = {
    "coming-from/ragas.md": "ragas.jsonl",
    "coming-from/deepeval.md": "goldens.jsonl",
    "coming-from/promptfoo.md": "tests.csv",
    "coming-from/spreadsheet.md": "sheet.csv",
}
"""Under which name a page's table is saved."""
QRELS = "q1 0 d1 3\nq1 0 d2 0\nq2 0 d2 2\n"
RUN = "q1 Q0 d1 1 2.0 a\nq1 Q0 d2 2 1.0 a\nq2 Q0 d1 1 2.0 a\nq2 Q0 d2 2 1.0 a\n"

FILES = {"qrels.trec": QRELS, "run.trec": RUN, "other.trec": RUN}


class Block(NamedTuple):
    """A block of code of a page."""

    note: str
    language: str
    text: str


class Reader:
    """Does what a page says, in a folder of its own."""

    def __init__(self, folder, model_url):
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.model_url = model_url
        self.printed = ""
        self.servers = []
        self.environment = {**os.environ, "OPENAI_API_KEY": "sk-test", "PYTHONPATH": str(ROOT)}

    def put(self, text):
        """Return text with addresses that are there."""
        told = re.sub(r"http://127\.0\.0\.1:80(80|89)/v1", self.model_url, text)
        return told.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}").replace(
            '("127.0.0.1", 8000)', f'("127.0.0.1", {self.port})'
        )

    def type(self, line):
        """Type a line, and wait until it ends; a server goes on."""
        words = shlex.split(self.put(line), comments=True)
        if not words or line.startswith(INSTALLS) or words[:2] == ["ragforge", "mock"]:
            return
        if words[-1] == "&":
            self.servers.append(subprocess.Popen([sys.executable, *words[1:-1]], cwd=self.folder))
            self.wait()
            return
        program = {"python": [], "ragforge": ["-m", "ragforge"], "pytest": ["-m", "pytest"]}
        known = words[0] in program
        command = [sys.executable, *program[words[0]], *words[1:]] if known else words
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.printed = done.stdout + done.stderr
        assert done.returncode == 0, f"{line}\n{self.printed}"

    def wait(self):
        """Wait until the service takes connections."""
        for _ in range(200):
            with socket.socket() as asking:
                if asking.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        pytest.fail("the service does not answer")


def _blocks(path):
    return [Block(*found) for found in BLOCK.findall(path.read_text("utf-8"))]


@pytest.fixture
def reader(tmp_path):
    """Give somebody who follows a page."""
    shutil.copytree(shipped("datasets") / "helpcentre", tmp_path / "datasets" / "helpcentre")
    with serving(Script()) as model:
        found = Reader(tmp_path, model.url)
        yield found
        for server in found.servers:
            server.kill()
            server.wait()


def _begin(reader, page):
    """Put there what a page expects."""
    folder = reader.folder
    if page != "tutorials/first-set.md":
        shutil.copytree(folder / "datasets/helpcentre/documents", folder / "docs")
    if page in BEGUN:
        reader.type("ragforge generate --documents docs/ -n 50 --out my-set")
    if page in RETRIEVED:
        reader.type("ragforge retrieve --dataset my-set --retriever bm25")
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    if page == "coming-from/promptfoo.md":
        [service] = [
            block
            for block in _blocks(DOCS / "tutorials/own-service.md")
            if block.text.startswith("# service.py")
        ]
        _follow(reader, page, service)
        reader.type("python service.py &")


def _follow(reader, page, block):
    """Do what one block says."""
    note, language, text = block
    named = re.match(r"# (\S+\.(?:py|toml|yml))\n", text)
    if language in ("sh",):
        for line in text.splitlines():
            reader.type(line)
    elif note == "output":
        missing = [line for line in text.splitlines() if line.strip() not in reader.printed]
        assert missing == [], reader.printed
    elif language in ("csv", "json"):
        (reader.folder / TABLES[page]).write_text(text, "utf-8")
    elif language == "toml":
        Settings.model_validate(tomllib.loads(text))
    elif named:
        path = reader.folder / named[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(reader.put(text), "utf-8")
        if language == "yaml":
            assert yaml.safe_load(text)["jobs"]
    else:
        assert language == "python", block
        exec(text, {})


@pytest.mark.parametrize("page", [path.relative_to(DOCS).as_posix() for path in PAGES])
def test_a_page_can_be_followed(page, reader):
    """Whoever is stopped by a tutorial does not come back."""
    blocks = [each for each in _blocks(DOCS / page) if not each.note.startswith("not run: ")]

    _begin(reader, page)
    for block in blocks:
        _follow(reader, page, block)

    manifest = reader.folder / "my-set" / "manifest.json"
    assert not manifest.exists() or json.loads(manifest.read_text("utf-8"))["name"] == "my-set"
