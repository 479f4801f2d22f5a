"""The benchmark of corrected measures."""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="module")
def calibration():
    """The benchmark, which is a script and in no package."""
    path = Path(__file__).parents[2] / "benchmarks" / "calibration.py"
    if not path.exists():
        pytest.skip("benchmarks are not shipped")
    spec = importlib.util.spec_from_file_location("calibration", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibration"] = module  # Its dataclasses look their module up.
    spec.loader.exec_module(module)
    yield module
    del sys.modules["calibration"]


@pytest.fixture
def options(tmp_path):
    """Options of a set of 40 queries, graded as a whole, with two runs and a judge's table."""
    generator = np.random.default_rng(1)
    lines, runs = [], {"a": [], "b": []}
    for query in range(40):
        grades = generator.choice(4, 40, p=(0.5, 0.2, 0.2, 0.1))
        lines += [f"q{query} 0 t{i} {grade}\n" for i, grade in enumerate(grades)]
        for name, skill in (("a", 0.72), ("b", 0.7)):
            order = np.argsort(-(skill * grades + generator.normal(size=40)))
            runs[name] += [
                f"q{query} Q0 t{text} {rank} {-rank} {name}\n" for rank, text in enumerate(order)
            ]
    (tmp_path / "qrels.trec").write_text("".join(lines))
    for name, rows in runs.items():
        (tmp_path / f"{name}.trec").write_text("".join(rows))
    table = {
        "rows": [[60, 20, 15, 5], [30, 40, 20, 10], [15, 25, 40, 20], [5, 15, 40, 40]],
        "bias by query: mean, sd": [0.0, 0.2],
    }
    (tmp_path / "confusion.json").write_text(json.dumps({"judges": {"noisy": table}}))
    return argparse.Namespace(
        qrels=tmp_path / "qrels.trec",
        run=[tmp_path / "a.trec", tmp_path / "b.trec"],
        judged=None,
        confusion=tmp_path / "confusion.json",
        simulated_runs=0,
        repeat=20,
        ndcg_repeat=2,
        seed=0,
        labels=(100,),
        ndcg_labels=(200,),
        ndcg_draws=80,
        judge=None,
        queries=None,
        keep_relevant=1.0,
    )


def test_a_judge_that_favours_a_run_names_fewer_wrong_winners_once_corrected(calibration, options):
    """That is what labels are for."""
    truth = calibration.read_truth(options)
    judge = dict(calibration.judges_of(truth, options.confusion))["favours run A"]

    row = calibration.winners_row(truth, judge, "P@10", 150, options)
    alone, corrected, refused = row.split(" | ")

    assert float(corrected.rstrip("%")) < float(alone.rstrip("%"))
    assert refused == "0.0%"


def test_no_estimator_is_narrower_than_what_a_grade_leaves_open(calibration):
    """A judge that says the value itself leaves nothing open, one that knows nothing all of it."""
    values = np.array([0.0, 0.0, 1.0, 1.0])

    assert calibration.width_limit(values, np.array([0, 0, 3, 3])) == 0
    assert calibration.width_limit(values, np.array([1, 1, 1, 1])) == 1
    assert calibration.width_limit(values, np.array([0, 1, 1, 0])) == 1


def test_all_tables_are_printed(calibration, options, capsys):
    """The figures of the documents come from them."""
    truth = calibration.read_truth(options)
    judges = {"useless": calibration.blind}

    calibration.print_linear(truth, judges, options)
    calibration.print_ndcg(truth, judges, options)

    printed = capsys.readouterr().out
    assert "| useless | DCG@10 | difference | 100 |" in printed
    assert "| useless | 200 |" in printed


def test_queries_that_are_drawn_twice_are_two(calibration, options):
    """Taken for one, they would look like a query of twice as many pairs."""
    truth = calibration.retrieved_only(calibration.read_truth(options))

    drawn = calibration.drawn_queries(truth, 7, np.random.default_rng(1))

    of_query = np.bincount(drawn.queries, weights=drawn.ranks["a"] < 10)
    assert of_query.tolist() == [10.0] * 7
    assert len(drawn.grades) == len(drawn.queries)
