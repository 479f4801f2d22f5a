"""Measures, comparisons and decisions: by hand, and as the commands print them."""

import json
import shutil
from math import log2

import pytest
from measured_set import make_measured_set, ranking

import ragforge as rf
from ragforge.cli import main


def printed(capsys, *words):
    """Return what a command prints with `--json`."""
    capsys.readouterr()
    main([*words, "--json"])
    return json.loads(capsys.readouterr().out)


def test_measures_are_those_computed_by_hand(found):
    """Rank 2 and rank 1: RR (1/2 + 1)/2, and nDCG (1/log2(3) + 1)/2."""
    scores = found.evaluate("mine", ["nDCG@10", "RR"], quiet=True)

    assert scores.mean("RR") == 0.75
    assert scores.mean("nDCG@10") == pytest.approx((1 / log2(3) + 1) / 2)
    assert scores.rows() == [
        {"run": "mine", "query_id": "q1", "nDCG@10": pytest.approx(1 / log2(3)), "RR": 0.5},
        {"run": "mine", "query_id": "q2", "nDCG@10": 1.0, "RR": 1.0},
    ]


def test_scores_of_a_run_offer_all_that_they_offer_elsewhere(found):
    """One set of scores has one class."""
    scores = found.evaluate(quiet=True)["mine"]

    assert isinstance(scores, rf.Scores)
    assert scores.worst(1, "RR") == [("q1", 0.5)]


def test_evaluate_says_what_the_command_prints(measured, capsys):
    """Whoever moves from the shell to a notebook must find the same numbers."""
    shown = printed(
        capsys,
        *("evaluate", "--dataset", str(measured.path), "--no-history"),
        *("--per-query", "--interval"),
    )

    scores = measured.evaluate(history=False, quiet=True)
    assert json.loads(json.dumps(scores.to_dict(per_query=True, interval=True))) == shown


def test_compare_says_what_the_command_prints(measured, capsys):
    """The same of differences and their intervals."""
    shown = printed(
        capsys, "compare", "--dataset", str(measured.path), "bad", "good", "-m", "RR", "-m", "P@1"
    )

    found = measured.compare("bad", "good", measures=["RR", "P@1"])
    assert json.loads(json.dumps(found.to_dict())) == shown


def test_gate_says_what_the_command_prints(measured, capsys):
    """The same of a verdict."""
    shown = printed(
        capsys,
        *("gate", "--dataset", str(measured.path), "--run", "good"),
        *("--min", "RR=0.5", "--max-failures", "10%"),
    )

    decided = measured.gate("good", min={"RR": 0.5}, max_failures="10%", quiet=True)
    assert json.loads(json.dumps(decided.to_dict())) == shown


def test_worst_says_what_the_command_prints(measured, capsys):
    """The same of causes."""
    shown = printed(capsys, "worst", "--dataset", str(measured.path), "--run", "bad")

    assert json.loads(json.dumps(measured.worst("bad").to_dict())) == shown


def test_history_says_what_the_command_prints(measured, capsys):
    """The same of the past."""
    measured.evaluate(quiet=True)
    shown = printed(capsys, "history", "--dataset", str(measured.path))

    assert json.loads(json.dumps(measured.history().to_dict())) == shown["datasets"][0]


def test_the_better_run_wins(measured):
    """The relevant chunk first beats the relevant chunk second in 39 of 39 queries."""
    found = measured.compare("bad", "good", measures="RR")

    assert (found.winner, found.outcome) == ("good", "good")
    assert [row["winner"] for row in found.rows()] == ["good"]


def test_equal_runs_have_no_winner(measured):
    """A TIE is not a win of the first."""
    [*found] = measured.rankings("good")
    held = {f"Where is fact {item.query_id}?": [h.chunk_id for h in item.ranking] for item in found}
    measured.retrieve(
        lambda query: held.get(query) or ["cx"], name="again", max_failures=1, quiet=True
    )

    verdict = measured.compare("good", "again", measures="RR")
    assert (verdict.winner, verdict.outcome) == (None, "TIE")


def test_grades_that_say_nothing_name_no_winner(by_hand):
    """Shared words are no judge of retrieval."""
    by_hand.retrieve("bm25", quiet=True)
    by_hand.retrieve(lambda query, k: ["d", "b"], name="bad", quiet=True)
    by_hand.judge(quiet=True)

    verdict = by_hand.compare("bad", "bm25", measures="nDCG@10")
    assert (verdict.winner, verdict.outcome) == (None, "UNKNOWN")


def test_of_three_runs_one_has_to_beat_both(measured):
    """To be better than one of two is not to be the best."""
    [*found] = measured.rankings("good")
    held = {f"Where is fact {item.query_id}?": [h.chunk_id for h in item.ranking] for item in found}
    measured.retrieve(lambda query: held.get(query) or ["cx"], name="again", quiet=True)

    assert measured.compare("bad", "good", "again", measures="RR").winner is None
    assert measured.compare("bad", "good", "again", measures="RR", base="bad").winner is None
    assert measured.compare("again", "bad", "good", measures="RR", base="good").winner is None


def test_a_measure_that_was_not_compared_is_refused(measured):
    """None would read as a tie."""
    found = measured.compare("bad", "good", measures="RR")

    with pytest.raises(rf.UsageError, match="'P@5': was not compared; there are: RR"):
        found.winner_in("P@5")


def test_a_gate_passes_and_fails_with_reasons(measured):
    """RR of bad is 0.5 in every query: its interval begins there."""
    passed = measured.gate("bad", min={"RR": 0.4}, allow="holes", quiet=True)
    failed = measured.gate("bad", min={"RR": 0.6}, allow="holes", quiet=True)

    assert (passed.passed, bool(passed), passed.reasons) == (True, True, ())
    assert (failed.passed, failed.outcome) == (False, "FAIL")
    assert "0.6" in failed.reasons[0]


def test_a_gate_that_cannot_judge_refuses(found):
    """Two queries decide nothing."""
    decided = found.gate("mine", min={"RR": 0.1}, quiet=True)

    assert (decided.passed, decided.outcome) == (False, "REFUSED")
    assert any("queries" in reason for reason in decided.reasons)


def test_a_baseline_is_written_and_held_against(measured, place):
    """The file of today is what tomorrow is measured by."""
    measured.gate("good", write_baseline_to="baseline.json", allow="holes", quiet=True)

    decided = measured.gate(
        "bad", max_drop={"RR": 0.1}, baseline="baseline.json", allow="holes", quiet=True
    )
    assert decided.outcome == "FAIL"
    assert [check.name for check in decided.checks] == ["max-drop RR"]


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({}, "nothing to check: give min"),
        ({"max": {"hallucination": 0.1}}, "max: of no measure of retrieval"),
        ({"max_drop": {"RR": 0.1}}, "max_drop needs a baseline"),
        ({"min": {"RR": 2}}, "min RR=2: 2 is out of range"),
        ({"min": {"RR": 0.1}, "allow": "all"}, "gate: allow: expected one of: few"),
    ],
)
def test_rules_that_cannot_be_are_refused(measured, rules, why):
    """A gate without a rule would always pass."""
    with pytest.raises(rf.UsageError, match=why):
        measured.gate("good", **rules)


def test_a_report_is_written_in_the_form_of_its_name(measured, place):
    """A page for people, and its figures as rows."""
    written = measured.report("report.html", quiet=True)

    assert (place / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert [row["mean"] for row in written.rows() if row["measure"] == "RR"] == [0.5, 1.0]


def test_a_report_of_no_known_form_is_refused(measured):
    """A PDF is not what would come out."""
    with pytest.raises(rf.UsageError, match=r"out report.pdf: expected an ending of \.html"):
        measured.report("report.pdf")


def test_an_evaluation_is_kept_once_asked(measured):
    """What is only tried out leaves no trace."""
    measured.evaluate("good", history=False, quiet=True)
    assert measured.history().rows() == []

    measured.evaluate("good", quiet=True)
    assert {row["run"] for row in measured.history().rows()} == {"good"}


def test_the_texts_of_a_set_run_nothing_in_a_notebook(by_hand):
    """The page of a notebook holds the user's session."""
    by_hand.retrieve(lambda query: ["a"], name="<img src=x onerror=alert(1)>"[1:4], quiet=True)
    by_hand.add_queries(
        [{"query_id": "<script>", "query": "<script>alert(1)</script>", "relevant": ["a"]}],
        quiet=True,
    )

    shown = by_hand.worst(measure="RR")
    assert "<script>" in shown.table()
    assert "<script>" not in shown._repr_html_()
    assert "&lt;script&gt;" in shown._repr_html_()


def test_files_are_compared_without_a_set(place):
    """Runs of others come as files."""
    (place / "qrels").write_text("".join(f"q{n} 0 a 1\n" for n in range(30)))
    for name, rank in (("good", "a"), ("bad", "b")):
        other = "b" if rank == "a" else "a"
        lines = (f"q{n} Q0 {rank} 1 2 x\nq{n} Q0 {other} 2 1 x\n" for n in range(30))
        (place / f"{name}.trec").write_text("".join(lines))

    found = rf.compare_files("qrels", ["bad.trec", "good.trec"], "RR")

    assert (found.winner, found.comparisons[0].comparison.mean_a) == ("good", 0.5)


def test_a_part_is_measured_as_by_the_command(measured, capsys):
    """A sample stands for the set, whoever draws it."""
    words = ("--dataset", str(measured.path), "--sample", "10", "--seed", "7", "--by", "none")
    shown = printed(capsys, "evaluate", *words, "--no-history")

    part = measured.part(10, by="none", seed=7)
    scores = part.evaluate(history=False, quiet=True)

    assert json.loads(json.dumps(scores.to_dict())) == shown
    assert len(list(part.queries())) == 10


def test_a_run_of_a_part_carries_which(measured):
    """Who measures it later must not count what was never asked."""
    part = measured.part(10, by="none", seed=7)
    made = part.retrieve("bm25", quiet=True)

    assert (made.n_queries, made.selection.sample) == (10, 10)
    assert measured.runs == ("bad", "bm25", "good")


def test_files_are_measured_without_a_set(place, capsys):
    """As the command does with --qrels."""
    (place / "q.trec").write_text("q1 0 a 1\nq2 0 c 1\n")
    (place / "r.trec").write_text("q1 Q0 b 1 2 r\nq1 Q0 a 2 1 r\nq2 Q0 c 1 2 r\n")
    main(["evaluate", "--qrels", "q.trec", "--run", "r.trec", "-m", "RR", "-q", "--json"])

    found = rf.evaluate_files("q.trec", "r.trec", "RR", quiet=True)

    assert found.to_dict() == json.loads(capsys.readouterr().out)
    assert found.mean("RR") == 0.75


@pytest.mark.parametrize(("retrieved", "is_told"), [("cafe\u0301.md", True), ("tea.md", False)])
def test_an_id_in_another_form_of_unicode_is_told(place, retrieved, is_told):
    """Names of files come from macOS with their letters taken apart, and look the same."""
    (place / "q.csv").write_text("query_id,chunk_id,grade\na,caf\u00e9.md,1\nb,x,1\n")
    (place / "r.trec").write_text(f"a Q0 {retrieved} 1 2.0 r\nb Q0 x 1 2.0 r\n")

    found = rf.evaluate_files("q.csv", "r.trec", "RR", quiet=True)

    said = "1 retrieved id is in the qrels in another form of Unicode, such as 'cafe\u0301.md'"
    assert any(said in warning for warning in found.warnings) == is_told


def test_a_decision_is_told_to_ci_as_by_the_command(measured, place):
    """JUnit XML for the service, Markdown for the pull request."""
    rules = ["--min", "RR=0.1", "--junit", "gate.xml", "--markdown", "gate.md", "-q"]
    main(
        ["gate", "--dataset", str(measured.path), "--run", "good", "--allow-baseline-judge", *rules]
    )

    decision = measured.gate("good", min={"RR": 0.1}, allow="baseline-judge", quiet=True)

    assert decision.junit() == (place / "gate.xml").read_text()
    assert decision.markdown() == (place / "gate.md").read_text()


@pytest.fixture
def weeks(by_hand, place):
    """Two batches of two questions each, drawn from logs, with a run that was measured on them."""
    for week, questions in ((46, ("gate?", "green?")), (47, ("euros?", "cards?"))):
        log = place / f"{week}.jsonl"
        log.write_text("".join(json.dumps({"query": text}) + "\n" for text in questions))
        by_hand.add_logs(log, sample=2, batch=f"2026-W{week}", quiet=True)
    by_hand.retrieve("bm25", quiet=True)
    by_hand.judge(quiet=True)
    by_hand.evaluate("bm25", "RR", quiet=True)
    return by_hand


def test_weeks_are_told_as_by_the_command(weeks, capsys):
    """One series, two doors."""
    main(["history", "--dataset", str(weeks.path), "--by", "batch", "--json"])
    [shown] = json.loads(capsys.readouterr().out)["datasets"]

    found = weeks.history_by_batch()

    assert json.loads(json.dumps(found.to_dict())) == shown
    assert [row["batch"] for row in found.rows()] == ["2026-W46", "2026-W47"]
    assert "2026-W47" in found.table()


def test_a_set_without_batches_has_no_weeks(found):
    """Nothing was drawn from a log."""
    found.evaluate("mine", "RR", quiet=True)

    with pytest.raises(rf.UsageError, match="no query was drawn from a log"):
        found.history_by_batch()


def test_two_sets_are_compared_as_by_the_command(by_hand, found, place, capsys):
    """A copy that went another way is held against the one it came from."""
    shutil.copytree(by_hand.path, place / "copy")
    by_hand.add_queries(
        [{"query_id": "q3", "query": "Postcards?", "relevant": [{"id": "d", "grade": 3}]}],
        quiet=True,
    )
    main(["diff", "copy", str(by_hand.path), "--json"])
    shown = json.loads(capsys.readouterr().out)

    assert json.loads(json.dumps(by_hand.diff("copy").to_dict())) == shown
    assert by_hand.diff(rf.open("copy")).to_dict() == by_hand.diff("copy").to_dict()
    assert [row["query_id"] for row in by_hand.diff("copy").rows()] == ["q3"]


def test_gauges_are_those_of_the_command(measured, place):
    """A dashboard does not mind who measured; only the times differ."""
    words = ["-m", "RR", "--prometheus", "one.prom", "--no-history", "-q"]
    main(["evaluate", "--dataset", str(measured.path), *words])

    measured.evaluate(measures="RR", history=False, quiet=True).write_prometheus("two.prom")

    one, two = ((place / name).read_text().splitlines() for name in ("one.prom", "two.prom"))
    assert [line for line in two if "RR" in line] == [line for line in one if "RR" in line] != []


def test_an_evaluation_is_told_as_it_is_kept(measured):
    """Its id is the one of the history."""
    kept = measured.evaluate("good", "RR", quiet=True)

    [item] = kept.found.records
    [row] = measured.history("good", "RR").rows()
    assert item.evaluation.evaluation_id == row["evaluation_id"]


def test_an_audit_that_is_only_counted_writes_nothing(measured, place):
    """The stored audit of a model must not give way to one of the offline baseline."""
    measured.audit_judge(2, quiet=True)
    path = measured.path / "judge_audit.json"
    before = path.read_bytes()

    found = measured.audit_judge(3, dry_run=True, quiet=True)

    assert (found.audit, path.read_bytes()) == (None, before)
    assert found.estimate.cost_usd == 0.0


def test_of_several_that_beat_the_base_none_is_named_the_winner(measured, capsys):
    """A TIE would say that nothing was told apart, and they are not held against each other."""
    [*found] = measured.rankings("good")
    held = {f"Where is fact {item.query_id}?": [h.chunk_id for h in item.ranking] for item in found}
    measured.retrieve(lambda query: held.get(query) or ["cx"], name="again", quiet=True)
    verdict = measured.compare("bad", "good", "again", measures="RR", base="bad")
    main(["compare", "--dataset", str(measured.path), "--base", "bad", "good", "again", "-m", "RR"])

    assert (verdict.outcome, verdict.winner) == ("SEVERAL", None)
    assert verdict.better == ("good", "again")
    assert verdict.to_dict()["outcomes"]["RR"] == {
        "outcome": "SEVERAL",
        "winner": None,
        "better": ["good", "again"],
    }
    assert "RR: good and again beat it; which of them is best is not" in capsys.readouterr().out


def test_what_is_told_apart_without_a_winner_is_no_tie(measured):
    """Nothing but what was told apart nowhere is a TIE."""
    [*found] = measured.rankings("good")
    held = {f"Where is fact {item.query_id}?": [h.chunk_id for h in item.ranking] for item in found}
    measured.retrieve(lambda query: held.get(query) or ["cx"], name="again", quiet=True)

    verdict = measured.compare("bad", "good", "again", measures="RR")
    assert (verdict.outcome, verdict.winner, verdict.better) == ("MIXED", None, ())
    alone = measured.compare("good", "bad", "again", measures="RR", base="good")
    assert (alone.outcome, alone.better) == ("MIXED", ())


def test_a_base_that_was_not_named_is_told(measured):
    """A run that nobody asked for must not join without a word."""
    verdict = measured.compare("good", base="bad", measures="RR", quiet=True)

    assert (verdict.winner, verdict.report.names) == ("good", ("bad", "good"))
    assert verdict.notes == ("base bad: is compared as well, beside those named",)


def test_records_of_a_part_are_those_of_its_queries(measured):
    """Half a set that is read whole would be counted whole."""
    part = measured.part(5, seed=7)
    chosen = {query.query_id for query in part.queries()}

    assert len(chosen) == 5
    assert {item.query_id for item in part.rankings("good")} <= chosen
    assert {item.query_id for item in part.judgments()} <= chosen
    assert {row["query_id"] for row in part.worst("bad", n=None, quiet=True).rows()} <= chosen


def test_of_a_part_no_other_pairs_are_judged(measured):
    """Calls for queries that nobody chose cost money."""
    part = measured.part(5, seed=7)

    whole = measured.judge(dry_run=True, quiet=True).to_dict()["pairs"]
    mine = part.judge(dry_run=True, quiet=True).to_dict()["pairs"]
    assert mine["in_pool"] < whole["in_pool"]
    assert {item.query_id for item in part.judge(quiet=True).summaries} <= {
        query.query_id for query in part.queries()
    }


@pytest.mark.parametrize(
    "call",
    [
        lambda part: part.report("r.html"),
        lambda part: part.history(),
        lambda part: part.export("trec", "out"),
        lambda part: part.export_review("sheet.csv"),
        lambda part: part.diff(1),
        lambda part: list(part.failures()),
    ],
    ids=["report", "history", "export", "export_review", "diff", "failures"],
)
def test_what_is_about_the_whole_set_refuses_a_part(measured, call, request):
    """A page about all queries is no answer to who asks about five."""
    name = request.node.callspec.id

    with pytest.raises(rf.UsageError, match=f"{name}: is about the whole set"):
        call(measured.part(5))


def test_the_mean_of_several_runs_names_one(measured):
    """The first of them would be taken for all."""
    found = measured.evaluate(["bad", "good"], "RR", quiet=True)

    with pytest.raises(rf.UsageError, match="run None: expected one of: bad, good"):
        found.mean("RR")
    assert found.mean("RR", "good") == 1.0


def test_refusals_that_are_stored_are_no_new_error(measured):
    """The same call again asks nothing, and says how to ask."""
    with rf.mock_endpoint(p_refusal=0.2) as mock:
        asked = {"model": "mock", "base_url": mock.url, "quiet": True}
        first = measured.judge(**asked)
        billed = mock.ledger()["billed"]

        second = measured.judge(**asked)
        assert mock.ledger()["billed"] == billed

    assert first.n_failed > 0
    assert (second.n_judged, second.n_failed) == (0, first.n_failed)
    assert "--retry-failed asks again" in " ".join(second.notes)


def test_a_message_names_the_keyword_and_no_flag(measured):
    """A flag is no help to who writes Python."""
    with pytest.raises(rf.UsageError, match=r"^run: expected one of: bad, good"):
        measured.gate(min={"RR": 0.6}, quiet=True)


def test_judged_queries_that_a_run_lacks_are_told_below_the_table(tmp_path, capsys):
    """A run of yesterday counts 0 on the queries of today, and nobody would see why."""
    made = make_measured_set(tmp_path / "set", 6)
    made.write_run("bad", [ranking(f"q{n:02}", "cx", f"cq{n:02}") for n in range(4)])
    words = ["evaluate", "--dataset", str(made.path), "--run", "bad", "-m", "RR"]
    assert main([*words, "--no-history", "-q"]) == 0
    counted = capsys.readouterr().out
    assert main([*words, "--no-history", "-q", "--only-retrieved"]) == 0

    assert "bad: lacks 2 of 6 judged queries, which count 0: q04, q05" in counted
    assert "bad: lacks 2 of 6 judged queries, which are left out: q04, q05" in (
        capsys.readouterr().out
    )


def test_a_ranking_that_is_perfect_to_its_end_is_told_from_one_at_ten_ranks(tmp_path, capsys):
    """RR is 1 in all of them, while `perfect` asks for every relevant chunk."""
    made = make_measured_set(tmp_path / "set", 3)

    assert main(["evaluate", "--dataset", str(made.path), "--run", "good", "-m", "RR", "-q"]) == 0
    assert "perfect: queries whose whole ranking could not be better" in capsys.readouterr().out
