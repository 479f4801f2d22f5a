"""People's grades on what one run found, beside a judge's on what the other did."""

import numpy as np
import pytest
from labelled_sets import N_CHUNKS, graded_set, ranked, truth

from ragforge.cli import main
from ragforge.config import EvaluateSettings
from ragforge.pipeline.comparing.runs import compare_files, compare_runs
from ragforge.records import Judgment, Provenance

N = 40
DEPTH = 5
ANN = Provenance(kind="human", model="ann")
MEASURES = EvaluateSettings(measures=("P@5",))


def rank_of(query, seed):
    """Return a ranking that knows nothing: runs by it are equally good."""
    return ranked(query, np.random.default_rng([query, seed, 5]).permutation(N_CHUNKS))


def labelled(folder, *names, checks=True, judge=lambda q, c: max(truth(q, c) - 1, 0)):
    """Return a set with a judge stricter than people, who graded the tops of some runs."""
    made = graded_set(folder, N, judge=judge)
    for seed, name in enumerate(("a", "b")):
        made.write_run(name, [rank_of(q, seed) for q in range(N)])
    tops = {
        (ranking.query_id, hit.chunk_id)
        for name in names
        for ranking in made.run(name)
        for hit in ranking.ranking[:DEPTH]
    }
    given = [one for one in made.judgments() if (one.query_id, one.chunk_id) in tops]
    made.add_judgments(map(by_ann, given))
    if checks:
        made.write_label_checks(given)
    return made


def by_ann(judgment):
    """Return what a person says of a judged pair."""
    query, chunk = int(judgment.query_id[1:]), int(judgment.chunk_id.partition("-")[2])
    return Judgment(
        query_id=judgment.query_id,
        chunk_id=judgment.chunk_id,
        grade=truth(query, chunk),
        source="human",
        provenance=ANN,
    )


@pytest.mark.parametrize("of", ["a", "b"])
def test_a_run_does_not_win_because_people_graded_what_it_found(tmp_path, of):
    """By a judge that is stricter than they are, every run that they looked at would win."""
    dataset = labelled(tmp_path / "set", of)
    [item] = compare_runs(dataset, ["a", "b"], MEASURES).items

    assert item.comparison.winner == of.upper()
    assert item.outcome == "UNKNOWN"
    assert "by judge-1 alone neither is shown to be better" in item.withheld


def test_labels_on_both_runs_decide(tmp_path):
    """Whoever graded, it was alike for both."""
    dataset = labelled(tmp_path / "set", "a", "b")
    report = compare_runs(dataset, ["a", "b"], MEASURES)

    assert [item.outcome for item in report.items] == ["TIE"]
    assert not report.warnings


def test_a_judge_that_says_the_same_as_people_leaves_the_winner(tmp_path):
    """Labels of one run do no harm where the judge shows the same run as better."""
    dataset = labelled(tmp_path / "set", "a", judge=truth)
    good = [ranked(q, sorted(range(N_CHUNKS), key=lambda c: -truth(q, c))) for q in range(N)]
    dataset.write_run("b", good)
    [item] = compare_runs(dataset, ["a", "b"], MEASURES).items

    assert item.outcome == "B"


def test_a_tie_among_many_comparisons_stays_one_where_all_grades_are_the_same(tmp_path):
    """By the judge alone one was better: held alone, and not as one of six comparisons."""
    dataset = labelled(tmp_path / "set", "a", judge=truth)
    chance = np.random.default_rng(7)
    noise = {(q, c): chance.normal() - 0.2 * truth(q, c) for q in range(N) for c in range(N_CHUNKS)}
    better = [ranked(q, sorted(range(N_CHUNKS), key=lambda c, q=q: noise[q, c])) for q in range(N)]
    dataset.write_run("b", better)
    dataset.write_run("c", [rank_of(q, 7) for q in range(N)])
    report = compare_runs(dataset, ["a", "b", "c"], EvaluateSettings(measures=("P@3", "RR")))

    assert {item.outcome for item in report.items} == {"TIE"}
    assert min(item.comparison.p for item in report.items) < 0.05


def test_what_the_judge_says_of_peoples_pairs_may_not_be_known(tmp_path):
    """Then nothing tells how far the two differ, and a warning says what does."""
    dataset = labelled(tmp_path / "set", "a", checks=False)
    report = compare_runs(dataset, ["a", "b"], MEASURES)

    [warning] = report.warnings
    assert "people graded 100% of what a ranks" in warning
    assert "judge --on-labels" in warning


def test_the_next_step_draws_pairs_of_both(tmp_path, capsys):
    """Another model's grades would not tell."""
    dataset = labelled(tmp_path / "set", "a")
    main(["compare", "--dataset", str(dataset.path), "a", "b", "-m", "P@5"])

    assert "calibrate sample --dataset" in capsys.readouterr().err


@pytest.mark.parametrize("checks", [True, False])
def test_files_of_a_set_are_compared_as_it_is(tmp_path, checks):
    """They say who graded, and lie beside what the judge said of people's pairs."""
    dataset = labelled(tmp_path / "set", "a", checks=checks)
    runs = [dataset.path / "runs" / f"{name}.jsonl" for name in ("a", "b")]
    of_set = compare_runs(dataset, ["a", "b"], MEASURES)
    of_files = compare_files(dataset.path / "judgments.jsonl", runs, MEASURES)

    assert [item.outcome for item in of_files.items] == [item.outcome for item in of_set.items]
    assert [item.withheld for item in of_files.items] == [item.withheld for item in of_set.items]
    assert set(of_set.warnings) <= set(of_files.warnings)


def test_files_alone_tell_that_people_graded_one_run(tmp_path):
    """What the judge said of their pairs was left behind."""
    dataset = labelled(tmp_path / "set", "a")
    runs = [dataset.path / "runs" / f"{name}.jsonl" for name in ("a", "b")]
    alone = (dataset.path / "judgments.jsonl").rename(tmp_path / "graded.jsonl")
    report = compare_files(alone, runs, MEASURES)

    assert "people graded 100% of what a ranks" in "".join(report.warnings)


@pytest.mark.parametrize(
    ("labels", "told"), [(("a",), "people gave 100% of the grades"), (("a", "b"), "")]
)
def test_a_trend_that_may_be_of_who_graded_is_told_as_such(tmp_path, capsys, labels, told):
    """A run as good as before was DEGRADING, as a stricter judge graded what it found."""
    dataset = labelled(tmp_path / "set", *labels)
    for name in ("a", "b"):
        dataset.write_run("main", dataset.run(name))
        main(["evaluate", "--dataset", str(dataset.path), "--run", "main", "-m", "P@5", "-q"])
    main(["history", "--dataset", str(dataset.path), "--run", "main"])

    said = capsys.readouterr().err
    assert told in said
    assert ("people gave" in said) == bool(told)


def test_a_report_says_of_a_trend_that_it_may_be_of_who_graded(tmp_path):
    """It shows the trend, too."""
    dataset = labelled(tmp_path / "set", "a")
    for name in ("a", "b"):
        dataset.write_run("main", dataset.run(name))
        main(["evaluate", "--dataset", str(dataset.path), "--run", "main", "-m", "P@5", "-q"])
    page = tmp_path / "report.html"
    main(["report", "--dataset", str(dataset.path), "--run", "main", "--out", str(page), "-q"])

    assert "a trend, or none, may be of who graded" in page.read_text("utf-8")
