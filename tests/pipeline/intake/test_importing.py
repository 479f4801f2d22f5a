import json

import pytest

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError
from ragforge.evaluation import evaluate
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.intake.importing import import_queries
from ragforge.pipeline.validating import validate
from ragforge.records import (
    Chunk,
    Evidence,
    Fact,
    GateResult,
    Hit,
    Judgment,
    Lineage,
    Pin,
    Provenance,
    Query,
    Ranking,
    Review,
)

TEXT = "The fee is ten percent. Parcels arrive in three days."
ROW = {
    "id": "q1",
    "question": "What is the fee?",
    "answer": "Ten percent.",
    "doc_id": "a.md",
    "quote": "The fee is ten percent.",
    "difficulty": "simple",
    "category": "Fees",
}


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        [
            Chunk(chunk_id="c1", doc_id="a.md", text=TEXT, end=len(TEXT)),
            Chunk(chunk_id="c2", doc_id="b.md", text="Beeswax is for oak."),
        ]
    )
    return made


@pytest.fixture
def bring(dataset, tmp_path):
    """Import rows into the dataset."""

    def run(*rows, observer=silent, **options):
        path = tmp_path / "golden.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return import_queries(path, dataset, observer, made_by="Ann", **options)

    return run


def one(dataset):
    [query] = dataset.all_queries()
    return query


def change(dataset, **fields):
    dataset.write_queries([one(dataset).model_copy(update=fields)])


def test_labelled_row_keeps_difficulty_and_category(dataset, bring):
    """People slice their sets by their own words."""
    bring(ROW)

    query = one(dataset)
    assert (query.difficulty, query.category, query.origin) == ("easy", "Fees", "human")
    assert query.lineage == Lineage(kind="human", model="Ann", protocol="file golden")
    assert (query.evidence[0].start, query.evidence[0].suffix[:9]) == (0, " Parcels ")
    assert [(item.chunk_id, item.grade) for item in dataset.judgments()] == [("c1", 3)]


@pytest.mark.parametrize(("answer", "is_told"), [("n/a", True), ("-", True), ("No.", False)])
def test_an_answer_that_reads_like_an_empty_cell_is_told(bring, answer, is_told):
    """Right answers would be wrong beside it."""
    told = []

    bring(ROW | {"answer": answer}, observer=lambda event: told.append(event.message))

    said = f"1 expected answer reads like an empty cell, such as {answer!r} of query 'q1'"
    assert any(message.startswith(said) for message in told) == is_told


@pytest.mark.parametrize(
    ("answer", "said", "is_told"),
    [
        ("I don't know.", {}, True),
        ("Das steht nicht in den Dokumenten.", {}, True),
        ("I don't know.", {"answerable": False}, False),
        ("I don't know.", {"answerable": True}, False),
        ("No, it is not covered.", {}, False),
    ],
)
def test_an_expected_answer_that_there_is_none_is_told(bring, answer, said, is_told):
    """Who writes so wants a refusal, which counts as none where the question has an answer."""
    told = []

    bring({"question": "Who?", "answer": answer, **said}, observer=told.append)

    found = [event.message for event in told if "expected answer says" in event.message]
    assert [message.endswith("say so in a column answerable") for message in found] == (
        [True] if is_told else []
    )


@pytest.mark.parametrize(
    ("name", "value", "flag"),
    [
        ("source", "a.md", "--map relevant=source"),
        ("source documents", ["a.md", "b.md"], "--map 'relevant=source documents'"),
        ("sources", "b.md; a.md", "--map relevant=sources"),
        ("passage_no", "c2", "--map relevant=passage_no"),
        ("source", "handbook", ""),
        ("sources", ["a.md", "c.md"], ""),
        ("source", 7, ""),
        ("source", "[a.md", ""),
    ],
)
def test_a_column_with_names_of_passages_is_told_with_its_flag(bring, name, value, flag):
    """Sets of many authors have the page of an answer under a name of their own."""
    told = []

    bring({"question": "What?", "answer": "Yes.", name: value}, observer=told.append)

    flags = [
        event.message.rpartition("answer: ")[2] for event in told if "these hold" in event.message
    ]
    assert flags == ([flag] if flag else [])


def test_beside_quotes_such_a_column_is_where_they_stand(bring):
    """As relevant, the whole document would be labelled beside the quote."""
    told = []

    bring({"question": "What?", "quote": ROW["quote"], "page": "a.md"}, observer=told.append)

    assert any(event.message.endswith("--map doc_id=page") for event in told)


@pytest.mark.parametrize(
    "known", [{"relevant": ["a.md"]}, {"quote": ROW["quote"], "doc_id": "a.md"}]
)
def test_no_column_is_told_beside_one_that_says_what_is_relevant(bring, known):
    """It took the place of the known one: what a system returned, of what is right."""
    told = []

    bring({"question": "What?", **known, "retrieved": "b.md"}, observer=told.append)

    assert not any("these hold" in event.message for event in told)


def test_importing_again_changes_nothing(dataset, bring):
    """A set in a repository is imported by every build."""
    bring(ROW)
    before = {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")}

    bring(ROW)

    assert {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")} == before


@pytest.mark.parametrize(
    "settled",
    [
        {"split": "dev"},
        {"status": "retired", "reviewed": Review(decision="reject", by="Ben")},
        {"pinned": Pin(by="Ben")},
        {"reviewed": Review(decision="approve", by="Ben", random=True)},
        {"revision": 3},
        {
            "facts": (Fact(fact_id="f1", text="Ten percent."),),
            "facts_by": Provenance(kind="llm", model="m"),
            "facts_of": "0000000000000000",
        },
    ],
)
def test_what_is_settled_about_a_query_outlives_another_import(dataset, bring, settled):
    """The file of questions knows nothing of it."""
    bring(ROW)
    change(dataset, **settled)
    before = one(dataset)

    bring(ROW)

    assert one(dataset) == before


def test_other_wording_is_another_revision_in_the_same_split(dataset, bring):
    """Checks are of a text; a split is for good."""
    bring(ROW)
    change(dataset, split="test", gates=(GateResult(gate="premise", verdict="pass"),))
    grades = [
        Judgment(query_id="q1", chunk_id="c2", grade=1),
        Judgment(query_id="q9", chunk_id="c2", grade=1),
    ]
    dataset.write_judgments([*dataset.judgments(), *grades])

    bring({**ROW, "question": "How high is the fee?"})

    query = one(dataset)
    assert (query.query, query.revision, query.split) == ("How high is the fee?", 2, "test")
    assert query.gates == ()
    assert [(item.query_id, item.source) for item in dataset.judgments()] == [
        ("q1", "human"),
        ("q9", "judge"),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"reviewed": Review(decision="edit", by="Ben"), "revision": 2},
        {"pinned": Pin(by="Ben")},
    ],
)
def test_query_that_a_person_edited_or_pinned_stays_word_by_word(dataset, bring, fields):
    """An older file must not undo a review."""
    bring(ROW)
    change(dataset, expected_answer="A tenth.", **fields)
    before, told = one(dataset), []

    bring(ROW, observer=told.append)

    assert one(dataset) == before
    assert "1 queries that people approved, edited or pinned in review stay" in told[0].message


@pytest.mark.parametrize(
    "fields",
    [
        {"reviewed": Review(decision="approve", by="Ben", random=True)},
        {"reviewed": Review(decision="edit", by="Ben"), "revision": 2},
        {"pinned": Pin(by="Ben")},
    ],
)
@pytest.mark.parametrize(
    "other",
    [
        {"answer": "A tenth."},
        {"quote": "Parcels arrive in three days."},
        {"difficulty": "hard"},
        {"grade": 1},
        {"doc_id": "b.md", "quote": "Beeswax is for oak."},
    ],
)
def test_what_people_settled_keeps_its_truth_and_its_grades(dataset, bring, fields, other):
    """A review signs question, answer, evidence and qrels together."""
    bring(ROW)
    change(dataset, **fields)
    before, grades, told = one(dataset), dataset.judgments(), []

    result = bring({**ROW, **other}, observer=told.append)

    assert (one(dataset), dataset.judgments()) == (before, grades)
    assert (result.n_held, result.n_queries, result.n_judgments) == (1, 0, 0)
    assert "in review stay as they are, with their grades: q1" in told[0].message


def test_rejected_query_does_not_come_back_with_another_answer(dataset, bring):
    """A person took it out; a build that imports again must not put it in."""
    bring(ROW)
    change(dataset, status="retired", reviewed=Review(decision="reject", by="Ben"))
    before, grades, told = one(dataset), dataset.judgments(), []

    result = bring({**ROW, "answer": "A tenth."}, observer=told.append)

    assert (one(dataset), dataset.judgments(), result.n_retired) == (before, grades, 1)
    assert "1 rejected or retired queries stay out: q1" in told[0].message


def test_audit_is_of_the_reviews_that_are_there(dataset, bring):
    """A figure of people who decided about other queries would be no audit."""
    review = Review(decision="approve", by="Ben", random=True)
    bring(ROW)
    assert dataset.manifest.audit is None

    own = one(dataset).model_copy(update={"reviewed": review})
    bring(own.model_dump(mode="json"))

    assert dataset.manifest.audit.n == 1


@pytest.fixture
def halved(dataset):
    """Two chunks that part a sentence of the document after most of it."""
    cut = TEXT.index("percent")
    dataset.write_chunks(
        [
            Chunk(chunk_id="c1", doc_id="a.md", text=TEXT[:cut], end=cut),
            Chunk(chunk_id="c2", doc_id="a.md", text=TEXT[cut:], start=cut, end=len(TEXT)),
        ]
    )
    return dataset


def test_chunk_with_a_part_of_a_quote_is_a_part_of_the_answer(halved, bring):
    """Grade 3 says that the chunk answers alone; it has lost the end."""
    bring(ROW)

    assert {item.grade for item in halved.judgments()} == {2}


def test_quote_over_many_chunks_is_found(dataset, bring):
    """Small chunks must not cost the labels of long passages."""
    ends = [*range(5, len(TEXT), 5), len(TEXT)]
    starts = [0, *ends[:-1]]
    dataset.write_chunks(
        Chunk(chunk_id=f"c{start:02}", doc_id="a.md", text=TEXT[start:end], start=start, end=end)
        for start, end in zip(starts, ends, strict=True)
    )

    assert bring(ROW).n_lost == 0
    assert {item.grade for item in dataset.judgments()} == {2}


def test_evidence_reads_as_in_the_document(dataset, bring):
    """A quote that is not verbatim cannot be found by a plain search."""
    text = "The fee\nis ten percent."
    dataset.write_chunks([Chunk(chunk_id="c1", doc_id="a.md", text=text, end=len(text))])

    bring(ROW)

    assert [item.evidence for item in dataset.judgments()] == [text]
    assert [item.quote for item in one(dataset).evidence] == [text]


@pytest.mark.parametrize("quote", ["e", "arc", "is", "ten per"])
def test_quote_that_is_part_of_a_word_or_says_nothing_is_lost(dataset, bring, quote):
    """An "e" stands in every chunk, and proves nothing in any."""
    told = []

    other = {**ROW, "id": "q2", "question": "Q?", "quote": quote}
    result = bring(ROW, other, observer=told.append, allow_missing=True)

    assert (result.n_lost, result.n_judgments) == (1, 2)
    assert "is part of a word or number, or says nothing; quote more" in told[0].message


LOST = {"id": "q1", "question": "Q?", "relevant": [{"doc_id": "a.md", "quote": "Gone since."}]}
FOUND = {"doc_id": "a.md", "quote": "The fee is ten percent."}


def test_a_quote_that_stands_nowhere_is_an_error(dataset, bring):
    """Without it recall would rise."""
    row = {**LOST, "relevant": [FOUND, *LOST["relevant"]]}

    with pytest.raises(DataError, match=r"1 relevant passage is lost: q1: a\.md: 'Gone since\.'"):
        bring(row)

    assert dataset.all_queries() == []


def test_a_quote_that_stands_nowhere_may_stay_as_a_chunk_that_no_run_finds(dataset, bring):
    """Of two relevant passages a run can find one: recall is at most one half."""
    bring({**LOST, "relevant": [FOUND, *LOST["relevant"]]}, allow_missing=True)

    kept = sorted((item.chunk_id, item.grade, item.evidence) for item in dataset.judgments())
    assert kept == [
        ("a.md#quote_e1deafaf97fd", 3, "Gone since."),
        ("c1", 3, "The fee is ten percent."),
    ]
    assert [item.quote for item in one(dataset).evidence] == ["The fee is ten percent."]


def test_a_passage_of_grade_0_that_stands_nowhere_is_told_and_no_error(dataset, bring):
    """What is not relevant is in no denominator."""
    told = []

    bring(ROW, {**ROW, "id": "q2", "quote": "Gone since.", "grade": 0}, observer=told.append)

    assert [item.chunk_id for item in dataset.judgments()] == ["c1"]
    assert told[0].message.startswith("1 relevant passages are lost: q2: a.md: 'Gone since.'")


def test_long_quote_that_was_cut_within_a_word_is_found(dataset, bring):
    """Tools cut what people quote at so many characters."""
    assert bring({**ROW, "quote": "The fee is ten perc"}).n_lost == 0


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("The limit is set to 100", "The limit is set to 1005 GB."),
        ("The limit is set to 100", "The limit is set to 100.5 GB."),
        ("5 degrees are the limit", "There -5 degrees are the limit."),
        ("The service is written in C", "The service is written in C++."),
    ],
)
def test_long_quote_that_was_cut_within_a_number_is_lost(dataset, bring, quote, text):
    """It says another number."""
    dataset.write_chunks([Chunk(chunk_id="c1", doc_id="a.md", text=text, end=len(text))])

    with pytest.raises(DataError, match="is part of a word or number"):
        bring({**ROW, "quote": quote})


def test_of_documents_that_hold_a_quote_the_one_is_meant_that_cuts_no_number(dataset, bring):
    """The other one says another number."""
    texts = {"a.md": "The limit is set to 1005 GB.", "b.md": "The limit is set to 100 GB."}
    dataset.write_chunks(
        [Chunk(chunk_id=key, doc_id=key, text=text) for key, text in texts.items()]
    )
    bring({**ROW, "doc_id": None, "quote": "The limit is set to 100"})

    assert [item.doc_id for item in one(dataset).evidence] == ["b.md"]


def test_copies_of_a_relevant_chunk_without_a_label_are_told(dataset, bring):
    """A run that returns the copy loses by the labels, though it returns the same words."""
    texts = {"c0": "The fee is  ten.", "c1": "The fee is ten.", "c2": "Another fee.", "c3": "Due."}
    dataset.write_chunks(
        Chunk(chunk_id=name, doc_id=f"{'a' if name != 'c1' else 'v2/a'}.md", text=text)
        for name, text in texts.items()
    )
    told = []

    bring({**ROW, "quote": "The fee is ten."}, observer=told.append)

    [message] = [event.message for event in told if "word for word" in event.message]
    assert message.startswith(
        "1 relevant chunk reads word for word as others that have no label, such as c0 as c1"
    )


def test_runs_that_hold_copies_without_a_label_are_told(dataset, bring):
    """Texts without ids were taken for the first copy, as none had a label."""
    copies = {"c0": "a.md", "c1": "b.md"}
    dataset.write_chunks(
        Chunk(chunk_id=name, doc_id=doc_id, text="The fee is ten.")
        for name, doc_id in copies.items()
    )
    for name, chunk_id in {"one": "c0", "other": "c1"}.items():
        hit = Hit(chunk_id=chunk_id, score=1.0)
        dataset.write_run(name, [Ranking(query_id="q1", ranking=(hit,))])
    told = []

    bring({**ROW, "id": "q1", "quote": "The fee is ten."}, observer=told.append)

    assert [event.message for event in told if event.message.startswith("run ")] == [
        "run other holds 1 such chunk without a label; if they came as texts without ids, "
        "`ragforge retrieve` now takes the labelled ones"
    ]


def test_of_a_quote_that_stands_twice_the_first_place_is_taken(dataset, bring):
    """One label must not make every chunk relevant that happens to hold the word."""
    texts = ("The fee is due.", "A fee is a fee.")
    dataset.write_chunks(
        Chunk(chunk_id=f"c{n}", doc_id="a.md", text=text) for n, text in enumerate(texts)
    )
    told = []

    bring({**ROW, "quote": "fee"}, observer=told.append)

    assert [item.chunk_id for item in dataset.judgments()] == ["c0"]
    assert "1 quote stands several times in one document, and the first place alone" in (
        told[0].message
    )
    assert "'fee' 3 times" in told[0].message


def test_quote_without_a_document_is_looked_up_in_all(dataset, bring):
    """The document is known when one alone holds the quote."""
    row = {name: value for name, value in ROW.items() if name != "doc_id"}

    bring(row)

    assert [(item.doc_id, item.chunk_id) for item in one(dataset).evidence] == [("a.md", "c1")]


@pytest.mark.parametrize(
    ("quote", "reason"),
    [
        ("Whales eat krill.", "names no document, and is in none"),
        ("is", "names no document, and is in 2 of them"),
    ],
)
def test_quote_of_no_document_or_of_several_is_lost(dataset, bring, quote, reason):
    """To guess one would be a label that nobody gave."""
    told = []

    other = {"id": "q2", "question": "Q?", "quote": quote}
    result = bring(ROW, other, observer=told.append, allow_missing=True)

    assert result.n_lost == 1
    assert reason in told[0].message


def test_texts_of_a_question_of_ragas_about_several_are_found(dataset, bring):
    """ragas writes "<1-hop>" before each, and no evidence was found."""
    texts = ["<1-hop>\n\nThe fee is ten percent.", "<2-hop>\n\nBeeswax is for oak."]
    told = []

    bring({"user_input": "Q?", "reference_contexts": texts}, observer=told.append)

    assert [item.quote for item in one(dataset).evidence] == [
        "The fee is ten percent.",
        "Beeswax is for oak.",
    ]
    assert told == []


def test_queries_of_an_older_set_keep_all_that_is_known_of_them(dataset, bring):
    """Moving a set to another chunk size is no reason to review it again."""
    older = Query(
        query_id="q1",
        query="What is the fee?",
        expected_answer="Ten percent.",
        split="dev",
        revision=2,
        status="accepted",
        reviewed=Review(decision="edit", by="Ben"),
        pinned=Pin(by="Ben"),
        category="Fees",
        lineage=Lineage(kind="llm", model="m", seed=3),
        evidence=(Evidence(doc_id="a.md", chunk_id="old", quote="The fee is ten percent."),),
    )

    bring(older.model_dump(mode="json"))

    found = one(dataset)
    kept = older.model_dump(exclude={"evidence", "source_chunk_ids"})
    assert found.model_dump(exclude={"evidence", "source_chunk_ids"}) == kept
    assert [item.chunk_id for item in found.evidence] == ["c1"]
    assert [(item.chunk_id, item.source) for item in dataset.judgments()] == [("c1", "evidence")]


def test_set_of_other_documents_is_refused(dataset, bring):
    """Queries without a relevant passage would all score 0."""
    with pytest.raises(DataError, match=r"1 relevant passages are lost: q1: a\.md: 'gone' is in"):
        bring({**ROW, "quote": "gone"})

    assert dataset.all_queries() == []


def test_grades_of_people_outlive_a_set_that_tells_none(dataset, bring):
    """A dataset's own queries come without grades."""
    bring(ROW)
    query = one(dataset)
    human = Judgment(query_id="q1", chunk_id="c1", grade=2, source="human")
    dataset.write_judgments([human])

    bring(query.model_dump(mode="json"))

    assert dataset.judgments() == [human]


HALF = {"id": "q1", "question": "What is the fee?", "relevant_doc_ids": ["c1", "d9"]}


def test_relevant_ids_that_the_corpus_lacks_are_refused(dataset, bring):
    """Without them recall would rise from one half to all, in silence."""
    with pytest.raises(DataError, match=r"1 relevant id is of no chunk and no document: q1: d9;"):
        bring(HALF)

    assert dataset.all_queries() == []


def test_allowed_missing_ids_stay_in_the_denominator(dataset, bring):
    """They are relevant chunks that no run can find."""
    result = bring(HALF, allow_missing=True)

    scores = evaluate(dataset.files / "judgments.jsonl", {"q1": ["c1", "c2"]}, "R@10")
    assert (scores.mean("R@10"), result.n_missing) == (0.5, 1)


def test_a_missing_id_of_grade_0_changes_nothing(dataset, bring):
    """A chunk that is not relevant is in no denominator."""
    bring({**HALF, "relevant_doc_ids": ["c1"], "graded_relevance": {"c1": 3, "d9": 0}})

    assert [(item.chunk_id, item.grade) for item in dataset.judgments()] == [("c1", 3)]


def test_validate_notes_relevant_chunks_that_are_not_in_the_corpus(dataset, bring):
    """It is the author's choice, and everybody who measures must know."""
    bring(HALF, allow_missing=True)

    found = validate(dataset)

    assert (found.problems, found.notes) == (
        [],
        [
            "judgments.jsonl: 1 relevant chunk of people's not in the corpus, such as d9: no "
            "run can find them"
        ],
    )


LISTED = {
    "id": "q1",
    "question": "What is the fee?",
    "relevant_doc_ids": ["c1", "c2"],
    "graded_relevance": {"c1": 3, "c2": 1},
}


def test_the_threshold_that_explains_the_lists_is_the_set_s(dataset, bring):
    """The author calls grade 1 relevant; binary measures must count it, in every command."""
    notes = []

    bring(LISTED, observer=lambda event: notes.append(event.message))
    dataset.write_run("mine", [Ranking(query_id="q1", ranking=(Hit(chunk_id="c2", score=1.0),))])

    [run] = evaluate_runs(dataset, [], EvaluateSettings(measures=("RR", "P@1")))
    assert (run.scores.mean("RR"), run.scores.rel_threshold) == (1.0, 1)
    assert notes[-1] == "relevant: grade >= 1, as the lists of relevant ids have it"


CONTRARY = {**LISTED, "relevant_doc_ids": ["c2", "c3"]}
"""c1 has grade 3 and is not listed, c2 has grade 1 and is, c3 is listed and has no grade."""


def test_lists_that_no_threshold_explains_are_kept_beside_the_grades(dataset, bring):
    """The author gives both and means both; no grade is made up for what is listed alone."""
    notes = []

    bring(CONTRARY, allow_missing=True, observer=lambda event: notes.append(event.message))

    kept = [(item.chunk_id, item.grade, item.relevant) for item in dataset.judgments()]
    assert kept == [("c1", 3, False), ("c2", 1, True), ("c3", None, True)]
    assert notes[-1].startswith("lists of relevant ids and grades do not go by one threshold")
    assert dataset.manifest.rel_threshold is None


def test_lists_may_come_to_a_set_that_has_a_threshold(dataset, bring):
    """Each pair says for itself whether it is listed, so that no threshold is in the way."""
    bring(LISTED)

    bring({**CONTRARY, "id": "q2"}, allow_missing=True)

    kept = [(item.query_id, item.chunk_id, item.relevant) for item in dataset.judgments()]
    assert kept[:3] == [("q1", "c1", None), ("q1", "c2", None), ("q2", "c1", False)]
    assert dataset.manifest.rel_threshold == 1


def test_a_list_that_becomes_a_threshold_leaves_no_mark(dataset, bring):
    """The file was mended; what it said before must not go on."""
    bring(CONTRARY, allow_missing=True)

    bring(LISTED)

    assert [item.relevant for item in dataset.judgments()] == [None, None]


def test_lists_of_another_threshold_than_the_set_has_are_refused(dataset, bring):
    """The binary measures of a set have one meaning."""
    bring(LISTED)

    with pytest.raises(DataError, match=r"call grades from 2 on relevant, and .* from 1 on"):
        bring({**LISTED, "id": "q2", "relevant_doc_ids": ["c1"]})


def test_the_same_lists_may_be_imported_again(dataset, bring):
    """A file grows, and is brought in again."""
    bring(LISTED)

    bring(LISTED)

    assert dataset.manifest.rel_threshold == 1


def test_a_grade_of_null_is_a_label_that_failed(dataset, bring):
    """Dropped, its chunk would count as not relevant in a set of complete labels."""
    bring({"id": "q1", "question": "Q?", "graded_relevance": {"c1": None, "c2": 2}})

    kept = {item.chunk_id: (item.grade, item.is_failed) for item in dataset.judgments()}
    assert kept == {"c1": (None, True), "c2": (2, False)}


def test_labels_under_names_that_nobody_knows_are_told(bring):
    """A set without labels looks like one that was taken in."""
    told = []

    bring({"id": "q1", "question": "Q?", "answer_ids": ["c1"]}, observer=told.append)

    said = [event.message for event in told]
    assert "no row says what is relevant; not read: 'answer_ids'. Expected" in said[-2]
    assert said[-1].endswith("--map relevant=answer_ids")


@pytest.mark.parametrize("name", ["gold_ids", "expectedDocIds", "positive_ids", "relevant_doc_id"])
def test_lists_are_known_by_the_names_people_use(dataset, bring, name):
    """These say the same as relevant_doc_ids."""
    bring({"id": "q1", "question": "Q?", name: ["c1"]})

    assert [item.chunk_id for item in dataset.judgments()] == ["c1"]


def test_a_grade_that_cannot_be_taken_is_told_with_its_file(bring):
    """Several files are often taken in one after the other."""
    with pytest.raises(DataError, match=r"golden\.jsonl: query q1: grade of c1: expected 0, 1, 2"):
        bring({"id": "q1", "question": "Q?", "graded_relevance": {"c1": 5}})


def in_folders(dataset):
    texts = {"g/alpha.md": TEXT, "h/alpha.md": "Beeswax is for oak.", "h/beta.md": "Oak dries."}
    dataset.write_chunks(
        Chunk(chunk_id=f"c{n}", doc_id=doc_id, text=text, end=len(text))
        for n, (doc_id, text) in enumerate(texts.items())
    )


@pytest.mark.parametrize(
    ("name", "quote", "doc_id"),
    [
        ("beta.md", "Oak dries.", "h/beta.md"),
        ("alpha.md", "The fee is ten percent.", "g/alpha.md"),
        ("./h/alpha.md", "Beeswax is for oak.", "h/alpha.md"),
    ],
)
def test_document_of_a_quote_goes_by_the_end_of_its_path(dataset, bring, name, quote, doc_id):
    """It was refused as being in no chunk of the document, which was false."""
    in_folders(dataset)

    bring({**ROW, "doc_id": name, "quote": quote})

    assert [item.doc_id for item in one(dataset).evidence] == [doc_id]


@pytest.mark.parametrize(
    ("name", "quote", "why"),
    [
        ("gamma.md", "The fee is ten percent.", "names a document that is not there"),
        ("alpha.md", "Oak dries.", "may be of 2 documents, and is in none"),
    ],
)
def test_quote_whose_document_is_not_told_is_refused_with_the_reason(
    dataset, bring, name, quote, why
):
    """Who mends the file must know what to look for."""
    in_folders(dataset)

    with pytest.raises(DataError, match=why):
        bring({**ROW, "doc_id": name, "quote": quote})


def test_a_label_of_a_document_of_one_chunk_is_of_the_document(dataset, bring):
    """A service that cuts it finds it as well as one that does not."""
    bring({"id": "q1", "question": "What is the fee?", "relevant_doc_ids": ["a.md"]})

    [judgment] = dataset.judgments()
    assert (judgment.chunk_id, judgment.level) == ("a.md", "document")
    assert dataset.manifest.level == "document"


GOLDEN = {"input": "Q?", "actual_output": None, "expected_output": "So.", "source_file": "a.md"}


@pytest.mark.parametrize(
    ("context", "found"),
    [
        ("The fee is ten percent.|Beeswax is for oak.", {"c1": 2, "c2": 2}),
        ("Parcels arrive in three days.\n|Beeswax is for oak.", {"c1": 2, "c2": 2}),
        ("The fee is ten percent.", {"c1": 3}),
        ("| Fee | Ten percent |\n| Oil | For oak |", {"c3": 3}),
        ("Beeswax is for oak.|| Fee | Ten percent |\n| Oil | For oak |", {"c2": 2, "c3": 2}),
        ("Use grep -E a|b to find both.", {"c4": 3}),
    ],
)
def test_contexts_that_deepeval_joined_are_quotes_of_their_own(dataset, bring, context, found):
    """Its tables have a bar between them; a bar within a context is none of these."""
    table = "| Fee | Ten percent |\n| Oil | For oak |"
    more = [
        Chunk(chunk_id="c3", doc_id="c.md", text=table),
        Chunk(chunk_id="c4", doc_id="d.md", text="Use grep -E a|b to find both."),
    ]
    dataset.write_chunks([*dataset.chunks(), *more])

    bring(GOLDEN | {"context": context})

    assert {item.chunk_id: item.grade for item in dataset.judgments()} == found


def test_a_bar_in_a_context_of_others_joins_nothing(dataset, bring):
    """Nobody said that it does."""
    told = []

    bring(
        {"question": "Q?", "context": "The fee is ten percent.|Beeswax is for oak."},
        observer=lambda event: told.append(event.message),
    )

    assert dataset.judgments() == []
    assert any(message.startswith("1 reference text in no document") for message in told)
