"""What a refresh did, as records."""

import pytest

from ragforge.records import (
    CallCounts,
    Cause,
    DocumentsDiff,
    ItemChange,
    JudgmentsDiff,
    RenamedDocument,
    VersionCheck,
    VersionDiff,
)


@pytest.fixture
def cause():
    return Cause(
        kind="document changed",
        doc_id="docs/timeouts.md",
        before="a" * 16,
        after="b" * 16,
        detail="the text within 300 characters of the quote changed",
    )


@pytest.fixture
def diff(cause):
    def change(query_id, action, cause=cause):
        return ItemChange(version=4, query_id=query_id, action=action, revision=2, causes=(cause,))

    hostile = cause.model_copy(update={"doc_id": "a.md\x1b[2J\n::error::x <b>[x](y)"})
    return VersionDiff(
        version=4,
        parent=3,
        documents=DocumentsDiff(
            added=("new.md",),
            changed=("docs/timeouts.md",),
            renamed=(RenamedDocument(before="old.md", after="now.md"),),
            n_before=10,
            n_now=11,
            chunks_kept=90,
            chunks_added=4,
            chunks_removed=3,
        ),
        items={"kept": 17, "remapped": 1, "answer_changed": 1, "retired": 1},
        changes=(
            change("q_1", "answer_changed"),
            change("q_2", "remapped"),
            change("q_3", "retired", hostile),
        ),
        judgments=JudgmentsDiff(
            kept=180, carried=3, dropped=2, judged=5, evidence=40, failed=1, dormant=2
        ),
        calls=CallCounts(verify=2, judge=1),
        bridge=("q_4", "q_5"),
        checks=(
            VersionCheck(name="churn", passed=False, found=0.25, limit=0.15, detail="5 of 20"),
        ),
    )
