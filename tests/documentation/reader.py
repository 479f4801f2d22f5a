"""Somebody who follows a page of the documentation, line by line, in a folder of its own."""

import csv
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from command_processes import CommandProcess

import ragforge as rf
from ragforge.config import Settings
from ragforge.records import answer_sha256

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"(?:<!-- ([^\n]*) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SERVERS = (["ragforge", "mock"], ["ragforge", "view"])
VERDICTS = (["ragforge", "gate"], ["ragforge", "judge", "canary"])
"""Commands that say no by exit code 1."""
MODEL_PORTS = re.compile(
    r"https?://(?:127\.0\.0\.1:(?:80(?:80|89)|11434)|10\.0\.0\.7:8000|vllm|gateway\.example)/v1"
)
PLACES = (
    "https://search.example",
    "https://elastic.example:9200",
    "https://qdrant.example:6333",
    "https://opensearch.example:9200",
)


class Block(NamedTuple):
    """A block of code of a page."""

    note: str
    language: str
    text: str

    @property
    def is_run(self):
        """Whether the page does not say why nobody runs it here."""
        return not self.note.startswith(("not run: ", "shown: ", "test command"))


def blocks_of(page):
    """Return the blocks of a page, in its order."""
    return [Block(*found) for found in BLOCK.findall(page.read_text("utf-8"))]


class Reader:
    """Does what a page says.

    Args:
        folder: Where.
        model_url: Of the endpoint that stands in for every model.
        service_url: Of the service that stands in for search engines and RAG services.
        supplies: Functions that put a file there which a person or a browser makes, by its name.
    """

    def __init__(self, folder, model_url, service_url, supplies=()):
        self.folder = folder
        self.model_url = model_url
        self.service_url = service_url
        self.supplies = dict(supplies)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.own_service = False
        self.printed = ""
        self.servers = []
        self.names = {}
        known = {name: value for name, value in os.environ.items() if "RAGFORGE" not in name}
        self.environment = {
            **known,
            "OPENAI_API_KEY": "sk-test",
            "PYTHONPATH": str(ROOT),
            "RAGFORGE_POOL_POOL_MODEL": "none",
            "RAGFORGE_MODEL_OFFLINE_MODEL": "none",
            "RAGFORGE_BUDGET_INPUT_USD_PER_MTOK": "0.25",
            "RAGFORGE_BUDGET_OUTPUT_USD_PER_MTOK": "2",
            "COLUMNS": "200",
        }

    def put(self, text):
        """Return text with addresses that are there."""
        told = MODEL_PORTS.sub(self.model_url, text)
        for place in PLACES:
            told = told.replace(place, self.service_url)
        if not self.own_service:
            return told.replace("http://127.0.0.1:8000", self.service_url)
        own = f'("127.0.0.1", {self.port})'
        return told.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}").replace(
            '("127.0.0.1", 8000)', own
        )

    def follow(self, block, tables=""):
        """Do what one block says."""
        named = re.match(r"# (\S+\.(?:py|toml|yml))\n", block.text)
        if block.note == "output":
            missing = [line for line in block.text.splitlines() if line.strip() not in self.printed]
            assert missing == [], self.printed
        elif block.language == "sh":
            for line in block.text.replace("\\\n", " ").splitlines():
                self.type(line)
        elif block.language in ("csv", "json"):
            (self.folder / tables).write_text(block.text, "utf-8")
        elif block.language == "toml":
            self.save_settings(named[1] if named else "services.toml", block.text)
        elif named:
            self.save(named[1], block.text)
            if block.language == "yaml":
                assert yaml.safe_load(block.text)["jobs"]
        else:
            assert block.language == "python", block
            self.run_python(block.text)

    def save_settings(self, name, text):
        """Save settings that can be taken; names of people and their tokens are none."""
        if name != "people.toml":
            Settings.model_validate(tomllib.loads(text))
        self.save(name, text)

    def save(self, name, text):
        """Save a block under the name that stands in its first line."""
        self.own_service = self.own_service or '("127.0.0.1", 8000)' in text
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.put(text), "utf-8")

    def run_python(self, text):
        """Run a block of Python; what it makes is there for the next one of the page."""
        with self.asking_models("model=" in text):
            exec(compile(self.put(text), "the page", "exec"), self.names)

    @contextmanager
    def asking_models(self, wanted):
        """Have models be asked at the endpoint of the tests, in the folder of the page."""
        before, here = dict(os.environ), Path.cwd()
        os.environ.update(self._environment(wanted))
        os.chdir(self.folder)
        sys.path.insert(0, str(self.folder))
        try:
            yield
        finally:
            sys.path.remove(str(self.folder))
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)

    def type(self, line):
        """Type a line, and wait until it ends; a server goes on."""
        for part in line.split(" && "):
            words = shlex.split(self.put(part), comments=True)
            if words:
                self._type(part, words)

    def _type(self, line, words):
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.environment[name] = "sk-test-value" if value == "…" else value
        elif words[:2] in SERVERS or words[-1] == "&":
            self._serve(words)
        elif words[0] == "ragforge":
            self._ragforge(line, words)
        elif words[:2] not in (["pip", "install"], ["python3", "-m"]) and words[0] != ".":
            self._run(line, words)

    def _run(self, line, words):
        known = {"python": [], "pytest": ["-m", "pytest", "-p", "no:cacheprovider"]}
        command = [*([sys.executable, *known[words[0]]] if words[0] in known else words[:1])]
        done = subprocess.run(
            [*command, *words[1:]],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.printed = done.stdout + done.stderr
        assert done.returncode == 0, f"{line}\n{self.printed}"

    def _ragforge(self, line, words):
        for name, supply in self.supplies.items():
            if any(name in word for word in words) and not (self.folder / name).exists():
                supply(self)
        asks = "--model" in words and "--base-url" not in words
        words = [os.path.expandvars(word) if "$" not in word else word for word in words]
        variables = {"SLURM_ARRAY_TASK_ID": "0"}
        words = [variables.get(word.strip("${}"), word) for word in words]
        process = CommandProcess(words[1:], self.folder, self._environment(asks))
        shown, told = process.communicate(timeout=900)
        self.printed = shown + told
        allowed = (0, 1) if any(words[: len(each)] == each for each in VERDICTS) else (0,)
        assert process.returncode in allowed, f"{line}\n{self.printed}"
        assert "REFUSED" not in self.printed, f"{line}\n{self.printed}"

    def _environment(self, asks):
        if not asks:
            return self.environment
        return {
            **self.environment,
            "RAGFORGE_MODEL_BASE_URL": self.model_url,
            "RAGFORGE_MODEL_ENDPOINT_ID": "pages",
        }

    def _serve(self, words):
        """Start a server; one of ragforge is left alone when it listens."""
        words = [word for word in words if word != "&"]
        if words[:2] in SERVERS:
            free = [*words, "--port", "0"]
            process = CommandProcess(free[1:], self.folder, self.environment)
            end = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < end:
                process.stdout.seek(0)
                process.stderr.seek(0)
                if b"http://127.0.0.1:" in process.stdout.read() + process.stderr.read():
                    process.kill()
                    process.communicate(timeout=60)
                    return
                time.sleep(0.05)
            pytest.fail(f"{words} does not listen: {process.communicate(timeout=60)}")
        self.servers.append(
            subprocess.Popen([sys.executable, *words[1:]], cwd=self.folder, env=self.environment)
        )
        for _ in range(400):
            with socket.socket() as asking:
                if asking.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        pytest.fail("the service does not answer")

    def leave(self):
        """End what still runs."""
        for server in self.servers:
            server.kill()
            server.wait()


# What people and their browsers make between two lines of a page


def labelled(reader):
    """Put there what Ann's page saves when she graded all pairs."""
    reader.type(
        "ragforge calibrate label --dataset my-set --labeller Ann --export jsonl --out open.jsonl"
    )
    rows = [json.loads(line) for line in (reader.folder / "open.jsonl").read_text().splitlines()]
    text = "".join(
        json.dumps({**row, "grade": at % 4, "labeller": "Ann"}) + "\n"
        for at, row in enumerate(rows)
    )
    (reader.folder / "labels-Ann.jsonl").write_text(text, "utf-8")


def answers_labelled(reader):
    """Put there what Ann's page saves when every answer is right."""
    ds = rf.open(reader.folder / "my-set")
    rows = [
        {
            "query_id": answer.query_id,
            "system": "my-rag",
            "labeller": "Ann",
            "answer_sha256": answer_sha256(answer.answer),
            "facts": [],
            "verdict": "correct",
            "seconds": 2.5,
        }
        for answer in ds.answers("my-rag")
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (reader.folder / "answer-labels-Ann.jsonl").write_text(text, "utf-8")


def approved(reader):
    """Put there what the review page saves when everything is approved."""
    reader.type("ragforge review export --dataset my-set --out approved.csv --reviewer Ann")
    lines = (reader.folder / "approved.csv").read_text("utf-8-sig").splitlines()
    rows = [{**row, "decision": "approve"} for row in csv.DictReader(lines)]
    (reader.folder / "review.json").write_text(json.dumps(rows), "utf-8")


def services(reader):
    """Put there a file that describes two retrievers behind a token."""
    text = "".join(
        f'[retrievers.{name}]\nurl = "{reader.service_url}/search"\n' for name in ("old", "new")
    )
    (reader.folder / "services.toml").write_text(text, "utf-8")
