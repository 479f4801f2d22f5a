"""Who gave the grades of a file, as far as it says so."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from backports import zstd

from ragforge.errors import DataError
from ragforge.files.formats.qrels import read_judged_qrels, read_qrels
from ragforge.files.set.opening import create_dataset
from ragforge.records import Judgment, Query, RetrievedText, text_id
from ragforge.records.judgments import GradeOrigin

WANTED = {"q1": {"d7": 2, "d8": 0}, "q2": {"d1": 1}}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qrels.txt", "q1 0 d7 2\nq1 0 d8 0\nq2 0 d1 1\n"),
        ("qrels.trec", "q1\t0\td7\t2\nq2\t0\td1\t1\nq1\t0\td8\t0\n"),
        ("test.tsv", "q1 0 d7 2\nq1 0 d8 0\nq2 0 d1 1\n"),
        ("test.tsv", "query-id\tcorpus-id\tscore\nq1\td7\t2\nq1\td8\t0\nq2\td1\t1\n"),
        ("qrels.csv", "query_id,chunk_id,grade\nq1,d7,2\nq1,d8,0\nq2,d1,1\n"),
        ("qrels.csv", "qid;docno;Relevance\nq1;d7;2.0\nq1;d8;0\n\nq2;d1;1\n"),
        ("qrels", "query_id,doc_id,rel\nq1,d7,2\nq1,d8,0\nq2,d1,1\n"),
        (
            "judgments.jsonl",
            '{"query_id": "q1", "chunk_id": "d7", "grade": 2, "reasoning": "so"}\n'
            '{"query_id": "q1", "chunk_id": "d8", "grade": 0}\n\n'
            '{"query_id": "q2", "chunk_id": "d1", "grade": 1}\n',
        ),
        ("qrels.json", '{"q1": {"d7": 2, "d8": 0}, "q2": {"d1": 1}}'),
        (
            "set.json",
            '{"version": 1, "queries": ['
            '{"id": "q1", "query": "a", "relevant_doc_ids": ["d7"],'
            ' "graded_relevance": {"d7": 2, "d8": 0}},'
            '{"id": "q2", "query": "b", "graded_relevance": {"d1": 1}}]}',
        ),
        (
            "set.json",
            '[{"id": "q1", "relevantDocIds": ["d7"], "gradedRelevance": {"d7": 2, "d8": 0}},'
            '{"id": "q2", "relevanceScores": {"d1": 1}}]',
        ),
        (
            "set.jsonl",
            '{"query": "q1", "relevant": [{"id": "d7", "grade": 2}, {"id": "d8", "grade": 0}]}\n'
            '{"query": "q2", "relevant": {"d1": 1}}\n',
        ),
        (
            "set.csv",
            'id,query,graded_relevance\nq1,a,"{""d7"": 2, ""d8"": 0}"\nq2,b,"{""d1"": 1}"\n',
        ),
    ],
)
def test_shapes_of_the_field_are_read_as_they_are(tmp_path, name, text):
    """Nobody should have to convert a file before the first number."""
    assert read_qrels(write(tmp_path / name, text)) == WANTED


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.trec", "q 0 a 4\nq 0 b -1\n"),
        ("q.csv", "query_id,chunk_id,grade\nq,a,4\nq,b,-1\n"),
        ("q.tsv", "query-id\tcorpus-id\tscore\nq\ta\t4\nq\tb\t-1\n"),
        ("q.json", '{"q": {"a": 4, "b": -1}}'),
        ("q.json", '[{"query": "q", "graded_relevance": {"a": 4, "b": -1}}]'),
        (
            "q.jsonl",
            '{"query_id": "q", "chunk_id": "a", "grade": 4}\n'
            '{"query_id": "q", "chunk_id": "b", "grade": -1}\n',
        ),
    ],
)
def test_grades_of_any_scale_are_read_from_every_format(tmp_path, name, text):
    """CSV and JSON Lines were refused where TREC and JSON of the same data were taken."""
    assert read_qrels(write(tmp_path / name, text)) == {"q": {"a": 4, "b": -1}}


@pytest.mark.parametrize(
    "text",
    [
        '[{"query": "q1", "relevant": ["d7", "d8"]}]',
        '[{"question": "q1", "relevant_doc_ids": ["d7", "d8"], "category": "faq"}]',
        '{"test_cases": [{"question": "q1", "relevantDocIds": ["d7", "d8"]}]}',
        '{"q1": ["d7", "d8"]}',
        '{"query": "q1", "relevant": ["d7", "d8"]}\n',
    ],
)
def test_lists_without_grades_mean_grade_1(tmp_path, text):
    """A list says relevant or not, and a file of lists is binary."""
    assert read_qrels(write(tmp_path / "golden.json", text)) == {"q1": {"d7": 1, "d8": 1}}


def test_listed_ids_of_a_graded_file_count_as_relevant(tmp_path):
    """Grade 1 is not relevant where grades go above 1, and the file says these ids are."""
    text = (
        '[{"id": "q1", "relevant_doc_ids": ["a", "b"], "graded_relevance": {"a": 3, "c": 1}},'
        '{"id": "q2", "relevant_doc_ids": ["d"]}]'
    )

    assert read_qrels(write(tmp_path / "set.json", text)) == {
        "q1": {"a": 3, "b": 2, "c": 1},
        "q2": {"d": 2},
    }


def test_grade_of_a_listed_id_wins_over_the_list(tmp_path):
    """The grade says more than the list does."""
    text = '[{"id": "q", "relevant_doc_ids": ["a"], "graded_relevance": {"a": 0}}]'

    assert read_qrels(write(tmp_path / "set.json", text)) == {"q": {"a": 0}}


def test_a_grade_of_a_row_is_that_of_all_it_lists(tmp_path):
    """It was dropped, and what nobody finds relevant counted as relevant."""
    text = "query_id,relevant_doc_ids,grade\nq1,a;b,3\nq2,c,0\n"

    assert read_qrels(write(tmp_path / "set.csv", text)) == {"q1": {"a": 3, "b": 3}, "q2": {"c": 0}}


def test_pairs_without_a_column_of_grades_are_relevant(tmp_path):
    """Such tables list what is relevant."""
    file = write(tmp_path / "qrels.csv", "query_id,chunk_id\nq1,a\nq1,b\n")

    assert read_qrels(file) == {"q1": {"a": 1, "b": 1}}


def test_query_without_relevant_chunks_is_there(tmp_path):
    """It is reported as unjudged, so it must not vanish."""
    file = write(tmp_path / "set.json", '[{"id": "q", "relevant": []}]')

    assert read_qrels(file) == {"q": {}}


def test_failed_judgment_is_no_grade(tmp_path):
    """A judgment that failed must not become grade 0."""
    file = write(tmp_path / "j.jsonl", '{"query_id": "q", "chunk_id": "c", "grade": null}\n')

    assert read_qrels(file) == {"q": {"c": None}}


def test_trec_files_with_mixed_blanks_comments_and_windows_line_ends_are_read(tmp_path):
    """trec_eval reads them, and files of thirty years look like that."""
    file = write(
        tmp_path / "qrels.txt", b"# x\r\n1\t0\ta\t1\t\r\n\r\n 1 0  b\t 0  \r\n# n\n1 0 c 2"
    )

    assert read_qrels(file) == {"1": {"a": 1, "b": 0, "c": 2}}


def test_number_sign_within_ids_is_no_comment(tmp_path):
    """Segment ids of MS MARCO v2.1 have one in the middle."""
    assert read_qrels(write(tmp_path / "q.txt", "1 0 doc_00#4_16 1\n")) == {"1": {"doc_00#4_16": 1}}


def test_trec_grades_are_any_whole_number(tmp_path):
    """Spam has grade -2 in some collections, and others grade to 10."""
    file = write(tmp_path / "q.txt", "1 0 a -2\n1 0 b 10\n1 0 c +3\n")

    assert read_qrels(file) == {"1": {"a": -2, "b": 10, "c": 3}}


def test_no_break_space_belongs_to_an_id(tmp_path):
    """Columns stand between ASCII blanks; an id cut in two would judge another chunk."""
    file = write(tmp_path / "q.txt", "größe 0 a\u00a0b 1\n")

    assert read_qrels(file) == {"größe": {"a\u00a0b": 1}}


@pytest.mark.parametrize("separator", ["\x1c", "\x1d", "\x1e", "\x1f"])
def test_separators_that_are_no_blanks_belong_to_an_id(tmp_path, separator):
    """A run's reader takes them for a part of the id, and the two ids must be one."""
    file = write(tmp_path / "q.txt", f"1 0 a{separator}b 1\n1 0 c 2\n")

    assert read_qrels(file) == {"1": {f"a{separator}b": 1, "c": 2}}


def test_byte_order_mark_is_no_part_of_the_first_id(tmp_path):
    """Windows editors put one there, and the first query would match nothing."""
    assert read_qrels(write(tmp_path / "q.txt", "\ufeff1 0 a 1\n")) == {"1": {"a": 1}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qrels.txt.gz", b"1 0 a 1\n"),
        ("j.jsonl.gz", b'{"query_id": 1, "chunk_id": "a", "grade": 1}\n'),
        ("qrels.trec.zst", b"1 0 a 1\n"),
        ("j.jsonl.zst", b'{"query_id": 1, "chunk_id": "a", "grade": 1}\n'),
    ],
)
def test_packed_files_are_unpacked(tmp_path, name, text):
    """Judgments are published packed."""
    pack = zstd.compress if name.endswith(".zst") else gzip.compress

    assert read_qrels(write(tmp_path / name, pack(text))) == {"1": {"a": 1}}


def test_pipe_is_read_once_and_whole():
    """Shells give `<(zcat qrels.gz)` as a file that cannot be opened a second time."""
    reading, writing = os.pipe()
    os.write(writing, b"1 0 a 1\n1 0 b 0\n")
    os.close(writing)

    found = read_qrels(Path(f"/dev/fd/{reading}"))

    os.close(reading)
    assert found == {"1": {"a": 1, "b": 0}}


def test_numbers_become_ids(tmp_path):
    """The run that names query "1" must find the query 1."""
    text = '[{"id": 1, "relevant_doc_ids": [2]}]'

    assert read_qrels(write(tmp_path / "q.json", text)) == {"1": {"2": 1}}


def test_test_split_of_a_beir_folder_is_read(tmp_path):
    """It is the one that results are published on."""
    write(tmp_path / "qrels" / "train.tsv", "query-id\tcorpus-id\tscore\nq0\td\t1\n")
    write(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\td\t1\n")

    assert read_qrels(tmp_path) == {"q1": {"d": 1}}


def test_only_split_of_a_beir_folder_is_read(tmp_path):
    """Some collections come with dev alone."""
    write(tmp_path / "qrels" / "dev.tsv", "query-id\tcorpus-id\tscore\nq1\td\t1\n")

    assert read_qrels(tmp_path) == {"q1": {"d": 1}}


def test_splits_without_test_have_to_be_chosen(tmp_path):
    """Taking one of them silently would give numbers for another set."""
    write(tmp_path / "qrels" / "dev.tsv", "")
    write(tmp_path / "qrels" / "train.tsv", "")

    with pytest.raises(DataError, match=r"name one of qrels/dev\.tsv, qrels/train\.tsv"):
        read_qrels(tmp_path)


def test_judgments_of_a_dataset_are_read(tmp_path):
    """The folder is how users name a dataset."""
    row = {"query_id": "q", "chunk_id": "c", "grade": 3}
    write(tmp_path / "judgments.jsonl", json.dumps(row))

    assert read_qrels(tmp_path) == {"q": {"c": 3}}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.txt", "", "q.txt: is empty"),
        ("q.txt", "# nothing\n\n", "q.txt: is empty"),
        ("q.jsonl", "", "q.jsonl: is empty"),
        ("q.csv", "query_id,chunk_id,grade\n", "q.csv: holds no judgments"),
        ("q.txt", "1 0 a x\n", "q.txt:1: grade: expected a whole number, got 'x'"),
        ("q.txt", "1 0 a 1.7\n", "q.txt:1: grade: expected a whole number, got '1.7'"),
        ("q.txt", "1 0 a nan\n", "q.txt:1: grade: expected a whole number, got 'nan'"),
        ("q.txt", "1 0 a 1_0\n", "q.txt:1: grade: expected a whole number, got '1_0'"),
        ("q.txt", "1 0 a 1\n1 0 a 0\n", "q.txt:2: query '1': chunk 'a' comes twice"),
        ("q.txt", "1 0 a 1\n1 0 b\n", "q.txt:2: expected 4 columns (query_id 0 chunk_id grade)"),
        ("q.txt", "1 0 a 1 2\n", "q.txt:1: expected 4 columns"),
        ("q.txt", b"1 0 a 1\n1 0 \xff 1\n", "q.txt:2: byte 4 (0xff) is not UTF-8"),
        ("q.txt", b"1 0 a 1\n\0\0\0\0", "q.txt:2: is binary"),
        ("q.txt", "1 0 a 1\n".encode("utf-16"), "q.txt:1: is UTF-16"),
        ("q.csv", "query_id,chunk_id,grade\nq1,a\n", "q.csv:2: expected 3 cells"),
        ("q.csv", "query_id,chunk_id,grade\nq1,a,1,2\n", "q.csv:2: expected 3 cells"),
        ("q.csv", "query_id,chunk_id,grade\nq1,a,\n", "q.csv:2: grade: expected a whole number"),
        ("q.csv", 'query_id,chunk_id,grade\nq1,"a,1\n', "q.csv:2: is no line of a table"),
        ("q.csv", "query_id,chunk_id,chunk_id\nq1,a,1\n", "q.csv:1: column 'chunk_id' comes twice"),
        ("q.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t0.5\n", "q.tsv:2: score: expected a whole"),
        ("q.json", '{"q1": {"a": 1, "a": 0}}', "q.json: 'a' comes twice in one object"),
        ("q.json", '{"q1": ["a", "a"]}', "q.json: 'q1': relevant: expected every id once, got 'a'"),
        ("q.json", '{"q1": {"a": 1.7}}', "relevant: expected a whole number, got 1.7"),
        ("q.json", '{"q1": {"a": true}}', "relevant: expected a whole number, got True"),
        ("q.json", '{"q1": {"a": NaN}}', "q.json: NaN is not a JSON number"),
        ("q.json", '{"q1": {"a": 1}', "q.json:1: is not whole JSON"),
        ("q.json", '{"queries": [{"id": "q1"}, 3]}', "q.json: queries: item 2: expected an object"),
        (
            "q.json",
            '[{"id": "q", "relevant": "a", "Relevant": []}]',
            "are one field; leave one out",
        ),
        ("q.json", '[{"id": "q", "relevant": 3}]', "relevant: expected a list of ids or grades"),
        ("q.json", '[{"id": "q", "relevant": [null]}]', "relevant: expected an id"),
        ("q.json", '[{"id": 1.5, "relevant": []}]', "id: expected an id"),
        ("q.json", '[{"id": "q", "relevant": ["\\ud800"]}]', "relevant: expected an id"),
        ("q.json", "[" * 100_000, "q.json:1: is nested too deeply"),
        (
            "q.json",
            '[{"id": "q", "relevant": []}, {"id": "q", "relevant": []}]',
            "q.json: item 2: query 'q' comes twice",
        ),
        (
            "q.json",
            '[{"id": "q", "relevant": []}, {"id": "r", "relevent": []}]',
            "q.json: item 2: relevant: expected one of relevant_chunk_ids",
        ),
        (
            "q.json",
            '[{"id": "q", "relevant": [{"doc_id": "a.md", "quote": "x", "grade": 3}]}]',
            "item 1: relevant: expected ids, got quotes",
        ),
        (
            "q.json",
            '[{"id": "q", "relevant": [{"id": "a", "grade": 3}], "graded_relevance": {"a": 1}}]',
            "graded_relevance: expected grade 3 as in relevant, got 1",
        ),
        ("j.jsonl", '{"query_id": "q", "chu', "j.jsonl:1: is not one complete JSON object"),
        ("j.jsonl", "[1]\n", "j.jsonl:1: expected a JSON object, got [1]"),
        (
            "j.jsonl",
            '{"query_id": "q", "chunk_id": "c", "grade": 7, "source": "judge"}\n',
            "j.jsonl:1: grade: expected 0, 1, 2 or 3, got 7",
        ),
        (
            "j.jsonl",
            '{"query_id": "q", "chunk_id": "c", "grade": 1}\n'
            '{"query_id": "q", "chunk_id": "c", "grade": 1}\n',
            "j.jsonl:2: query 'q': chunk 'c' comes twice",
        ),
        (
            "j.jsonl",
            '{"query_id": "q", "chunk_id": "c", "grade": 1}\n{"query_id": "q", "chunk_id": "d"}\n',
            "j.jsonl:2: grade: expected one of grade, relevance",
        ),
        (
            "j.jsonl",
            '{"query_id": "q", "chunk_id": "c"}\n{"query_id": "q", "chunk_id": "d", "grade": 1}\n',
            "j.jsonl:2: grade: expected grades in all rows or in none, got 1",
        ),
        (
            "j.jsonl",
            '{"query_id": "q", "chunk_id": "c", "grade": 2.9999999999999999999}\n',
            "j.jsonl:1: grade: expected a whole number, got 2.9999999999999999999",
        ),
        (
            "q.csv",
            "query_id,chunk_id,grade\nq,c,2.9999999999999999999\n",
            "q.csv:2: grade: expected a whole number, got '2.9999999999999999999'",
        ),
        (
            "j.json",
            '{"queries": [{"id": "q", "query": "x", "graded_relevance": {"c": 1e-400}}]}',
            "expected a whole number, got 1e-400",
        ),
        ("q.txt.gz", b"1 0 a 1\n", "q.txt.gz: is not a whole .gz file"),
        (
            "q.txt.gz",
            gzip.compress(b"1 0 a 1\n", mtime=0)[:-9],
            "q.txt.gz: is not a whole .gz file",
        ),
        ("q.txt.zst", b"1 0 a 1\n", "q.txt.zst: is not a whole .zst file"),
        ("q.txt.zst", zstd.compress(b"1 0 a 1\n")[:-3], "q.txt.zst: is not a whole .zst file"),
        (
            "q.txt.xz",
            b"x",
            "q.txt.xz: .xz is not read, only .gz and .zst are; unpack it first (unxz)",
        ),
    ],
)
def test_faults_are_refused_with_their_place(tmp_path, name, text, message):
    """Peers read these as grade 0, as the last of two, or stop without a place."""
    file = write(tmp_path / name, text)

    with pytest.raises(DataError, match=re.escape(message)):
        read_qrels(file)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.txt", "hello\n"),
        ("q.tsv", "q1\td7\t2\n"),
        ("q.csv", "a,b\n1,2\n"),
        ("q.json", '{"name": "x"}'),
        ("q.json", '"x"'),
        ("q.jsonl", '{"id": "q1", "text": "?"}\n'),
    ],
)
def test_unknown_shape_is_answered_with_those_accepted(tmp_path, name, text):
    """The message is what the user can act on without opening a manual."""
    file = write(tmp_path / name, text)

    with pytest.raises(DataError, match=r"accepted:\n  TREC qrels: q1 0 d7 2\n  CSV"):
        read_qrels(file)


def test_missing_file_is_named(tmp_path):
    """A typing error in a path is the most common fault."""
    with pytest.raises(DataError, match=r"none\.txt: cannot be read: No such file"):
        read_qrels(tmp_path / "none.txt")


def test_folder_without_qrels_is_refused(tmp_path):
    """The message says what a folder has to hold."""
    with pytest.raises(DataError, match=r"expected a folder with qrels/test\.tsv or judgments"):
        read_qrels(tmp_path)


LISTED = '{"queries": [{"id": "q", "query": "?", "relevant_doc_ids": ["a", "b"], %s}]}'


def test_a_threshold_that_explains_the_lists_counts(tmp_path):
    """The author calls a chunk of grade 1 relevant."""
    text = LISTED % '"graded_relevance": {"a": 3, "b": 1, "c": 0}'

    found = read_judged_qrels(write(tmp_path / "set.json", text))

    assert (found.rel_threshold, found.relevant) == (1, {})
    assert found.reading == "relevant: grade >= 1, as the lists of relevant ids have it"


def test_lists_that_no_threshold_explains_are_kept_beside_grades(tmp_path):
    """Both are the author's word; a listed id without a grade gets none."""
    text = LISTED % '"graded_relevance": {"a": 1, "c": 3}'

    found = read_judged_qrels(write(tmp_path / "set.json", text))

    assert found.grades == {"q": {"a": 1, "c": 3}}
    assert (found.rel_threshold, found.relevant) == (None, {"q": ("a", "b")})


def test_a_column_that_comes_twice_is_told_by_its_start(tmp_path):
    """A header may be as long as a file; the message is for a reader."""
    name = "c" * 500
    file = write(tmp_path / "q.csv", f"{name},{name}\n1,2\n")

    with pytest.raises(DataError, match=r"q\.csv:1: column 'c{79}… comes twice"):
        read_qrels(file)


@pytest.mark.parametrize(
    "column",
    ["is_relevant", "judgment", "Judgement", "gain", "relevance_label", "human_label", "value"],
)
def test_grades_of_pairs_are_known_by_the_names_people_use(tmp_path, column):
    """Under an unknown name each pair would count as relevant."""
    file = write(tmp_path / "q.csv", f"query_id,doc_id,{column}\nq1,a,1\nq1,b,0\n")

    assert read_qrels(file) == {"q1": {"a": 1, "b": 0}}


def test_a_pair_may_say_whether_it_is_relevant(tmp_path):
    """One cell of ids and one of yes and no have the same name; the chunk beside it tells."""
    file = write(tmp_path / "q.csv", "query_id,doc_id,relevant\nq1,a,True\nq1,b,no\nq1,c,1\n")

    assert read_qrels(file) == {"q1": {"a": 1, "b": 0, "c": 1}}


@pytest.mark.parametrize("value", ["0", "0.5", "false"])
def test_a_column_that_may_be_the_grade_is_not_passed_over(tmp_path, value):
    """Each pair would count as relevant, those of grade 0 too."""
    file = write(tmp_path / "q.csv", f"query_id,doc_id,verdict\nq1,a,ok\nq1,b,{value}\n")

    with pytest.raises(DataError, match=r"q\.csv:3: 'verdict': may be the grade of the pair; name"):
        read_qrels(file)


def test_pairs_without_numbers_are_relevant(tmp_path):
    """A list of pairs says which chunks are relevant, whatever texts stand beside them."""
    text = "id,query_id,doc_id,title,note\n1,q1,a,1984,fine\n2,q1,b,7,\n"

    assert read_qrels(write(tmp_path / "q.csv", text)) == {"q1": {"a": 1, "b": 1}}


def test_grades_beside_a_list_are_known_by_their_short_name(tmp_path):
    """Passed over, all that is listed would gain the same."""
    text = '{"id": "q", "query": "?", "relevant": ["a", "b"], "grades": {"a": 3, "b": 1}}\n'

    assert read_qrels(write(tmp_path / "q.jsonl", text)) == {"q": {"a": 3, "b": 1}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            '"relevant_doc_ids": ["a"], "relevantDocs": ["b"]',
            "q.json: item 1: 'relevant_doc_ids' and 'relevantDocs' both say relevant, and differ",
        ),
        (
            '"grades": {"a": 3}, "graded_relevance": {"a": 2}',
            "'grades' and 'graded_relevance' both say graded_relevance, and differ",
        ),
        (
            '"relevant": ["a"], "partially_relevant": ["b"]',
            "partially_relevant: says how relevant passages are, and no grade; expected",
        ),
    ],
)
def test_no_list_or_map_of_a_row_is_passed_over(tmp_path, fields, message):
    """The second of two would be lost in silence."""
    file = write(tmp_path / "q.json", f'[{{"id": "q", "query": "?", {fields}}}]')

    with pytest.raises(DataError, match=re.escape(message)):
        read_qrels(file)


def test_a_list_decides_though_grades_name_other_ids(tmp_path):
    """A near miss of grade 1 is not relevant where the list says what is."""
    text = LISTED % '"graded_relevance": {"c": 1, "d": 0}'

    found = read_judged_qrels(write(tmp_path / "set.json", text))

    assert found.grades == {"q": {"a": 2, "b": 2, "c": 1, "d": 0}}
    assert (found.rel_threshold, found.relevant) == (2, {})


def test_a_list_without_ids_says_that_nothing_is_relevant(tmp_path):
    """Its author looked, and graded the best there is."""
    text = '{"queries": [{"id": "q", "query": "?", "relevant_ids": [], "grades": {"c": 3}}]}'

    found = read_judged_qrels(write(tmp_path / "set.json", text))

    assert (found.grades, found.relevant) == ({"q": {"c": 3}}, {"q": ()})


def test_graded_items_of_a_list_are_in_it(tmp_path):
    """Only some of a list may have grades; what has 0 is not relevant."""
    text = '[{"id": "q", "query": "?", "relevant": ["a", %s, %s]}]'
    items = '{"id": "b", "grade": 3}', '{"id": "c", "grade": 0}'

    found = read_judged_qrels(write(tmp_path / "set.json", text % items))

    assert (found.grades, found.rel_threshold) == ({"q": {"a": 2, "b": 3, "c": 0}}, 2)


def test_what_queries_without_a_list_go_by_is_said(tmp_path):
    """Beside lists that no threshold explains, one decides for the others."""
    text = (
        '[{"id": "q", "query": "?", "relevant": ["a"], "grades": {"a": 1, "c": 3}},'
        ' {"id": "r", "query": "!", "grades": {"a": 1, "c": 3}}]'
    )

    found = read_judged_qrels(write(tmp_path / "set.json", text))

    assert found.reading.endswith("nDCG, DCG and ERR; queries without a list go by grade >= 2")


def test_one_text_for_a_list_of_ids_is_refused_in_json(tmp_path):
    """It may be one id with a comma; a cell of a table holds several."""
    text = '[{"id": "q", "query": "?", "relevant_doc_ids": "Smith, John.md"}]'

    with pytest.raises(DataError, match="a list, as one text may be one id or several, got 'Smi"):
        read_qrels(write(tmp_path / "q.json", text))


def test_one_id_needs_no_list(tmp_path):
    """It can be meant in one way alone."""
    text = '[{"id": "q", "query": "?", "relevant_doc_ids": "a.md"}]'

    assert read_qrels(write(tmp_path / "q.json", text)) == {"q": {"a.md": 1}}


LEXICAL = {"kind": "baseline", "model": "offline-lexical-1"}


@pytest.fixture
def judged(tmp_path):
    """Write rows as ragforge writes judgments, and return the file."""

    def write(*rows):
        path = tmp_path / "judged.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
        return path

    return write


def row(chunk_id, **fields):
    return {"query_id": "q1", "chunk_id": chunk_id, "grade": 2, **fields}


def test_rows_say_who_graded(judged):
    """A winner by the baseline's grades must be known for it in a file as well."""
    path = judged(row("a", provenance=LEXICAL), row("b", source="human"), row("c"))

    assert read_judged_qrels(path).origins == {
        ("q1", "a"): GradeOrigin("baseline", "offline-lexical-1"),
        ("q1", "b"): GradeOrigin("human", source="human"),
    }


def test_grades_are_those_without_origins(judged):
    """Who graded changes no grade."""
    path = judged(row("a", provenance=LEXICAL), row("b", provenance=None))

    assert read_judged_qrels(path).grades == read_qrels(path)


@pytest.mark.parametrize("by", ["me", 7, {"kind": None}, {"kind": ["llm"]}])
def test_odd_provenance_is_no_error(judged, by):
    """Files of other tools may hold a field of that name."""
    [found] = read_judged_qrels(judged(row("a", provenance=by))).origins.values()

    assert not found.says_nothing


def test_a_kind_of_grader_that_there_is_none_of_is_refused(judged):
    """It was taken for a bug of ragforge where such a file was imported."""
    path = judged(row("a"), row("b", provenance={"kind": "model", "model": "gpt"}))

    with pytest.raises(
        DataError, match=r"judged\.jsonl:2: provenance\.kind: expected one of llm, "
    ):
        read_judged_qrels(path)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"source": "judge"}, GradeOrigin("")),
        ({"source": "model", "model": "gpt"}, GradeOrigin("llm", "gpt")),
        ({"model": "gpt"}, GradeOrigin("llm", "gpt")),
        ({"provenance": "gpt"}, GradeOrigin("llm", "gpt")),
        ({"source": "human", "model": "Ann"}, GradeOrigin("human", "Ann", source="human")),
    ],
)
def test_a_row_of_a_judge_without_provenance_is_a_judges(judged, said, expected):
    """Its grades passed for people's, which pass gates and name winners."""
    assert read_judged_qrels(judged(row("a", **said))).origins == {("q1", "a"): expected}


def test_the_source_of_a_passage_grades_nothing(judged):
    """Tables say under that name where a text is from."""
    assert read_judged_qrels(judged(row("a", source="help.md"))).origins == {}


def test_a_quote_in_a_chunk_is_a_fact():
    """Whichever rule cut the query out of the text, the chunk holds its answer."""
    assert not GradeOrigin("baseline", "offline-rules-3", source="evidence").says_nothing
    assert GradeOrigin("mock", "m", source="evidence").says_nothing


def test_grades_beyond_the_scale_are_read_as_they_are_and_told(tmp_path):
    """On a scale to 10, 4 is no clear "relevant"; the author may mean 7."""
    path = tmp_path / "qrels.trec"
    path.write_text("q1 0 a 10\nq1 0 b 4\n")
    judged = read_judged_qrels(path)

    assert judged.in_force("auto").reading.startswith("relevant: grade >= 2, and grades reach 10")
    assert judged.in_force(7).reading == ""


def test_grades_that_wait_with_texts_of_no_run_are_in_no_measure_of_a_set(tmp_path):
    """R@10 of a run was 1.0 by the set and 0.5 by its file, after it was cut otherwise."""
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_queries([Query(query_id="q", query="What?")])
    held, gone = text_id("of a run"), text_id("of none")
    made.write_judgments(
        Judgment(query_id="q", chunk_id=name, grade=3, source="human")
        for name in ("c1", gone, held)
    )
    path = made.files / "judgments.jsonl"
    without_texts = read_qrels(path)
    made.write_retrieved_texts([RetrievedText(chunk_id=held, text="of a run")])

    assert (without_texts, read_qrels(path)) == ({"q": {"c1": 3}}, {"q": {"c1": 3, held: 3}})
