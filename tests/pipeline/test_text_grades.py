"""Runs of texts that are no chunks of the set: written, placed, graded by evidence."""

import asyncio
import json

import pytest
from fakes import Recorder

from ragforge.cli import main
from ragforge.config import EvaluateSettings, Settings
from ragforge.evaluating.evaluation_data import load_evaluation_data
from ragforge.evaluation import evaluate
from ragforge.files.formats.qrels import read_judged_qrels
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.observe import silent
from ragforge.pipeline.exporting import export
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judging import judge_dataset
from ragforge.pipeline.retrieving import make_runs
from ragforge.pipeline.text_grades import grade_by_evidence
from ragforge.pipeline.validating import validate
from ragforge.pipeline.worst import find_worst
from ragforge.records import Chunk, Evidence, Hit, Judgment, Provenance, Query, Ranking, text_id

TEXT = "The lamp turns green when the pump is ready. Wait for it, then open the valve slowly."
QUOTE = "turns green when the pump is ready"
HELD = "turns green when the pump is ready. Wait for it"

MODULE = f"""
def named(query, k):
    return [{{"text": {HELD!r}, "source": "manual.md"}}, {{"text": "of another manual altogether"}}]

def other(query, k):
    return [{{"text": "then open the valve slowly"}}, "c1", "gone"]

def documents(query, k):
    return ["manual.md"]

def late(query, k):
    return [{{"text": "then open the valve slowly"}}, {{"text": {HELD!r}}}]
"""


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A set of one chunk and a query with evidence in it; retrievers of a user beside it."""
    (tmp_path / "lamps.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "lamps", raising=False)
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_chunks([Chunk(chunk_id="c1", doc_id="manual.md", text=TEXT, end=len(TEXT))])
    at = TEXT.index(QUOTE)
    evidence = Evidence(
        doc_id="manual.md", chunk_id="c1", quote=QUOTE, start=at, end=at + len(QUOTE)
    )
    made.write_queries([Query(query_id="q", query="When is it ready?", evidence=(evidence,))])
    return made


def make(dataset, observer=silent, **specs):
    return asyncio.run(make_runs(dataset, specs, Job(Settings(), observer)))


def grades(dataset):
    return {item.chunk_id: (item.grade, item.source) for item in dataset.judgments()}


def test_texts_are_written_with_their_places(dataset):
    """What was retrieved is known also when the retriever is gone."""
    make(dataset, mine="lamps:named")
    held = {text.text: text for text in dataset.retrieved_texts()}
    [place] = held[HELD].places

    assert TEXT[place.start : place.end] == HELD
    assert held["of another manual altogether"].places == ()
    assert [hit.chunk_id for hit in dataset.run("mine")[0].ranking] == [
        text_id(HELD),
        text_id("of another manual altogether"),
    ]


def test_a_text_that_holds_the_evidence_is_graded_by_rule(dataset):
    """No judge is needed for what is known."""
    make(dataset, mine="lamps:named")

    assert grades(dataset) == {text_id(HELD): (3, "evidence")}


@pytest.mark.parametrize(("given", "has"), [(3, 3), (2, 2), (1, 1)])
def test_a_text_that_holds_a_persons_quote_has_no_more_than_was_given(dataset, given, has):
    """A system that cuts otherwise got 3 for a quote, where the chunk with it had 2."""
    by_person = Judgment(query_id="q", chunk_id="c1", grade=given, source="human", evidence=QUOTE)
    dataset.write_judgments([by_person])
    make(dataset, mine="lamps:named")

    assert grades(dataset)[text_id(HELD)] == (has, "evidence")


def test_a_grade_that_stands_is_kept(dataset):
    """A person who looked knows better than a rule."""
    old = Judgment(query_id="q", chunk_id=text_id(HELD), grade=1, source="human")
    dataset.write_judgments([old])
    make(dataset, mine="lamps:named")

    assert dataset.judgments() == [old]


@pytest.mark.parametrize(
    ("source", "stands"), [("human", (1, "human")), ("judge", (3, "evidence"))]
)
def test_a_person_goes_before_what_evidence_says_of_the_same_words(dataset, source, stands):
    """A rule had the last word on a chunk that was a text with a person's grade."""
    rule = Judgment(query_id="q", chunk_id="c1", grade=3, source="evidence")
    waits = Judgment(query_id="q", chunk_id=text_id(TEXT), grade=1, source=source)
    dataset.write_judgments([rule, waits])
    make(dataset, mine="lamps:other")

    assert grades(dataset)["c1"] == stands


def test_a_set_without_such_texts_is_left_alone(dataset):
    """Its files are the same, to the byte."""
    before = dataset.manifest

    assert (grade_by_evidence(dataset), dataset.manifest) == (0, before)


def test_what_the_hits_are_is_told(dataset):
    """Texts of another corpus look like a bad retriever otherwise."""
    observer = Recorder()
    [made] = make(dataset, observer, mine="lamps:named")

    assert (made.hits.n_placed, made.hits.n_nowhere) == (1, 1)
    assert [event.message for event in observer.events if event.name == "note"] == [
        "run mine: of 2 hits 0 are chunks of the set and 2 other texts: 1 stand in one place of "
        "the documents, 0 in several, 1 nowhere",
        "run mine: texts that stand nowhere, such as 'of another manual altogether', are judged by "
        "their text; were the documents of the set indexed, and nothing else?",
    ]


def test_unknown_ids_are_counted_beside_texts(dataset):
    """They have no text to be judged by."""
    observer = Recorder()
    [made] = make(dataset, observer, mine="lamps:other")
    notes = [event.message for event in observer.events if event.name == "note"]

    assert (made.hits.n_chunks, made.hits.n_placed, made.hits.n_unknown) == (1, 1, 1)
    assert notes[0] == (
        "warning: 1 retrieved chunk ids are not in chunks.jsonl, such as gone; they can be neither "
        "judged nor relevant"
    )


def test_a_run_that_is_made_again_leaves_no_texts_behind(dataset):
    """Only what runs hold is of use."""
    make(dataset, mine="lamps:named")
    make(dataset, mine="lamps:other")

    assert [text.text for text in dataset.retrieved_texts()] == ["then open the valve slowly"]


def test_runs_made_at_once_keep_their_texts_all(dataset):
    """Each writes beside the other."""
    make(dataset, mine="lamps:named", theirs="lamps:other")

    assert len(list(dataset.retrieved_texts())) == 3


def judged(dataset, runs=()):
    job = Job(Settings(), silent)
    return asyncio.run(judge_dataset(dataset, runs, job))


def test_a_text_is_judged_by_its_own_words(dataset):
    """The judge sees what was retrieved, wherever it stands."""
    make(dataset, mine="lamps:named", theirs="lamps:other")
    judged(dataset)

    assert grades(dataset)[text_id("of another manual altogether")] == (0, "judge")
    assert grades(dataset).keys() == {
        "c1",
        *map(text_id, (HELD, "of another manual altogether", "then open the valve slowly")),
    }


def noted(dataset, runs=()):
    """Judge, and return what was told."""
    observer = Recorder()
    asyncio.run(judge_dataset(dataset, runs, Job(Settings(), observer)))
    return [event.message for event in observer.events if event.name == "note"]


def run_of(dataset, *chunk_ids, name="later"):
    """Write a run, as if another retriever had found these."""
    hits = [Hit(chunk_id=one, score=1 / at) for at, one in enumerate(chunk_ids, 1)]
    dataset.write_run(name, [Ranking(query_id="q", ranking=hits)])


def test_a_text_has_the_grade_of_its_words_under_the_id_of_a_place(dataset):
    """The documents hold it several times; what was judged is the text."""
    make(dataset, mine="lamps:late")
    judged(dataset)
    valve = "then open the valve slowly"
    placed = text_id(valve, "manual.md")
    [text] = [text for text in dataset.retrieved_texts() if text.text == valve]
    dataset.add_retrieved_texts([text.model_copy(update={"chunk_id": placed})], "later")
    run_of(dataset, placed)
    told = noted(dataset)

    [copy] = [item for item in dataset.judgments() if item.chunk_id == placed]
    assert (copy.source, copy.copied_from) == ("carried", text_id(valve))
    assert told[-1] == (
        "1 pair has the grade that the same words have under another id; no call was made"
    )


def test_a_chunk_has_the_grade_that_its_words_have_as_a_text(dataset):
    """Somebody's splitter cut the documents as the set does now."""
    make(dataset, mine="lamps:late")
    judged(dataset)
    valve = "then open the valve slowly"
    dataset.write_chunks(
        [*dataset.chunks(), Chunk(chunk_id="c2", doc_id="manual.md", text=valve, start=58, end=84)]
    )
    run_of(dataset, "c2")
    noted(dataset, ["later"])

    [copy] = [item for item in dataset.judgments() if item.chunk_id == "c2"]
    assert copy.copied_from == text_id(valve)


def test_retrieving_finds_grades_again(dataset):
    """What a person said of a text counts, whether or not a rule would say it too."""
    grade = Judgment(query_id="q", chunk_id=text_id(HELD, "old.md"), grade=1, source="human")
    dataset.write_judgments([grade])
    make(dataset, mine="lamps:named")

    assert grades(dataset)[text_id(HELD)] == (1, "human")


def test_the_grade_of_another_judge_is_not_taken_for_that_of_this_one(dataset):
    """Judges differ by more than systems do."""
    by = Provenance(kind="mock", model="somebody")
    words = "of another manual altogether"
    make(dataset, mine="lamps:named")
    dataset.write_judgments(
        [Judgment(query_id="q", chunk_id=text_id(words, "x"), grade=3, provenance=by)]
    )
    judged(dataset)

    [item] = [item for item in dataset.judgments() if item.chunk_id == text_id(words)]
    assert (item.grade, item.provenance.kind) == (0, "baseline")


def test_bad_queries_show_the_texts_of_a_run(dataset):
    """Who looks at them wants to read what was found."""
    make(dataset, mine="lamps:late")
    found = find_worst(dataset, [], EvaluateSettings(), n=5)
    starts = {start.text.text for start in found.starts.values()}

    assert "then open the valve slowly" in starts


def test_a_set_with_texts_of_runs_is_valid(dataset):
    """They are no strays, and what runs hold is known; but for an id without a text."""
    make(dataset, mine="lamps:named")

    assert validate(dataset).problems == []


def test_a_text_under_the_id_of_a_place_is_valid_and_goes_when_no_run_holds_it(dataset):
    """The documents hold it several times."""
    make(dataset, mine="lamps:named")
    [one, other] = dataset.retrieved_texts()
    placed = one.model_copy(update={"chunk_id": text_id(one.text, "a.md")})
    dataset.write_retrieved_texts([placed, other])

    assert not any("was it edited" in problem for problem in validate(dataset).problems)
    dataset.write_run(
        "mine", [Ranking(query_id="q", ranking=[Hit(chunk_id=placed.chunk_id, score=1)])]
    )
    dataset.drop_uncited_texts()
    assert [text.chunk_id for text in dataset.retrieved_texts()] == [placed.chunk_id]


def test_an_edited_text_is_a_problem(dataset):
    """Its grades are of what it was."""
    make(dataset, mine="lamps:named")
    [one, _] = dataset.retrieved_texts()
    dataset.write_retrieved_texts([one.model_copy(update={"text": "else"})])
    problems = validate(dataset).problems

    assert (
        f"retrieved.jsonl: {one.chunk_id}: its text has the id {text_id('else')}; was it "
        in (problems[0])
    )


MEASURES = ("nDCG@10", "P@5", "R@10")


def test_exported_grades_of_texts_measure_as_the_set_does(dataset, tmp_path):
    """trec_eval reads them; pieces of another splitter are in a file of their own."""
    make(dataset, mine="lamps:named", theirs="lamps:other")
    judged(dataset)
    out = tmp_path / "out"
    made = export(dataset, "trec", out)
    ours = {run.name: run.scores for run in load_evaluation_data(dataset, measures=MEASURES).runs}

    assert (out / "qrels" / "mine.trec").read_text().count("t_") == 2
    assert "t_" not in (out / "qrels.trec").read_text()
    for name in ("mine", "theirs"):
        theirs = evaluate(out / "qrels" / f"{name}.trec", out / "runs" / f"{name}.trec", MEASURES)
        assert [theirs.mean(one) for one in MEASURES] == [ours[name].mean(one) for one in MEASURES]
    assert [line for line in made.lost if "text" in line] == [
        "3 texts of runs that are no chunks of the set (their ids are kept)",
        "1 chunk's text",
    ]


def test_an_exported_folder_of_texts_has_corpus_and_grades(dataset, tmp_path):
    """A run of another splitter can be measured, and searched for, where BEIR folders are read."""
    make(dataset, mine="lamps:named")
    judged(dataset)
    export(dataset, "beir", tmp_path / "out")
    place = tmp_path / "out" / "texts" / "mine"
    rows = map(json.loads, (place / "corpus.jsonl").read_text().splitlines())

    assert {row["_id"]: row["text"] for row in rows} == {
        text_id(text): text for text in (HELD, "of another manual altogether")
    }
    assert (place / "qrels" / "test.tsv").read_text().splitlines()[1:] == [
        f"q\t{chunk_id}\t{grade}"
        for chunk_id, grade in sorted(
            {text_id(HELD): 3, text_id("of another manual altogether"): 0}.items()
        )
    ]


def test_an_exported_file_has_grades_of_texts_beside_those_of_chunks(dataset, tmp_path):
    """What no run holds any more is graded all the same."""
    make(dataset, mine="lamps:named")
    dataset.remove_run("mine")
    export(dataset, "json", tmp_path / "out.json")
    [row] = json.loads((tmp_path / "out.json").read_text())["queries"]
    made = export(dataset, "trec", tmp_path / "out")

    assert (row["graded_relevance"], row["graded_texts"]) == ({}, {text_id(HELD): 3})
    assert "1 grade of a text that no run holds" in made.lost


@pytest.mark.parametrize(
    ("form", "file"),
    [("trec", "qrels/mine.trec"), ("beir", "texts/mine/qrels/test.tsv"), ("beir", "texts/mine")],
)
def test_who_graded_exported_texts_is_known_of_their_file(dataset, tmp_path, form, file):
    """Else the grades of a judge pass for people's, and name a winner where the set does not."""
    make(dataset, mine="lamps:named")
    judged(dataset)
    export(dataset, form, tmp_path / "out")
    read = read_judged_qrels(tmp_path / "out" / file)

    assert {chunk_id: origin.source for (_, chunk_id), origin in read.origins.items()} == {
        text_id(HELD): "evidence",
        text_id("of another manual altogether"): "judge",
    }


def test_an_exported_folder_of_texts_comes_back_as_a_set(dataset, tmp_path):
    """Its chunks have ids of texts: all of its grades were left out."""
    make(dataset, mine="lamps:named")
    judged(dataset)
    export(dataset, "beir", tmp_path / "beir")
    export(dataset, "trec", tmp_path / "trec")
    place, folder = str(tmp_path / "again"), str(tmp_path / "beir" / "texts" / "mine")

    assert main(["import", folder, "--out", place, "-q"]) == 0
    run = str(tmp_path / "trec" / "runs" / "mine.trec")
    assert main(["import", "--run", run, "--dataset", place, "-q"]) == 0
    before, after = (
        load_evaluation_data(each, measures=MEASURES).runs[0].scores
        for each in (dataset, open_dataset(tmp_path / "again"))
    )
    assert [after.mean(one) for one in MEASURES] == [before.mean(one) for one in MEASURES]
