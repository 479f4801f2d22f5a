"""What a call works with: a set, settings as the command line finds them, observers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from ragforge.api.arguments import refuse_other_kind
from ragforge.api.progress import Progress, hush_notebook_bars, in_notebook, say
from ragforge.config import Setting, Settings, SettingsFile, each_setting, load
from ragforge.deferred import dataclass, difflib
from ragforge.errors import ConfigError, UsageError
from ragforge.observe import Event, Observer, both, silent
from ragforge.pipeline.job import EARNEST, Job, Mode

if TYPE_CHECKING:
    from ragforge.files.set.dataset import Dataset
    from ragforge.files.set.query_selection import RequestedQueries

PAID: Final = ("model", "budget", "prompts")
"""Sections of every call that may ask a model."""
_COMMON: Final = ("config", "quiet", "observer")
_OF_PAID: Final = ("retry_failed", "offline_replay")
_ARGUMENTS: Final = frozenset({"evaluate.measures", "refresh.dataset", "refresh.documents"})
"""Settings that are arguments of their own, and no keywords."""
_FLAG: Final = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")
_NOTES_KEPT: Final = 1000
_NOTHING: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, slots=True)
class Handle:
    """Where a set is.

    Args:
        path: Its directory.
        keywords: Keywords that hold for all calls that take them.
        wanted: The part of the queries that is worked with; None for all.
    """

    path: Path
    keywords: Mapping[str, object] = field(default_factory=dict, repr=False)
    wanted: RequestedQueries | None = None

    def __post_init__(self) -> None:
        # The name of the directory serves as well.
        object.__setattr__(self, "path", Path(self.path))


def dataset_of(handle: Handle) -> Dataset:
    """Return the files of a set: those of the version that is published now.

    Raises:
        DataError: The directory is missing or holds no dataset.
    """
    from ragforge.files.set.opening import open_dataset

    return open_dataset(handle.path)


def part_of(handle: Handle) -> Dataset:
    """Return the files of a set with the part of its queries chosen that is worked with.

    Raises:
        DataError: As `dataset_of`; or there are no queries.
        UsageError: There is no such part.
    """
    from ragforge.files.set.query_selection import choose

    dataset = dataset_of(handle)
    if handle.wanted is None:
        return dataset
    with naming_keywords():
        return dataset.choosing(choose(dataset.require_accepted_queries(), handle.wanted))


def whole_of(handle: Handle, call: str) -> Dataset:
    """Return the files of a set for a call that is about the whole of it.

    Args:
        handle: The set.
        call: Its name, for messages.

    Raises:
        DataError: As `dataset_of`.
        UsageError: A part of the queries was chosen.
    """
    if handle.wanted is not None:
        raise UsageError(f"{call}: is about the whole set; call it on the set, not on a part()")
    return dataset_of(handle)


@dataclass(frozen=True, slots=True)
class Takes:
    """Which keywords a call takes.

    Args:
        name: Of the call, for messages.
        sections: Of settings.
        paid: Whether it may ask a model.
        arguments: Others that it has, which a misspelt keyword may have meant.
    """

    name: str
    sections: tuple[str, ...]
    paid: bool = True
    arguments: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Setting]:
        """The settings by keyword."""
        return {
            setting.flag.replace("-", "_"): setting
            for setting in each_setting(*self.sections)
            if setting.key not in _ARGUMENTS
        }

    @property
    def keywords(self) -> tuple[str, ...]:
        """All keywords."""
        return (*self.settings, *_COMMON, *(_OF_PAID if self.paid else ()))


ASK: Final = Takes("ask", PAID)
GENERATE: Final = Takes("generate", ("generate", "pool", "chunk", *PAID))
CHUNK: Final = Takes("import", ("chunk",), paid=False)
RETRIEVE: Final = Takes("retrieve", ("retrieve", "model"), paid=False)
SWEEP: Final = Takes("sweep", ("judge", *PAID))
JUDGE: Final = Takes("judge", ("judge", "pool", *PAID))
EVALUATE: Final = Takes("evaluate", ("evaluate",), paid=False)
REFRESH: Final = Takes("refresh", ("refresh", "chunk", "generate", "pool", *PAID))
PROMPT: Final = Takes("render_prompt", ("judge", "generate", *PAID))
EVERYTHING: Final = Takes("settings", ())


@dataclass(frozen=True, slots=True)
class Call:
    """What one call works with.

    Args:
        job: Settings in force, who is told of progress, and how a model is asked.
        notes: Sentences that were told on the way, in their order.
        names_observer: Whether evaluations are to be told as well.
    """

    job: Job
    notes: list[str] = field(default_factory=list)
    names_observer: bool = False

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.job.settings

    @property
    def observer(self) -> Observer:
        """Told of progress; notes reach `notes` too."""
        return self.job.observer

    @property
    def mode(self) -> Mode:
        """How a model is asked."""
        return self.job.mode


@contextmanager
def begin(
    takes: Takes,
    given: Mapping[str, object],
    defaults: Mapping[str, object],
    *,
    own: Mapping[str, object] = _NOTHING,
    mode: Mode = EARNEST,
) -> Iterator[Call]:
    """Lend what a call works with, until it is over.

    Args:
        takes: Which keywords it takes.
        given: Its keywords.
        defaults: What the set was told for all calls; what this one does not take is passed over.
        own: Settings by `section.field` that are arguments of the call.
        mode: What else the call says of how a model is asked.

    Raises:
        TypeError: There is no such keyword.
        ConfigError: A value is not allowed, or the settings file cannot be taken or needs trust.
    """
    check(takes.name, given, takes.keywords, takes.arguments)
    known = {name: value for name, value in defaults.items() if name in takes.keywords}
    keywords = {**known, **{name: value for name, value in given.items() if value is not None}}
    for name, value in keywords.items():
        _refuse_other_kind(takes, name, value)
    quiet = bool(keywords.get("quiet"))
    flags = {
        setting.key: _value(setting, keywords[name])
        for name, setting in takes.settings.items()
        if name in keywords
    }
    settings = _loaded(keywords.get("config"), {**flags, **own}, quiet=quiet)
    if given.get("base_url") is not None and takes.paid and _asks_nobody(settings):
        raise UsageError(f"{takes.name}: base_url: names an endpoint, and no model to ask there")
    mode = replace(
        mode,
        retry_failed=bool(keywords.get("retry_failed")),
        offline_replay=bool(keywords.get("offline_replay")),
    )
    notes: list[str] = []
    if in_notebook():
        hush_notebook_bars()
    with naming_keywords(), ExitStack() as stack:
        shown = silent if quiet else Progress(notebook=in_notebook())
        observer, named = _observer(keywords.get("observer"), stack, both(_keep(notes), shown))
        yield Call(Job(settings, observer, mode), notes, named)


def _refuse_other_kind(takes: Takes, name: str, value: object) -> None:
    """Refuse what is no truth value where one is meant, and one where it is not.

    All else is held to its setting by `load`.

    Raises:
        UsageError: It is one of these.
    """
    if value is None or name in ("config", "observer"):
        return
    setting = takes.settings.get(name)
    if setting is None or setting.info.annotation is bool:
        refuse_other_kind(f"{takes.name}: {name}", value, bool)
        return
    extra = setting.info.json_schema_extra
    if isinstance(value, bool) and not (isinstance(extra, dict) and "switch" in extra):
        raise UsageError(f"{takes.name}: {name}: expected a value, got {value}")


def _asks_nobody(settings: Settings) -> bool:
    """Whether neither a model nor an embedding model is named, so that the baseline works."""
    from ragforge.config.sections import is_offline  # Few calls name an endpoint.

    named = settings.model.embedding_model or settings.judge.panel
    return is_offline(settings.model.name) and not named


def check(
    call: str, given: Iterable[str], known: Iterable[str], arguments: Iterable[str] = ()
) -> None:
    """Refuse keywords that a call does not take.

    Args:
        call: Its name.
        given: Keywords that are no arguments of its own.
        known: Those that it takes.
        arguments: Its own arguments, one of which may have been meant.

    Raises:
        TypeError: There is one; the nearest is named.
    """
    names = list(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, [*names, *arguments], n=1, cutoff=0)
            raise TypeError(
                f"{call}() got an unexpected keyword argument {name!r}; did you mean {near[0]!r}?"
            )


def as_keywords(message: str) -> str:
    """Return a message with keywords where it names flags: `down_from_s` for `--down-from-s`."""
    return _FLAG.sub(lambda flag: flag[1].replace("-", "_"), message)


@contextmanager
def naming_keywords() -> Iterator[None]:
    """Name keywords in messages where these name flags; see `as_keywords`.

    Raises:
        UsageError: As within.
    """
    try:
        yield
    except UsageError as error:
        message = str(error)
        if "--" not in message or "`ragforge " in message:
            raise  # A command of the shell has flags.
        raise type(error)(as_keywords(message)) from error


def every_keyword() -> tuple[str, ...]:
    """Return the keywords of all calls."""
    kinds = (GENERATE, RETRIEVE, JUDGE, EVALUATE, REFRESH)
    return tuple(dict.fromkeys(name for takes in kinds for name in takes.keywords))


def _loaded(config: object, flags: Mapping[str, object], *, quiet: bool) -> Settings:
    def tell(file: SettingsFile) -> None:
        if not quiet:
            say(file.line)

    path = None if config is None else Path(cast("str | PathLike[str]", config))
    try:
        return load(path, flags, on_found=tell)
    except ConfigError as error:
        message = str(error)
        if not message.startswith("--"):
            raise
        flag, colon, rest = message.removeprefix("--").partition(":")
        raise ConfigError(f"{flag.replace('-', '_')}{colon}{rest}") from error


def _value(setting: Setting, given: object) -> object:
    """Return a value as its field takes it."""
    extra = setting.info.json_schema_extra
    if isinstance(extra, dict) and "switch" in extra and isinstance(given, bool):
        return extra["switch"] if given else setting.info.default
    if isinstance(setting.info.default, tuple):
        if isinstance(given, Mapping):
            return tuple(f"{name}={share:g}" for name, share in given.items())
        return (given,) if isinstance(given, str) else tuple(cast("Iterable[object]", given))
    if isinstance(given, Mapping):
        return json.dumps(given)
    return fspath(given) if isinstance(given, PathLike) else given


def _keep(notes: list[str]) -> Observer:
    def keep(event: Event) -> None:
        if event.name == "note" and len(notes) < _NOTES_KEPT:
            notes.append(event.message)

    return keep


def _observer(given: Any, stack: ExitStack, first: Observer) -> tuple[Observer, bool]:  # noqa: ANN401  # as users have it
    """Return who is told, with the observers that are given; and whether any is."""
    if given is None:
        return first, False
    if not (callable(given) or isinstance(given, Iterable)):
        raise UsageError(f"observer: expected a name or something to call, got {given!r:.80}")
    every = [given] if callable(given) or isinstance(given, str) else list(given)
    names = [item for item in every if isinstance(item, str)]
    observer = first
    for item in every:
        if isinstance(item, str):
            continue
        if not callable(item):
            raise UsageError(f"observer: expected a name or something to call, got {item!r:.80}")
        observer = both(observer, item)
    if names:
        from ragforge.pipeline.observer_events import observing

        observer = stack.enter_context(observing(names, observer, say))
    return observer, bool(every)
