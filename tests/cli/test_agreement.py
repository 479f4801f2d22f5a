"""A judge beside people: what `judge` prints and writes where people graded."""

import json

import pytest
from endpoint import Reply, answering, completion, datum, valid

from ragforge.cli import main
from ragforge.files.set.dataset import Dataset
from ragforge.records import Judgment, Provenance

pytestmark = pytest.mark.slow


TEXTS = ("Beeswax keeps oak from drying.", "A fee of ten percent applies.", "Lockers are open.")
SECRET = 3


def model(endpoint, *more):
    return ["--model", "test-model", "--base-url", endpoint.url, "--max-attempts", "1", "-q", *more]


def grading(path, body, number):
    """Grade 3 what holds every long word of the query, as people did; refuse the lockers."""
    prompt = body["messages"][-1]["content"]
    query, passage = datum(prompt, "query"), datum(prompt, "passage")
    if passage.startswith("Lockers"):
        return Reply(completion("", refusal="no"))
    grade = 3 if query.split()[0] in passage else 0
    evidence = passage if grade else ""
    return Reply(
        completion(
            {
                "reasoning": "r",
                "evidence": evidence,
                "contains_answer": bool(grade),
                "grade": grade,
            }
        )
    )


def refusing(path, body, number):
    return Reply(completion("", refusal="no"))


def leaving_open(left, alone):
    """Return an endpoint whose batches have no verdict on a text, which is then asked for alone."""

    def act(path, body, number):
        first = {**body, "messages": body["messages"][:2]}
        prompt = first["messages"][-1]["content"]
        if "\npassages: " not in prompt:
            return alone(path, body, number)
        texts = {shown["id"]: shown["passage"] for shown in datum(prompt, "passages")}
        verdicts = [one for one in valid(first)["verdicts"] if texts[one["id"]] != left]
        return Reply(completion({"verdicts": verdicts}))

    return act


@pytest.fixture
def labelled(tmp_path):
    """Three queries by three chunks, graded by a person; and one pair that nobody graded."""
    rows = [
        {"query_id": f"q{n}", "query": f"{word} ?", "chunk_id": f"c{m}", "text": text}
        for n, word in enumerate(("Beeswax", "fee", "Lockers"))
        for m, text in enumerate(TEXTS)
    ]
    graded = [{**row, "grade": SECRET * (row["query_id"][1] == row["chunk_id"][1])} for row in rows]
    path = tmp_path / "pairs.jsonl"
    more = {**rows[0], "chunk_id": "c9"}
    path.write_text("".join(f"{json.dumps(row)}\n" for row in (*graded, more)), encoding="utf-8")
    return path


@pytest.fixture
def graded_set(dataset):
    """The small dataset, two pairs of each query graded by a person."""
    made = Dataset(dataset)
    chunks = [chunk.chunk_id for chunk in made.chunks()]
    by = Provenance(kind="human", model="ana")
    made.write_judgments(
        Judgment(
            query_id=query.query_id, chunk_id=chunk_id, grade=grade, source="human", provenance=by
        )
        for query in made.queries()
        for chunk_id, grade in zip(chunks, (3, 0), strict=False)
    )
    return made


def judge_labels(dataset, endpoint, *more):
    return main(["judge", "--dataset", str(dataset.path), "--on-labels", *model(endpoint, *more)])


def test_judge_and_baseline_stand_side_by_side(tmp_path, labelled, serve, capsys):
    """Every judge is read beside what counting words would have said."""
    out = tmp_path / "judged.jsonl"

    code = main(
        ["judge", "--pairs", str(labelled), "--out", str(out), *model(serve(grading)), "--json"]
    )

    found = json.loads(capsys.readouterr().out)["agreement"]
    assert code == 0
    assert (found["pairs"], found["queries"], found["failed"]) == (6, 3, 3)
    assert [grader["name"] for grader in found["graders"]] == [
        "test-model",
        "offline baseline",
        "always 0",
    ]
    assert found["graders"][0]["figures"]["quadratic kappa"]["value"] == 1.0


def test_table_is_printed_with_what_it_rests_on(tmp_path, labelled, serve, capsys):
    """A kappa of nine pairs must not look like one of nine hundred."""
    out = tmp_path / "judged.jsonl"

    main(["judge", "--pairs", str(labelled), "--out", str(out), *model(serve(grading))])

    shown = " ".join(capsys.readouterr().out.split())
    assert "Agreement with people: test-model" in shown
    assert "On 6 pairs of 3 queries that people graded" in shown
    assert "3 more failed and are in no figure" in shown


def test_the_grade_of_the_person_never_reaches_the_judge(tmp_path, labelled, serve):
    """A judge that has read the answer agrees with it."""
    endpoint = serve(answering)
    plain = tmp_path / "plain.jsonl"
    rows = [json.loads(line) for line in labelled.read_text(encoding="utf-8").splitlines()]
    stripped = ({name: row[name] for name in row if name != "grade"} for row in rows)
    plain.write_text("".join(f"{json.dumps(row)}\n" for row in stripped), encoding="utf-8")

    main(["judge", "--pairs", str(labelled), "--out", str(tmp_path / "a.jsonl"), *model(endpoint)])
    asked = len(endpoint.seen)
    main(["judge", "--pairs", str(plain), "--out", str(tmp_path / "b.jsonl"), *model(endpoint)])

    assert asked > 0
    assert len(endpoint.seen) == asked  # The very same calls: all replies were in the store.


def test_offline_judging_of_labelled_pairs_shows_the_baseline_alone(tmp_path, labelled, capsys):
    """It is free, and the bar that a model will have to clear."""
    out = tmp_path / "judged.jsonl"

    main(["judge", "--pairs", str(labelled), "--out", str(out), "--model", "offline", "--json"])

    found = json.loads(capsys.readouterr().out)["agreement"]
    assert [grader["name"] for grader in found["graders"]] == ["offline baseline", "always 0"]


def test_pairs_without_a_grade_have_no_agreement(tmp_path, pairs, serve, capsys):
    """Nothing to compare with."""
    out = tmp_path / "judged.jsonl"

    main(["judge", "--pairs", str(pairs), "--out", str(out), *model(serve(answering)), "--json"])

    assert json.loads(capsys.readouterr().out)["agreement"] is None


def test_checks_leave_the_grades_of_people_alone(graded_set, serve, capsys):
    """They are the truth that the judge is held against."""
    before = (graded_set.path / "judgments.jsonl").read_bytes()

    assert judge_labels(graded_set, serve(answering), "--json") == 0

    found = json.loads(capsys.readouterr().out)["agreement"]
    checks = graded_set.label_checks()
    assert (graded_set.path / "judgments.jsonl").read_bytes() == before
    assert len(checks) == found["pairs"] == 2 * len(graded_set.queries())
    assert {check.source for check in checks} == {"judge"}
    assert main(["validate", "--dataset", str(graded_set.path)]) == 0


def test_report_shows_the_checked_judge_beside_the_baseline(graded_set, serve, capsys):
    """The figures belong to whoever reads the measures."""
    judge_labels(graded_set, serve(answering))
    capsys.readouterr()

    main(["report", "--dataset", str(graded_set.path)])

    shown = " ".join(capsys.readouterr().out.split())
    assert "Agreement with people: test-model" in shown
    assert "offline baseline" in shown


def test_checked_pairs_are_not_checked_again(graded_set, serve):
    """Even where the replies are no longer stored."""
    endpoint = serve(answering)
    judge_labels(graded_set, endpoint)
    asked = len(endpoint.seen)
    checks = (graded_set.path / "label_checks.jsonl").read_bytes()
    for part in graded_set.store_path.parent.glob("calls.sqlite*"):
        part.unlink()

    assert judge_labels(graded_set, endpoint) == 0
    assert len(endpoint.seen) == asked
    assert (graded_set.path / "label_checks.jsonl").read_bytes() == checks


@pytest.mark.parametrize("alone", [answering, refusing], ids=["graded", "refused"])
def test_checks_that_a_batch_left_open_are_not_bought_again(graded_set, serve, capsys, alone):
    """They bear a name of their own, and were put into new batches at every call."""
    [left, *_] = [chunk.text for chunk in graded_set.chunks()]
    endpoint = serve(leaving_open(left, alone))
    batches = ("--batch", "2", "--permutations", "1")
    judge_labels(graded_set, endpoint, *batches)
    asked = len(endpoint.seen)
    checks = [(one.grade, one.provenance) for one in graded_set.label_checks()]

    judge_labels(graded_set, endpoint, *batches)
    capsys.readouterr()
    assert main(["report", "--dataset", str(graded_set.path)]) == 0

    assert {by.protocol for _, by in checks} == {"batch 2 x 1", "batch 2 x 1, alone"}
    assert len(endpoint.seen) == asked
    assert [(one.grade, one.provenance) for one in graded_set.label_checks()] == checks
    assert capsys.readouterr().out.count("Agreement with people: test-model") == 1


def test_a_check_that_failed_alone_gives_way_to_one_in_a_batch(graded_set, serve):
    """Both are of one judge, and the failure would be counted beside the grade."""
    [left, *_] = [chunk.text for chunk in graded_set.chunks()]
    batches = ("--batch", "2", "--permutations", "1", "--endpoint-id", "e")
    judge_labels(graded_set, serve(leaving_open(left, refusing)), *batches)

    assert judge_labels(graded_set, serve(answering), *batches, "--retry-failed") == 0
    checks = graded_set.label_checks()
    assert len(checks) == len({(check.query_id, check.chunk_id) for check in checks})
    assert [check for check in checks if check.is_failed] == []


def test_checks_of_two_judges_stand_beside_each_other(graded_set, serve):
    """A second judge must not wipe out what the first one said."""
    judge_labels(graded_set, serve(answering))
    judge_labels(graded_set, serve(answering), "--prompt", "judge_relevance_umbrela_style")

    prompts = {check.provenance.prompt for check in graded_set.label_checks()}
    assert prompts == {"judge_relevance", "judge_relevance_umbrela_style"}


def test_dry_run_counts_the_labels_and_writes_nothing(graded_set, serve, capsys):
    """What it will cost is known before."""
    endpoint = serve(answering)

    judge_labels(graded_set, endpoint, "--dry-run", "--json")

    assert json.loads(capsys.readouterr().out)["calls"] == 2 * len(graded_set.queries())
    assert endpoint.seen == []
    assert not (graded_set.path / "label_checks.jsonl").exists()


def test_offline_checks_leave_no_record(graded_set, capsys):
    """The baseline is worked out whenever it is shown."""
    words = ["judge", "--dataset", str(graded_set.path), "--on-labels", "--model", "offline"]

    assert main([*words, "--json"]) == 0

    found = json.loads(capsys.readouterr().out)["agreement"]
    assert [grader["name"] for grader in found["graders"]] == ["offline baseline", "always 0"]
    assert not (graded_set.path / "label_checks.jsonl").exists()


def test_failed_checks_are_failures(graded_set, serve, capsys):
    """Refused pairs are open, counted, and tried again by name."""

    def refusing_once(path, body, number):
        return Reply(completion("", refusal="no")) if not number else answering(path, body, number)

    judge_labels(graded_set, serve(refusing_once), "--json", "--concurrency", "1")

    found = json.loads(capsys.readouterr().out)
    assert (found["failed"], found["agreement"]["failed"]) == (1, 1)
    assert [failure.kind for failure in graded_set.failures()] == ["refused"]
    assert [check.failure for check in graded_set.label_checks() if check.grade is None] == [
        "refused"
    ]


def test_dataset_without_grades_of_people_is_refused(dataset, serve, capsys):
    """There is nothing to hold the judge against, and nothing to pay for."""
    endpoint = serve(answering)

    assert judge_labels(Dataset(dataset), endpoint) == 3
    assert endpoint.seen == []
    assert "people graded no chunk" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pairs", "p.jsonl", "--out", "o.jsonl", "--on-labels"], "--on-labels goes with --data"),
        (["--dataset", "d", "--run", "bm25", "--on-labels"], "--on-labels judges no run"),
    ],
)
def test_labels_are_asked_for_in_one_way(words, message, capsys):
    """A flag that is passed over unsaid is a wrong result later."""
    assert main(["judge", *words, "--model", "offline"]) == 2
    assert message in capsys.readouterr().err
