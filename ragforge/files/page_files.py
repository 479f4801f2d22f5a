"""A page with files beside it: in `NAME_files`, in a folder that is named by what is in it.

The page is replaced last and in one step, and what the old page links to stays until then: whoever
opens it meanwhile finds all of the old one or all of the new one. Nothing is replaced or removed
but what has the names and the beginnings of such files.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes

from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import (
    alone_in,
    folder_in_making,
    keep_folder,
    make_folder,
    remove_whole,
    write_whole,
)

_FOLDER: Final = re.compile(r"[0-9a-f]{16}")
_FILE: Final = re.compile(r"[a-z]+(-[a-z]+)*-\d+\.js")
_BEGINS: Final = b"ragforgeBlock("
"""What each file hands its content to."""


@dataclass(slots=True)
class PageFiles:
    """Files on their way to the place beside a page; made by `page_files`."""

    page: Path
    folder: Path
    """Beside the page; made when there is a file to be put into it."""
    _stack: ExitStack
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    _making: Path | None = None

    def put(self, name: str, code: str) -> None:
        """Write a file; the page does not have it until it is written itself.

        Raises:
            DataError: It cannot be written.
        """
        content = code.encode()
        assert _FILE.fullmatch(name), name
        assert content.startswith(_BEGINS), name
        if self._making is None:
            make_folder(self.folder)
            self._making = self._stack.enter_context(folder_in_making(self.folder, self.folder))
        self._digest.update(f"{name}\0{len(content)}\0".encode() + content)
        path = self._making / name
        try:
            path.write_bytes(content)
        except OSError as error:
            raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error

    @property
    def address(self) -> str:
        """The folder of what was put so far, as the page links to it; "" where nothing was."""
        if self._making is None:
            return ""
        return f"./{quote_from_bytes(os.fsencode(self.folder.name))}/{self._name}/"

    @property
    def _name(self) -> str:
        return self._digest.hexdigest()[:16]

    def write_page(self, parts: Iterable[str]) -> None:
        """Write the page, after the files that it links to; then remove those of older ones.

        Raises:
            DataError: A file cannot be written, or something else is in its place; the old page
                and its files are untouched.
        """
        if self._making is not None and not self.folder.is_dir():
            raise DataError(f"{self.folder}: was removed meanwhile")
        with alone_in(self.folder):
            if self._making is not None:
                self._keep(self._making)
            write_whole(self.page, parts)
            self._remove_older()

    def _keep(self, making: Path) -> None:
        place = self.folder / self._name
        if place.exists() or place.is_symlink():
            if not _is_ours(place):
                raise DataError(f"{place}: is not of a report; move it, or name another file")
            remove_whole(place)
        keep_folder(making, place)

    def _remove_older(self) -> None:
        kept = "" if self._making is None else self._name
        if self.folder.is_dir():
            for place in self.folder.iterdir():
                if place.name != kept and _is_ours(place):
                    remove_whole(place)


@contextmanager
def page_files(page: Path) -> Iterator[PageFiles]:
    """Give what takes the files of a page, and then the page.

    Args:
        page: A file; where it is a link, the files go beside what it leads to.

    Raises:
        UsageError: What is in the place of the folder is none.
    """
    page = page.resolve()
    folder = page.with_name(f"{page.stem}_files")
    if (folder.exists() or folder.is_symlink()) and not folder.is_dir():
        raise UsageError(f"{folder}: is no folder, and {page.name} may need one of this name")
    try:
        with ExitStack() as stack:
            yield PageFiles(page, folder, stack)
    finally:
        with suppress(OSError):
            folder.rmdir()  # Where nothing is in it.


def _is_ours(place: Path) -> bool:
    """Whether a folder has nothing in it but files that a page loads."""
    if not _FOLDER.fullmatch(place.name) or place.is_symlink() or not place.is_dir():
        return False
    return all(map(_is_block, place.iterdir()))


def _is_block(path: Path) -> bool:
    if not _FILE.fullmatch(path.name) or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_BEGINS)) == _BEGINS
