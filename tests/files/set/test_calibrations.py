import pytest
from pydantic import ValidationError

from ragforge.errors import DataError, UsageError
from ragforge.files.set.calibrations import calibration_files, calibration_names, the_calibration
from ragforge.files.set.dataset import Dataset
from ragforge.records import (
    Label,
    LabelSample,
    LabelStratum,
    Provenance,
    SampledPair,
    SampledRun,
    label_text_sha256,
)

DIGEST = label_text_sha256("Boil the egg for six minutes.")


def label(chunk_id: str = "c1", labeller: str = "ann", grade: int | None = 2, look: int = 1):
    return Label(
        query_id="q1",
        chunk_id=chunk_id,
        text_sha256=DIGEST,
        stratum=3,
        probability=0.25,
        labeller=labeller,
        grade=grade,
        skipped=grade is None,
        seconds=4.5,
        look=look,
    )


def sample(n_drawn: int = 1):
    pair = SampledPair(
        query_id="q1", chunk_id="c1", text_sha256=DIGEST, stratum=3, probability=0.25
    )
    return LabelSample(
        seed=0,
        measures=("P@10",),
        runs=(SampledRun(name="bm25", rankings_sha256=DIGEST),),
        of="levels",
        judge=Provenance(kind="llm", model="m"),
        grades_sha256=DIGEST,
        parser="relevance 1",
        rel_threshold=2,
        repeat_share=0.1,
        n_pairs=4,
        n_queries=1,
        strata=(LabelStratum(stratum=3, judged=2, weight_class=0, n_pairs=4, n_drawn=n_drawn),),
        pairs=(pair,) * n_drawn,
    )


def test_labels_come_back_sorted(tmp_path):
    """Two people who label at the same time must not make a file that no diff can be read of."""
    files = calibration_files(Dataset(tmp_path))

    files.add_labels([label("c2"), label("c1", "bob")])
    files.add_labels([label("c1"), label("c1", look=2)])

    found = [(each.chunk_id, each.labeller, each.look) for each in files.labels()]
    assert found == [("c1", "ann", 1), ("c1", "ann", 2), ("c1", "bob", 1), ("c2", "ann", 1)]


def test_a_grade_given_again_replaces_the_one_before(tmp_path):
    """Undo must leave one grade of a labeller, not two."""
    files = calibration_files(Dataset(tmp_path))
    files.add_labels([label(grade=2)])

    files.add_labels([label(grade=0)])

    assert [each.grade for each in files.labels()] == [0]


def test_a_label_is_a_grade_or_a_skip():
    """A row that is neither would count as labelled, and be none."""
    with pytest.raises(ValidationError, match="expected a grade from 0 to 3, or skipped"):
        Label.model_validate({**label().model_dump(), "grade": None})


def test_the_only_calibration_needs_no_name(tmp_path):
    """Most sets have one."""
    files = calibration_files(Dataset(tmp_path), "spring")
    files.write_sample(sample())

    assert the_calibration(Dataset(tmp_path)).sample() == sample()


def test_one_of_several_calibrations_must_be_named(tmp_path):
    """The one that happens to come first must not correct a gate."""
    for name in ("spring", "autumn"):
        calibration_files(Dataset(tmp_path), name).write_sample(sample())

    with pytest.raises(DataError, match="more than one calibration: autumn, spring; name one"):
        the_calibration(Dataset(tmp_path))


def test_a_set_without_calibrations_says_how_one_is_made(tmp_path):
    """The first thing anybody will see."""
    with pytest.raises(DataError, match="draw one with `ragforge calibrate sample`"):
        the_calibration(Dataset(tmp_path))


def test_names_lead_nowhere_else(tmp_path):
    """A name is a part of a path."""
    with pytest.raises(UsageError, match="expected up to 100 letters"):
        calibration_files(Dataset(tmp_path), "../elsewhere")


def test_a_folder_without_a_sample_is_no_calibration(tmp_path):
    """Labels alone say nothing of how their pairs were drawn."""
    calibration_files(Dataset(tmp_path)).write_labels([label()])

    assert calibration_names(Dataset(tmp_path)) == []


def test_a_larger_sample_is_of_the_same_draw():
    """What was labelled for the smaller one still counts."""
    assert sample(2).design_sha256 == sample(1).design_sha256
