"""Documents of a bucket, or of anything else that fsspec reaches: s3, gs, az, https, memory."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ragforge.corpus.origins.origin import Address, Origin, resolve_address
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError

_AT_ONCE: Final = 8
_ETAG: Final = ("etag", "contentmd5", "md5hash", "checksum", "crc32c")
_TIMES: Final = ("lastmodified", "mtime", "modified", "updated", "created")
_SIZES: Final = ("size", "contentlength")


@dataclass(frozen=True, slots=True)
class BucketSpec:
    """Everything below an address, or the one file there."""

    address: Address
    key: str

    @property
    def shown(self) -> str:
        """The address without user, password and query."""
        return self.address.shown

    @property
    def name(self) -> str:
        """What tells it from others to a reader."""
        scheme, _, path = re.split("[?#]", self.shown, maxsplit=1)[0].partition("://")
        return path.rstrip("/").rpartition("/")[2] or scheme


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """What is there.

    Args:
        origin: The files.
        is_file: Whether the address is that of one file.
    """

    origin: Origin
    is_file: bool


def parse_bucket(spec: str) -> BucketSpec:
    """Parse a spec.

    Raises:
        UsageError: A variable of it is not set, or it holds a password.
    """
    return BucketSpec(resolve_address(spec), spec)


@contextmanager
def opened_bucket(spec: BucketSpec) -> Iterator[BucketFiles]:
    """Lend the files of a bucket.

    Raises:
        UsageError: What reads such an address is not installed.
        DataError: It cannot be reached, or nothing is there.
    """
    system, root = _reached(spec)
    try:
        system.invalidate_cache()
        root = root.rstrip("/") if root.strip("/") else root
        listing: Mapping[str, Mapping[str, Any]] = system.find(root, detail=True)
        if not listing:
            system.info(root)  # Some find nothing where they should have failed.
    except Exception as error:  # the libraries behind fsspec raise what they like
        raise _unreachable(spec, error) from error
    if not listing:
        raise DataError(
            f"{spec.shown}: nothing is there; expected documents (an empty bucket is taken for a "
            "fault, not for documents that were all deleted)"
        )
    is_file = list(listing) == [root]
    places = {_relative(place, root): place for place in listing}
    states = {path: _state_of(listing[place]) for path, place in places.items()}

    def fetch(path: str, target: Path) -> str:
        try:
            system.get_file(places[path], str(target))
        except Exception as error:
            raise _unreachable(spec, error, path) from error
        return ""

    yield BucketFiles(Origin(states, fetch, _AT_ONCE), is_file)


def _reached(spec: BucketSpec) -> tuple[Any, str]:
    """Return a file system of fsspec, which has no types, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise UsageError(
            f"{spec.shown}: needs the package fsspec; pip install 'ragforge[buckets]', and for "
            "s3:// s3fs, for gs:// gcsfs, for az:// adlfs"
        ) from error
    try:
        system, root = url_to_fs(spec.address.full, skip_instance_cache=True)
    except ImportError as error:
        reason = spec.address.redacted(error).rstrip(".")
        raise UsageError(f"{spec.shown}: needs a package: {reason}") from error
    except Exception as error:
        raise _unreachable(spec, error) from error
    return system, root


def _unreachable(spec: BucketSpec, error: Exception, path: str = "") -> DataError:
    reason = spec.address.redacted(error) or type(error).__name__
    what = f"{spec.address.redacted(path)}: cannot be fetched" if path else "cannot be listed"
    return DataError(f"{spec.shown}: {what}: {type(error).__name__}: {reason}")


def _relative(place: str, root: str) -> str:
    if place == root:
        return re.split("[?#]", place, maxsplit=1)[0].rpartition("/")[2]
    return place.removeprefix(root).removeprefix("/")


def _state_of(info: Mapping[str, Any]) -> str:
    """Return the fingerprint of a file, which changes when the file does, "" where it has none."""
    fields = {
        str(name).replace("-", "").replace("_", "").lower(): value for name, value in info.items()
    }
    size = next((fields[name] for name in _SIZES if fields.get(name) is not None), None)
    for name in (*_ETAG, *_TIMES):
        if fields.get(name):
            return f"{name} {fields[name]} size {size}"
    return ""
