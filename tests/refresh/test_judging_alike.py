"""A night is judged as the set was, or says so before it spends."""

import asyncio

import pytest
from fakes import Recorder
from refresh.changed_corpora import settings_of

from ragforge.errors import UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.complete.completing import judging_settings
from ragforge.pipeline.job import Job
from ragforge.records import Hit, Judgment, Provenance, Query, Ranking
from ragforge.records.extra_body import told_extra_body
from ragforge.refresh.judging_alike import judging_alike


@pytest.fixture
def dataset(tmp_path):
    """A set with one query."""
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(())
    made.write_queries([Query(query_id="q", query="What?")])
    return made


@pytest.fixture
def graded(dataset):
    """Writes grades of chunks by their judges: model and protocol."""

    def write(*by, **more):
        dataset.write_judgments(
            Judgment(query_id="q", chunk_id=f"c{n}", grade=1, **more)
            if judge is None
            else Judgment(
                query_id="q",
                chunk_id=f"c{n}",
                grade=1,
                provenance=Provenance(kind="llm", model=judge[0], protocol=judge[1]),
                **more,
            )
            for n, judge in enumerate(by)
        )

    return write


@pytest.fixture
def alike(dataset, unused_url):
    """Returns the settings by which a night is judged, and what was said; nothing is asked."""

    def found(model="writer", panel=(), extra_body="", **sections):
        model = {"name": model, "base_url": unused_url, "extra_body": extra_body}
        settings = settings_of(model=model, judge={"panel": panel}, **sections)
        told = Recorder()
        job = asyncio.run(judging_alike(dataset, Job(settings, told)))
        notes = [event.message for event in told.named("note")]
        return judging_settings(job.settings).judge, notes

    return found


PANEL = ("lax+strict", "")
WRITER = ("writer", "batch 10 x 1")


def test_another_judge_is_refused_and_the_one_of_before_is_named(graded, alike):
    """A set with grades of two judges compares nothing."""
    graded(PANEL, PANEL)

    with pytest.raises(
        UsageError,
        match=r"another judge \(lax\+strict 2\), and writer .* \(panel = \[\"lax\", \"strict\"\]",
    ):
        alike()


def test_both_stand_where_that_is_asked_for(graded, alike):
    """Who changes the judge on purpose has a way."""
    graded(PANEL, PANEL)

    how, notes = alike(refresh={"other_judge": "mix"})

    assert (how.batch, notes) == (10, [])


def test_what_is_carried_is_still_of_its_judge(graded, alike):
    """The night after a mixed one is no other case."""
    graded(PANEL, PANEL, source="carried")

    with pytest.raises(UsageError, match="another judge"):
        alike()


def test_a_few_grades_of_a_judge_do_not_make_it_that_of_the_set(graded, alike):
    """One mixed night must not open the door for all later ones."""
    graded(PANEL, PANEL, WRITER)

    with pytest.raises(UsageError, match=r"lax\+strict 2, writer 1"):
        alike()


def test_what_runs_found_says_whose_set_it_is(dataset, graded, alike):
    """Pools were judged by who generated the set, and what is compared by another judge."""
    graded(WRITER, WRITER, WRITER, PANEL)
    hits = (Hit(chunk_id="c3", score=1.0),)
    dataset.write_run("bm25", [Ranking(query_id="q", ranking=hits)])

    with pytest.raises(UsageError, match=r"another judge \(lax\+strict 1\)"):
        alike()


@pytest.mark.parametrize("model", ["writer", "offline"])
@pytest.mark.parametrize(("kind", "source"), [("baseline", "judge"), ("human", "human")])
def test_grades_of_people_and_rules_are_of_no_other_judge(graded, alike, model, kind, source):
    """They count for none, or for any."""
    graded(None, None, source=source, provenance=Provenance(kind=kind, model="Ann"))

    assert alike(model)[1] == []


def test_a_night_that_judges_nothing_may_have_any_model(graded, alike):
    """It checks and writes alone."""
    graded(PANEL, PANEL)

    assert alike(generate={"complete": "off"})[1] == []


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        ("batch 10 x 1", (10, 1, [])),
        ("batch 10 x 1, alone", (10, 1, [])),
        ("", (1, 1, ["judged one by one, as the set was"])),
        ("batch 5 x 3", (5, 3, ["judged as the set was, batch 5 x 3"])),
        ("votes 3 at 0.7", (10, 1, [])),
    ],
)
def test_as_many_texts_are_shown_at_once_as_before(graded, alike, protocol, expected):
    """One by one and in batches are two judges in every comparison."""
    graded(("writer", protocol))

    how, notes = alike()

    assert (how.batch, how.permutations, notes) == expected


def test_a_rehearsed_set_goes_on_as_it_was_judged(dataset, alike):
    """What is rehearsed with `ragforge mock` is what a model will do."""
    by = Provenance(kind="mock", model="writer")
    dataset.write_judgments([Judgment(query_id="q", chunk_id="c", grade=1, provenance=by)])

    how, notes = alike()

    assert (how.batch, notes) == (1, ["judged one by one, as the set was"])


def test_a_panel_goes_on_one_by_one(graded, alike):
    """It is judged so by `judge --panel`, and pools would be judged in batches."""
    graded(PANEL)

    how, _ = alike(panel=("lax", "strict"))

    assert (how.panel, how.batch) == (("lax", "strict"), 1)


def test_what_is_said_about_judging_stands(graded, alike):
    """A setting goes before what was."""
    graded(("writer", ""))

    how, notes = alike(pool={"pool_batch": 4})

    assert (how.batch, notes) == (4, [])


HIGH = '{"reasoning_effort": "high"}'


def test_a_model_that_is_asked_with_other_fields_is_another_judge(graded, alike):
    """One that reasons longer is stricter, or laxer, by more than systems differ."""
    graded(*[("writer", f"batch 10 x 1, {told_extra_body(HIGH)}")] * 3)

    judge, told = alike(extra_body=HIGH)
    with pytest.raises(UsageError, match="--model writer with the --extra-body of then"):
        alike()

    assert (judge.batch, told) == (10, [])


def test_fields_that_came_later_are_told(graded, alike):
    """What was asked without them is of the judge without them."""
    graded(*[WRITER] * 3)

    with pytest.raises(UsageError, match="--model writer without --extra-body"):
        alike(extra_body=HIGH)
