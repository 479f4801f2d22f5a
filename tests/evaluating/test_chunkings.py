"""Tests of which texts a run is measured with."""

import pytest
from measured_set import ranking

from ragforge.config import EvaluateSettings
from ragforge.evaluating.chunkings import (
    COMPARED_ON_EVIDENCE,
    are_cut_alike,
    chunkings,
    why_not_alike,
)
from ragforge.evaluating.evaluation_data import load_evaluation_data
from ragforge.evaluating.summary import summarise
from ragforge.files.set.opening import create_dataset
from ragforge.measures import DEFAULT_MEASURES
from ragforge.measures.intervals import Ends
from ragforge.pipeline.comparing.runs import compare_runs
from ragforge.pipeline.evaluating import evaluate_dataset
from ragforge.records import (
    Chunk,
    Evidence,
    Judgment,
    Provenance,
    Query,
    RetrievedText,
    Span,
    text_id,
)


def piece(start, end):
    """Return the id of the text of a stretch of the document."""
    return text_id(f"text {start} to {end}")


def row(start, end):
    place = Span(doc_id="d", start=start, end=end)
    return RetrievedText(chunk_id=piece(start, end), text=f"text {start} to {end}", places=(place,))


SMALL = [(at, at + 100) for at in range(0, 1000, 100)]
LARGE = [(at, at + 250) for at in range(0, 1000, 250)]


@pytest.fixture
def dataset(tmp_path):
    """A set with chunks of 200 characters, and runs of pieces of 100 and 250."""
    made = create_dataset(tmp_path / "set", made_from={"seed": "0"})
    made.write_manifest(made.manifest.model_copy(update={"labels": "pooled"}))
    made.write_chunks(
        Chunk(chunk_id=f"c{at}", doc_id="d", text="x" * 200, start=at, end=at + 200)
        for at in range(0, 1000, 200)
    )
    made.write_queries([Query(query_id="q", query="What?"), Query(query_id="r", query="Why?")])
    made.write_judgments([graded("q", "c0", 3), graded("q", "c200", 0), graded("r", "c400", 2)])
    made.write_run("own", [ranking("q", "c0", "c200"), ranking("r", "c200", "c400")])
    made.write_retrieved_texts([row(*span) for span in (*SMALL, *LARGE)])
    made.write_run("small", [of("q", SMALL[:6]), of("r", SMALL[4:8])])
    made.write_run("small-2", [of("q", SMALL[3:9])])
    made.write_run("large", [of("q", LARGE)])
    return made


def graded(query_id, chunk_id, grade):
    return Judgment(query_id=query_id, chunk_id=chunk_id, grade=grade)


def of(query_id, spans):
    return ranking(query_id, *(piece(*span) for span in spans))


def measured(dataset, *names):
    data = load_evaluation_data(dataset, run_names=names)
    return {run.name: run.summary.estimates for run in data.runs}


def test_runs_of_one_splitter_are_cut_alike(dataset):
    """Where they have texts of one place, they have the same."""
    assert {name: chunking.runs for name, chunking in chunkings(dataset).items()} == {
        "large": ("large",),
        "small": ("small", "small-2"),
        "small-2": ("small", "small-2"),
    }


def test_runs_that_name_the_places_of_repeated_texts_or_not_are_cut_alike(dataset):
    """The splitter is the same."""
    texts = [row(*span) for span in SMALL[:6]]
    told = [text.model_copy(update={"chunk_id": text_id(text.text, "d")}) for text in texts]
    dataset.add_retrieved_texts(told, "told")
    dataset.write_run("told", [ranking("q", *(text.chunk_id for text in told))])

    assert chunkings(dataset)["told"].runs == ("small", "small-2", "told")


def by(kind, *chunk_ids):
    maker = Provenance(kind=kind, model=kind)
    return [
        Judgment(query_id="q", chunk_id=name, grade=1, source="judge", provenance=maker)
        for name in chunk_ids
    ]


@pytest.fixture
def by_several(dataset):
    """The chunks graded by a model, pieces by the offline baseline, others by it that wait."""
    pieces = [piece(*span) for span in SMALL[:3]]
    waiting = [text_id(f"gone {n}") for n in range(4)]
    dataset.write_judgments(by("llm", "c0", "c200") + by("baseline", *pieces, *waiting))
    return dataset


@pytest.mark.parametrize(
    ("names", "counts"),
    [
        (["own"], {"llm": 2}),
        (["small"], {"baseline": 3}),
        (["own", "small"], {"llm": 2, "baseline": 3}),
    ],
)
def test_a_run_is_graded_by_those_who_graded_what_it_is_measured_on(by_several, names, counts):
    """A gate refused a run as graded in part by shared words, by texts that were of no run."""
    found = evaluate_dataset(by_several, names, EvaluateSettings())

    assert {of.origin.kind: of.n for of in found.graded_by} == counts
    last = found.records[-1]
    assert {of.model: of.count for of in last.judges} == {
        kind: n for kind, n in counts.items() if (kind == "llm") == (names[-1] == "own")
    }
    assert {of.model for of in last.evaluation.graders} == {of.model for of in last.judges}


def test_runs_are_compared_by_those_who_graded_what_they_are_measured_on(by_several):
    """As `evaluate` says of them."""
    by_several.write_run("own-2", [ranking("q", "c200", "c0")])
    found = compare_runs(by_several, ["own", "own-2"], EvaluateSettings())

    assert {of.origin.kind: of.n for of in found.graded_by} == {"llm": 2}


@pytest.mark.parametrize(("run", "kinds"), [("own", ["llm"]), ("small", ["baseline"])])
def test_a_report_tells_of_rules_behind_its_numbers_alone(by_several, run, kinds):
    """It asked to judge texts by a model that no run has any more."""
    found = summarise(by_several, run_names=[run])

    assert [judge.kind for judge in found.measured_judges] == kinds
    assert [judge.kind for judge in found.baseline_judges] == [one for one in kinds if one != "llm"]


def test_windows_that_slide_by_half_are_cut_alike(dataset):
    """Each stands half in the next, which is no other chunking."""
    windows = [(at, at + 100) for at in range(0, 900, 50)]
    dataset.add_retrieved_texts([row(*span) for span in windows], "windows")
    dataset.write_run("windows", [of("q", windows[:12])])
    dataset.write_run("windows-2", [of("q", windows[1::2] + windows[2:4])])

    assert "windows-2" in chunkings(dataset)["windows"].runs


def test_a_run_of_chunks_alone_has_no_cutting_of_its_own(dataset):
    """It is measured on the grades of the set's chunks, as ever."""
    assert "own" not in chunkings(dataset)


def test_chunks_count_where_the_run_is_cut_as_they_are(dataset):
    """Runs of an earlier state of the documents differ from it here and there."""
    gone = RetrievedText(chunk_id=text_id("gone"), text="gone")
    dataset.add_retrieved_texts([gone], "before")
    dataset.write_run("before", [ranking("q", "c0", "c200", "c400", text_id("gone"))])

    chunking = chunkings(dataset)["before"]
    assert "c800" in chunking
    assert text_id("gone") in chunking


def test_one_chunk_among_other_texts_does_not_bring_all_chunks_in(dataset):
    """A short document is one chunk however it is cut."""
    dataset.write_run("small", [ranking("q", "c0", *(piece(*span) for span in SMALL[2:8]))])

    chunking = chunkings(dataset)["small"]
    assert ("c0" in chunking, "c200" in chunking) == (True, False)


@pytest.mark.parametrize(("n_nowhere", "has_chunks"), [(1, True), (2, False)])
def test_texts_that_stand_nowhere_are_no_chunks_by_default(dataset, n_nowhere, has_chunks):
    """One may be the earlier wording of a chunk; most of a run are pieces of another splitter."""
    gone = [f"Gone {n}." for n in range(n_nowhere)]
    texts = [RetrievedText(chunk_id=text_id(text), text=text, places=()) for text in gone]
    dataset.add_retrieved_texts(texts, "gone")
    dataset.write_run("gone", [ranking("q", "c0", *map(text_id, gone))])

    assert chunkings(dataset)["gone"].has_chunks == has_chunks


def test_grades_of_other_texts_move_no_figure_of_a_run_of_chunks(dataset):
    """What was measured before anybody retrieved other texts is measured again, to the last bit."""
    before = measured(dataset, "own")
    texts = [graded(q, piece(*span), 3) for q in "qr" for span in (*SMALL, *LARGE)]
    dataset.write_judgments([*dataset.judgments(), *texts])

    assert measured(dataset, "own") == before


def test_a_run_is_measured_on_grades_of_texts_cut_as_its_own(dataset):
    """The pieces of another splitter are nothing that it could have found."""
    texts = [graded("q", piece(*SMALL[0]), 3), graded("q", piece(*SMALL[6]), 2)]
    others = [graded("q", piece(*span), 3) for span in LARGE]
    dataset.write_judgments([*dataset.judgments(), *texts, *others])
    recall = {name: of["R@10"].mean for name, of in measured(dataset).items()}

    # Of the second query nothing is graded but chunks, so that it counts 0 for the others.
    assert recall == {"own": 1.0, "small": 0.25, "small-2": 0.25, "large": 0.5}


def test_labels_of_chunks_stay_complete_where_texts_are_graded_by_rule(dataset):
    """A rule that grades other texts says nothing of how people labelled the chunks."""
    by_people = [item.model_copy(update={"source": "human"}) for item in dataset.judgments()]
    text = graded("q", piece(*SMALL[0]), 3).model_copy(update={"source": "evidence"})
    dataset.write_manifest(dataset.manifest.model_copy(update={"labels": None}))
    dataset.write_judgments([*by_people, text])

    assert load_evaluation_data(dataset).task.is_complete


def test_what_a_run_is_measured_on_is_told(dataset):
    """Its figures stand beside those of chunks, and are of other texts."""
    warnings = load_evaluation_data(dataset, run_names=["small"]).run_warnings

    assert warnings == (
        "run small has texts that are no chunks of the set: it is measured on the grades of its "
        "own texts and of small-2, cut alike; nDCG and recall of runs that are cut otherwise "
        "are of other texts",
    )


def test_a_query_of_which_a_run_found_nothing_counts(dataset):
    """Without it, a splitter that finds little would be measured where it finds something."""
    dataset.add_judgments(iter([graded("q", piece(0, 100), 3)]))
    data = load_evaluation_data(dataset, run_names=["small"])

    [run] = data.runs
    assert run.scores is not None
    assert run.scores.per_query["r"]["nDCG@10"] == 0.0
    assert len(run.scores.query_ids) == 2


@pytest.mark.parametrize("lists", [False, True])
def test_a_comparison_measures_what_an_evaluation_does(dataset, lists):
    """One run has one value, over the same queries."""
    texts = [graded("q", piece(*SMALL[0]), 3), graded("q", piece(*LARGE[0]), 2)]
    marked = [item.model_copy(update={"relevant": True}) for item in dataset.judgments()[:1]]
    by_hand = marked if lists else dataset.judgments()[:1]
    dataset.write_judgments([*by_hand, *dataset.judgments()[1:], *texts])
    names, settings = ["large", "own", "small"], EvaluateSettings(measures=("nDCG@10", "R@10"))
    scores = evaluate_dataset(dataset, names, settings).scores
    report = compare_runs(dataset, names, settings)

    assert report.means == {
        measure: {name: scores[name].mean(measure) for name in names}
        for measure in settings.measures
    }
    assert {name: of.summary("nDCG@10").n for name, of in scores.items()} == report.n_values[
        "nDCG@10"
    ]


def test_queries_in_which_a_run_has_nothing_graded_are_told(dataset):
    """Runs are measured over different queries then."""
    texts = [graded("r", piece(*SMALL[4]), 3)]
    kept = [item for item in dataset.judgments() if item.query_id == "q"]
    dataset.write_judgments([*kept, *texts])
    settings = EvaluateSettings(measures=("nDCG@10",))
    report = compare_runs(dataset, ["own", "small"], settings)

    assert report.n_values == {"nDCG@10": {"own": 1, "small": 2}}
    assert (
        "own: 1 query is left out of what goes by grades, as no text that it is measured on has "
        "one: 'r'"
    ) in report.warnings


EVIDENCE = Evidence(doc_id="d", chunk_id="c0", quote="x" * 50, start=20, end=70)


@pytest.fixture
def quoted(dataset):
    """The set, with evidence for its queries."""
    found = [item.model_copy(update={"evidence": (EVIDENCE,)}) for item in dataset.queries()]
    dataset.write_queries(found)
    return dataset


def test_runs_of_different_texts_are_measured_by_evidence_too(quoted):
    """Nobody should decide on nDCG of two chunkings because nothing else stands there."""
    found = evaluate_dataset(quoted, [], EvaluateSettings())

    assert found.measures == (*DEFAULT_MEASURES, *COMPARED_ON_EVIDENCE)
    assert found.scores["small"].mean("EvidenceR@10") == 1.0
    assert "EvidenceR@10, TokenR@10, TokenP@10, TokenIoU@10 do not depend" in found.warnings[-1]
    assert {*COMPARED_ON_EVIDENCE} <= measured(quoted)["large"].keys()


def test_runs_of_one_cutting_and_measures_that_are_asked_for_stay_as_they_are(quoted):
    """What was asked for is what is printed."""
    alike = evaluate_dataset(quoted, ["small", "small-2"], EvaluateSettings())
    asked = evaluate_dataset(quoted, [], EvaluateSettings(measures=("RR",)))

    assert (alike.measures, asked.measures) == (DEFAULT_MEASURES, ("RR",))


def test_a_set_without_evidence_has_the_usual_measures(dataset):
    """There is nothing to find."""
    assert evaluate_dataset(dataset, [], EvaluateSettings()).measures == DEFAULT_MEASURES


def failed_judgment(query_id, chunk_id):
    return Judgment(query_id=query_id, chunk_id=chunk_id, grade=None, contains_answer=None)


def test_failures_bound_a_run_by_the_texts_that_it_is_measured_on(dataset):
    """Its bounds in a comparison are those that an evaluation gives, whatever others retrieved."""
    texts = [graded("q", piece(*SMALL[0]), 3), graded("q", piece(*LARGE[0]), 2)]
    failed = [failed_judgment("q", piece(*LARGE[1])), failed_judgment("r", piece(*SMALL[4]))]
    dataset.write_judgments([*dataset.judgments(), *texts, *failed])
    settings = EvaluateSettings(measures=("nDCG@10",))
    scores = evaluate_dataset(dataset, [], settings).scores
    [item] = compare_runs(dataset, ["large", "small"], settings).items
    large, small = (scores[name].summary("nDCG@10") for name in ("large", "small"))

    assert item.outcome == "UNKNOWN"
    assert item.failure_bounds == Ends(small.low - large.high, small.high - large.low)
    assert (large.n_failed, small.n_failed) == (1, 1)


@pytest.mark.parametrize("third", [[], ["large"], ["own", "large"]])
def test_what_is_open_between_two_runs_does_not_depend_on_a_third(dataset, third):
    """Texts of another splitter are nothing that either could have found."""
    texts = [graded("q", piece(*SMALL[0]), 3), graded("q", piece(*LARGE[0]), 3)]
    failed = [failed_judgment("q", piece(*SMALL[4]))]
    dataset.write_judgments([*dataset.judgments(), *texts, *failed])
    settings = EvaluateSettings(measures=("nDCG@10",))
    alone = compare_runs(dataset, ["small", "small-2"], settings).items[0]
    item = compare_runs(dataset, ["small", "small-2", *third], settings).items[0]

    assert (item.failure_bounds, item.unjudged) == (alone.failure_bounds, alone.unjudged)


def test_runs_of_one_splitter_are_measured_on_the_same_texts(dataset):
    """Else the run that shares texts with more others would have more to find, and lose."""
    dataset.write_run("left", [of("q", SMALL[:3])])
    dataset.write_run("middle", [of("q", [*SMALL[:2], SMALL[8]])])
    dataset.write_run("right", [of("q", SMALL[7:])])
    for name in ("small", "small-2"):
        dataset.remove_run(name)
    texts = [graded("q", piece(*SMALL[at]), 3) for at in (0, 7, 9)]
    dataset.write_judgments([*dataset.judgments(), *texts])
    recall = {name: of["R@10"].mean for name, of in measured(dataset, "left", "middle").items()}

    assert recall == {"left": 1 / 6, "middle": 1 / 6}


def test_a_run_that_bridges_two_chunkings_makes_them_no_one(dataset):
    """The best values of two splitters are of different texts."""
    dataset.write_run("mixed", [of("q", [*SMALL[:1], *LARGE[2:]])])
    dataset.write_run("large", [of("q", LARGE[2:])])
    dataset.write_run("small", [of("q", [*SMALL[:1], SMALL[9]])])
    cut = chunkings(dataset)

    assert not are_cut_alike(cut, "small", "large")
    assert not are_cut_alike(cut, "small-2", "large")


def test_an_earlier_wording_stands_for_the_chunk_at_its_place(dataset):
    """A run of the night before could not find what was written since, and is no worse for it."""
    before = RetrievedText(
        chunk_id=text_id("before"),
        text="before",
        places=(Span(doc_id="d", start=5, end=195),),
        likeness=0.9,
    )
    dataset.write_chunks(
        Chunk(chunk_id=f"c{at}", doc_id="d", text="x" * 200, start=at, end=at + 200)
        for at in range(0, 3000, 200)
    )
    dataset.add_retrieved_texts([before], "before")
    others = [f"c{at}" for at in range(200, 3000, 200)]
    dataset.write_run("before", [ranking("q", before.chunk_id, *others)])
    dataset.write_run("now", [ranking("q", "c0", *others)])
    dataset.write_judgments([*dataset.judgments(), graded("q", before.chunk_id, 3)])
    values = {name: of["nDCG@10"].mean for name, of in measured(dataset, "before", "now").items()}

    assert chunkings(dataset)["before"].has_chunks
    # The other query is lacking in both.
    assert values == {"before": 0.5, "now": 0.5}


@pytest.fixture
def without_offsets(tmp_path):
    """A set with two documents of three chunks each that were imported without offsets."""
    made = create_dataset(tmp_path / "rows", made_from={"seed": "0"})
    made.write_chunks(
        Chunk(chunk_id=f"{doc_id}{at}", doc_id=doc_id, text=str(at) * 100)
        for doc_id in "de"
        for at in range(3)
    )
    made.write_queries([Query(query_id="q", query="What?")])
    made.write_run("whole", [ranking("q", "d0", "d1", "d2")])
    return made


@pytest.mark.parametrize(("start", "end"), [(101, 186), (0, 302)])
def test_texts_at_places_of_chunks_without_offsets_are_cut_otherwise(without_offsets, start, end):
    """Beginnings of chunks and whole documents are no chunks, whatever file these came from."""
    place = Span(doc_id="d", start=start, end=end)
    text = RetrievedText(chunk_id=text_id("other"), text="other", places=(place,))
    without_offsets.add_retrieved_texts([text], "cut")
    without_offsets.write_run("cut", [ranking("q", text.chunk_id, "e0", "e1")])
    cut = chunkings(without_offsets)

    assert not cut["cut"].has_chunks
    assert not are_cut_alike(cut, "whole", "cut")


NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
SENTENCES = [f"The {name} rooms of the house are swept on day {name} by all." for name in NUMBERS]
PAGES = [" ".join(SENTENCES[at : at + 3]) for at in range(0, 12, 3)]


@pytest.fixture
def without_documents(tmp_path):
    """A set of questions alone."""
    made = create_dataset(tmp_path / "questions", made_from={"seed": "0"})
    made.write_queries([Query(query_id="q", query="What?"), Query(query_id="r", query="Why?")])
    return made


def write_texts(dataset, name, **rankings):
    """Write a run of texts that stand nowhere."""
    texts = {text for of in rankings.values() for text in of}
    rows = [RetrievedText(chunk_id=text_id(text), text=text) for text in texts]
    dataset.add_retrieved_texts(rows, name)
    found = [ranking(query_id, *map(text_id, of)) for query_id, of in rankings.items()]
    dataset.write_run(name, found)


def test_one_text_in_common_makes_no_one_splitter_without_documents(without_documents):
    """A short page is one text however it is cut; pages that hold sentences are no sentences."""
    write_texts(without_documents, "small", q=SENTENCES[:6], r=SENTENCES[6:])
    write_texts(without_documents, "large", q=[*PAGES[:2], SENTENCES[5]], r=PAGES[2:])

    cut = chunkings(without_documents)
    assert not are_cut_alike(cut, "small", "large")
    assert why_not_alike(cut, "small", "large").startswith("they have different chunks")


def test_texts_that_nothing_else_tells_of_are_not_cut_alike_for_one_of_them(without_documents):
    """Where nearly nothing is in common, nobody knows whether one splitter cut both."""
    by_name = {"one": "Of one:", "two": "The other,"}
    for name, start in by_name.items():
        texts = [f"{start} {number}." for number in NUMBERS]
        write_texts(without_documents, name, q=texts, r=["Both."])
    cut = chunkings(without_documents)

    assert (cut["one"].runs, cut["two"].runs) == (("one",), ("two",))
    assert why_not_alike(cut, "one", "two").startswith("too few of their texts are in both")


def test_two_retrievers_of_one_index_are_cut_alike_without_documents(without_documents):
    """They find some texts in common; that the others are of one form tells nothing."""
    write_texts(without_documents, "bm25", q=SENTENCES[:6], r=SENTENCES[6:9])
    write_texts(without_documents, "dense", q=SENTENCES[4:9], r=SENTENCES[8:])

    assert are_cut_alike(chunkings(without_documents), "bm25", "dense")


def test_pieces_that_begin_elsewhere_are_cut_otherwise_without_documents(without_documents):
    """Neither holds the other, and each has most of one."""
    words = " ".join(f"{one} {other}" for one in NUMBERS for other in NUMBERS).split()
    starts = range(0, len(words), 24)
    pieces = [" ".join(words[at : at + 24]) for at in starts]
    moved = [" ".join(words[at + 8 : at + 32]) for at in starts]
    write_texts(without_documents, "pieces", q=[*pieces[:6], "Both texts."], r=pieces[6:])
    write_texts(without_documents, "moved", q=[*moved[:6], "Both texts."], r=moved[6:])

    assert not are_cut_alike(chunkings(without_documents), "pieces", "moved")


def test_marks_and_markup_alone_make_no_other_splitter(without_documents):
    """A service that highlights words returns the same texts."""
    marked = [text.replace("rooms", "<em>rooms</em>").rstrip(".") for text in SENTENCES]
    write_texts(without_documents, "plain", q=SENTENCES[:6], r=SENTENCES[6:])
    write_texts(without_documents, "marked", q=marked[:6], r=marked[6:])

    assert are_cut_alike(chunkings(without_documents), "plain", "marked")


def of_people(query_id, chunk_id, grade, level="chunk"):
    return Judgment(query_id=query_id, chunk_id=chunk_id, grade=grade, source="human", level=level)


def test_a_text_that_is_no_chunk_is_one_hole_where_labels_are_complete(dataset):
    """One text of another site made holes of all that people had left out."""
    dataset.write_manifest(dataset.manifest.model_copy(update={"labels": "complete"}))
    dataset.write_judgments([of_people("q", "c0", 3), of_people("r", "c400", 3)])
    gone = RetrievedText(chunk_id=text_id("gone"), text="gone")
    dataset.add_retrieved_texts([gone], "own")
    dataset.write_run("own", [ranking("q", "c0", "c200", gone.chunk_id), ranking("r", "c400")])

    [run] = load_evaluation_data(dataset, run_names=["own"]).runs

    assert (run.summary.holes.n_retrieved, run.summary.holes.n_unjudged) == (4, 1)


def test_texts_are_measured_by_documents_where_labels_name_these(dataset):
    """However a service cuts a document, what it returns is of it."""
    dataset.write_manifest(
        dataset.manifest.model_copy(update={"labels": "complete", "level": "document"})
    )
    dataset.write_judgments([of_people(name, "d", 3, "document") for name in "qr"])
    dataset.write_run("small", [of("q", SMALL[:6]), of("r", SMALL[4:8])])

    report = compare_runs(dataset, ["own", "small"], EvaluateSettings(measures=("RR",)))

    [item] = report.items
    assert (item.comparison.mean_a, item.comparison.mean_b, item.outcome) == (1.0, 1.0, "TIE")
    [run] = load_evaluation_data(dataset, run_names=["small"]).runs
    assert run.summary.holes.n_unjudged == 0


def test_two_texts_at_one_place_are_one_passage(dataset):
    """A service adds words to its first hit; other queries have the passage as it is."""
    place = Span(doc_id="d", start=0, end=210)
    text = "c0 Read more"
    more = RetrievedText(chunk_id=text_id(text), text=text, places=(place,))
    dataset.add_retrieved_texts([more], "more")
    dataset.write_run("more", [ranking("q", more.chunk_id, "c200"), ranking("r", "c400", "c0")])
    dataset.add_judgments(iter([graded("q", more.chunk_id, 3)]))
    values = measured(dataset, "more")["more"]

    assert (values["nDCG@10"].mean, values["R@10"].mean) == (1.0, 1.0)


TAIL = " Print this page."


@pytest.fixture
def with_copies(without_documents):
    """Two runs of one splitter; one has the first passage again, with words behind it."""
    copy = SENTENCES[0] + TAIL
    write_texts(without_documents, "once", q=SENTENCES[:6], r=SENTENCES[6:])
    write_texts(
        without_documents, "twice", q=[SENTENCES[0], copy, *SENTENCES[1:6]], r=SENTENCES[6:]
    )
    relevant = [graded("q", text_id(text), 3) for text in (SENTENCES[0], copy, SENTENCES[5])]
    without_documents.write_judgments([*relevant, graded("r", text_id(SENTENCES[6]), 3)])
    return without_documents


def test_a_passage_that_comes_twice_counts_once(with_copies):
    """Neither does a run gain by a copy, nor one lose that has none."""
    values = measured(with_copies, "once", "twice")

    assert are_cut_alike(chunkings(with_copies), "once", "twice")
    assert {name: of["R@10"].mean for name, of in values.items()} == {"once": 1.0, "twice": 1.0}
    assert values["twice"]["RR"].mean == values["once"]["RR"].mean
    assert values["twice"]["nDCG@10"].mean < values["once"]["nDCG@10"].mean
    assert values["twice"]["Judged@10"].mean > values["once"]["Judged@10"].mean


def test_a_comparison_counts_a_passage_once_as_an_evaluation_does(with_copies):
    """One run has one value, and failures are bounded on the same grades."""
    failed = failed_judgment("q", text_id(SENTENCES[3]))
    with_copies.add_judgments(iter([failed]))
    names, settings = ["once", "twice"], EvaluateSettings(measures=("nDCG@10", "R@10"))
    scores = evaluate_dataset(with_copies, names, settings).scores
    report = compare_runs(with_copies, names, settings)
    item = report.items[0]
    assert report.means == {
        measure: {name: scores[name].mean(measure) for name in names}
        for measure in settings.measures
    }
    once, twice = (scores[name].summary("nDCG@10") for name in names)

    assert item.failure_bounds is not None
    assert item.failure_bounds.low == pytest.approx(twice.low - once.high)
    assert item.failure_bounds.high == pytest.approx(twice.high - once.low)
