"""`manifest.json`: what a dataset is, what it was made from, and the digests of its files."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class FileEntry(BaseModel):
    """One file of the dataset."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    records: int


class Spent(BaseModel):
    """What the calls behind the dataset took, all runs together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    """None where the price of a model that was used is not known."""


class Manifest(BaseModel):
    """The contents of `manifest.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Annotated[int, Field(ge=1, le=1)] = 1
    name: str
    version: int = 1
    parent: str | None = None
    made_from: dict[str, str] = {}
    """What decides which queries come out: corpus digest, model, prompt digests, seed, language."""
    files: dict[str, FileEntry] = {}
    models: tuple[str, ...] = ()
    prompts: dict[str, str] = {}
    """Prompt name to the sha256 of its file."""
    spent: Spent = Spent()
    licence: str = ""
    tool_version: str = ""


def digest_file(path: Path) -> str:
    """Return the sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_texts(parts: Mapping[str, str]) -> str:
    """Return one sha256 over named texts, independent of their order."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        for text in (name, parts[name]):
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()
