"""The lease of a shard: one worker is at it, and another takes it over when that one is gone."""

import json
from dataclasses import field
from pathlib import Path

from ragforge.deferred import dataclass
from ragforge.errors import DataError, LeaseLostError
from ragforge.files.atomic import alone_in, write_whole
from ragforge.llm.store.leases import Owner, boot_id, lease_ends, lease_holder, this_owner


@dataclass(frozen=True, slots=True)
class ShardLease:
    """A worker's claim on the shard in a folder.

    Args:
        folder: The shard's.
        owner: This worker.
    """

    folder: Path
    owner: Owner = field(default_factory=this_owner)

    @property
    def path(self) -> Path:
        """The file of the lease."""
        return self.folder / "lease.json"

    def take(self) -> Owner | None:
        """Take the lease; return who holds it where somebody else does.

        Raises:
            DataError: It cannot be written.
        """
        with alone_in(self.folder):
            holder = holder_of(self.folder)
            if holder is None or holder == self.owner:
                self._write()
                return None
            return holder

    def renew(self) -> None:
        """Hold it for longer, unless another worker has taken it over.

        Raises:
            DataError: It cannot be written.
        """
        with alone_in(self.folder):
            if holder_of(self.folder) == self.owner:
                self._write()

    def require(self) -> None:
        """Check that no other worker has taken the shard over, as it may have from one that stood.

        Raises:
            LeaseLostError: The lease has ended, or another worker has it or had it.
            DataError: It cannot be read.
        """
        if holder_of(self.folder) != self.owner:
            raise LeaseLostError(f"{self.folder}: another worker took the shard over")

    def release(self) -> None:
        """Give it back."""
        with alone_in(self.folder):
            if holder_of(self.folder) == self.owner:
                self.path.unlink(missing_ok=True)

    def _write(self) -> None:
        write_whole(self.path, [json.dumps([str(self.owner), boot_id(), *lease_ends()]), "\n"])


def holder_of(folder: Path) -> Owner | None:
    """Return who works on the shard in a folder; None where nobody does any more.

    Raises:
        DataError: The lease cannot be read.
    """
    try:
        parts = json.loads((folder / "lease.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{folder}: the lease cannot be read: {error}") from error
    except ValueError:
        return None  # It was damaged, and holds nobody off.
    if not isinstance(parts, list) or len(parts) != 4:
        return None
    return lease_holder(*parts)
