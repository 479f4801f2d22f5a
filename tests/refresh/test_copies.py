"""Chunks that read the same, once their documents have other names."""

import json

import pytest
from nights import WIDE, Night
from pipeline.generation.making import run

from ragforge.config import EvaluateSettings
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.records import Hit, Ranking, is_text_id

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


def bring(folder, pages, *others, **row):
    """Return a set of pages with one query and maybe others, whose labels a person gave."""
    night = Night(folder, (*WIDE, *SHORT))
    night.docs.mkdir(parents=True)
    write(night, pages)
    path = folder / "golden.jsonl"
    rows = {"query_id": "q", "query": "What is it?", **row}, *others
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
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


SUPPORT = f"## Support\n\n{'Write to the desk in the hall, or call it before noon. ' * 2}\n"


def chapter(name, *, support, title="Book"):
    """Return a chapter, with or without the section that some have."""
    said = f"The {name} part is about {name} and how the {name} people of the {name} coast live. "
    return f"# {title}\n\n## {name}\n\n{said * 2}\n\n{SUPPORT if support else ''}"


def book(*named):
    """Return chapters under their numbers."""
    return {f"{number:02d}.md": text for number, text in enumerate(named, 1)}


def support_of(dataset):
    """Return the ids of the chunks with the section by document."""
    return {one.doc_id: one.chunk_id for one in dataset.chunks() if "desk" in one.text}


@pytest.fixture
def labelled(tmp_path):
    """Two chapters have one section; a person labelled one, which one run finds first."""

    def made(*with_support, label, titles="Book Book Book Book"):
        names = ["north", "south", "east", "west"]
        chapters = [
            chapter(name, support=name in with_support, title=title)
            for name, title in zip(names, titles.split(), strict=True)
        ]
        night = bring(tmp_path / "labelled", book(*chapters))
        first, second = (f"{names.index(name) + 1:02d}.md" for name in with_support)
        copies = support_of(night.dataset)
        other, *_ = chunks_of(night.dataset, "04.md", "west")
        path = tmp_path / "labels.trec"
        own, others = (copies[second], copies[first]) if label else (copies[first], copies[second])
        path.write_text(f"q 0 {own} 3\n")
        words = ["import", "--qrels", str(path), "--made-by", "Ann", "--dataset", str(night.set)]
        assert run([*words, "-q"]).code == 0
        retrieved(night.dataset, right=[own], wrong=[others, other, own])
        assert values(night.dataset, "RR") == {"right": 1, "wrong": 1 / 3}
        return night, chapters

    return made


def labels(dataset):
    """Return the documents whose section people labelled."""
    named = {one: doc_id for doc_id, one in support_of(dataset).items()}
    graded = (one.chunk_id for one in dataset.judgments() if one.grade)
    return [named[chunk_id] for chunk_id in graded if not is_text_id(chunk_id)]


@pytest.mark.parametrize("others", [("north", "east"), ("north", "south"), ("south", "east")])
@pytest.mark.parametrize("label", [0, 1])
def test_a_label_stays_with_the_copy_that_people_named(labelled, others, label):
    """A new first chapter moved the numbers up: another copy was relevant too, or in its place."""
    night, chapters = labelled(*others, label=label)
    [before] = labels(night.dataset)
    write(night, book(chapter("new", support=False), *chapters))

    night.json()

    assert labels(night.dataset) == [f"{int(before[:2]) + 1:02d}.md"]
    assert values(night.dataset, "RR") == {"right": 1, "wrong": 1 / 3}


def test_a_label_stays_with_its_copy_where_the_titles_hold_the_numbers(labelled):
    """No chapter stands word for word under another name."""
    night, chapters = labelled("north", "east", label=1)
    later = book(chapter("new", support=False), *chapters)
    write(night, {name: text.replace("## ", f"## {name[:2]} ", 1) for name, text in later.items()})

    night.json()

    assert labels(night.dataset) == ["04.md"]
    assert values(night.dataset, "RR") == {"right": 1, "wrong": 1 / 3}


def test_a_copy_that_is_gone_makes_no_other_copy_relevant(labelled):
    """A page without a label was removed and one was copied: recall of a run fell from 1 to 1/3."""
    night, chapters = labelled("north", "south", label=0)
    copy = chapter("east", support=True)
    write(night, book(*chapters[:2], copy, chapters[3]))
    night.json()
    copies = support_of(night.dataset)
    retrieved(night.dataset, both=[copies["01.md"], copies["02.md"]], gone=[copies["03.md"]])
    assert values(night.dataset)["both"] == 1

    left = [*chapters[:2], chapters[3]]
    for pages in book(*left), book(*left, chapter("new", support=True)):
        write(night, pages)
        night.json()

        assert labels(night.dataset) == ["01.md"]
        assert values(night.dataset)["both"] == 1


@pytest.mark.parametrize("nights", [1, 2])
@pytest.mark.parametrize("is_found", [True, False])
def test_a_label_goes_back_to_a_page_that_was_gone_beside_copies(labelled, nights, is_found):
    """It stayed with the copies for ever, and what people labelled was not relevant."""
    night, chapters = labelled("north", "south", label=0)
    if not is_found:
        retrieved(night.dataset, right=[], wrong=[])
    pages = book(*chapters)
    left = {name: text for name, text in pages.items() if name != "01.md"}
    for extra in range(nights):
        write(night, left | {f"{extra}.md": chapter(f"new {extra}", support=False)})
        night.json()
        assert labels(night.dataset) == ["02.md"]
    write(night, pages)

    night.json()

    dataset = night.dataset
    assert labels(dataset) == ["01.md"]
    copies = support_of(dataset)
    retrieved(dataset, right=[copies["01.md"]], wrong=[copies["02.md"], copies["01.md"]])
    assert values(dataset, "RR") == {"right": 1, "wrong": 1 / 2}


def test_evidence_goes_with_its_page_where_another_one_has_the_quote_too(tmp_path):
    """Its name went to a page that repeats it: recall fell from 1.0 to 0.5, and a check was due."""
    pages = {"a.md": page("north"), "b.md": page("south"), "c.md": page("east")}
    row = {"expected_answer": QUOTE, "relevant": [{"doc_id": "b.md", "quote": QUOTE, "grade": 3}]}
    night = bring(tmp_path / "moved", pages, **row)
    first, _ = chunks_of(night.dataset, "b.md", QUOTE)
    [other, _] = chunks_of(night.dataset, "c.md", QUOTE)
    retrieved(night.dataset, one=[first, other])
    write(night, {"b.md": pages["c.md"], "c.md": pages["b.md"], "a.md": pages["a.md"]})

    told = night.json()

    [query] = night.queries.values()
    assert {item.doc_id for item in query.evidence} == {"c.md"}
    assert told["items"] == {"remapped": 1}
    assert told["changes"][0]["causes"][0]["kind"] == "document renamed"
    assert {one.source for one in night.dataset.judgments()} == {"human"}
    assert values(night.dataset) == {"one": 1}


def test_a_quote_in_other_words_leaves_labels_complete(tmp_path):
    """One page was edited: copies that people had not labelled counted for another query."""
    pages = {"a.md": page("north"), "b.md": page("south"), "c.md": page("east")}
    edited = "Bags and coats of all our guests stay in the room by the door until they leave."
    pages["d.md"] = f"# Coats\n\n{edited}\n"
    row = {"expected_answer": QUOTE, "relevant": [{"doc_id": "b.md", "quote": QUOTE, "grade": 3}]}
    other = {"query_id": "p", "query": "Where do coats stay?", "expected_answer": edited}
    other["relevant"] = [{"doc_id": "d.md", "quote": edited, "grade": 3}]
    night = bring(tmp_path / "edited", pages, other, **row)
    first, _ = chunks_of(night.dataset, "b.md", QUOTE)
    copy, _ = chunks_of(night.dataset, "c.md", QUOTE)
    retrieved(night.dataset, one=[first, copy])
    write(night, pages | {"d.md": pages["d.md"].replace("stay in", "always stay in")})

    night.json()

    sources = {(one.query_id, one.source) for one in night.dataset.judgments()}
    assert sources == {("p", "evidence"), ("q", "human")}
    assert values(night.dataset) == {"one": 1}


def test_labels_go_and_come_with_names_that_are_swapped(labelled):
    """The section has the id of the other page's then; back again, all is as it was."""
    night, chapters = labelled("north", "south", label=0)
    swapped = book(chapters[1], chapters[0], *chapters[2:])
    for pages, name in (swapped, "02.md"), (book(*chapters), "01.md"), (swapped, "02.md"):
        write(night, pages)
        night.json()

        assert labels(night.dataset) == [name]
        assert values(night.dataset, "RR") == {"right": 1, "wrong": 1 / 3}


def test_a_baseline_of_a_night_after_names_changed_hands_is_read_by_the_names_of_then(labelled):
    """What was called otherwise before that night is called so now."""
    night, chapters = labelled("north", "south", label=0)
    write(night, book(chapters[1], chapters[0], *chapters[2:]))
    night.json()
    copies = support_of(night.dataset)
    assert night.dataset.past.moved_chunks()[copies["01.md"]] == (copies["02.md"],)
    write(night, book(chapters[1], chapters[0], *chapters[2:], chapter("last", support=False)))
    night.json()

    assert {*copies.values()}.isdisjoint(night.dataset.past.moved_chunks())


def test_hits_of_copies_stay_two_where_one_goes_over_the_border_of_a_page(tmp_path):
    """Chunks of the user's moved up by one: a hit that was not relevant got the label's grade."""
    texts = [f"Part {n} tells of {word} and of nothing else." for n, word in enumerate("abcdefgh")]
    texts[3] = texts[2]

    def file(name, parts):
        path = tmp_path / name
        rows = (
            {"chunk_id": f"k{n}", "doc_id": f"page{n // 2}", "text": text}
            for n, text in enumerate(parts)
        )
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return str(path)

    queries, labels, hits = (tmp_path / name for name in ("q.jsonl", "labels.trec", "hits.trec"))
    queries.write_text(json.dumps({"query_id": "q", "query": "What is it?"}))
    labels.write_text("q 0 k2 3\n")
    hits.write_text("q Q0 k3 1 9 r\nq Q0 k5 2 8 r\nq Q0 k2 3 7 r\n")
    night = Night(tmp_path)
    target = ["--dataset", str(night.set), "-q"]
    chunks = file("old.jsonl", texts)
    assert run(["import", str(queries), "--chunks", chunks, "--out", str(night.set)]).code == 0
    named = ["--qrels", str(labels), "--made-by", "Ann", "--run", str(hits)]
    assert run(["import", *named, *target]).code == 0
    chunks = file("new.jsonl", [*texts[1:], texts[0]])

    assert run(["refresh", "--chunks", chunks, "--complete", "off", *WIDE, *target]).code == 0

    dataset = night.dataset
    [ranking] = dataset.each_ranking("hits")
    assert [hit.chunk_id for hit in ranking.ranking] == ["k1", "k4", "k2"]
    assert values(dataset, "RR") == {"hits": 1 / 3}


def own_chunks(folder, rows, *hits):
    """Return a set of chunks of the user's with a run of one query, whose first chunk is labelled.

    Args:
        folder: Gets the files.
        rows: Id, document and text of each chunk.
        hits: Ids of chunks.
    """
    night = Night(folder)
    queries, labels, run_file = (folder / name for name in ("q.jsonl", "labels.trec", "hits.trec"))
    queries.write_text(json.dumps({"query_id": "q", "query": "What is it?"}))
    labels.write_text(f"q 0 {rows[0][0]} 3\n")
    run_file.write_text("".join(f"q Q0 {one} {n} {9 - n} r\n" for n, one in enumerate(hits, 1)))
    target = ["--dataset", str(night.set), "-q"]
    chunks = own_file(folder, rows)
    assert run(["import", str(queries), "--chunks", chunks, "--out", str(night.set)]).code == 0
    named = ["--qrels", str(labels), "--made-by", "Ann", "--run", str(run_file)]
    assert run(["import", *named, *target]).code == 0
    return night


def own_file(folder, rows):
    """Write chunks of the user's, and return the path."""
    path = folder / "chunks.jsonl"
    names = ("chunk_id", "doc_id", "text")
    path.write_text("".join(f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in rows))
    return str(path)


def refresh_own(night, rows):
    """Make rows the chunks, and refresh the set."""
    chunks = ["--chunks", own_file(night.folder, rows), "--dataset", str(night.set)]
    assert run(["refresh", *chunks, "--complete", "off", *WIDE, "-q"]).code == 0


def test_hits_of_a_page_that_is_gone_take_no_place_from_others(tmp_path):
    """An index was made anew: the hit on the labelled chunk was none of now, and its copy's was."""
    same = "Write to the desk in the hall, or call it before noon."
    one = [("b2", "b.md", same), ("a1", "a.md", "Paintings of the north."), ("a2", "a.md", same)]
    night = own_chunks(tmp_path, [*one, ("b1", "b.md", "Paintings of the south.")], "a2", "b2")
    now = [("y2", "b.md", same), ("y1", "b.md", "Paintings of the south.")]

    refresh_own(night, now)

    [ranking] = night.dataset.each_ranking("hits")
    assert ranking.ranking[1].chunk_id == "y2"


def rederive(night, max_chars="160"):
    """Put the chunks of the pages under the set."""
    words = ["generate", "--rederive", "--documents", str(night.docs), "--out", str(night.set)]
    return run([*words, "--max-chars", max_chars, "-q"])


def refresh(night, max_chars):
    """Refresh the set with chunks of this size."""
    words = night.words("-q", "--accept-churn", "--complete", "off")
    return run([*words, "--max-chars", max_chars])


@pytest.mark.parametrize("there", [refresh, rederive])
@pytest.mark.parametrize("back", [refresh, rederive])
@pytest.mark.parametrize("label", [0, 1])
def test_a_label_stays_with_its_copy_where_pages_are_cut_otherwise_and_back(
    labelled, label, there, back
):
    """No page changed: the other copy was relevant too, and RR rose from 0.33 to 1.00."""
    night, _ = labelled("north", "south", label=label)

    for cut, max_chars in (there, "100"), (back, "160"), (there, "100"), (back, "160"):
        assert cut(night, max_chars).code == 0

    assert labels(night.dataset) == [f"0{label + 1}.md"]
    assert values(night.dataset, "RR") == {"right": 1, "wrong": 1 / 3}


@pytest.mark.parametrize("label", [0, 1])
def test_a_label_stays_with_its_copy_where_chunks_are_derived_anew(labelled, label):
    """Another chapter took the name of the one that people labelled, and has its section."""
    night, chapters = labelled("north", "south", label=label, titles="A B C D")
    write(night, book(chapter("new", support=False), *chapters))

    assert rederive(night).code == 0

    assert labels(night.dataset) == [f"0{label + 2}.md"]
    assert values(night.dataset, "RR") == {"right": 1, "wrong": 1 / 3}


def test_chunks_are_not_derived_anew_where_another_document_took_an_id(labelled):
    """Interrupted and done again, the label would go on: a refresh is for that."""
    night, chapters = labelled("north", "south", label=1)
    write(night, book(chapter("new", support=False), *chapters))

    done = rederive(night)

    assert (done.code, "02.md, which is 03.md now" in done.err) == (2, True)
    assert labels(night.dataset) == ["02.md"]
