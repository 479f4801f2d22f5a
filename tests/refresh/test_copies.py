"""Chunks that read the same, once their documents have other names."""

import json

import pytest
from nights import WIDE, Night
from pipeline.generation.making import run

from ragforge.config import EvaluateSettings
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.records import Hit, Ranking

SHORT = ("--max-chars", "160", "--complete", "off")
QUOTE = "Flash photos are never allowed in here."
LIMITS = f"## Limits\n\n{QUOTE} {'Guards walk the rooms by day and by night. ' * 2}\n\n"


def page(name):
    """Return a page that states its limits twice."""
    said = f"The {name} hall shows paintings of the {name} school, all of them in oil on oak. " * 2
    other = f"The {name} garden has {name} trees, and benches that the {name} guild gave us. " * 2
    return f"# {name}\n\n{said}\n\n{LIMITS}## Garden\n\n{other}\n\n{LIMITS}"


def values(dataset, measure="R@10"):
    """Return the value of each run."""
    runs = evaluate_runs(dataset, dataset.run_names(), EvaluateSettings(measures=[measure]))
    return {one.measured.name: one.scores.row("q")[measure] for one in runs}


def retrieved(dataset, **runs):
    """Write runs of the query, each by its chunks, best first."""
    for name, chunk_ids in runs.items():
        hits = tuple(Hit(chunk_id=one, score=1 / n) for n, one in enumerate(chunk_ids, 1))
        dataset.write_run(name, [Ranking(query_id="q", ranking=hits)])


def chunks_of(dataset, doc_id, words):
    """Return the ids of the chunks of a document with some words, as they stand."""
    found = [one for one in dataset.chunks() if one.doc_id == doc_id and words in one.text]
    return [one.chunk_id for one in sorted(found, key=lambda one: one.start)]


def bring(folder, pages, **row):
    """Return a set of pages with one query, whose labels a person gave."""
    night = Night(folder, (*WIDE, *SHORT))
    night.docs.mkdir(parents=True)
    write(night, pages)
    path = folder / "golden.jsonl"
    path.write_text(json.dumps({"query_id": "q", "query": "What is it?", **row}) + "\n")
    words = ["import", str(path), "--documents", str(night.docs), "--out", str(night.set)]
    assert run([*words, "--max-chars", "160", "--made-by", "Ann", "-q"]).code == 0
    return night


def write(night, pages):
    """Make pages the documents."""
    for path in night.docs.iterdir():
        path.unlink()
    for name, text in pages.items():
        (night.docs / name).write_text(text, encoding="utf-8")


@pytest.fixture
def repeated(tmp_path):
    """A quote stands twice in its page: one run finds one place of it, one run both."""
    pages = {"a.md": page("north"), "b.md": page("south").replace(QUOTE, "Hats off.")}
    row = {"expected_answer": QUOTE, "relevant": [{"doc_id": "a.md", "quote": QUOTE, "grade": 3}]}
    night = bring(tmp_path / "repeated", pages, **row)
    dataset = night.dataset
    first, second = chunks_of(dataset, "a.md", QUOTE)
    [other] = chunks_of(dataset, "a.md", "Garden")
    retrieved(dataset, one=[first, other], both=[other, first, second], later=[second])
    assert values(dataset) == {"one": 1, "both": 1, "later": 1}
    return night


@pytest.mark.parametrize(
    "names", [{"a.md": "c.md", "b.md": "d.md"}, {"a.md": "b.md", "b.md": "a.md"}]
)
def test_a_quote_that_stands_twice_is_still_one_thing_to_find(repeated, names):
    """The pages only changed names: recall of the run that found it fell from 1.0 to 0.5."""
    pages = {path.name: path.read_text() for path in repeated.docs.iterdir()}
    write(repeated, {names[name]: text for name, text in pages.items()})

    repeated.json()

    dataset = repeated.dataset
    first, second = chunks_of(dataset, names["a.md"], QUOTE)
    graded = {one.chunk_id: one.only_repeats for one in dataset.judgments() if one.grade}
    assert graded == {first: False, second: True}
    assert values(dataset) == {"one": 1, "both": 1, "later": 1}
    [ranking] = dataset.each_ranking("both")
    assert [hit.chunk_id for hit in ranking.ranking][1:] == [first, second]


def test_a_quote_that_stands_twice_is_one_thing_in_texts_of_runs(repeated):
    """The pages are cut otherwise: what runs found is no chunk any more."""
    run([*repeated.words("-q", "--json"), "--max-chars", "110"])

    dataset = repeated.dataset
    assert next(dataset.retrieved_texts(), None) is not None
    assert values(dataset) == {"one": 1, "both": 1, "later": 1}


def test_a_quote_is_one_thing_after_its_texts_were_gone(repeated):
    """They come back under other names, and both grades wait for them."""
    pages = {path.name: path.read_text() for path in repeated.docs.iterdir()}
    write(repeated, {"b.md": pages["b.md"]})
    repeated.json()
    write(repeated, {"b.md": pages["b.md"], "z.md": pages["a.md"]})
    repeated.json()

    dataset = repeated.dataset
    first, second = chunks_of(dataset, "z.md", QUOTE)
    graded = {one.chunk_id: one.only_repeats for one in dataset.judgments() if one.grade}
    assert graded == {first: False, second: True}


def test_a_quote_that_stands_twice_is_one_thing_however_cut(repeated):
    """Nothing of the pages changed: recall of the run that found it fell from 1.0 to 0.5."""
    cut = ["generate", "--rederive", "--documents", str(repeated.docs), "--out", str(repeated.set)]
    for max_chars in "110", "160":
        assert run([*cut, "--max-chars", max_chars, "-q"]).code == 0
        assert values(repeated.dataset) == {"one": 1, "both": 1, "later": 1}
