"""What all groups of settings are."""

import ast
import functools
import inspect
import sys
from typing import Annotated, Any

from ragforge.records.model import ConfigDict, Field, Model

PositiveInt = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]


def _describe(schema: dict[str, Any], model: type[Model]) -> None:
    """Put the docstrings of the fields into a JSON schema."""
    for field, part in schema.get("properties", {}).items():
        if text := field_text(model, field):
            part.setdefault("description", text)


class Section(Model):
    """Base of the groups of settings; field docstrings become help and schema."""

    # pydantic would read the docstrings of each class by parsing its module anew: most of the time
    # that `--help` takes.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,
        json_schema_extra=_describe,
    )


def field_text(model: type[Model], field: str) -> str:
    """Return the docstring of a field, "" where it has none."""
    texts = (_texts(kind.__module__).get((kind.__name__, field), "") for kind in model.__mro__)
    return next((text for text in texts if text), "")


@functools.cache
def _texts(module: str) -> dict[tuple[str, str], str]:
    """Return the docstrings of fields by class and field."""
    if not module.startswith("ragforge."):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        (kind.name, field.target.id): inspect.cleandoc(text.value.value)
        for kind in tree.body
        if isinstance(kind, ast.ClassDef)
        for field, text in zip(kind.body, kind.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
