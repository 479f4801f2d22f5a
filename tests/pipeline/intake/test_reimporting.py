import csv
import json

import pytest

from ragforge.api.imported import queries_taken_in
from ragforge.errors import DataError, UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.intake.importing import import_queries
from ragforge.pipeline.intake.runs_and_qrels import import_qrels
from ragforge.records import Chunk, Judgment, Lineage, Provenance, Query, Review

GOLDEN = {
    "query_id": "q1",
    "query": "What does pump 1 cost?",
    "expected_answer": "100 euros",
    "relevant": [{"doc_id": "d1.md", "quote": "costs 100 euros", "grade": 3}],
}
OTHER = {
    "query_id": "q1",
    "query": "Which colour has pump 2?",
    "expected_answer": "blue",
    "relevant": [{"doc_id": "d2.md", "quote": "is blue", "grade": 2}],
}
REWORDED = {**GOLDEN, "query": "What does the pump 1 cost now?"}
BY_JUDGE = Provenance(kind="llm", model="gpt")


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        [
            Chunk(
                chunk_id=f"c{n}",
                doc_id=f"d{n}.md",
                text=f"The pump number {n} costs {n}00 euros and is blue.",
            )
            for n in range(1, 5)
        ]
    )
    return made


@pytest.fixture
def notes():
    return []


@pytest.fixture
def bring(dataset, tmp_path, notes):
    """Import rows of a file of a name into the dataset."""

    def run(*rows, name="golden.jsonl", **options):
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        notes.clear()
        return import_queries(
            path, dataset, lambda event: notes.append(event.message), **{"made_by": ""} | options
        )

    return run


@pytest.fixture
def graded(dataset, tmp_path, bring):
    """The golden set, beside which Ann graded other chunks."""
    bring(GOLDEN)
    path = tmp_path / "ann.trec"
    path.write_text("q1 0 c2 1\nq1 0 c3 2\nq1 0 c4 0\n", encoding="utf-8")
    import_qrels(path, dataset, silent, made_by="Ann")
    return dataset


def grades(dataset):
    return {
        item.chunk_id: (item.grade, item.source, item.provenance.model)
        for item in dataset.judgments()
    }


def judged(dataset, *pairs):
    new = [
        Judgment(query_id="q1", chunk_id=name, grade=grade, provenance=BY_JUDGE)
        for name, grade in pairs
    ]
    dataset.write_judgments([*dataset.judgments(), *new])


def test_the_same_file_again_leaves_grades_that_people_gave_otherwise(graded, bring, notes):
    """A build imports the file each night; what Ann graded in between was gone."""
    before = graded.judgments()

    bring(GOLDEN)

    assert graded.judgments() == before
    assert "3 grades of people that the file does not name stand" in notes


def test_grades_by_nobody_who_is_named_stand_too(dataset, bring, tmp_path):
    """Qrels often do not say who graded, and neither does the file of queries."""
    bring(GOLDEN)
    path = tmp_path / "more.trec"
    path.write_text("q1 0 c2 2\n", encoding="utf-8")
    import_qrels(path, dataset, silent)

    bring(GOLDEN)

    assert grades(dataset)["c2"] == (2, "human", "")


def test_a_label_that_its_file_does_not_give_any_more_goes(graded, bring, notes):
    """The file was mended; a label that stayed would be in no file."""
    ids = [{"chunk_id": "c1", "grade": 3}, {"chunk_id": "c2", "grade": 2}]
    rows = [{"query_id": "q1", "query": GOLDEN["query"], "relevant": part} for part in (ids, [])]
    bring(rows[0])

    result = bring(rows[1])

    assert sorted(grades(graded)) == ["c3", "c4"]
    assert result.n_dropped == 2
    assert "2 labels that the file gave before and does not give any more taken out" in notes


def test_a_label_that_another_file_gave_stands(graded, bring):
    """Two people label the same questions, each in a file."""
    bring({**GOLDEN, "relevant": [{"chunk_id": "c2", "grade": 2}]}, name="bo.jsonl", made_by="Bo")

    assert grades(graded)["c1"] == (3, "human", "")
    assert grades(graded)["c2"] == (2, "human", "Bo")


def test_of_one_pair_the_file_s_grade_counts_and_is_told(graded, bring, notes):
    """Who brings a file means what it says; how much that changed is to be seen."""
    result = bring(
        {**GOLDEN, "relevant": [{"chunk_id": "c1", "grade": 3}, {"chunk_id": "c2", "grade": 2}]}
    )

    assert grades(graded)["c2"] == (2, "human", "")
    assert result.n_regraded == 1
    assert "1 grade that people gave before replaced by those of the file" in notes


def test_the_same_label_by_another_file_keeps_its_quote_and_who_gave_it(dataset, bring):
    """An export brings grades by id alone; without its quote a label follows no text."""
    bring(GOLDEN, made_by="Ann")
    before = dataset.judgments()

    bring({**GOLDEN, "relevant": [{"chunk_id": "c1", "grade": 3}]}, name="bo.json", made_by="Bo")

    assert dataset.judgments() == before


def test_a_judge_s_grade_returns_where_no_person_s_is_left(dataset, bring):
    """The pair was a hole otherwise, though its grade was paid for."""
    both = {**GOLDEN, "relevant": [*GOLDEN["relevant"], {"chunk_id": "c2", "grade": 1}]}
    bring(GOLDEN)
    judged(dataset, ("c2", 2))
    bring(both)
    assert [item.chunk_id for item in dataset.label_checks()] == ["c2"]

    bring(GOLDEN)

    assert grades(dataset)["c2"] == (2, "judge", "gpt")
    assert dataset.label_checks() == []


def test_a_table_of_categories_leaves_answers_evidence_and_grades(graded, tmp_path, notes):
    """It says nothing of them: 30 answers, quotes and grades were gone after it."""
    before, labels = graded.all_queries()[0], graded.judgments()
    path = tmp_path / "tags.csv"
    with path.open("w", newline="") as stream:
        rows = ["query_id", "question", "category"], ["q1", GOLDEN["query"], "prices"]
        csv.writer(stream).writerows(rows)

    import_queries(path, graded, lambda event: notes.append(event.message))

    [query] = graded.all_queries()
    assert query == before.model_copy(update={"category": "prices"})
    assert graded.judgments() == labels
    assert "what the file does not say stays: answers of 1 and evidence of 1" in notes


def test_a_question_without_an_id_is_the_one_of_the_set_with_its_words(graded, bring, notes):
    """Its grades went to a twin, and each question counted twice."""
    bring(
        {"question": "what does pump 1 cost", "chunk_id": "c4", "grade": 3, "category": "Price"},
        {"question": "Which colour has pump 2?", "chunk_id": "c2", "grade": 3},
        name="more.jsonl",
    )

    queries = {query.query: query for query in graded.all_queries()}
    assert queries.keys() == {GOLDEN["query"], OTHER["query"]}
    assert (queries[GOLDEN["query"]].query_id, queries[GOLDEN["query"]].category) == ("q1", "Price")
    assert {item.chunk_id: item.grade for item in graded.judgments() if item.query_id == "q1"} == {
        "c1": 3,
        "c2": 1,
        "c3": 2,
        "c4": 3,
    }
    assert not any("otherwise" in note for note in notes)


def test_a_question_named_by_its_words_keeps_the_grades_of_a_judge(dataset, bring):
    """Who spells it in small letters does not ask something else."""
    bring(GOLDEN)
    judged(dataset, ("c2", 1))

    bring({"question": "what does pump 1 cost", "category": "Price"}, name="more.jsonl")

    assert grades(dataset)["c2"] == (1, "judge", "gpt")


def test_a_query_that_is_called_by_its_words_is_found(dataset, bring, tmp_path):
    """Qrels without ids name queries so."""
    path = tmp_path / "qrels.csv"
    path.write_text("query,chunk_id,grade\nWhat costs 200?,c2,3\n", encoding="utf-8")
    import_qrels(path, dataset, silent, made_by="Ann")

    bring({"question": "What costs 200?", "category": "Price"})

    assert [(query.query_id, query.category) for query in dataset.all_queries()] == [
        ("What costs 200?", "Price")
    ]


def test_words_of_two_queries_name_neither(dataset, bring):
    """A third query would ask the same once more."""
    bring(GOLDEN, {**GOLDEN, "query_id": "q2"})

    with pytest.raises(DataError, match=r"is asked by several queries of the set: 'q1', 'q2';"):
        bring({"question": GOLDEN["query"], "chunk_id": "c4", "grade": 3}, name="more.jsonl")


def test_an_answer_that_the_file_empties_goes(graded, bring):
    """It has the field, and says that there is none."""
    bring({**GOLDEN, "expected_answer": None})

    assert graded.all_queries()[0].expected_answer is None


def test_categories_leave_the_maker_of_a_generated_query(dataset, bring):
    """Who names its category did not write the question."""
    made = Query(
        query_id="q1",
        query=GOLDEN["query"],
        source_chunk_ids=("c1",),
        lineage=Lineage(kind="llm", model="m"),
    )
    dataset.write_queries([made])

    bring({"query_id": "q1", "query": GOLDEN["query"], "category": "prices"})

    assert dataset.all_queries() == [made.model_copy(update={"category": "prices"})]


@pytest.mark.parametrize("name", ["golden.jsonl", "colleague.jsonl"])
def test_another_question_under_an_id_of_the_set_is_refused(graded, bring, name):
    """Files of two people begin at q1; the first one's question and labels were gone."""
    before = (graded.all_queries(), graded.judgments())

    with pytest.raises(UsageError, match="'q1' asks 'What does pump 1 cost") as error:
        bring(OTHER, name=name)

    assert "'Which colour has pump 2?' in the file. Give those of the file other" in str(
        error.value
    )
    assert (graded.all_queries(), graded.judgments()) == before


def test_replace_puts_another_question_in_its_place_without_the_labels(graded, bring, notes):
    """Grades of what was asked before are of no use for what is asked now."""
    check = Judgment(query_id="q1", chunk_id="c2", grade=1, provenance=BY_JUDGE)
    graded.write_label_checks([check])

    result = bring(OTHER, others="replace")

    assert graded.label_checks() == []
    [query] = graded.all_queries()
    assert (query.query, query.expected_answer, query.revision) == (OTHER["query"], "blue", 2)
    assert grades(graded) == {"c2": (2, "human", "")}
    assert result.n_others == 1
    assert any(
        "1 question replaced by others of the file under the same ids" in one for one in notes
    )
    assert any("4 grades given for what was asked before are gone" in one for one in notes)


def test_the_file_of_a_question_may_put_it_in_other_words(graded, bring, notes):
    """A correction is no other question: grades of people stand, and how many is told."""
    result = bring(REWORDED)

    assert graded.all_queries()[0].query == REWORDED["query"]
    assert len(graded.judgments()) == 4
    assert result.n_reworded == 1
    assert "1 question is worded otherwise than before: 'q1'" in notes


def test_another_file_may_mend_a_slip(graded, bring):
    """The same question is nearly the same in any file."""
    bring({**GOLDEN, "query": "what does pump 1 cost"}, name="v2.jsonl")

    assert graded.all_queries()[0].query == "what does pump 1 cost"


def test_another_file_may_not_put_a_question_in_other_words(graded, bring):
    """One number is all that tells questions of a template from each other."""
    with pytest.raises(UsageError, match="1 id is of another question"):
        bring({**GOLDEN, "query": "What does pump 2 cost?"}, name="colleague.jsonl")


def test_what_a_review_made_of_a_question_is_no_reason_to_refuse_its_file(graded, bring):
    """A reviewer may put it in words that the file has none of."""
    review = Review(decision="edit", by="Ann")
    update = {"query": "How much money is that device?", "reviewed": review}
    edited = graded.all_queries()[0].model_copy(update=update)
    graded.write_queries([edited])

    result = bring(GOLDEN)

    assert graded.all_queries() == [edited]
    assert result.n_held == 1


def test_a_set_of_before_is_taken_for_one_of_the_same_file(graded, bring):
    """What it brought is not known; nothing that people gave goes for that."""
    query = graded.all_queries()[0]
    bare = query.lineage.model_copy(update={"protocol": ""})
    graded.write_queries([query.model_copy(update={"lineage": bare})])
    graded.write_judgments(
        item.model_copy(update={"provenance": Provenance(kind="human")})
        for item in graded.judgments()
    )

    bring({**REWORDED, "relevant": [{"chunk_id": "c2", "grade": 1}]})

    assert [item.chunk_id for item in graded.judgments()] == ["c1", "c2", "c3", "c4"]
    assert graded.all_queries()[0].lineage.protocol == "file golden"


def test_what_was_replaced_and_left_is_in_the_counts(graded, bring):
    """A build reads JSON."""
    counts = queries_taken_in(bring(REWORDED)).counts

    assert (counts["reworded"], counts["labels_standing"]) == (1, 3)


REFUSED = {
    "query_id": "q1",
    "query": "What does pump 1 cost?",
    "expected_answer": "The documents do not say.",
    "answerable": False,
}


@pytest.mark.parametrize(
    "brought",
    [
        GOLDEN,
        {"query_id": "q1", "query": GOLDEN["query"], "expected_answer": "100 euros"},
        {"query_id": "q1", "query": GOLDEN["query"], "relevant": GOLDEN["relevant"]},
    ],
    ids=["both", "answer", "quote"],
)
def test_a_question_to_which_a_file_brings_the_answer_is_answerable(bring, dataset, notes, brought):
    """It stayed to be refused, and the answer of the file was graded incorrect."""
    bring(REFUSED)

    bring(brought)

    [query] = dataset.all_queries()
    assert (query.answerable, query.expected_behaviour) == (True, "answer")
    assert any("1 question that had to be refused, to which" in note for note in notes)


def test_what_a_file_says_in_so_many_words_goes_before_the_answer_that_it_brings(bring, dataset):
    """What a false premise would say may stand there."""
    bring(REFUSED)

    bring({**GOLDEN, "answerable": False})

    assert not dataset.all_queries()[0].answerable


@pytest.mark.parametrize("answer", [REFUSED["expected_answer"], "The handbook does not say."])
def test_a_refusal_brings_no_answer(bring, dataset, notes, answer):
    """The same again, and in other words."""
    bring(REFUSED)

    bring({"query_id": "q1", "query": REFUSED["query"], "expected_answer": answer})

    assert not dataset.all_queries()[0].answerable
    told = any("1 question still to be refused" in note for note in notes)
    assert told == (answer != REFUSED["expected_answer"])
