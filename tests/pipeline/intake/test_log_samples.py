"""A share of a log becomes queries: which, with what weight, and standing for what."""

import json
from collections import Counter

import pytest

from ragforge.errors import UsageError
from ragforge.files.formats.query_rows import ImportedQuery
from ragforge.files.set.opening import create_dataset
from ragforge.observe import silent
from ragforge.pipeline.intake.log_samples import LogSample, draw_questions
from ragforge.pipeline.intake.logs import import_logs
from ragforge.records import Chunk, Query, RealQuery


@pytest.fixture
def dataset(tmp_path):
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks([Chunk(chunk_id="c1", doc_id="a.md", text="The fee is ten percent.")])
    return made


@pytest.fixture
def draw(dataset, tmp_path):
    """Draw from a log of questions with counts, or of rows."""

    def run(rows, n, *, name="week47", observer=silent, **options):
        path = tmp_path / f"{name}.jsonl"
        if isinstance(rows, dict):
            rows = [{"query": text, "count": count} for text, count in rows.items()]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return import_logs([path], dataset, observer, unlabelled=LogSample(n, **options))

    return run


def drawn(dataset):
    return {query.query: query.drawn for query in dataset.all_queries()}


def test_a_share_becomes_queries_with_weights(dataset, draw):
    """One asked 8 of 10 times is certain; the other two share the second draw."""
    result = draw({"fee": 8, "oak wax": 1, "parcel locker": 1}, 2)

    found = drawn(dataset)
    assert len(found) == 2
    assert {(one.count, one.inclusion, one.weight) for one in found.values()} == {
        (8, 1.0, 8.0),
        (1, 0.5, 2.0),
    }
    assert {(one.batch, one.draw, one.seed, one.share) for one in found.values()} == {
        ("week47", "frequency", 0, 1.0)
    }
    assert (result.n_added, result.drawing.n_distinct, result.drawing.n_there) == (2, 3, 0)


@pytest.mark.parametrize(
    ("how", "expected"),
    [("frequency", {9: 0.9, 1: 0.1}), ("rarity", {9: 0.1, 1: 0.9}), ("even", {9: 0.5, 1: 0.5})],
)
def test_how_likely_each_is_drawn(dataset, draw, how, expected):
    """In proportion, in inverse proportion, or not at all by how often it was asked."""
    draw({"fee": 9, "oak wax": 1}, 1, draw=how)

    [one] = drawn(dataset).values()
    assert one.inclusion == pytest.approx(expected[one.count])


@pytest.mark.slow
def test_weights_give_the_traffic_back(tmp_path, dataset, draw):
    """Over all seeds the weights of the drawn ones come to what was asked: 6 + 3 + 2 + 1 = 12."""
    counts = {"fee": 6, "oak wax": 3, "parcel locker": 2, "return chair": 1}
    totals = Counter()
    for seed in range(200):
        draw(counts, 2, seed=seed, batch=f"b{seed}")
        for query in dataset.all_queries():
            totals[query.query] += query.drawn.weight / 200
        dataset.write_queries([])

    assert {text: round(total) for text, total in totals.items()} == counts


def test_weighted_means_of_draws_by_frequency_are_those_of_the_traffic():
    """Found are 3 of 5 of the often asked, none of the seldom asked: 30 of 50 + 10 is a half."""
    asked = {f"often{n}": 10 for n in "abcde"} | {f"seldom{n}": 1 for n in range(10)}
    new = [ImportedQuery(Query(query_id=text, query=text)) for text in asked]
    real = [RealQuery(query=text, count=count) for text, count in asked.items()]
    means = []
    for seed in range(300):
        found = draw_questions(
            real, new, LogSample(4, seed=seed, batch="b"), log="ab", n_asked=60, there=()
        ).queries
        weights = [item.query.drawn.weight for item in found]
        values = [item.query.query in ("oftena", "oftenb", "oftenc") for item in found]
        means.append(sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights))

    assert sum(means) / len(means) == pytest.approx(0.5, abs=0.03)


def test_the_same_seed_draws_the_same_in_any_order_of_rows(dataset, draw):
    """A draw that cannot be repeated cannot be checked."""
    counts = {f"device{number}": number for number in range(1, 40)}
    draw(counts, 7)
    first = set(drawn(dataset))
    dataset.write_queries([])

    draw(dict(reversed(counts.items())), 7)

    assert set(drawn(dataset)) == first


def test_the_same_week_again_adds_nothing(dataset, draw):
    """A nightly job may bring it twice; the questions left over are no second sample."""
    counts = {f"device{number}": 1 for number in range(20)}
    draw(counts, 5)
    before = {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")}

    again = draw(counts, 5)

    assert {path.name: path.read_bytes() for path in dataset.path.glob("*.json*")} == before
    assert (again.n_added, again.drawing.before, again.drawing.n_there) == (0, 5, 5)


def test_the_same_week_exported_anew_is_the_same_log(dataset, draw):
    """Rows in another order, and one for each time, ask the same."""
    draw({"fee": 2, "oak wax": 1, "parcel locker": 1}, 1)

    again = draw(
        [{"query": text} for text in ("parcel locker", "fee", "oak wax", "fee")], 1, name="week47"
    )

    assert (again.n_added, again.drawing.before) == (0, 1)


def test_a_second_draw_of_one_log_is_told(draw):
    """Under another name it is wanted, or an oversight; who reads the line knows."""
    counts = {f"device{number}": 1 for number in range(20)}
    draw(counts, 5, batch="often")

    second = draw(counts, 5, draw="rarity", batch="seldom")

    assert (second.n_added, second.drawing.other_batches) == (5, ("often",))


def test_another_log_under_the_same_batch_is_refused(dataset, draw):
    """Many systems write production.jsonl each week; the second one would be lost in silence."""
    draw({"fee": 1}, 5, name="production")

    with pytest.raises(
        UsageError,
        match=r"'production' is in the set already, drawn from another.*--batch production-2",
    ):
        draw({"oak wax": 1}, 5, name="production")
    assert list(drawn(dataset)) == ["fee"]


@pytest.mark.parametrize("other", [{"n": 6}, {"seed": 1}, {"draw": "even"}])
def test_another_draw_under_the_same_batch_is_refused(draw, other):
    """Its weights would be of neither draw."""
    counts = {f"device{number}": 1 for number in range(20)}
    draw(counts, 5)

    with pytest.raises(UsageError, match="drawn with --sample 5 --draw frequency --seed 0"):
        draw(counts, **{"n": 5, **other})


def test_what_is_there_is_left_out_and_counted(dataset, draw):
    """Case, blanks and marks aside: the same question twice would count twice in each mean."""
    dataset.write_queries(
        [
            Query(query_id="mine", query="What is the fee?"),
            Query(query_id="bad", query="oak wax", status="retired"),
        ]
    )

    result = draw({"what is  THE fee": 6, "Oak wax?": 1, "parcel locker": 3}, 10)

    assert [query.query for query in dataset.queries()] == ["What is the fee?", "parcel locker"]
    assert (result.drawing.n_distinct, result.drawing.n_there, result.n_added) == (3, 2, 1)
    # Of ten times that something was asked, three were of what could be drawn.
    assert drawn(dataset)["parcel locker"].share == pytest.approx(0.3)


def test_all_there_already_draws_nothing(dataset, draw):
    """It is no error: nobody asked anything new."""
    dataset.write_queries([Query(query_id="mine", query="fee")])

    result = draw({"Fee?": 3}, 10)

    assert (result.n_added, result.drawing.n_there, result.drawing.share) == (0, 1, 0.0)
    assert len(dataset.all_queries()) == 1


def test_a_log_of_one_question_and_a_sample_beyond_it(dataset, draw):
    """All there is, for certain."""
    draw([{"query": "fee"}, {"query": "FEE"}, {"query": " fee ?", "count": 3}], 200)

    assert [(one.count, one.inclusion) for one in drawn(dataset).values()] == [(5, 1.0)]


def test_strata_say_how_often_what_was_asked(draw):
    """Whether the rare ones are in the sample is what one looks at first."""
    result = draw({"fee": 90, "oak wax": 5, "parcel locker": 4, "return chair": 1}, 3)

    assert [(one.asked, one.n_distinct, one.share) for one in result.drawing.strata] == [
        ("once", 1, 0.01),
        ("2 to 9 times", 2, 0.09),
        ("10 to 99 times", 1, 0.9),
    ]
    assert sum(one.n_drawn for one in result.drawing.strata) == 3


def test_labelled_questions_are_taken_whole_and_are_no_part_of_the_batch(dataset, draw):
    """Somebody chose them; they say nothing about the traffic."""
    rows = [{"query": "fee", "chunk_id": "c1", "label": 3}, {"query": "oak wax"}]

    result = draw(rows, 5)

    assert {text: one is not None for text, one in drawn(dataset).items()} == {
        "fee": False,
        "oak wax": True,
    }
    assert drawn(dataset)["oak wax"].share == 0.5
    assert (result.n_labelled, result.n_added) == (1, 1)


def test_only_what_was_drawn_is_kept_of_the_log(dataset, draw):
    """Of a week of traffic a set needs no copy."""
    draw({f"device{number}": 1 for number in range(20)}, 3)

    assert len(dataset.real_queries()) == 3


def test_each_week_has_a_run_of_its_own(dataset, draw):
    """Two weeks whose logs have one name must not overwrite each other's rankings."""
    draw([{"query": "fee", "retrieved_ids": ["c1"]}], 5, name="production", batch="2026-W46")
    draw([{"query": "oak wax", "retrieved_ids": ["c1"]}], 5, name="production", batch="2026-W47")

    assert dataset.run_names() == ["2026-W46", "2026-W47"]


def test_ids_that_each_week_numbers_anew_name_no_query_of_another_week(dataset, draw):
    """Row 1 of this week would give its ranking to row 1 of the last."""
    draw([{"query_id": "1", "query": "fee", "retrieved_ids": ["c1"]}], 5, batch="2026-W46")
    told = []
    draw(
        [{"query_id": "1", "query": "oak wax", "retrieved_ids": ["c1"]}],
        5,
        batch="2026-W47",
        name="week48",
        observer=lambda event: told.append(event.message),
    )

    ids = {query.query: query.query_id for query in dataset.all_queries()}
    [ranking] = dataset.run("2026-W47")
    assert ids["fee"] == "1"
    assert ranking.query_id == ids["oak wax"] != "1"
    assert told == [
        "1 ids of the log are those of other questions of the set, so that these have ids of "
        "their own: 1"
    ]
