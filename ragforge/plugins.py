"""Code that users name: found by entry point or `package.module:attribute`, made, and called.

Functions may be plain or async; objects and classes are asked through the first method they have.
"""

import ast
import contextvars
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, cast

from ragforge.deferred import difflib, hashlib
from ragforge.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

_DIGITS = 16
_INSTALLED = frozenset({"site-packages", "dist-packages"})


class HandedOver(str):
    """The name of an object that a caller has at hand, with the object: `find` returns it.

    It stands wherever a name is expected, and is written into records as one.
    """

    __slots__ = ("held",)

    held: object

    def __new__(cls, name: str, held: object) -> Self:
        """Return the name, which holds the object."""
        made = super().__new__(cls, name)
        made.held = held
        return made


def find(group: str, name: str, built_in: Collection[str] = ()) -> object:
    """Return the object that a name stands for, as its module holds it.

    Args:
        group: Which extension point, such as "retrievers"; entry points are looked up in
            `ragforge.<group>`.
        name: `package.module:attribute`, looked for in the working directory where nothing
            installed has that name; else the name of an entry point; or what is `HandedOver`.
        built_in: What the caller has under names of its own, for the message only.

    Raises:
        UsageError: There is no such object, or importing it failed.
    """
    if isinstance(name, HandedOver):
        return name.held
    if ":" in name:
        return _load(name, group)
    from importlib.metadata import entry_points

    plugins = {point.name: point for point in entry_points(group=f"ragforge.{group}")}
    if name in plugins:
        return _loaded(plugins[name], group)
    there = sorted({*built_in, *plugins})
    meant = did_you_mean(name, there)
    listed = ", ".join([*there, "module:attribute"])
    raise UsageError(f"{group}: no {name!r}{meant}; there are: {listed}")


def _load(spec: str, group: str) -> object:
    from importlib.metadata import EntryPoint

    module, _, attribute = spec.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise UsageError(f"{group}: {spec!r}: expected package.module:attribute")
    here = str(Path.cwd())
    if not {here, ""} & set(sys.path) and not _is_installed(module.partition(".")[0]):
        # Last, so that a folder of the user's does not hide an installed package of that name.
        sys.path.append(here)
    return _loaded(EntryPoint(name=spec, value=spec, group=group), group)


def _is_installed(package: str) -> bool:
    """Whether a package is there without the working directory; a namespace may go on in it."""
    with suppress(ImportError, ValueError):
        spec = find_spec(package)
        return spec is not None and spec.origin is not None
    return False


def _loaded(point: "EntryPoint", group: str) -> object:
    try:
        module = importlib.import_module(point.module)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise UsageError(
            f"{group}: {point.value!r}: importing {point.module} raised "
            f"{type(error).__name__}: {error}"
        ) from error
    if not point.attr:
        return module
    try:
        loaded: object = attrgetter(point.attr)(module)
    except AttributeError as error:
        public = [known for known in vars(module) if not known.startswith("_")]
        near = difflib.get_close_matches(point.attr, public, n=1, cutoff=0)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"{group}: {point.value!r}: {error}{meant}") from error
    return loaded


def construct(cls: type, where: str, offered: Mapping[str, object], advice: str) -> object:
    """Return an object of a user's class.

    Args:
        cls: The class.
        where: What messages call it.
        offered: Arguments that its constructor may require, by name; one at most is given.
        advice: What to do where it requires others.

    Raises:
        UsageError: It requires others, or raised.
    """
    required = [
        parameter.name
        for parameter in parameters_of(cls)
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    ]
    if len(required) > 1 or not offered.keys() >= set(required):
        optional = "".join(f" or {name!r}" for name in offered)
        raise UsageError(
            f"{where}: the constructor needs {', '.join(required)}; expected none{optional}; "
            f"{advice}"
        )
    try:
        return cls(*(offered[name] for name in required))
    except Exception as error:  # a user's code may raise anything
        raise UsageError(f"{where}: the constructor raised {type(error).__name__}: {error}") from (
            error
        )


def method_of(
    target: object, methods: Sequence[str], where: str, expected: str
) -> Callable[..., object]:
    """Return the callable of a user's object: a function itself, else the first method it has.

    Raises:
        UsageError: There is nothing to call.
    """
    if not inspect.isroutine(target):
        for name in methods:
            method = getattr(target, name, None)
            if callable(method):
                return cast("Callable[..., object]", method)  # its signature is read later
    if callable(target):
        return cast("Callable[..., object]", target)
    raise UsageError(
        f"{where}: is of type {type(target).__qualname__}; expected a function {expected}, or an "
        f"object with one of {', '.join(methods)}"
    )


def parameters_of(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters of a function; none of a built-in that does not tell."""
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        return []


async def call(function: Callable[..., object], ask: Callable[[], object]) -> object:
    """Return the result of a user's function, awaited where it is async.

    Args:
        function: What is called, to tell whether it is async.
        ask: Calls it with its arguments. Run in a thread if the function is plain; the rest of a
            generator too, whose body is the work.
    """
    if inspect.iscoroutinefunction(function):
        result = ask()
    else:
        result = await in_thread(partial(_exhausted, ask))
    return await result if inspect.isawaitable(result) else result


def _exhausted(ask: Callable[[], object]) -> object:
    result = ask()
    return list(result) if isinstance(result, Iterator) else result


async def in_thread(function: Callable[[], T]) -> T:
    """Run a function that may block in a thread of its own, and return its result.

    The thread does not outlive the process, and none waits for another, unlike those of
    `asyncio.to_thread`: a call that never ends would hold up the end of the program.
    """
    import asyncio  # Whoever asks for a name only does not need it.

    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(result: Callable[[], None]) -> None:
        if not done.done():
            result()

    def work() -> None:
        try:
            result = partial(done.set_result, context.run(function))
        except StopIteration as error:  # which a future does not take
            ended = RuntimeError(f"the function raised StopIteration: {error}")
            result = partial(done.set_exception, ended)
        except BaseException as error:  # noqa: BLE001  # raised where it is awaited
            result = partial(done.set_exception, error)
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            loop.call_soon_threadsafe(deliver, result)

    threading.Thread(target=work, daemon=True).start()
    return await done


def sources_digest(found: object) -> str:
    """Return the digest of the file that a user's code is in, and of what that imports beside it.

    These are the modules below the same folder, by what the text of each imports; what lies in
    other folders or is installed, and files that the code reads, are not looked at.

    Args:
        found: A function, class or object. That of one without a file is "".
    """
    named = found if inspect.isroutine(found) or isinstance(found, type) else type(found)
    try:
        file = inspect.getsourcefile(named)
    except TypeError:
        return ""
    if not file:
        return ""
    module = getattr(named, "__module__", "")
    first = Path(file)
    levels = module.count(".") + (first.name == "__init__.py")
    root = first.parents[min(levels, len(first.parents) - 1)]
    # What is installed imports half of a library.
    is_own = _INSTALLED.isdisjoint(first.parts)
    texts: dict[Path, bytes] = {}
    left = [first]
    while left:
        path = left.pop()
        if path in texts:
            continue
        with suppress(OSError):
            texts[path] = path.read_bytes()
            left += _imported(texts[path], path, root) if is_own else ()
    joined = hashlib.sha256()
    for path, text in sorted(texts.items()):
        joined.update(f"{path.name} {len(text)}\n".encode("utf-8", "surrogatepass") + text)
    return joined.hexdigest()[:_DIGITS] if texts else ""


def _imported(text: bytes, path: Path, root: Path) -> Iterator[Path]:
    """Yield the files below a folder that a module imports."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for each in names:
                    yield from _files_of(root, each.name.split("."))
            case ast.ImportFrom(module=module, names=names, level=level):
                base = path.parents[level - 1] if 0 < level <= len(path.parents) else root
                parts = module.split(".") if module else []
                for each in names:
                    yield from _files_of(base, [*parts, each.name])


def _files_of(base: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield the files of a dotted name, those of the packages above it, too."""
    for n in range(len(parts) + 1):
        place = base.joinpath(*parts[:n])
        candidates = [place / "__init__.py"]
        if n:
            candidates.append(place.with_name(f"{place.name}.py"))
        yield from (each for each in candidates if each.is_file())
