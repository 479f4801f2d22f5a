import pytest

from ragforge.errors import DataError
from ragforge.files.record_files import read_object, write_object
from ragforge.files.set.opening import create_dataset
from ragforge.records import JudgeAudit, Provenance

AUDIT = JudgeAudit(
    judge=Provenance(kind="baseline", model="rule"),
    temperature=None,
    seed=0,
    n_pairs=1,
    n_queries=1,
    grades=(1, 0, 0, 0),
    n_plain=1,
    n_plain_failed=0,
    attacks=(),
)


def test_an_audit_is_read_as_it_was_written(tmp_path):
    """A gate reads it in another process, perhaps in another year."""
    path = tmp_path / "audit.json"

    write_object(path, AUDIT)

    assert read_object(path, JudgeAudit) == AUDIT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "audit.json: is not one complete JSON object"),
        ("{}", "audit.json: judge: field required"),
        (AUDIT.model_dump_json().replace("[1,0,0,0]", "[1]"), "audit.json: grades: "),
        (AUDIT.model_dump_json().replace('"seed"', '"sed"'), "audit.json: seed: field required"),
    ],
)
def test_what_is_no_audit_is_refused(tmp_path, text, message):
    """A file that was edited into something else must not pass a gate."""
    path = tmp_path / "audit.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(DataError, match=message):
        read_object(path, JudgeAudit)


def test_a_dataset_keeps_one_audit_with_its_digest(tmp_path):
    """It is published with the grades it speaks of."""
    dataset = create_dataset(tmp_path / "set", {})

    assert dataset.audit() is None
    dataset.write_audit(AUDIT)
    assert dataset.audit() == AUDIT
    assert dataset.manifest.files["judge_audit.json"].records == 1
    assert not dataset.changed_by_hand("judge_audit.json")
