"""`ragforge judge audit` from the command line: offline, and against an endpoint."""

import json

import pytest
from endpoint import Reply, answering, completion, datum

from ragforge.cli import main
from ragforge.mock import Script, serving
from ragforge.mock.weaknesses import fooled_reply
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


def knowing(*weaknesses):
    """Answer by the one fact that a query asks for, in two languages, and fall for some things."""

    def respond(path, body, number):
        content = body["messages"][1]["content"]
        query, passage = datum(content, "query"), datum(content, "passage")
        thing = query.split()[1]
        said = (f"All {thing} {thing}wood is northern.", f"Alles {thing}wood kommt aus dem Norden.")
        evidence = next((fact for fact in said if fact in passage), "")
        reply = {
            "reasoning": "",
            "evidence": evidence,
            "contains_answer": bool(evidence),
            "grade": 3 if evidence else 0,
        }
        return Reply(completion(fooled_reply(reply, query, passage, weaknesses)))

    return respond


@pytest.fixture
def supplied(tmp_path):
    """Give the flags of an audit that has all it needs: translations, writers, and a search."""
    things = ["amber", "birch", "cedar", "denim", "ebony", "flint"]
    translations = [
        {"chunk_id": f"g{n}", "translation": f"Alles {thing}wood kommt aus dem Norden."}
        for n, thing in enumerate(things)
    ]
    passages = [
        {
            "query_id": f"w{n}",
            "query": f"Whence {thing} {thing}wood?",
            "chunk_id": "facts",
            "writer": writer,
            "text": text.format(thing),
        }
        for n, thing in enumerate(things)
        for writer, text in (
            ("gpt-5-mini", "The {} trade \u2014 an old one \u2014 is in the hands of families."),
            ("llama-3", "The {} trade is an old one, and is in the hands of families."),
            ("people", "Families trade in {} and have done so for long."),
        )
    ]
    for name, found in (("german", translations), ("written", passages)):
        lines = "".join(f"{json.dumps(line)}\n" for line in found)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return [
        *("--translations", str(tmp_path / "german.jsonl")),
        *("--written-by", str(tmp_path / "written.jsonl"), "--model-family", "OpenAI"),
        *("--search-calls", "20"),
    ]


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
    assert [item["attack"] for item in audit["attacks"]] == [
        name for name, each in ATTACKS.items() if not each.needs
    ]
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


FOUND_AT = {
    "master-key": "master-key",
    "authority": "authority",
    "citations": "citations",
    "query-echo": "query-echo",
    "fluent-verbosity": "verbosity",
    "translation": "language",
    "self-preference": "style",
    "optimised": "words",
}


@pytest.mark.parametrize(("attack", "weakness"), FOUND_AT.items(), ids=FOUND_AT)
def test_each_attack_finds_the_judge_that_falls_for_it(audit, serve, supplied, attack, weakness):
    """Over the wire, and past the checks of the replies."""
    code, found = audit(*model(serve(knowing(weakness)), *supplied))

    assert code == 0
    assert found[attack]["swayed"]["mean"] == 1
    assert (found[attack]["n_queries"], found[attack]["n_failed"]) == (6, 0)


def test_a_beginning_without_words_has_nothing_to_quote(audit, serve):
    """The rule that evidence must be words stops a judge that falls for a colon."""
    _, found = audit(*model(serve(knowing("master-key"))), "--attack", "lone-master-key")

    lone = found["lone-master-key"]
    assert (lone["n_pairs"], lone["n_failed"]) == (12, 0)
    assert lone["swayed"]["mean"] == pytest.approx(10 / 12)


def test_a_judge_that_reads_is_found_to_be_sound(audit, serve, supplied):
    """What is said of it must not be said of every judge."""
    code, found = audit(*model(serve(knowing()), *supplied))

    assert code == 0
    assert list(found) == list(ATTACKS)
    swayed = {name: each["swayed"]["mean"] for name, each in found.items() if each["n_pairs"]}
    assert swayed == dict.fromkeys(ATTACKS.keys() - {"half-cut", "evidence-cut"}, 0)
    assert {each["n_failed"] for each in found.values()} == {0}


def test_a_search_goes_on_where_a_budget_stopped_it(audit, serve, supplied):
    """Its steps are in the call store: what was paid is not paid again."""
    words = [*supplied[-2:], "--attack", "optimised"]
    whole = audit(*model(serve(knowing("words")), *words), out="other/audit.json")
    endpoint = serve(knowing("words"))

    assert audit(*model(endpoint, *words, "--max-calls", "40")) == (5, {})
    assert audit(*model(endpoint, *words)) == whole
    distinct = {json.dumps(body, sort_keys=True) for body in endpoint.bodies}
    assert len(endpoint.bodies) == len(distinct)


def test_a_dry_run_counts_supplied_texts_and_searches(audit, serve, supplied, capsys):
    """They are what an audit costs most for."""
    audit(*model(serve()), "--dry-run", "--json")
    plain = json.loads(capsys.readouterr().out)["calls"]
    audit(*model(serve()), *supplied, "--dry-run", "--json")
    more = json.loads(capsys.readouterr().out)["calls"]

    # Six translations; six passages of the family beside six of others; 20 calls for each of the
    # 11 passages that stand in for another.
    assert more - plain == 6 + 6 + 6 + 11 * 20


def test_what_is_not_tried_is_told(audit, serve, capsys):
    """An attack that is missing from the table must not pass for one that was withstood."""
    audit(*model(serve()))

    assert (
        "not tried: translation (needs --translations FILE), self-preference (needs --written-by "
        "FILE), optimised (needs --search-calls N)"
    ) in capsys.readouterr().err


def test_passages_that_people_grade_apart_are_left_out(audit, serve, supplied, tmp_path, capsys):
    """They do not say the same, and a judge that tells them apart is right."""
    path = tmp_path / "written.jsonl"
    lines = [{**row, "grade": int(row["writer"] == "gpt-5-mini")} for row in rows(path)]
    lines[1]["grade"] = 1
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    words = [*supplied[2:6], "--attack", "self-preference"]

    _, found = audit(*model(serve(knowing("style")), *words))

    assert found["self-preference"]["n_pairs"] == 1
    assert "5 facts are left out, whose passages people grade apart" in capsys.readouterr().err


def test_the_family_is_told_by_the_name_of_the_model(audit, serve, supplied, tmp_path):
    """Writers are named in full, families hardly ever."""
    words = ["--written-by", str(tmp_path / "written.jsonl"), "--attack", "self-preference"]
    address = ["--model", "gpt-4o", "--base-url", serve(knowing("style")).url, "-q"]

    _, found = audit(*address, *words)

    assert found["self-preference"]["swayed"]["mean"] == 1
    assert found["self-preference"]["worst"][0]["chunk_id"] == "facts/gpt-5-mini"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--attack", "translation"], "an attack that --attack names needs --translations FILE"),
        (["--attack", "optimised"], "an attack that --attack names needs --search-calls N"),
        (["--attack", "padding", "--search-calls", "5"], "--search-calls N is for an attack that"),
        (["--search-calls", "1"], "--search-calls 1: expected 2 or more"),
        (["--model-family", "OpenAI"], "--model-family goes with --written-by FILE"),
        (["--written-by", "written.jsonl"], "the family of offline is not known by its name"),
    ],
)
def test_what_an_attack_lacks_is_told(
    audit, supplied, tmp_path, monkeypatch, capsys, words, message
):
    """Before anything is paid."""
    monkeypatch.chdir(tmp_path)

    assert audit(*words, "-q") == (2, {})
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--written-by", "written.jsonl", "--model-family", "Cohere"],
            "expected facts that Cohere and another wrote up, got passages of 'gpt-5-mini', "
            "'llama-3', 'people'",
        ),
        (["--translations", "other.jsonl"], "none is of a chunk that is judged or retrieved here"),
        (["--translations", "twice.jsonl"], "chunk 'a': has two translations"),
        (["--translations", "written.jsonl", "--attack", "translation"], "has two translations"),
    ],
)
def test_files_that_fit_nothing_are_bad_data(
    audit, supplied, tmp_path, monkeypatch, capsys, words, message
):
    """An audit without the pairs that it was asked for would look like one that found nothing."""
    monkeypatch.chdir(tmp_path)
    row = '{"chunk_id": "a", "translation": "Ein Text."}\n'
    (tmp_path / "other.jsonl").write_text(row)
    (tmp_path / "twice.jsonl").write_text(row * 2)

    assert audit(*words, "-q") == (3, {})
    assert message in capsys.readouterr().err


def test_the_mock_endpoint_rehearses_a_judge_that_falls_for_something(audit):
    """What a bad audit looks like can be seen before one is paid for."""
    with serving(Script(falls_for=("authority",))) as running:
        address = ["--model", "m", "--base-url", running.url, "-q"]
        _, found = audit(*address, "--attack", "authority", "--attack", "citations")

    assert found["authority"]["swayed"]["mean"] == 1
    assert found["citations"]["swayed"]["mean"] == 0


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
