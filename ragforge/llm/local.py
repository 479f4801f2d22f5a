"""A GGUF file served on a loopback port, so that the ordinary client can talk to it.

llama.cpp runs in a child process, not in this one. Measured with xllamacpp 2026.10 in one process:
leaving while a call was in flight deadlocked for good (the destructor holds the interpreter lock
and waits for a client that needs it), leaving at once after the start did too, interpreter exit
crashed with a segmentation fault, Ctrl-C was deaf while a model loaded, and a context too large
for the memory took the whole run with it.
A child can be killed at any moment, gives its memory back, and says why it did not start.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from ragforge.deferred import dataclass
from ragforge.errors import ConfigError, DataError, EndpointError

_MAGIC = b"GGUF"
_SAMPLES = 64
_SAMPLE_BYTES = 1 << 16
_METADATA_BYTES = 1 << 25


@dataclass(frozen=True, slots=True)
class LocalEndpoint:
    """Where a served model is asked, and the name its replies carry.

    Attributes:
        base_url: Such as http://127.0.0.1:40123/v1; it needs no key.
        model: What `model_digest` returns for the file.
    """

    base_url: str
    model: str


@dataclass(frozen=True, slots=True)
class _Launch:
    """What the child process needs to know."""

    path: str
    alias: str
    parallel: int
    context_tokens: int
    embeddings: bool
    threads: int


def model_digest(path: Path) -> str:
    """Return a name for the model in call keys and provenance: file name, `@`, 16 hex digits.

    The digits are of the sha256 over the size and 64 blocks of 64 KiB spread evenly from the first
    byte to the last (all bytes of a file of up to 4 MiB): reading tens of gigabytes before each run
    would cost minutes, and two models of equal size differ all along the file.

    Raises:
        DataError: The file is missing, is a folder, or cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            digest.update(str(size).encode())
            for start in _sample_starts(size):
                stream.seek(start)
                digest.update(stream.read(_SAMPLE_BYTES))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    return f"{path.name}@{digest.hexdigest()[:16]}"


@contextlib.contextmanager
def serve(
    path: Path, *, parallel: int, context_tokens: int = 4096, embeddings: bool = False
) -> Iterator[LocalEndpoint]:
    """Serve a GGUF file on 127.0.0.1 until the context ends; calls in flight are then cut off.

    The endpoint takes chat completions, with `response_format` of type `json_schema` enforced
    during decoding. Where a request says nothing else, temperature and seed are 0; even so about
    one reply in twelve was worded otherwise after other prompts: a slot keeps the beginning that
    prompts share, which saves most of the reading and rounds its sums in another order. Requests
    with `cache_prompt: false` came out alike. Nothing is written to the standard streams.

    Args:
        path: A model; of a split one, the first part.
        parallel: Requests decoded together, at most 256; further ones wait their turn.
        context_tokens: Prompt and reply of one request; what the model was trained for, if less.
            Memory grows with `parallel * context_tokens`.
        embeddings: Take /embeddings as well. A model that names no pooling is pooled by the mean.

    Raises:
        DataError: The file is missing, cannot be read, or is not GGUF.
        ConfigError: The package xllamacpp is not installed.
        EndpointError: The server did not start, or the body raised one because the server ended.
    """
    _check_magic(path)
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigError(
            f"local:{path}: needs the package xllamacpp; pip install 'ragforge[local]'"
        )
    model = model_digest(path)
    launch = _Launch(
        path=str(path.absolute()),
        alias=model,
        parallel=parallel,
        context_tokens=context_tokens,
        embeddings=embeddings,
        # With a thread for every core, one busy neighbour slowed decoding from 28 to 4 tokens a
        # second: the threads of a step wait for the slowest.
        threads=max(1, (os.cpu_count() or 2) - 1),
    )
    with tempfile.TemporaryFile() as log, _spawn(launch, log) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().decode().strip()
            if not address:
                raise EndpointError(f"{path}: cannot be served: {_ending(process, log)}")
            try:
                yield LocalEndpoint(base_url=f"{address}/v1", model=model)
            except EndpointError as error:
                if not _has_ended(process):
                    raise
                raise EndpointError(f"{path}: its server ended: {_ending(process, log)}") from error
        finally:
            process.kill()


def _check_magic(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            head = stream.read(len(_MAGIC))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    if head != _MAGIC:
        raise DataError(f"{path}: starts with {head!r}; a GGUF file starts with {_MAGIC!r}")


def _sample_starts(size: int) -> Iterator[int]:
    if size <= _SAMPLES * _SAMPLE_BYTES:
        yield from range(0, size, _SAMPLE_BYTES)
        return
    last = size - _SAMPLE_BYTES
    for index in range(_SAMPLES):
        yield last * index // (_SAMPLES - 1)


def _spawn(launch: _Launch, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start this file as a program; it ends when its standard input does, so with this process."""
    importable = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter and this file, no shell
            [sys.executable, "-P", __file__, json.dumps(asdict(launch))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONPATH": importable},
            # Ctrl-C in a terminal reaches every process of the session: only the parent decides.
            start_new_session=True,
        )
    except OSError as error:
        raise EndpointError(f"{launch.path}: no server process: {error}") from error


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the child is gone; a dying one drops its connections a moment before."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    return process.returncode is not None


def _ending(process: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    """Return why the child ended: its first error, which llama.cpp follows with consequences."""
    code = process.wait()
    if code < 0:
        name = signal.Signals(-code).name
        return f"stopped by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    log.seek(0)
    lines = log.read().decode(errors="replace").split("\n")
    errors = [line.partition(" E ")[2] for line in lines if " E " in line]
    spoken = [line for line in lines if line.strip()]
    return [*errors[:1], *spoken[-1:], f"exit code {code}"][0].strip()


def _names_pooling(path: Path) -> bool:
    """Return whether the metadata at the head of the file has the key ARCHITECTURE.pooling_type."""
    with path.open("rb") as stream:
        return b".pooling_type" in stream.read(_METADATA_BYTES)


def _start(launch: _Launch) -> Any:  # noqa: ANN401 - xllamacpp is compiled and untyped
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.verbosity = 1
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = "http://127.0.0.1"
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # An idle kept-alive connection holds one of these threads; with the default of a few,
    # some of 32 connections waited until the others were done.
    params.n_threads_http = 128
    params.model.path = launch.path
    params.model_alias = {launch.alias}
    params.n_parallel = launch.parallel
    params.n_ctx = launch.parallel * launch.context_tokens
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = launch.threads
        # Waiting threads sleep. By default they spin: with both of two cores wanted by others,
        # 2 tokens a second instead of 12; no difference on an idle machine.
        cpu.poll = 0
    # Prompts of past requests would be kept in up to 8 GiB of memory; each slot keeps its last.
    params.cache_ram_mib = 0
    params.sampling.temp = 0
    params.sampling.seed = 0
    if launch.embeddings:
        params.embedding = True
        # An input is embedded in one batch; a longer one is refused with status 500.
        params.n_batch = params.n_ubatch = launch.context_tokens
        if not _names_pooling(Path(launch.path)):
            params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return xllamacpp.Server(params)


def _main() -> None:
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        server = _start(_Launch(**json.loads(sys.argv[1])))
    except RuntimeError as error:
        sys.exit(str(error))
    os.write(answer, f"{server.listening_address}\n".encode())
    sys.stdin.buffer.read()
    # Without the destructor, which can wait for ever.
    os._exit(0)


if __name__ == "__main__":
    _main()
