"""Samples and splits of a set's queries, from the command line."""

import json

import pytest

from ragforge.cli import main

pytestmark = pytest.mark.slow


N = 40
"""Queries: 30 of orders, 10 of refunds; every fifth is in dev."""
CHUNKS = [
    {"id": f"c{n:02}", "document": f"d{n}.md", "text": f"Fact {n} is here."} for n in range(N)
]
GOLDEN = [
    {
        "id": f"q{n:02}",
        "query": f"Where is fact {n}?",
        "relevant_doc_ids": [f"c{n:02}"],
        "expected_answer": f"Fact {n}",
        "category": "refunds" if n % 4 == 0 else "orders",
    }
    for n in range(N)
]
SEARCH = """
asked = []
def number(query):
    return int(query.split()[-1].rstrip("?"))
def search(query, k):
    n = number(query)
    asked.append(n)
    right, wrong = f"c{n:02}", f"c{(n + 1) % 40:02}"
    return [wrong, right] if n % 4 == 0 else [right, wrong]
def worse(query, k):
    n = number(query)
    return [f"c{(n + 1) % 40:02}", f"c{n:02}"]
def broken(query, k):
    if number(query) % 8 == 0:
        raise RuntimeError("no index")
    return search(query, k)
def no_refunds(query, k):
    if number(query) % 4 == 0:
        raise RuntimeError("no index")
    return search(query, k)
def answer(query):
    n = number(query)
    return "I do not know." if n % 4 == 0 else f"Fact {n}"
"""
SAMPLE = ("--sample", "10", "--seed", "7")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with the set: RR is 1 of orders and 0.5 of refunds, so 0.875 of all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "chunks.json").write_text(json.dumps(CHUNKS))
    (tmp_path / "golden.json").write_text(json.dumps({"queries": GOLDEN}))
    (tmp_path / "sampled_search.py").write_text(SEARCH)
    words = ["import", "golden.json", "--chunks", "chunks.json", "--out", "set", "-q"]
    assert main(words) == 0
    path = tmp_path / "set" / "queries.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for n, row in enumerate(rows):
        row["split"] = "dev" if n % 5 == 0 else "test"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert main(["validate", "--dataset", "set", "--accept"]) == 0
    return tmp_path


def run(capsys, command, *words):
    capsys.readouterr()
    code = main([command, "--dataset", "set", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def retrieve(name, *words, by="search"):
    spec = f"sampled_search:{by}"
    return main(["retrieve", "--dataset", "set", "--retriever", spec, "--name", name, "-q", *words])


def measured(capsys, *words):
    code, out, _ = run(capsys, "evaluate", "--json", "--no-history", "-m", "RR", *words)
    assert code == 0
    return json.loads(out)


def ids(home, name):
    lines = (home / "set" / "runs" / f"{name}.jsonl").read_text().splitlines()
    return {json.loads(line)["query_id"] for line in lines}


def test_a_retriever_is_asked_for_the_sample_alone(home, capsys):
    """What is not drawn is not to be paid for."""
    code = retrieve("part", *SAMPLE)

    assert (code, len(ids(home, "part"))) == (0, 10)


def test_strata_have_their_share_of_the_sample(home, capsys):
    """For the last place 30/15 and 10/5 are the same, and the first name takes it: 8 and 2."""
    _, out, _ = run(
        capsys, "retrieve", "--retriever", "bm25", "--name", "part", "--json", "-q", *SAMPLE
    )

    strata = json.loads(out)["selection"]["strata"]
    assert {item["stratum"]: (item["n_drawn"], item["weight"]) for item in strata} == {
        "orders": (8, 0.75),
        "refunds": (2, 0.25),
    }


def test_retrieving_and_evaluating_draw_the_same_queries(home, capsys):
    """The means of a sampled run and of the full one on that sample are then the same."""
    retrieve("full")
    retrieve("part", *SAMPLE)

    found = measured(capsys, "--run", "full", "--per-query", *SAMPLE)

    assert found["runs"]["full"]["per_query"].keys() == ids(home, "part")


def test_the_mean_of_a_sample_is_that_of_the_set(home, capsys):
    """8 of 1 and 2 of 0.5 are 0.9 in the plain mean; 0.75 · 1 + 0.25 · 0.5 is 0.875."""
    retrieve("part", *SAMPLE)

    [run_] = measured(capsys)["runs"].values()

    assert run_["measures"]["RR"]["mean"] == pytest.approx(0.875)


def forget(home, is_kept):
    """Leave the judgments of some queries alone."""
    path = home / "set" / "judgments.jsonl"
    rows = [line for line in path.read_text().splitlines() if is_kept(json.loads(line))]
    path.write_text("".join(f"{row}\n" for row in rows))
    assert main(["validate", "--dataset", "set", "--accept"]) == 0


@pytest.mark.parametrize("others", ["none", "refunds"])
def test_weights_are_shares_of_the_set_whoever_is_judged(home, capsys, others):
    """Judging the refunds that were not drawn moved the mean of the same run from 0.9 to 0.722."""
    retrieve("part", *SAMPLE)
    drawn = ids(home, "part")
    is_refund = {item["id"]: item["category"] == others for item in GOLDEN}
    forget(home, lambda row: row["query_id"] in drawn or is_refund[row["query_id"]])

    [run_] = measured(capsys)["runs"].values()
    of_set = run_["measures"]["RR"]["set_interval"]
    _, gate, _ = run(capsys, "gate", "--run", "part", "--min", "RR=0.5", "--allow-few")

    assert run_["measures"]["RR"]["mean"] == pytest.approx(0.875)
    assert of_set["low"] < 0.875 < of_set["high"]
    assert "orders 0.750 (8 of 30), refunds 0.250 (2 of 10)" in gate


@pytest.mark.parametrize("others", ["none", "refunds"])
def test_differences_are_weighted_by_shares_of_the_set_whoever_is_judged(home, capsys, others):
    """By hand: 0.5 less on the orders, which are three quarters of the set."""
    retrieve("part", *SAMPLE)
    retrieve("other", *SAMPLE, by="worse")
    drawn = ids(home, "part")
    is_refund = {item["id"]: item["category"] == others for item in GOLDEN}
    forget(home, lambda row: row["query_id"] in drawn or is_refund[row["query_id"]])

    _, out, _ = run(capsys, "compare", "part", "other", "-m", "RR", "--json")

    [found] = json.loads(out)["comparisons"]
    assert found["diff"] == pytest.approx(-0.375)


def test_queries_that_were_not_asked_do_not_count_as_0(home, capsys):
    """Without a flag, thirty of forty would pass for misses."""
    retrieve("part", *SAMPLE)

    [run_] = measured(capsys)["runs"].values()

    assert (run_["measures"]["RR"]["n"], run_["missing_from_run"]) == (10, [])


def test_strata_without_spread_settle_the_mean_of_the_set(home, capsys):
    """Every drawn value of a stratum is the same: only what nobody saw is left open."""
    retrieve("part", *SAMPLE)

    [run_] = measured(capsys, "--interval")["runs"].values()

    of_set, of_all = (run_["measures"]["RR"][name] for name in ("set_interval", "interval"))
    assert of_all["low"] <= of_set["low"] <= 0.875 <= of_set["high"] <= of_all["high"]


def test_weights_are_printed(home, capsys):
    """Who reads the mean must see what it is made of."""
    retrieve("part", *SAMPLE)

    _, out, _ = run(capsys, "evaluate", "--no-history")

    assert "orders        30      8   0.750" in out


def test_a_split_is_measured_on_its_own(home, capsys):
    """Every fifth of 40 is in dev: 8, of which 0, 20 are refunds: (6 + 2 · 0.5) / 8."""
    retrieve("full")

    [run_] = measured(capsys, "--split", "dev")["runs"].values()

    assert (run_["measures"]["RR"]["n"], run_["measures"]["RR"]["mean"]) == (8, 0.875)


def test_a_sample_of_a_split_is_of_that_split(home, capsys):
    """Both flags narrow the queries."""
    retrieve("part", "--split", "test", *SAMPLE)

    assert all(int(item[1:]) % 5 for item in ids(home, "part"))


def test_a_split_of_a_sampled_run_is_measured_on_what_was_drawn(home, capsys):
    """The rest of the split was never asked."""
    retrieve("part", *SAMPLE)
    n_test = sum(int(item[1:]) % 5 != 0 for item in ids(home, "part"))

    [run_] = measured(capsys, "--split", "test")["runs"].values()

    assert run_["measures"]["RR"]["n"] == n_test


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--sample", "0"), "--sample: expected a whole number from 1, got 0"),
        (("--sample", "-3"), "--sample: expected a whole number from 1, got -3"),
        (("--by", "category"), "--by: goes with --sample N"),
        (("--sample", "9", "--by", "colour"), "there are: category, language, split"),
        (("--sample", "9", "--by", "persona"), "no query has one"),
    ],
)
def test_flags_that_choose_nothing_are_refused(home, capsys, words, told):
    """A slip must not measure all, or none."""
    retrieve("full")

    code, _, err = run(capsys, "evaluate", "--no-history", *words)

    assert (code, told in err) == (2, True)


def test_a_split_that_no_query_is_in_is_refused(home, capsys, tmp_path):
    """An empty part has no mean; the message names what there is."""
    path = tmp_path / "set" / "queries.jsonl"
    path.write_text(path.read_text().replace('"split": "dev"', '"split": "test"'))
    main(["validate", "--dataset", "set", "--accept"])

    code, _, err = run(capsys, "retrieve", "--retriever", "bm25", "--split", "dev")

    assert (code, "splits of the set: test (40)" in err) == (2, True)


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_drawn_query_that_the_run_lacks_is_not_left_out(home, capsys, command):
    """The others of its stratum would stand for it in a mean of the whole set."""
    for name in ("a", "b"):
        retrieve(name)
        path = home / "set" / "runs" / f"{name}.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [row for row in rows if not is_refund(row)]
        for row in kept:  # As another tool writes it, which does not say what it was asked.
            del row["query_sha256"]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in kept))

    code, _, err = run(capsys, command, *SAMPLE, "--only-retrieved")

    assert (code, "run a lacks 2 queries of the sample" in err) == (2, True)


def is_refund(ranking):
    return int(ranking["query_id"].removeprefix("q")) % 4 == 0


def test_a_sample_of_all_is_the_set(home, capsys):
    """It is said, and the run is no part."""
    code, _, err = run(capsys, "retrieve", "--retriever", "bm25", "--sample", "40")

    assert (code, "has 40 queries, and all are taken" in err) == (0, True)


def test_a_sample_of_one_has_a_mean_and_no_interval(home, capsys):
    """One query tells nothing about others."""
    retrieve("part", "--sample", "1")

    [run_] = measured(capsys)["runs"].values()

    assert run_["measures"]["RR"]["set_interval"]["low"] is None


def test_a_sample_does_not_replace_a_run_of_more(home, capsys):
    """The rest may have been dear."""
    retrieve("full")

    code, _, err = run(
        capsys, "retrieve", "--retriever", "sampled_search:search", "--name", "full", *SAMPLE
    )

    assert (code, "holds 30 queries beyond" in err) == (2, True)
    assert len(ids(home, "full")) == N


def test_a_sampled_run_grows(home, capsys):
    """The sample of 20 holds that of 10."""
    retrieve("part", *SAMPLE)
    before = ids(home, "part")

    assert retrieve("part", "--sample", "20", "--seed", "7") == 0
    assert before < ids(home, "part")


def test_another_sample_of_a_sampled_run_is_refused(home, capsys):
    """Most of its queries were never asked."""
    retrieve("part", *SAMPLE)

    code, _, err = run(capsys, "evaluate", "--no-history", "--sample", "10", "--seed", "8")

    assert (code, "was made for sample 10, seed 7, by category and lacks" in err) == (3, True)


def test_a_smaller_sample_of_a_sampled_run_is_measured(home, capsys):
    """It was asked for all of these."""
    retrieve("part", *SAMPLE)

    [run_] = measured(capsys, "--sample", "6", "--seed", "7")["runs"].values()

    assert run_["measures"]["RR"]["n"] == 6


def test_queries_that_came_later_are_told(home, capsys):
    """They could not be drawn."""
    retrieve("part", *SAMPLE)
    path = home / "set" / "queries.jsonl"
    row = json.loads(path.read_text().splitlines()[-1])
    path.write_text(path.read_text() + json.dumps({**row, "query_id": "q99"}) + "\n")
    grades = home / "set" / "judgments.jsonl"
    grade = json.loads(grades.read_text().splitlines()[-1])
    grades.write_text(grades.read_text() + json.dumps({**grade, "query_id": "q99"}) + "\n")
    main(["validate", "--dataset", "set", "--accept"])

    _, out, _ = run(capsys, "evaluate", "--no-history")

    assert "was drawn from 40 queries, and there are 41 now" in " ".join(out.split())


def test_failures_in_a_sample_leave_its_weights(home, capsys):
    """Both refunds of the sample may have failed: then the mean is of orders, and says so."""
    retrieve("part", "--max-failures", "1", *SAMPLE, by="broken")

    [run_] = measured(capsys)["runs"].values()

    found = run_["measures"]["RR"]
    assert found["low"] <= 0.875 <= found["high"]


def test_failures_of_an_earlier_run_go_with_it(home, capsys):
    """The run of before failed on queries that the sample does not ask."""
    retrieve("part", "--max-failures", "1", by="broken")
    main(["runs", "rm", "--dataset", "set", "part"])
    retrieve("part", *SAMPLE)

    [run_] = measured(capsys)["runs"].values()

    assert run_["failed"] == []


def test_a_sampled_run_is_compared_with_a_full_one_on_its_sample(home, capsys):
    """`worse` has RR 0.5 throughout: 0.875 and 0.5 differ by 0.375 in the set."""
    retrieve("full")
    retrieve("part", *SAMPLE, by="worse")

    code, out, _ = run(capsys, "compare", "full", "part", "-m", "RR", "--json")

    [found] = json.loads(out)["comparisons"]
    assert (code, found["n"], found["diff"]) == (0, 10, pytest.approx(-0.375))


def test_two_samples_are_compared_on_what_they_share(home, capsys):
    """Neither is to count as 0 what only the other was asked."""
    retrieve("seven", "--sample", "20", "--seed", "7")
    retrieve("eight", "--sample", "20", "--seed", "8", by="worse")
    n = len(ids(home, "seven") & ids(home, "eight"))

    _, out, _ = run(capsys, "compare", "seven", "eight", "-m", "RR", "--json")

    [found] = json.loads(out)["comparisons"]
    assert (found["n"], found["mean_a"]) == (n, pytest.approx(0.875))


@pytest.mark.parametrize("how", [(), ("--judge",), ("--judge-as-needed",)])
def test_runs_of_different_splits_are_told_so(home, capsys, how):
    """They share no query, so that no grade could make a comparison of them."""
    retrieve("early", "--split", "dev")
    retrieve("late", "--split", "test")

    code, _, err = run(capsys, "compare", "early", "late", *how)

    assert code == 3
    assert "early was made for split dev, late was made for split test" in err
    assert "judged" not in err


def test_what_two_samples_share_is_named_so(home, capsys):
    """It is no sample of 20 with seed 7, which has 20 queries."""
    retrieve("seven", "--sample", "20", "--seed", "7")
    retrieve("eight", "--sample", "20", "--seed", "8", by="worse")
    n = len(ids(home, "seven") & ids(home, "eight"))
    names = [f"sample 20, seed {seed}, by category" for seed in (7, 8)]

    _, out, _ = run(capsys, "compare", "seven", "eight", "-m", "RR")

    words = " ".join(out.split())
    assert f"on what {' and '.join(names)} have in common: {n} queries of the 40" in words
    _, out, _ = run(capsys, "compare", "seven", "eight", "-m", "RR", "--json")
    selection = json.loads(out)["selection"]
    assert (sorted(selection["common_to"]), "seed" in selection) == (sorted(names), False)


def test_what_was_drawn_and_failed_counts_as_drawn(home, capsys):
    """All refunds fail: two or more of them were drawn all the same, and none has a value."""
    retrieve("part", *SAMPLE, by="no_refunds")

    _, out, _ = run(capsys, "evaluate", "--no-history", "-m", "RR")

    assert "10 queries of the 40 that count, 8 with a value" in out
    assert ["refunds", "10", "2", "0", "0.250"] in [line.split() for line in out.splitlines()]


def test_runs_alike_in_a_sample_may_differ_beyond_it(home, capsys):
    """Ten queries do not show that forty have the same rankings."""
    retrieve("one")
    retrieve("two")

    _, out, _ = run(capsys, "compare", "one", "two", "-m", "RR", "--json", *SAMPLE)

    [found] = json.loads(out)["comparisons"]
    assert (found["same_rankings"], found["low"] < 0 < found["high"]) == (False, True)


def test_unnamed_samples_do_not_shrink_a_comparison(home, capsys):
    """Else one sampled run would have all others compared on its few queries."""
    retrieve("one")
    retrieve("two", by="worse")
    retrieve("part", *SAMPLE)

    _, out, _ = run(capsys, "compare", "-m", "RR", "--json")

    assert {item["n"] for item in json.loads(out)["comparisons"]} == {N}


def test_a_gate_holds_the_mean_of_the_set(home, capsys):
    """The plain mean of the sample, 0.9, would pass."""
    retrieve("part", *SAMPLE)

    code, _, _ = run(
        capsys, "gate", "--run", "part", "--min", "RR=0.88", "--point", "--min-queries", "5"
    )

    assert code == 1


def test_a_gate_refuses_a_baseline_of_other_queries(home, capsys):
    """A drop may be one of the queries."""
    retrieve("full")
    retrieve("part", *SAMPLE)
    run(capsys, "gate", "--run", "full", "--write-baseline", "b.json")

    code, out, _ = run(
        capsys, "gate", "--run", "part", "--max-drop", "RR=0.1", "--baseline", "b.json",
        "--min-queries", "5",
    )  # fmt: skip

    text = " ".join(out.split())
    assert (code, "the baseline is of the whole set, this is of sample 10" in text) == (1, True)


def test_a_drop_is_that_of_the_set(home, capsys):
    """On the sample: from 0.875 to 0.5, weighted alike on both sides, is -0.375."""
    retrieve("base", *SAMPLE)
    retrieve("full", by="worse")
    run(capsys, "gate", "--run", "base", "--write-baseline", "b.json", "--min-queries", "5")

    _, out, _ = run(
        capsys, "gate", "--run", "full", "--max-drop", "RR=0.5", "--baseline", "b.json",
        "--min-queries", "5", "--point", "--allow-dataset-change", "--json",
    )  # fmt: skip

    [check] = json.loads(out)["checks"]
    assert (check["n"], check["value"]) == (10, pytest.approx(-0.375))


def test_the_history_says_what_was_measured(home, capsys):
    """A mean of ten queries in a row of means of forty must be seen to be one."""
    retrieve("full")
    run(capsys, "evaluate", "-m", "RR")
    run(capsys, "evaluate", "-m", "RR", *SAMPLE)

    _, out, _ = run(capsys, "history")

    assert "10 (sample 10, seed 7, by category)" in out
    assert "the whole set before, now sample 10, seed 7, by category" in " ".join(out.split())


def test_two_evaluations_of_a_sample_are_compared_item_by_item(home, capsys):
    """Orders fell from 1 to 0.5: by 0.375 in the set, and by 0.4 in the plain mean of the ten."""
    retrieve("part", *SAMPLE)
    run(capsys, "evaluate", "-m", "RR")
    retrieve("part", *SAMPLE, by="worse")

    _, _, err = run(capsys, "evaluate", "-m", "RR")
    _, out, _ = run(capsys, "history", "--json")

    [found] = json.loads(out)["datasets"][0]["runs"][0]["evaluations"][-1]["bridge"].values()
    assert ("not compared item by item" in err, found["n"]) == (False, 10)
    assert found["diff"] == pytest.approx(-0.375)


def test_the_last_evaluation_of_a_sample_is_a_baseline(home, capsys):
    """It is held against the same queries: orders fell from 1 to 0.5, 0.75 of the set."""
    retrieve("part", *SAMPLE)
    run(capsys, "evaluate", "-m", "RR")
    retrieve("part", *SAMPLE, by="worse")

    _, out, _ = run(
        capsys, "gate", "--run", "part", "--max-drop", "RR=0.5", "--baseline", "last",
        "--min-queries", "5", "--point", "--json",
    )  # fmt: skip

    [check] = json.loads(out)["checks"]
    assert (check["n"], check["value"]) == (10, pytest.approx(-0.375))


def test_worst_lists_no_query_that_was_not_asked(home, capsys):
    """Only the two refunds of the sample are not perfect."""
    retrieve("part", *SAMPLE)

    _, out, _ = run(capsys, "worst", "--json", "-m", "RR")

    [found] = json.loads(out)["runs"].values()
    assert sum(cause["count"] for cause in found["causes"]) == 2


def answer(name, *words):
    spec = "sampled_search:answer"
    return main(
        ["answer", "--dataset", "set", "--system", spec, "--name", name, "-q", "--json", *words]
    )


def test_rates_of_answers_are_those_of_the_set(home, capsys):
    """Refunds are not attempted: 2 of 10 in the sample, but 1 of 4 in the set."""
    capsys.readouterr()
    assert answer("mine", *SAMPLE) == 0

    rates = json.loads(capsys.readouterr().out)["rates"]
    assert rates["not_attempted"]["mean"] == pytest.approx(0.25)
    assert (rates["not_attempted"]["n"], rates["not_attempted"]["n_absent"]) == (10, 0)


def test_sampled_answers_are_gated_on_their_sample(home, capsys):
    """Thirty queries were never asked, and are no failures."""
    answer("mine", *SAMPLE)

    _, out, _ = run(
        capsys, "gate", "--answers", "mine", "--max-failures", "1%", "--min-queries", "5", "--json"
    )

    [check] = json.loads(out)["checks"]
    assert (check["n"], check["n_failed"]) == (10, 0)


def test_sampled_answers_stay_sampled_when_they_are_graded_again(home, capsys):
    """Their own file names ten queries; the other thirty were not asked then either."""
    answer("mine", *SAMPLE)
    capsys.readouterr()
    path = str(home / "set" / "answers" / "mine.jsonl")
    main(["answer", "--dataset", "set", "--answers", path, "--name", "mine", "-q", "--json"])

    assert json.loads(capsys.readouterr().out)["rates"]["score"]["n_absent"] == 0


def test_a_sample_does_not_replace_answers_of_more(home, capsys):
    """The rest may have been dear."""
    answer("mine")
    capsys.readouterr()

    assert answer("mine", *SAMPLE) == 2
    assert "hold 30 queries beyond" in capsys.readouterr().err


def test_slices_of_sampled_answers_stand_for_slices_of_the_set(home, capsys):
    """Correct are all orders and no refunds, whatever the sample has of each."""
    capsys.readouterr()
    answer("mine", *SAMPLE)

    slices = json.loads(capsys.readouterr().out)["slices"]
    whole = next(item for item in slices if item["dimension"] == "language")
    assert whole["rates"]["correct"]["mean"] == pytest.approx(0.75)


def test_a_report_of_a_sampled_run_says_so(home, capsys):
    """Its figures are estimates."""
    retrieve("part", *SAMPLE)

    code = main(["report", "--dataset", "set", "--out", "r.html"])

    assert (code, "run part is measured on sample 10" in (home / "r.html").read_text()) == (0, True)


def test_a_file_of_a_sampled_run_is_refused(home, capsys):
    """By all judgments of the set, thirty queries that were never asked would count 0."""
    retrieve("part", *SAMPLE)
    capsys.readouterr()
    words = ["--qrels", "set/judgments.jsonl", "--run", "set/runs/part.jsonl"]

    code = main(["evaluate", *words])

    assert (code, "was made for sample 10, seed 7" in capsys.readouterr().err) == (3, True)


def test_the_list_of_runs_says_what_a_run_was_made_for(home, capsys):
    """Ten of forty queries look like a run that was cut off."""
    retrieve("part", *SAMPLE)
    capsys.readouterr()

    main(["runs", "list", "--dataset", "set"])

    assert "10 (sample 10, seed 7, by category)" in capsys.readouterr().out


def test_what_cannot_be_answered_is_drawn_apart(home, capsys):
    """Measures of retrieval leave it out, and the rest is to keep its shares: 27, 9 and 4."""
    path = home / "set" / "queries.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in (rows[0], rows[1], rows[2], rows[3]):
        row["answerable"] = False
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    main(["validate", "--dataset", "set", "--accept"])
    retrieve("part", *SAMPLE)

    found = measured(capsys)

    strata = {item["stratum"]: item["n_queries"] for item in found["selections"]["part"]["strata"]}
    assert strata == {"(unanswerable)": 4, "orders": 27, "refunds": 9}


def test_flags_of_a_sample_need_a_dataset(home, capsys):
    """A file of judgments has no categories to draw by."""
    code = main(["evaluate", "--qrels", "q.trec", "--run", "r.trec", "--sample", "5"])

    assert (code, "goes with --dataset DIR" in capsys.readouterr().err) == (2, True)


def test_the_worst_are_counted_among_the_queries_asked(home, capsys):
    """2 of 10 drawn are of refunds, of which the right chunk stands second."""
    retrieve("part", *SAMPLE)

    _, out, _ = run(capsys, "worst", "--run", "part", "-m", "RR", "--json")

    found = json.loads(out)["runs"]["part"]
    assert (found["n_queries"], found["n_bad"]) == (10, 2)


def test_a_report_leaves_slices_empty_that_a_sampled_run_has_not(home, capsys):
    """Cells that moved to the next run would be another run's figures."""
    retrieve("whole")
    retrieve("part", "--split", "dev")
    path = home / "set" / "queries.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["category"] = "new" if row["query_id"] == "q01" else row["category"]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert main(["validate", "--dataset", "set", "--accept"]) == 0

    codes = [run(capsys, "report", "--out", name)[0] for name in ("r.html", "r.md")]

    assert codes == [0, 0]
    [line] = [line for line in (home / "r.md").read_text().splitlines() if "| new |" in line]
    assert [cell.strip() for cell in line.split("|")[1:4]] == ["new", "1", "\u2013"]
