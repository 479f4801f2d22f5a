"""`--judge-as-needed` of runs whose retrievers failed on some queries."""

import json
from xml.etree.ElementTree import parse

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, Failure, Hit, Judgment, Query, Ranking

N, DEPTH = 60, 10
IDS = [f"q{n:02}" for n in range(N)]
GRADES = (3, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
BEST = tuple(range(DEPTH))
SECOND = (1, 0, *range(2, DEPTH))
LOW = (5, 6, 7, 8, 0, 1, 2)
ADDRESS = ("--judge-as-needed", "--model", "x", "--base-url", "http://127.0.0.1:9/v1", "-q")


def ranking(query_id, order):
    """Return a ranking of chunks by their numbers."""
    hits = (Hit(chunk_id=f"{query_id}-{i:02}", score=float(-at)) for at, i in enumerate(order))
    return Ranking(query_id=query_id, ranking=tuple(hits))


@pytest.fixture
def dataset(tmp_path):
    """A set of sixty queries of which Ann graded every chunk, so that no model is asked."""
    made = create_dataset(tmp_path / "set", made_from={"seed": "0"})
    made.write_chunks(
        Chunk(chunk_id=f"{q}-{i:02}", doc_id=f"{q}-{i}", text=f"Of {q}, piece {i}.")
        for q in IDS
        for i in range(len(GRADES))
    )
    made.write_queries(Query(query_id=q, query=f"What is {q}?") for q in IDS)
    made.write_judgments(
        Judgment(query_id=q, chunk_id=f"{q}-{i:02}", grade=grade, source="human")
        for q in IDS
        for i, grade in enumerate(GRADES)
    )
    return made


@pytest.fixture
def write(dataset):
    """Write a run, given the order of each query; None where its retriever failed."""

    def go(**runs):
        failures = []
        for name, order_of in runs.items():
            orders = {q: order_of(n) for n, q in enumerate(IDS)}
            dataset.write_run(name, [ranking(q, of) for q, of in orders.items() if of])
            failures += [
                Failure(what="retrieve", key=f"{name}/{q}", kind="error", message="503")
                for q, of in orders.items()
                if of is None
            ]
        dataset.replace_failures("retrieve", failures, lambda _: True)

    return go


@pytest.fixture
def told(dataset, capsys):
    """Run a command on the set; return its exit code and what it prints."""

    def go(command, *words):
        capsys.readouterr()
        code = main([command, "--dataset", str(dataset.path), *map(str, words)])
        return code, capsys.readouterr().out

    return go


def better(n):
    """Return the better order in four of five queries."""
    return BEST if n % 5 else SECOND


def worse(n):
    """Return the other one."""
    return SECOND if n % 5 else BEST


def from_20(order_of):
    """Return a run of which the first twenty retrievals failed."""
    return lambda n: None if n < 20 else order_of(n)


@pytest.mark.parametrize(("measure", "winner"), [("DCG@10", "UNKNOWN"), ("Success@1", "new")])
def test_failed_retrievals_bound_a_difference_as_in_compare(write, told, measure, winner):
    """They took the side of the run that failed: twenty lost queries could turn the winner."""
    write(old=worse, new=from_20(better))

    found = json.loads(told("compare", "old", "new", "-m", measure, *ADDRESS, "--json")[1])
    plain = json.loads(told("compare", "old", "new", "-m", measure, "--json")[1])
    [item] = plain["comparisons"]

    assert (found["winner"], found["queries"], len(found["left_out"])) == (winner, 40, 20)
    assert found["difference"] == pytest.approx(item["diff"])
    assert found["failure_bounds"] == pytest.approx(list(item["failure_bounds"].values()))


def test_failures_that_could_turn_the_winner_are_told_as_in_compare(write, told):
    """One sentence for one thing."""
    write(old=worse, new=from_20(better))

    found = json.loads(told("compare", "old", "new", *ADDRESS, "--json")[1])
    shown = " ".join(told("compare", "old", "new", "-m", "DCG@10")[1].split())

    assert found["why"].startswith("20 queries are left out or without a judgment")
    assert found["why"] in shown


def test_texts_without_a_grade_leave_all_open_where_a_retriever_failed(write, told, dataset):
    """A run that is there may be worth as much as grades can give, if nobody graded it."""
    write(old=worse, new=from_20(better))
    dataset.write_judgments(each for each in dataset.each_judgment() if each.query_id >= "q20")

    found = json.loads(told("compare", "old", "new", *ADDRESS, "--json")[1])
    most = 3 * sum((1, 0.6309, 0.5, 0.4307, 0.3869, 0.3562, 0.3333, 0.3155, 0.3010, 0.2891))

    low, high = found["failure_bounds"]
    assert low == pytest.approx((40 * found["difference"] - 20 * most) / 60, abs=1e-3)
    assert high == pytest.approx((40 * found["difference"] + 20 * most) / 60, abs=1e-3)


@pytest.mark.parametrize("measure", ["DCG@10", "RR"])
def test_a_gate_counts_failed_retrievals_at_their_worst(write, told, measure, tmp_path):
    """A run whose retriever was down on a third of the queries passed by the others alone."""
    write(old=better, new=from_20(better))
    rule, baseline = ("--max-drop", f"{measure}=0.3"), tmp_path / "baseline.json"

    needed = json.loads(told("gate", "--base", "old", "--run", "new", *rule, *ADDRESS, "--json")[1])
    told("gate", "--run", "old", "--min", f"{measure}=0.1", "--write-baseline", baseline)
    code, out = told("gate", "--run", "new", *rule, "--baseline", baseline, "--json")

    assert (needed["outcome"], code, json.loads(out)["checks"][0]["outcome"]) == ("FAIL", 1, "FAIL")


def test_failures_of_the_run_that_ships_show_no_drop(write, told):
    """They rule none out, either."""
    write(old=from_20(better), new=better)
    words = ("--base", "old", "--run", "new", "--max-drop", "DCG@10=0.05")

    code, out = told("gate", *words, *ADDRESS)

    assert code == 0
    assert out.startswith("gate: NOT SHOWN: neither a drop is shown, nor is one of 0.05")
    assert "(failures at their worst: [" in out


@pytest.mark.parametrize(("most", "outcome"), [("40%", "PASS"), ("30%", "FAIL")])
def test_a_gate_counts_the_failures_that_may_be(write, told, most, outcome, tmp_path):
    """They were refused as a second rule, so that nothing stopped a retriever that was down."""
    write(old=lambda n: LOW, new=from_20(better))
    words = ("--base", "old", "--run", "new", "--max-drop", "DCG@10=3", "--max-failures", most)

    code, out = told("gate", *words, "--junit", tmp_path / "gate.xml", *ADDRESS)
    suite = parse(tmp_path / "gate.xml").getroot().find("testsuite")
    names = [case.get("name") for case in suite.findall("testcase")]

    assert (code, out.startswith(f"gate: {outcome}: ")) == (int(outcome == "FAIL"), True)
    assert f"max-failures: {outcome}: 20 of 60 queries failed, 33.33 %" in out
    assert names == ["max-drop DCG@10", "max-failures"]
    assert suite.get("failures") == str(int(outcome == "FAIL"))


def test_failures_of_a_run_that_does_not_tell_them_are_not_counted(write, dataset, capsys):
    """Twenty queries are not in it, and whether they failed is told nowhere."""
    write(old=better, new=lambda n: BEST if n > 19 else ())
    words = ["gate", "--dataset", str(dataset.path), "--base", "old", "--run", "new", *ADDRESS]

    assert main([*words, "--max-drop", "DCG@10=3", "--max-failures", "1%"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "20 queries of 60 are not in the file of run new" in told


def test_grades_of_people_are_not_said_to_be_of_the_judge(write, told):
    """No pair was judged: the judge graded nothing."""
    write(old=worse, new=better)
    rule = ("--max-drop", "DCG@10=0.3")

    for words in (
        ("compare", "old", "new"),
        ("gate", "--base", "old", "--run", "new", *rule),
    ):
        assert ", graded by people" in told(*words, *ADDRESS)[1].replace("\n", " ")


def test_the_same_difference_in_all_queries_is_a_tie_where_its_interval_holds_0(write, told):
    """A winner whose interval holds 0 is none."""
    write(old=lambda n: BEST, new=lambda n: SECOND)

    found = json.loads(told("compare", "old", "new", *ADDRESS, "--json")[1])
    plain = json.loads(told("compare", "old", "new", "-m", "DCG@10", "--json")[1])
    low, high = found["interval"]

    assert low < 0 < high
    assert (found["winner"], plain["comparisons"][0]["winner"]) == ("TIE", "TIE")


def old_order(n):
    """Return the best order but for the first twenty queries."""
    return LOW if n < 20 else BEST


def flaky_order(n):
    """Return the order of a run that is worse than others wherever it does not fail."""
    return SECOND if n % 3 else LOW


@pytest.mark.parametrize("measure", ["DCG@10", "RR", "P(rel=1)@5"])
def test_failures_of_a_third_run_turn_no_difference_of_two_others(write, told, measure):
    """On the forty queries that all three answered the worse of two was the better one."""
    write(old=old_order, new=better, flaky=from_20(flaky_order))

    words = ("-m", measure, "--json")
    found = json.loads(told("compare", "old", "new", "flaky", *ADDRESS, *words)[1])
    plain = json.loads(told("compare", "old", "new", "flaky", *words)[1])
    rows = {row["run"]: row for row in found["runs"]}
    diffs = {(item["a"], item["b"]): item["diff"] for item in plain["comparisons"]}

    assert found["winner"] == "new"
    assert rows["old"]["difference"] == pytest.approx(-diffs["old", "new"])
    assert rows["flaky"]["beaten_by"] is not None
    assert (rows["old"]["queries"], found["queries"]) == (60, 60)
    assert rows["flaky"]["queries"] <= 40
    assert len(found["left_out"]) == 20


def test_no_run_is_called_worse_than_others_that_its_failures_could_save(
    write, told, dataset, capsys
):
    """As of two runs: what failed is not known to be bad."""
    write(old=worse, new=worse, flaky=from_20(better))
    words = ("old", "flaky", "new", *ADDRESS)

    found = json.loads(told("compare", *words, "--json")[1])
    [row] = [row for row in found["runs"] if row["run"] == "old"]
    main(["compare", "--dataset", str(dataset.path), *words])

    assert (row["beaten_by"], row["saved_from"], found["winner"]) == (None, "flaky", "UNKNOWN")
    assert row["interval"][1] < 0
    assert row["failure_bounds"][0] < 0 < row["failure_bounds"][1]
    assert "old is not called worse than flaky: 20 queries are left out" in " ".join(
        capsys.readouterr().err.split()
    )


def test_runs_that_differ_by_the_same_in_all_queries_are_not_told_apart(write, told):
    """As of two runs, and as in `compare`."""
    write(old=lambda n: BEST, new=lambda n: SECOND, third=lambda n: BEST)

    found = json.loads(told("compare", "old", "new", "third", *ADDRESS, "--json")[1])
    rows = {row["run"]: row for row in found["runs"]}

    assert found["winner"] == "TIE"
    assert rows["new"]["interval"][0] < 0 < rows["new"]["interval"][1]
    assert rows["third"]["interval"] == [0, 0]


def test_two_runs_with_hardly_a_query_of_both_are_refused(write, dataset, capsys):
    """Nothing is told of how their difference spreads."""
    write(old=better, new=lambda n: better(n) if n < 9 else None, third=worse)
    words = ["compare", "--dataset", str(dataset.path), "old", "new", "third", *ADDRESS]

    assert main(words) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "9 queries on which neither old nor new failed: expected at least 10" in told
