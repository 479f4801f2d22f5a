"""Runs held against each other, from files and from a dataset."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.measures import evaluate
from ragforge.measures.comparing import all_pairs, compare_pairs
from ragforge.measures.intervals import Ends
from ragforge.pipeline.comparing.basis import COMPARED_MEASURES
from ragforge.pipeline.comparing.deciding import ComparisonOptions
from ragforge.pipeline.comparing.runs import (
    compare_files,
    compare_runs,
)
from ragforge.pipeline.run_list import names_apart
from ragforge.records import Failure, Hit, Judgment, Query, Ranking

QUERIES = [f"q{n}" for n in range(1, 9)]
QRELS = {query_id: {"d1": 3, "d2": 2, "d3": 0} for query_id in QUERIES}
GOOD = {query_id: ["d1", "d2", "d3"] for query_id in QUERIES}
BAD = {query_id: ["d3", "d9", "d2"] for query_id in QUERIES}


@pytest.fixture
def files(tmp_path):
    """Write qrels and runs in TREC format, and return the path of each by its name."""

    def write(qrels=QRELS, **runs):
        paths = {"qrels": tmp_path / "qrels.trec"}
        rows = [f"{q} 0 {c} {g}" for q, judged in qrels.items() for c, g in judged.items()]
        paths["qrels"].write_text("\n".join(rows) + "\n", "utf-8")
        for name, ranked in runs.items():
            paths[name] = tmp_path / f"{name}.trec"
            lines = [
                f"{q} Q0 {c} {rank} {100 - rank} x"
                for q, ids in ranked.items()
                for rank, c in enumerate(ids, 1)
            ]
            paths[name].write_text("\n".join(lines) + "\n", "utf-8")
        return paths

    return write


def compared(paths, *measures, names=("a", "b"), **options):
    return compare_files(
        paths["qrels"],
        [paths[name] for name in names],
        EvaluateSettings(measures=measures),
        ComparisonOptions(**options),
    )


def test_files_give_what_evaluate_and_the_tests_give(files):
    """The command is arithmetic on measures that everybody can compute."""
    report = compared(files(a=BAD, b=GOOD))
    values = {
        name: {
            measure: {q: v[measure] for q, v in evaluate(QRELS, run, [measure]).per_query.items()}
            for measure in COMPARED_MEASURES
        }
        for name, run in (("a", BAD), ("b", GOOD))
    }

    assert [item.comparison for item in report.items] == compare_pairs(
        all_pairs(values, COMPARED_MEASURES)
    )


def test_report_says_what_it_is_of(files):
    """Whoever prints it needs names, measures and threshold."""
    report = compared(files(a=BAD, b=GOOD), "nDCG@10", "MRR")

    assert (report.of, report.names, report.measures, report.rel_threshold, report.alpha) == (
        "runs",
        ("a", "b"),
        ("nDCG@10", "RR"),
        2,
        0.05,
    )


def test_letters_and_means_are_by_measure_and_run(files):
    """Several runs are read as a table."""
    report = compared(files(a=BAD, b=GOOD, c=GOOD), "RR", names=("a", "b", "c"), alpha=0.3)

    assert report.letters == {"RR": {"a": "b", "b": "a", "c": "a"}}
    assert report.means["RR"] == pytest.approx({"a": 1 / 3, "b": 1.0, "c": 1.0})


@pytest.mark.parametrize(
    ("measure", "threshold"), [("P(rel=9)@5", "auto"), ("P@5", 7)], ids=["measure", "setting"]
)
def test_a_threshold_that_no_grade_reaches_is_told(files, measure, threshold):
    """All values are 0 then, and the runs are not one and the same."""
    paths = files(a=BAD, b=GOOD)
    settings = EvaluateSettings(measures=(measure,), rel_threshold=threshold)
    warnings = " ".join(compare_files(paths["qrels"], [paths["a"], paths["b"]], settings).warnings)

    assert "no grade reaches the threshold" in warnings
    assert f"is 3. These measures are 0 for every ranking: {measure}" in warnings
    assert "one and the same" not in warnings


def test_gained_and_lost_queries_come_with_ranks_the_largest_first(files):
    """One looks at the queries that moved to see why."""
    a = {**GOOD, "q1": ["d3", "d1"], "q2": ["d3", "d9", "d1"]}
    b = {**GOOD, "q8": ["d3", "d1"]}
    [item] = compared(files(a=a, b=b), "RR").items

    assert [(q.query_id, q.first_a, q.first_b) for q in item.gained] == [
        ("q2", 3, 1),
        ("q1", 2, 1),
    ]
    assert [(q.query_id, q.value_a, q.value_b) for q in item.lost] == [("q8", 1.0, 0.5)]


def test_queries_that_moved_alike_come_by_id_and_as_many_as_asked(files):
    """Same inputs, same bytes."""
    [item] = compared(files(a=BAD, b=GOOD), "RR", n_moved=3).items

    assert [query.query_id for query in item.gained] == ["q1", "q2", "q3"]


def test_baseline_is_held_against_each_other_run(files):
    """Not every pair is a question, and each costs the others power."""
    paths = files(a=BAD, b=GOOD, c=GOOD)
    report = compared(paths, "RR", names=("a", "b", "c"), baseline="b")

    assert [(i.comparison.a, i.comparison.b) for i in report.items] == [("b", "a"), ("b", "c")]
    assert (report.letters, report.baseline) == ({}, "b")


def test_holes_of_one_run_are_counted_and_bounded(files):
    """What only one run found nobody may have judged, and it might turn the outcome."""
    [item] = compared(files(a=GOOD, b=BAD), "P@2").items

    assert (item.unjudged.n_only_a, item.unjudged.n_only_b, item.unjudged.n_both) == (0, 8, 0)
    assert (item.unjudged.bounds.low, item.unjudged.bounds.high) == (-1.0, -0.5)


@pytest.mark.parametrize("measure", ["RR", "Success@5"])
def test_holes_behind_the_first_hit_do_not_count_where_nothing_looks_there(files, measure):
    """A thousand holes that can change nothing would only frighten."""
    a = {query_id: ["d1", "d8", "d9"] for query_id in QUERIES}
    [item] = compared(files(a=a, b=GOOD), measure).items

    assert item.unjudged is None


def test_holes_that_both_retrieved_are_counted_apart(files):
    """They can move a difference only by standing at other ranks."""
    a = {query_id: ["d9", "d1"] for query_id in QUERIES}
    b = {query_id: ["d1", "d9"] for query_id in QUERIES}
    [item] = compared(files(a=a, b=b), "nDCG@2").items

    assert (item.unjudged.n_only_a, item.unjudged.n_only_b, item.unjudged.n_both) == (0, 0, 8)
    assert item.unjudged.bounds.low == pytest.approx(0.0)


def test_runs_without_holes_have_no_unjudged(files):
    """Where all is judged there is nothing to doubt."""
    [item] = compared(files(a=GOOD, b=GOOD), "P@2").items

    assert item.unjudged is None


def test_binary_qrels_bound_holes_by_1(files):
    """A file of zeros and ones says that no chunk is worth more."""
    qrels = {query_id: {"d1": 1} for query_id in QUERIES}
    a = {query_id: ["d1"] for query_id in QUERIES}
    b = {query_id: ["d9"] for query_id in QUERIES}
    [item] = compared(files(qrels, a=a, b=b), "nDCG@10").items

    assert item.unjudged.bounds.high == pytest.approx(0.0)


def test_counts_that_no_run_wins_by_are_left_out_and_named(files):
    """More chunks retrieved is not better, and each comparison costs power."""
    report = compared(files(a=BAD, b=GOOD), "RR", "Judged@10", "NumRet")

    assert report.measures == ("RR",)
    assert report.warnings == (
        "left out of the comparison: Judged@10, NumRet: no run is the better for it",
    )


def test_nothing_but_counts_is_refused(files):
    """A comparison by no measure says nothing."""
    with pytest.raises(UsageError, match="NumRet: no run is the better for it; compare by another"):
        compared(files(a=BAD, b=GOOD), "NumRet")


def test_unknown_measure_is_refused(files):
    """The nearest names are told."""
    with pytest.raises(UsageError, match="no measure 'nDGC'; nearest: nDCG"):
        compared(files(a=BAD, b=GOOD), "nDGC@10")


def test_run_of_another_dataset_is_refused(files):
    """Its zeros would make the other run win by far."""
    other = {"x1": ["d1"], "x2": ["d1"]}

    with pytest.raises(DataError, match=r"run b: none of its queries is judged: .* 'x1', 'x2'"):
        compared(files(a=GOOD, b=other))


def test_runs_that_share_no_query_are_refused(files):
    """Each would be compared with nothing but zeros."""
    a = {query_id: GOOD[query_id] for query_id in QUERIES[:4]}
    b = {query_id: GOOD[query_id] for query_id in QUERIES[4:]}

    with pytest.raises(DataError, match="runs a and b share no query"):
        compared(files(a=a, b=b))


@pytest.mark.parametrize(
    ("only_retrieved", "n", "told"), [(False, 8, "they count 0"), (True, 6, "they are left out")]
)
def test_queries_that_a_run_lacks_are_told(files, only_retrieved, n, told):
    """A run that answers half of the queries must not look like a bad one unnoticed."""
    b = {query_id: GOOD[query_id] for query_id in QUERIES[:6]}
    report = compared(files(a=GOOD, b=b), "RR", only_retrieved=only_retrieved)

    assert report.warnings[0] == f"b: lacks 2 of 8 judged queries: {told}"
    assert (report.items[0].comparison.n, report.items[0].n_left_out) == (n, 0)


def test_rankings_that_are_the_same_where_both_have_one_are_called_so(files):
    """A run that lacks queries does not rank others otherwise."""
    part = {name: GOOD[name] for name in QUERIES[:6]}
    [item] = compared(files(a=GOOD, b=part), "RR", only_retrieved=True).items

    assert (item.comparison.is_identity, item.comparison.n) == (True, 6)


def test_one_query_is_a_tie_and_said_so(files):
    """One query tells nothing about others."""
    qrels = {"q1": QRELS["q1"]}
    report = compared(files(qrels, a={"q1": BAD["q1"]}, b={"q1": GOOD["q1"]}), "RR")

    assert report.items[0].comparison.winner == "TIE"
    assert report.warnings == ("a and b: one query tells nothing about others: all is a tie",)


def test_equal_runs_are_pointed_out(files):
    """Most often it is one file under two names."""
    report = compared(files(a=GOOD, b=GOOD))

    assert report.warnings == ("a and b: the same rankings, as of copies of one run",)


def test_equal_runs_are_pointed_out_together(files):
    """Four copies of a run are one remark, and not six."""
    report = compared(files(a=GOOD, b=BAD, c=GOOD, d=GOOD, e=BAD), names="abcde")

    same = [text for text in report.warnings if "same rankings" in text]
    assert same == [
        "a, c and d: the same rankings, as of copies of one run",
        "b and e: the same rankings, as of copies of one run",
    ]


def test_one_ranking_under_two_names_does_not_differ(files):
    """An interval around 0 would say that it might be better than itself."""
    found = [item.comparison for item in compared(files(a=GOOD, b=GOOD)).items]

    assert {(item.diff, item.interval, item.winner) for item in found} == {
        (0.0, Ends(0.0, 0.0), "TIE")
    }


def test_rankings_that_do_alike_keep_an_interval(files):
    """Another query may part what these queries did not."""
    other = {query_id: ["d1", "d2", "d9"] for query_id in QUERIES}
    [found] = compared(files(a=GOOD, b=other), "P@2").items

    assert found.comparison.diff == 0.0
    assert found.comparison.interval.low < 0 < found.comparison.interval.high


def test_one_run_is_no_comparison(files):
    """There is nothing to hold it against."""
    with pytest.raises(UsageError, match="a comparison needs at least two runs, got a"):
        compared(files(a=GOOD), names=["a"])


def test_unknown_baseline_is_refused(files):
    """The runs that there are get named."""
    with pytest.raises(UsageError, match="baseline 'x': expected one of the runs compared: a, b"):
        compared(files(a=BAD, b=GOOD), baseline="x")


def test_negative_number_of_queries_is_refused(files):
    """Python would take it as all but the last."""
    with pytest.raises(UsageError, match="expected a whole number from 0, got -1"):
        compared(files(a=BAD, b=GOOD), n_moved=-1)


def test_one_file_given_twice_is_refused(files):
    """Whatever way it is spelled, it is the same run."""
    path = files(a=GOOD)["a"]

    with pytest.raises(UsageError, match="given twice"):
        names_apart([path, path.parent / ".." / path.parent.name / path.name])


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["x/bm25.trec", "x/dense.trec"], ["bm25", "dense"]),
        (["old/bm25.trec", "new/bm25.trec", "dense.trec"], ["old/bm25", "new/bm25", "dense"]),
        (["a/x/r.trec", "b/x/r.trec"], ["a/x/r", "b/x/r"]),
        (["x/r.trec", "x/r.jsonl"], ["x/r.trec", "x/r.jsonl"]),
    ],
)
def test_files_of_one_name_are_named_apart(paths, expected):
    """Two runs under one name could not be told apart in any table."""
    assert names_apart([Path(path) for path in paths]) == expected


def test_ties_of_scores_rank_as_trec_eval_ranks_them(tmp_path, files):
    """Holes must be looked for at the ranks that the measures see."""
    paths = files(a=GOOD)
    paths["b"] = tmp_path / "b.trec"
    rows = [f"{q} Q0 {c} 1 5.0 x" for q in QUERIES for c in ("d1", "d9")]
    paths["b"].write_text("\n".join(rows) + "\n", "utf-8")
    [item] = compared(paths, "P@1").items

    assert (item.comparison.mean_b, item.unjudged.n_only_b) == (0.0, 8)


@pytest.fixture
def dataset(tmp_path):
    """Eight answerable queries and one that is not, judged by two, and two runs."""
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_queries(
        [
            *(Query(query_id=name, query=f"What is {name}?") for name in QUERIES),
            Query(query_id="no", query="?", answerable=False),
        ]
    )
    made.write_judgments(judgments(QRELS))
    made.write_run("bad", rankings({**BAD, "no": ["d1"]}))
    made.write_run("good", rankings({**GOOD, "no": ["d1"]}))
    return made


def judgments(qrels):
    return [
        Judgment(query_id=q, chunk_id=c, grade=g, failure="error" if g is None else None)
        for q, judged in qrels.items()
        for c, g in judged.items()
    ]


def rankings(run):
    return [
        Ranking(
            query_id=q,
            ranking=tuple(Hit(chunk_id=c, score=-rank) for rank, c in enumerate(ids)),
        )
        for q, ids in run.items()
    ]


def of_dataset(dataset, *measures, names=("bad", "good"), **options):
    settings = EvaluateSettings(measures=measures)
    return compare_runs(dataset, names, settings, ComparisonOptions(**options))


def test_dataset_gives_what_its_files_give(dataset, files):
    """A run is the same run wherever it lies, and unanswerable queries are in no measure."""
    of_files = compared(files(bad=BAD, good=GOOD), names=("bad", "good"))
    of_set = of_dataset(dataset)

    assert [item.comparison for item in of_set.items] == [
        item.comparison for item in of_files.items
    ]


def test_moved_queries_of_a_dataset_come_with_texts(dataset):
    """An id says little about what went wrong."""
    [item] = of_dataset(dataset, "RR", n_moved=1).items

    assert [(query.query_id, query.text) for query in item.gained] == [("q1", "What is q1?")]


def test_all_runs_of_a_dataset_are_compared_where_none_is_named(dataset):
    """The short command is the usual one."""
    assert of_dataset(dataset, names=()).names == ("bad", "good")


def test_run_named_twice_is_refused(dataset):
    """It would tie with itself."""
    with pytest.raises(UsageError, match="run 'good' is given twice"):
        of_dataset(dataset, names=("good", "good"))


def test_unknown_run_is_refused(dataset):
    """The runs that there are get named."""
    with pytest.raises(DataError, match="no 'best'; there are: bad, good"):
        of_dataset(dataset, names=("good", "best"))


def test_dataset_without_judgments_is_refused(dataset):
    """Nothing can be said about runs that nobody judged."""
    dataset.write_judgments([])

    with pytest.raises(DataError, match="nothing to compare on: no answerable query is judged"):
        of_dataset(dataset)


def test_failed_retrieval_leaves_the_query_out_and_bounds_the_difference(dataset):
    """A failure is never a value: it could have been anything from 0 to 1."""
    run = {query_id: GOOD[query_id] for query_id in QUERIES[:7]}
    dataset.write_run("good", rankings(run))
    failure = Failure(what="retrieve", key="good/q8", kind="error", message="down")
    dataset.replace_failures("retrieve", [failure], lambda key: True)
    [item] = of_dataset(dataset, "RR").items

    assert (item.comparison.n, item.n_left_out) == (7, 1)
    assert (item.failure_bounds.low, item.failure_bounds.high) == pytest.approx(
        ((7 * 2 / 3 - 1 / 3) / 8, 2 / 3)
    )


@pytest.fixture
def with_gone(dataset):
    """The retriever of the run `gone` failed on every query."""
    failures = [
        Failure(what="retrieve", key=f"gone/{name}", kind="error", message="down")
        for name in QUERIES
    ]
    dataset.replace_failures("retrieve", failures, lambda key: True)
    dataset.write_run("gone", [])
    return dataset


def test_a_run_that_failed_throughout_changes_nothing_for_others(dataset, with_gone):
    """It would join the best group, and widen the interval of every other comparison."""
    alone = of_dataset(dataset, "RR", names=("good", "bad"))
    beside = of_dataset(with_gone, "RR", names=("good", "bad", "gone"))

    assert (beside.names, beside.items, beside.letters) == (
        alone.names,
        alone.items,
        alone.letters,
    )
    assert beside.warnings == ("gone: has no value in any query, and is left out",)


def test_nothing_is_compared_with_a_run_that_failed_throughout(with_gone):
    """It has no value, so that there is nobody to win."""
    with pytest.raises(DataError, match="no query has a value in gone, as all failed"):
        of_dataset(with_gone, "RR", names=("good", "gone"))


def test_no_run_is_held_against_a_base_that_failed_throughout(with_gone):
    """The question asked has no answer, and another one must not be answered instead."""
    with pytest.raises(DataError, match="no query has a value in gone, as all failed"):
        of_dataset(with_gone, "RR", names=("good", "bad", "gone"), baseline="gone")


def test_an_empty_run_that_nobody_named_is_left_out(dataset):
    """What a killed retriever left must not keep others from being compared."""
    dataset.write_run("empty", [])

    report = of_dataset(dataset, "RR", names=())

    assert "empty" not in report.names
    assert "empty: the run has none of the queries, and is left out" in report.warnings


def test_failed_judgment_has_one_grade_for_both_runs(dataset):
    """A chunk at the same rank in both runs moves neither ahead, whatever its grade."""
    qrels = {**QRELS, "q1": {"d1": None, "d2": 2}}
    dataset.write_judgments(judgments(qrels))
    dataset.write_run("bad", rankings({**BAD, "q1": ["d1", "d3"]}))
    dataset.write_run("good", rankings({**GOOD, "q1": ["d1", "d2"]}))
    [item] = of_dataset(dataset, "P@2").items

    assert item.n_left_out == 0
    assert (item.failure_bounds.low, item.failure_bounds.high) == pytest.approx(
        (item.comparison.diff, item.comparison.diff)
    )


def test_query_of_which_every_judgment_failed_is_left_out_and_bounded(dataset):
    """Neither run has a value there, and both could have had one."""
    dataset.write_judgments(judgments({**QRELS, "q1": {"d1": None}}))
    [item] = of_dataset(dataset, "RR").items

    assert (item.comparison.n, item.n_left_out) == (7, 1)
    assert (item.failure_bounds.low, item.failure_bounds.high) == pytest.approx(
        (7 * 2 / 3 / 8, (7 * 2 / 3 + 1) / 8)
    )


def test_nobody_is_better_where_failed_judgments_could_turn_it_round(dataset):
    """Half of the grades of one side are missing: what it found counts as not relevant."""
    asked_in_vain = {"d7": None, "d8": None}
    dataset.write_judgments(judgments({name: QRELS[name] | asked_in_vain for name in QUERIES}))
    dataset.write_run("bad", rankings({name: ["d7", "d8", "d3"] for name in QUERIES}))
    [item] = of_dataset(dataset, "P@2").items

    assert item.comparison.winner != "TIE"
    assert (item.outcome, item.better, item.n_left_out, item.n_open) == ("UNKNOWN", None, 0, 8)
    assert item.failure_bounds.low <= 0 <= item.failure_bounds.high
    assert item.withheld.startswith("8 queries are left out or without a judgment")


def test_a_winner_stands_where_failed_judgments_could_not_turn_it_round(dataset):
    """One pair that a filter refuses for ever must not keep a set from deciding."""
    dataset.write_judgments(judgments({**QRELS, "q1": {**QRELS["q1"], "d9": None}}))
    [item] = of_dataset(dataset, "P@2").items

    assert (item.better, item.n_open) == ("good", 1)
    assert item.failure_bounds.low > 0


def test_failed_judgments_are_no_holes(dataset):
    """What the judge was asked in vain is told of as a failure, and once."""
    dataset.write_judgments(judgments({**QRELS, "q1": {"d1": None, "d2": 2}}))
    dataset.write_run("bad", rankings({**GOOD, "q1": ["d2"]}))
    [item] = of_dataset(dataset, "P@2").items

    assert (item.unjudged, item.failure_bounds is None) == (None, False)


def test_comparison_is_the_same_each_time(dataset):
    """Same inputs, same report."""
    assert of_dataset(dataset) == of_dataset(dataset)


def test_swapping_the_runs_mirrors_the_report(dataset):
    """Who is called A must not decide what is open."""
    there, back = (
        of_dataset(dataset, "nDCG@10"),
        of_dataset(dataset, "nDCG@10", names=("good", "bad")),
    )
    [a], [b] = there.items, back.items
    mirrored = replace(
        b.unjudged,
        n_only_a=b.unjudged.n_only_b,
        n_only_b=b.unjudged.n_only_a,
        bounds=a.unjudged.bounds,
    )

    assert a.unjudged == mirrored
    assert (a.unjudged.bounds.low, a.unjudged.bounds.high) == pytest.approx(
        (-b.unjudged.bounds.high, -b.unjudged.bounds.low)
    )


def test_a_failure_in_a_file_is_no_value(files, tmp_path):
    """A run that was down once is not worse than one that found the wrong thing."""
    paths = files(a=BAD, b=GOOD)
    failed = next(iter(GOOD))
    rows = [
        {"query_id": q, "ranking": [] if q == failed else list(ids)}
        | ({"error": "503"} if q == failed else {})
        for q, ids in GOOD.items()
    ]
    paths["b"] = tmp_path / "b.jsonl"
    paths["b"].write_text("".join(json.dumps(row) + "\n" for row in rows))

    [item] = compared(paths, "RR").items

    assert item.comparison.n == len(GOOD) - 1
