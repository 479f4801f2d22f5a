"""The records that cross a file or a stage: frozen, and closed to unknown fields."""

from ragforge.records.answers import Answer, AnswerGrade, Claim, FactStatus, FactVerdict, Verdict
from ragforge.records.audits import AttackFindings, AuditExample, AuditRate, Expectation, JudgeAudit
from ragforge.records.corpus import Chunk
from ragforge.records.failures import Failure, Stage
from ragforge.records.grounding import Citation, Grounding
from ragforge.records.provenance import Provenance
from ragforge.records.queries import Difficulty, Evidence, Fact, Query, QueryType
from ragforge.records.record import FailureKind, Grade, JudgeKind, NonEmpty, Record
from ragforge.records.relevance import Judgment, Vote
from ragforge.records.runs import Hit, Ranking

__all__ = [
    "Answer",
    "AnswerGrade",
    "AttackFindings",
    "AuditExample",
    "AuditRate",
    "Chunk",
    "Citation",
    "Claim",
    "Difficulty",
    "Evidence",
    "Expectation",
    "Fact",
    "FactStatus",
    "FactVerdict",
    "Failure",
    "FailureKind",
    "Grade",
    "Grounding",
    "Hit",
    "JudgeAudit",
    "JudgeKind",
    "Judgment",
    "NonEmpty",
    "Provenance",
    "Query",
    "QueryType",
    "Ranking",
    "Record",
    "Stage",
    "Verdict",
    "Vote",
]
