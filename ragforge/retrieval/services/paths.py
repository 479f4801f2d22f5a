"""Finding what is looked for in a reply, by JMESPath (jmespath.org)."""

from collections.abc import Mapping
from typing import Any, Final

from ragforge.errors import CallError, ConfigError
from ragforge.retrieval.object_fields import shown

_KEYS_SHOWN: Final = 6


class ReplyPath:
    """One path into replies.

    Args:
        expression: JMESPath; "" finds nothing.
        where: The setting it is of, for messages.

    Raises:
        ConfigError: It is no JMESPath.
    """

    def __init__(self, expression: str, where: str) -> None:
        self.expression = expression
        self.where = where
        self._compiled = _compiled(expression, where) if expression else None

    def __bool__(self) -> bool:
        return self._compiled is not None

    def find(self, value: object) -> object:
        """Return what stands there; None for nothing.

        Raises:
            CallError: The path asks for something that this value cannot give.
        """
        if self._compiled is None:
            return None
        from jmespath.exceptions import JMESPathError

        try:
            found: object = self._compiled.search(value)
        except JMESPathError as error:
            reason = " ".join(str(error).split())[:200]
            raise CallError("invalid", f"{self.where} = {self.expression!r}: {reason}") from error
        return found

    def scalar(self, value: object) -> str | None:
        """Return the text or number that stands there, as text; None for nothing.

        Raises:
            CallError: There is a list or an object.
        """
        match self.find(value):
            case None:
                return None
            case str() as text:
                return text
            case bool() | int() | float() as number:
                return str(number)
            case list() as several:
                raise CallError(
                    "invalid",
                    f"{self.where} = {self.expression!r}: matches a list of {len(several):,} where "
                    f"one value is wanted; {self.expression}[0] is the first of them, "
                    f"join(' ', {self.expression}) all in one",
                )
            case other:
                raise CallError(
                    "invalid",
                    f"{self.where} = {self.expression!r}: matches {describe(other)} where one "
                    "value is wanted",
                )

    def listed(self, value: object) -> list[object]:
        """Return the list that stands there; of an object of lists as long, a row for each place.

        Raises:
            CallError: There is none, or something else.
        """
        found = _as_rows(self.find(value))
        match found:
            case list() if not any(isinstance(item, list) for item in found):
                return found
            case list():
                raise CallError(
                    "invalid",
                    f"{self.where} = {self.expression!r}: matches a list of lists where a list of "
                    f"results is wanted; {self.expression}[] is all in one",
                )
            case None:
                raise CallError(
                    "invalid",
                    f"{self.where} = {self.expression!r}: matches nothing in the reply, which is "
                    f"{describe(value)}",
                )
            case other:
                raise CallError(
                    "invalid",
                    f"{self.where} = {self.expression!r}: matches {describe(other)} where a list "
                    "is wanted",
                )


def _as_rows(value: object) -> object:
    """Return the rows of a table that comes as columns, anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    columns = {name: column for name, column in value.items() if column is not None}
    lengths = {len(column) if isinstance(column, list) else -1 for column in columns.values()}
    if len(lengths) != 1 or -1 in lengths:
        return value
    [length] = lengths
    return [{name: column[row] for name, column in columns.items()} for row in range(length)]


def describe(value: object) -> str:
    """Return in words what a value of a reply is."""
    match value:
        case Mapping():
            keys = [repr(key) for key in list(value)[:_KEYS_SHOWN]]
            more = ", …" if len(value) > _KEYS_SHOWN else ""
            return f"an object with {', '.join(keys)}{more}" if keys else "an empty object"
        case list():
            return f"a list of {len(value):,}"
        case str():
            return f"the text {shown(value)}"
        case None:
            return "null"
    return shown(value)


def _compiled(expression: str, where: str) -> Any:  # noqa: ANN401  # the package is untyped
    import jmespath  # Few commands ask a service.
    from jmespath.exceptions import JMESPathError

    try:
        return jmespath.compile(expression)
    except JMESPathError as error:
        lines = str(error).split("\n")
        raise ConfigError(f"{where} = {expression!r}: is no JMESPath: {lines[0]}") from error
    except RecursionError as error:
        raise ConfigError(f"{where}: is nested too deeply") from error
