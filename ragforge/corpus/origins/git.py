"""Documents of a git repository as they are at a revision.

Only objects are read: no working tree is touched, no hook or filter runs, nothing is fetched.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from ragforge.corpus.origins.origin import GIT, Origin
from ragforge.deferred import dataclass, subprocess
from ragforge.errors import DataError, UsageError

_HOW: Final = "expected git:REPOSITORY, git:REPOSITORY@REVISION or git:REPOSITORY@REVISION:FOLDER"
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_PIECE: Final = 1 << 20
_PLAIN: Final = ("100644", "100755", "100664")
_ODD: Final = {"120000": "is a link, which is not followed", "160000": "is a submodule"}


@dataclass(frozen=True, slots=True)
class GitSpec:
    """Which folder of which repository at which revision; "" for the whole of it."""

    repository: Path
    revision: str
    folder: str

    @property
    def shown(self) -> str:
        """The spec in full."""
        return f"{GIT}{self.repository}@{self.revision}{self.folder and f':{self.folder}'}"

    @property
    def name(self) -> str:
        """What tells it from others to a reader."""
        return self.repository.name.removesuffix(".git") or "repository"

    @property
    def key(self) -> str:
        """What tells it from others; not the revision, as all have one mirror."""
        return f"{GIT}{self.repository}:{self.folder}"


def parse_git(spec: str) -> GitSpec:
    """Parse a spec; of several `@`, the first behind a folder that exists counts.

    Raises:
        UsageError: It names no repository on this machine, or a revision or folder that is none.
    """
    given = spec.removeprefix(GIT)
    if "://" in given or not given:
        raise UsageError(f"{GIT}…: {_HOW}, where REPOSITORY is a folder: clone it first")
    ends = [at for at, sign in enumerate(given) if sign == "@"]
    behind = [at for at in ends if Path(given[:at]).expanduser().is_dir()]
    at = next(iter(behind or ends), len(given))
    if Path(given).expanduser().is_dir():
        at = len(given)
    if ":" in given[:at] and not behind and at < len(given):  # user:password@host
        raise UsageError(f"{GIT}…: {_HOW}, where REPOSITORY is a folder: clone it first")
    revision, _, folder = given[at + 1 :].partition(":")
    folder = folder.strip("/")
    if revision.startswith("-") or any(
        part in {"", ".", ".."} for part in folder.split("/") if folder
    ):
        raise UsageError(f"{spec}: {_HOW}")
    return GitSpec(Path(given[:at]).expanduser(), revision or "HEAD", folder)


@contextmanager
def opened_git(spec: GitSpec, passed: Callable[[str, str], None]) -> Iterator[Origin]:
    """Lend the files of a repository.

    Args:
        spec: Which.
        passed: Told of links and submodules, and of names that are not UTF-8.

    Raises:
        DataError: Git, the repository, the revision or the folder is missing, or cannot be read.
    """
    if not spec.repository.is_dir():
        raise DataError(f"{spec.shown}: no such folder; {_HOW}")
    _git(spec, "rev-parse", "--git-dir")
    commit = _found(spec, f"{spec.revision}^{{commit}}", "no such revision")
    tree = f"{commit}:{spec.folder}" if spec.folder else f"{commit}^{{tree}}"
    tree = _found(spec, f"{tree}", f"no such folder at {spec.revision}")
    if _git(spec, "cat-file", "-t", tree).strip() != b"tree":
        raise DataError(f"{spec.shown}: {spec.folder} is no folder; {_HOW}")
    listed = _git(spec, "ls-tree", "-r", "-z", "--full-tree", tree)
    files = dict(_files(listed, passed))
    with _Blobs(spec) as blobs:
        yield Origin(files, lambda path, target: blobs.write(files[path], target))


def _files(listed: bytes, passed: Callable[[str, str], None]) -> Iterator[tuple[str, str]]:
    for entry in listed.split(b"\0")[:-1]:
        head, _, name = entry.partition(b"\t")
        mode, _, blob_id = head.decode("ascii").split(" ")
        try:
            path = name.decode("utf-8")
        except UnicodeDecodeError:
            passed(repr(name)[2:-1], "has a name that is not UTF-8")
            continue
        if mode in _PLAIN:
            yield path, blob_id
        else:
            passed(path, _ODD.get(mode, f"has the mode {mode}"))


class _Blobs:
    """Reads blobs of a repository, through one process from the first on."""

    def __init__(self, spec: GitSpec) -> None:
        self._spec = spec
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "_Blobs":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def write(self, blob_id: str, target: Path) -> str:
        """Write a blob to a file; return why it is no document, else ""."""
        requests, replies = self._streams()
        try:
            requests.write(f"{blob_id}\n".encode("ascii"))
            requests.flush()
        except BrokenPipeError as error:
            raise self._fault(blob_id) from error
        head = replies.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise self._fault(blob_id)
        left = int(head[2])
        pointer = False
        with target.open("wb") as stream:
            while left:
                piece = replies.read(min(left, _PIECE))
                if not piece:
                    raise self._fault(blob_id)
                pointer = pointer or (stream.tell() == 0 and piece.startswith(_LFS))
                stream.write(piece)
                left -= len(piece)
        replies.read(1)
        return "is a pointer of Git LFS; its text is not in the repository" if pointer else ""

    def _streams(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            self._process = subprocess.Popen(  # no shell, arguments of our own
                _command(self._spec, "cat-file", "--batch"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(self._spec),
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def _fault(self, blob_id: str) -> DataError:
        return DataError(
            f"{self._spec.shown}: object {blob_id} cannot be read; a whole clone has it "
            "(`git fsck` tells more)"
        )


def _found(spec: GitSpec, name: str, missing: str) -> str:
    done = _run(spec, "rev-parse", "--verify", "--quiet", name)
    if done.returncode:
        raise DataError(f"{spec.shown}: {missing}; {_HOW}")
    return done.stdout.decode("ascii").strip()


def _git(spec: GitSpec, *arguments: str) -> bytes:
    done = _run(spec, *arguments)
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[0].removeprefix("fatal: ") if lines else f"exit code {done.returncode}"
        raise DataError(f"{spec.shown}: git cannot read it: {reason}")
    return done.stdout


def _run(spec: GitSpec, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(  # no shell, and nothing of the user's is an option
            _command(spec, *arguments),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=_environment(spec),
            check=False,
        )
    except OSError as error:
        raise DataError(f"{spec.shown}: needs git, which is not there: {error.strerror}") from error


def _command(spec: GitSpec, *arguments: str) -> list[str]:
    return ["git", "--no-pager", "-C", str(spec.repository), *arguments]


def _environment(spec: GitSpec) -> dict[str, str]:
    """Return an environment in which git looks at this repository and at nothing else."""
    return {
        **{name: value for name, value in os.environ.items() if not _is_of_repository(name)},
        "LC_ALL": "C",
        "GIT_CEILING_DIRECTORIES": str(spec.repository.resolve().parent),
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _is_of_repository(variable: str) -> bool:
    """Return whether a variable, as git sets for its hooks, may be about another repository."""
    return variable.startswith("GIT_") and not variable.startswith(("GIT_CONFIG_", "GIT_EXEC_"))
