"""What all records are, and the values that several of them hold."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Grade = Annotated[int, Field(strict=True, ge=0, le=3)]
FailureKind = Literal["invalid", "refused", "truncated", "filtered", "error"]
JudgeKind = Literal["llm", "baseline", "human", "rule", "mock", "file"]
"""A mock is a test endpoint in the place of a model: what it says is made up."""
MOCK_FINGERPRINT = "mock"
"""What `ragforge mock` sends as `system_fingerprint`, by which its replies are known."""
NonEmpty = Annotated[str, Field(min_length=1)]


class Record(BaseModel):
    """Base of all records: immutable, unknown fields refused, NaN and infinity refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
