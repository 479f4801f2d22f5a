"""ragforge: make, judge and measure evaluation sets for retrieval-augmented generation.

PYTEST_DONT_REWRITE: the pytest plugin would otherwise make pytest warn when this is imported first.
"""

_PUBLIC = {
    "generate": "ragforge.api.functions",
    "estimate_generation": "ragforge.api.functions",
    "demo": "ragforge.api.functions",
    "open": "ragforge.api.functions",
    "from_queries": "ragforge.api.evaluation_set",
    "from_csv": "ragforge.api.evaluation_set",
    "from_beir": "ragforge.api.evaluation_set",
    "chunk": "ragforge.api.chunking",
    "judge_pairs": "ragforge.api.functions",
    "each_judgment": "ragforge.api.functions",
    "ground_answers": "ragforge.api.functions",
    "audit_judge": "ragforge.api.functions",
    "evaluate_files": "ragforge.api.measuring",
    "compare_files": "ragforge.api.measuring",
    "list_prompts": "ragforge.api.prompts",
    "show_prompt": "ragforge.api.prompts",
    "diff_prompts": "ragforge.api.prompts",
    "copy_prompt": "ragforge.api.prompts",
    "render_prompt": "ragforge.api.functions",
    "schedule": "ragforge.api.schedules",
    "list_schedules": "ragforge.api.schedules",
    "settings": "ragforge.api.about",
    "schema": "ragforge.api.about",
    "schema_names": "ragforge.api.about",
    "mock_endpoint": "ragforge.api.serving",
    "view": "ragforge.api.serving",
    "EvaluationSet": "ragforge.api.evaluation_set",
    "AsyncEvaluationSet": "ragforge.api.evaluation_set",
    "Cache": "ragforge.api.cache",
    "AsyncCache": "ragforge.api.cache",
    "Chunked": "ragforge.api.chunking",
    "QualityReport": "ragforge.api.chunking",
    "MeasuredRuns": "ragforge.api.measured",
    "RunComparison": "ragforge.api.compared",
    "RunDecision": "ragforge.api.decided",
    "BestRuns": "ragforge.api.decided",
    "GateDecision": "ragforge.api.gating",
    "WrittenReport": "ragforge.api.reports",
    "Plotted": "ragforge.api.plotting",
    "WorstQueries": "ragforge.api.reports",
    "RunHistories": "ragforge.api.reports",
    "BatchHistory": "ragforge.api.reports",
    "Judged": "ragforge.api.judged",
    "Estimate": "ragforge.api.results",
    "Retrieved": "ragforge.api.outcomes",
    "Completed": "ragforge.api.judged",
    "Answered": "ragforge.api.answered",
    "Grounded": "ragforge.api.answered",
    "Refreshed": "ragforge.api.outcomes",
    "Swept": "ragforge.api.sweeping",
    "Audited": "ragforge.api.judged",
    "CanaryOutcome": "ragforge.api.canaries",
    "NeededGate": "ragforge.api.needed_gate",
    "PlannedDecision": "ragforge.api.planned",
    "PlannedGate": "ragforge.api.planned",
    "PlannedLabels": "ragforge.api.calibrated",
    "DrawnLabels": "ragforge.api.calibrated",
    "Labelled": "ragforge.api.labelled",
    "LabelFile": "ragforge.api.labelled",
    "Calibrated": "ragforge.api.calibrated",
    "VersionDifference": "ragforge.api.outcomes",
    "Rederived": "ragforge.api.outcomes",
    "Exported": "ragforge.api.outcomes",
    "Validated": "ragforge.api.outcomes",
    "Reviewed": "ragforge.api.outcomes",
    "Counted": "ragforge.api.outcomes",
    "CacheStats": "ragforge.api.cache",
    "CacheChange": "ragforge.api.cache",
    "PromptList": "ragforge.api.prompts",
    "RenderedPrompt": "ragforge.api.prompts",
    "Schedule": "ragforge.api.schedules",
    "ScheduleList": "ragforge.api.schedules",
    "SettingsInForce": "ragforge.api.about",
    "RagforgeError": "ragforge.errors",
    "UsageError": "ragforge.errors",
    "ConfigError": "ragforge.errors",
    "LockedError": "ragforge.errors",
    "DataError": "ragforge.errors",
    "ChurnError": "ragforge.errors",
    "EndpointError": "ragforge.errors",
    "BudgetError": "ragforge.errors",
    "ShortfallError": "ragforge.errors",
    "evaluate": "ragforge.evaluation",
    "parse_measure": "ragforge.measures.measure_names",
    "Scores": "ragforge.measures.scores",
    "mean_interval": "ragforge.measures.intervals",
    "randomisation_test": "ragforge.measures.paired",
    "signed_rank_test": "ragforge.measures.paired",
    "t_test": "ragforge.measures.paired",
    "benjamini_hochberg": "ragforge.measures.comparing",
    "holm": "ragforge.measures.comparing",
    "achieved_power": "ragforge.measures.power",
    "detectable_difference": "ragforge.measures.power",
    "effect_size": "ragforge.measures.power",
    "queries_needed": "ragforge.measures.power",
    "kendall_tau": "ragforge.measures.rank_correlation",
    "rank_biased_overlap": "ragforge.measures.rank_correlation",
    "Answer": "ragforge.records",
    "AnswerGrade": "ragforge.records",
    "Chunk": "ragforge.records",
    "Evidence": "ragforge.records",
    "Failure": "ragforge.records",
    "Judgment": "ragforge.records",
    "Query": "ragforge.records",
    "Ranking": "ragforge.records",
}
_MODULES = {"aio": "ragforge.api.aio"}

__all__ = sorted([*_PUBLIC, *_MODULES, "__version__"])
__all__.remove("open")  # So that `from ragforge import *` hides no built-in function.
__version__ = "1.0.0"


def __dir__() -> list[str]:
    """List the public names; those that nobody used yet too."""
    return sorted({*globals(), *__all__, *_PUBLIC})


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import ragforge` stays free."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ragforge' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
