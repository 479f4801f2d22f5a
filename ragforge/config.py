"""Settings: one field gives flag, TOML key, environment variable, help and schema.

Order of precedence: default, file, environment, flag. Secrets are read from the environment only,
by the variable that `api_key_env` names, and never stored here.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from ragforge.errors import ConfigError

DEFAULT_FILE = "ragforge.toml"
"""Read from the working directory when no file is named."""

_CREDENTIALS = re.compile(r"//[^/@]*@")

_OWN_FIELDS = {"model", "messages", "response_format", "stream", "n"}

PositiveInt = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    """Base of the groups of settings; field docstrings become help and schema."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )


def flag(name: str) -> dict[str, str]:
    """Name the command-line flag of a field where it differs from the field's name."""
    return {"flag": name}


def _address(value: str) -> str:
    """Return an address that may be asked and may be shown."""
    if not value:
        return value
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("expected an address such as http://127.0.0.1:8080/v1")
    if parts.username or parts.password:
        raise ValueError("no user name or password in the address: it is stored and shown")
    return value


def _proxy(value: str) -> str:
    return value if value in ("none", "environment") else _address(value)


def _json_object(value: str) -> str:
    value = value.strip()
    if not value:
        return value
    try:
        found = json.loads(value)
    except ValueError as error:
        raise ValueError(f"expected a JSON object ({error})") from error
    if not value.startswith("{"):
        raise ValueError("expected a JSON object")
    taken = sorted(_OWN_FIELDS & set(found))
    if taken:
        raise ValueError(f"{', '.join(taken)}: set by ragforge itself")
    return value


def _between_commas(value: object) -> object:
    """Return a list whose items may hold several each."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        return value
    found = tuple(part.strip() for item in value for part in item.split(",") if part.strip())
    if value and not found:
        raise ValueError("expected names between commas")
    return found


def _threshold(value: object) -> object:
    if value == "auto" or (
        isinstance(value, int | str) and re.fullmatch("[1-9][0-9]*", str(value))
    ):
        return value
    raise ValueError("expected auto or a whole number from 1")


class ModelSettings(Section):
    """Which model is asked, and how."""

    name: Annotated[str, Field(json_schema_extra=flag("model"), min_length=1)] = "offline"
    """Model name at the endpoint; `local:FILE.gguf` for a local file; `offline` for no model."""
    base_url: Annotated[str, AfterValidator(_address)] = ""
    """Address of an OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1; the client's
    own default where empty."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; endpoints without keys need none."""
    embedding_model: str = ""
    """Model name for /embeddings, used by the dense retriever."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Sampling temperature; 0 asks for the most likely reply."""
    seed: int = 0
    """Seed of the sampling of chunks and of the model where it takes one."""
    max_output_tokens: PositiveInt = 1024
    """Tokens a reply may have; a longer one is cut and counts as a failure."""
    timeout_s: PositiveFloat = 120.0
    """Seconds one attempt may take."""
    max_attempts: PositiveInt = 5
    """Attempts for one call when the endpoint fails for the moment."""
    max_wait_s: PositiveFloat = 300.0
    """Seconds to wait for an endpoint that is down or asks for patience; then the run stops."""
    concurrency: PositiveInt = 8
    """Calls in flight at most, of each model of a panel; fewer while its endpoint shows that it
    takes fewer."""
    requests_per_minute: PositiveFloat | None = None
    """Calls a minute; what the endpoint tells or shows to take where unset."""
    tokens_per_minute: PositiveFloat | None = None
    """Tokens a minute, in and out, likewise."""
    extra_body: Annotated[str, AfterValidator(_json_object)] = ""
    """JSON object whose fields go into each request, such as {"reasoning_effort": "low"}."""
    transport: Literal["auto", "httpx2", "aiohttp"] = "auto"
    """HTTP transport; auto is aiohttp where the extra `fast` is installed and no proxy is used."""
    proxy: Annotated[str, AfterValidator(_proxy)] = "none"
    """Proxy to go through: none, environment (HTTPS_PROXY and its kin), or an address."""


class BudgetSettings(Section):
    """What may be spent; a run that would go beyond stops cleanly with exit code 5."""

    max_calls: PositiveInt | None = None
    """Calls that may be made; no limit where unset."""
    max_tokens: PositiveInt | None = None
    """Tokens, in and out, that may be used; no limit where unset."""
    max_cost_usd: PositiveFloat | None = None
    """US dollars that may be spent; no limit where unset. Needs a known price."""
    input_usd_per_mtok: Annotated[float, Field(ge=0)] | None = None
    """Dollars per million input tokens, where the price table does not know the model."""
    output_usd_per_mtok: Annotated[float, Field(ge=0)] | None = None
    """Dollars per million output tokens, likewise."""


class ChunkSettings(Section):
    """How documents become chunks."""

    max_chars: Annotated[int, Field(ge=100)] = 2000
    """Characters a chunk may have; code fences and tables may be longer."""
    include: tuple[str, ...] = ()
    """Glob patterns of the files to read, relative to the folder; all readable ones where unset."""
    exclude: tuple[str, ...] = ()
    """Glob patterns of the files to leave out."""


class GenerateSettings(Section):
    """What is generated."""

    n: Annotated[int, Field(json_schema_extra=flag("n"), gt=0)] = 20
    """Queries to deliver."""
    language: str = "en"
    """Language of the queries, as an ISO 639-1 code."""


class RetrieveSettings(Section):
    """How runs are made."""

    k: PositiveInt = 10
    """Chunks to retrieve per query."""


class JudgeSettings(Section):
    """How relevance is judged."""

    depth: PositiveInt = 10
    """Ranks of each run that go into the pool."""
    prompt: str = ""
    """Name of the prompt; judge_relevance where unset, judge_relevance_batch with --batch."""
    batch: PositiveInt = 1
    """Chunks of one query shown in one call; 1 shows each alone, which no neighbour can sway."""
    permutations: PositiveInt = 3
    """Orders in which each batch is shown."""
    votes: PositiveInt = 1
    """Replies asked of each model for each pair; more than 1 need a temperature above 0."""
    panel: Annotated[tuple[str, ...], BeforeValidator(_between_commas)] = ()
    """Models that all judge, between commas; NAME@URL for one at another address."""
    logprobs: Literal["off", "on"] = "off"
    """Whether to ask for the probabilities of the grades, which give a weighted grade."""
    examples: str = ""
    """JSON Lines of graded pairs shown to the judge first; their queries must not be judged."""
    split: Literal["all", "dev", "test"] = "all"
    """Part of the queries that is judged."""


class EvaluateSettings(Section):
    """Which measures are computed."""

    measures: tuple[str, ...] = ()
    """Measures such as nDCG@10, P(rel=2)@5, RR; the default set where unset."""
    rel_threshold: Annotated[Literal["auto"] | PositiveInt, BeforeValidator(_threshold)] = "auto"
    """Lowest grade that counts as relevant; auto is 2 where grades go beyond 1, else 1."""


class PromptSettings(Section):
    """Where prompts come from."""

    prompts_dir: str = ""
    """Folder whose prompt files replace the shipped ones of the same name."""


class Settings(Section):
    """All settings, by section."""

    model: ModelSettings = ModelSettings()
    budget: BudgetSettings = BudgetSettings()
    chunk: ChunkSettings = ChunkSettings()
    generate: GenerateSettings = GenerateSettings()
    retrieve: RetrieveSettings = RetrieveSettings()
    judge: JudgeSettings = JudgeSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    prompts: PromptSettings = PromptSettings()


@dataclass(frozen=True, slots=True)
class Setting:
    """One field with its names."""

    section: str
    field: str
    flag: str
    environment: str
    info: FieldInfo

    @property
    def key(self) -> str:
        """The TOML key, `section.field`."""
        return f"{self.section}.{self.field}"

    @property
    def dest(self) -> str:
        """The name under which a parsed command line holds it."""
        return f"setting_{self.section}_{self.field}"


def each_setting(*sections: str) -> Iterator[Setting]:
    """Yield the settings of the named sections, of all where none is named."""
    for section, group in Settings.model_fields.items():
        if sections and section not in sections:
            continue
        assert isinstance(group.default, Section)
        for field, info in type(group.default).model_fields.items():
            extra = info.json_schema_extra
            name = extra.get("flag", field) if isinstance(extra, dict) else field
            yield Setting(
                section=section,
                field=field,
                flag=str(name).replace("_", "-"),
                environment=f"RAGFORGE_{section}_{field}".upper(),
                info=info,
            )


def load(
    path: Path | None = None,
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings in force.

    Args:
        path: A TOML file; where None, `ragforge.toml` of the working directory if there is one.
        flags: Values by `section.field`, strongest of all.
        environment: Variables; the process's own where None.

    Raises:
        ConfigError: A file cannot be read, a key is unknown, or a value is not allowed.
    """
    merged: dict[str, dict[str, object]] = {}
    origin: dict[str, str] = {}

    def take(key: str, value: object, source: str) -> None:
        section, field = key.split(".")
        merged.setdefault(section, {})[field] = value
        origin[key] = source

    for key, value, source in _from_file(path):
        take(key, value, source)
    variables = os.environ if environment is None else environment
    for setting in each_setting():
        if setting.environment in variables:
            take(setting.key, _split(setting, variables[setting.environment]), setting.environment)
    for key, value in (flags or {}).items():
        take(key, value, "--" + _flag_of(key))
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"][:2])
        message = first["msg"][0].lower() + first["msg"][1:]
        found = _CREDENTIALS.sub("//…@", repr(first["input"]))
        raise ConfigError(
            f"{origin.get(key, 'settings')}: {key}: {message}, got {found}"
        ) from error


def _from_file(path: Path | None) -> Iterator[tuple[str, object, str]]:
    if path is None:
        path = Path(DEFAULT_FILE)
        if not path.is_file():
            return
    known = {setting.key for setting in each_setting()}
    for section, group in _parse(path).items():
        if section not in Settings.model_fields:
            near = difflib.get_close_matches(section, Settings.model_fields, n=1, cutoff=0)
            raise ConfigError(f"{path}: unknown section {section}; did you mean {near[0]}?")
        if not isinstance(group, dict):
            raise ConfigError(f"{path}: {section}: expected a section in brackets, got {group!r}")
        for field, value in group.items():
            _check(f"{section}.{field}", value, known, path)
            yield f"{section}.{field}", value, str(path)


def _check(key: str, value: object, known: set[str], path: Path) -> None:
    if key not in known:
        near = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0)
        raise ConfigError(f"{path}: unknown key {key}; did you mean {near[0]}?")
    if isinstance(value, bool):
        raise ConfigError(f"{path}: {key}: no setting takes true or false")


def _parse(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error


def _split(setting: Setting, value: str) -> object:
    """Turn an environment value into what the field takes: lists are separated by commas."""
    if str(setting.info.annotation).startswith("tuple"):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _flag_of(key: str) -> str:
    return next(setting.flag for setting in each_setting() if setting.key == key)
