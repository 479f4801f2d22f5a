"""Settings: one field gives flag, TOML key, environment variable, help and schema.

Order of precedence: default, file, environment, flag. Secrets are read from the environment only,
by the variable that `api_key_env` names, and never stored here.
"""

from ragforge.config.loading import DEFAULT_FILE, Setting, each_setting, load
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
    Section,
    Settings,
)

__all__ = [
    "DEFAULT_FILE",
    "BudgetSettings",
    "ChunkSettings",
    "EvaluateSettings",
    "GenerateSettings",
    "JudgeSettings",
    "ModelSettings",
    "PoolSettings",
    "PromptSettings",
    "RefreshSettings",
    "RetrieveSettings",
    "Section",
    "Setting",
    "Settings",
    "each_setting",
    "load",
]
