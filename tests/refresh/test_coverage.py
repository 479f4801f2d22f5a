from collections import Counter
from contextlib import ExitStack

import pytest
from pipeline.generation.making import endpoint
from refresh.changed_corpora import (
    FIRST,
    folder_of,
    later,
    make_set,
    settings_of,
)

from ragforge.errors import BudgetError, EndpointError
from ragforge.files.manifest import Aim
from ragforge.pipeline.generation.generated_queries import is_own
from ragforge.stages.generate.gates.repeated_questions import normal_question
from ragforge.stages.generate.quotas import make_cells

pytestmark = pytest.mark.slow


NEW = ("returns-2025", "shipping-2025")


class World:
    """A set of six documents, whose corpus changes."""

    def __init__(self, place, stack):
        self.place, self.stack, self.n = place, stack, 0
        self.documents = folder_of(place / "documents", FIRST)

    def make(self, n=12, **sections):
        self.settings = settings_of(generate={"n": n}, **sections)
        self.parent = make_set(self.place / "set", self.documents, self.settings)
        return self

    def later(self, added=(), removed=()):
        self.n += 1
        folder_of(self.documents, added)
        for name in removed:
            (self.documents / f"{name}.md").unlink(missing_ok=True)
        place = self.place / f"later-{self.n}"
        place.mkdir()
        return self.stack.enter_context(later(self.parent, self.documents, place))


@pytest.fixture
def world(tmp_path):
    with ExitStack() as stack:
        yield World(tmp_path, stack)


def refreshing(settings, **changes):
    refresh = settings.refresh.model_copy(update=changes)
    return settings.model_copy(update={"refresh": refresh})


def sources(filled):
    return {item.doc_id for one in filled.items for item in one.query.evidence}


def test_lost_queries_and_new_documents_are_made_up_for(world):
    """A set that only loses is soon too small to tell anything."""
    version = world.make().later(NEW, ["privacy"])
    updated = version.updated()
    n_left = sum(query.status == "accepted" for query in updated.queries)

    filled = version.fill(updated, world.settings)

    assert n_left < 12
    assert n_left + len(filled.items) == 14
    assert {"returns-2025.md", "shipping-2025.md"} <= sources(filled)
    assert filled.shortfall == ""


def test_nothing_is_missing_where_nothing_was_lost(world):
    """An edit that costs no query must not make the set grow night after night."""
    version = world.make().later()

    filled = version.fill(version.updated(), world.settings)

    assert filled.items == []


def test_new_queries_stand_by_themselves_with_their_grades(world):
    """A later `generate` must not throw away what it did not write."""
    version = world.make().later(NEW)
    filled = version.fill(version.updated(), world.settings)
    queries = {item.query.query_id: item.query for item in filled.items}

    graded = {item.query_id for item in version.staged.each_judgment()}
    assert not any(map(is_own, queries.values()))
    assert set(queries) <= graded


def test_slots_go_on_where_the_parent_ended(world):
    """Two slots of one id cannot be told apart in the plan."""
    version = world.make().later(NEW)
    before = [slot.slot_id for slot in version.parent.plan()]
    version.fill(version.updated(), world.settings)

    after = [slot.slot_id for slot in version.staged.plan()]
    assert after[: len(before)] == before
    assert len(set(after)) == len(after) > len(before)


def test_the_causes_tell_documents_from_losses(world):
    """Whoever reads the diff wants to know why a query came."""
    world.make()
    version = world.later(NEW, ["privacy"])
    filled = version.fill(version.updated(), world.settings)

    causes = Counter(cause.kind for item in filled.items for cause in item.change.causes)
    assert causes["document added"] == 2
    assert causes["too few queries"] == len(filled.items) - 2


def test_no_question_comes_again(world):
    """A retired query that came back would be counted twice over the versions."""
    version = world.make().later()
    ids = [query.query_id for query in version.parent.queries()]
    filled = version.fill(version.updated(*ids[:6]), world.settings)

    old = {normal_question(query.asked) for query in version.parent.all_queries()}
    new = [normal_question(item.query.asked) for item in filled.items]
    assert len(new) == 6
    assert old.isdisjoint(new)


def test_most_at_once_is_held_to_and_told(world):
    """Somebody pays for every query."""
    version = world.make().later(NEW, ["privacy"])
    settings = refreshing(world.settings, max_new=1)

    filled = version.fill(version.updated(), settings)

    assert len(filled.items) == 1
    assert filled.shortfall.endswith("(the set is kept at 14): refresh.max_new allows 1")


def test_none_at_all_can_be_asked_for(world):
    """Some people write their queries themselves."""
    version = world.make().later(NEW)
    settings = refreshing(world.settings, max_new=0)

    filled = version.fill(version.updated(), settings)

    assert filled.items == []
    assert "refresh.max_new allows 0" in filled.shortfall


def test_what_a_version_fell_short_of_is_caught_up(world):
    """A limit a night must not become a loss for ever."""
    world.make()
    manifest = world.parent.manifest
    aim = Aim(wanted=15, accepted=12)
    world.parent.write_manifest(manifest.model_copy(update={"aim": aim}))
    version = world.later()

    filled = version.fill(version.updated(), world.settings)

    assert len(filled.items) == 3
    assert version.staged.manifest.aim == Aim(wanted=15, accepted=15)


def test_a_surplus_of_revived_queries_is_no_new_aim(world):
    """A document that comes and goes would make the set grow each time."""
    world.make()
    manifest = world.parent.manifest
    aim = Aim(wanted=10, accepted=12)
    world.parent.write_manifest(manifest.model_copy(update={"aim": aim}))
    version = world.later()

    plan = version.plan(version.updated(), world.settings)

    assert (plan.wanted, plan.cells) == (10, ())


def test_queries_that_came_by_other_ways_are_kept_up(world):
    """Who generates thirty more wants to keep them."""
    world.make()
    manifest = world.parent.manifest
    aim = Aim(wanted=5, accepted=5)
    world.parent.write_manifest(manifest.model_copy(update={"aim": aim}))
    version = world.later()

    assert version.plan(version.updated(), world.settings).wanted == 12


def test_a_sparse_set_grows_as_sparsely(world):
    """10,000 new documents beside 20 queries on 1,000 must not ask for 10,000 queries."""
    version = world.make(n=1).later(
        [*NEW, "warranty-2025"],
    )

    plan = version.plan(version.updated(), world.settings)

    assert len(plan.growth) < 3
    assert plan.wanted == 1 + len(plan.growth)


def test_a_set_made_by_hand_is_left_to_its_makers(world):
    """Generated queries among those of people would be a surprise."""
    world.make()
    queries = [q.model_copy(update={"origin": "human"}) for q in world.parent.all_queries()]
    world.parent.write_queries(queries)
    version = world.later(NEW, ["privacy"])

    filled = version.fill(version.updated(), world.settings)

    assert filled.items == []
    assert "none of its queries was generated" in filled.shortfall


def test_a_corpus_that_carries_no_more_is_told(world):
    """Nobody should look for a fault where there is no more text."""
    world.make()
    manifest = world.parent.manifest
    aim = Aim(wanted=4000, accepted=12)
    world.parent.write_manifest(manifest.model_copy(update={"aim": aim}))
    version = world.later()

    filled = version.fill(version.updated(), refreshing(world.settings, max_new=500))

    assert "carries no more" in filled.shortfall or "source after source" in filled.shortfall


def test_the_kinds_of_the_whole_go_back_to_the_plan(world):
    """If all lost queries were comparisons, facts in their place would be another set."""
    world.make(n=20)
    kinds = [cell.type for cell in make_cells(world.settings.generate, 0)]
    queries = [
        query.model_copy(update={"type": kind})
        for query, kind in zip(world.parent.queries(), kinds, strict=True)
    ]
    world.parent.write_queries(queries)
    version = world.later()
    lost = queries[3:9]

    plan = version.plan(version.updated(*(query.query_id for query in lost)), world.settings)

    assert Counter(cell.type for cell in plan.cells) == Counter(query.type for query in lost)


@pytest.fixture
def modelled(world):
    with endpoint() as running:
        world.make(model={"name": "writer", "base_url": running.url})
        yield world, running


def test_a_rerun_buys_nothing_and_gives_the_same(modelled):
    """A killed refresh is simply run again."""
    world, running = modelled
    first = world.later(NEW, ["privacy"])
    one = first.fill(first.updated(), world.settings)
    asked = len(running.seen)
    second = world.later()

    two = second.fill(second.updated(), world.settings)

    assert (two, len(running.seen)) == (one, asked)
    assert one.n_calls > 0
    files = ("plan.jsonl", "judgments.jsonl", "manifest.json")
    assert [(first.staged.files / name).read_bytes() for name in files] == [
        (second.staged.files / name).read_bytes() for name in files
    ]


def test_new_queries_are_checked_and_measured(modelled):
    """They stand beside those that were."""
    world, _ = modelled
    version = world.later(NEW)
    filled = version.fill(version.updated(), world.settings)

    answerable = [item.query for item in filled.items if item.query.answerable]
    assert all(query.gates for query in answerable)
    assert {query.measured.depth for query in answerable} == {20}


def test_a_budget_ends_it(modelled):
    """Nothing is published that was not paid for; what was bought is not bought again."""
    world, _ = modelled
    version = world.later(NEW)
    budget = world.settings.budget.model_copy(update={"max_calls": 1})
    settings = world.settings.model_copy(update={"budget": budget})

    with pytest.raises(BudgetError, match="--max-calls 1 is reached"):
        version.fill(version.updated(), settings)


def test_a_dead_endpoint_ends_it(world, unused_url):
    """A set that shrank because nobody was there to write is no version."""
    world.make()
    version = world.later(NEW)
    model = {"name": "writer", "base_url": unused_url, "max_wait_s": 0.1, "max_attempts": 1}
    settings = settings_of(generate={"n": 12}, model=model)

    with pytest.raises(EndpointError, match=r"127\.0\.0\.1"):
        version.fill(version.updated(), settings)


def test_a_plan_tells_what_it_takes_without_a_call(modelled):
    """Somebody decides by it whether to start."""
    world, running = modelled
    version = world.later(NEW, ["privacy"])
    updated, asked = version.updated(), len(running.seen)

    found = version.estimate(updated, world.settings)

    n_cells = len(version.plan(updated, world.settings).cells)
    assert (found["queries"], found["steps"]["writing"]) == (n_cells, n_cells)
    assert found["calls"] > n_cells
    assert len(running.seen) == asked


def test_nothing_missing_takes_nothing(world):
    """Most nights bring nothing to write."""
    version = world.make().later()

    found = version.estimate(version.updated(), world.settings)

    assert found == {"queries": 0, "missing": 0, "calls": 0}
