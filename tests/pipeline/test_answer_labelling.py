import json

import pytest
from label_samples import answered_set

from ragforge.calibration.answer_table import read_answer_labels
from ragforge.errors import DataError, UsageError
from ragforge.files.set.answer_labels import answer_labels, answer_labels_path
from ragforge.files.set.calibrations import calibration_files
from ragforge.pipeline.answer_labelling import (
    AnswerDraw,
    answer_labelling,
    drawn_answers,
    sample_answers,
    take_answer_labels,
    write_answer_page,
)
from ragforge.records import Answer, Fact, answer_sha256


@pytest.fixture
def dataset(tmp_path):
    """A dataset of six queries with two facts each, and the answers of two systems."""
    return answered_set(tmp_path / "set")


def row(k, *statuses, system="one", labeller="Ann", **fields):
    """Return a row of the page."""
    return {
        "query_id": f"q{k}",
        "system": system,
        "labeller": labeller,
        "answer_sha256": answer_sha256(f"Answer {k} of {system}."),
        "facts": [{"fact_id": f"f{n}", "status": status} for n, status in enumerate(statuses)],
        "seconds": 2.5,
        **fields,
    }


def sample(dataset, n=12, systems=("one", "two"), **options):
    return sample_answers(dataset, calibration_files(dataset), AnswerDraw(systems, n, **options))


def take(dataset, tmp_path, *rows, **options):
    sample(dataset)
    path = tmp_path / "saved.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows), encoding="utf-8")
    return take_answer_labels(dataset, calibration_files(dataset), path, **options)


def test_systems_are_labelled_on_the_same_queries(dataset):
    """Else chance decides which system got the hard ones."""
    found = sample(dataset, 8)
    drawn = drawn_answers(dataset, found)
    by_system = {
        name: {item.query_id for item in drawn if item.system == name} for name in ("one", "two")
    }

    assert (len(drawn), found.probability) == (8, 4 / 6)
    assert by_system["one"] == by_system["two"]


def test_a_larger_sample_goes_on_behind_the_smaller_one(dataset):
    """What is labelled stays of use."""
    small, large = (sample(dataset, n, ("one",)).query_ids for n in (2, 5))

    assert (large[:2], len(large)) == (small, 5)


def test_a_sample_of_other_systems_is_not_replaced_unasked(dataset):
    """Its labels would be of answers that nobody drew."""
    sample(dataset)
    with pytest.raises(UsageError, match="has a sample of one, two with seed 0"):
        sample(dataset, systems=("one",))

    assert sample(dataset, systems=("one",), again=True).systems == ("one",)


def test_labels_without_a_sample_say_how_one_is_drawn(dataset, tmp_path):
    """The first thing anybody will see."""
    with pytest.raises(DataError, match="calibrate sample --answers SYSTEM"):
        answer_labelling(dataset, calibration_files(dataset), "Ann")


@pytest.mark.parametrize(
    ("statuses", "more", "verdict", "score"),
    [
        (("supported", "supported"), False, "correct", 1.0),
        (("supported", "missing"), False, "partial", 0.5),
        (("partial", "missing"), False, "partial", 0.25),
        (("missing", "missing"), True, "incorrect", 0.0),
        (("missing", "missing"), False, "not_attempted", 0.0),
        (("contradicted", "supported"), False, "incorrect", 0.5),
    ],
)
def test_verdict_and_score_follow_from_the_facts(dataset, tmp_path, statuses, more, verdict, score):
    """By the rule of the judge, so that both can be held against each other."""
    take(dataset, tmp_path, row(0, *statuses, says_more=more))

    [label] = answer_labels(calibration_files(dataset))
    assert (label.verdict, label.score, label.probability) == (verdict, score, 1.0)


def test_the_report_on_judges_of_answers_reads_the_labels(dataset, tmp_path):
    """That is what they are for; a skip is no verdict."""
    take(
        dataset,
        tmp_path,
        row(0, "supported", "supported"),
        row(1, skipped=True),
        row(2, "missing", "missing", says_more=True, system="two"),
    )
    found = read_answer_labels(answer_labels_path(calibration_files(dataset)))

    assert found.verdicts == {"Ann": {("q0", "one"): "correct", ("q2", "two"): "incorrect"}}


def test_a_query_without_facts_gets_the_verdict_that_was_given(dataset, tmp_path):
    """There is nothing to tick."""
    dataset.write_queries(query.model_copy(update={"facts": ()}) for query in dataset.all_queries())
    take(dataset, tmp_path, row(0, verdict="partial"))

    [label] = answer_labels(calibration_files(dataset))
    assert (label.verdict, label.score, label.facts) == ("partial", 0.5, ())


def test_no_attempt_is_correct_where_a_question_has_no_answer(dataset, tmp_path):
    """By the rule of the judge, so that both can be held against each other."""
    update = {"facts": (), "expected_answer": None, "answerable": False}
    dataset.write_queries(query.model_copy(update=update) for query in dataset.all_queries())
    take(dataset, tmp_path, row(0, verdict="not_attempted"))

    [label] = answer_labels(calibration_files(dataset))
    assert (label.verdict, label.score) == ("correct", 1.0)


def test_rows_that_cannot_be_used_are_counted(dataset, tmp_path):
    """One bad row is no reason to lose the others."""
    taken = take(
        dataset,
        tmp_path,
        row(0, "supported"),
        row(1, "supported", "missing", answer_sha256="0" * 64),
        row(9, "supported", "missing"),
        row(2, "supported", "missing"),
    )

    assert taken.n_new == 1
    assert taken.left_out == {
        "neither a verdict nor all facts": 1,
        "the answer has changed since it was labelled": 1,
        "answer is not among those drawn": 1,
    }


def test_what_a_person_said_before_stands_unless_overruled(dataset, tmp_path):
    """An old file read again must not undo a correction."""
    take(dataset, tmp_path, row(0, "supported", "supported"))
    other = row(0, "missing", "missing")
    standing = take(dataset, tmp_path, other)
    changed = take(dataset, tmp_path, other, overrule=True)

    assert (standing.n_standing, changed.n_changed) == (1, 1)
    assert answer_labels(calibration_files(dataset))[0].verdict == "not_attempted"


def test_a_skip_gives_way_to_a_verdict(dataset, tmp_path):
    """Who comes back to a skipped answer takes nothing back."""
    take(dataset, tmp_path, row(0, skipped=True))
    taken = take(dataset, tmp_path, row(0, "supported", "supported"))

    assert (taken.n_new, answer_labels(calibration_files(dataset))[0].verdict) == (1, "correct")


def test_a_file_without_names_is_of_whom_is_named(dataset, tmp_path):
    """A table of another tool need not say who filled it."""
    sample(dataset)
    path = tmp_path / "rows.jsonl"
    nameless = row(0, "missing", "missing")
    del nameless["labeller"]
    path.write_text(json.dumps(nameless), encoding="utf-8")
    take_answer_labels(dataset, calibration_files(dataset), path, "Ann")

    assert [label.labeller for label in answer_labels(calibration_files(dataset))] == ["Ann"]


def test_a_name_for_a_file_of_several_people_is_refused(dataset, tmp_path):
    """All labels would be of one of them."""
    rows = [row(k, "missing", "missing", labeller=name) for k, name in enumerate(("Ann", "Bob"))]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows), encoding="utf-8")
    sample(dataset)

    with pytest.raises(UsageError, match="names 2 people"):
        take_answer_labels(dataset, calibration_files(dataset), path, "Ann")


def test_a_name_other_than_that_of_the_file_is_refused(dataset, tmp_path):
    """One person would become two who agree in everything."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row(0, "missing", "missing")), encoding="utf-8")
    sample(dataset)

    with pytest.raises(UsageError, match="names 'Ann'; leave it out"):
        take_answer_labels(dataset, calibration_files(dataset), path, "Zed")


def test_an_answer_that_changed_is_labelled_anew(dataset, tmp_path):
    """The label was on another text."""
    files = calibration_files(dataset)
    both = [(k, system) for k in range(6) for system in ("one", "two")]
    take(dataset, tmp_path, *(row(k, "missing", "partial", system=of) for k, of in both))
    page = tmp_path / "a.html"
    with pytest.raises(DataError, match="Ann has labelled all 12 answers"):
        write_answer_page(dataset, files, answer_labelling(dataset, files, "Ann"), page)
    answers = {item.query_id: item for item in dataset.answers("one")}
    answers["q3"] = Answer(query_id="q3", answer="Another.")
    dataset.write_answers("one", answers.values())

    found = answer_labelling(dataset, files, "Ann")
    assert ([item.query_id for item in found.answers], found.n_done) == (["q3"], 11)


def test_the_page_does_not_say_what_the_judge_said(dataset, tmp_path):
    """Who knows it agrees with it."""
    page = tmp_path / "a.html"
    sample(dataset)
    files = calibration_files(dataset)
    write_answer_page(dataset, files, answer_labelling(dataset, files, "Ann"), page)

    assert "judge-1" not in page.read_text("utf-8")


OTHER_FACTS = tuple(Fact(fact_id=f"f{n}", text=f"Another {n}.") for n in range(2))


@pytest.mark.parametrize("edits", [{"expected_answer": "Another."}, {"facts": OTHER_FACTS}])
def test_an_answer_is_open_again_once_something_else_is_expected(dataset, tmp_path, edits):
    """Ann had called 15 answers correct that contradict what is expected now; she was through."""
    files = calibration_files(dataset)
    take(dataset, tmp_path, row(0, "supported", "supported"))
    before = answer_labelling(dataset, files, "Ann").n_done
    dataset.write_queries(query.model_copy(update=edits) for query in dataset.all_queries())

    found = answer_labelling(dataset, files, "Ann")
    taken = take(dataset, tmp_path, row(0, "missing", "missing"))

    assert (before, found.n_done, taken.n_new) == (1, 0, 1)
    assert answer_labels(files)[0].verdict == "not_attempted"


def test_a_label_of_a_page_from_before_an_edit_is_left_out(dataset, tmp_path):
    """The person saw another expected answer."""
    told = {"expected_sha256": "0" * 16}

    taken = take(dataset, tmp_path, row(0, "supported", "supported", **told))

    assert taken.left_out == {
        "what is expected, or its facts, has changed since it was labelled": 1
    }


def test_a_label_that_does_not_say_by_what_it_is_stays(dataset, tmp_path):
    """Those of before."""
    files = calibration_files(dataset)
    take(dataset, tmp_path, row(0, "supported", "supported"))
    path = answer_labels_path(files)
    [label] = map(json.loads, path.read_text().splitlines())
    del label["expected_sha256"], label["facts_sha256"]
    path.write_text(json.dumps(label) + "\n")
    edits = {"expected_answer": "Another."}
    dataset.write_queries(query.model_copy(update=edits) for query in dataset.all_queries())

    assert answer_labelling(dataset, files, "Ann").n_done == 1
