"""Records that are held by the hundred thousand share what they have alike.

A judgment read from its file takes some 2.7 kB: the names of the fields that the line gave and a
provenance that thousands of others have too, a dictionary for its values, and ids that as many
records repeat.
"""

from sys import intern
from typing import Final, TypeVar

from ragforge.records.model import Model
from ragforge.records.record import Provenance

R = TypeVar("R", bound=Model)
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_IDS: Final = frozenset({"query_id", "chunk_id", "doc_id"})
_PUT: Final = object.__setattr__


class Sharing:
    """Lets records, as they come, hold the parts of those before them."""

    def __init__(self) -> None:
        self._names: dict[frozenset[str], set[str]] = {}
        self._provenances: dict[tuple[object, ...], Provenance] = {}

    def shared(self, record: R) -> R:
        """Return a record that says the same, and holds what it shares with others."""
        made = type(record).__new__(type(record))
        for name, value in record.__dict__.items():
            held = value
            kind = type(value)
            if kind is str:
                if name in _IDS:
                    held = intern(value)
            # Most fields are plain.
            elif kind in _PLAIN:
                pass
            elif isinstance(value, Model):
                held = self._one_of_many(value)
            elif kind is tuple and any(isinstance(one, Model) for one in value):
                held = tuple(self.shared(one) if isinstance(one, Model) else one for one in value)
            # Set one by one, the values of a class stand in arrays with one index of their names.
            _PUT(made, name, held)
        # Records are frozen: nobody adds a name, and a copy has a set of its own.
        names = record.__pydantic_fields_set__
        _PUT(made, "__pydantic_fields_set__", self._names.setdefault(frozenset(names), names))
        _PUT(made, "__pydantic_extra__", None)
        _PUT(made, "__pydantic_private__", None)
        return made

    def _one_of_many(self, part: Model) -> Model:
        # With the key of a call there are as many as there were calls.
        if type(part) is not Provenance or part.call_key:
            return self.shared(part)
        values = tuple(part.__dict__.values())
        known = self._provenances.get(values)
        if known is None:
            known = self._provenances[values] = self.shared(part)
        return known
