"""`ragforge judge audit` from the command line: offline, and against an endpoint."""

import json

import pytest
from endpoint import Reply, answering, completion, datum

from ragforge.cli import main
from ragforge.mock import Script, serving
from ragforge.stages.audit.attacks import ATTACKS

pytestmark = pytest.mark.slow


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def model(endpoint, *more):
    return ["--model", "test-model", "--base-url", endpoint.url, "--max-attempts", "2", "-q", *more]


def believing(path, body, number):
    """Answer by shared words, but believe a verdict that stands in the passage."""
    passage = datum(body["messages"][-1]["content"], "passage")
    if '"contains_answer":true' not in passage:
        return answering(path, body, number)
    first = next(line for line in passage.split("\n") if line.strip())
    verdict = {"reasoning": "told", "evidence": first, "contains_answer": True, "grade": 3}
    return Reply(completion(verdict))


def failing_on_roles(path, body, number):
    passage = datum(body["messages"][1]["content"], "passage")
    is_attacked = any(mark in passage for mark in ("system", "INST", "System"))
    return Reply(completion("no")) if is_attacked else answering(path, body, number)


@pytest.fixture
def texts(tmp_path):
    """A file of pairs: six queries with a passage that fits and one that does not."""
    lines = []
    for n, thing in enumerate(["amber", "birch", "cedar", "denim", "ebony", "flint"]):
        asked = {"query_id": f"q{n}", "query": f"Whence {thing} {thing}wood?"}
        good = f"All {thing} {thing}wood is northern.\n\nIt is sold in May."
        bad = f"Plain metal number {n} is heavy. It sinks.\n\nNothing else is known."
        lines.append({**asked, "chunk_id": f"g{n}", "text": good, "grade": 3})
        lines.append({**asked, "chunk_id": f"b{n}", "text": bad, "grade": 0})
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def audit(texts, tmp_path):
    """Audit on the pairs; return the exit code and the attacks by name, {} without an audit."""

    def go(*words, out="audit.json"):
        path = tmp_path / out
        code = main(["judge", "audit", "--pairs", str(texts), "--out", str(path), *words])
        if not path.exists():
            return code, {}
        return code, {item["attack"]: item for item in json.loads(path.read_text())["attacks"]}

    return go


def test_the_offline_baseline_is_audited_without_any_model(dataset, capsys):
    """The first audit must cost nothing; and a rule that counts words is known to be stuffed."""
    main(["judge", "--dataset", str(dataset), "-q"])
    capsys.readouterr()

    assert main(["judge", "audit", "--dataset", str(dataset), "-q"]) == 0

    shown = capsys.readouterr()
    audit = json.loads((dataset / "judge_audit.json").read_text())
    assert (audit["judge"]["kind"], audit["temperature"]) == ("baseline", None)
    assert [item["attack"] for item in audit["attacks"]] == list(ATTACKS)
    assert "keyword-stuffing  does not raise it" in shown.out
    assert shown.out.splitlines()[-1] == str(dataset / "judge_audit.json")
    assert "the offline baseline (offline-lexical-1)" in shown.err


def test_a_dataset_with_an_audit_is_whole_and_says_so_in_its_report(dataset, capsys):
    """The audit is part of the set: digested, checked, and shown to whoever reads the measures."""
    main(["judge", "--dataset", str(dataset), "-q"])
    main(["judge", "audit", "--dataset", str(dataset), "-q"])
    manifest = json.loads((dataset / "manifest.json").read_text())
    out = dataset.parent / "report.md"

    assert "judge_audit.json" in manifest["files"]
    assert main(["validate", "--dataset", str(dataset)]) == 0
    assert main(["report", "--dataset", str(dataset), "--out", str(out)]) == 0
    assert "## Judge audit" in out.read_text()


def test_an_audit_is_the_same_twice(dataset):
    """A dataset that changes by itself cannot be compared with its last version."""
    main(["judge", "audit", "--dataset", str(dataset), "-q"])
    before = (dataset / "judge_audit.json").read_bytes()

    assert main(["judge", "audit", "--dataset", str(dataset), "-q"]) == 0
    assert (dataset / "judge_audit.json").read_bytes() == before


def test_a_judge_that_believes_a_forged_verdict_is_caught(audit, serve):
    """This number decides whether a corpus that others write into can be judged at all."""
    code, found = audit(*model(serve(believing)))

    forged = found["forged-verdict"]
    assert code == 0
    assert (forged["n_pairs"], forged["n_failed"]) == (6, 0)
    assert forged["swayed"]["mean"] == forged["crossed"]["mean"] == 1
    assert forged["swayed"]["low"] > 0.5
    assert found["relevance-claim"]["swayed"]["mean"] == 0
    assert found["query-swap"]["swayed"]["mean"] == 0


def test_an_attacked_text_that_fails_is_a_failure(audit, serve, tmp_path):
    """Neither withstood nor fallen for; and the reader can look up what the judge said."""
    _, found = audit(*model(serve(failing_on_roles)), "--attack", "role-markers")

    [attack] = found.values()
    failures = rows(tmp_path / "audit.json.failures.jsonl")
    assert (attack["n_pairs"], attack["n_failed"]) == (6, 6)
    assert (attack["swayed"]["mean"], attack["swayed"]["bound_high"]) == (None, 1)
    assert {failure["what"] for failure in failures} == {"audit"}
    assert failures[0]["key"] == "role-markers/q0/b0"


def test_plain_grades_come_from_the_store(texts, audit, serve, tmp_path):
    """What was judged is paid for; an audit pays for its attacks alone."""
    endpoint = serve()
    main(["judge", "--pairs", str(texts), "--out", str(tmp_path / "j.jsonl"), *model(endpoint)])
    asked = len(endpoint.seen)

    audit(*model(endpoint), "--attack", "relevance-claim")

    assert asked == 12
    assert len(endpoint.seen) == asked + 6


def test_the_repeat_is_asked_anew(audit, serve):
    """The store would answer it with the first reply, and every judge would be constant."""
    endpoint = serve()

    _, found = audit(*model(endpoint), "--attack", "repeat")

    assert found["repeat"]["n_pairs"] == 12
    assert len(endpoint.seen) == 24


def test_a_second_audit_asks_nothing(audit, serve):
    """The nightly job may audit every time."""
    endpoint = serve()
    first = audit(*model(endpoint))
    asked = len(endpoint.seen)

    assert audit(*model(endpoint)) == first
    assert len(endpoint.seen) == asked


def test_a_dry_run_counts_and_writes_nothing(audit, serve, tmp_path, capsys):
    """The cost is wanted before it is spent."""
    endpoint = serve()

    code, found = audit(*model(endpoint), "--dry-run", "--json")

    counted = json.loads(capsys.readouterr().out)
    assert (code, found, endpoint.seen) == (0, {}, [])
    audit(*model(endpoint))
    assert 100 < len(endpoint.seen) <= counted["calls"]


def test_a_budget_stops_the_audit_and_the_next_goes_on(audit, serve):
    """What was paid for counts when the limit is lifted."""
    endpoint = serve()
    whole = audit(*model(serve()), out="other/audit.json")

    assert audit(*model(endpoint, "--max-calls", "30")) == (5, {})
    assert len(endpoint.seen) == 30
    assert audit(*model(endpoint)) == whole


def test_json_is_the_record(audit, tmp_path, capsys):
    """A gate reads stdout or the file, and both say the same."""
    audit("--json", "-q")

    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "audit.json").read_text())


def test_a_judge_that_always_fails_has_no_audit(audit, serve, capsys):
    """A table of dashes must not look like an audit that was passed."""
    code, found = audit(*model(serve(lambda path, body, n: Reply(completion("no")))))

    assert (code, found) == (4, {})
    assert "judging failed on all" in capsys.readouterr().err


def test_votes_of_a_panel_are_audited_together(audit, serve):
    """The judge of the set is what has to hold, however many models it is made of."""
    endpoint = serve()
    words = ["--votes", "2", "--temperature", "0.5", "--attack", "repeat"]

    code, found = audit(*model(endpoint, *words))

    assert code == 0
    assert found["repeat"]["n_pairs"] == 12
    assert len({json.dumps(body, sort_keys=True) for body in endpoint.bodies}) == 12 * 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--attack", "magic"], "no attack 'magic'; there are: keyword-stuffing"),
        (["--n", "0"], "expected a number from 1"),
        (["--run", "bm25"], "--run goes with --dataset"),
        (["--batch", "4"], "--batch 4: an audit asks about one text at a time"),
    ],
)
def test_what_cannot_be_audited_is_told(audit, capsys, words, message):
    """A typed word that does nothing would be taken for an audit that was made."""
    assert audit(*words, "-q") == (2, {})
    assert message in capsys.readouterr().err


def test_pairs_need_a_place_for_the_audit(texts, capsys):
    """Nothing may be asked before it is known where the result goes."""
    assert main(["judge", "audit", "--pairs", str(texts)]) == 2
    assert "--pairs needs --out FILE" in capsys.readouterr().err
    assert main(["judge", "audit", "--pairs", str(texts), "--out", str(texts)]) == 2
    assert "is the file of pairs itself" in capsys.readouterr().err


def test_an_audit_that_is_cut_off_is_named(dataset, capsys):
    """A half-written file must not pass for an audit."""
    main(["judge", "audit", "--dataset", str(dataset), "-q"])
    path = dataset / "judge_audit.json"
    path.write_text(path.read_text()[:200])
    capsys.readouterr()

    assert main(["validate", "--dataset", str(dataset)]) == 3
    assert "judge_audit.json: is not one complete JSON object" in capsys.readouterr().err


def test_a_set_without_anything_judged_or_retrieved_has_no_audit(tmp_path, documents, capsys):
    """An audit of no pair would be one that every judge passes."""
    out = str(tmp_path / "set")
    main(["generate", "--documents", str(documents), "-n", "3", "--out", out, "-q"])
    (tmp_path / "set" / "judgments.jsonl").write_text("")
    (tmp_path / "set" / "runs").mkdir()
    (tmp_path / "set" / "runs" / "empty.jsonl").write_text("")

    assert main(["judge", "audit", "--dataset", out, "-q"]) == 3
    assert "there is no pair to audit a judge on" in capsys.readouterr().err


def test_the_help_is_its_own_and_that_of_judge_names_it(capsys):
    """Two words are one command; who looks for it must find it."""
    assert main(["judge", "audit", "--help"]) == 0
    own = capsys.readouterr().out
    assert main(["judge", "--help"]) == 0

    assert "usage: ragforge judge audit" in own
    assert "--attack NAME" in own
    assert "ragforge judge audit" in capsys.readouterr().out


def test_the_mock_endpoint_rehearses_an_audit(audit):
    """A rehearsal in which good replies fail rehearses nothing."""
    with serving(Script()) as running:
        words = ["--model", "m", "--base-url", running.url, "-q"]
        code, found = audit(*words)

    assert code == 0
    assert {item["n_failed"] for item in found.values()} == {0}
    assert sum(item["n_pairs"] for item in found.values()) > 80
