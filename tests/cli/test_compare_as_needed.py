"""`ragforge compare --judge-as-needed`: a decision for a part of the pool."""

import json
import random
import re
from dataclasses import replace
from xml.etree.ElementTree import parse

import pytest
from endpoint import Reply, completion, datum, serving

import ragforge
from ragforge.cli import main
from ragforge.files.set.canaries import add_canary
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.measures import evaluate
from ragforge.records import (
    Canary,
    Chunk,
    Evidence,
    Failure,
    Hit,
    Judgment,
    Provenance,
    Query,
    Ranking,
    RetrievedText,
    Span,
    text_id,
)

N, DEPTH = 60, 10
REL = ("--rel-threshold", "1")
IDS = [f"q{n:02}" for n in range(N)]


def grade_by_worth(path, body, number):
    """Play a judge who gives what a chunk is worth."""
    passage = datum(body["messages"][-1]["content"], "passage")
    grade = int(re.search(r"worth (\d)", passage)[1])
    reply = {
        "reasoning": "as scripted",
        "evidence": passage if grade >= 2 else "",
        "contains_answer": grade >= 2,
        "grade": grade,
    }
    return Reply(completion(reply))


@pytest.fixture(scope="module")
def endpoint():
    with serving(grade_by_worth) as found:
        yield found


@pytest.fixture
def dataset(tmp_path):
    """A set of sixty queries: `good` ranks by worth with some noise, `poor` by noise alone."""
    made = create_dataset(tmp_path / "set", made_from={"seed": "0"})
    draw = random.Random(4)
    worths = {q: [draw.choice([0, 0, 0, 1, 1, 2, 3]) for _ in range(24)] for q in IDS}
    made.write_chunks(
        Chunk(chunk_id=f"{q}-{i:02}", doc_id=q, text=f"Of {q}, piece {i}: worth {worth}.")
        for q, of_query in worths.items()
        for i, worth in enumerate(of_query)
    )
    made.write_queries(Query(query_id=q, query=f"What is {q}?") for q in IDS)
    for name, skill in (("good", 1.0), ("poor", 0.0), ("other", 0.0), ("as-good", 1.0)):
        made.write_run(name, [ranking(q, worths[q], skill, draw) for q in IDS])
    return made


def ranking(query_id, worths, skill, draw):
    """Return ten chunks in the order of their worth and of noise."""
    order = sorted(range(len(worths)), key=lambda i: -(skill * worths[i] + draw.random() * 2))
    hits = tuple(
        Hit(chunk_id=f"{query_id}-{i:02}", score=float(DEPTH - place))
        for place, i in enumerate(order[:DEPTH])
    )
    return Ranking(query_id=query_id, ranking=hits)


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """A working directory of the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def decide(dataset, endpoint, capsys):
    """Decide between two runs; return exit code, stdout and the calls that were made."""

    def go(*names, more=()):
        capsys.readouterr()
        before = len(endpoint.bodies)
        address = ["--model", "m", "--base-url", endpoint.url, "-q"]
        words = ["compare", "--dataset", str(dataset.path), *names, "--judge-as-needed"]
        code = main([*words, *more, *address])
        return code, capsys.readouterr().out, len(endpoint.bodies) - before

    return go


def test_a_clear_winner_takes_a_part_of_the_pool(decide):
    """Judge calls are what a decision costs."""
    code, out, calls = decide("poor", "good", more=["--json"])

    found = json.loads(out)
    assert (code, found["winner"]) == (0, "good")
    assert found["pairs_used"] == calls < 0.5 * found["pool"]
    assert found["interval"][0] > 0


def test_the_same_command_pays_for_nothing_twice(decide):
    """Replies are kept before they are used."""
    first = decide("poor", "good", more=["--json"])
    second = decide("poor", "good", more=["--json"])

    assert first[1] == second[1]
    assert second[2] == 0


def test_order_of_the_runs_decides_nothing(decide):
    """A winner is a winner from both sides."""
    found = [
        json.loads(decide(*names, more=["--json"])[1])
        for names in (("poor", "good"), ("good", "poor"))
    ]

    assert [each["winner"] for each in found] == ["good", "good"]
    assert found[0]["pairs_used"] == found[1]["pairs_used"]
    assert found[0]["difference"] == pytest.approx(-found[1]["difference"])


def test_the_sample_is_no_pool(decide, dataset):
    """Other commands would take what was not drawn for not relevant."""
    decide("poor", "good")

    assert not list(open_dataset(dataset.path).each_judgment())
    [kept] = (dataset.path / ".ragforge" / "decisions").glob("*.json")
    grades = json.loads(kept.read_text())["grades"]
    assert all(0 < each["probability"] <= 1 for each in grades)


def test_all_pairs_give_the_difference_of_evaluate(decide, dataset):
    """Where nothing is left to be drawn nothing is estimated."""
    found = json.loads(decide("poor", "other", more=["--json"])[1])
    qrels, runs = {}, {}
    for name in ("poor", "other"):
        runs[name] = {
            each.query_id: {hit.chunk_id: hit.score for hit in each.ranking}
            for each in dataset.each_ranking(name)
        }
    texts = {chunk.chunk_id: chunk.text for chunk in dataset.chunks()}
    for chunk_id, text in texts.items():
        worth = int(re.search(r"worth (\d)", text)[1])
        qrels.setdefault(chunk_id[:3], {})[chunk_id] = worth
    means = [evaluate(qrels, runs[name], ["DCG@10"]).mean("DCG@10") for name in ("poor", "other")]
    low, high = found["interval"]

    assert found["winner"] == "TIE"
    assert low <= means[1] - means[0] <= high


def test_grades_of_people_cost_nothing(decide, dataset):
    """Who has labels does not pay for them."""
    texts = {chunk.chunk_id: chunk.text for chunk in dataset.chunks()}
    dataset.write_judgments(
        Judgment(
            query_id=chunk_id[:3],
            chunk_id=chunk_id,
            grade=int(re.search(r"worth (\d)", text)[1]),
            source="human",
        )
        for chunk_id, text in texts.items()
    )

    _, out, calls = decide("poor", "good", more=["--json"])

    found = json.loads(out)
    assert (found["winner"], found["pairs_used"], calls) == ("good", 0, 0)


def test_queries_on_which_a_retriever_failed_are_left_out(decide, dataset):
    """A failure is never a value."""
    dataset.write_run("poor", list(dataset.each_ranking("poor"))[1:])
    failed = [Failure(what="retrieve", key="poor/q00", kind="error", message="503")]
    dataset.replace_failures("retrieve", failed, lambda _: True)

    found = json.loads(decide("poor", "good", more=["--json"])[1])

    assert found["left_out"] == ["q00"]
    assert found["queries"] == N - 1


def test_a_query_that_a_run_found_nothing_for_counts_as_that(decide, dataset):
    """Left out, a run that answers the easy queries alone would win."""
    kept = [each for each in dataset.each_ranking("good") if each.query_id < "q20"]
    dataset.write_run("few", kept)

    found = json.loads(decide("as-good", "few", more=["--json"])[1])

    assert (found["winner"], found["queries"], found["left_out"]) == ("as-good", N, [])


def test_the_same_rankings_are_a_tie_without_a_call(decide, dataset):
    """A retriever that did not change must not turn a gate red."""
    dataset.write_run("same", list(dataset.each_ranking("good")))

    for names in (("good", "same"), ("good", "same", "good-too")):
        dataset.write_run("good-too", list(dataset.each_ranking("good")))
        _, out, calls = decide(*names, more=["--json"])
        assert (json.loads(out)["winner"], calls) == ("TIE", 0)


def test_a_judge_who_finds_nothing_shows_no_run_to_be_as_good(dataset, capsys):
    """A gate that passed on such grades would pass anything."""

    def nothing(path, body, number):
        reply = {"reasoning": "-", "evidence": "", "contains_answer": False, "grade": 0}
        return Reply(completion(reply))

    words = ["gate", "--dataset", str(dataset.path), "--base", "good", "--run", "poor", "-q"]
    with serving(nothing) as running:
        address = ["--model", "m", "--base-url", running.url, "--json", "--judge-as-needed"]
        main([*words, "--max-drop", "P@10=0.02", *address])

    assert json.loads(capsys.readouterr().out)["outcome"] == "NOT_SHOWN"


def test_of_two_grades_of_a_text_that_of_people_counts(decide, dataset):
    """As it does in all other commands."""
    texts = {chunk.chunk_id: chunk.text for chunk in dataset.chunks()}
    worth = {name: int(re.search(r"worth (\d)", text)[1]) for name, text in texts.items()}
    copies = [Chunk(chunk_id=f"{name}x", doc_id="d", text=text) for name, text in texts.items()]
    dataset.write_chunks([*dataset.chunks(), *copies])
    for run in ("poor", "good"):
        dataset.write_run(run, [twice(each) for each in dataset.each_ranking(run)])
    dataset.write_judgments(
        Judgment(query_id=name[:3], chunk_id=chunk_id, grade=grade, source=source)
        for name, real in worth.items()
        for chunk_id, source, grade in ((name, "human", real), (f"{name}x", "judge", 0))
    )

    _, out, calls = decide("poor", "good", more=["--json"])

    assert (json.loads(out)["winner"], calls) == ("good", 0)


def twice(ranking):
    """Return a ranking in which each text stands under a second id, too."""
    hits = [
        hit.model_copy(update={"chunk_id": hit.chunk_id + end, "score": hit.score - less})
        for hit in ranking.ranking
        for end, less in (("", 0.0), ("x", 0.5))
    ]
    return ranking.model_copy(update={"ranking": tuple(hits)})


def test_judgments_that_failed_take_no_side(dataset):
    """A judge that refuses what one run retrieves must not make the other one win."""
    firsts = [each.ranking[0] for each in dataset.each_ranking("good") if each.query_id < "q25"]
    refused = {hit.chunk_id for hit in firsts}
    texts = [chunk.text for chunk in dataset.chunks() if chunk.chunk_id in refused]

    def refuse(path, body, number):
        if any(text in str(body["messages"]) for text in texts):
            return Reply(completion("no"))
        return grade_by_worth(path, body, number)

    with serving(refuse) as running:
        made = ragforge.open(dataset.path)
        decided = made.compare(
            "poor", "good", judge_as_needed=True, model="m", base_url=running.url
        )
    found = decided.found
    low, high = found.failure_bounds
    turned = replace(found, failure_bounds=(-0.1, high))

    assert found.n_failed > 0
    assert 0 < low < decided.difference < high
    assert (found.winner, turned.winner) == ("good", "UNKNOWN")
    assert "which could turn it" in turned.as_json()["why"]
    assert found.worst[0] < decided.interval[0]
    assert found.worst[1] > decided.interval[1]


def test_a_second_measure_is_told_of_the_first(decide, capsys, dataset, endpoint):
    """Who decides twice and takes what pleases has more false winners."""
    decide("poor", "good")
    words = ["compare", "--dataset", str(dataset.path), "good", "poor", "--judge-as-needed"]
    main([*words, "-m", "P@10", "--model", "m", "--base-url", endpoint.url, "-q"])

    assert "decided before, by DCG@10 (seed 0): good" in " ".join(capsys.readouterr().err.split())


def test_a_sample_of_queries_stands_for_the_set(decide, dataset):
    """A stratum of which few were drawn weighs as much as it has queries."""
    queries = [
        each.model_copy(update={"category": "rare" if each.query_id < "q04" else "usual"})
        for each in dataset.queries()
    ]
    dataset.write_queries(queries)
    drawn = ("--sample", "12", "--json", "-m", "RR")
    found = json.loads(decide("poor", "good", more=drawn)[1])
    plain = json.loads(decide("poor", "good", more=("--json", "-m", "RR"))[1])

    assert found["queries"] == 12
    low, high = found["interval"]
    assert low <= plain["difference"] <= high


@pytest.mark.parametrize(
    "flags", [("--alpha", "0.01"), ("--only-retrieved",), ("--calibrated",), ("--moved", "3")]
)
def test_flags_that_a_sample_cannot_follow_are_refused(dataset, capsys, flags):
    """Ignored, they would be taken for held."""
    words = ["compare", "--dataset", str(dataset.path), "poor", "good", "--judge-as-needed"]

    assert main([*words, *flags]) == 2
    assert f"{flags[0]}: does not go with --judge-as-needed" in capsys.readouterr().err


def test_a_dry_run_tells_the_first_look_and_the_most(decide):
    """The price is known before anything is spent."""
    code, out, calls = decide("poor", "good", more=["--dry-run", "--json"])

    pairs = json.loads(out)["pairs"]
    assert (code, calls) == (0, 0)
    assert 0 < pairs["first_look"] < pairs["expected_if_far"] < pairs["at_most"] <= pairs["pool"]


def test_a_budget_stops_it_and_a_higher_one_goes_on(decide):
    """What was bought under the first is used under the second."""
    code, _, calls = decide("poor", "good", more=["--max-calls", "20"])
    again, out, more = decide("poor", "good", more=["--json"])

    assert (code, again) == (5, 0)
    assert calls + more == json.loads(out)["pairs_used"]


def test_the_threshold_of_the_settings_holds(decide):
    """P@10 of grades from 1 is another measure."""
    found = json.loads(decide("poor", "good", more=["--json", "-m", "P@10", *REL])[1])

    assert found["measure"] == "P(rel=1)@10"


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        (("good",), (), "compares two runs or more"),
        (("good", "good"), (), "name each once"),
        (("good", "poor"), ("-m", "nDCG@10"), "the nearest is DCG@10"),
        (("good", "poor"), ("-m", "R@20"), "the nearest is P@20"),
        (("good", "poor"), ("-m", "P@5", "-m", "P@10"), "by one measure"),
    ],
)
def test_what_it_cannot_decide_is_refused(dataset, capsys, names, more, message):
    """A sampled nDCG would be another measure."""
    code = main(["compare", "--dataset", str(dataset.path), *names, "--judge-as-needed", *more])

    assert code == 2
    assert message in capsys.readouterr().err


def test_grades_of_a_baseline_name_no_winner(dataset, capsys):
    """Shared words say nothing about quality."""
    main(["compare", "--dataset", str(dataset.path), "poor", "good", "--judge-as-needed", "--json"])

    assert json.loads(capsys.readouterr().out)["winner"] == "UNKNOWN"


def test_of_several_runs_it_tells_which_may_be_the_best(decide, dataset):
    """Who tries four settings wants to know which to go on with."""
    code, out, calls = decide("good", "poor", "other", "as-good", more=["--json"])

    found = json.loads(out)
    assert code == 0
    assert set(found["may_be_best"]) == {"good", "as-good"}
    assert found["winner"] == "TIE"
    assert {row["run"]: bool(row["beaten_by"]) for row in found["runs"]} == {
        "good": False,
        "as-good": False,
        "poor": True,
        "other": True,
    }
    assert found["pairs_used"] == calls < 0.8 * found["pool"]
    assert not list(open_dataset(dataset.path).each_judgment())


@pytest.mark.parametrize("measure", ["RR", "Success@3"])
def test_several_runs_are_read_down_to_their_first_hits(decide, measure):
    """What lies below the first hit is not asked for, nor more of a run that was dropped."""
    _, out, calls = decide("good", "poor", "other", "as-good", more=["--json", "-m", measure])

    found = json.loads(out)
    assert set(found["may_be_best"]) == {"good", "as-good"}
    assert found["pairs_used"] == calls < 0.6 * found["pool"]


def test_several_runs_are_shown_as_a_table(decide):
    """A row a run, and what it rests on."""
    _, out, _ = decide("good", "poor", "other")

    assert re.search(r"good +may be best", out)
    assert re.search(r"poor +worse than good", out)
    assert "at least 95 %" in out


def test_several_runs_are_paid_for_once(decide):
    """Replies are kept before they are used."""
    first = decide("good", "poor", "other", more=["--json"])
    second = decide("good", "poor", "other", more=["--json"])

    assert (second[1], second[2]) == (first[1], 0)


def test_a_baseline_drops_none_of_several(dataset, capsys):
    """Shared words say nothing about quality."""
    main(["compare", "--dataset", str(dataset.path), "--judge-as-needed", "--json"])

    found = json.loads(capsys.readouterr().out)
    assert (found["winner"], len(found["may_be_best"])) == ("UNKNOWN", 4)


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate"],
        ["compare", "poor", "good"],
        ["report", "--out", "report.html"],
    ],
)
def test_who_measures_takes_no_sample_for_a_pool(decide, dataset, capsys, command, in_folder):
    """What was not drawn would count as not relevant."""
    decide("poor", "good")
    name, *words = command
    main([name, "--dataset", str(dataset.path), *words])

    told = " ".join("".join(capsys.readouterr()).split())
    page = in_folder / "report.html"
    told += page.read_text(encoding="utf-8") if page.exists() else ""
    assert "graded for a decision alone" in told
    assert "completes the pool" in told


def test_a_gate_refuses_a_sample(decide, dataset, capsys):
    """Nothing is decided on chunks that nobody graded."""
    decide("poor", "good")
    code = main(["gate", "--dataset", str(dataset.path), "--run", "good", "--min", "RR=0.1"])

    shown = " ".join("".join(capsys.readouterr()).split())
    assert code == 1
    assert "--max-holes" in shown
    assert f"`ragforge judge --dataset {dataset.path}` with the same model completes" in shown


@pytest.fixture
def hold(dataset, endpoint, capsys):
    """Hold a run against another one; return exit code, stdout and the calls that were made."""

    def go(base, run, *more):
        capsys.readouterr()
        before = len(endpoint.bodies)
        words = ["gate", "--dataset", dataset.path, "--base", base, "--run", run, *more]
        address = ["--model", "m", "--base-url", endpoint.url, "-q", "--judge-as-needed"]
        code = main([*map(str, words), *address])
        return code, capsys.readouterr().out, len(endpoint.bodies) - before

    return go


def test_a_gate_buys_what_its_rule_needs(hold):
    """A drop that is shown, or that a larger one is ruled out, takes a part of the pool."""
    code, shown, calls = hold("good", "poor", "--max-drop", "DCG@10=0.1", "--json")
    found = json.loads(shown)

    assert (code, found["outcome"], found["passed"]) == (1, "FAIL", False)
    assert 0 < calls == found["pairs_used"] < found["pool"]
    assert found["interval"][1] < 0


def test_a_gate_passes_what_is_better_and_tells_what_is_not_shown(hold):
    """Neither a drop nor that there is none: the run passes, unless that is to stop it."""
    assert hold("poor", "good", "--max-drop", "DCG@10=0.1")[0] == 0
    code, shown, _ = hold("good", "as-good", "--max-drop", "DCG@10=0.0001")

    assert (code, shown.splitlines()[0]) == (
        0,
        "gate: NOT SHOWN: neither a drop is shown, nor is one of 0.0001 ruled out",
    )
    strict = ("--max-drop", "DCG@10=0.0001", "--fail-on", "not-shown")
    assert hold("good", "as-good", *strict)[0] == 1
    assert hold("good", "as-good", "--max-drop", "DCG@10=9")[1].startswith("gate: PASS: ")


def test_a_gate_stays_within_its_budget(hold):
    """And the same command goes on where it stopped."""
    words = ("--max-drop", "DCG@10=0.1")
    assert hold("good", "poor", *words, "--max-calls", "3")[::2] == (5, 3)
    code, _, calls = hold("good", "poor", *words)

    assert code == 1
    assert calls > 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--max-drop", "nDCG@10=0.1"], "DCG@10"),
        (["--max-drop", "DCG@10=auto"], "expected one rule"),
        (["--max-drop", "DCG@10=0.1", "--min", "RR=0.1"], "expected one rule"),
        (["--max-drop", "DCG@10=0.1", "--write-baseline", "x"], "--write-baseline: does not go"),
        (["--max-drop", "DCG@10=0.1", "--junit", "x", "--markdown", "x"], "--markdown"),
    ],
)
def test_rules_that_no_sample_decides_are_refused(dataset, capsys, more, message):
    """A rule that is left out would be taken for held."""
    words = ["gate", "--dataset", dataset.path, "--base", "good", "--run", "poor", *more]

    assert main([*map(str, words), "--judge-as-needed", "--model", "m"]) == 2
    assert message in capsys.readouterr().err


def test_too_few_queries_are_refused_with_what_helps(dataset, capsys):
    """A comparison has no flag that lets it decide on them, a gate has two."""
    dataset.write_queries(Query(query_id=q, query=f"What is {q}?") for q in IDS[:9])
    words = ["--dataset", str(dataset.path), "--judge-as-needed", "--model", "m"]
    words += ["--base-url", "http://127.0.0.1:9/v1"]

    assert main(["compare", "good", "poor", *words]) == 2
    compared = capsys.readouterr().err
    assert main(["gate", "--base", "good", "--run", "poor", "--max-drop", "RR=1", *words]) == 2
    gated = capsys.readouterr().err

    assert ("9 queries: expected at least 10" in compared, "--allow-few" in compared) == (
        True,
        False,
    )
    assert "9 queries: expected at least 25, or as --min-queries or --allow-few say" in gated


def test_a_baseline_holds_no_gate(dataset, capsys):
    """Grades by shared words decide nothing."""
    words = ["gate", "--dataset", str(dataset.path), "--base", "good", "--run", "as-good", "-q"]

    assert main([*words, "--max-drop", "DCG@10=0.1", "--judge-as-needed"]) == 1
    assert capsys.readouterr().out.startswith("gate: REFUSED: no judge graded")


def test_judging_flags_need_judging(dataset, capsys):
    """A gate that judges nothing would ignore them."""
    words = ["gate", "--dataset", str(dataset.path), "--run", "good", "--min", "RR=0.1"]

    assert main([*words, "--base", "poor"]) == 2
    assert "--base: goes with --judge-as-needed" in capsys.readouterr().err


@pytest.fixture
def written(hold, tmp_path, monkeypatch):
    """Hold a run and return all that is written: exit code, stdout, XML, comment and summary."""
    paths = [tmp_path / name for name in ("gate.xml", "gate.md", "summary.md")]
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(paths[2]))

    def go(base, run, *more):
        outputs = ("--junit", paths[0], "--markdown", paths[1], "--github")
        code, shown, _ = hold(base, run, *more, *outputs)
        suite = parse(paths[0]).getroot().find("testsuite")
        return code, shown, suite, paths[1].read_text(), paths[2].read_text()

    return go


def test_a_drop_that_is_shown_is_told_to_ci_in_every_form(written):
    """Who reviews a change reads the comment, the list of tests or the annotations."""
    code, shown, suite, comment, summary = written("good", "poor", "--max-drop", "DCG@10=0.1")
    [case] = suite.findall("testcase")
    numbers = {item.get("name"): float(item.get("value")) for item in case.iter("property")}
    error, notice = [line for line in shown.splitlines() if line.startswith("::")]

    assert (code, suite.get("failures"), case.get("name")) == (1, "1", "max-drop DCG@10")
    assert "a drop by its whole interval" in case.find("failure").get("message")
    assert numbers["low"] == numbers["decided"] < numbers["value"] < numbers["high"] < 0
    assert (numbers["threshold"], numbers["n"]) == (0.1, 60)
    assert comment == summary.lstrip()
    assert "ragforge gate: FAIL: shown not to be held: max-drop DCG@10" in comment
    assert re.search(r"\d+ of \d+ pairs judged \(\d+ %\), in \d looks?: the rest was not", comment)
    assert "graded by m (language model): " in comment
    assert error.startswith("::error title=gate max-drop DCG@10::DCG@10 changed by -")
    assert "run poor, 60 queries; baseline: set version" in notice


def test_what_is_not_shown_either_way_is_skipped_or_stops_as_asked(written):
    """CI must not count as held what nobody could tell."""
    rule = ("--max-drop", "DCG@10=0.0001")
    code, shown, suite, comment, _ = written("good", "as-good", *rule)
    strict = written("good", "as-good", *rule, "--fail-on", "not-shown")

    assert (code, suite.get("failures"), suite.get("skipped")) == (0, "0", "1")
    assert "::warning title=gate max-drop DCG@10::" in shown
    assert "NOT SHOWN either way by these queries" in comment
    assert "judging more of these pairs would hardly decide it" in comment
    assert (strict[0], strict[2].get("failures")) == (1, "1")


def test_a_run_that_may_ship_is_told_so_in_every_form(written):
    """The drop that is ruled out is what lets it."""
    code, shown, suite, comment, _ = written("poor", "good", "--max-drop", "DCG@10=0.1")

    assert (code, suite.get("failures"), suite.get("skipped")) == (0, "0", "0")
    assert "a drop of more than 0.1000 is ruled out" in comment
    assert [line[:8] for line in shown.splitlines() if line.startswith("::")] == ["::notice"]


def test_a_budget_that_ends_before_the_decision_leaves_a_refusal(written):
    """A step without a file would look like one that was never run."""
    words = ("--max-drop", "DCG@10=0.1", "--max-calls", "3")
    code, shown, suite, comment, _ = written("good", "poor", *words)
    refused, rule = suite.findall("testcase")
    message = refused.find("failure").get("message")

    assert code == 5
    assert re.search(r"--max-calls 3 is reached; 3 of \d+ pairs are judged", message)
    assert (rule.get("name"), rule.find("skipped") is None) == ("max-drop DCG@10", False)
    assert "REFUSED for 1 reason: nothing is decided" in comment
    assert "::error title=gate refused::" in shown


def test_grades_of_a_baseline_are_a_refusal_in_every_form(dataset, tmp_path, capsys):
    """They decide nothing, and CI must say why it stopped."""
    words = ["gate", "--dataset", dataset.path, "--base", "good", "--run", "as-good", "-q"]
    out = ["--judge-as-needed", "--junit", tmp_path / "gate.xml"]

    assert main([*map(str, [*words, "--max-drop", "DCG@10=0.1", *out])]) == 1
    suite = parse(tmp_path / "gate.xml").getroot().find("testsuite")
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "1")
    assert "no judge graded" in suite.find("testcase").find("failure").get("message")


def test_python_holds_a_run_as_needed(dataset, endpoint):
    """As the command does."""
    made = ragforge.open(dataset.path)
    found = made.gate_as_needed(
        "good", "poor", max_drop={"DCG@10": 0.1}, model="m", base_url=endpoint.url
    )

    assert (found.outcome, bool(found)) == ("FAIL", False)
    assert found.rows()[0]["pairs_used"] == found.to_dict()["pairs_used"]
    assert found.verdict.names_of("FAIL") == ["max-drop DCG@10"]
    assert 'failures="1"' in found.junit()
    assert "FAIL" in found.markdown()


def test_judging_completes_the_pool_and_pays_for_the_rest(decide, dataset, endpoint, capsys):
    """What a decision bought is bought."""
    *_, calls = decide("poor", "good")
    before = len(endpoint.bodies)
    address = ["--model", "m", "--base-url", endpoint.url, "-q"]
    main(["judge", "--dataset", str(dataset.path), "--run", "poor", "--run", "good", *address])

    assert len(endpoint.bodies) - before == 956 - calls
    capsys.readouterr()
    main(["evaluate", "--dataset", str(dataset.path), "--run", "good"])
    assert "for a decision alone" not in "".join(capsys.readouterr())


def test_a_broken_decision_is_named(decide, dataset, capsys):
    """Somebody may have edited the file."""
    decide("poor", "good")
    [kept] = (dataset.path / ".ragforge" / "decisions").glob("*.json")
    kept.write_text("{}")

    assert main(["evaluate", "--dataset", str(dataset.path)]) == 3
    assert "is no kept decision" in capsys.readouterr().err


@pytest.mark.parametrize("measure", ["RR", "RR@5", "Success@3"])
def test_first_hits_are_read_down_and_are_those_of_evaluate(decide, dataset, measure):
    """Nothing is estimated: what lies below the first hit does not count."""
    _, out, calls = decide("poor", "good", more=["--json", "-m", measure])
    found = json.loads(out)
    qrels, runs = {}, {}
    for name in ("poor", "good"):
        runs[name] = {
            each.query_id: {hit.chunk_id: hit.score for hit in each.ranking}
            for each in dataset.each_ranking(name)
        }
    for chunk in dataset.chunks():
        worth = int(re.search(r"worth (\d)", chunk.text)[1])
        qrels.setdefault(chunk.chunk_id[:3], {})[chunk.chunk_id] = worth
    means = [evaluate(qrels, runs[name], [measure]).mean(measure) for name in ("poor", "good")]

    assert found["winner"] == "good"
    assert found["difference"] == pytest.approx(means[1] - means[0], abs=1e-12)
    assert found["pairs_used"] == calls < 0.6 * found["pool"]


def test_a_dry_run_of_first_hits_tells_the_first_look(decide):
    """At first the top of both runs is asked for."""
    _, out, calls = decide("poor", "good", more=["--dry-run", "--json", "-m", "RR"])

    pairs = json.loads(out)["pairs"]
    assert calls == 0
    assert N <= pairs["first_look"] <= 2 * N <= pairs["at_most"] <= pairs["pool"]


def test_labels_of_documents_are_refused_before_any_call(dataset, decide, capsys, endpoint):
    """They were dropped, and the run that people's labels call the worse one won."""
    label = Judgment(query_id=IDS[0], chunk_id=IDS[0], grade=3, source="human", level="document")
    dataset.write_judgments([label])
    before = len(endpoint.bodies)

    words = ["compare", "--dataset", str(dataset.path), "good", "poor", "--judge-as-needed"]
    code = main([*words, "--model", "m", "--base-url", endpoint.url, "-q"])

    assert (code, len(endpoint.bodies)) == (2, before)
    assert f"labels of 1 query, such as '{IDS[0]}', name documents" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("evidence", "advice"),
    [
        ((), "; no query has evidence, by which they could be compared\n"),
        (
            (Evidence(chunk_id="q00-00", doc_id="q00", quote="Of q00", start=0, end=6),),
            ": compare them by evidence (`ragforge compare",
        ),
    ],
)
def test_runs_of_different_chunks_are_refused_by_the_measure_asked(
    dataset, capsys, evidence, advice
):
    """DCG was named whatever was asked, and evidence advised where no query has any."""
    queries = [one.model_copy(update={"evidence": evidence}) for one in dataset.queries()]
    dataset.write_queries(queries)
    parts = [
        RetrievedText(
            chunk_id=text_id(f"Of {q}"), text=f"Of {q}", places=(Span(doc_id=q, start=0, end=6),)
        )
        for q in IDS
    ]
    with dataset.alone():
        dataset.add_retrieved_texts(parts, "parts")
        hits = [(q, (Hit(chunk_id=text_id(f"Of {q}"), score=1.0),)) for q in IDS]
        dataset.write_run("parts", [Ranking(query_id=q, ranking=found) for q, found in hits])

    words = ["compare", "--dataset", str(dataset.path), "good", "parts", "--judge-as-needed"]
    code = main([*words, "-m", "RR"])

    assert code == 2
    reason = "the runs have different chunks, and RR of each is of other texts"
    assert f"{reason}{advice}" in capsys.readouterr().err


SENTENCE = "The lever is set to {} degrees."


def test_a_quote_that_stands_twice_is_found_once(in_folder, capsys):
    """A run that returns the other copy as well was better by it."""
    chunks = [
        {"chunk_id": f"{q}-{i}", "doc_id": q, "text": f"Of {q}, {i}: worth {worth}. {said}"}
        for n, q in enumerate(IDS)
        for i, (worth, said) in enumerate(
            [(3, SENTENCE.format(n)), (0, ""), (3, SENTENCE.format(n)), (0, "")]
        )
    ]
    rows = [
        {"id": q, "question": f"What is {q}?", "doc_id": q, "quote": SENTENCE.format(n)}
        for n, q in enumerate(IDS)
    ]
    for name, each in (("chunks.jsonl", chunks), ("q.jsonl", rows)):
        (in_folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in each))
    assert main(["import", "q.jsonl", "--chunks", "chunks.jsonl", "--out", "set", "-q"]) == 0
    made = open_dataset(in_folder / "set")
    for run, order in (("once", (1, 0, 3)), ("twice", (1, 0, 2))):
        made.write_run(run, [in_order(q, order) for q in IDS])
    capsys.readouterr()

    with serving(grade_by_worth) as judge:
        address = ["--model", "m", "--base-url", judge.url, "-q", "--json", "-m", "P@3"]
        code = main(["compare", "--dataset", "set", "once", "twice", "--judge-as-needed", *address])

    assert code == 0
    assert json.loads(capsys.readouterr().out)["winner"] == "TIE"


def in_order(query_id, order):
    hits = tuple(
        Hit(chunk_id=f"{query_id}-{i}", score=float(9 - place)) for place, i in enumerate(order)
    )
    return Ranking(query_id=query_id, ranking=hits)


def test_a_reply_that_was_no_use_is_asked_for_again(dataset, capsys):
    """One in the first look ended the command for good, whatever the endpoint said since."""
    useless = {"now": True}

    def reply(path, body, number):
        return Reply(completion({"nope": 1})) if useless["now"] else grade_by_worth(path, body, 0)

    with serving(reply) as endpoint:
        words = ["compare", "--dataset", str(dataset.path), "poor", "good", "--judge-as-needed"]
        words += ["--model", "m", "--base-url", endpoint.url, "-q", "--json"]
        assert main(words) == 4
        useless["now"] = False
        assert main(words) == 4
        capsys.readouterr()
        before = len(endpoint.bodies)

        assert main([*words, "--retry-failed"]) == 0

        found = json.loads(capsys.readouterr().out)
        assert (found["winner"], found["pairs_used"]) == ("good", len(endpoint.bodies) - before)
        assert main([*words, "--retry-failed"]) == 0
        assert len(endpoint.bodies) - before == found["pairs_used"]


def by_ann(made, *names):
    """Have a kind person grade what some runs found: each text one grade above the judge's."""
    worths = {chunk.chunk_id: int(chunk.text[-2]) for chunk in made.chunks()}
    tops = {(r.query_id, h.chunk_id) for name in names for r in made.run(name) for h in r.ranking}
    given = [
        Judgment(
            query_id=query_id,
            chunk_id=chunk_id,
            grade=min(worths[chunk_id] + 1, 3),
            source="human",
            provenance=Provenance(kind="human", model="ann"),
        )
        for query_id, chunk_id in tops
    ]
    made.add_judgments(given)
    return len(given)


@pytest.mark.parametrize("measure", ["DCG@10", "RR"])
@pytest.mark.parametrize("of", ["poor", "other"])
def test_a_run_does_not_win_because_people_graded_what_it_found(dataset, decide, of, measure):
    """A stricter judge's grades of the other run alone would make it the winner."""
    by_ann(dataset, of)
    code, out, _ = decide("poor", "other", more=["--json", "-m", measure])

    found = json.loads(out)
    assert (code, found["winner"]) == (0, "TIE")
    assert found["pairs_known"] == 0


def test_it_is_said_that_the_judge_grades_what_people_graded(dataset, endpoint, in_folder, capsys):
    """That is not what the labels were made for, and it costs calls."""
    by_ann(dataset, "poor")
    words = ["compare", "--dataset", str(dataset.path), "poor", "other", "--judge-as-needed"]
    main([*words, "--model", "m", "--base-url", endpoint.url, "-q"])

    assert "people graded 100% of what poor ranks and 4" in capsys.readouterr().err


def test_of_several_runs_none_is_dropped_because_people_graded_another(dataset, decide):
    """One judge grades what is compared."""
    by_ann(dataset, "as-good")
    _, out, _ = decide("other", "as-good", "good", more=["--json"])

    assert set(json.loads(out)["may_be_best"]) == {"as-good", "good"}


def test_people_who_graded_both_runs_alike_are_asked_for_nothing_again(dataset, decide):
    """Their grades are the best there are."""
    by_ann(dataset, "poor", "other")
    _, out, calls = decide("poor", "other", more=["--json"])

    assert (json.loads(out)["winner"], calls) == ("TIE", 0)


@pytest.mark.parametrize("names", [("poor", "good"), ("poor", "good", "other")])
def test_a_judge_that_drifted_is_told(dataset, endpoint, in_folder, capsys, names):
    """Its grades are of another judge than those of before, whatever its name is."""
    found = Canary(
        canary_id="",
        judge=Provenance(kind="llm", model="m", prompt="judge_relevance"),
        temperature=0,
        number=1,
        first_id="first",
        at="2026-11-01T00:00:00+00:00",
        answered_by=(),
        pairs=(),
        signs=("shift",),
        p={},
    )
    add_canary(dataset, found)
    words = ["compare", "--dataset", str(dataset.path), *names, "--judge-as-needed"]
    main([*words, "--model", "m", "--base-url", endpoint.url, "-q"])

    assert "JUDGE DRIFTED: m by its canary of 2026-11-01 (shift)" in capsys.readouterr().err


def test_a_gate_fails_no_run_for_four_queries(dataset, endpoint, in_folder, capsys):
    """That all four go one way is chance in one case of eight, and `compare` calls it a tie."""
    worths = {chunk.chunk_id: int(chunk.text[-2]) for chunk in dataset.chunks()}
    best, worst = {}, {}
    for chunk_id in sorted(worths, key=lambda name: (worths[name], name)):
        worst.setdefault(chunk_id[:3], chunk_id)
        best[chunk_id[:3]] = chunk_id
    slip = {**best, **{q: worst[q] for q in IDS[:4]}}
    for name, tops in (("ships", best), ("slip", slip)):
        hits = {q: (Hit(chunk_id=tops[q], score=1.0),) for q in IDS}
        dataset.write_run(name, [Ranking(query_id=q, ranking=hits[q]) for q in IDS])
    words = ["gate", "--dataset", str(dataset.path), "--base", "ships", "--run", "slip", "-q"]
    rule = ["--max-drop", "P@1=0.01", "--judge-as-needed"]
    code = main([*words, *rule, "--model", "m", "--base-url", endpoint.url])

    assert (code, capsys.readouterr().out.partition(": n")[0]) == (0, "gate: NOT SHOWN")
