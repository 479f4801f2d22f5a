"""The part of a file that is looked at: it moves on through the file inside one buffer."""

from typing import IO, Final

import numpy as np

from ragforge.files.scan.decimals import BEFORE
from ragforge.files.scan.rows import Bytes, Irregular
from ragforge.files.scan.tokens import LONGEST_TOKEN

_FRONT: Final = BEFORE + 8
_BACK: Final = LONGEST_TOKEN + 64
"""What stands before and behind the window is read into words, then masked."""
_NEWLINE: Final = ord("\n")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_ASCII_END: Final = 0x80


class Window:
    """Whole lines of a stream, which is read into one buffer again and again.

    Attributes:
        buffer: The bytes of the window, and some around it.
        array: The same bytes. Words may be read around the window without leaving it.
        start: Where the window begins in the buffer.
        stop: Behind its last whole line.
        at_end: Whether nothing comes behind the window.
    """

    def __init__(self, stream: IO[bytes], size: int, offset: int, soft_end: int | None) -> None:
        """Start with an empty window.

        Args:
            stream: Stands at the start of a line.
            size: Of the buffer at first; it grows where a query does not fit.
            offset: Of that place in the file.
            soft_end: An offset behind which little is needed, and so read; None where all is.
        """
        self._stream = stream
        self.buffer = bytearray(_FRONT + size + _BACK)
        self._soft_end = soft_end
        self._fill = _FRONT
        self._offset = offset - _FRONT
        self._checked = _FRONT
        self.array: Bytes = np.frombuffer(self.buffer, np.uint8)
        self.start = self.stop = _FRONT
        self.at_end = False

    def position_of(self, offset: int) -> int:
        """Return where an offset of the file is, or would be, in the buffer."""
        return offset - self._offset

    def drop(self, position: int) -> None:
        """Let the window begin at a position of the buffer."""
        self.start = position

    def read_on(self) -> None:
        """Keep what is in the window, and read more behind it until there is a new whole line.

        Raises:
            Irregular: The new part is not UTF-8, or holds a byte order mark.
        """
        self._make_room()
        before = self.stop
        while self.stop == before and not self.at_end:
            if len(self.array) - self._fill <= _BACK:
                self._grow()
            self._read()
            self.stop = max(before, self.buffer.rfind(b"\n", before, self._fill) + 1)
        if self.at_end and self._fill > self.stop:
            self.array[self._fill] = _NEWLINE
            self._fill += 1
            self.stop = self._fill
        self._check_text()

    def _make_room(self) -> None:
        size = self._fill - self.start
        if self.start > _FRONT:
            shift = self.start - _FRONT
            self.array[_FRONT : _FRONT + size] = self.array[self.start : self._fill]
            self.start, self._fill = _FRONT, _FRONT + size
            self.stop -= shift
            self._checked -= shift
            self._offset += shift
        if 2 * size > len(self.array):
            self._grow()

    def _grow(self) -> None:
        self.buffer = self.buffer + bytes(len(self.buffer))
        self.array = np.frombuffer(self.buffer, np.uint8)

    def _read(self) -> None:
        room = len(self.array) - _BACK
        if self._soft_end is not None:
            # The rest of one query is all that is needed of what comes there.
            room = min(room, max(self._soft_end - self._offset, self._fill + (room >> 3)))
        with memoryview(self.buffer) as memory:
            while self._fill < room:
                n_read = self._stream.readinto(memory[self._fill : room])  # type: ignore[attr-defined]  # IO lacks it, the streams have it
                if not n_read:
                    self.at_end = True
                    return
                self._fill += n_read

    def _check_text(self) -> None:
        """Refuse what is not UTF-8; lines end where characters do."""
        start, self._checked = self._checked, self.stop
        if start < self.stop and self.array[start : self.stop].max() >= _ASCII_END:
            text = self.buffer[start : self.stop]
            if _BYTE_ORDER_MARK in text:
                raise Irregular
            try:
                text.decode()
            except UnicodeDecodeError:
                raise Irregular from None
