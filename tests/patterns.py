"""Every pattern of the package, found by itself, and texts on which a pattern may take too long."""

import ast
import collections
import contextlib
import importlib
import itertools
import pkgutil
import re
import signal
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from re import (
    _compiler,  # type: ignore[attr-defined]
    _parser,  # type: ignore[attr-defined]
)
from re import _constants as sre  # type: ignore[attr-defined]  # the only tree of a pattern

import ragforge
from ragforge.deferred import DeferredPattern

CALLS = frozenset(
    {"compile", "sub", "subn", "search", "match", "fullmatch", "split", "findall", "finditer"}
)
SAMPLES = {
    sre.CATEGORY_SPACE: " \n",
    sre.CATEGORY_NOT_SPACE: "a.",
    sre.CATEGORY_DIGIT: "0",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_WORD: "a0_",
    sre.CATEGORY_NOT_WORD: " -",
}
ALWAYS = tuple(" \na0A_-.[é")
END = "\0"
"""No pattern expects it, so that a match that needs an end fails there."""
FEW, FEW_S = 2_000, 0.0005
LONG, LONG_S = 60_000, 0.8
MANY = 10
"""Repeats of so many are worth attacking."""


@dataclass(frozen=True)
class Found:
    """A pattern, where it is, and by which of its methods it is used."""

    pattern: "re.Pattern[str]"
    where: str
    methods: frozenset[str] = frozenset({"search"})


def package_patterns() -> list[Found]:
    """Return all patterns of text, of modules, classes, closures and literals, each once."""
    collected: dict[tuple[str, int], Found] = {}
    seen: dict[int, object] = {}
    for info in pkgutil.walk_packages(ragforge.__path__, "ragforge."):
        if not info.name.endswith("__main__"):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                _collect(value, f"{info.name}.{name}", collected, seen)
    for path in sorted(Path(ragforge.__path__[0]).rglob("*.py")):
        for found in _literals(ast.parse(path.read_text(encoding="utf-8")), path.name):
            collected.setdefault((found.pattern.pattern, found.pattern.flags), found)
    methods = _methods()
    return [
        replace(each, methods=methods.get(each.where, each.methods))
        for each in collected.values()
        if isinstance(each.pattern.pattern, str)
    ]


def _methods() -> dict[str, frozenset[str]]:
    """Return by full name what is called of it anywhere; "search" where it is passed on."""
    used: dict[str, set[str]] = {}
    root = Path(ragforge.__path__[0])
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        called: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called.add(id(node.value))
                name = names.get(node.value.id, f"{module}.{node.value.id}")
                used.setdefault(name, set()).add(node.attr)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                name = names.get(node.id, f"{module}.{node.id}")
                used.setdefault(name, set()).update(() if id(node) in called else ("search",))
    return {name: frozenset(methods) for name, methods in used.items()}


def _collect(
    value: object, where: str, collected: dict[tuple[str, int], Found], seen: dict[int, object]
) -> None:
    if id(value) in seen or isinstance(value, types.ModuleType | str | int | float | bytes):
        return
    seen[id(value)] = value
    if isinstance(value, DeferredPattern):
        value = re.compile(value._text, value._flags)
    if isinstance(value, re.Pattern):
        collected.setdefault((value.pattern, value.flags), Found(value, where))
    for each in _held(value):
        _collect(each, where, collected, seen)


def _held(value: object) -> list[object]:
    """Return what may hold a pattern of what a module names."""
    if isinstance(value, dict | types.MappingProxyType):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
        return [*cells, value.__defaults__, value.__kwdefaults__]
    if isinstance(value, type):
        return list(vars(value).values()) if value.__module__.startswith("ragforge") else []
    if type(value).__module__.startswith("ragforge"):
        slots = getattr(type(value), "__slots__", ())
        return [getattr(value, "__dict__", None), *(getattr(value, name, None) for name in slots)]
    names = ("__self__", "__wrapped__", "func", "args", "fget")
    return [getattr(value, name, None) for name in names]


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _literals(tree: ast.AST, name: str) -> Iterator[Found]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in CALLS
            and isinstance(node.args[0], ast.Constant)
        ):
            names = [
                inner.attr
                for part in [*node.args[1:], *(word.value for word in node.keywords)]
                for inner in ast.walk(part)
                if isinstance(inner, ast.Attribute)
            ]
            flags = [getattr(re, name, 0) for name in names]
            given = [flag for flag in flags if isinstance(flag, re.RegexFlag)]
            whole = re.RegexFlag(0)
            for flag in given:
                whole |= flag
            method = "search" if node.func.attr == "compile" else node.func.attr
            pattern = re.compile(node.args[0].value, whole)
            yield Found(pattern, f"{name}:{node.lineno}", frozenset({method}))


def attacks(pattern: "re.Pattern[str]", size: int) -> Iterator[str]:
    """Yield texts of a length on which a pattern may try much for nothing."""
    for unit in units(pattern):
        yield unit * (size // len(unit)) + END
    for start, unit in starts(pattern):
        yield start + unit * (size // len(unit)) + END


def units(pattern: "re.Pattern[str]") -> list[str]:
    """Return what is worth repeating: characters, matches, and matches that lack their end."""
    tree = _parser.parse(pattern.pattern, pattern.flags)
    characters = list(dict.fromkeys([*itertools.islice(_characters(tree), 24)]))
    repeated = list(dict.fromkeys(_repeated(tree)))[:12]
    whole = [_sample(tree, times) for times in (1, 2)]
    cut = [each[:-1] for each in whole]
    pairs = ["".join(pair) for pair in itertools.permutations(characters[:4], 2)]
    lines = [f"{each}\n" for each in (*repeated, *characters[:3])]
    found = [*ALWAYS, *characters, *repeated, *whole, *cut, *pairs, *lines]
    return [unit for unit in dict.fromkeys(found) if unit]


def starts(pattern: "re.Pattern[str]") -> Iterator[tuple[str, str]]:
    """Yield the text that leads up to each repeat, with what it repeats."""
    tree = _parser.parse(pattern.pattern, pattern.flags)
    at = ""
    for node in tree:
        for inner in _repeated([node]):
            if inner:
                yield at, inner
        at += _sample([node], 1)


def _characters(tree: object) -> Iterator[str]:
    """Yield the characters that a pattern names, or one of each class."""
    for op, value in tree:  # type: ignore[attr-defined]
        if op in (sre.LITERAL, sre.NOT_LITERAL):
            yield chr(value) if op is sre.LITERAL else "a"
        elif op is sre.IN:
            yield from _of_set(value)
        else:
            for inner in _inside(op, value):
                yield from _characters(inner)


def _repeated(tree: object) -> Iterator[str]:
    for op, value in tree:  # type: ignore[attr-defined]
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) and value[1] >= MANY:
            yield _sample(value[2], 1)
            yield from itertools.islice(_characters(value[2]), 3)
        for inner in _inside(op, value):
            yield from _repeated(inner)


def possessive_groups(tree: object) -> Iterator[object]:
    """Yield what a pattern repeats possessively, of more than a single character."""
    for op, value in tree:  # type: ignore[attr-defined]
        if op is sre.POSSESSIVE_REPEAT and not _compiler._simple(value[2]):
            yield value[2]
        for inner in _inside(op, value):
            yield from possessive_groups(inner)


def _inside(op: object, value: object) -> list[object]:
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [value[2]]  # type: ignore[index]
    if op is sre.SUBPATTERN:
        return [value[3]]  # type: ignore[index]
    if op is sre.BRANCH or op in (sre.ASSERT, sre.ASSERT_NOT):
        return list(value[1]) if op is sre.BRANCH else [value[1]]  # type: ignore[index]
    if op is sre.ATOMIC_GROUP:
        return [value]
    if op is sre.GROUPREF_EXISTS:
        return [part for part in value[1:] if part]  # type: ignore[index]
    return []


def _sample(tree: object, times: int) -> str:
    """Return a text that a pattern, or a part of one, more or less matches."""
    text = ""
    for op, value in tree:  # type: ignore[attr-defined]
        if op is sre.LITERAL:
            text += chr(value)
        elif op in (sre.NOT_LITERAL, sre.ANY):
            text += "a"
        elif op is sre.IN:
            text += next(_of_set(value), "a")
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            text += _sample(value[2], times) * min(max(value[0], times), max(value[1], 1), 50)
        elif op is sre.BRANCH:
            text += _sample(value[1][times % len(value[1])], times)
        elif op is sre.ASSERT_NOT or op is sre.ASSERT:
            continue
        else:
            text += "".join(_sample(inner, times) for inner in _inside(op, value))
    return text


def _of_set(items: list[tuple[object, object]]) -> Iterator[str]:
    if items and items[0][0] is sre.NEGATE:
        named = "".join(_of_set(items[1:]))
        yield from [each for each in "a .\n" if each not in named][:2]
        return
    for op, value in items:
        if op is sre.LITERAL:
            yield chr(value)  # type: ignore[arg-type]
        elif op is sre.RANGE:
            yield chr(value[0])  # type: ignore[index]
        elif op is sre.CATEGORY:
            yield from SAMPLES.get(value, "a")


class OutOfTimeError(Exception):
    """A piece of work took more time of the processor than it may."""


@contextlib.contextmanager
def processor_time(limit_s: float) -> Iterator[None]:
    """End the work of the block after so much time of this process, not of the machine."""

    def end(*_: object) -> None:
        raise OutOfTimeError(f"it took more than {limit_s} s")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def slowest(found: Found) -> list[str]:
    """Return how the texts begin on which a pattern takes more than linear time, with the way.

    Few characters tell which texts to try at full length; there, the limit is ten times what the
    slowest pattern of linear time takes, and a tenth of what the fastest of quadratic time does.
    """
    slow: list[str] = []
    pattern = found.pattern
    few, many = list(attacks(pattern, FEW)), None
    for way in {WAYS.get(method, everywhere) for method in found.methods - HARMLESS}:
        for at, text in enumerate(few):
            if _takes_longer(way, pattern, text, FEW_S):
                many = many or list(attacks(pattern, LONG))
                if _takes_longer(way, pattern, many[at], LONG_S):
                    slow.append(f"{way.__name__} {text[:30]!r}…{text[-5:]!r}")
                    break
    return slow


def _takes_longer(way: "Way", pattern: "re.Pattern[str]", text: str, limit_s: float) -> bool:
    try:
        with processor_time(limit_s):
            way(pattern, text)
    except OutOfTimeError:
        return True
    return False


def everywhere(pattern: "re.Pattern[str]", text: str) -> None:
    """Look for matches throughout a text."""
    collections.deque(pattern.finditer(text), maxlen=0)


def at_start(pattern: "re.Pattern[str]", text: str) -> None:
    """Try to match the start of a text."""
    pattern.match(text)


def whole(pattern: "re.Pattern[str]", text: str) -> None:
    """Try to match all of a text."""
    pattern.fullmatch(text)


Way = Callable[["re.Pattern[str]", str], None]
WAYS: dict[str, Way] = {"match": at_start, "fullmatch": whole}
HARMLESS = frozenset({"pattern", "flags", "groupindex", "groups"})
