import json

import pytest

from ragforge.errors import DataError
from ragforge.files.manifest import RunOrigin
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.intake.logs import import_logs
from ragforge.records import Chunk, Evidence, Judgment, Pin, Query, RealQuery
from ragforge.stages.generate.truth import query_id


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        [
            Chunk(chunk_id="c1", doc_id="a.md", text="The fee is ten percent."),
            Chunk(chunk_id="c2", doc_id="b.md", text="Beeswax is for oak."),
        ]
    )
    return made


@pytest.fixture
def bring(dataset, tmp_path):
    """Import a log into the dataset."""

    def run(*rows, observer=silent, **options):
        path = tmp_path / "log.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return import_logs([path], dataset, observer, **options)

    return run


FEE = "What is the fee?"


def test_only_labelled_questions_become_queries(dataset, bring):
    """Nobody knows what is right for the others."""
    result = bring(
        {"query": FEE, "chunk_id": "c1", "label": 3, "user": "u1", "timestamp": 1},
        {"query": "reset password", "user": "u2", "timestamp": 2},
        made_by="support",
    )

    [query] = dataset.all_queries()
    assert (query.query, query.origin, query.lineage.model) == (FEE, "log", "support")
    assert [(item.chunk_id, item.grade, item.source) for item in dataset.judgments()] == [
        ("c1", 3, "human")
    ]
    assert dataset.real_queries() == [RealQuery(query="reset password")]
    assert (result.n_labelled, result.n_real, result.n_added) == (1, 1, 0)


def test_nothing_about_who_asked_and_when_is_kept(dataset, bring):
    """A published set must not name its users."""
    bring({"query": "reset password ann@mail.example", "user": "ann-7", "timestamp": "2024-05-06"})

    written = b"".join(path.read_bytes() for path in dataset.path.glob("*.json*"))
    assert b"reset password [e-mail]" in written
    assert not any(trace in written for trace in (b"ann", b"2024-05-06"))


def test_spellings_and_near_duplicates_are_counted_together(dataset, bring):
    """One way to ask is one target, however often it comes."""
    bring(
        {"query": "how do i reset my password", "language": "en"},
        {"query": "How do I reset my password?", "count": 4},
        {"query": "how do i reset my account password please please", "count": 1},
        {"query": "install httpx 0.27"},
        {"query": "install httpx 0.28"},
    )

    assert dataset.real_queries() == [
        RealQuery(query="How do I reset my password?", count=5, language="en"),
        RealQuery(query="how do i reset my account password please please"),
        RealQuery(query="install httpx 0.27"),
        RealQuery(query="install httpx 0.28"),
    ]


def test_labels_of_all_rows_of_a_question_come_together(dataset, bring):
    """A log has a row for each passage, and for each person."""
    bring(
        {"query": FEE, "chunk_id": "c1", "label": 3},
        {"query": "what is the fee", "chunk_id": "c1", "label": 2},
        {"query": FEE, "chunk_id": "c1", "label": 0},
        {"query": FEE, "chunk_id": "c2", "label": 0},
        {"query": FEE},
    )

    [query] = dataset.all_queries()
    assert query.query == FEE
    assert [(item.chunk_id, item.grade) for item in dataset.judgments()] == [("c1", 2), ("c2", 0)]
    assert dataset.real_queries() == []


def test_clicks_are_no_labels_unless_said_so(dataset, bring):
    """People click on what stands first."""
    told = []
    rows = [{"query": FEE, "clicked": ["c1"]}]

    assert bring(*rows, observer=told.append).n_labelled == 0
    assert "1 rows with clicks, which are no labels" in told[0].message
    assert bring(*rows, clicks="relevant").n_labelled == 1
    assert [(item.chunk_id, item.grade) for item in dataset.judgments()] == [("c1", 2)]


def test_unlabelled_questions_become_queries_where_asked_for(dataset, bring):
    """They can be retrieved for and judged, without an answer to compare with."""
    result = bring({"query": "fee", "count": 3}, {"query": "Fee?"}, unlabelled="add")

    [query] = dataset.queries()
    assert (query.query, query.origin, query.status) == ("fee", "log", "accepted")
    assert (query.expected_answer, query.evidence) == (None, ())
    assert (result.n_added, result.n_real) == (1, 1)


@pytest.mark.parametrize("unlabelled", ["keep", "add"])
def test_bringing_a_log_in_again_changes_nothing(dataset, bring, unlabelled):
    """A nightly job brings the same file in."""
    rows = [{"query": FEE, "chunk_id": "c1", "label": 1}, {"query": "fee"}, {"query": "oak wax"}]
    bring(*rows, unlabelled=unlabelled)
    before = {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")}

    bring(*reversed(rows), unlabelled=unlabelled)

    assert {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")} == before


def test_query_that_is_there_already_stays_and_gets_the_grades(dataset, bring):
    """A log knows less than the set that people made."""
    quote = Evidence(doc_id="a.md", chunk_id="c1", quote="The fee is ten percent.")
    query = Query(
        query_id=query_id(FEE, "en"),
        query=FEE,
        expected_answer="Ten percent.",
        pinned=Pin(by="Ann"),
        source_chunk_ids=("c1",),
        evidence=(quote,),
    )
    dataset.write_queries([query])
    dataset.write_judgments(
        [Judgment(query_id=query.query_id, chunk_id="c1", grade=3, source="human")]
    )

    bring({"query": FEE, "chunk_id": "c2", "label": 1})

    [found] = dataset.all_queries()
    assert (found.expected_answer, found.pinned, found.revision) == (
        "Ten percent.",
        Pin(by="Ann"),
        1,
    )
    assert [(item.chunk_id, item.grade, item.source) for item in dataset.judgments()] == [
        ("c1", 3, "human"),
        ("c2", 2, "human"),
    ]


def test_rows_that_are_no_question_are_counted(dataset, bring):
    """What is left out must be said."""
    told = []

    result = bring(
        {"query": ""}, {"query": "???"}, {"query": "word " * 300}, {"query": "fee"},
        observer=told.append,
    )  # fmt: skip

    assert (result.n_rows, result.n_passed_over, result.n_real) == (4, 3, 1)
    assert told[0].message.startswith("3 of 4 rows passed over")


def test_log_without_a_question_is_refused(dataset, bring):
    """It is the wrong file."""
    with pytest.raises(DataError, match="holds no question"):
        bring({"query": "?"})


def test_log_of_other_documents_is_refused_whole(dataset, bring):
    """Labels for passages that are not here say nothing."""
    with pytest.raises(DataError, match=r"1 relevant passages are lost: q_.*: c9 is no"):
        bring({"query": FEE, "chunk_id": "c9", "label": 3}, {"query": "fee"})

    assert dataset.real_queries() == []


@pytest.mark.slow
def test_ten_thousand_rows_are_taken_in(dataset, bring):
    """Logs are long."""
    rows = [{"query": f"device{number}"} for number in range(10_000)]

    assert bring(*rows).n_real == 10_000


def test_grade_of_a_person_outlives_a_later_log(dataset, bring):
    """A label that somebody gave with care must not be overwritten in silence."""
    told = []
    bring({"query": FEE, "chunk_id": "c1", "label": 3})

    result = bring(
        {"query": FEE, "chunk_id": "c1", "label": 0},
        {"query": FEE, "chunk_id": "c2", "label": 0},
        observer=told.append,
    )

    assert [(item.chunk_id, item.grade) for item in dataset.judgments()] == [("c1", 3), ("c2", 0)]
    assert result.n_disagreeing == 1
    assert told[0].message == (
        "1 grade differs from those that people gave before, which stand"
    )  # fmt: skip


def test_questions_of_a_second_log_come_beside_those_of_the_first(dataset, bring):
    """Each month has its log; what was asked once stays asked."""
    bring({"query": "oak wax", "count": 5}, {"query": "reset password"})
    bring({"query": "Oak wax?", "count": 2}, {"query": "fee", "count": 3})

    assert dataset.real_queries() == [
        RealQuery(query="fee", count=3),
        RealQuery(query="oak wax", count=5),
        RealQuery(query="reset password"),
    ]


@pytest.mark.parametrize("unlabelled", ["keep", "add"])
@pytest.mark.parametrize("label", [{}, {"chunk_id": "c1", "label": 3}])
def test_rejected_question_does_not_come_back(dataset, bring, unlabelled, label):
    """A reviewer would have to reject it with every log."""
    rejected = Query(query_id="mine", query=FEE, status="retired")
    dataset.write_queries([rejected])
    told = []

    result = bring(
        {"query": "what is the fee", **label}, observer=told.append, unlabelled=unlabelled
    )

    assert dataset.all_queries() == [rejected]
    assert dataset.judgments() == []
    assert result.n_rejected == (unlabelled == "add" or bool(label))


def test_question_that_is_there_under_another_id_gets_the_grades(dataset, bring):
    """Twice the same question would count twice in every mean."""
    mine = Query(query_id="mine", query="What is the fee")
    dataset.write_queries([mine])

    bring({"query": FEE, "chunk_id": "c1", "label": 3}, {"query": "fee?"}, unlabelled="add")
    bring({"query": "what's the fee", "count": 2}, {"query": "the fee?"})

    assert [query.query for query in dataset.all_queries()] == ["What is the fee", "fee?"]
    assert [(item.query_id, item.chunk_id) for item in dataset.judgments()] == [("mine", "c1")]


def test_characters_that_nobody_sees_are_taken_out(dataset, bring):
    """They steer terminals, and hide what a question asks."""
    told = []

    result = bring({"query": "oak\u202e wax\x1b[31m"}, observer=told.append)

    assert dataset.real_queries() == [RealQuery(query="oak wax[31m")]
    assert result.n_hidden == 1
    assert told[0].message == "characters that nobody sees were taken out of 1 rows"


def test_quotes_of_a_log_are_labels_too(dataset, bring):
    """Who marks a passage in a log says where the answer is."""
    quote = {"doc_id": "a.md", "quote": "The fee is ten percent."}

    bring(
        {"query": FEE, "relevant": [{**quote, "grade": 3}]},
        {"query": FEE, "relevant": [{**quote, "grade": 2}]},
    )

    [query] = dataset.all_queries()
    assert [(item.chunk_id, item.grade) for item in dataset.judgments()] == [("c1", 2)]
    assert [item.chunk_id for item in query.evidence] == ["c1"]


LOGS = (
    {"queryId": "u-17", "query": "kettle leaks", "retrievedChunkIds": ["c2", "c1"]},
    {"queryId": "u-18", "query": "fee", "retrievedChunkIds": ["c1"]},
    {"queryId": "u-19", "query": "hello", "retrievedChunkIds": ["c2"]},
)
LABELS = {
    "u-17": {"relevantChunkIds": ["c1"], "correctAnswer": "Close the lid."},
    "u-18": {"relevantChunkIds": ["c1"], "correctAnswer": "Ten percent."},
}


@pytest.fixture
def labels(tmp_path):
    """Write labels in a file of their own."""

    def write(content, name="labels.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def test_labels_apart_are_joined_by_id(dataset, bring, labels):
    """Whoever labels gets a file of ids; questions stay in the log, under the same ids."""
    bring(*LOGS, labels=labels(LABELS))

    assert [(one.query_id, one.query, one.expected_answer) for one in dataset.queries()] == [
        ("u-17", "kettle leaks", "Close the lid."),
        ("u-18", "fee", "Ten percent."),
    ]
    assert [(one.query_id, one.chunk_id) for one in dataset.judgments()] == [
        ("u-17", "c1"),
        ("u-18", "c1"),
    ]


def test_what_was_retrieved_becomes_a_run(dataset, bring, labels):
    """The system that is live is what people want to measure first."""
    result = bring(*LOGS, labels=labels(LABELS))

    ranked = {one.query_id: [hit.chunk_id for hit in one.ranking] for one in dataset.run("log")}
    assert ranked == {"u-17": ["c2", "c1"], "u-18": ["c1"]}
    assert (result.run, result.n_retrieved) == ("log", 2)


def test_retrieved_ids_that_the_corpus_lacks_are_told(dataset, bring, labels):
    """The run is measured, and lower than what users saw; the import is when that is mended."""
    notes = []
    row = {"queryId": "u-17", "query": "kettle leaks", "retrievedChunkIds": ["c2", "c1", "gone"]}

    bring(row, labels=labels({"u-17": LABELS["u-17"]}), observer=notes.append)

    assert "warning: run log: 1 of its 3 retrieved chunks are not in the set, and are " in (
        "\n".join(note.message for note in notes)
    )


def test_questions_added_without_labels_keep_their_ids(dataset, bring):
    """Later labels and runs name them by these."""
    bring(*LOGS, unlabelled="add")

    assert [one.query_id for one in dataset.queries()] == ["u-17", "u-18", "u-19"]


def test_an_id_of_several_questions_is_no_id_of_a_query(dataset, bring):
    """Many logs have one id a session."""
    rows = [{"query_id": "s1", "query": FEE}, {"query_id": "s1", "query": "Beeswax for oak?"}]

    bring(*({**row, "chunk_id": "c1", "label": 2} for row in rows))

    assert sorted(one.query_id for one in dataset.queries()) == sorted(
        query_id(row["query"], "en") for row in rows
    )


def test_labels_of_an_id_with_two_questions_are_refused(bring, labels):
    """Nobody can tell which of them the labels are of."""
    rows = [{"query_id": "u-17", "query": FEE}, {"query_id": "u-17", "query": "Beeswax?"}]

    with pytest.raises(DataError, match=r"log\.jsonl:2: query_id: 'u-17' is the id of two"):
        bring(*rows, labels=labels(LABELS))


def test_labels_of_other_logs_are_refused(bring, labels):
    """Nothing would be taken in, in silence."""
    with pytest.raises(DataError, match="no id is in the logs: it holds 'x'; they hold 'u-17'"):
        bring(*LOGS, labels=labels({"x": ["c1"]}))


def test_labels_without_a_question_are_told(bring, labels):
    """A label that is lost was somebody's work."""
    notes = []

    bring(*LOGS, labels=labels({**LABELS, "x": ["c1"]}), observer=lambda e: notes.append(e.message))

    assert any("1 of 3 labelled ids are in no log: 'x'" in note for note in notes)


def test_labels_may_be_a_table(dataset, bring, labels):
    """Spreadsheets are what people label in."""
    bring(*LOGS, labels=labels("query_id,chunk_id,label\nu-17,c1,3\nu-17,c2,0\n", "labels.csv"))

    assert [(one.query_id, one.chunk_id, one.grade) for one in dataset.judgments()] == [
        ("u-17", "c1", 3),
        ("u-17", "c2", 0),
    ]


def test_a_correct_answer_beside_labels_in_the_log_is_kept(dataset, bring):
    """Answers are graded against it."""
    bring({"query": FEE, "relevantChunkIds": ["c1"], "correctAnswer": "Ten percent."})

    [query] = dataset.queries()
    assert query.expected_answer == "Ten percent."


@pytest.mark.parametrize("name", ["week 47 (prod).jsonl", "_.jsonl", "größe.jsonl"])
def test_a_log_may_have_any_name(dataset, tmp_path, name):
    """What a file is called must not stop an import, least of all half way."""
    path = tmp_path / name
    path.write_text(json.dumps({"query": FEE, "retrievedIds": ["c1"], "relevantIds": ["c1"]}))

    result = import_logs([path], dataset, silent)

    assert dataset.run_names() == [result.run]


def test_a_run_of_a_retriever_is_not_replaced_by_a_log(dataset, bring):
    """It may have cost an hour."""
    origin = RunOrigin(chunks_sha256="0", retriever="bm25")
    dataset.write_run("log", [], origin)

    result = bring({"query": FEE, "retrievedIds": ["c1"], "relevantIds": ["c1"]})

    assert (result.run, dataset.run_names()) == ("log-log", ["log", "log-log"])


@pytest.mark.parametrize("fields", [{"hits": "10"}, {"results": 3}, {"retrieved": [None, "c1"]}])
def test_counts_and_gaps_are_no_rankings(dataset, bring, fields):
    """Search consoles count hits; a rank that is missing would move all others."""
    result = bring({"query": FEE, "relevantIds": ["c1"], **fields})

    assert (result.run, dataset.run_names()) == ("", [])


def test_labels_under_an_id_of_another_question_do_not_reach_that_one(dataset, bring):
    """Logs that number their rows anew would put this week's grades at last week's question."""
    bring({"query_id": "1", "query": FEE, "chunk_id": "c1", "label": 3})
    bring({"query_id": "1", "query": "Beeswax for oak?", "chunk_id": "c2", "label": 3})

    other = query_id("Beeswax for oak?", "en")
    assert {one.query_id: one.query for one in dataset.queries()} == {
        "1": FEE,
        other: "Beeswax for oak?",
    }
    assert {(one.query_id, one.chunk_id) for one in dataset.judgments()} == {
        ("1", "c1"),
        (other, "c2"),
    }


def test_labels_of_a_question_that_was_edited_still_reach_it(dataset, bring):
    """A person gave it other words, and it kept its id."""
    edited = Query(query_id="1", query="How high is the return fee?", revision=2)
    dataset.write_queries([edited])

    bring({"query_id": "1", "query": FEE, "chunk_id": "c1", "label": 3})

    assert [one.query for one in dataset.queries()] == ["How high is the return fee?"]
    assert [(one.query_id, one.chunk_id) for one in dataset.judgments()] == [("1", "c1")]


def test_labels_whose_lists_no_threshold_explains_are_kept_beside_the_grades(dataset, bring):
    """c1 has grade 3 and is not listed, c2 has grade 1 and is: by grades c1 alone were relevant."""
    notes = []

    bring(
        {"query": FEE, "relevantChunkIds": ["c2"], "relevanceScores": {"c1": 3, "c2": 1}},
        observer=lambda event: notes.append(event.message),
    )

    kept = [(item.chunk_id, item.grade, item.relevant) for item in dataset.judgments()]
    assert kept == [("c1", 3, False), ("c2", 1, True)]
    assert any("the lists decide P, R, RR" in note for note in notes)


def test_the_threshold_that_explains_the_lists_of_a_log_is_the_set_s(dataset, bring):
    """People call grade 1 relevant; binary measures must count it."""
    bring({"query": FEE, "relevantChunkIds": ["c1", "c2"], "relevanceScores": {"c1": 3, "c2": 1}})

    assert dataset.manifest.rel_threshold == 1
    assert [item.relevant for item in dataset.judgments()] == [None, None]


def test_of_people_who_disagree_on_a_list_the_lower_median_counts(dataset, bring):
    """Two list c2 and not c1, one lists c1 and not c2."""
    label = {"query": FEE, "relevanceScores": {"c1": 3, "c2": 1}}

    bring(*({**label, "relevantChunkIds": [name]} for name in ("c2", "c1", "c2")))

    assert [(item.chunk_id, item.relevant) for item in dataset.judgments()] == [
        ("c1", False),
        ("c2", True),
    ]
