"""The answers of a sweep: from which contexts, asked how often, graded, compared and refused."""

import asyncio
import json
import shutil

import pytest

import ragforge as rf
from ragforge.errors import BudgetError, EndpointError, UsageError
from ragforge.evaluating.configurations import Configuration, Top
from ragforge.evaluating.sweep_answers import AnsweredConfiguration, SweepAnswers, compare_answers
from ragforge.files.set.opening import open_dataset
from ragforge.mock.running import serving
from ragforge.records import AnswerGrade
from ragforge.report.sweep_answers import answers_json, answers_verdict

DOCUMENTS = {
    f"{name}.md": f"# {name.title()}\n\n"
    + "\n\n".join(
        f"## Part {n}\n\nThe {name} of room {n} is a device that moves {n * 7} crates an hour. "
        f"It was built in {1900 + n} by the yard of pier {n}, and painted twice since then."
        for n in range(1, 7)
    )
    for name in ("crane", "lift", "winch", "ferry")
}
GIVEN = {"sizes": [100, 300], "splitters": "recursive", "tokens": [60]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a set of some queries with quotes."""
    return rf.generate(
        DOCUMENTS, out=tmp_path_factory.mktemp("made") / "set", n=8, allow_shortfall=True
    )


@pytest.fixture
def ds(made, tmp_path):
    """Return a copy of it."""
    shutil.copytree(made.path, tmp_path / "set")
    return rf.open(tmp_path / "set")


@pytest.fixture
def endpoint():
    """Return the address of an endpoint that answers and grades."""
    with serving() as running:
        yield running.url


@pytest.fixture
def knowing(ds):
    """Return a system that gives the expected answer where the contexts hold the evidence."""
    quotes = {item.query: [e.quote for e in item.evidence] for item in ds.queries()}
    expected = {item.query: item.expected_answer for item in ds.queries()}

    def read(query, contexts):
        read.asked.append((query, tuple(contexts)))
        text = " ".join(" ".join(contexts).split())
        held = all(" ".join(quote.split()) in text for quote in quotes[query])
        return expected[query] if held else "I do not know."

    read.asked = []
    return read


def test_a_configuration_whose_contexts_hold_the_evidence_answers_better(ds, knowing):
    """That is what chunks are chosen for."""
    found = ds.sweep(**GIVEN, system=knowing, answer_top=2)

    by_evidence = [item.value.mean for item in found.report.results]
    assert [item.score.mean for item in found.answers.results] == pytest.approx(by_evidence)


def test_contexts_stand_in_the_documents_and_keep_to_the_budget(ds, knowing):
    """Answers are compared at the same price."""
    ds.sweep(**GIVEN, system=knowing, answer_top=2)

    for _, contexts in knowing.asked:
        assert all(any(text in whole for whole in DOCUMENTS.values()) for text in contexts)
        assert sum(len(text) for text in contexts) < 60 * 6


def test_the_awaited_twin_asks_too(ds, knowing):
    """Notebooks have a loop of their own."""
    found = asyncio.run(ds.aio.sweep(**GIVEN, system=knowing))

    assert found.answers.n_asked == len(knowing.asked) > 0


def test_the_same_contexts_are_asked_about_once(ds, knowing):
    """Two retrievers often find the same, and answers cost money."""
    ds.sweep(sizes=[300], splitters="recursive", retrievers=["bm25", "bm25+bm25"], system=knowing)

    assert len(set(knowing.asked)) == len(knowing.asked)


def test_only_finalists_are_answered_for(ds, knowing):
    """A configuration that finds less evidence is not worth the calls."""
    found = ds.sweep(sizes=[30, 40, 60, 80, 100, 300, 400], splitters="recursive", system=knowing)

    finalists = [found.best, *found.not_told_apart][:5]
    answered = {item.configuration for item in found.answers.results}
    assert answered == {item.configuration for item in finalists}


def test_as_many_as_are_asked_for_are_answered_for(ds, knowing):
    """Who wants the whole table of answers pays for it."""
    found = ds.sweep(**GIVEN, retrievers=["bm25", "chargram"], system=knowing, answer_top=4)

    assert len(found.answers.results) == 4


def echo(query, contexts):
    return " ".join(contexts)


def test_grades_of_the_baseline_name_no_best(ds):
    """Shared words are no judge of answers."""
    found = ds.sweep(**GIVEN, system=echo, answer_top=2)

    assert "No best is named: offline" in " ".join(found.table().split())
    assert found.to_dict()["answers"]["best"] is None


def test_the_model_itself_answers(ds, endpoint):
    """Most have no service that takes contexts."""
    found = ds.sweep(**GIVEN, system="model", model="m", base_url=endpoint)

    assert found.answers.calls > found.answers.n_queries
    assert found.answers.best.score.mean > 0


def test_a_second_sweep_buys_nothing(ds, endpoint):
    """Every reply is kept."""
    first = ds.sweep(**GIVEN, system="model", model="m", base_url=endpoint).to_dict()

    again = ds.sweep(**GIVEN, system="model", model="m", base_url=endpoint).to_dict()

    assert again["answers"]["calls"] == 0
    assert again["answers"]["configurations"] == first["answers"]["configurations"]


def test_a_budget_stops_the_answers_and_more_goes_on(ds, endpoint):
    """What was bought until then counts."""
    asked = {**GIVEN, "system": "model", "model": "m", "base_url": endpoint, "single_call": True}
    with pytest.raises(BudgetError):
        ds.sweep(**asked, max_calls=5)

    assert (
        ds.sweep(**asked).answers.calls + 5
        == ds.sweep(**asked, dry_run=True).forecast.answers.estimate["cached"]
    )


def test_a_dry_run_asks_nobody_and_counts_what_would_be(ds, endpoint):
    """Answers are what costs."""
    asked = {**GIVEN, "system": "model", "model": "m", "base_url": endpoint, "single_call": True}
    forecast = ds.sweep(**asked, answer_top=2, dry_run=True).forecast.answers

    found = ds.sweep(**asked, answer_top=2).answers

    assert not forecast.is_exact
    assert found.calls <= forecast.estimate["calls"] == 2 * 2 * found.n_queries


def test_a_dry_run_after_ranking_is_exact(ds, knowing):
    """Who is in the final is known then, and what was asked before."""
    ds.sweep(**GIVEN, system=knowing)

    forecast = ds.sweep(**GIVEN, system=knowing, dry_run=True).forecast.answers

    assert forecast.is_exact
    assert forecast.asked == len(knowing.asked)


SYSTEM = """
asked = []

def read(query, contexts):
    asked.append(query)
    return contexts[0] if contexts else ""
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a module with a system."""
    import importlib

    (tmp_path / "my_reader.py").write_text(SYSTEM, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    import my_reader

    yield my_reader
    import sys

    del sys.modules["my_reader"]


def test_what_a_named_system_answered_is_kept(ds, module):
    """It may be dear."""
    ds.sweep(**GIVEN, system="my_reader:read")
    n = len(module.asked)

    found = ds.sweep(**GIVEN, system="my_reader:read")

    assert (len(module.asked), found.answers.n_kept) == (n, n)


def test_a_system_is_asked_again_on_demand(ds, module):
    """What stands behind its name may have changed."""
    ds.sweep(**GIVEN, system="my_reader:read")
    n = len(module.asked)

    ds.sweep(**GIVEN, system="my_reader:read", again=True)

    assert len(module.asked) == 2 * n


def test_a_failed_answer_has_no_value_and_is_asked_again(ds, module):
    """A failure is never a zero."""
    first = module.read

    def failing(query, contexts):
        module.asked.append(query)
        if query == module.asked[0]:
            raise OSError("no line")
        return first(query, contexts)

    module.read = failing
    broken = ds.sweep(**GIVEN, system="my_reader:read", answer_top=1).answers.best
    module.read = first
    whole = ds.sweep(**GIVEN, system="my_reader:read", answer_top=1).answers.best

    assert (broken.score.n_failed, whole.score.n_failed) == (1, 0)
    [why] = broken.answered.failed.values()
    assert "no line" in why


def test_a_system_that_always_fails_is_an_error(ds):
    """An empty table is no result; the evidence is kept."""

    def broken(query, contexts):
        raise OSError("no line")

    with pytest.raises(EndpointError, match="no line"):
        ds.sweep(**GIVEN, system=broken)
    kept = json.loads((ds.path / ".ragforge" / "sweep" / "sweep.json").read_text())
    assert kept["answers"] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"system": "model"}, "expected --model NAME|expected model"),
        ({"system": lambda query: query}, "retrieves by itself"),
        ({"system": "modle"}, "did you mean model"),
        ({"answer_top": 2}, "go with system"),
        ({"system": print, "answer_top": 0}, "expected a number from 1"),
    ],
    ids=["offline", "alone", "misspelt", "no-system", "none"],
)
def test_what_cannot_answer_is_refused_before_anything_is_ranked(ds, given, message):
    """A night of ranking must not end in a slip."""
    with pytest.raises(UsageError, match=message):
        ds.sweep(**GIVEN, **given)
    assert not list((ds.path / ".ragforge").glob("sweep/*.json"))


def test_queries_without_an_expected_answer_are_left_out_and_told(ds, knowing):
    """There is nothing to hold their answers against."""
    dataset = open_dataset(ds.path)
    first, *others = dataset.all_queries()
    dataset.write_queries([first.model_copy(update={"expected_answer": None}), *others])

    found = ds.sweep(**GIVEN, system=knowing)

    assert found.answers.n_left_out == 1
    assert "1 query without an expected answer: not asked" in found.table()


def test_a_set_without_expected_answers_is_refused(ds, knowing):
    """No answer could be graded."""
    dataset = open_dataset(ds.path)
    bare = [query.model_copy(update={"expected_answer": None}) for query in dataset.all_queries()]
    dataset.write_queries(bare)

    with pytest.raises(UsageError, match="no query that is measured has an expected answer"):
        ds.sweep(**GIVEN, system=knowing)


def test_a_part_of_the_queries_is_answered(ds, knowing):
    """Answers of some queries first cost less."""
    found = ds.part(4).sweep(**GIVEN, system=knowing, answer_top=1)

    assert found.answers.n_queries == 4


def test_the_page_has_the_answers(ds, knowing, tmp_path):
    """It is what is passed on."""
    ds.sweep(**GIVEN, system=knowing, out=tmp_path / "s.html")

    assert (
        "best first</"
        in (tmp_path / "s.html").read_text(encoding="utf-8").partition("Answers of")[2]
    )


def graded(name, scores, failed=()):
    """Return answers of a configuration with these scores, by place; some have failed."""
    grades = {
        f"q{n}": AnswerGrade(
            query_id=f"q{n}",
            verdict="correct" if score else "incorrect",
            score=score,
            has_hallucination=None,
        )
        for n, score in scores.items()
    }
    configuration = Configuration(name, None, 0, "bm25")
    reasons = {f"q{n}": "no line" for n in failed}
    return AnsweredConfiguration(configuration, {}, grades, reasons, 100.0)


def test_answers_that_failed_make_no_best_and_no_loser():
    """Who fails on the hard half has the mean of the easy one."""
    whole = graded("whole", {n: 1.0 if n < 15 else 0.2 for n in range(20)})
    failing = graded("failing", dict.fromkeys(range(10), 1.0), failed=range(10, 20))
    poor = graded("poor", dict.fromkeys(range(20), 0.0))
    open_ = graded("open", dict.fromkeys(range(5), 0.0), failed=range(5, 20))

    found = compare_answers([failing, whole, poor, open_], None)

    assert [item.configuration.splitter for item in found] == ["whole", "failing", "open", "poor"]
    assert {item.configuration.splitter: item.is_worse for item in found} == {
        "whole": False,
        "failing": False,
        "open": False,
        "poor": True,
    }


def swept(*answered):
    results = compare_answers(answered, None)
    return SweepAnswers("s", "m", Top(), results, n_queries=20, n_configurations=len(results))


def test_of_equal_answers_none_is_first():
    """The one that came first by its name was called so, at a difference of 0.000."""
    good = [graded(name, dict.fromkeys(range(20), 1.0)) for name in ("a", "b")]
    poor = graded("c", dict.fromkeys(range(20), 0.0))

    assert "All 2 configurations are equal by answers" in answers_verdict(swept(*good))
    assert answers_json(swept(*good))["best"] is None
    assert "with equal values: a, bm25; b, bm25" in answers_verdict(swept(*good, poor))
