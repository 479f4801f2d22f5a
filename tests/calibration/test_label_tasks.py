import pytest
from label_samples import sample_of

from ragforge.calibration.label_tasks import (
    BATCH,
    DECIDING_LOOK,
    disagreements,
    labelling_order,
    open_tasks,
    peoples_grades,
    summarise_labels,
)
from ragforge.records import Label, SampledPair

PLACES = {"c": ("a.md", 0)}


def pair(k, *, twice=False):
    return SampledPair(
        query_id=f"q{k}",
        chunk_id="c",
        text_sha256=f"{k:064x}",
        stratum=0,
        probability=0.5,
        twice=twice,
    )


def label(k, grade, labeller="ann", look=1, seconds=None):
    return Label(
        query_id=f"q{k}",
        chunk_id="c",
        text_sha256=f"{k:064x}",
        stratum=0,
        probability=0.5,
        labeller=labeller,
        grade=grade,
        skipped=grade is None,
        look=look,
        decides=look == DECIDING_LOOK,
        seconds=seconds,
    )


def looks(tasks):
    return [(task.query_id, task.look) for task in tasks]


def test_a_second_look_comes_when_the_first_is_forgotten():
    """Who remembers the grade agrees with it."""
    order = looks(labelling_order(sample_of(tuple(pair(k, twice=k == 2) for k in range(60)))))

    assert order.index(("q2", 2)) - order.index(("q2", 1)) == 21
    assert [task for task in order if task[1] == 1] == [(f"q{k}", 1) for k in range(60)]


def test_a_second_look_that_would_come_at_once_is_left_out():
    """It would tell what is remembered."""
    order = looks(labelling_order(sample_of(tuple(pair(k, twice=True) for k in range(7)))))

    assert order[7:] == [(f"q{k}", 2) for k in range(7)]
    assert looks(labelling_order(sample_of((pair(0), pair(1, twice=True))))) == [
        ("q0", 1),
        ("q1", 1),
    ]


def test_a_second_person_may_label_the_repeated_pairs_alone():
    """A tenth of the work gives the agreement of two people."""
    sample = sample_of(tuple(pair(k, twice=k % 4 == 0) for k in range(40)))

    order = looks(labelling_order(sample, only_repeated=True))

    assert [name for name, look in order if look == 1] == [f"q{k}" for k in range(0, 40, 4)]


def test_by_document_each_batch_is_of_the_same_pairs_as_drawn():
    """Whoever stops after a batch has labelled a beginning of the sample, which is one too."""
    sample = sample_of(tuple(pair(k) for k in range(60)))
    order = labelling_order(sample, places=PLACES)

    for batch in (1, 2, 3):
        drawn = {f"q{k}" for k in range(60) if k // BATCH == batch - 1}
        assert {task.query_id for task in order if task.batch == batch} == drawn
    assert [task.batch for task in order] == sorted(task.batch for task in order)


def test_by_document_the_texts_of_one_come_together_in_their_order():
    """It is read once; texts of no document come last."""
    places = {"c3": ("a.md", 5), "c1": ("a.md", 40), "c0": ("b.md", 0)}
    sample = sample_of(tuple(pair(k).model_copy(update={"chunk_id": f"c{k}"}) for k in range(4)))

    order = labelling_order(sample, places=places)

    assert [task.chunk_id for task in order] == ["c3", "c1", "c0", "c2"]


def test_by_document_a_second_look_still_comes_when_the_first_is_forgotten():
    """Whatever brings pairs closer must not bring the two looks closer."""
    sample = sample_of(tuple(pair(k, twice=k == 2) for k in range(60)))
    order = looks(labelling_order(sample, places=PLACES))

    assert order.index(("q2", 2)) - order.index(("q2", 1)) == 21


def test_what_a_labeller_did_or_skipped_is_not_asked_again():
    """The page goes on where the labels end."""
    tasks = labelling_order(sample_of((pair(0), pair(1), pair(2))))
    labels = [label(0, 2), label(1, None), label(2, 3, labeller="bob")]

    assert looks(open_tasks(tasks, labels, "ann")) == [("q2", 1)]


def test_pairs_on_which_people_differ_are_to_be_settled():
    """A skip and an own second look are no other opinion."""
    labels = [
        *(label(0, 1), label(0, 3, "bob")),
        *(label(1, 2), label(1, 2, "bob")),
        *(label(2, 2), label(2, None, "bob")),
        *(label(3, 2), label(3, 0, look=2)),
        *(label(4, 0), label(4, 1, "bob"), label(4, 1, "cyd", DECIDING_LOOK)),
    ]

    [task] = disagreements(labels)

    assert (task.query_id, task.look, task.given, task.decides) == ("q0", 3, (1, 3), True)


def test_a_label_that_decides_counts_alone():
    """Else it would be outvoted by those it settles."""
    labels = [label(0, 0), label(0, 1, "bob"), label(0, 3, "bob", DECIDING_LOOK)]

    [found] = peoples_grades(labels).values()

    assert (found.grade, found.labellers) == (3, ("bob",))


@pytest.mark.parametrize(("grades", "middle"), [((1, 2), 1), ((0, 3), 1), ((2, 2), 2), ((1, 3), 2)])
def test_the_mean_of_people_is_rounded_half_down(grades, middle):
    """As everywhere where files of several people are read."""
    labels = [label(0, grade, f"p{n}") for n, grade in enumerate(grades)]

    [found] = peoples_grades(labels).values()

    assert found.grade == middle


def test_skips_give_no_grade():
    """A failure to say is no grade 0."""
    assert peoples_grades([label(0, None)]) == {}


def test_two_people_who_disagree_throughout_have_a_kappa_below_chance():
    """Hand-computed: all of four pairs differ, each gives each of two grades twice."""
    grades = [(0, 1), (0, 1), (1, 0), (1, 0)]
    labels = [label(k, grade) for k, (grade, _) in enumerate(grades)]
    labels += [label(k, grade, "bob") for k, (_, grade) in enumerate(grades)]

    found = summarise_labels(sample_of(tuple(map(pair, range(4)))), labels)

    [two] = found.agreement
    assert (two.n_pairs, two.n_same, two.kappa, found.n_disagreements) == (4, 0, -1.0, 4)


def test_the_summary_tells_time_and_own_agreement():
    """Whoever plans the next sample wants to know what a label costs."""
    sample = sample_of((pair(0, twice=True), pair(1), pair(2)))
    labels = [
        label(0, 2, seconds=10),
        label(1, None, seconds=30),
        label(2, 1, seconds=20),
        label(0, 1, look=2),
    ]

    [person] = summarise_labels(sample, labels).labellers

    assert (person.n_graded, person.n_skipped, person.n_open) == (2, 1, 0)
    assert (person.median_s, person.n_repeated, person.n_repeated_same) == (20, 1, 0)


def test_kappa_of_people_who_gave_one_grade_throughout_is_not_defined():
    """They have not shown that they agree."""
    labels = [label(k, 0, name) for k in range(3) for name in ("ann", "bob")]

    [two] = summarise_labels(sample_of(tuple(map(pair, range(3)))), labels).agreement

    assert two.kappa is None


def test_who_skips_first_and_grades_then_has_graded():
    """What counts in the set, in the summary and in corrections is one and the same."""
    labels = [label(1, None), label(1, 2, look=2), label(2, None), label(2, None, look=2)]

    [person] = summarise_labels(sample_of((pair(1), pair(2))), labels).labellers

    assert {key.query_id: of.grade for key, of in peoples_grades(labels).items()} == {"q1": 2}
    assert (person.n_graded, person.n_skipped) == (1, 1)
