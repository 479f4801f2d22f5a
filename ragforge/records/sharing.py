"""Records that are held by the hundred thousand share what they have alike.

A judgment read from its file takes some 2.7 kB, half of it the names of the fields that the line
gave and a provenance that thousands of others have too.
"""

from typing import Final, TypeVar

from ragforge.records.model import Model
from ragforge.records.record import Provenance

R = TypeVar("R", bound=Model)
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


class Sharing:
    """Lets records, as they come, hold the parts of those before them."""

    def __init__(self) -> None:
        self._names: dict[frozenset[str], set[str]] = {}
        self._provenances: dict[tuple[object, ...], Provenance] = {}

    def shared(self, record: R) -> R:
        """Return a record, which is its caller's alone, with what it shares put in its place."""
        for name, value in record.__dict__.items():
            # Most fields are plain.
            if type(value) in _PLAIN:
                continue
            if isinstance(value, Model):
                record.__dict__[name] = self._one_of_many(value)
            elif isinstance(value, tuple):
                for part in value:
                    if isinstance(part, Model):
                        self.shared(part)
        # Records are frozen: nobody adds a name, and a copy has a set of its own.
        names = record.__pydantic_fields_set__
        kept = self._names.setdefault(frozenset(names), names)
        object.__setattr__(record, "__pydantic_fields_set__", kept)
        return record

    def _one_of_many(self, part: Model) -> Model:
        # With the key of a call there are as many as there were calls.
        if type(part) is not Provenance or part.call_key:
            return self.shared(part)
        values = tuple(part.__dict__.values())
        known = self._provenances.get(values)
        if known is None:
            known = self._provenances[values] = self.shared(part)
        return known
