import csv
import json

import pytest
from label_samples import JUDGE, sampled_set
from labelled_sets import drawn, graded_set

from ragforge.calibration.label_tasks import TakenLabels
from ragforge.cli import main
from ragforge.errors import DataError, UsageError
from ragforge.files.formats.label_rows import LABEL_FORMS
from ragforge.files.set.calibrations import calibration_files
from ragforge.pipeline.calibrating import apply_calibration
from ragforge.pipeline.labelled_grades import put_into_judgments
from ragforge.pipeline.labelling import (
    LabelSelection,
    export_labels,
    labelling,
    remove_label,
    take_label_file,
)
from ragforge.pipeline.shown_words import (
    OTHER_PASSAGE_SHOWN,
    OTHER_QUESTION,
    OTHER_QUESTION_SHOWN,
)
from ragforge.records import Chunk, Judgment, MovedChunk
from ragforge.records.judgments import QuoteGrade


@pytest.fixture
def dataset(tmp_path):
    """A dataset with four drawn pairs."""
    return sampled_set(tmp_path / "set", 4)


@pytest.fixture
def files(dataset):
    """Its calibration."""
    return calibration_files(dataset)


def saved(tmp_path, *rows, name="labels.jsonl"):
    """Write a file of labels: tuples of query, grade and labeller."""
    path = tmp_path / name
    lines = [
        {"query_id": f"q{k}", "chunk_id": f"c{k}", "grade": grade, "labeller": labeller}
        for k, grade, labeller in rows
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def grades(dataset):
    return {item.query_id: (item.source, item.grade) for item in dataset.judgments()}


def test_labels_become_the_grades_of_people_in_the_set(dataset, files, tmp_path):
    """A person's word counts everywhere, and says who gave it."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann"), (1, 0, "Ann")))

    by = dataset.judgments()[0].provenance
    assert grades(dataset) == {
        "q0": ("human", 3), "q1": ("human", 0), "q2": ("judge", 2), "q3": ("judge", 3)
    }  # fmt: skip
    assert (by.kind, by.model, by.protocol) == ("human", "Ann", "sample people")


def test_a_second_labeller_who_changes_no_grade_is_told_too(dataset, files, tmp_path):
    """Her labels count as the first one's do."""
    take_label_file(dataset, files, saved(tmp_path, (0, 2, "Ann"), (1, 0, "Ann")))
    taken = take_label_file(dataset, files, saved(tmp_path, (0, 3, "Bo"), (1, 0, "Bo")))

    assert (grades(dataset)["q0"], taken.n_judged) == (("human", 2), 0)
    assert [one.provenance.model for one in dataset.judgments()[:2]] == ["Ann, Bo"] * 2


def test_labels_that_say_nothing_new_write_nothing(dataset, files, tmp_path):
    """The same file may come again."""
    path = saved(tmp_path, (0, 2, "Ann"))
    take_label_file(dataset, files, path)
    before = (dataset.path / "judgments.jsonl").stat().st_mtime_ns

    take_label_file(dataset, files, path)

    assert (dataset.path / "judgments.jsonl").stat().st_mtime_ns == before


def test_what_the_judge_said_goes_to_the_label_checks(dataset, files, tmp_path):
    """The correction needs the judge's grade of each labelled pair."""
    take_label_file(dataset, files, saved(tmp_path, (1, 3, "Ann")))

    [check] = dataset.label_checks()
    assert (check.query_id, check.grade, check.provenance) == ("q1", 1, JUDGE)


def test_the_judgments_stay_where_labels_alone_are_wanted(dataset, files, tmp_path):
    """Who measures by one judge may want no other grades among them."""
    taken = take_label_file(dataset, files, saved(tmp_path, (1, 3, "Ann")), labels_only=True)

    assert (grades(dataset)["q1"], taken.n_judged, len(files.labels())) == (("judge", 1), 0, 1)


def test_a_grade_that_a_person_gave_before_stands_and_is_told(dataset, files, tmp_path):
    """Nobody's work is overwritten silently."""
    others = [item for item in dataset.judgments() if item.query_id != "q1"]
    mine = Judgment(query_id="q1", chunk_id="c1", grade=2, source="human")
    dataset.write_judgments([*others, mine])

    taken = take_label_file(dataset, files, saved(tmp_path, (1, 0, "Ann")))

    assert (grades(dataset)["q1"], taken.n_people_stand) == (("human", 2), 1)


def test_a_second_opinion_changes_the_grade_that_labels_gave(dataset, files, tmp_path):
    """The grade of the set is that of all labels, not of the file that came first."""
    take_label_file(dataset, files, saved(tmp_path, (1, 3, "Ann")))
    taken = take_label_file(dataset, files, saved(tmp_path, (1, 1, "Bob")))

    assert (grades(dataset)["q1"], taken.n_judged) == (("human", 2), 1)


def test_chunks_of_the_same_text_get_the_same_grade(dataset, files, tmp_path):
    """They are one pair of the sample."""
    text = next(iter(dataset.chunks())).text
    dataset.write_chunks([*dataset.chunks(), Chunk(chunk_id="c9", doc_id="d9.md", text=text)])
    sample = files.sample()
    first = sample.pairs[0].model_copy(update={"same_text": ("c9",)})
    files.write_sample(sample.model_copy(update={"pairs": (first, *sample.pairs[1:])}))

    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))

    found = {item.chunk_id: item for item in dataset.judgments() if item.query_id == "q0"}
    assert (found["c9"].grade, found["c9"].copied_from) == (3, "c0")


def test_what_a_person_said_before_stands_unless_overruled(dataset, files, tmp_path):
    """An old file read again must not undo a correction."""
    first, second = (saved(tmp_path, (1, grade, "Ann"), name=f"{grade}.jsonl") for grade in (3, 1))
    take_label_file(dataset, files, first)
    standing = take_label_file(dataset, files, second)
    kept = files.labels()[0].grade
    changed = take_label_file(dataset, files, second, overrule=True)

    assert (standing.n_standing, kept) == (1, 3)
    assert (changed.n_changed, files.labels()[0].grade) == (1, 1)


def test_labels_of_one_person_are_not_taken_for_those_of_another(dataset, files, tmp_path):
    """Two people who are one agree in everything."""
    path = saved(tmp_path, (1, 3, "Ann"), (2, 1, ""))

    with pytest.raises(UsageError, match=r"--labeller 'Zed': .*labels.jsonl names 'Ann'; leave it"):
        take_label_file(dataset, files, path, "Zed")

    assert files.labels() == []


def test_who_labelled_is_said_where_rows_do_not(dataset, files, tmp_path):
    """A row without a name beside Ann's is hers where she says so."""
    take_label_file(dataset, files, saved(tmp_path, (1, 3, "Ann"), (2, 1, "")), "Ann")

    assert [item.labeller for item in files.labels()] == ["Ann", "Ann"]


def test_an_account_of_a_tool_is_given_a_name(dataset, files, tmp_path):
    """Label Studio knows people by a number or an address."""
    pair = files.sample().pairs[0]
    result = [{"from_name": "grade", "value": {"choices": ["2"]}}]
    task = {
        "data": {"query_id": pair.query_id, "chunk_id": pair.chunk_id},
        "annotations": [{"completed_by": 7, "result": result}],
    }
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([task]), encoding="utf-8")

    take_label_file(dataset, files, path, "Ann")

    assert [item.labeller for item in files.labels()] == ["Ann"]


def test_rows_that_cannot_be_used_are_counted_and_named(dataset, files, tmp_path):
    """One bad row of two hundred is no reason to lose the others."""
    path = saved(tmp_path, (0, 7, "Ann"), (9, 1, "Ann"), (1, 1, ""), (2, None, "Ann"), (3, 2, "B"))

    taken = take_label_file(dataset, files, path)

    assert taken.left_out == {
        "grade outside of the scale": 1,
        "pair is not in the sample": 1,
        "nobody is named; --labeller does": 1,
    }
    assert taken.examples["grade outside of the scale"].endswith("labels.jsonl:1: 7")
    assert (taken.n_new, taken.n_open) == (1, 1)


def test_two_grades_of_one_person_in_a_file_are_none_whatever_their_order(dataset, files, tmp_path):
    """The first row of the file decided, so that sorting it moved what was corrected."""
    rows = [(0, 3, "Ann"), (1, 2, "Ann"), (0, 1, "Ann"), (0, 0, "Bo")]
    found = []
    for order in (rows, rows[::-1]):
        files.write_labels([])
        taken = take_label_file(dataset, files, saved(tmp_path, *order))
        found.append((taken.left_out, [(one.labeller, one.grade) for one in files.labels()]))

    assert found == [({"graded twice, differently": 2}, [("Bo", 0), ("Ann", 2)])] * 2


def test_words_and_truth_values_are_no_grades_of_another_scale(dataset, files, tmp_path):
    """A file of `true` and `false` was said to be on a scale that begins at 1."""
    rows = [(k % 4, True, f"person {k}") for k in range(20)]

    taken = take_label_file(dataset, files, saved(tmp_path, *rows))

    assert taken.left_out == {"grade is no whole number": 20}


@pytest.mark.parametrize(("highest", "is_told"), [(1, True), (2, False)])
def test_labels_of_relevant_or_not_are_told(highest, is_told, dataset, files, tmp_path, capsys):
    """A 1 is no part of the answer here: what was labelled as relevant would count as not."""
    path = saved(tmp_path, *((k % 4, k % 2 * highest, f"person {k}") for k in range(20)))

    main(["calibrate", "label", "--dataset", str(dataset.path), "--from", str(path)])

    assert ("careful: no label is above 1" in capsys.readouterr().err) is is_told


def test_a_label_of_another_text_is_left_out(dataset, files, tmp_path):
    """Who graded the old wording said nothing of the new one."""
    path = tmp_path / "labels.jsonl"
    row = {"query_id": "q0", "chunk_id": "c0", "grade": 2, "labeller": "Ann", "text_sha256": "00"}
    path.write_text(json.dumps(row), encoding="utf-8")

    assert take_label_file(dataset, files, path).left_out == {
        "text has changed since it was labelled": 1
    }


def test_pairs_whose_text_is_gone_are_not_shown(dataset, files):
    """A label needs what it is on."""
    chunks = list(dataset.chunks())
    changed = chunks[1].model_copy(update={"text": "Another text."})
    dataset.write_chunks([chunks[0], changed, chunks[2]])

    found = labelling(dataset, files, LabelSelection("Ann"))

    assert ([pair.task.query_id for pair in found.pairs], found.n_vanished) == (["q0", "q2"], 2)


def test_blanks_alone_make_no_other_text(dataset, files):
    """A splitter that changes line ends must not cost the sample."""
    chunks = list(dataset.chunks())
    dataset.write_chunks(
        chunk.model_copy(update={"text": chunk.text.replace(" ", "\n ")}) for chunk in chunks
    )

    assert labelling(dataset, files, LabelSelection("Ann")).n_vanished == 0


def test_the_order_by_document_tells_nothing_of_the_judge(tmp_path):
    """Whoever sees an order must not be able to read grades or doubts from it."""
    dataset = sampled_set(tmp_path / "many", 30)
    files, wanted = calibration_files(dataset), LabelSelection("Ann", order="document")
    before = labelling(dataset, files, wanted).pairs
    dataset.write_judgments(
        item.model_copy(update={"grade": 3 - item.grade, "entropy_bits": 1.0})
        for item in dataset.judgments()
    )

    assert labelling(dataset, files, wanted).pairs == before
    assert [pair.task.query_id for pair in before[:4]] == ["q0", "q1", "q10", "q11"]
    assert {pair.task.query_id for pair in before[:25]} == {f"q{k}" for k in range(25)}


def test_only_the_first_of_those_without_a_label_are_wanted(dataset, files):
    """A page for one hour; the next one goes on behind it."""
    task = labelling(dataset, files, LabelSelection("Ann")).pairs[0].task
    row = {"query_id": task.query_id, "chunk_id": task.chunk_id, "grade": 1}
    path = dataset.path.parent / "labels.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    take_label_file(dataset, files, path, "Ann")

    found = labelling(dataset, files, LabelSelection("Ann", most=1))

    assert [pair.task.query_id for pair in found.pairs] == ["q1"]
    assert (found.n_done, found.n_vanished) == (1, 0)
    with pytest.raises(UsageError, match="--most: expected at least 1, got 0"):
        labelling(dataset, files, LabelSelection("Ann", most=0))


def test_a_follow_up_is_shown_as_it_was_judged(dataset, files):
    """With what was said before, and what it asks on its own."""
    pair = labelling(dataset, files, LabelSelection("Ann")).pairs[1]

    assert (pair.question, pair.before, pair.answer) == (
        "What is 1, the number?", ("user: Hello?",), ""
    )  # fmt: skip


def test_a_name_for_a_file_of_several_people_is_refused(dataset, files, tmp_path):
    """It would make one person of two."""
    path = saved(tmp_path, (0, 1, "Ann"), (1, 1, "Bob"))

    with pytest.raises(UsageError, match="names 2 people; leave it out"):
        take_label_file(dataset, files, path, "Cyd")


@pytest.mark.parametrize("form", LABEL_FORMS)
def test_labels_go_out_and_come_back_in_each_form(form, dataset, files, tmp_path):
    """Who labels elsewhere loses no grade on the way."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann"), (1, 0, "Ann"), (0, 1, "Bob")))
    before = {(item.query_id, item.labeller): item.grade for item in files.labels()}
    out = tmp_path / ("out.csv" if form == "csv" else "out.json")
    written = export_labels(dataset, files, form, out)
    files.write_labels([])

    taken = take_label_file(dataset, files, out)

    after = {(item.query_id, item.labeller): item.grade for item in files.labels()}
    assert (written.n_labels, written.n_open, taken.n_open) == (3, 2, 2)
    assert (taken.left_out, after) == ({}, before)


def test_a_settled_pair_has_the_grade_that_settles_it(dataset, files, tmp_path):
    """The third pass decides, also in the set."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann"), (0, 1, "Bob")))
    [pair] = labelling(dataset, files, LabelSelection("Cyd", adjudicate=True)).pairs
    path = tmp_path / "settled.jsonl"
    row = {"query_id": "q0", "chunk_id": "c0", "grade": 3, "labeller": "Cyd", "look": 3}
    path.write_text(json.dumps(row), encoding="utf-8")
    take_label_file(dataset, files, path)

    assert pair.task.given == (1, 3)
    assert labelling(dataset, files, LabelSelection("Cyd", adjudicate=True)).pairs == ()
    assert grades(dataset)["q0"] == ("human", 3)


def test_a_label_is_taken_back(dataset, files, tmp_path):
    """The page and the terminal undo with this."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann"), (0, 1, "Bob")))
    task = labelling(dataset, files, LabelSelection("Cyd")).pairs[0].task

    assert remove_label(files, task, "Ann")
    assert [item.labeller for item in files.labels()] == ["Bob"]


def test_a_label_that_is_taken_back_gives_the_judges_grade_back(dataset, files, tmp_path):
    """Nobody stands for the grade any more."""
    take_label_file(dataset, files, saved(tmp_path, (1, 3, "Ann"), (2, 3, "Ann")))
    remove_label(files, labelling(dataset, files, LabelSelection("Bob")).pairs[1].task, "Ann")
    put_into_judgments(dataset, files, TakenLabels())

    assert (grades(dataset)["q1"], grades(dataset)["q2"]) == (("judge", 1), ("human", 3))
    assert [check.query_id for check in dataset.label_checks()] == ["q2"]


@pytest.mark.parametrize("labels_only", [True, False])
def test_what_is_corrected_does_not_depend_on_where_labels_went(tmp_path, labels_only):
    """The judge's grades of labelled pairs are a part of the correction."""
    graded = graded_set(tmp_path / "graded")
    drawn(graded, 60)
    calibration = calibration_files(graded)
    rows = [
        {"query_id": pair.query_id, "chunk_id": pair.chunk_id, "grade": n % 4, "labeller": "Ann"}
        for n, pair in enumerate(calibration.sample().pairs)
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    take_label_file(graded, calibration, path, labels_only=True)
    before = apply_calibration(graded)
    take_label_file(graded, calibration, path, labels_only=labels_only)

    after = apply_calibration(graded)

    assert after.figures == before.figures
    assert after.labels.n_used == 60


def test_judgments_are_not_written_again_where_nothing_is_new(dataset, files, tmp_path):
    """A set under version control must not change by looking at it."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))
    before = (dataset.files / "judgments.jsonl").stat().st_mtime_ns
    taken = TakenLabels()
    put_into_judgments(dataset, files, taken)

    assert ((dataset.files / "judgments.jsonl").stat().st_mtime_ns, taken.n_judged) == (before, 0)


def test_a_set_without_a_sample_says_so(dataset, tmp_path):
    """The first thing anybody will see."""
    with pytest.raises(DataError, match="has no sample"):
        labelling(dataset, calibration_files(dataset, "other"), LabelSelection("Ann"))


def test_labels_on_a_scale_that_begins_at_1_are_refused_whole(files, dataset, tmp_path):
    """Each of them would be taken for a better grade, and the best ones be left out."""
    before = grades(dataset)
    rows = [(k % 4, 1 + k % 5, f"person {k}") for k in range(20)]

    with pytest.raises(DataError, match="of 20 grades 0 are 0 and 8 none of 0 to 3"):
        take_label_file(dataset, files, saved(tmp_path, *rows))

    assert grades(dataset) == before


def renamed(dataset, before, now):
    """Let the chunk of a version be called otherwise in the next, with its grades."""

    def name(chunk_id):
        return now if chunk_id == before else chunk_id

    chunks, judgments = list(dataset.chunks()), list(dataset.judgments())
    dataset.write_chunks(one.model_copy(update={"chunk_id": name(one.chunk_id)}) for one in chunks)
    dataset.write_judgments(
        one.model_copy(update={"chunk_id": name(one.chunk_id)}) for one in judgments
    )
    dataset.past.write_moved_chunks([MovedChunk(before=before, now=(now,))])


def places(dataset):
    return {item.query_id: (item.chunk_id, item.source) for item in dataset.judgments()}


def test_labels_follow_their_text_to_the_id_of_now(dataset, files, tmp_path):
    """A renamed document took people's grades from its texts: P@5 went from 0.987 to 0.500."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))
    renamed(dataset, "c0", "n0")
    renamed(dataset, "c1", "n1")
    dataset.past.write_moved_chunks(
        [MovedChunk(before="c0", now=("n0",)), MovedChunk(before="c1", now=("n1",))]
    )

    taken = take_label_file(dataset, files, saved(tmp_path, (1, 3, "Ann")))

    assert places(dataset) == {
        "q0": ("n0", "human"), "q1": ("n1", "human"), "q2": ("c2", "judge"), "q3": ("c3", "judge")
    }  # fmt: skip
    assert (taken.n_judged, taken.n_moved, taken.n_waiting) == (1, 1, 0)


def test_grades_that_stand_at_an_id_that_is_gone_come_to_the_one_of_now(dataset, files, tmp_path):
    """Earlier versions put them there, where no run finds them."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))
    at_old = [item for item in dataset.judgments() if item.query_id == "q0"]
    renamed(dataset, "c0", "n0")
    others = [item for item in dataset.judgments() if item.query_id != "q0"]
    judged = Judgment(query_id="q0", chunk_id="n0", grade=0, provenance=JUDGE)
    dataset.write_judgments([*at_old, judged, *others])

    put_into_judgments(dataset, files, TakenLabels())

    assert places(dataset)["q0"] == ("n0", "human")
    assert len(dataset.judgments()) == 4


def test_a_label_whose_text_is_gone_waits_for_it(dataset, files, tmp_path):
    """No run finds a chunk that is not there, and nobody's work is thrown away."""
    chunks = list(dataset.chunks())
    dataset.write_chunks(chunks[1:])
    taken = take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))
    while_gone = grades(dataset)["q0"]
    dataset.write_chunks(chunks)
    put_into_judgments(dataset, files, TakenLabels())

    assert (while_gone, taken.n_waiting) == (("judge", 0), 1)
    assert grades(dataset)["q0"] == ("human", 3)


def test_a_grade_that_followed_words_to_another_text_stays(dataset, files, tmp_path):
    """A label is on the text that was cut anew; what a refresh made of it is a person's word."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))
    texts = {chunk.chunk_id: chunk for chunk in dataset.chunks()}
    cut = Chunk(chunk_id="n0", doc_id="d0.md", text="Text 0 of it, and more.")
    dataset.write_chunks([cut, *(chunk for name, chunk in texts.items() if name != "c0")])
    dataset.write_judgments(
        item.model_copy(update={"chunk_id": "n0"}) if item.query_id == "q0" else item
        for item in list(dataset.judgments())
    )

    take_label_file(dataset, files, saved(tmp_path, (1, 3, "Ann")))

    assert places(dataset)["q0"] == ("n0", "human")


def test_labels_of_another_calibration_stand_and_are_told(dataset, files, tmp_path):
    """A second sample of the same pairs turned all of people's grades over, and back again."""
    other = calibration_files(dataset, "other")
    other.write_sample(files.sample())
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann"), (1, 3, "Ann")))

    taken = take_label_file(dataset, other, saved(tmp_path, (0, 0, "Bob"), (2, 0, "Bob")))
    again = take_label_file(dataset, files, saved(tmp_path, (3, 0, "Ann")))

    assert grades(dataset) == {
        "q0": ("human", 3), "q1": ("human", 3), "q2": ("human", 0), "q3": ("human", 0)
    }  # fmt: skip
    assert (taken.n_people_stand, taken.n_judged, again.n_judged) == (1, 1, 1)


def test_a_new_sample_takes_no_grade_of_a_former_one_for_taken_back(dataset, files, tmp_path):
    """Whoever draws anew in an empty folder has none of the labels, but the set has the grades."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))
    (first, *others) = files.sample().pairs
    graded = first.model_copy(update={"labelled_before": True})
    files.write_sample(files.sample().model_copy(update={"pairs": (graded, *others)}))
    files.write_labels([])

    take_label_file(dataset, files, saved(tmp_path, (1, 3, "Ann")))

    assert grades(dataset)["q0"] == ("human", 3)


def redrawn(dataset, files):
    """Rename the first chunk, and draw the same pairs again."""
    renamed(dataset, "c0", "n0")
    first, *others = files.sample().pairs
    pairs = (first.model_copy(update={"chunk_id": "n0"}), *others)
    files.write_sample(files.sample().model_copy(update={"pairs": pairs}))


def test_what_was_labelled_under_a_former_id_is_not_asked_again(dataset, files, tmp_path):
    """The same words are graded once."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))
    redrawn(dataset, files)

    found = labelling(dataset, files, LabelSelection("Ann"))

    assert ([pair.task.query_id for pair in found.pairs], found.n_done) == (["q1", "q2", "q3"], 1)


def test_a_file_from_before_a_new_draw_is_taken_by_its_texts(dataset, files, tmp_path):
    """Somebody labelled for days while a night renamed the document."""
    path = tmp_path / "open.jsonl"
    export_labels(dataset, files, "jsonl", path)
    rows = [json.loads(line) | {"grade": 3} for line in path.read_text().splitlines()]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    redrawn(dataset, files)

    taken = take_label_file(dataset, files, path, "Ann")

    assert (taken.n_new, taken.left_out) == (4, {})
    assert places(dataset)["q0"] == ("n0", "human")


def test_pairs_whose_text_moved_are_shown(dataset, files):
    """It is the text that was drawn."""
    renamed(dataset, "c0", "n0")

    found = labelling(dataset, files, LabelSelection("Ann"))

    assert (len(found.pairs), found.n_vanished) == (4, 0)


def reworded(dataset, query_id, question):
    """Let a query ask something else."""
    dataset.write_queries(
        one.model_copy(update={"query": question}) if one.query_id == query_id else one
        for one in list(dataset.all_queries())
    )


def test_a_label_counts_for_the_words_that_were_shown(dataset, files, tmp_path):
    """After an edit it answers another question, and the pair is open again."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann"), (2, 3, "Ann")))
    reworded(dataset, "q0", "Who wrote it?")
    taken = take_label_file(dataset, files, saved(tmp_path, (3, 0, "Ann")))
    todo = labelling(dataset, files, LabelSelection("Ann"))

    assert (grades(dataset)["q0"], grades(dataset)["q2"]) == (("judge", 0), ("human", 3))
    assert (taken.n_former, len(files.labels())) == (1, 3)
    assert [pair.task.query_id for pair in todo.pairs] == ["q0", "q1"]


def test_a_label_counts_again_with_its_wording(dataset, files, tmp_path):
    """Both are kept: what was said of the one question, and of the other."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))
    reworded(dataset, "q0", "Who wrote it?")
    taken = take_label_file(dataset, files, saved(tmp_path, (0, 1, "Ann")))
    meanwhile = grades(dataset)["q0"]
    reworded(dataset, "q0", "what is 0")
    put_into_judgments(dataset, files, TakenLabels())

    assert (taken.n_new, len(files.labels()), meanwhile) == (1, 2, ("human", 1))
    assert grades(dataset)["q0"] == ("human", 3)


def test_labels_from_before_they_knew_their_question_count_as_they_did(dataset, files, tmp_path):
    """Sets that are there are read as before."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))
    [label] = files.labels()
    files.write_labels([label.model_copy(update={"wording_sha256": ""})])
    reworded(dataset, "q0", "Who wrote it?")
    taken = take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))

    assert (taken.n_known, taken.n_former, grades(dataset)["q0"]) == (1, 0, ("human", 3))


@pytest.mark.parametrize("form", LABEL_FORMS)
def test_a_file_of_a_former_question_is_left_out(form, dataset, files, tmp_path):
    """The rows say themselves what was asked."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann"), (2, 3, "Ann")))
    out = tmp_path / "out"
    export_labels(dataset, files, form, out)
    reworded(dataset, "q0", "Who wrote it?")
    files.write_labels([])

    taken = take_label_file(dataset, files, out)

    assert (taken.n_new, taken.left_out) == (1, {OTHER_QUESTION: 1})


def test_a_file_from_before_rows_named_their_wording_is_held_to_its_question(
    dataset, files, tmp_path
):
    """It shows the question."""
    out = tmp_path / "out.jsonl"
    export_labels(dataset, files, "jsonl", out)
    rows = [json.loads(line) | {"grade": 3} for line in out.read_text().splitlines()]
    for row in rows:
        del row["wording_sha256"]
    out.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    reworded(dataset, "q0", "Who wrote it?")

    taken = take_label_file(dataset, files, out, "Ann")

    assert (taken.n_new, taken.left_out) == (3, {OTHER_QUESTION: 1})


def test_a_labelled_text_is_found_by_its_words(dataset, files, tmp_path):
    """Nothing tells what moved where the chunks of a set were made anew."""
    renamed(dataset, "c0", "n0")
    dataset.past.write_moved_chunks([])
    shown = labelling(dataset, files, LabelSelection("Ann"))

    taken = take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))

    assert (len(shown.pairs), taken.n_waiting) == (4, 0)
    assert places(dataset)["q0"] == ("n0", "human")


def test_what_people_gave_to_quotes_of_a_labelled_chunk_stays(dataset, files, tmp_path):
    """A night may bring a graded quote to it, and the next label is of another pair."""
    take_label_file(dataset, files, saved(tmp_path, (0, 3, "Ann")))
    quote = QuoteGrade(quote="Text 0", grade=2)
    first, *others = dataset.judgments()
    dataset.write_judgments([first.model_copy(update={"quote_grades": (quote,)}), *others])

    take_label_file(dataset, files, saved(tmp_path, (1, 3, "Ann")))
    with_label = next(dataset.each_judgment())
    take_label_file(dataset, files, saved(tmp_path, (0, 1, "Ann")), overrule=True)
    with_another = next(dataset.each_judgment())

    assert (with_label.grade, with_label.quote_grades) == (3, (quote,))
    assert (with_another.grade, with_another.quote_grades) == (1, (quote,))


def exported(dataset, files, tmp_path, form="csv"):
    """Return the rows of an exported table, each with grade 3 by Ann."""
    out = tmp_path / f"out.{form}"
    export_labels(dataset, files, form, out)
    with out.open(encoding="utf-8-sig", newline="") as table:
        return [row | {"grade": "3", "labeller": "Ann"} for row in csv.DictReader(table)]


def written(tmp_path, rows):
    path = tmp_path / "labelled.csv"
    with path.open("w", encoding="utf-8", newline="") as table:
        writer = csv.DictWriter(table, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize(
    ("column", "reason", "digest"),
    [
        ("passage", OTHER_PASSAGE_SHOWN, "as it was"),
        ("passage", OTHER_PASSAGE_SHOWN, ""),
        ("query", OTHER_QUESTION_SHOWN, "as it was"),
    ],
)
def test_a_column_that_was_sorted_by_itself_gives_no_grade_to_other_words(
    column, reason, digest, dataset, files, tmp_path
):
    """A person graded what stood in the row, whatever its ids and digests say."""
    rows = exported(dataset, files, tmp_path)
    rows[0][column], rows[1][column] = rows[1][column], rows[0][column]
    rows = [row | ({"text_sha256": digest} if not digest else {}) for row in rows]

    taken = take_label_file(dataset, files, written(tmp_path, rows))

    assert (taken.n_new, taken.left_out) == (2, {reason: 2})
    assert taken.examples[reason].endswith(repr(rows[0][column]))


def test_a_spreadsheet_may_change_blanks_and_case(dataset, files, tmp_path):
    """No other words were read for that."""
    rows = exported(dataset, files, tmp_path)
    for row in rows:
        row["passage"] = row["passage"].upper().replace(" ", "\n ")
        row["query"] = f" {row['query']}  "

    taken = take_label_file(dataset, files, written(tmp_path, rows))

    assert (taken.n_new, taken.left_out) == (4, {})


@pytest.mark.parametrize(
    "text", ["=A1+B2 is\u202e that\x00.", "- \tone\r\ntwo", "'=quoted", "ẞtraße"]
)
def test_a_passage_of_any_signs_comes_back_as_that_of_its_pair(text, tmp_path):
    """What no cell holds as it is makes no other passage."""
    dataset = sampled_set(tmp_path / "set", 4, texts={1: text})
    files = calibration_files(dataset)

    rows = exported(dataset, files, tmp_path)
    taken = take_label_file(dataset, files, written(tmp_path, rows))

    assert (taken.n_new, taken.left_out) == (4, {})


def test_a_passage_that_a_spreadsheet_cuts_is_that_of_its_pair(tmp_path):
    """A cell holds 32,767 characters."""
    dataset = sampled_set(tmp_path / "set", 4, texts={1: "So it goes. " * 4000})
    files = calibration_files(dataset)
    rows = exported(dataset, files, tmp_path)
    for row in rows:
        row["passage"] = row["passage"][:32_767]

    taken = take_label_file(dataset, files, written(tmp_path, rows))

    assert (taken.n_new, taken.left_out) == (4, {})


@pytest.mark.parametrize(
    ("passage", "left_out"),
    [
        ("Heading\n\nText 0 of it.", {}),
        ("Text 0", {}),
        ("page-7", {}),
        ("Text 1 of it.", {OTHER_PASSAGE_SHOWN: 1}),
    ],
)
def test_rows_of_other_tools_are_held_to_the_words_beside_their_ids(
    passage, left_out, dataset, files, tmp_path
):
    """Their ids may have shifted; a heading, a cut or a name is no other passage."""
    given = {"query_id": "q0", "chunk_id": "c0", "grade": 3, "passage": passage}
    known = {"query_id": "q2", "chunk_id": "c2", "grade": 3}
    path = tmp_path / "labels.jsonl"
    path.write_text(f"{json.dumps(given)}\n{json.dumps(known)}\n")

    taken = take_label_file(dataset, files, path, "Ann")

    assert taken.left_out == left_out
