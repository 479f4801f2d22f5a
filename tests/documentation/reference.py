"""The reference pages, made from the code; run as a script it writes them anew."""

import ast
import contextlib
import inspect
import io
import os
import re
import textwrap
from pathlib import Path
from unittest import mock

import ragforge as rf
from ragforge import errors, observe
from ragforge.api.results import Result
from ragforge.cli import COMMANDS, TWO_WORDS, main

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
MADE = (
    "<!-- Made by `python tests/documentation/reference.py`; a test compares it with the code. -->"
)
ACTION = re.compile(r"^  ([a-z][a-z-]+)  +\S", re.MULTILINE)


def commands():
    """Return the page of commands: what each prints for `--help-all`."""
    parts = [
        "# Commands and options",
        MADE,
        "Every command, with all of its options. In a shell: `ragforge COMMAND --help-all`.",
        _block("help", _printed("--help")),
    ]
    for name in COMMANDS:
        for words in _commands_of(name):
            parts.append(f"## ragforge {' '.join(words)}")
            parts.append(f"```text\n{_printed(*words, '--help-all').rstrip()}\n```")
    return parts


def _commands_of(name):
    yield (name,)
    yield from sorted(words for words in TWO_WORDS if words[0] == name)
    shown = _printed(name, "--help-all")
    if re.match(rf"usage: ragforge {name} ACTION", shown):
        head = shown.partition("\noptions:")[0]
        yield from ((name, action) for action in ACTION.findall(head))


def _printed(*words):
    text = io.StringIO()
    with (
        contextlib.redirect_stdout(text),
        mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}),
    ):
        main(list(words))
    return text.getvalue()


def _block(mark, text):
    return f"<!-- {mark} -->\n```text\n{text}```\n<!-- end -->"


def settings():
    """Return the page of settings: keys, types, defaults, variables, meanings."""
    schema = rf.schema("Settings")
    parts = [
        "# Settings",
        MADE,
        "A key below its section in `ragforge.toml`, or the variable in the environment. The flag "
        "is the key with hyphens where a command takes it. A flag goes before the variable, that "
        "before the file, that before the default. [More on settings](../help/settings.md).",
    ]
    for section, described in schema["properties"].items():
        found = _resolved(described, schema)
        if "properties" not in found:
            parts += [f"## [{section}.NAME]", _cell(described.get("description", ""))]
            continue
        rows = [("key", "type", "default", "variable", "what it does")]
        for key, field in found["properties"].items():
            variable = f"`RAGFORGE_{section.upper()}_{key.upper()}`"
            default = "" if field.get("default") is None else f"`{_toml(field['default'])}`"
            row = (f"`{key}`", _type(field), default, variable, field.get("description", ""))
            rows.append(row)
        parts += [f"## [{section}]", _table(rows)]
    for title, name in (("a retriever", "RetrieverService"), ("a system", "SystemService")):
        parts += [f"## Fields of {title}", _fields(schema["$defs"][name])]
    return [*parts, "## Fields of oauth", _fields(schema["$defs"]["OAuthSettings"])]


def records():
    """Return the page of records: the fields of each, as `ragforge schema` has them."""
    parts = [
        "# Records",
        MADE,
        "What one line of a dataset's files holds. `ragforge schema NAME` prints the JSON schema. "
        "Which file has which record: [a dataset is a directory](dataset.md).",
    ]
    for name in rf.schema_names():
        if name == "Settings":
            continue
        schema = rf.schema(name)
        parts += [f"## {name}", _cell(schema.get("description", "")), _fields(schema)]
    return [part for part in parts if part]


def _fields(schema):
    required = schema.get("required", [])
    rows = [("field", "type", "needed", "meaning")]
    for field, described in schema.get("properties", {}).items():
        needed = "yes" if field in required else ""
        rows.append((f"`{field}`", _type(described), needed, described.get("description", "")))
    return _table(rows) if len(rows) > 1 else ""


def _resolved(described, schema):
    reference = described.get("$ref", "")
    return schema["$defs"][reference.rpartition("/")[2]] if reference else described


def _type(field):
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(_type(part) for part in field["anyOf"])
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}" if field.get("items") else "list"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"map of {_type(field['additionalProperties'])}"
    return str(field.get("type", "any"))


def _toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _table(rows):
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]])


def _cell(text):
    plain = " ".join(text.split()).replace("|", r"\|")
    # What a tag or a placeholder in a docstring looks like is text.
    parts = plain.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", r"\*") for part in parts[::2]]
    return "`".join(parts)


def exit_codes():
    """Return the page of exit codes: what each means, and which exception ends with it."""
    topic = (ROOT / "docs" / "help" / "exit-codes.md").read_text("utf-8")
    kinds = [
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, errors.RagforgeError)
    ]
    rows = [("code", "exception", "meaning")]
    for kind in sorted(kinds, key=lambda kind: (kind.exit_code, kind.__name__)):
        rows.append((str(kind.exit_code), f"`{kind.__name__}`", inspect.getdoc(kind) or ""))
    meanings = [("code", "meaning"), *re.findall(r"^    (\d+) +(.*)$", topic, re.MULTILINE)]
    return [
        "# Exit codes",
        MADE,
        "Scripts read these. The same list: `ragforge help exit-codes`.",
        _table(meanings),
        "## From Python",
        "Each code has exceptions of its own. All are kinds of `ragforge.RagforgeError`.",
        _table(rows),
    ]


def events():
    """Return the page of events: what observers are told."""
    described = inspect.getdoc(observe.Event)
    rows = [("field", "meaning")]
    for field, text in re.findall(
        r"^    (\w+): (.*?)(?=^    \w+: |\Z)", described, re.MULTILINE | re.DOTALL
    ):
        rows.append((f"`{field}`", text))
    names = ", ".join(f"`{name}`" for name in observe.Name.__args__)
    return [
        "# Events",
        MADE,
        "What an observer is told. `--observer events=FILE` writes them as JSON Lines; "
        "see [watch a run](../how-to/watch.md).",
        f"Names: {names}.",
        _table(rows),
    ]


def python_api():
    """Return the page of the Python API: signatures and what they are for."""
    parts = [
        "# Python API",
        MADE,
        "What `import ragforge` offers. [From Python](../python.md) shows how it is used. Each "
        "call has a twin to be awaited: `ragforge.aio.NAME`, `ds.aio.NAME`.",
        "## Functions",
    ]
    public = {name: getattr(rf, name) for name in sorted({*rf.__all__, "open"})}
    for name, value in public.items():
        if inspect.isfunction(value):
            parts += _described(f"ragforge.{name}", value)
    parts.append("## EvaluationSet")
    parts += _methods("ds", rf.EvaluationSet)
    parts.append("## Results")
    parts.append("All have `to_dict()`, `rows()`, `table()`, `to_pandas()` and `to_polars()`.")
    for name, value in public.items():
        if inspect.isclass(value) and issubclass(value, Result):
            doc = inspect.getdoc(value)
            parts += [f"### {name}", _prose(doc.partition("\n\n")[0])] if doc else [f"### {name}"]
            own = [
                f"`{key}`"
                for key, found in vars(value).items()
                if not key.startswith("_") and (inspect.isfunction(found) or _is_property(found))
            ]
            fields = [f"`{key}`" for key in inspect.get_annotations(value) if key[0] != "_"]
            parts.append(f"Has {', '.join(sorted({*own, *fields}))}.")
    return parts


def _is_property(found):
    return isinstance(found, property)


def _methods(prefix, kind):
    for name, found in sorted(vars(kind).items()):
        call = found.fget if isinstance(found, property) else found
        if not name.startswith("_") and inspect.isfunction(call):
            yield from _described(f"{prefix}.{name}", call)


def _described(name, call):
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(call)))
    found = ast.parse(source).body[0]
    words = [
        word
        for word in ast.unparse(found.args).split(", ")
        if word not in ("self", "handle: Handle")
    ]
    shown = f"{name}({', '.join(words)}) -> {ast.unparse(found.returns)}"
    wrapped = "\n    ".join(textwrap.wrap(shown, 96, break_long_words=False))
    doc = inspect.getdoc(call) or ""
    return [f"### {name}", f"```text\n{wrapped}\n```", *([_prose(doc)] if doc else [])]


def _prose(doc):
    """Return a docstring as Markdown: its sections as lists."""
    lines, listed = [], False
    for line in doc.splitlines():
        if line.strip() in ("Args:", "Returns:", "Raises:", "Yields:"):
            lines += ["", f"**{line.strip()[:-1]}**", ""]
            listed = True
        elif listed and re.match(r"    \S", line):
            lines.append(f"- {_cell(line)}")
        elif listed and line.startswith("     "):
            lines[-1] += f" {_cell(line)}"
        else:
            listed = listed and not line
            lines.append(_cell(line))
    return "\n".join(lines)


PAGES = {
    "commands.md": commands,
    "settings.md": settings,
    "records.md": records,
    "exit-codes.md": exit_codes,
    "events.md": events,
    "python.md": python_api,
}


def text_of(name):
    """Return the text of a page."""
    text = "\n\n".join(part for part in PAGES[name]() if part)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


if __name__ == "__main__":
    for name in PAGES:
        (FOLDER / name).write_text(text_of(name), encoding="utf-8")
