"""The records that cross a file or a stage: frozen, and closed to unknown fields."""

from ragforge.records.answers import Answer, AnswerGrade, Claim, FactStatus, FactVerdict, Verdict
from ragforge.records.audits import AttackFindings, AuditExample, AuditRate, Expectation, JudgeAudit
from ragforge.records.corpus import Chunk
from ragforge.records.evaluations import (
    Baseline,
    BridgeMean,
    Digests,
    Evaluation,
    Grader,
    ItemValues,
    MeasuredMean,
    Spending,
    Timing,
)
from ragforge.records.failures import Failure, Stage
from ragforge.records.generation import (
    Coverage,
    FunnelStep,
    GenerationReport,
    ShareRow,
    Spread,
)
from ragforge.records.grounding import Citation, Grounding
from ragforge.records.logs import RealQuery
from ragforge.records.plans import Rejected, Slot
from ragforge.records.pools import PoolEntry
from ragforge.records.provenance import Lineage, Provenance
from ragforge.records.queries import (
    Behaviour,
    Difficulty,
    Evidence,
    Fact,
    Gate,
    GateResult,
    Measured,
    Pin,
    Query,
    QueryType,
    Review,
    Turn,
)
from ragforge.records.record import FailureKind, Grade, JudgeKind, NonEmpty, Record
from ragforge.records.relevance import Judgment, Vote
from ragforge.records.runs import Hit, Ranking

__all__ = [
    "Answer",
    "AnswerGrade",
    "AttackFindings",
    "AuditExample",
    "AuditRate",
    "Baseline",
    "Behaviour",
    "BridgeMean",
    "Chunk",
    "Citation",
    "Claim",
    "Coverage",
    "Difficulty",
    "Digests",
    "Evaluation",
    "Evidence",
    "Expectation",
    "Fact",
    "FactStatus",
    "FactVerdict",
    "Failure",
    "FailureKind",
    "FunnelStep",
    "Gate",
    "GateResult",
    "GenerationReport",
    "Grade",
    "Grader",
    "Grounding",
    "Hit",
    "ItemValues",
    "JudgeAudit",
    "JudgeKind",
    "Judgment",
    "Lineage",
    "Measured",
    "MeasuredMean",
    "NonEmpty",
    "Pin",
    "PoolEntry",
    "Provenance",
    "Query",
    "QueryType",
    "Ranking",
    "RealQuery",
    "Record",
    "Rejected",
    "Review",
    "ShareRow",
    "Slot",
    "Spending",
    "Spread",
    "Stage",
    "Timing",
    "Turn",
    "Verdict",
    "Vote",
]
