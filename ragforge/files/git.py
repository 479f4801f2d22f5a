"""What the git repository around a folder says: its commit, and files as a branch has them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ragforge.deferred import dataclass, shutil, subprocess
from ragforge.errors import DataError
from ragforge.files.text import decode

_MAIN: Final = ("origin/main", "main", "origin/master", "master")
"""Where the main branch is looked for, in this order."""
_TIMEOUT_S: Final = 30
_HEAD_TIMEOUT_S: Final = 10
_NO_FETCHING: Final = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Environment in which git fetches no object that a repository lacks: a received one may name a
command to fetch with. Git before 2.45 knows the first of these alone."""


@dataclass(frozen=True, slots=True)
class BranchFile:
    """A file of a branch."""

    text: str
    where: str
    """Branch and path, such as `origin/main:sets/baseline.json`."""


def read_from_branch(path: Path, branches: Sequence[str] = _MAIN) -> BranchFile:
    """Return a file as the first of some branches has it.

    Args:
        path: Where it is, or would be, in the working directory of the repository.
        branches: Names as git takes them.

    Raises:
        DataError: There is no git or no repository, or none of the branches has the file.
    """
    git = shutil.which("git")
    if git is None:
        raise DataError(f"{path}: cannot be read from a branch: there is no git here")
    folder = path.parent
    if not folder.is_dir():
        raise DataError(f"{path}: cannot be read from a branch: no such directory {folder}")
    if _run(git, folder, "rev-parse", "--show-toplevel") is None:
        raise DataError(f"{path}: cannot be read from a branch: it is in no git repository")
    there = [name for name in branches if _has(git, folder, name)]
    for name in there:
        content = _run(git, folder, "show", f"{name}:./{path.name}")
        if content is not None:
            where = f"{name}:{path}"
            return BranchFile(decode(content, where), where)
    if there:
        raise DataError(f"{path}: is not on {', '.join(there)}; commit it there first")
    raise DataError(
        f"{path}: cannot be read from a branch: the repository has none of {', '.join(branches)}; "
        "a shallow checkout lacks them (`git fetch --depth 1 origin main:refs/remotes/origin/main`)"
    )


def commit_and_branch() -> dict[str, str]:
    """Return `git_commit` and `git_branch` of the working directory; {} outside of a repository."""
    git = shutil.which("git")
    if git is None:
        return {}
    asked = ("rev-parse", "HEAD", "--abbrev-ref", "HEAD")
    lines = (_run(git, None, *asked, timeout_s=_HEAD_TIMEOUT_S) or b"").split()
    if len(lines) != 2:  # A commit and a branch.
        return {}
    return {"git_commit": lines[0].decode(), "git_branch": lines[1].decode("utf-8", "replace")}


def _has(git: str, folder: Path, branch: str) -> bool:
    asked = ("rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
    return _run(git, folder, *asked) is not None


def _run(git: str, folder: Path | None, *words: str, timeout_s: float = _TIMEOUT_S) -> bytes | None:
    """Return what git prints; None where it fails."""
    try:
        done = subprocess.run(  # fixed words, and a path behind a colon; no shell
            [git, *words],
            cwd=folder,
            env={**os.environ, **_NO_FETCHING},
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout
