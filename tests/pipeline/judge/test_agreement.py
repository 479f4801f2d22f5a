import pytest

from ragforge.evaluating.graded_by import ALWAYS_0, BASELINE
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.judge.agreement import HumanLabels, agreement_in
from ragforge.pipeline.validating import validate
from ragforge.records import Chunk, Judgment, Provenance, Query
from ragforge.stages.judge.pairs import Pair

TEXTS = {"c0": "Beeswax keeps oak from drying.", "c1": "A fee of ten percent.", "c2": "Parcels."}
QUERIES = {"q0": "What keeps oak from drying?", "q1": "What fee?", "q2": "Which parcels?"}
LLM = Provenance(kind="llm", model="m", prompt="judge_relevance", prompt_sha256="ab" * 32)
HUMAN = Provenance(kind="human", model="ana")


def judged(query_id, chunk_id, grade, by=LLM, **more):
    source = "human" if by is HUMAN else "judge"
    return Judgment(
        query_id=query_id, chunk_id=chunk_id, grade=grade, source=source, provenance=by, **more
    )


@pytest.fixture
def labels():
    """Each query's own chunk is relevant, the others are not."""
    found = HumanLabels()
    for query_id, query in QUERIES.items():
        for chunk_id, text in TEXTS.items():
            grade = 3 if query_id[1] == chunk_id[1] else 0
            found.add(Pair(query_id, query, chunk_id, text), grade)
    return found


@pytest.fixture
def dataset(tmp_path):
    """People graded every pair of three queries and three chunks."""
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_chunks(Chunk(chunk_id=c, doc_id="d", text=text) for c, text in TEXTS.items())
    made.write_queries(Query(query_id=q, query=text) for q, text in QUERIES.items())
    made.write_judgments(
        judged(q, c, 3 if q[1] == c[1] else 0, HUMAN) for q in QUERIES for c in TEXTS
    )
    return made


def names(found):
    return [grader.name for grader in found.graders]


def test_baseline_grades_the_same_pairs_as_the_judge(labels):
    """Figures on different pairs cannot be compared."""
    found = labels.agreement_with("m", [judged("q0", "c0", 2), judged("q1", "c0", 0)])

    assert names(found) == ["m", BASELINE, ALWAYS_0]
    assert (found.n_pairs, found.n_queries) == (2, 2)
    assert found.graders[1].counts == ((1, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 1))


def test_failed_pairs_are_counted_and_in_no_figure(labels):
    """A failure is not grade 0."""
    pairs = [judged("q0", "c0", None, failure="refused"), judged("q0", "c1", 0)]
    found = labels.agreement_with("m", pairs)

    assert (found.n_pairs, found.n_failed) == (1, 1)


def test_pairs_without_a_label_are_passed_over(labels):
    """A file may be graded in part."""
    assert labels.agreement_with("m", [judged("q9", "c0", 2)]) is None
    assert labels.agreement_with("m", [judged("q9", "c0", 2), judged("q0", "c0", 2)]).n_pairs == 1
    assert HumanLabels().baseline() is None


def test_judgments_are_not_read_where_nobody_graded():
    """A file of 100,000 was held as records, 290 MB, to compare it with nothing."""
    unread = iter([judged("q0", "c0", 2)])

    assert HumanLabels().agreement_with("m", unread) is None
    assert next(unread).query_id == "q0"


def test_mean_grades_are_the_score_where_the_judge_has_them(labels):
    """Votes order pairs that one grade cannot."""
    with_mean = [judged("q0", "c0", 2, grade_mean=2.4), judged("q0", "c1", 2)]
    without = [judged("q0", "c0", 2), judged("q0", "c1", 2)]

    assert labels.agreement_with("m", with_mean).graders[0].figures["AUC of the score"].value == 1.0
    assert "AUC of the score" not in labels.agreement_with("m", without).graders[0].figures


def test_each_judge_of_the_label_checks_is_compared(dataset):
    """Two models on one set of labels are what a choice between them needs."""
    other = LLM.model_copy(update={"model": "n", "protocol": "votes 3"})
    dataset.write_label_checks([judged("q0", "c0", 3), judged("q0", "c0", 1, other)])

    assert [names(found)[0] for found in agreement_in(dataset, dataset.judgment_table())] == [
        "m (judge_relevance abababab)",
        "n (judge_relevance abababab, votes 3)",
    ]


def test_a_judge_of_batches_is_one_whatever_they_left_open(dataset):
    """Its agreement was told in two halves, each of pairs that are like each other."""
    batch = LLM.model_copy(update={"prompt": "batches", "protocol": "batch 4 x 3"})
    alone = LLM.model_copy(update={"protocol": "batch 4 x 3, alone"})
    dataset.write_label_checks([judged("q0", "c0", 3, batch), judged("q0", "c1", 1, alone)])

    [found] = agreement_in(dataset, dataset.judgment_table())

    assert names(found)[0] == "m (batches abababab, batch 4 x 3)"
    assert found.n_pairs == 2


def test_baseline_is_held_against_labels_that_no_judge_saw(dataset):
    """What a judge would have to beat is known before it is paid for."""
    [found] = agreement_in(dataset, dataset.judgment_table())

    assert names(found) == [BASELINE, ALWAYS_0]
    assert found.n_pairs == 9


def test_dataset_without_labels_has_no_agreement(dataset):
    """Nothing is compared with nothing."""
    dataset.write_judgments([judged("q0", "c0", 3)])

    assert agreement_in(dataset, dataset.judgment_table()) == ()


def test_checks_are_no_judgments(dataset):
    """What people graded is what runs are measured on."""
    dataset.write_label_checks([judged("q0", "c0", 0)])

    assert [one.grade for one in dataset.judgments() if one.query_id == "q0"] == [3, 0, 0]
    assert "label_checks.jsonl" in dataset.manifest.files
    assert validate(dataset).problems == []


def test_validate_reads_the_checks(dataset):
    """A file that nothing reads may hold anything."""
    (dataset.path / "label_checks.jsonl").write_text('{"query_id": "q0"}\n', encoding="utf-8")

    assert "label_checks.jsonl:1: chunk_id" in validate(dataset).problems[0]


def test_validate_notes_checks_whose_label_is_gone(dataset):
    """A set that is imported anew may lose labels; their checks then rest on nothing."""
    dataset.write_label_checks([judged("q0", "c0", 3), judged("q2", "c9", 1)])

    assert "label_checks.jsonl: 1 pairs have no grade of a person any more" in (
        validate(dataset).notes
    )
