"""Answers judged by an endpoint, fact by fact: what is asked, what is kept, and what fails."""

import json

import pytest
from endpoint import Reply, answering, completion, datum, fault

from ragforge.cli import main
from ragforge.files.shipped_folders import shipped
from ragforge.prompts import load_prompt

pytestmark = pytest.mark.slow


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path, *records):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in records), encoding="utf-8")


def prompt_of(body):
    return body["response_format"]["json_schema"]["name"]


def user_of(body):
    return body["messages"][-1]["content"]


def asked_for(endpoint):
    """How often each prompt was sent."""
    names = [prompt_of(body) for body in endpoint.bodies]
    return {name: names.count(name) for name in sorted(set(names))}


def contents(folder):
    """All files of a dataset but the call store."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".ragforge" not in path.parts
    }


def broken_for(prompt, word):
    """Reply with nonsense to one prompt about data that holds a word."""

    def respond(path, body, number):
        if prompt_of(body) == prompt and word in json.dumps(body["messages"]):
            return Reply(completion("I cannot tell."))
        return answering(path, body, number)

    return respond


@pytest.fixture
def answers(tmp_path, dataset):
    """A file that answers the first query wrongly, abstains on the second and omits the third."""
    first, second, _ = rows(dataset / "queries.jsonl")
    path = tmp_path / "rag.jsonl"
    write(
        path,
        {"query_id": first["query_id"], "answer": "Purple elephants.", "chunk_ids": []},
        {"query_id": second["query_id"], "answer": "I don't know.", "chunk_ids": []},
    )
    return path


@pytest.fixture
def answer(dataset, answers):
    """Grade the answers by what an endpoint says."""

    def go(endpoint, *more, path=answers):
        words = ["answer", "--dataset", str(dataset), "--answers", str(path), "-q"]
        model = ["--model", "test-model", "--base-url", endpoint.url, "--max-attempts", "1"]
        return main([*words, *model, *more])

    return go


def test_facts_are_drawn_for_what_a_judge_must_read_and_kept(dataset, answer, serve):
    """A call for facts that no answer needs is wasted, and a drawn one is for all systems."""
    endpoint = serve()

    assert answer(endpoint) == 0

    assert asked_for(endpoint) == {"answer_facts": 1, "fact_statuses": 1}
    first, second, _ = rows(dataset / "queries.jsonl")
    [fact] = first["facts"]
    assert (fact["fact_id"], fact["text"]) == ("f1", first["expected_answer"])
    assert first["facts_by"]["prompt"] == "extract_facts"
    assert (second["facts"], second["facts_by"]) == ([], None)
    [graded, abstained] = rows(dataset / "answer_grades" / "rag.jsonl")
    assert (graded["verdict"], graded["score"]) == ("incorrect", 0.0)
    assert graded["facts"] == [{"fact_id": "f1", "status": "missing", "quote": ""}]
    assert abstained["verdict"] == "not_attempted"


def test_the_manifest_names_all_prompts_and_stays_valid(dataset, answer, serve, capsys):
    """Grades can be compared only where every prompt behind them is known."""
    assert answer(serve()) == 0

    prompts = json.loads((dataset / "manifest.json").read_text())["prompts"]
    assert set(prompts) == {"extract_facts", "grade_facts"}
    assert main(["validate", "--dataset", str(dataset)]) == 0
    assert "changed" not in capsys.readouterr().out


def test_another_system_uses_the_same_facts(tmp_path, dataset, answers, answer, serve):
    """Two systems that are held to different facts cannot be compared."""
    endpoint, second = serve(), tmp_path / "other.jsonl"
    assert answer(endpoint) == 0
    [row, _] = rows(answers)
    write(second, {**row, "answer": "Green elephants."})

    assert answer(endpoint, path=second) == 0

    assert asked_for(endpoint) == {"answer_facts": 1, "fact_statuses": 2}


@pytest.mark.parametrize("broken", ["", "answer_facts", "fact_statuses"])
def test_a_finished_run_asks_nothing_and_changes_nothing(dataset, answers, answer, serve, broken):
    """Running the nightly job twice must not cost twice, not even where something failed."""
    [first, *_] = rows(answers)
    *_, third = rows(dataset / "queries.jsonl")
    write(answers, *rows(answers), {**first, "query_id": third["query_id"]})
    endpoint = serve(broken_for(broken, third["query"]))
    assert answer(endpoint) == 0
    before, asked = contents(dataset), len(endpoint.seen)

    assert answer(endpoint) == 0

    assert contents(dataset) == before
    assert len(endpoint.seen) == asked


def test_facts_that_a_person_edited_are_graded_by(dataset, answer, serve, capsys):
    """Who knows better than the model what an answer must say has the last word."""
    endpoint, path = serve(), dataset / "queries.jsonl"
    assert answer(endpoint) == 0
    [first, *rest] = rows(path)
    own = [{"fact_id": "fee", "text": "Purple elephants."}, {"fact_id": "b", "text": "More."}]
    write(path, {**first, "facts": own, "facts_by": None}, *rest)
    edited = path.read_bytes()

    assert answer(endpoint) == 0

    assert asked_for(endpoint) == {"answer_facts": 1, "fact_statuses": 2}
    assert path.read_bytes() == edited
    [graded, _] = rows(dataset / "answer_grades" / "rag.jsonl")
    assert [fact["fact_id"] for fact in graded["facts"]] == ["fee", "b"]
    assert (graded["verdict"], graded["score"]) == ("partial", 0.5)


def test_two_facts_of_one_id_are_refused(dataset, answer, serve, capsys):
    """One of the two would be graded by the status of the other."""
    endpoint, path = serve(), dataset / "queries.jsonl"
    [first, *rest] = rows(path)
    own = [{"fact_id": "a", "text": "One."}, {"fact_id": "a", "text": "Two."}]
    write(path, {**first, "facts": own}, *rest)

    assert answer(endpoint) == 3

    assert "expected distinct fact_ids, got a, a" in capsys.readouterr().err
    assert endpoint.seen == []


def test_drawing_facts_does_not_hide_an_edit_from_generate(dataset, documents, answer, serve):
    """Else generating again would write over what a person changed."""
    path = dataset / "queries.jsonl"
    [first, *rest] = rows(path)
    write(path, {**first, "difficulty": "hard"}, *rest)
    assert answer(serve()) == 0

    words = ["generate", "--documents", str(documents), "-n", "3", "--out", str(dataset), "-q"]

    assert main(words) == 2
    assert rows(path)[0]["difficulty"] == "hard"
    assert rows(path)[0]["facts"] != []


def test_generating_again_keeps_the_facts(dataset, documents, answer, serve):
    """A nightly job that drops them would grade by other ones every day."""
    assert answer(serve()) == 0
    before = (dataset / "queries.jsonl").read_bytes()

    words = ["generate", "--documents", str(documents), "-n", "3", "--out", str(dataset), "-q"]

    assert main(words) == 0
    assert (dataset / "queries.jsonl").read_bytes() == before


def test_an_answer_whose_facts_fail_has_no_verdict(dataset, answers, answer, serve):
    """No facts at all would otherwise be all facts said."""
    [first, *_] = rows(answers)
    *_, third = rows(dataset / "queries.jsonl")
    write(answers, first, {**first, "query_id": third["query_id"]})
    endpoint = serve(broken_for("answer_facts", third["query"]))

    assert answer(endpoint) == 0

    graded = {row["query_id"]: row for row in rows(dataset / "answer_grades" / "rag.jsonl")}
    failed = graded[third["query_id"]]
    assert (failed["verdict"], failed["score"], failed["failure"]) == (None, None, "refused")
    assert graded[first["query_id"]]["verdict"] == "incorrect"
    failures = {(row["what"], row["key"]) for row in rows(dataset / "failures.jsonl")}
    assert failures == {("facts", third["query_id"]), ("answer", f"rag/{third['query_id']}")}


@pytest.mark.parametrize("model", ["test-model", "another"])
def test_a_judge_that_fails_takes_no_grade_away(dataset, answer, serve, capsys, model):
    """Its own grade of the same answer was paid for, and of another nothing has come."""
    assert answer(serve()) == 0
    before = (dataset / "answer_grades" / "rag.jsonl").read_bytes()

    code = answer(serve(broken_for("fact_statuses", "elephants")), "--model", model)

    assert code == 0  # The other answer was decided by rule.
    assert (dataset / "answer_grades" / "rag.jsonl").read_bytes() == before
    assert [failure["what"] for failure in rows(dataset / "failures.jsonl")] == ["answer"]
    assert "failed on 1 answer with a grade from before: it stays" in capsys.readouterr().err


def test_a_failure_counts_where_the_answer_is_another(dataset, answers, answer, serve):
    """The grade of before is of other words."""
    assert answer(serve()) == 0
    first, second = rows(answers)
    write(answers, {**first, "answer": "Green elephants."}, second)

    assert answer(serve(broken_for("fact_statuses", "elephants"))) == 0

    [graded, _] = rows(dataset / "answer_grades" / "rag.jsonl")
    assert graded["verdict"] is None


def test_failures_of_another_judge_stand_beside_its_grades(dataset, answers, answer, serve):
    """Grades of two judges would be mixed."""
    _, _, third = rows(dataset / "queries.jsonl")
    more = {"query_id": third["query_id"], "answer": "Penguins.", "chunk_ids": []}
    write(answers, *rows(answers), more)
    assert answer(serve()) == 0

    broken = broken_for("fact_statuses", "elephants")
    assert answer(serve(broken), "--model", "another") == 0

    found = rows(dataset / "answer_grades" / "rag.jsonl")
    assert sorted(str(grade["verdict"]) for grade in found) == [
        "None",
        "incorrect",
        "not_attempted",
    ]
    assert {grade["provenance"]["model"] for grade in found if not grade["rule"]} == {"another"}


def test_failed_facts_are_asked_again_when_told(dataset, answers, answer, serve):
    """A bad reply is kept like a good one, until somebody wants another try."""
    sick = [True]

    def respond(path, body, number):
        return Reply(completion("nonsense")) if sick else answering(path, body, number)

    endpoint = serve(respond)
    assert answer(endpoint) == 0
    [failed, _] = rows(dataset / "answer_grades" / "rag.jsonl")
    sick.clear()

    assert answer(endpoint, "--retry-failed") == 0

    [graded, _] = rows(dataset / "answer_grades" / "rag.jsonl")
    assert (failed["verdict"], graded["verdict"]) == (None, "incorrect")
    assert rows(dataset / "failures.jsonl") == []


def test_facts_written_by_hand_end_their_failure(dataset, answers, answer, serve):
    """What was mended must not be counted as failed for ever."""
    [first, *rest] = rows(dataset / "queries.jsonl")
    endpoint = serve(broken_for("answer_facts", first["query"]))
    assert answer(endpoint) == 0
    own = [{"fact_id": "f1", "text": "Purple elephants."}]
    write(dataset / "queries.jsonl", {**first, "facts": own}, *rest)

    assert answer(endpoint) == 0

    assert rows(dataset / "failures.jsonl") == []
    assert rows(dataset / "answer_grades" / "rag.jsonl")[0]["verdict"] == "correct"


def test_a_single_call_needs_no_facts(dataset, answer, serve):
    """Half the price, for those who can do without the reasons."""
    endpoint = serve()

    assert answer(endpoint, "--single-call") == 0

    assert asked_for(endpoint) == {"answer_verdict": 1}
    assert all(row["facts"] == [] for row in rows(dataset / "queries.jsonl"))
    assert set(json.loads((dataset / "manifest.json").read_text())["prompts"]) == {"grade_answer"}


def test_an_unanswerable_question_is_judged_in_one_call(dataset, answers, answer, serve):
    """It has no facts that an answer could state."""
    endpoint, path = serve(), dataset / "queries.jsonl"
    [first, *rest] = rows(path)
    write(path, {**first, "answerable": False, "expected_answer": None}, *rest)

    assert answer(endpoint) == 0

    assert asked_for(endpoint) == {"answer_verdict": 1}
    [graded, _] = rows(dataset / "answer_grades" / "rag.jsonl")
    assert graded["verdict"] == "incorrect"
    prompts = json.loads((dataset / "manifest.json").read_text())["prompts"]
    assert "grade_answer" in prompts
    assert "extract_facts" not in prompts


def test_a_dry_run_counts_facts_and_grades_and_asks_nothing(dataset, answer, serve, capsys):
    """The cost is wanted before it is spent, also where the facts are not known yet."""
    endpoint, before = serve(), contents(dataset)

    assert answer(endpoint, "--dry-run", "--json") == 0

    assert json.loads(capsys.readouterr().out)["calls"] == 2
    assert endpoint.seen == []
    assert contents(dataset) == before


@pytest.mark.parametrize("broken", ["", "answer_facts", "fact_statuses"])
def test_a_dry_run_behind_a_finished_run_counts_nothing(dataset, answer, serve, capsys, broken):
    """What is bought is not bought again, nor what was no use."""
    endpoint = serve(broken_for(broken, "elephants" if broken == "fact_statuses" else ""))
    assert answer(endpoint) == 0
    capsys.readouterr()

    assert answer(endpoint, "--dry-run", "--json") == 0

    assert json.loads(capsys.readouterr().out)["calls"] == 0


def test_a_dry_run_says_that_the_facts_are_guessed(dataset, answers, serve, capsys):
    """A figure that rests on a guess must not look like a count."""
    words = ["answer", "--dataset", str(dataset), "--answers", str(answers), "--dry-run"]

    assert main([*words, "--model", "m", "--base-url", serve().url]) == 0

    assert "1 queries have no facts yet" in capsys.readouterr().err


def test_a_budget_keeps_the_facts_that_were_drawn(dataset, answers, answer, serve):
    """What was paid for is used by the next run."""
    endpoint = serve()

    assert answer(endpoint, "--max-calls", "1") == 5
    assert rows(dataset / "queries.jsonl")[0]["facts"] != []
    assert answer(endpoint) == 0

    assert asked_for(endpoint) == {"answer_facts": 1, "fact_statuses": 1}


def test_a_stop_while_facts_are_drawn_is_accounted_for(dataset, answer, serve):
    """What was spent and by which prompt must be known of every call."""
    assert answer(serve(), "--max-calls", "1") == 5

    manifest = json.loads((dataset / "manifest.json").read_text())
    assert "extract_facts" in manifest["prompts"]
    assert manifest["spent"]["calls"] == 1


def test_importing_again_keeps_the_facts(tmp_path, dataset, answers, answer, serve):
    """A set that is imported every night would be graded by other facts every day."""
    golden, [first, *_] = tmp_path / "golden.jsonl", rows(answers)
    write(golden, {"query_id": "h1", "query": "What is charged?", "expected_answer": "A fee."})
    words = ["import", str(golden), "--dataset", str(dataset), "-q"]
    assert main(words) == 0
    write(answers, {**first, "query_id": "h1"})
    assert answer(serve()) == 0
    before = (dataset / "queries.jsonl").read_bytes()

    assert main(words) == 0

    assert (dataset / "queries.jsonl").read_bytes() == before


def test_grades_of_older_answers_do_not_outlive_them(dataset, answers, answer, serve):
    """A run that stops early must not leave new answers beside the scores of old ones."""
    assert answer(serve()) == 0
    [first, second] = rows(answers)
    *_, third = rows(dataset / "queries.jsonl")
    write(answers, {**first, "query_id": third["query_id"]}, second)

    assert answer(serve(lambda path, body, n: fault(401, "no such key"))) == 4

    assert rows(dataset / "answer_grades" / "rag.jsonl") == []


@pytest.fixture
def own_prompt(tmp_path):
    """Put a changed prompt into a folder of the user's."""

    def make(name, old, new):
        text = (shipped("prompts") / f"{name}.toml").read_text(encoding="utf-8")
        folder = tmp_path / "prompts"
        folder.mkdir()
        (folder / f"{name}.toml").write_text(text.replace(old, new), encoding="utf-8")
        return ["--prompts-dir", str(folder)]

    return make


@pytest.mark.parametrize("name", ["extract_facts", "grade_facts"])
def test_a_prompt_of_the_users_is_used_and_recorded(dataset, answer, serve, own_prompt, name):
    """Both prompts of the way decide the score, so both can be adapted."""
    endpoint = serve()

    assert answer(endpoint, *own_prompt(name, "system = '''", "system = '''\nBe fair.")) == 0

    told = [body["messages"][0]["content"].startswith("Be fair.") for body in endpoint.bodies]
    assert sorted(told) == [False, True]
    prompts = json.loads((dataset / "manifest.json").read_text())["prompts"]
    assert prompts[name] != load_prompt(name).sha256


@pytest.mark.parametrize("name", ["extract_facts", "grade_facts"])
def test_a_prompt_that_cannot_be_taken_ends_the_run_before_any_call(
    answer, serve, own_prompt, name
):
    """Else the facts would be paid for before the mistake shows."""
    endpoint = serve()

    assert answer(endpoint, *own_prompt(name, "schema =", "shema =")) == 2

    assert endpoint.seen == []


def test_ids_and_names_are_not_shown_to_the_judge(dataset, answer, serve):
    """A judge that knows the system, or the query's id, may have seen both before."""
    endpoint = serve()
    assert answer(endpoint) == 0

    [first, *_] = rows(dataset / "queries.jsonl")
    sent = " ".join(map(user_of, endpoint.bodies))
    assert first["query_id"] not in sent
    assert "rag" not in sent.split()
    [graded] = [body for body in endpoint.bodies if prompt_of(body) == "fact_statuses"]
    assert [fact["id"] for fact in datum(user_of(graded), "facts")] == ["f1"]


def test_a_changed_expected_answer_has_its_facts_drawn_anew(dataset, answers, answer, serve):
    """The grade of an answer must not rest on what is no longer held for true."""
    endpoint, path = serve(), dataset / "queries.jsonl"
    [first, *rest] = rows(path)
    write(path, {**first, "expected_answer": "The fee is 90 euros."}, *rest)
    assert answer(endpoint) == 0
    write(path, {**rows(path)[0], "expected_answer": "Returns cost 75 euros."}, *rest)

    assert answer(endpoint) == 0

    assert [fact["text"] for fact in rows(path)[0]["facts"]] == ["Returns cost 75 euros."]
    assert asked_for(endpoint) == {"answer_facts": 2, "fact_statuses": 2}


def test_edited_facts_stay_while_the_expected_answer_does(dataset, answer, serve):
    """An edit is a decision, whoever drew the facts before it."""
    endpoint, path = serve(), dataset / "queries.jsonl"
    assert answer(endpoint) == 0
    [first, *rest] = rows(path)
    write(path, {**first, "facts": [{"fact_id": "own", "text": "Purple elephants."}]}, *rest)
    edited = path.read_bytes()

    assert answer(endpoint) == 0

    assert path.read_bytes() == edited


@pytest.mark.parametrize(
    "context",
    [
        {"chunk_ids": ["KNOWN", "typo"]},
        {"contexts": ["TEXT", "typo"]},
        {"retrieved": [{"text": "TEXT"}, {"id": "typo"}]},
    ],
)
def test_hallucination_is_not_checked_on_a_part_of_the_context(
    dataset, answers, answer, serve, capsys, context
):
    """What the unknown passage says would be held for made up."""
    [chunk, *_] = rows(dataset / "chunks.jsonl")
    [first, *_] = rows(answers)
    told = json.loads(
        json.dumps(context)
        .replace("KNOWN", chunk["chunk_id"])
        .replace('"TEXT"', json.dumps(chunk["text"]))
    )
    write(answers, {"query_id": first["query_id"], "answer": first["answer"], **told})

    words = ["answer", "--dataset", str(dataset), "--answers", str(answers)]
    assert main([*words, "--model", "m", "--base-url", serve().url]) == 0

    [graded] = rows(dataset / "answer_grades" / "rag.jsonl")
    assert (graded["verdict"], graded["has_hallucination"]) == ("incorrect", None)
    [kept] = rows(dataset / "answers" / "rag.jsonl")
    assert chunk["chunk_id"] in kept["chunk_ids"]
    assert (
        "1 retrieved passages are in no chunk; hallucination is not checked for the 1 answers"
        in capsys.readouterr().err
    )


def test_a_passage_in_no_chunk_is_checked_against_by_its_text(dataset, answers, answer, serve):
    """What a system had before it is known, whoever cut it and wherever it is from."""
    words = "Something else altogether, which stands in no chunk of the set."
    [first, *_] = rows(answers)
    told = {"query_id": first["query_id"], "answer": first["answer"], "contexts": [words]}
    write(answers, told)

    words_of_call = ["answer", "--dataset", str(dataset), "--answers", str(answers)]
    assert main([*words_of_call, "--model", "m", "--base-url", serve().url]) == 0

    [graded] = rows(dataset / "answer_grades" / "rag.jsonl")
    assert graded["has_hallucination"] is not None
    [text] = rows(dataset / "retrieved.jsonl")
    assert text["text"] == words


def test_contexts_given_as_texts_are_checked_against(dataset, answers, answer, serve):
    """A field that is lost silently leaves hallucination unchecked."""
    [chunk, *_] = rows(dataset / "chunks.jsonl")
    [first, *_] = rows(answers)
    given = {"query_id": first["query_id"], "answer": first["answer"]}
    write(answers, {**given, "contexts": [chunk["text"]]})

    assert answer(serve()) == 0

    [graded] = rows(dataset / "answer_grades" / "rag.jsonl")
    assert graded["has_hallucination"] is True


def test_what_to_do_about_bad_replies_is_told(dataset, answer, serve, capsys):
    """All answers failed, and another run would use the same replies again."""
    rest = rows(dataset / "queries.jsonl")
    endpoint = serve(broken_for("answer_facts", ""))
    [first, _] = rows(dataset.parent / "rag.jsonl")
    write(dataset.parent / "rag.jsonl", {**first, "query_id": rest[0]["query_id"]})

    assert answer(endpoint) == 4

    assert "--retry-failed asks again" in capsys.readouterr().err


def test_a_dry_run_counts_facts_that_are_out_of_date(dataset, answer, serve, capsys):
    """They cost as much as the first time."""
    endpoint, path = serve(), dataset / "queries.jsonl"
    assert answer(endpoint) == 0
    [first, *rest] = rows(path)
    write(path, {**first, "expected_answer": "Returns cost 75 euros."}, *rest)
    capsys.readouterr()

    assert answer(endpoint, "--dry-run", "--json") == 0

    assert json.loads(capsys.readouterr().out)["calls"] == 2


def test_a_system_is_not_asked_what_nothing_can_grade(tmp_path, capsys, monkeypatch):
    """Each answer may cost, and a table of questions alone says of none what is right."""
    (tmp_path / "q.csv").write_text("question\nHow long?\nWhere?\n")
    source = "asked = []\ndef ask(query):\n    asked.append(query)\n    return query\n"
    (tmp_path / "asked_system.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    made = tmp_path / "set"
    assert main(["import", str(tmp_path / "q.csv"), "--out", str(made)]) == 0
    words = ["answer", "--dataset", str(made), "--system", "asked_system:ask", "--name", "s"]

    assert main(words) == 3
    assert "no query has an expected answer to grade by; --answers-only" in capsys.readouterr().err
    from importlib import import_module

    assert import_module("asked_system").asked == []
    assert main([*words, "--answers-only"]) == 0
    assert sorted(import_module("asked_system").asked) == ["How long?", "Where?"]
