import asyncio
import random

import pytest
from fakes import Recorder
from refresh.two_versions import diff_of, id_of, make_parent, stage

from ragforge.config import PoolSettings, Settings
from ragforge.errors import BudgetError
from ragforge.mock import Script, serving
from ragforge.pipeline.complete.completing import complete_dataset, probing_retrievers
from ragforge.pipeline.job import EARNEST, Job, Mode
from ragforge.pipeline.surveying import open_survey
from ragforge.records import Evidence, Failure, Provenance, Query
from ragforge.refresh.delta_pools import judge_new_chunks
from ragforge.refresh.grades.carrying import carry_judgments
from ragforge.refresh.queries.updates import UpdatedQueries, UpdatedQuery

pytestmark = pytest.mark.slow


THINGS = ("beeswax", "polish", "tables", "varnish", "cloth", "brush", "drying", "hours", "sanding")
BEFORE = {
    f"d{n:02}": (f"Page {n} tells of {THINGS[n % 9]} and of {THINGS[(n * 5 + 2) % 9]}.",)
    for n in range(40)
}
BEST = "Beeswax polish, tables."
OFF = "Whales swim."
ANSWER = "With a soft cloth."
NO_MODEL = PoolSettings(pool_model="none")


class Plain:
    """Asks another retriever, so that nobody knows who it is."""

    def __init__(self, inner):
        self.inner = inner

    async def retrieve(self, query, k):
        return await self.inner.retrieve(query, k)


class World:
    """A set whose pools are whole, and what becomes of them when documents are added."""

    def __init__(self, place, endpoint, queries, before=None):
        self.place, self.endpoint, self.before = place, endpoint, before or BEFORE
        self.parent = make_parent(place / "set", self.before, queries)
        self.settings = self.with_settings()
        with self.survey(self.parent) as survey:
            asyncio.run(
                complete_dataset(
                    self.parent,
                    survey,
                    probing_retrievers(survey, None, NO_MODEL, self.parent.own_place),
                    Job(self.settings, Recorder()),
                )
            )
        endpoint.reset()
        self.n = 0

    def with_settings(self, **sections):
        pool = {"pool_k": 4, "pool_most": 8, "pool_batch": 5}
        model = {"name": "m", "base_url": self.endpoint.url}
        return Settings.model_validate({"model": model, "pool": pool, **sections})

    def survey(self, dataset):
        return open_survey(dataset.chunks_path, self.place / "own", Recorder())

    def later(self, now):
        """Stage the next version."""
        self.n += 1
        diff = diff_of(self.before, now, self.place / f"diff{self.n}")
        staged = stage(self.parent, self.place / f"staged{self.n}", diff)
        items = [UpdatedQuery(query, query) for query in self.parent.all_queries()]
        judge = Provenance(kind="llm", model="m")
        carry_judgments(staged, self.parent, diff, UpdatedQueries(items), (judge,))
        self.new = {chunk.chunk_id for chunk in diff.added()}
        return staged

    def judge(self, staged, *, plain=False, mode=EARNEST, whole=(), again=False, **sections):
        settings = self.with_settings(**sections)
        with self.survey(staged) as survey:
            retrievers = probing_retrievers(survey, None, NO_MODEL, self.parent.own_place)
            if plain:
                retrievers = {"bm25": Plain(survey.bm25)}
            return asyncio.run(
                judge_new_chunks(
                    staged,
                    survey,
                    retrievers,
                    Job(settings, Recorder(), mode),
                    new_chunks=self.new,
                    whole=whole,
                    again=again,
                )
            )

    @property
    def billed(self):
        return self.endpoint.ledger()["billed"]


def asking(query_id, query, doc_id="d00", texts=BEFORE):
    item = Evidence(doc_id=doc_id, chunk_id=id_of(doc_id, texts[doc_id][0]), quote="tells of")
    return Query(
        query_id=query_id,
        query=query,
        expected_answer=ANSWER,
        evidence=(item,),
        source_chunk_ids=(item.chunk_id,),
    )


QUERIES = [
    asking("q1", "How does beeswax polish go on tables?"),
    asking("q2", "Which brush is for varnish?", "d03"),
]


@pytest.fixture
def endpoint():
    with serving(Script()) as served:
        yield served


@pytest.fixture
def world(tmp_path, endpoint):
    return World(tmp_path, endpoint, QUERIES)


def pairs(dataset):
    return {(one.query_id, one.chunk_id) for one in dataset.judgments()}


def contents(dataset):
    return {path.name: path.read_bytes() for path in dataset.path.iterdir() if path.is_file()}


def test_only_a_new_chunk_that_comes_into_a_pool_is_judged(world):
    """The bill of a night must not grow with the set, but with what changed."""
    staged = world.later({**BEFORE, "new": (BEST,), "off": (OFF,)})

    done = world.judge(staged)

    new = {("q1", id_of("new", BEST))}
    assert pairs(staged) - pairs(world.parent) == new
    assert (done.n_pairs, done.n_judged, done.n_failed, done.n_calls) == (1, 1, 0, world.billed)
    assert {(one.query_id, one.chunk_id) for one in staged.pool()} == {
        *((one.query_id, one.chunk_id) for one in world.parent.pool()),
        *new,
    }


def test_nothing_is_asked_where_nothing_comes_into_a_pool(world):
    """Most nights change pages that no query is about."""
    staged = world.later({**BEFORE, "off": (OFF,)})
    before = contents(staged)

    done = world.judge(staged)

    assert (done.n_pairs, done.n_calls, done.n_searched, world.billed) == (0, 0, 0, 0)
    assert contents(staged) == before


def test_pool_that_a_new_chunk_at_its_end_makes_grow_gets_more(world):
    """Where one relevant page was added there may be more of its kind."""
    many = {f"n{n}": (f"{n}. {BEST}",) for n in range(9)}
    staged = world.later({**BEFORE, **many})

    world.judge(staged)

    new = [
        entry for entry in staged.pool() if entry.query_id == "q1" and entry.chunk_id in world.new
    ]
    assert max(rank for entry in new for rank in entry.probes.values()) == 8


def test_doing_it_again_costs_nothing_and_writes_the_same(world):
    """A refresh that was killed is repeated from the start."""
    now = {**BEFORE, "new": (BEST,)}
    first, again = world.later(now), world.later(now)
    one = world.judge(first)
    billed = world.billed
    other = world.judge(again)

    assert (one, world.billed) == (other, billed)
    assert contents(first) == contents(again)


def test_lost_store_costs_only_what_is_new(world):
    """What was published is in its files, and not bought again."""
    world.parent.store_path.unlink()
    staged = world.later({**BEFORE, "new": (BEST,)})

    done = world.judge(staged)

    assert (done.n_judged, world.billed) == (1, 1)


def test_grades_of_another_judge_stand_beside_those_of_today(world):
    """A prompt that is edited must not stop the nightly run, nor cost the whole set again."""
    other = Provenance(kind="llm", model="earlier")
    world.parent.write_judgments(
        one.model_copy(update={"provenance": other}) for one in world.parent.judgments()
    )
    staged = world.later({**BEFORE, "new": (BEST,)})

    done = world.judge(staged)

    assert (done.n_judged, world.billed) == (1, 1)
    assert {one.source for one in staged.judgments()} == {"carried", "judge"}


def test_dry_run_counts_and_leaves_everything(world):
    """What a night will cost is known before anything is spent."""
    staged = world.later({**BEFORE, "new": (BEST,)})
    before = contents(staged)

    done = world.judge(staged, mode=Mode(dry_run=True))

    [estimate] = done.estimates
    assert (done.n_pairs, estimate["calls"], world.billed) == (1, 1, 0)
    assert contents(staged) == before


def test_named_query_gets_a_whole_pool(world):
    """Its answer or evidence is another one: what stands beside that was never looked at."""
    kept = [one for one in world.parent.judgments() if one.query_id != "q1"]
    world.parent.write_judgments(kept)
    staged = world.later({**BEFORE, "off": (OFF,)})

    done = world.judge(staged, whole=["q1"])

    assert done.n_judged == sum(entry.query_id == "q1" for entry in staged.pool()) > 1


def test_pair_that_could_not_be_judged_is_tried_again(world):
    """A night without an endpoint must not leave a hole for good."""
    failed, *others = world.parent.judgments()
    hole = {"grade": None, "failure": "error", "provenance": None, "votes": ()}
    world.parent.write_judgments([failed.model_copy(update=hole), *others])
    staged = world.later({**BEFORE, "off": (OFF,)})

    done = world.judge(staged)

    assert (done.n_pairs, done.n_judged) == (1, 1)
    assert pairs(staged) == pairs(world.parent)


def test_failed_pairs_are_tried_again_without_a_new_chunk_where_that_is_asked_for(world):
    """`refresh --retry-failed` left them where the corpus stayed as it was, and said nothing."""
    failed, *others = world.parent.judgments()
    hole = {"grade": None, "failure": "error", "provenance": None, "votes": ()}
    world.parent.write_judgments([failed.model_copy(update=hole), *others])
    staged = world.later(BEFORE)

    assert world.judge(staged).n_pairs == 0
    done = world.judge(staged, again=True)

    assert (done.n_pairs, done.n_judged) == (1, 1)
    assert not any(one.is_failed for one in staged.judgments())


@pytest.mark.parametrize("whole", [(), ("q1", "q2")])
def test_copy_of_a_document_has_its_grades_for_nothing(world, whole):
    """The same words under another name are as relevant as they were."""
    staged = world.later({**BEFORE, **{f"copy of {name}": BEFORE[name] for name in BEFORE}})
    world.endpoint.reset()
    judged = {(one.query_id, one.chunk_id) for one in world.parent.judgments()}
    texts = {chunk.chunk_id: chunk.text for chunk in staged.chunks()}

    world.judge(staged, whole=whole)

    copies = [one for one in staged.judgments() if one.copied_from]
    assert copies
    assert {one.source for one in copies} == {"carried"}
    assert {(one.query_id, one.copied_from) for one in copies} <= judged
    assert all(texts[one.chunk_id] == texts[one.copied_from] for one in copies)


def test_copies_are_not_in_the_plan(world):
    """A plan that is dearer than the night is no plan."""
    staged = world.later({**BEFORE, "copy": BEFORE["d05"], "new": (BEST,)})
    plan = world.judge(staged, mode=Mode(dry_run=True))

    done = world.judge(staged)

    assert plan.n_pairs == done.n_pairs


def test_dry_run_of_a_set_without_grades_is_no_failure(tmp_path, endpoint):
    """An imported set has none; what a dry run does not ask has not failed."""
    world = World(tmp_path, endpoint, QUERIES)
    world.parent.write_judgments([])
    world.parent.write_pool([])
    staged = world.later({**BEFORE, "new": (BEST,)})

    plan = world.judge(staged, mode=Mode(dry_run=True))

    assert plan.n_pairs > 0


def test_query_of_a_failed_probe_gets_a_whole_pool_next_time(world):
    """What the probe would have found was new last night, and is not any more."""
    failure = Failure(what="retrieve", key="bm25:query/q2", kind="error", message="no vector")
    world.parent.replace_failures("retrieve", [failure], lambda key: True)
    staged = world.later({**BEFORE, "off": (OFF,)})

    done = world.judge(staged)

    assert done.n_searched == 1
    assert staged.failures() == []


def test_budget_stops_it(world):
    """A night that costs more than it may publishes nothing."""
    many = {f"n{n}": (f"{n}. {BEST}",) for n in range(9)}
    staged = world.later({**BEFORE, **many})

    with pytest.raises(BudgetError, match="max-calls"):
        world.judge(staged, budget={"max_calls": 1})


@pytest.mark.parametrize("seed", range(6))
def test_what_is_not_searched_would_have_found_nothing(tmp_path, endpoint, seed):
    """To save a search must not save a judgment."""
    draw = random.Random(seed)
    words = [f"word{n}" for n in range(60)]

    def text():
        return " ".join(draw.choices(words, k=draw.randint(3, 30)))

    texts = {f"d{n:03}": (text(), text()) for n in range(80)}
    queries = [
        asking(f"q{n:02}", " ".join(draw.sample(words, 3)), f"d{n:03}", texts) for n in range(12)
    ]
    world = World(tmp_path, endpoint, queries, texts)
    gone = draw.sample(sorted(texts), 3)
    now = {name: parts for name, parts in texts.items() if name not in gone}
    now |= {f"n{n}": (text(),) for n in range(5)}
    full, spared = world.later(now), world.later(now)

    searched = world.judge(full, plain=True).n_searched
    fewer = world.judge(spared).n_searched

    assert contents(full) == contents(spared)
    assert pairs(full) - pairs(world.parent)
    assert fewer < searched
