"""Judging pairs that belong to no set."""

import itertools
import json

import numpy as np
import pytest
from endpoint import answering

import ragforge as rf
from ragforge.cli import main
from ragforge.mock.running import serving

PAIRS = [
    {"query_id": "q1", "query": "What is beeswax?", "chunk_id": "a", "text": "Beeswax is wax."},
    {"query_id": "q1", "query": "What is beeswax?", "chunk_id": "b", "text": "Oak is a tree."},
]


EXCHANGE = {
    "query_id": "q1",
    "query": "When does it open?",
    "answer": "The gate opens at nine.",
    "contexts": ["The gate opens at nine in the morning."],
}


class Frame:
    """A data frame as far as pandas' ways are needed."""

    columns = ("query_id", "query", "chunk_id", "text", "grade")

    def itertuples(self, index, name):
        return [(*row.values(), float("nan")) for row in PAIRS]


class LazyFrame:
    """A data frame as far as polars' ways are needed."""

    columns = ("query_id",)

    def iter_rows(self, named):
        return iter(PAIRS)


@pytest.fixture
def asked(serve):
    """Keywords of an endpoint that judges; its requests are counted."""
    endpoint = serve(answering)
    return {"model": "m", "base_url": endpoint.url, "quiet": True}, endpoint


@pytest.mark.parametrize("given", [PAIRS, iter(PAIRS), Frame(), LazyFrame()], ids=type)
def test_pairs_come_as_records_or_frames(given):
    """The offline judge finds the one content word in the first text only."""
    judged = rf.judge_pairs(given, quiet=True)

    assert [(row["chunk_id"], row["grade"]) for row in judged.rows()] == [("a", 3), ("b", 0)]


def test_chunks_and_ids_may_be_of_numpy():
    """A list in a Parquet file is an array in the frame of it."""
    chunks = np.array([{"id": "7", "text": PAIRS[0]["text"]}], dtype=object)
    given = [{"query_id": np.int64(1), "query": PAIRS[0]["query"], "chunks": chunks}]

    [row] = rf.judge_pairs(given, quiet=True).rows()

    assert (row["query_id"], row["chunk_id"], row["grade"]) == ("1", "7", 3)


def test_pairs_of_a_file_are_judged_as_by_the_command(place, capsys):
    """The same bytes, the same counts."""
    path = place / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in PAIRS))
    main(["judge", "--pairs", str(path), "--out", "one.jsonl", "-q", "--json"])
    shown = json.loads(capsys.readouterr().out)

    judged = rf.judge_pairs(path, out="two.jsonl", quiet=True)
    rf.judge_pairs(PAIRS, out="three.jsonl", quiet=True)

    assert json.loads(json.dumps(judged.to_dict())) == shown
    files = {(place / name).read_bytes() for name in ("one.jsonl", "two.jsonl", "three.jsonl")}
    assert len(files) == 1


def test_grades_of_people_are_held_against_the_judge(asked):
    """How far a judge can be trusted is the first question about it."""
    keywords, _ = asked
    graded = [{**row, "grade": grade} for row, grade in zip(PAIRS, (1, 0), strict=True)]

    judged = rf.judge_pairs(graded, **keywords)

    assert judged.agreement is not None
    assert [row["grade"] for row in judged.rows()] == [1, 0]


def test_a_reply_is_bought_once(asked):
    """The call store outlives the call."""
    keywords, endpoint = asked

    rf.judge_pairs(PAIRS, **keywords)
    rf.judge_pairs(PAIRS, **keywords)

    assert len(endpoint.seen) == 2


def test_an_estimate_asks_nothing(asked):
    """What it costs is asked before it is bought."""
    keywords, endpoint = asked

    judged = rf.judge_pairs(PAIRS, dry_run=True, **keywords)

    assert judged.estimate.calls == 2
    assert endpoint.seen == []


def test_batches_see_all_pairs(asked):
    """Orders of a batch can only be told from all of it."""
    keywords, _ = asked

    judged = rf.judge_pairs(iter(PAIRS), batch=2, **keywords)

    assert judged.n_judged == 2


def test_a_generator_is_taken_as_it_is_judged(asked):
    """With a limit of six calls no more than the calls in flight are read beyond them."""
    keywords, _ = asked
    taken = itertools.count()
    endless = ({"query": f"Is it {n}?", "text": f"it is {n}"} for n in taken)

    with pytest.raises(rf.BudgetError, match="6 is reached"):
        rf.judge_pairs(endless, out="judged.jsonl", max_calls=6, concurrency=2, **keywords)

    assert next(taken) < 30


def test_what_was_judged_before_a_stop_is_written(asked, place):
    """A budget that is used up has bought something."""
    keywords, _ = asked
    endless = ({"query": f"Is it {n}?", "text": f"it is {n}"} for n in itertools.count())

    with pytest.raises(rf.BudgetError):
        rf.judge_pairs(endless, out="judged.jsonl", max_calls=6, concurrency=2, **keywords)

    assert len((place / "judged.jsonl").read_text().splitlines()) == 6


def test_judgments_come_as_they_are_made():
    """An endless source gives judgments from the start; leaving it ends the work."""
    endless = ({"query": f"Is it {n}?", "text": f"it is {n}"} for n in itertools.count())

    with_grades = list(itertools.islice(rf.each_judgment(endless, quiet=True), 5))

    assert len({item.query_id for item in with_grades}) == 5


@pytest.mark.slow
def test_a_source_is_not_read_far_ahead():
    """Somebody slow must not fill the memory."""
    taken = itertools.count()
    endless = ({"query": f"Is it {n}?", "text": f"it is {n}"} for n in taken)
    judgments = rf.each_judgment(endless, quiet=True)

    next(judgments)
    judgments.close()

    assert next(taken) < 1200


def test_a_failed_judgment_comes_without_a_grade(serve):
    """A failure is never a value."""
    from endpoint import Reply, completion

    endpoint = serve(lambda path, body, n: Reply(completion("no idea")))

    [judgment] = rf.each_judgment(PAIRS[:1], model="m", base_url=endpoint.url, quiet=True)

    assert (judgment.grade, judgment.failure) == (None, "invalid")


def test_an_error_in_the_middle_comes_after_what_was_judged():
    """Lines of a file go wrong late, too."""
    judgments = rf.each_judgment([*PAIRS, {"query_id": "q2", "query": "Which?"}], quiet=True)

    with pytest.raises(rf.DataError, match="pairs: record 3: text: expected one of"):
        list(judgments)


def test_pairs_without_records_are_refused():
    """A mapping of lists is no list of mappings."""
    with pytest.raises(rf.UsageError, match="record 1: expected a mapping with named fields"):
        rf.judge_pairs([("q", "text")], quiet=True)


def test_the_file_of_pairs_is_not_written_over(place):
    """The input may be all there is."""
    path = place / "pairs.jsonl"
    path.write_text(json.dumps(PAIRS[0]))

    with pytest.raises(rf.UsageError, match="is the file of pairs itself"):
        rf.judge_pairs(path, out=path)


def test_answers_of_live_traffic_are_grounded():
    """The text says it in the answer's own words."""
    grounded = rf.ground_answers([EXCHANGE], quiet=True)

    assert grounded.to_dict()["answers"] == 1
    assert [row["query_id"] for row in grounded.rows()] == ["q1"]


def in_batches(**keywords):
    return rf.judge_pairs(PAIRS, batch=2, **keywords)


def grounded(**keywords):
    return rf.ground_answers([EXCHANGE], **keywords)


def audited(**keywords):
    return rf.audit_judge(PAIRS, 2, **keywords)


@pytest.mark.parametrize("call", [in_batches, grounded, audited])
def test_replies_without_a_file_are_bought_once(call):
    """They are in the working directory, and not in a folder that goes with the call."""
    with serving() as mock:
        keywords = {"model": "mock", "base_url": mock.url, "quiet": True}
        call(**keywords)
        bought = mock.ledger()["billed"]

        call(**keywords)

        assert mock.ledger()["billed"] == bought > 0


def test_a_judge_is_audited_as_by_the_command(place, capsys):
    """The same bytes for a file, the same record without one."""
    path = place / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in PAIRS))
    main(["judge", "audit", "--pairs", str(path), "-n", "2", "--out", "one.json", "-q", "--json"])
    shown = json.loads(capsys.readouterr().out)

    written = rf.audit_judge(path, 2, out="two.json", quiet=True)
    held = rf.audit_judge(PAIRS, 2, quiet=True)

    assert written.to_dict() == held.to_dict() == shown
    assert (place / "two.json").read_bytes() == (place / "one.json").read_bytes()


@pytest.mark.parametrize(
    ("given", "message"),
    [({"n": 0}, "n 0: expected"), ({"attacks": "bribe"}, "no attack 'bribe'")],
)
def test_an_audit_that_cannot_be_is_refused(given, message):
    """Before anything is asked."""
    with pytest.raises(rf.UsageError, match=message):
        rf.audit_judge(PAIRS, **given)


def test_an_audit_does_not_write_over_the_pairs(place):
    """The input may be all there is."""
    path = place / "pairs.jsonl"
    path.write_text(json.dumps(PAIRS[0]))

    with pytest.raises(rf.UsageError, match="is the file of pairs itself"):
        rf.audit_judge(path, out=path)


def test_all_that_came_before_a_bad_record_is_yielded():
    """What was judged and paid for is not lost to a record behind it."""
    pairs = [{"query": f"what is n{i}", "text": f"n{i} is a number"} for i in range(20)]
    stream = rf.each_judgment([*pairs, {"query": "x"}], quiet=True)

    taken = []
    with pytest.raises(rf.DataError, match="text"):
        taken.extend(judgment.query_id for judgment in _noting(stream, taken))
    assert len(taken) == 20


def _noting(stream, taken):
    for judgment in stream:
        taken.append(judgment.query_id)
    return ()


def test_a_keyword_that_cannot_be_taken_is_told_by_the_call():
    """A loop that is never entered would hide it."""
    with pytest.raises(TypeError, match=r"each_judgment\(\) got an unexpected .* 'model'"):
        rf.each_judgment([], modle="x")
    with pytest.raises(TypeError, match="modle"):
        rf.aio.each_judgment([], modle="x")


def test_keywords_of_pools_are_refused_for_pairs():
    """A depth that does nothing would be taken for one that did."""
    with pytest.raises(rf.UsageError, match="depth: goes with a set"):
        rf.judge_pairs([{"query": "a", "text": "b"}], depth=5, quiet=True)


def test_an_error_in_a_record_names_its_row_and_no_file():
    """The file that records go through is gone when the message is read."""
    good = {"query_id": "q1", "query": "Why?", "answer": "So.", "contexts": ["So it is."]}

    with pytest.raises(rf.DataError, match=r"^given, row 2: answer: expected one of"):
        rf.ground_answers([good, {"query_id": "q2", "query": "Why?"}], quiet=True)
