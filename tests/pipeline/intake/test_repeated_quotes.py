"""A quote that stands in several chunks of its document: each counts, and one is to be found."""

import json

import pytest

from ragforge.config import EvaluateSettings
from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.errors import DataError
from ragforge.files.set.document_level import DocumentLevel, document_level
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.exporting import export
from ragforge.pipeline.graded_quotes import GradedQuotes
from ragforge.pipeline.intake.importing import import_queries
from ragforge.records import Chunk, Hit, Judgment, QuoteGrade, Ranking

QUOTE = "The gate opens at nine."
TEXTS = {
    "head": f"Hours. {QUOTE} Come in.",
    "middle": "Benches are made of oak.",
    "foot": f"In short: the GATE opens - at nine! {'Oak is hard. ' * 9}",
    "other": "The shop has two gates.",
}
MEASURES = ["RR", "R@5", "nDCG@10", "AP", "NumRel", "EvidenceR@5", "TokenP@5"]


@pytest.fixture
def dataset(tmp_path):
    """Return a set whose document says one thing at its head and at its foot."""
    made = create_dataset(tmp_path / "set", {})
    start, chunks = 0, []
    for name, text in TEXTS.items():
        end = start + len(text)
        chunks.append(Chunk(chunk_id=name, doc_id="a.md", text=text, start=start, end=end))
        start = end
    made.write_chunks(chunks)
    return made


@pytest.fixture
def bring(dataset, tmp_path):
    """Import a row with a quote, by people unless another is named."""

    def run(*, made_by="Ann", observer=silent, **more):
        row = {"id": "q", "question": "When does it open?", "doc_id": "a.md", "quote": QUOTE}
        path = tmp_path / "golden.jsonl"
        path.write_text(json.dumps({**row, **more}) + "\n", encoding="utf-8")
        import_queries(path, dataset, observer, made_by=made_by)

    return run


def retrieved(dataset, name, *chunk_ids):
    hits = tuple(Hit(chunk_id=one, score=1 / n) for n, one in enumerate(chunk_ids, 1))
    dataset.write_run(name, [Ranking(query_id="q", ranking=hits)])


def values(dataset, *names):
    """Return the values of the query by run and measure."""
    runs = evaluate_runs(dataset, names, EvaluateSettings(measures=MEASURES))
    return {run.measured.name: run.scores.row("q") for run in runs}


@pytest.mark.parametrize("doc_id", ["a.md", ""], ids=["named", "unnamed"])
@pytest.mark.parametrize(
    ("quote", "chunk_id"),
    [("\u201cbenches are made of oak\u2026\u201d", "middle"), ("the shop has two gates", "other")],
)
def test_a_quote_with_other_marks_or_case_is_that_of_the_document(
    dataset, bring, quote, chunk_id, doc_id
):
    """Spreadsheets bend quotation marks and join hyphens; such a quote was lost, and the file."""
    events = []

    bring(quote=quote, doc_id=doc_id, observer=events.append)

    [judgment], [query] = dataset.judgments(), dataset.queries()
    [evidence] = query.evidence
    assert (judgment.chunk_id, judgment.grade) == (chunk_id, 3)
    assert evidence.quote in TEXTS[chunk_id]
    assert any("1 quote stands there with other marks" in (of.message or "") for of in events)


@pytest.mark.parametrize("quote", ["The gate opens at 9.", "Benches are made of !oak.", "The Shop"])
def test_a_quote_that_says_something_else_stands_nowhere(bring, quote):
    """Other words, and signs that change what is said, make it another one; so may few letters."""
    with pytest.raises(DataError, match="1 relevant passages are lost"):
        bring(quote=quote)


def test_each_chunk_with_the_quote_counts_and_one_is_to_be_found(dataset, bring):
    """Two retrievers of the same words had RR 1 and 0, and recall would have asked for both."""
    bring()
    retrieved(dataset, "first", "head")
    retrieved(dataset, "later", "foot")

    found = values(dataset)

    for name in MEASURES[:-1]:
        assert (found["first"][name], found["later"][name]) == (1, 1)


def test_what_holds_the_quote_again_further_down_is_not_relevant(dataset, bring):
    """It keeps its rank: who gets it reads the same twice."""
    bring()
    retrieved(dataset, "both", "middle", "foot", "head")

    found = values(dataset)["both"]

    assert (found["RR"], found["R@5"], found["AP"], found["NumRel"]) == (0.5, 1, 0.5, 1)


def test_measures_of_text_go_by_what_was_retrieved(dataset, bring):
    """The foot is much longer than the head, under whose id it counts."""
    bring()
    retrieved(dataset, "first", "head")
    retrieved(dataset, "later", "foot")

    found = values(dataset)

    assert found["later"]["TokenP@5"] < found["first"]["TokenP@5"] / 2


def test_runs_of_different_chunks_with_the_same_quote_are_not_called_the_same(dataset, bring):
    """That they do alike in these queries says little of others."""
    bring()
    bring(id="p", question="At which hour may I come in?")
    for name, chunk_id in (("first", "head"), ("later", "foot")):
        hits = (Hit(chunk_id=chunk_id, score=1.0),)
        dataset.write_run(name, [Ranking(query_id=one, ranking=hits) for one in ("p", "q")])

    report = compare_runs(dataset, ["first", "later"], EvaluateSettings(measures=["RR"]))

    [item] = report.items
    assert (item.comparison.diff, item.comparison.is_identity) == (0, False)


def test_import_tells_where_quotes_count(dataset, bring):
    """Somebody may have meant one place, and quotes more words then."""
    told = []

    bring(observer=told.append)

    [message] = [event.message for event in told if "several chunks" in event.message]
    assert message.startswith("1 quote stands in several chunks of one document; any of these")
    assert "2 times" in message


def test_a_chunk_that_people_graded_otherwise_keeps_its_grade(dataset, bring):
    """Who says that the foot is not relevant has looked at it."""
    bring(relevant={"foot": 0})

    assert [(one.chunk_id, one.grade) for one in dataset.judgments()] == [("foot", 0), ("head", 3)]
    assert document_level(dataset, dataset.judgment_table()) == DocumentLevel()


def test_a_quote_of_few_letters_counts_at_its_first_place_alone(dataset, bring):
    """`at nine` may stand anywhere, and be of something else."""
    bring(quote="at nine")

    assert [one.chunk_id for one in dataset.judgments()] == ["head"]


def test_labels_of_a_model_stay_at_the_place_that_it_was_shown(dataset, bring):
    """They are no labels of people, and what else holds the quote is graded once it is found."""
    bring(made_by="model:m")

    assert [one.chunk_id for one in dataset.judgments()] == ["head"]


def test_importing_again_changes_nothing(dataset, bring):
    """A set in a repository is imported by every build."""
    bring()
    before = {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")}

    bring()

    assert {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")} == before


def test_grades_follow_the_quote_into_other_chunks_and_are_one_thing_still(dataset, bring):
    """After another cut each place would be a thing to find of its own, or the later one lost."""
    bring()
    text = "".join(TEXTS.values())
    cut = len(TEXTS["head"]) + 9
    now = [
        Chunk(chunk_id="a", doc_id="a.md", text=text[:cut], start=0, end=cut),
        Chunk(chunk_id="b", doc_id="a.md", text=text[cut:], start=cut, end=len(text)),
    ]
    graded = GradedQuotes(dataset.each_judgment(), dataset.chunks(), dataset.all_queries())

    placed = graded.place(ChunkIndex(now))

    assert {one.chunk_id: (one.grade, one.only_repeats) for one in placed.judgments} == {
        "a": (3, False),
        "b": (3, True),
    }
    assert placed.pairs == {("q", "head"), ("q", "foot")}


def test_an_export_asks_other_tools_for_one_of_them(dataset, bring, tmp_path):
    """trec_eval says what `evaluate` says of the files."""
    bring()
    retrieved(dataset, "later", "foot")

    export(dataset, "trec", tmp_path / "out")

    assert (tmp_path / "out" / "qrels.trec").read_text() == "q 0 foot 0\nq 0 head 3\n"
    assert (tmp_path / "out" / "runs" / "later.trec").read_text().split()[2] == "head"


def test_of_two_later_places_each_stands_for_what_is_left_to_find():
    """Windows that overlap hold a quote twice at each place."""
    level = DocumentLevel(repeating={"q": {"c": ("a", "b"), "d": ("a", "b")}})
    hits = tuple(Hit(chunk_id=name, score=1 / n) for n, name in enumerate("dca", 1))

    ranked = level.ranking(Ranking(query_id="q", ranking=hits))

    assert [hit.chunk_id for hit in ranked.ranking] == ["a", "b", "d"]


def test_a_chunk_that_nothing_stands_before_any_more_counts_by_itself(dataset):
    """The first place may be gone."""
    dataset.write_judgments(
        [
            Judgment(
                query_id="q",
                chunk_id="foot",
                grade=3,
                source="human",
                evidence=QUOTE,
                quote_grades=(QuoteGrade(quote=QUOTE, grade=3, again=True),),
            )
        ]
    )

    assert document_level(dataset, dataset.judgment_table()) == DocumentLevel()
