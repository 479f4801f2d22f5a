import pytest
from refresh.two_versions import (
    JUDGE,
    asking,
    chunks_of,
    diff_of,
    graded,
    id_of,
    make_parent,
    pooled,
    stage,
)

from ragforge.config import EvaluateSettings
from ragforge.evaluating.history.run_history import moved
from ragforge.files.set.history import read_history
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.history import keep_evaluations, run_histories
from ragforge.records import Hit, Ranking
from ragforge.refresh.grades.carrying import carry_judgments
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery
from ragforge.refresh.version import bridge_of

TEXTS = tuple(f"Part {n} of the manual." for n in range(8))
BEFORE = {"old": TEXTS, "b": ("Something else.",)}
RENAMED = {"new": TEXTS, "b": ("Something else.",)}
MEASURES = EvaluateSettings(measures=("RR", "nDCG@5"))


def query_of(n, doc_id="old"):
    return asking(f"q{n}", doc_id, TEXTS[n], TEXTS[n], query=f"What of part {n}?")


def queries(doc_id):
    return [query_of(n, doc_id) for n in range(8)]


class Versions:
    """A set that was evaluated, and its next version."""

    def __init__(self, place):
        self.place = place
        judgments = [graded(f"q{n}", id_of("old", TEXTS[n]), 3) for n in range(8)]
        pool = [pooled(f"q{n}", id_of("old", TEXTS[n])) for n in range(8)]
        self.parent = make_parent(place / "set", BEFORE, queries("old"), judgments, pool)

    def next(self, now, doc_id="new", renamed=None):
        diff = diff_of(BEFORE, now, self.place / "diff", renamed)
        staged = stage(self.parent, self.place / "staged", diff)
        staged.write_queries(queries(doc_id))
        items = [
            UpdatedQuery(old, new, is_moved=old != new)
            for old, new in zip(queries("old"), queries(doc_id), strict=True)
        ]
        carry_judgments(staged, self.parent, diff, UpdatedQueries(items), (JUDGE,))
        return staged


@pytest.fixture
def versions(tmp_path):
    return Versions(tmp_path)


def run_of(texts, shift=0):
    """Return what a system finds by texts alone: each part behind the one before it."""
    doc_id = next(name for name, parts in texts.items() if parts == TEXTS)
    found = [id_of(doc_id, text) for text in TEXTS]
    return [
        Ranking(
            query_id=f"q{n}",
            ranking=tuple(
                Hit(chunk_id=found[(n + at + 7 + shift) % 8], score=8.0 - at) for at in range(5)
            ),
        )
        for n in range(8)
    ]


def evaluate(dataset, rankings):
    dataset.write_run("system", rankings)
    [kept] = keep_evaluations(dataset, evaluate_runs(dataset, (), MEASURES))
    return kept


def test_renamed_document_leaves_an_unchanged_system_where_it_was(versions):
    """To move a page is no news about the retriever, and none about the set."""
    before = evaluate(versions.parent, run_of(BEFORE))
    now = evaluate(versions.next(RENAMED, renamed={"old": "new"}), run_of(RENAMED))

    assert now.bridge_to == before.evaluation_id
    for name in ("RR", "nDCG@5"):
        found = now.bridge[name]
        assert (found.n, found.diff, found.n_left_out) == (8, 0.0, 0)
    assert moved(before, now, "RR").cause == "neither"


def test_system_that_got_better_is_seen_through_a_rename(versions):
    """A bridge that always says 0 would be no bridge."""
    evaluate(versions.parent, run_of(BEFORE))
    now = evaluate(versions.next(RENAMED, renamed={"old": "new"}), run_of(RENAMED, shift=1))

    found = now.bridge["RR"]
    assert (found.n, found.before, found.now) == (8, 0.5, 1.0)


def test_history_shows_the_full_score_and_that_of_the_bridge(versions):
    """A trend line over two versions has to say which part of it is the set's."""
    evaluate(versions.parent, run_of(BEFORE))
    staged = versions.next(RENAMED, renamed={"old": "new"})
    evaluate(staged, run_of(RENAMED))

    [found] = run_histories(staged, read_history(staged.home))

    assert [item.measures["RR"].mean for item in found.evaluations] == [0.5, 0.5]
    assert found.now.bridge["RR"].n == 8
    assert [one.same.diff for one in found.moved] == [0.0, 0.0]


def test_all_queries_are_in_the_bridge_after_a_rename(versions):
    """The name of a page is not what a query asks for."""
    staged = versions.next(RENAMED, renamed={"old": "new"})

    assert bridge_of(versions.parent, staged) == tuple(f"q{n}" for n in range(8))


@pytest.mark.parametrize(
    ("grade", "missing"), [(0, set()), (None, set()), (1, {"q3"}), (3, {"q3"})]
)
def test_query_with_another_relevant_chunk_leaves_the_bridge(versions, grade, missing):
    """Its recall is another one, whatever the system did."""
    now = {**BEFORE, "c": ("An addition.",)}
    staged = versions.next(now, "old")
    [chunk] = chunks_of({"c": now["c"]})
    staged.write_judgments([*staged.judgments(), graded("q3", chunk.chunk_id, grade)])

    assert {f"q{n}" for n in range(8)} - {*bridge_of(versions.parent, staged)} == missing


@pytest.mark.parametrize("update", [{"status": "quarantined"}, {"expected_answer": "Another."}])
def test_query_that_changed_leaves_the_bridge(versions, update):
    """What is asked for must be the same on both sides."""
    staged = versions.next({**BEFORE, "c": ("An addition.",)}, "old")
    first, *others = staged.all_queries()
    staged.write_queries([first.model_copy(update=update), *others])

    assert "q0" not in bridge_of(versions.parent, staged)
    assert len(bridge_of(versions.parent, staged)) == 7


def test_query_whose_relevant_chunk_is_gone_leaves_the_bridge(versions):
    """No system can find it any more."""
    judgments = versions.parent.judgments()
    [other] = chunks_of({"b": BEFORE["b"]})
    versions.parent.write_judgments([*judgments, graded("q1", other.chunk_id, 2)])

    staged = versions.next({"old": TEXTS}, "old")

    assert "q1" not in bridge_of(versions.parent, staged)


def test_query_that_two_judges_graded_leaves_the_bridge(versions):
    """A system that finds other texts would be held against itself by another judge."""
    now = {**BEFORE, "c": ("An addition.",)}
    staged = versions.next(now, "old")
    [chunk] = chunks_of({"c": now["c"]})
    other = JUDGE.model_copy(update={"model": "another"})
    more = graded("q3", chunk.chunk_id, 0, by=other)
    staged.write_judgments([*staged.judgments(), more])

    assert "q3" not in bridge_of(versions.parent, staged)
    assert len(bridge_of(versions.parent, staged)) == 7
