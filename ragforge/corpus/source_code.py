"""What source files say to their readers: docstrings and doc comments, with what they describe.

Of Python the docstrings of modules, classes and functions under headings of their names; of other
languages doc comments, each with the line of code below it.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ragforge.corpus.formats import UnreadableError
from ragforge.corpus.seen_text import SeenText, placed_text

_NAME: Final = re.compile(
    r"[ \t]{0,200}(?:async[ \t]+)?(?:def|class)[ \t]{1,20}(?P<name>\w{1,200})"
)
_OPENING: Final = re.compile(r"[A-Za-z]{0,2}(?P<quotes>\"\"\"|'''|\"|')")
_COMMENT: Final = re.compile(
    r"(?P<block>(?<![\w\"'`*./\\-])/\*\*(?!/))"
    r"|(?P<lines>(?>(?:^[ \t]{0,200}+//[/!](?!/)[^\n]{0,2000}+\n){1,500}))"
    r"|(?P<go>(?>(?:^//(?:[ \t]|$|[a-z]{1,20}:)[^\n]{0,2000}+\n){1,500}))"
    r"(?=(?:func|type|package|var|const)\b)",
    re.MULTILINE,
)
"""A pattern of paths in quotes, such as `"src/**/*.js"`, begins no comment."""
_DIRECTIVE: Final = re.compile(r"//[a-z]{1,20}:[^\n]{0,2000}")
"""What tools of Go read, such as `//go:embed`."""
_MARGIN: Final = re.compile(r"[ \t]{0,200}+(?:\*(?!/)|//[/!]?)?[ \t]?")
_CODE_LINE: Final = re.compile(
    r"\s{0,200}(?>(?:(?:@[^\n(]{0,100}+(?:\([^\n()]{0,300}\))?|#\[[^\n]{0,300})[ \t]{0,20}\n"
    r"\s{0,200}){0,9})(?P<code>[^\s/*@#}][^\n]{0,300})"
)
_DEEPEST: Final = 3
_WORD: Final = re.compile(r"\w")


def read_source_code(text: str, suffix: str) -> SeenText:
    """Return what a source file says to its readers, normalised.

    Raises:
        UnreadableError: It is no Python of this version.
    """
    if suffix in {".py", ".pyi"}:
        return placed_text(_apart(text, _of_python(text)))
    return placed_text(_apart(text, _of_comments(text)))


def _apart(text: str, parts: Iterator[list[tuple[str, int]]]) -> Iterator[tuple[str, int]]:
    """Yield the pieces of parts with an empty line between two, which stands behind the first."""
    behind = 0
    for part in parts:
        if behind:
            yield "\n\n"[: part[0][1] - behind], behind
        yield from part
        last, at = part[-1]
        behind = at + len(last)


def _of_python(text: str) -> Iterator[list[tuple[str, int]]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(f"is no Python: {str(error)[:100]}") from error
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for node, depth in _described(tree, 0):
        if not isinstance(node, ast.Module):
            yield _heading(lines[node.lineno - 1], starts[node.lineno - 1], depth)
        said = _docstring(node)
        if said is not None:
            line = lines[said.lineno - 1]
            column = len(line.encode()[: said.col_offset].decode(errors="replace"))
            begin = starts[said.lineno - 1] + column
            last = lines[(said.end_lineno or 1) - 1]
            column = len(last.encode()[: said.end_col_offset].decode(errors="replace"))
            yield _text_of(text, begin, starts[(said.end_lineno or 1) - 1] + column)


_Described = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _described(node: _Described, depth: int) -> Iterator[tuple[_Described, int]]:
    """Yield what has a docstring, and classes around it, in the order of the file."""
    if _docstring(node) is not None or isinstance(node, ast.ClassDef):
        yield node, depth
    if isinstance(node, ast.Module | ast.ClassDef):
        for inner in _definitions(node.body):
            yield from _described(inner, depth + 1)


def _definitions(
    body: Sequence[ast.AST],
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the classes and functions of a body, those under a condition or in a try as well."""
    waiting = [*reversed(body)]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield inner
        elif isinstance(inner, ast.If | ast.Try | ast.ExceptHandler | ast.With):
            waiting += reversed([*ast.iter_child_nodes(inner)])


def _docstring(node: _Described) -> ast.Constant | None:
    first = node.body[0] if node.body else None
    value = first.value if isinstance(first, ast.Expr) else None
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        return None
    return value if _WORD.search(value.value) else None


def _heading(line: str, start: int, depth: int) -> list[tuple[str, int]]:
    """Return the line that names a class or function, as a heading."""
    found = _NAME.match(line)
    if found is None:
        return [(line.strip(), start + len(line) - len(line.lstrip()))]
    bare = line.rstrip()
    end = len(bare) - 1 if bare.endswith(":") else found.end("name")
    mark = f"{'#' * min(depth, _DEEPEST)} "
    name = found.start("name")
    return [(mark, start + name - len(mark)), (line[name:end], start + name)]


def _text_of(text: str, begin: int, end: int) -> list[tuple[str, int]]:
    """Return the lines of a docstring without its quotes and its indentation."""
    opening = _OPENING.match(text, begin, end)
    if opening:
        begin, end = opening.end(), end - len(opening["quotes"])
    first, *others = text[begin:end].split("\n")
    indents = [len(line) - len(line.lstrip()) for line in others if line.strip()]
    indent = min(indents, default=0)
    pieces, at = [(first, begin)], begin + len(first)
    for line in others:
        pieces += (("\n", at), (line[indent:], at + 1 + min(indent, len(line))))
        at += 1 + len(line)
    while len(pieces) > 1 and not pieces[-1][0].strip():
        pieces.pop()
    return pieces


def _of_comments(text: str) -> Iterator[list[tuple[str, int]]]:
    last, behind = text.rfind("*/"), 0
    for found in _COMMENT.finditer(text):
        start, end = found.span()
        if start < behind or (found["block"] and last < found.end()):
            continue
        if found["block"]:
            start, end = found.end(), text.index("*/", found.end())
        behind = end + 2 if found["block"] else end
        pieces = _without_margins(text, start, end)
        if not any(_WORD.search(piece) for piece, _ in pieces):
            continue
        yield pieces
        if code := _CODE_LINE.match(text, behind):
            yield [(code["code"].rstrip(" \t{;"), code.start("code"))]


def _without_margins(text: str, start: int, end: int) -> list[tuple[str, int]]:
    """Return the lines of a comment without what marks them as such."""
    pieces: list[tuple[str, int]] = []
    at = start
    for line in text[start:end].rstrip().split("\n"):
        margin = _MARGIN.match(line)
        skip = margin.end() if margin else 0
        skip = len(line) if _DIRECTIVE.match(line) else skip
        if pieces:
            pieces.append(("\n", at - 1))
        pieces.append((line[skip:].rstrip(), at + skip))
        at += len(line) + 1
    while pieces and not pieces[0][0].strip():
        pieces.pop(0)
    while pieces and not pieces[-1][0].strip():
        pieces.pop()
    return pieces
