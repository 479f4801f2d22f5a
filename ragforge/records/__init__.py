"""The records that cross a file or a stage: frozen, and closed to unknown fields.

What is in which module stands in the stub for readers and checkers of types; a module is imported
when the first of its records is used, as each takes its time to be built.
"""

from importlib import import_module

_NAMES = {
    "answer_labels": "AnswerLabel AnswerSample answer_sha256",
    "calibrations": (
        "Calibration CorrectedFigure CorrectedValue Label LabelCounts LabellerAgreement "
        "LabelSample LabelStratum SampledPair SampledRun label_text_sha256"
    ),
    "canaries": "AnsweredBy Canary CanaryPair",
    "evaluations": (
        "Baseline BridgeMean Digests Evaluation Grader ItemValues MeasuredMean MixedGrades "
        "Spending Timing"
    ),
    "judgments": (
        "Answer AnswerGrade AttackFindings AuditExample AuditRate Citation Claim Expectation "
        "FactStatus FactVerdict GivenGrade Grounding Hit JudgeAudit Judgment Level PoolEntry "
        "QuoteGrade Ranking Verdict Vote"
    ),
    "queries": (
        "Behaviour Coverage Difficulty Draw Evidence Fact FunnelStep Gate GateResult "
        "GenerationReport LogDraw Measured Pin Query QueryType RealQuery Rejected Review "
        "ReviewEvent ShareRow Slot Spread Turn"
    ),
    "record": (
        "Chunk Failure FailureKind Grade JudgeKind Lineage NonEmpty Provenance Record "
        "RetrievedText Span Stage distinct_places id_in_set is_given_in_set is_text_id text_id "
        "with_place without_place"
    ),
    "refresh": (
        "Action CallCounts Cause DocumentChange DocumentsDiff DormantGrade FormerGrade "
        "ItemChange JudgmentsDiff MovedChunk RenamedDocument SourceDocument VersionCheck "
        "VersionDiff"
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)


def __dir__() -> list[str]:
    """List all names; those that nobody used yet too."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """Import a record when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return found
