"""Prompts are files: versioned, hashed into every record, replaced by a folder of the user's."""

from collections.abc import Mapping
from pathlib import Path

from ragforge.deferred import dataclass, difflib, hashlib, string, tomllib
from ragforge.errors import ConfigError, DataError, UsageError, did_you_mean
from ragforge.files.shipped_folders import shipped
from ragforge.files.text import read_text

_FIELDS = frozenset({"version", "system", "user", "schema"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file.

    Args:
        name: File name without `.toml`.
        version: Counted up by its author on each change of meaning.
        system, user: Texts with `$holes`; only `user` may have them.
        schema: Name of the reply schema.
        sha256: Digest of the file.
    """

    name: str
    version: int
    system: str
    user: str
    schema: str
    sha256: str

    def render(self, **holes: str) -> str:
        """Return the user turn with its holes filled; what is filled in is not read again.

        Raises:
            ConfigError: The prompt has a hole that is not given, or lacks one that is.
        """
        wanted = holes_of(self.user)
        if wanted != set(holes):
            raise ConfigError(
                f"prompt {self.name!r}: has the holes {', '.join(sorted(wanted)) or 'none'}; "
                f"expected {', '.join(sorted(holes))}"
            )
        return string.Template(self.user).substitute(holes)


@dataclass(frozen=True, slots=True)
class ListedPrompt:
    """A prompt as a list shows it.

    Args:
        prompt: The one in use.
        origin: `shipped`, or the user's folder.
        note: What its author should know, "" for nothing.
    """

    prompt: Prompt
    origin: str
    note: str = ""


def holes_of(text: str) -> set[str]:
    """Return the names of the holes in a template."""
    return set(string.Template(text).get_identifiers())


def prompt_names(folder: str = "") -> list[str]:
    """Return the names of the prompts there are, the user's and the shipped ones, sorted."""
    return sorted(
        {
            path.stem
            for prompt_folder in _prompt_folders(folder)
            for path in prompt_folder.glob("*.toml")
        }
    )


def load_prompt(name: str, folder: str = "") -> Prompt:
    """Return a prompt, the user's before the shipped one.

    Args:
        name: File name without `.toml`.
        folder: The user's folder, "" for none.

    Raises:
        ConfigError: There is no such prompt, its file does not hold to the format, or no stage
            could fill its holes or read its replies.
    """
    prompt_folder = _folder_of(name, folder)
    prompt = _parse(name, prompt_folder / f"{name}.toml")
    if prompt_folder != _shipped():
        _check_override(prompt, prompt_folder / f"{name}.toml")
    return prompt


def is_overridden(name: str, folder: str) -> bool:
    """Whether a folder of the user's has a prompt of that name."""
    return (Path(folder) / f"{name}.toml").is_file()


def list_prompts(folder: str = "") -> list[ListedPrompt]:
    """Return all prompts with where each comes from, sorted by name.

    Raises:
        ConfigError: As for `load_prompt`.
    """
    return [_listed(load_prompt(name, folder), folder) for name in prompt_names(folder)]


def copy_prompt(name: str, folder: Path) -> Path:
    """Write a shipped prompt into a folder, which is made where it is missing; return the file.

    Raises:
        ConfigError: No prompt of that name is shipped.
        UsageError: The folder has that prompt already.
        DataError: The file cannot be written.
    """
    content = _source(name, "").encode()
    path = folder / f"{name}.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            stream.write(content)
    except FileExistsError as error:
        raise UsageError(f"{path}: is there already; remove it or name another --to") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def diff_override(name: str, folder: str) -> str:
    """Return how a prompt of the user's differs from the shipped one, "" where it does not.

    The files are compared as they are, so that one that cannot be loaded can be looked into.

    Raises:
        ConfigError: One of the two is missing.
    """
    path = Path(folder) / f"{name}.toml"
    shipped_text = _source(name, "")
    if _folder_of(name, folder) == _shipped():
        raise ConfigError(
            f"{path}: no such file; `ragforge prompts copy {name} --to {folder}` makes one"
        )
    return _diff(f"shipped/{name}.toml", shipped_text, str(path), _source(name, folder))


def diff_prompts(first: str, second: str, folder: str = "") -> str:
    """Return how two prompts differ, "" where they do not.

    Raises:
        ConfigError: One of them is missing.
    """
    return _diff(f"{first}.toml", _source(first, folder), f"{second}.toml", _source(second, folder))


def _shipped() -> Path:
    return shipped("prompts")


def _prompt_folders(folder: str) -> list[Path]:
    if folder and not Path(folder).is_dir():
        raise ConfigError(f"--prompts-dir {folder}: no such folder")
    return [*([Path(folder)] if folder else []), _shipped()]


def _folder_of(name: str, folder: str) -> Path:
    """Return the folder that a prompt is taken from."""
    names = prompt_names(folder)
    if name in names:
        return next(
            prompt_folder
            for prompt_folder in _prompt_folders(folder)
            if (prompt_folder / f"{name}.toml").is_file()
        )
    hint = did_you_mean(name, names)
    raise ConfigError(f"no prompt {name!r}{hint}; there are: {', '.join(names)}")


def _source(name: str, folder: str) -> str:
    path = _folder_of(name, folder) / f"{name}.toml"
    try:
        return read_text(path)
    except DataError as error:
        raise ConfigError(str(error)) from error


def _diff(first: str, first_text: str, second: str, second_text: str) -> str:
    lines = difflib.unified_diff(
        first_text.splitlines(), second_text.splitlines(), first, second, lineterm=""
    )
    diff = "\n".join(lines)
    unseen = not diff and first_text != second_text
    return f"--- {first}\n+++ {second}\n(only line ends differ)" if unseen else diff


def _listed(prompt: Prompt, folder: str) -> ListedPrompt:
    if _folder_of(prompt.name, folder) == _shipped():
        return ListedPrompt(prompt, "shipped")
    if prompt.name not in prompt_names():
        return ListedPrompt(prompt, folder)
    original = load_prompt(prompt.name)
    if prompt.sha256 == original.sha256:
        note = "same as shipped"
    elif prompt.version == original.version:
        note = f"differs from shipped version {original.version}; raise its version"
    elif prompt.version < original.version:
        note = f"shipped is version {original.version} by now"
    else:
        note = ""
    return ListedPrompt(prompt, folder, note)


def _check_override(prompt: Prompt, path: Path) -> None:
    """Check that a prompt of the user's fits a stage: that of its name, else that of its schema."""
    originals = [load_prompt(name) for name in prompt_names()]
    fitting = [item for item in originals if item.name == prompt.name] or originals
    schemas = sorted({item.schema for item in fitting})
    if prompt.schema not in schemas:
        allowed = f"one of {', '.join(schemas)}" if len(schemas) > 1 else schemas[0]
        raise ConfigError(f"{path}: schema: expected {allowed}; got {prompt.schema!r}")
    alike = [item for item in fitting if item.schema == prompt.schema]
    same = [item for item in alike if holes_of(item.user) == holes_of(prompt.user)]
    if not same:
        raise ConfigError(f"{path}: user: {_wrong_holes(prompt.user, alike[0].user)}")
    loose = sorted(_unfenced(prompt.user) - _unfenced(same[0].user))
    if loose:
        raise ConfigError(
            f"{path}: user: ${loose[0]} stands outside of the fence; expected $marker before and "
            "behind all data"
        )


def _wrong_holes(text: str, expected: str) -> str:
    holes, wanted = holes_of(text), holes_of(expected)
    told = [f"lacks ${name}" for name in sorted(wanted - holes)]
    told += [f"has ${name}" for name in sorted(holes - wanted)]
    return f"{', '.join(told)}; expected exactly {', '.join(f'${it}' for it in sorted(wanted))}"


def _unfenced(text: str) -> set[str]:
    """Return the holes that stand before the first marker or behind the last, be it once."""
    found = string.Template.pattern.finditer(text)
    names = [name for match in found if (name := match["named"] or match["braced"])]
    if names.count("marker") < 2:
        return set(names)
    first = names.index("marker")
    last = len(names) - 1 - names[::-1].index("marker")
    return {*names[:first], *names[last + 1 :]}


def _parse(name: str, path: Path) -> Prompt:
    try:
        text = read_text(path)
        fields = tomllib.loads(text)
    except DataError as error:
        raise ConfigError(str(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error
    wrong = sorted(_FIELDS.symmetric_difference(fields))
    if wrong:
        raise ConfigError(f"{path}: {wrong[0]}: expected exactly {', '.join(sorted(_FIELDS))}")
    if not isinstance(fields["version"], int):
        raise ConfigError(f"{path}: version: expected an integer, got {fields['version']!r}")
    digest = hashlib.sha256(text.encode()).hexdigest()
    texts = {key: _text(fields, key, path) for key in ("system", "user", "schema")}
    if holes_of(texts["system"]):
        raise ConfigError(f"{path}: system: holds a $hole; only user may have them")
    if not string.Template(texts["user"]).is_valid():
        raise ConfigError(f"{path}: user: holds a stray $; write $$ for the sign itself")
    return Prompt(name=name, version=fields["version"], sha256=digest, **texts)


def _text(fields: Mapping[str, object], key: str, path: Path) -> str:
    value = fields[key]
    if not isinstance(value, str):
        raise ConfigError(f"{path}: {key}: expected text, got {value!r}")
    return value
