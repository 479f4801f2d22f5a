"""Settings: one field gives flag, TOML key, environment variable, help and schema.

Order of precedence: default, file, environment, flag. Secrets are read from the environment only,
by the variable that `api_key_env` names, and never stored here. A file that was found in the
working directory is not trusted like one that was named: see `sections` and `trust`.
"""

from ragforge.config.loading import (
    DEFAULT_FILE,
    Setting,
    SettingsFile,
    each_setting,
    found_file,
    load,
    needing_trust,
    values_of,
)
from ragforge.config.section import Section
from ragforge.config.sections import (
    BudgetSettings,
    ChunkSettings,
    EvaluateSettings,
    GenerateSettings,
    JudgeSettings,
    ModelSettings,
    PoolSettings,
    PromptSettings,
    RefreshSettings,
    RetrieveSettings,
    Settings,
)
from ragforge.config.services import (
    OAuthSettings,
    RetrieverService,
    ServiceSettings,
    SystemService,
    variables_in,
)
from ragforge.config.trust import Trust, find_trust, list_trusted, resolve_folder, revoke, trust

__all__ = [
    "DEFAULT_FILE",
    "BudgetSettings",
    "ChunkSettings",
    "EvaluateSettings",
    "GenerateSettings",
    "JudgeSettings",
    "ModelSettings",
    "OAuthSettings",
    "PoolSettings",
    "PromptSettings",
    "RefreshSettings",
    "RetrieveSettings",
    "RetrieverService",
    "Section",
    "ServiceSettings",
    "Setting",
    "Settings",
    "SettingsFile",
    "SystemService",
    "Trust",
    "each_setting",
    "find_trust",
    "found_file",
    "list_trusted",
    "load",
    "needing_trust",
    "resolve_folder",
    "revoke",
    "trust",
    "values_of",
    "variables_in",
]
