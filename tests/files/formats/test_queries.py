import json
import re
from pathlib import Path

import pytest

from ragforge.errors import DataError
from ragforge.files.formats.queries import read_queries
from ragforge.files.formats.query_rows import ImportedQuery
from ragforge.files.formats.row_columns import parse_columns
from ragforge.files.formats.row_relevance import GradedQuote
from ragforge.files.shipped_folders import shipped
from ragforge.records import Query


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def id_of(text):
    return f"made-{len(text)}"


def read(path):
    return read_queries(path, id_of).queries


def human(query_id="q1", query="Why?", **fields):
    return Query(query_id=query_id, query=query, origin="human", **fields)


def test_golden_set_names_passages_by_quotes(tmp_path):
    """Quotes outlive chunking, ids of chunks do not."""
    text = (
        '{"query_id": "q1", "query": "Why?", "expected_answer": "So.", "difficulty": "hard",'
        ' "type": "why", "answerable": true,'
        ' "relevant": [{"doc_id": "a.md", "quote": "for so", "grade": 3}]}\n'
    )

    assert read(write(tmp_path / "golden.jsonl", text)) == [
        ImportedQuery(
            human(expected_answer="So.", difficulty="hard", type="why"),
            graded_quotes=(GradedQuote("a.md", "for so", 3),),
        )
    ]


def test_shipped_golden_set_is_read_whole():
    """It is the example users start from."""
    found = read(Path(shipped("datasets")) / "helpcentre" / "golden.jsonl")

    assert (len(found), sum(len(one.graded_quotes) for one in found)) == (57, 306)


@pytest.mark.parametrize(
    "row",
    [
        {"id": "q1", "query": "Why?", "relevant_doc_ids": ["a"], "graded_relevance": {"a": 3}},
        {"id": "q1", "query": "Why?", "relevantDocIds": ["a"], "gradedRelevance": {"a": 3}},
        {"id": "q1", "query": "Why?", "relevanceScores": {"a": 3}},
        {"query_id": "q1", "question": "Why?", "relevant": [{"chunk_id": "a", "grade": 3}]},
    ],
)
@pytest.mark.parametrize("wrap", ['{{"queries": [{}]}}', "[{}]", "{}"])
def test_tutorial_shapes_give_grades_by_id(tmp_path, row, wrap):
    """These are the files people have after following a tutorial."""
    file = write(tmp_path / "set.json", wrap.format(json.dumps(row)))

    assert read(file) == [ImportedQuery(human(), grades={"a": 3})]


@pytest.mark.parametrize(
    "row",
    [
        {"query": "Why?", "relevant": ["a"], "expected_answer": "So."},
        {"question": "Why?", "relevant_doc_ids": ["a"], "answer": "So."},
        {"question": "Why?", "relevant_doc_ids": ["a"], "ground_truth": "So."},
        {"question": "Why?", "relevant_doc_ids": ["a"], "expectedAnswer": "So.", "id": ""},
    ],
)
def test_query_without_id_gets_one_from_its_text(tmp_path, row):
    """The same question must have the same id in every file."""
    file = write(tmp_path / "set.json", json.dumps([row]))

    assert read(file) == [ImportedQuery(human("made-4", expected_answer="So."), grades={"a": 1})]


def test_listed_ids_of_a_graded_file_count_as_relevant(tmp_path):
    """Grade 1 is not relevant where grades go above 1, and the file says these ids are."""
    text = (
        '[{"id": "a", "query": "A?", "graded_relevance": {"x": 3}},'
        ' {"id": "b", "query": "B?", "relevant": ["y"]}]'
    )

    assert [one.grades for one in read(write(tmp_path / "s.json", text))] == [{"x": 3}, {"y": 2}]


def test_native_queries_are_taken_as_they_are(tmp_path):
    """Reading a dataset's own file must not change who made a query."""
    query = Query(query_id="q_1", query="Why?", origin="synthetic", status="quarantined")

    assert read(write(tmp_path / "queries.jsonl", query.model_dump_json())) == [
        ImportedQuery(query)
    ]


def test_judged_queries_of_a_beir_folder_are_read(tmp_path):
    """queries.jsonl holds those of all splits."""
    write(
        tmp_path / "queries.jsonl",
        '{"_id": "q0", "text": "Who?", "metadata": {}}\n{"_id": "q1", "text": "Why?"}\n',
    )
    write(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\n")

    assert read(tmp_path) == [ImportedQuery(human(), grades={"a": 1})]


def test_a_beir_folder_may_have_its_qrels_in_json_lines(tmp_path):
    """Data sets of MTEB come so."""
    write(tmp_path / "queries.jsonl", '{"_id": "q1", "text": "Why?"}\n')
    pair = {"query-id": "q1", "corpus-id": "d1", "score": 1.0}
    write(tmp_path / "qrels" / "test.jsonl", json.dumps(pair))

    assert [(of.query.query_id, of.grades) for of in read(tmp_path)] == [("q1", {"d1": 1})]


def test_pairs_of_a_beir_folder_that_are_not_judged_are_left_out_and_told(tmp_path):
    """A grade below 0 was refused here, and left out of the same file as qrels."""
    write(tmp_path / "queries.jsonl", '{"_id": "q1", "text": "Why?"}\n')
    rows = "query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\tb\t-1\n"
    write(tmp_path / "qrels" / "test.tsv", rows)

    found = read_queries(tmp_path, id_of)

    assert found.queries == [ImportedQuery(human(), grades={"a": 1})]
    assert found.left_out == ("1 pair left out: its grade is below 0, which is not judged",)


def test_queries_of_a_dataset_are_read(tmp_path):
    """The folder is how users name a dataset."""
    query = Query(query_id="q_1", query="Why?")
    write(tmp_path / "queries.jsonl", query.model_dump_json())

    assert read(tmp_path) == [ImportedQuery(query)]


def test_judged_query_without_text_is_refused(tmp_path):
    """Dropping it would measure another set than the published one."""
    write(tmp_path / "queries.jsonl", '{"_id": "q0", "text": "Who?"}\n')
    write(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\n")

    with pytest.raises(
        DataError, match=r"test\.tsv: query 'q1': expected an id of .*queries\.json"
    ):
        read(tmp_path)


def test_spreadsheets_are_read(tmp_path):
    """Experts write questions there."""
    text = (
        "Query ID,Question,Expected answer,Difficulty,Type,Answerable,Relevant doc IDs\r\n"
        'q1,"Why, ""so""?",,EASY,Multi-hop,no,a.md; b.md\r\n'
    )

    assert read(write(tmp_path / "set.csv", text)) == [
        ImportedQuery(
            human(
                query='Why, "so"?',
                difficulty="easy",
                type="multi_hop",
                answerable=False,
                expected_behaviour="abstain",
            ),
            grades={"a.md": 1, "b.md": 1},
        )
    ]


def test_category_is_kept_in_its_own_words(tmp_path):
    """Users slice by it, whether or not it is a type."""
    text = (
        '[{"id": "a", "query": "A?", "category": "billing"},'
        ' {"id": "b", "query": "B?", "category": "comparison"}]'
    )

    found = read(write(tmp_path / "s.json", text))

    assert [(one.query.category, one.query.type) for one in found] == [
        ("billing", None),
        ("comparison", "comparison"),
    ]


def test_unanswerable_type_means_not_answerable(tmp_path):
    """Otherwise a correct refusal would be graded as a failure to retrieve."""
    text = '[{"id": "a", "query": "A?", "type": "unanswerable"}]'

    assert not read(write(tmp_path / "s.json", text))[0].query.answerable


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s.json: is empty"),
        ("[]", "s.json: holds no query"),
        ('[{"query": ""}]', "item 1: query: expected text, got ''"),
        ('[{"query": ["Why?"]}]', "item 1: query: expected text"),
        ('[{"query": "A?", "id": "1"}, {"quary": "B?"}]', "item 2: query: expected one of query"),
        ('[{"query": "Why?"}, {"query": "How?"}]', "query 'made-4' comes twice, first in"),
        (
            '[{"query": "A?", "difficulty": "mean"}]',
            "difficulty: expected one of easy, medium, har",
        ),
        ('[{"query": "A?", "type": "odd"}]', "type: expected one of fact, definition"),
        ('[{"query": "A?", "answerable": "maybe"}]', "answerable: expected true or false"),
        ('[{"query": "A?", "expected_answer": 3}]', "expected_answer: expected text, got 3"),
        ('[{"query": "A?", "relevant": [true]}]', "relevant: expected an id"),
        ('[{"query": "A?", "graded_relevance": {"a": "x"}}]', "graded_relevance: expected a whole"),
        (
            '[{"query": "A?", "relevant": [{"doc_id": "a", "quote": "b", "grade": 7}]}]',
            "relevant: grade: expected 0, 1, 2 or 3, got 7",
        ),
        (
            '[{"query": "A?", "relevant": [{"doc_id": "a", "quote": "", "grade": 3}]}]',
            "relevant: quote: expected text, got ''",
        ),
        ('[{"query_id": "q", "query": "A?", "origin": "elf"}]', "origin: input should be"),
    ],
)
def test_faults_are_refused_with_their_place(tmp_path, text, message):
    """A set made by hand has hand-made faults."""
    file = write(tmp_path / "s.json", text)

    with pytest.raises(DataError, match=re.escape(message)):
        read(file)


def test_torn_last_line_is_refused(tmp_path):
    """A query that is lost silently changes every mean."""
    file = write(tmp_path / "s.jsonl", '{"query": "A?"}\n{"query": "B')

    with pytest.raises(DataError, match=r"s\.jsonl:2: is not one complete JSON object"):
        read(file)


@pytest.mark.parametrize("text", ['{"a": 1}', '[{"title": "x"}]', "3"])
def test_unknown_shape_is_answered_with_those_accepted(tmp_path, text):
    """The message is what the user can act on without opening a manual."""
    file = write(tmp_path / "s.json", text)

    with pytest.raises(DataError, match=r"accepted:\n  golden set: \{"):
        read(file)


HEADER = "question,answer,doc_id,quote,difficulty,category\n"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_table_of_passages_keeps_difficulty_and_category(tmp_path, mark):
    """That is how experts label by hand: one line, one quote."""
    text = HEADER + 'Why?,So.,a.md,"for so,\nit is",complex,Billing & tax\n'
    file = write(tmp_path / "set.csv", mark + text.encode())

    assert read(file) == [
        ImportedQuery(
            human("made-4", expected_answer="So.", difficulty="hard", category="Billing & tax"),
            graded_quotes=(GradedQuote("a.md", "for so,\nit is", 3),),
        )
    ]


def test_tabs_separate_as_well(tmp_path):
    """Copying from a spreadsheet gives tabs."""
    text = "query\texpected_answer\trelevant_ids\nWhy?\tSo.\ta|b\n"

    assert read(write(tmp_path / "set.tsv", text)) == [
        ImportedQuery(human("made-4", expected_answer="So."), grades={"a": 1, "b": 1})
    ]


def test_rows_of_one_question_belong_together(tmp_path):
    """A table has one line for each passage."""
    text = (
        "question,doc_id,quote,grade\n"
        "Why?,a.md,so,3\nWhen?,b.md,then,3\nWhy?,c.md,thus,2\nWhy?,c.md,thus,2\n"
    )

    assert [one.graded_quotes for one in read(write(tmp_path / "set.csv", text))] == [
        (GradedQuote("a.md", "so", 3), GradedQuote("c.md", "thus", 2)),
        (GradedQuote("b.md", "then", 3),),
    ]


@pytest.mark.parametrize(("name", "told"), [("id", True), ("query_id", False)])
def test_a_question_under_several_plain_ids_is_told(tmp_path, name, told):
    """Where the ids number the rows, its passages are torn apart into queries of one each."""
    text = f"{name},question,doc_id\n1,Why?,a.md\n2,Why?,b.md\n3,When?,a.md\n"
    found = read_queries(write(tmp_path / "set.csv", text), id_of)

    assert [of.query.query_id for of in found.queries] == ["1", "2", "3"]
    assert any("1 question comes under several ids" in note for note in found.left_out) is told


def test_pairs_of_question_and_document_are_read(tmp_path):
    """Graded pairs are the plainest thing people label."""
    text = "question,doc_id,grade\nWhy?,a.md,3\nWhy?,b.md,0\nWhen?,a.md,1\n"

    assert [one.grades for one in read(write(tmp_path / "set.csv", text))] == [
        {"a.md": 3, "b.md": 0},
        {"a.md": 1},
    ]


@pytest.mark.parametrize(
    ("yes", "no", "grade"), [("yes", "no", 1), ("1", "0", 1), ("TRUE", "false", 1), ("3", "0", 3)]
)
def test_a_passage_that_is_marked_as_relevant_or_not_has_that_grade(tmp_path, yes, no, grade):
    """The marks were ids of chunks called 1 and 0, both relevant, and the documents were lost."""
    text = f"question,doc_id,Relevant\nWhy?,a.md,{yes}\nWhy?,b.md,{no}\n"
    quotes = f"question,quote,relevant\nWhy?,for so,{yes}\nWhy?,no way,{no}\n"
    [found] = read(write(tmp_path / "set.csv", text))
    [quoted] = read(write(tmp_path / "quotes.csv", quotes))

    assert found.grades == {"a.md": grade, "b.md": 0}
    assert [(of.quote, of.grade) for of in quoted.graded_quotes] == [
        ("for so", grade),
        ("no way", 0),
    ]


def test_a_mark_beside_a_grade_is_refused(tmp_path):
    """They may differ, and nothing says which of them counts."""
    path = write(tmp_path / "set.csv", "question,doc_id,grade,relevant\nWhy?,a.md,1,no\n")

    with pytest.raises(DataError, match="relevant: expected ids, or no other grade of the passage"):
        read(path)


@pytest.mark.parametrize(
    "rows",
    [
        "question,doc_id,grade\nWhy?,a.md,3\nWhy?,b.md,\n",
        "question,doc_id,quote,relevance\nWhy?,a.md,so,3\nWhen?,b.md,then,\n",
        "question,chunk_id,is_relevant\nWhy?,c1,1\nWhy?,c2,\n",
        "question,relevant_doc_ids,grade\nWhy?,a.md,3\nWhy?,b.md,\n",
        "question,doc_id,relevant\nWhy?,a.md,yes\nWhen?,b.md,\n",
    ],
)
def test_a_blank_grade_beside_others_is_no_grade(rows, tmp_path):
    """A passage that nobody has graded yet counted as one that people call relevant."""
    path = write(tmp_path / "set.csv", rows)

    with pytest.raises(DataError, match=r"set\.csv:3: \w+: is blank, where .*set\.csv:2 has one"):
        read(path)


def test_a_null_grade_beside_others_is_no_grade(tmp_path):
    rows = [
        {"question": "Why?", "doc_id": "a.md", "grade": 3},
        {"question": "When?", "doc_id": "b.md", "grade": None},
    ]
    path = write(tmp_path / "set.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))

    with pytest.raises(DataError, match=r"set\.jsonl:2: grade: is blank"):
        read(path)


@pytest.mark.parametrize("passage", [{"doc_id": "b.md"}, {"chunk_id": "c2"}])
def test_a_lacking_grade_beside_others_is_no_grade(passage, tmp_path):
    """A passage without the key had grade 2, as if a person had given it."""
    rows = [{"question": "Why?", "chunk_id": "c1", "grade": 3}, {"question": "Why?", **passage}]
    path = write(tmp_path / "set.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))

    with pytest.raises(DataError, match=r"set\.jsonl:2: grade: is blank"):
        read(path)


def test_passages_are_relevant_where_no_row_has_a_grade(tmp_path):
    """A column that is there and holds nothing says nothing; nor is a question alone ungraded."""
    text = "question,doc_id,grade\nWhy?,a.md,\nWhen?,b.md,\n"
    alone = "question,doc_id,grade\nWhy?,a.md,3\nWhen?,,\n"

    assert [one.grades for one in read(write(tmp_path / "set.csv", text))] == [
        {"a.md": 1},
        {"b.md": 1},
    ]
    assert [one.grades for one in read(write(tmp_path / "one.csv", alone))] == [{"a.md": 3}, {}]


@pytest.mark.parametrize(
    ("ids", "grade"),
    [
        ("relevant_doc_ids", "grade"),
        ("relevant_docs", "relevance"),
        ("relevant", "grade"),
        ("gold_chunk_ids", "is_relevant"),
        ("source_chunk_id", "grade"),
    ],
)
def test_the_grade_of_a_row_is_that_of_all_it_lists(ids, grade, tmp_path):
    """It was dropped: what a person graded 0 counted as relevant."""
    text = f"question,{ids},{grade}\nWhy?,a.md,3\nWhy?,b.md,0\nWhy?,c.md,1\n"
    [query] = read(write(tmp_path / "set.csv", text))

    assert (query.grades, query.marks) == ({"a.md": 3, "b.md": 0, "c.md": 1}, {})


def test_a_mapped_grade_is_that_of_mapped_ids(tmp_path):
    text = "frage,dok,note\nWhy?,a.md,0\nWhen?,b.md;c.md,3\n"
    path = write(tmp_path / "set.csv", text)
    columns = parse_columns(["question=frage,relevant_doc_ids=dok,grade=note"])

    assert [one.grades for one in read_queries(path, id_of, columns).queries] == [
        {"a.md": 0},
        {"b.md": 3, "c.md": 3},
    ]


def test_listed_quotes_have_the_grade_of_their_row(tmp_path):
    passages = [{"doc_id": "a.md", "quote": "so"}, {"doc_id": "b.md", "quote": "then"}]
    rows = [
        {"question": "Why?", "relevant": passages, "grade": 1},
        {"question": "When?", "evidence": passages[:1], "grade": 0},
    ]
    found = read(write(tmp_path / "set.json", json.dumps(rows)))

    assert [[quote.grade for quote in one.graded_quotes] for one in found] == [[1, 1], [0]]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"relevant": [{"id": "a", "grade": 3}], "grade": 0}, "grade 3, which 'a' has, got 0"),
        ({"graded_relevance": {"a": 3}, "relevance": 1}, "grade 3, which 'a' has, got 1"),
        ({"relevant": [{"quote": "so", "grade": 3}], "grade": 0}, "grade 3, which 'so' has, got 0"),
        ({"relevant_ids": ["a", "b"], "grade": "3;1"}, "a whole number, got '3;1'"),
    ],
)
def test_a_row_that_grades_its_list_otherwise_is_refused(row, told, tmp_path):
    """One of the two would be passed over."""
    path = write(tmp_path / "set.jsonl", json.dumps({"question": "Why?"} | row))

    with pytest.raises(DataError, match=rf"set\.jsonl:1: \w+: expected {told}"):
        read(path)


@pytest.mark.parametrize(
    ("text", "not_read"),
    [
        ("question,text\nWhy?,so it is\n", True),
        ("question,chunk_id,text\nWhy?,c1,so it is\n", False),
        ("text,chunk_id\nWhy?,c1\n", False),
    ],
)
def test_a_text_that_no_id_stands_beside_is_told(text, not_read, tmp_path):
    """It was taken for read, as the question may be called so."""
    found = read_queries(write(tmp_path / "set.csv", text), id_of)

    assert any("columns that are not read: 'text'" in note for note in found.left_out) is not_read


def test_a_score_beside_relevant_ids_is_told_and_not_read(tmp_path):
    """It may be that of an answer."""
    row = {"question": "Why?", "relevant_doc_ids": ["a"], "score": 0.5, "label": "billing"}
    found = read_queries(write(tmp_path / "set.jsonl", json.dumps(row)), id_of)

    assert found.queries[0].grades == {"a": 1}
    assert found.left_out == (
        f"{tmp_path / 'set.jsonl'}: not read in 1 query: a score, rating or label beside relevant "
        "ids may be of anything; --map grade=… says that it is their grade",
    )


def test_a_chunk_is_meant_whatever_document_stands_beside_it(tmp_path):
    """Labels of chunks were lost, or were put on the whole document."""
    alone = "question,chunk_id,grade\nWhy?,c1,2\nWhy?,c2,0\n"
    beside = "question,doc_id,passage_id,grade\nWhy?,a.md,c1,2\nWhy?,a.md,c2,0\n"

    for text in (alone, beside):
        [query] = read(write(tmp_path / "set.csv", text))
        assert query.grades == {"c1": 2, "c2": 0}


def test_a_listed_passage_is_meant_whatever_document_it_is_of(tmp_path):
    """Its document was labelled as a whole, so that any other chunk of it was right as well."""
    rows = [{"question": "Why?", "relevant": [{"id": "c1", "doc_id": "a.md"}]}]

    assert [of.grades for of in read(write(tmp_path / "set.json", json.dumps(rows)))] == [{"c1": 1}]


def test_a_document_beside_quotes_of_other_rows_is_relevant(tmp_path):
    """Its grade was 1 where the quotes made 2 the threshold: found at rank 1, it was a miss."""
    text = "question,doc_id,quote\nWhy?,a.md,for so\nWhen?,b.md,\n"

    [_, when] = read(write(tmp_path / "set.csv", text))

    assert when.grades == {"b.md": 2}


def test_texts_beside_a_document_are_quotes_of_it(tmp_path):
    """The whole document was labelled, and what was written down passed over."""
    text = "question,doc_id,context,Zitat\nWhy?,a.md,for so,dort\nWhen?,b.md,then,\n"

    found = read_queries(write(tmp_path / "set.csv", text), str.lower)

    assert [one.graded_quotes for one in found.queries] == [
        (GradedQuote("a.md", "for so", 3),),
        (GradedQuote("b.md", "then", 3),),
    ]
    assert any("columns that are not read: 'Zitat'" in note for note in found.left_out)


def test_the_text_a_query_was_written_from_is_a_quote_of_the_document_beside_it(tmp_path):
    """The whole document was labelled, so that any part of it was right."""
    text = "question,doc_id,source_chunk\nWhy?,a.md,It is so for so.\nWhen?,b.md,c7\n"
    first, second = read(write(tmp_path / "set.csv", text))

    assert first.graded_quotes == (GradedQuote("a.md", "It is so for so.", 3),)
    assert (second.graded_quotes, second.grades) == ((), {"b.md": 2})


@pytest.mark.parametrize("texts", ["context", "reference_contexts", "quote"])
@pytest.mark.parametrize("grade", ["grade", "label", "relevance", "is_relevant", "rating"])
def test_texts_have_the_grade_beside_them(tmp_path, texts, grade):
    """A text that people graded 0 was evidence of grade 3, and a run of such texts passed."""
    text = f"question,{texts},{grade}\nWhy?,for so,2\nWhy?,not so,0\n"

    [query] = read(write(tmp_path / "set.csv", text))

    assert {one.quote: one.grade for one in query.graded_quotes} == {"for so": 2, "not so": 0}


def test_a_score_beside_texts_is_told_and_not_read(tmp_path):
    """It may be that of an answer."""
    text = "question,context,score\nWhy?,for so,0.87\n"

    found = read_queries(write(tmp_path / "set.csv", text), str.lower)

    assert [one.graded_quotes[0].grade for one in found.queries] == [3]
    assert any("--map grade=" in note for note in found.left_out)


@pytest.mark.parametrize("name", ["relevant", "is_relevant", "correct", "gold"])
def test_an_item_that_says_that_it_is_not_relevant_is_none(tmp_path, name):
    """A list of what was looked at is no list of what is right."""
    items = [{"id": "a", name: True}, {"id": "b", name: False}]
    rows = [{"question": "Why?", "relevant_docs": items}]

    [query] = read(write(tmp_path / "set.json", json.dumps(rows)))

    assert query.grades == {"a": 1, "b": 0}


def test_two_grades_of_one_quote_are_refused(tmp_path):
    """Two people differ, and somebody has to decide."""
    text = "question,doc_id,quote,grade\nWhy?,a.md,for so,0\nWhy?,a.md,for so,3\n"

    with pytest.raises(DataError, match="expected grade 0 as in a row before, got 3"):
        read(write(tmp_path / "set.csv", text))


def test_evidence_as_a_set_keeps_it_is_read(tmp_path):
    """Rows of queries.jsonl that somebody edited have lost their origin at times."""
    text = '[{"query": "Why?", "evidence": [{"doc_id": "a.md", "quote": "for so"}]}]'

    [query] = read(write(tmp_path / "set.json", text))

    assert query.graded_quotes == (GradedQuote("a.md", "for so", 3),)


@pytest.mark.parametrize(
    "evidence",
    [
        [{"doc_id": "a.md", "text": "for so"}, {"doc_id": "b.md", "quote": "and so"}],
        [{"document": "a.md", "quote": "for so"}, {"document_id": "b.md", "content": "and so"}],
    ],
)
def test_all_quotes_of_evidence_are_read(tmp_path, evidence):
    """One under another name was left out in silence, and recall was of the rest."""
    text = json.dumps([{"query": "Why?", "evidence": evidence}])
    [query] = read(write(tmp_path / "set.json", text))

    assert query.graded_quotes == (
        GradedQuote("a.md", "for so", 3),
        GradedQuote("b.md", "and so", 3),
    )


def test_evidence_that_is_one_quote_is_read(tmp_path):
    """A list of one is often written without the list."""
    text = '[{"query": "Why?", "evidence": {"doc_id": "a.md", "quote": "for so"}}]'
    [query] = read(write(tmp_path / "set.json", text))

    assert query.graded_quotes == (GradedQuote("a.md", "for so", 3),)


def test_evidence_without_words_beside_quotes_is_refused(tmp_path):
    """Left out it would be one passage less to find."""
    evidence = [{"doc_id": "a.md", "quote": "for so"}, {"doc_id": "b.md", "page": 3}]
    path = write(tmp_path / "set.json", json.dumps([{"query": "Why?", "evidence": evidence}]))

    told = (
        "item 1: evidence, item 2: has no quote, got 'doc_id', 'page'; expected "
        '{"doc_id": "a.md", "quote": "…"} for each passage'
    )
    with pytest.raises(DataError, match=re.escape(told)):
        read(path)


@pytest.mark.parametrize("name", ["document", "source_doc_id"])
def test_a_listed_quote_is_of_the_document_beside_it(tmp_path, name):
    """Looked up without it, it became evidence of any other document that holds it."""
    rows = [{"query": "Why?", "relevant": [{name: "a.md", "quote": "for so"}]}]
    [query] = read(write(tmp_path / "set.json", json.dumps(rows)))

    assert query.graded_quotes == (GradedQuote("a.md", "for so", 3),)


@pytest.mark.parametrize(
    "marked",
    [
        "unanswerable\nWhy?,true",
        "answerable\nWhy?,N",
        "is_impossible\nWhy?,1.0",
        "category\nWhy?,no_answer",
    ],
)
def test_what_is_marked_unanswerable_in_other_words_is_so(tmp_path, marked):
    """As answerable ones they would ask a retriever for what is not there."""
    [found] = read(write(tmp_path / "set.csv", f"question,{marked}\n"))

    assert (found.query.answerable, found.query.expected_behaviour) == (False, "abstain")


def test_a_row_that_is_both_answerable_and_not_is_refused(tmp_path):
    """Nobody can tell which of the two its author means."""
    path = write(tmp_path / "set.csv", "question,answerable,unanswerable\nWhy?,true,true\n")

    with pytest.raises(DataError, match="the opposite of answerable"):
        read(path)


@pytest.mark.parametrize(
    "cell",
    ["['a.md', 'b.md']", "['a.md' 'b.md']", "['a.md'\n 'b.md']", "a.md\nb.md", "a.md; b.md"],
    ids=["python", "numpy", "wrapped numpy", "lines", "semicolons"],
)
def test_a_cell_of_ids_is_read_as_programs_and_people_write_it(tmp_path, cell):
    """What pandas saves of a list was refused; as Python reads what numpy writes, it is one id."""
    text = f'question,relevant_doc_ids\nWhy?,"{cell}"\n'

    assert [one.grades for one in read(write(tmp_path / "set.csv", text))] == [
        {"a.md": 1, "b.md": 1}
    ]


@pytest.mark.parametrize("sign", [",", ""], ids=["python", "numpy"])
def test_a_cell_of_texts_is_read_as_programs_write_it(tmp_path, sign):
    """Two texts without a comma between them became one that stands nowhere."""
    cell = f"""['It "is" "so".'{sign} "It's that way."]""".replace('"', '""')
    text = f'user_input,reference_contexts\nWhy?,"{cell}"\n'
    [query] = read(write(tmp_path / "set.csv", text))

    assert [of.quote for of in query.graded_quotes] == ['It "is" "so".', "It's that way."]


@pytest.mark.parametrize(
    ("columns", "told"), [("score", True), ("rating", True), ("relevance", False)]
)
def test_grades_of_a_vague_name_are_told(tmp_path, columns, told):
    """A score beside a passage may be of the answer, and a wrong answer left it not relevant."""
    path = write(tmp_path / "set.csv", f"question,doc_id,{columns}\nWhy?,a.md,3\nWhen?,b.md,0\n")
    found = read_queries(path, id_of)

    assert [of.grades for of in found.queries] == [{"a.md": 3}, {"b.md": 0}]
    assert any("is taken for the grade" in note for note in found.left_out) is told


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("question,doc_id,Relevanz\nWhy?,a.md,2\nWhy?,b.md,0\n", "grade=Relevanz"),
        ("question,relevant_id,is it ok\nWhy?,a.md,yes\nWhy?,b.md,no\n", "'grade=is it ok'"),
        ("question,quote,ok\nWhy?,for so,true\nWhy?,no way,false\n", "grade=ok"),
        ("question,doc_id,fit,ok\nWhy?,a.md,2,2\nWhy?,b.md,0,0\n", "grade=fit"),
    ],
)
def test_a_column_that_may_hold_the_grades_is_refused(tmp_path, text, flag):
    """Not read, it leaves what people call not relevant as relevant as the rest."""
    path = write(tmp_path / "set.csv", text)

    with pytest.raises(DataError, match=rf"set\.csv:3: .* --map {flag}, else take it out"):
        read(path)


@pytest.mark.parametrize(
    "rows",
    [
        "page\nWhy?,a.md,0\nWhy?,b.md,17\n",
        "rank\nWhy?,a.md,0\nWhy?,b.md,1\n",
        "hop\nWhy?,a.md,0\nWhy?,b.md,1\n",
        "metadata.page\nWhy?,a.md,0\nWhy?,b.md,1\n",
        "checked\nWhy?,a.md,no\nWhen?,b.md,yes\n",
    ],
    ids=["a number of something", "ranks", "steps", "pages", "of questions"],
)
def test_a_column_of_something_else_is_told_and_not_read(tmp_path, rows):
    """Most tables have columns that nobody but their authors knows."""
    path = write(tmp_path / "set.csv", f"question,doc_id,{rows}")

    assert any("columns that are not read" in note for note in read_queries(path, id_of).left_out)


def test_numbers_of_items_name_no_chunks(tmp_path):
    """Tools number what they list."""
    listed = [{"id": 1, "doc_id": "a.md"}, {"id": 2, "doc_id": "b.md"}]
    text = json.dumps([{"query": "Why?", "relevant": listed}])

    assert [one.grades for one in read(write(tmp_path / "s.json", text))] == [
        {"a.md": 1, "b.md": 1}
    ]


def test_one_numeric_id_under_relevant_is_no_grade(tmp_path):
    """The next row lists two of them."""
    text = "question,doc_id,relevant\nWhy?,3,17\nWhen?,3,17;18\n"

    assert [one.grades for one in read(write(tmp_path / "set.csv", text))] == [
        {"17": 1},
        {"17": 1, "18": 1},
    ]


def test_documents_without_grades_are_listed(tmp_path):
    """Several stand in one cell."""
    text = "question,doc_id\nWhy?,a.md;b.md\n"

    assert [one.grades for one in read(write(tmp_path / "set.csv", text))] == [
        {"a.md": 1, "b.md": 1}
    ]


def test_quote_without_a_grade_answers(tmp_path):
    """Who quotes a passage means that it holds the answer, in lists as in tables."""
    text = '[{"query": "Why?", "relevant": [{"doc_id": "a.md", "quote": "for so"}]}]'

    [found] = read(write(tmp_path / "s.json", text))

    assert found.graded_quotes == (GradedQuote("a.md", "for so", 3),)


@pytest.mark.parametrize(
    "text",
    [
        '[{"query": "Why?", "quote": "for so"}]',
        '[{"query": "Why?", "relevant": [{"quote": "for so", "grade": 3}]}]',
    ],
)
def test_quote_without_a_document_is_kept_to_be_looked_up(tmp_path, text):
    """A label must not vanish because its document is not named."""
    [found] = read(write(tmp_path / "s.json", text))

    assert found.graded_quotes == (GradedQuote("", "for so", 3),)


def test_explanation_without_a_document_is_passed_over(tmp_path):
    """Evidence means many things in the files of others."""
    text = '[{"query": "Why?", "evidence": "It says so.", "relevant": ["a"]}]'

    path = write(tmp_path / "s.json", text)

    assert read(path) == [ImportedQuery(human("made-4"), {"a": 1})]
    assert read_queries(path, id_of).left_out == (
        f"{path}: not read in 1 query: 'evidence' that names no document may be an explanation; "
        "what is called quote is looked up in all documents",
    )


@pytest.mark.parametrize("evidence", [{"doc_id": "a.md"}, [{"source": "a.md", "page": 3}]])
def test_evidence_without_a_quote_is_told(tmp_path, evidence):
    """It names documents, and was called an explanation that names none."""
    text = json.dumps([{"query": "Why?", "evidence": evidence, "relevant": ["a"]}])
    path = write(tmp_path / "s.json", text)

    assert read_queries(path, id_of).left_out == (
        f"{path}: not read in 1 query: 'evidence' without a quote; expected "
        '{"doc_id": "a.md", "quote": "…"} for each passage, with its words; documents that are '
        "relevant as a whole go into relevant_doc_ids",
    )


@pytest.mark.parametrize(
    ("word", "difficulty"),
    [("Simple", "easy"), ("2", "medium"), (3, "hard"), ("complex", "hard"), ("", None)],
)
def test_words_of_other_tools_for_difficulty_are_known(tmp_path, word, difficulty):
    """Slices by difficulty should hold the whole set."""
    text = json.dumps([{"query": "A?", "difficulty": word}])

    assert read(write(tmp_path / "s.json", text))[0].query.difficulty == difficulty


@pytest.mark.parametrize(
    ("fields", "behaviour", "answerable"),
    [
        ({}, "answer", True),
        ({"expected_behaviour": "refuse"}, "abstain", False),
        ({"expected_behavior": "Clarify"}, "clarify", True),
        ({"answerable": "no"}, "abstain", False),
        ({"type": "false premise"}, "correct_premise", True),
        ({"type": "ambiguous", "answerable": True}, "clarify", True),
        ({"type": "unanswerable", "answerable": True}, "answer", True),
        ({"type": "ambiguous", "expected_behaviour": "answer"}, "answer", True),
    ],
)
def test_expected_behaviour_is_kept_and_goes_with_answerable(
    tmp_path, fields, behaviour, answerable
):
    """A refusal is right for some questions and wrong for the others."""
    query = read(write(tmp_path / "s.json", json.dumps([{"query": "A?", **fields}])))[0].query

    assert (query.expected_behaviour, query.answerable) == (behaviour, answerable)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "Why?,So.,a.md,so,mean,\n", "set.csv:2: difficulty: expected one of easy, medi"),
        (HEADER + "Why?,So.,a.md\n", "set.csv:2: expected 6 cells as in the header, got 3"),
        ("question,answer,answer\nWhy?,a,b\n", "set.csv:1: column 'answer' comes twice"),
        ("frage,antwort\nWarum?,So.\n", "has none of the shapes accepted"),
        ("question,doc_id,grade\nWhy?,a,2\nWhy?,a,3\n", "set.csv:3: 'a': expected grade 2 as in"),
        ("question,answer\nWhy?,So.\nWhy?,No.\n", "set.csv:3: query 'made-4' comes twice, first"),
        ("question,answer,doc_id\nWhy?,So.,a\nWhy?,No.,b\n", "set.csv:3: query 'made-4' comes tw"),
        ("question,doc_id,quote,grade\nWhy?,a,so,4\n", "grade: expected 0, 1, 2 or 3, got '4'"),
        ("question,answerable,behaviour\nA?,yes,abstain\n", "behaviour: expected another behavio"),
        ("question,answerable,behaviour\nA?,no,answer\n", "behaviour: expected abstain, as ans"),
        ("question,behaviour\nA?,dance\n", "behaviour: expected one of answer, abstain, correct_"),
        ("question,doc_id\nGröße?,a\n".encode("cp1252"), "set.csv:2: byte 2 (0xf6) is not UTF-8"),
        ("question,doc_id\nA?,a\n".encode("utf-16"), "is UTF-16; only UTF-8 is read"),
        (b"PK\x03\x04\x14\x00\x06\x00", "is binary (holds a NUL byte)"),
        ("question,doc_id\n", "set.csv: holds no query"),
    ],
)
def test_faulty_tables_are_refused_with_their_place(tmp_path, text, message):
    """A table made by hand has hand-made faults."""
    with pytest.raises(DataError, match=re.escape(message)):
        read(write(tmp_path / "set.csv", text))


def table(tmp_path, text):
    path = tmp_path / "golden.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_two_expected_answers_that_differ_are_refused(tmp_path):
    """One of them was taken, and nobody knew which."""
    path = table(tmp_path, "question,expected_output,ground_truth\nHow?,a,b\n")

    with pytest.raises(DataError, match="both say expected_answer, and differ"):
        read_queries(path, str)


def test_answer_of_a_system_beside_the_expected_one_is_told(tmp_path):
    """Frameworks call so what a system said; a person may have meant the truth."""
    path = table(tmp_path, "question,expected_output,answer\nHow?,a,b\n")

    found = read_queries(path, str)

    assert found.queries[0].query.expected_answer == "a"
    assert any("it is what a system said" in note for note in found.left_out)


def test_grade_without_a_passage_is_told(tmp_path):
    """It says nothing, and whoever wrote it meant something."""
    found = read_queries(table(tmp_path, "question,answer,doc_id,grade\nHow?,5,,9\n"), str)

    assert any("a grade stands beside no passage" in note for note in found.left_out)


def test_id_that_comes_twice_is_told_with_the_first_question(tmp_path):
    """The message named the line of one question and the words of the other."""
    path = table(tmp_path, "id,question\n1,Who?\n1,What?\n")

    with pytest.raises(DataError, match=r"golden.csv:3.*first in .*golden.csv:2 \('Who\?'\)"):
        read_queries(path, str)
