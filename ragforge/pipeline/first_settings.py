"""A first settings file: what lies in a folder, and the file that follows from a few answers."""

import csv
import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from ragforge.corpus.formats import FORMATS, suffix_of
from ragforge.deferred import dataclass
from ragforge.files.field_names import QUERY, goes_by
from ragforge.files.source_files import delimiter_of

_MOST_ENTRIES: Final = 20_000
"""Files and folders that are looked at; a folder with more is judged by these."""
_MOST_BYTES: Final = 1 << 16
_DEPTH: Final = 4
_PASSED_OVER: Final = frozenset(
    {"node_modules", "venv", "env", "site-packages", "__pycache__", "build", "dist", "target"}
)
_PROSE: Final = frozenset({"markdown", "rst", "asciidoc", "html", "pdf", "docx", "text"})
_KEY: Final = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Z][A-Z0-9_]*_(?:API_)?KEY)[ \t]*=", re.MULTILINE
)
_USUAL_KEY: Final = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in a folder.

    Args:
        documents: Folders with documents, by how many, the fullest first; `.` for this one.
        sets: Folders that are datasets.
        tables: Tables with a column of questions.
        keys: Names of variables that hold keys, in the environment or in `.env`; no value is read.
    """

    documents: Mapping[str, int]
    sets: tuple[str, ...]
    tables: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """What the user wants.

    Args:
        documents: A folder; "" for none.
        questions: A table of questions; "" for none.
        retriever: `bm25`, an address, or `module:attribute`.
        model: A model's name, `offline`, or NAME@URL.
        dataset: Directory of the set.
    """

    documents: str
    questions: str = ""
    retriever: str = "bm25"
    model: str = "offline"
    dataset: str = "my-set"

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return self.model.partition("@")[0].strip()

    @property
    def base_url(self) -> str:
        """The address of the model's endpoint; "" for the usual one."""
        return self.model.partition("@")[2].strip()

    @property
    def is_address(self) -> bool:
        """Whether the retriever is asked over HTTP."""
        return self.retriever.startswith(("http://", "https://"))


def look_around(folder: Path, environment: Mapping[str, str]) -> Found:
    """Return what lies in a folder, four levels deep; links are not followed."""
    documents: Counter[str] = Counter()
    sets: list[str] = []
    tables: list[str] = []
    for place, names in islice(_each_folder(folder), _MOST_ENTRIES):
        if {"manifest.json", "queries.jsonl"} <= names:
            sets.append(place)
            continue
        top = place.split("/")[0]
        documents[top] += sum(FORMATS.get(suffix_of(name)) in _PROSE for name in names)
        for name in sorted(names):
            path = name if place == "." else f"{place}/{name}"
            if suffix_of(name) in (".csv", ".tsv") and _has_questions(folder / path):
                tables.append(path)
    here = documents.pop(".", 0)
    full = [(name, n) for name, n in documents.most_common() if n]
    return Found(
        documents=dict([*full, *([(".", here)] if here else [])]),
        sets=tuple(sorted(sets)),
        tables=tuple(sorted(tables)),
        keys=tuple(_keys(folder, environment)),
    )


def _each_folder(folder: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield each folder below one with the names of its files."""
    left = [(".", 0)]
    while left:
        place, depth = left.pop()
        names = set()
        try:
            entries = sorted(os.scandir(folder / place), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries[:_MOST_ENTRIES]:
            if entry.name.startswith(".") or not entry.name.isprintable():
                continue
            path = entry.name if place == "." else f"{place}/{entry.name}"
            if entry.is_file(follow_symlinks=False):
                names.add(entry.name)
            elif (
                depth < _DEPTH
                and entry.name not in _PASSED_OVER
                and entry.is_dir(follow_symlinks=False)
            ):
                left.append((path, depth + 1))
        if {"manifest.json", "queries.jsonl"} <= names:
            left = [item for item in left if not item[0].startswith(f"{place}/")]
        yield place, names


def _has_questions(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
            head = stream.readline(_MOST_BYTES)
        columns = next(csv.reader([head], delimiter=delimiter_of(head)), [])
    except (OSError, csv.Error):
        return False
    names = {column.strip() for column in columns}
    return any(goes_by(name, QUERY) for name in names if name.lower() != "text")


def _keys(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield names of variables that hold keys of models; no value is kept."""
    named = {name for name in environment if name.endswith("_API_KEY")}
    try:
        with (folder / ".env").open(encoding="utf-8", errors="replace") as stream:
            named |= set(_KEY.findall(stream.read(_MOST_BYTES)))
    except OSError:
        pass
    yield from sorted(named, key=lambda name: (name != _USUAL_KEY, name))


def settings_text(answers: Answers, found: Found) -> str:
    """Return the settings file, as TOML with a comment on each part."""
    is_offline = answers.model_name.startswith("offline")
    key = found.keys[0] if found.keys else _USUAL_KEY
    lines = [
        "# Settings of ragforge for this folder. Each can be a flag or a variable, too:",
        "# `ragforge config` prints all that are in force, `ragforge help settings` explains.",
        "",
        "[model]",
        "# offline is a free baseline, which names no winner; a model such as gpt-5-mini grades.",
        f"name = {_text(answers.model_name)}",
        "# Address of an OpenAI-compatible endpoint; the client's usual one where there is none.",
        f"base_url = {_text(answers.base_url)}"
        if answers.base_url
        else '# base_url = "http://127.0.0.1:8080/v1"',
        "# The variable that holds the key. The key itself stays in the environment.",
        f"{'# ' if is_offline else ''}api_key_env = {_text(key)}",
        "",
        "[budget]",
        "# A run that would spend more stops, keeps what it has, and goes on when asked again.",
        "# It takes a price that is known: input_usd_per_mtok and output_usd_per_mtok set one.",
        f"{'# ' if is_offline or answers.base_url else ''}max_cost_usd = 5.0",
        "",
        "[generate]",
        "# Fifty queries show large differences; `compare` says how many a small one takes.",
        "n = 50",
        "",
        "[evaluate]",
        "# `ragforge help measures` tells which is for what.",
        'measures = ["nDCG@10", "R@10", "RR"]',
        "",
        "[refresh]",
        "# What `ragforge refresh` follows, night by night.",
        f"dataset = {_text(answers.dataset)}",
        f"documents = [{_text(answers.documents)}]" if answers.documents else "# documents = []",
    ]
    if answers.is_address:
        lines += [
            "",
            "[retrievers.mine]",
            "# Asked by POST; `ragforge probe mine` shows what it replies and what is understood.",
            f"url = {_text(answers.retriever)}",
        ]
    return "\n".join([*lines, ""])


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def next_command(answers: Answers, found: Found) -> str:
    """Return the command to run next, behind `ragforge`."""
    if answers.dataset in found.sets:
        retriever = "mine" if answers.is_address else answers.retriever
        other = "chargram" if retriever == "bm25" else "bm25"
        words = ["compare", "--dataset", answers.dataset, "--retriever", other]
        return shlex.join([*words, "--retriever", retriever, "--judge"])
    where = ["--documents", answers.documents] if answers.documents else []
    if answers.questions:
        return shlex.join(["import", answers.questions, *where, "--out", answers.dataset])
    if where:
        return shlex.join(["generate", *where, "--out", answers.dataset])
    return "demo"
