import json

import pytest

from ragforge.files.manifest import FileEntry, digest_file
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.generation.source import Prepared
from ragforge.pipeline.intake.importing import import_queries
from ragforge.pipeline.rederiving import rederive_dataset
from ragforge.records import Chunk, Judgment, QuoteGrade, is_text_id, text_id

TEXT = "The fee is ten percent. Parcels arrive in three days. The fee is due at once."
FIRST = "The fee is ten percent."
WHOLE = "Parcels arrive in three days."
LAST = "The fee is due at once."
SENTENCES = (24, 54, len(TEXT))
OF_SENTENCES = {
    "c00-24": (3, "human"),
    "c24-54": (1, "human"),
    f"c54-{len(TEXT)}": (2, "human"),
}


def cut(*ends):
    starts = [0, *ends[:-1]]
    return [
        Chunk(
            chunk_id=f"c{start:02}-{end}",
            doc_id="a.md",
            text=TEXT[start:end],
            start=start,
            end=end,
        )
        for start, end in zip(starts, ends, strict=True)
    ]


@pytest.fixture
def graded(tmp_path):
    """Make a set of one document in one chunk, with quotes that people graded."""

    def make(*quotes):
        dataset = create_dataset(tmp_path / "set", {})
        dataset.write_chunks(cut(len(TEXT)))
        relevant = [{"doc_id": "a.md", "quote": quote, "grade": grade} for quote, grade in quotes]
        path = tmp_path / "golden.json"
        rows = [{"id": "q", "query": "What?", "relevant": relevant}]
        if all(grade < 2 for _, grade in quotes):
            # Of 0 and 1 alone a file tells relevant from not.
            other = {"doc_id": "a.md", "quote": FIRST, "grade": 2}
            rows.append({"id": "other", "query": "Which?", "relevant": [other]})
        path.write_text(json.dumps(rows))
        import_queries(path, dataset, silent, made_by="Ann")
        return dataset

    return make


@pytest.fixture
def rederive(tmp_path):
    """Put other chunks under a set."""

    def run(dataset, *ends):
        path = tmp_path / "new.jsonl"
        path.write_text("".join(f"{chunk.model_dump_json()}\n" for chunk in cut(*ends)))
        entry = FileEntry(sha256=digest_file(path), records=len(ends))
        return rederive_dataset(dataset, Prepared(path, entry))

    return run


def grades(dataset):
    """Return what chunks have; a text of before waits beside them."""
    return {
        item.chunk_id: (item.grade, item.source)
        for item in dataset.judgments()
        if item.query_id == "q" and not is_text_id(item.chunk_id)
    }


@pytest.mark.parametrize("grade", [0, 1, 2, 3])
def test_grade_of_a_quote_follows_it_and_is_not_raised(graded, rederive, grade):
    """A person who gave 2 did not say 3, and who gave 0 did say something."""
    dataset = graded((WHOLE, grade))

    found = rederive(dataset, 24, 54, len(TEXT))

    assert grades(dataset) == {"c24-54": (grade, "human")}
    assert found.n_dropped == 0


def test_chunk_with_a_part_of_a_graded_quote_has_a_part(graded, rederive):
    """It has lost what made the grade a 3."""
    dataset = graded((WHOLE, 3))

    rederive(dataset, 40, len(TEXT))

    assert {grade for grade, _ in grades(dataset).values()} == {2}


def test_doing_it_again_changes_nothing(graded, rederive):
    """An interrupted run is simply repeated."""
    dataset = graded((WHOLE, 3), ("The fee is due at once.", 1))
    rederive(dataset, 24, 54, len(TEXT))
    before = {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")}

    rederive(dataset, 24, 54, len(TEXT))

    assert {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")} == before


def test_graded_quote_that_stands_twice_follows_its_own_place(graded, rederive):
    """`The fee is` opens two sentences; the label is of one of them."""
    dataset = graded(("The fee is", 1))

    rederive(dataset, 24, 54, len(TEXT))

    assert grades(dataset) == {"c00-24": (1, "human")}


def test_grade_whose_words_stand_nowhere_stays_with_a_chunk_that_reads_the_same(graded, rederive):
    """People also write in their own words why a chunk is relevant."""
    dataset = graded((WHOLE, 3))
    own = Judgment(
        query_id="q", chunk_id=f"c00-{len(TEXT)}", grade=1, source="human", evidence="as said above"
    )
    dataset.write_judgments([own])

    rederive(dataset, len(TEXT))

    assert dataset.judgments() == [own]


def test_quotes_that_met_in_one_chunk_part_with_the_grades_that_each_was_given(graded, rederive):
    """Of three grades the highest stood, and its quote or a rule gave it to the other two."""
    dataset = graded((FIRST, 3), (WHOLE, 1), (LAST, 2))
    rederive(dataset, *SENTENCES)
    assert grades(dataset) == OF_SENTENCES

    rederive(dataset, len(TEXT))
    assert grades(dataset) == {f"c00-{len(TEXT)}": (3, "human")}
    rederive(dataset, *SENTENCES)

    assert grades(dataset) == OF_SENTENCES


def test_a_third_cut_has_the_grades_of_the_first(graded, rederive):
    """No chunk of it reads as one of before: the quotes alone tell."""
    dataset = graded((FIRST, 3), (WHOLE, 1), (LAST, 2))
    rederive(dataset, 54, len(TEXT))
    rederive(dataset, len(TEXT))

    rederive(dataset, 25, 55, len(TEXT))

    assert grades(dataset) == {
        "c00-25": (3, "human"),
        "c25-55": (1, "human"),
        f"c55-{len(TEXT)}": (2, "human"),
    }


def test_import_keeps_what_was_given_to_each_quote_of_a_chunk(graded):
    """The chunk has the highest; what the others were given is needed where they stand alone."""
    dataset = graded((FIRST, 1), (WHOLE, 3))

    [judgment] = dataset.judgments()

    assert (judgment.grade, judgment.evidence) == (3, WHOLE)
    assert judgment.quote_grades == (
        QuoteGrade(quote=WHOLE, grade=3),
        QuoteGrade(quote=FIRST, grade=1),
    )


@pytest.mark.parametrize("grade", [0, 1, 2, 3])
def test_chunk_that_holds_all_of_a_quote_again_has_the_grade_given(graded, rederive, grade):
    """That its pieces had a part says nothing of the whole."""
    dataset = graded((WHOLE, grade))
    rederive(dataset, 40, len(TEXT))
    assert {given for given, _ in grades(dataset).values()} == {min(grade, 2)}

    rederive(dataset, 24, 54, len(TEXT))

    assert grades(dataset) == {"c24-54": (grade, "human")}


def test_a_persons_grade_of_a_piece_stands_where_the_piece_does(graded, rederive):
    """Derived grades give way to it, and it says nothing of the whole quote."""
    dataset = graded((WHOLE, 3))
    rederive(dataset, 40, len(TEXT))
    own = Judgment(query_id="q", chunk_id="c00-40", grade=1, source="human")
    dataset.write_judgments([own, *(j for j in dataset.judgments() if j.chunk_id != "c00-40")])
    rederive(dataset, 24, 54, len(TEXT))
    assert grades(dataset) == {"c24-54": (3, "human")}

    rederive(dataset, 40, len(TEXT))

    assert grades(dataset) == {"c00-40": (1, "human"), f"c40-{len(TEXT)}": (2, "human")}


def test_grade_of_a_quote_waits_with_the_text_too(graded, rederive):
    """A run may hold the text; what the person gave goes before what a rule says of it."""
    dataset = graded((WHOLE, 2))

    rederive(dataset, 24, 54, len(TEXT))

    given = {item.chunk_id: (item.grade, item.source) for item in dataset.judgments()}
    assert given[text_id(TEXT)] == (2, "human")


def test_a_quote_that_is_gone_keeps_its_grade_beside_one_that_is_there(graded, rederive):
    """Two quotes of one chunk are not one: the lost one comes back with the text."""
    dataset = graded((WHOLE, 3), (LAST, 1))

    found = rederive(dataset, 24, 54)

    assert grades(dataset) == {"c24-54": (3, "human")}
    assert found.n_dropped == 1
    rederive(dataset, len(TEXT))
    rederive(dataset, *SENTENCES)
    assert grades(dataset) == {"c24-54": (3, "human"), f"c54-{len(TEXT)}": (1, "human")}


def test_a_file_that_grades_quotes_anew_counts_before_texts_of_before(graded, rederive, tmp_path):
    """The texts had come back with what another file had said."""
    dataset = graded((FIRST, 3), (WHOLE, 1), (LAST, 2))
    rederive(dataset, *SENTENCES)
    rederive(dataset, len(TEXT))
    quotes = ((FIRST, 1), (WHOLE, 3), (LAST, 2))
    relevant = [{"doc_id": "a.md", "quote": quote, "grade": grade} for quote, grade in quotes]
    path = tmp_path / "better.json"
    path.write_text(json.dumps([{"id": "q", "query": "What?", "relevant": relevant}]))
    import_queries(path, dataset, silent, made_by="Bo")

    rederive(dataset, *SENTENCES)

    assert grades(dataset) == {
        "c00-24": (1, "human"),
        "c24-54": (3, "human"),
        f"c54-{len(TEXT)}": (2, "human"),
    }
    assert text_id(FIRST) not in {item.chunk_id for item in dataset.judgments()}


def test_a_file_that_grades_other_quotes_leaves_texts_of_before(graded, rederive, tmp_path):
    """What it does not say stays."""
    dataset = graded((FIRST, 3), (WHOLE, 1))
    rederive(dataset, 24, len(TEXT))
    rederive(dataset, len(TEXT))
    relevant = [{"doc_id": "a.md", "quote": FIRST, "grade": 2}]
    path = tmp_path / "better.json"
    path.write_text(json.dumps([{"id": "q", "query": "What?", "relevant": relevant}]))
    import_queries(path, dataset, silent, made_by="Bo")

    rederive(dataset, 24, len(TEXT))

    assert grades(dataset) == {"c00-24": (2, "human"), f"c24-{len(TEXT)}": (1, "human")}
