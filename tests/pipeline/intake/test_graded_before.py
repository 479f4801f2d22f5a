"""Grades that come for pairs which somebody graded before."""

import pytest

from ragforge.errors import UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.intake.importing import import_queries
from ragforge.pipeline.intake.runs_and_qrels import import_qrels
from ragforge.records import Chunk, Judgment, Provenance, Query

GPT = "q1 0 c1 3\nq1 0 c2 0\nq2 0 c3 2\n"
PART = "q1 0 c1 1\nq1 0 c2 0\n"
CLAUDE = "q1 0 c1 1\nq1 0 c2 0\nq2 0 c2 3\n"


@pytest.fixture
def notes():
    """What was told."""
    return []


@pytest.fixture
def dataset(tmp_path):
    """Two queries on three chunks."""
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        Chunk(chunk_id=name, doc_id=f"{name}.md", text=f"Text {name}.")
        for name in ("c1", "c2", "c3")
    )
    made.write_queries(Query(query_id=name, query=f"What is {name}?") for name in ("q1", "q2"))
    return made


@pytest.fixture
def take(tmp_path, dataset, notes):
    """Imports grades, and returns what is said of each pair and by whom afterwards."""

    def taken(text, made_by, **options):
        path = tmp_path / "qrels.trec"
        path.write_text(text, encoding="utf-8")
        import_qrels(
            path, dataset, lambda event: notes.append(event.message), made_by=made_by, **options
        )
        return _grades(dataset.judgments())

    return taken


def _grades(judgments):
    return {(j.query_id, j.chunk_id): (j.grade, j.provenance.model) for j in judgments}


def test_grades_of_another_model_are_not_replaced_unasked(take, dataset):
    """Paid grades of one judge are gone otherwise, and no message says so."""
    before = take(GPT, "model:gpt")

    with pytest.raises(UsageError, match=r"another judge graded .* \(2 by gpt\); --replace"):
        take(CLAUDE, "model:claude")

    assert _grades(dataset.judgments()) == before


def test_replace_puts_the_grades_of_the_file_in_their_place_and_says_how_many(take, notes):
    """Who changes the judge on purpose has a way."""
    take(GPT, "model:gpt")

    assert take(CLAUDE, "model:claude", others="replace") == {
        ("q1", "c1"): (1, "claude"),
        ("q1", "c2"): (0, "claude"),
        ("q2", "c2"): (3, "claude"),
        ("q2", "c3"): (2, "gpt"),
    }
    assert "2 grades by gpt replaced by those of the file" in notes


def test_mix_lets_the_grades_of_both_models_stand(take, notes):
    """As after `judge --mix`: a pair has the grade that it had, others get that of the file."""
    take(GPT, "model:gpt")

    assert take(CLAUDE, "model:claude", others="mix") == {
        ("q1", "c1"): (3, "gpt"),
        ("q1", "c2"): (0, "gpt"),
        ("q2", "c2"): (3, "claude"),
        ("q2", "c3"): (2, "gpt"),
    }
    assert "2 grades by gpt stand; those of the file are left out there" in notes


def test_the_same_file_may_come_again(take, notes):
    """A nightly import is no accident."""
    before = take(GPT, "model:gpt")
    notes.clear()

    assert take(GPT, "model:gpt") == before
    assert notes == []


def test_later_grades_of_one_model_replace_its_former_ones_and_that_is_told(take, notes):
    """A model that graded anew is the same judge."""
    take(GPT, "model:gpt")

    assert take(PART, "model:gpt", grades={1: 1})["q1", "c1"] == (1, "gpt")
    assert "1 grade by gpt replaced by those of the file" in notes


def test_a_models_grade_goes_beside_a_persons_and_both_are_compared(take, dataset, notes):
    """A person's counts first; how far the judge is off is what a calibration needs."""
    take(GPT, "model:gpt")

    assert take(PART, "Ann", grades={1: 1}) == {
        ("q1", "c1"): (1, "Ann"),
        ("q1", "c2"): (0, "Ann"),
        ("q2", "c3"): (2, "gpt"),
    }
    assert _grades(dataset.label_checks()) == {("q1", "c1"): (3, "gpt"), ("q1", "c2"): (0, "gpt")}
    assert notes[-1] == (
        "2 grades by gpt of pairs that people graded: people's count, and the judge's are in "
        "label_checks.jsonl: 1 the same, 1 higher, 0 lower"
    )


def test_a_model_gives_nothing_to_what_a_person_graded(take, dataset, notes):
    """The order of two imports makes no difference."""
    take(PART, "Ann", grades={1: 1})

    assert take(GPT, "model:gpt")["q1", "c1"] == (1, "Ann")
    assert _grades(dataset.label_checks()) == {("q1", "c1"): (3, "gpt"), ("q1", "c2"): (0, "gpt")}
    assert any(note.endswith("label_checks.jsonl: 1 the same, 1 higher, 0 lower") for note in notes)


@pytest.mark.parametrize("kind", ["baseline", "mock"])
def test_a_model_takes_the_place_of_what_is_no_judge(take, dataset, kind):
    """Counted words and made-up grades give way in judging, too."""
    by = Provenance(kind=kind, model="words")
    dataset.write_judgments([Judgment(query_id="q1", chunk_id="c1", grade=0, provenance=by)])

    assert take(GPT, "model:gpt")["q1", "c1"] == (3, "gpt")


def test_a_hand_made_set_puts_a_judges_grades_beside_its_own(tmp_path, take, dataset):
    """However people's grades come in, those of a judge are not lost."""
    take(GPT, "model:gpt")
    path = tmp_path / "own.json"
    path.write_text('[{"id": "q1", "query": "What is q1?", "relevant": ["c1"]}]', encoding="utf-8")

    import_queries(path, dataset, lambda event: None, made_by="Ann")

    assert _grades(dataset.label_checks()) == {("q1", "c1"): (3, "gpt")}


def test_what_replaces_the_claim_of_a_quote_is_told(take, dataset, notes):
    """A person's or a judge's grade counts before it."""
    by = Provenance(kind="llm", model="writer")
    quoted = Judgment(query_id="q1", chunk_id="c2", grade=3, source="evidence", provenance=by)
    dataset.write_judgments([quoted])

    assert take(GPT, "model:gpt")["q1", "c2"] == (0, "gpt")
    assert "1 grade by quotes of queries replaced by those of the file" in notes
