"""A run that was made on other chunks than those of now is not measured."""

import json

import pytest
from versioned_sets import make_set, refreshed

from ragforge.errors import DataError, UsageError
from ragforge.files.manifest import RunOrigin, digest_file
from ragforge.files.set.integrity import accept_changes
from ragforge.files.set.opening import create_dataset, open_dataset
from ragforge.files.set.paths import VERSIONS, version_name
from ragforge.files.set.query_selection import RequestedQueries, choose
from ragforge.files.set.stale_runs import (
    RunStatus,
    chunks_of_runs,
    refuse_files_of_a_part,
    refuse_files_of_other_chunks,
    unasked_queries,
    usable_runs,
)
from ragforge.records import Answer, Chunk, Failure, Hit, Query, Ranking

N = 20


def ranking(*chunk_ids, query_id="q1"):
    hits = tuple(Hit(chunk_id=c, score=float(-rank)) for rank, c in enumerate(chunk_ids))
    return Ranking(query_id=query_id, ranking=hits)


def chunks(*ids):
    return [Chunk(chunk_id=chunk_id, doc_id="d", text=chunk_id) for chunk_id in ids]


THERE = [f"c{n:02}" for n in range(N)]
GONE = [f"x{n:02}" for n in range(N)]


@pytest.fixture
def dataset(tmp_path):
    """A set of twenty chunks and one query."""
    made = create_dataset(tmp_path / "set", {"seed": "0"})
    made.write_chunks(chunks(*THERE))
    made.write_queries([Query(query_id="q1", query="?")])
    return made


def origin_of(dataset, retriever="bm25"):
    return RunOrigin(chunks_sha256=digest_file(dataset.chunks_path), retriever=retriever)


def test_a_run_of_the_chunks_of_now_is_told_by_its_digest(dataset):
    """No id needs to be counted, so that a large set costs nothing."""
    dataset.write_run("mine", [ranking("c00", "elsewhere")], origin_of(dataset))

    assert chunks_of_runs(dataset, ["mine"]) == {
        "mine": RunStatus("mine", "digest", retriever="bm25")
    }


def test_the_chunks_are_not_parsed_where_the_manifest_tells(dataset):
    """Evaluating must not become much slower by the size of the corpus."""
    dataset.chunks_path.write_text("no chunk", "utf-8")
    accept_changes(dataset)
    dataset.write_run("mine", [ranking("c00")], origin_of(dataset))

    assert usable_runs(dataset).names == ("mine",)


def test_a_run_of_other_chunks_is_stale_though_all_its_ids_are_there(dataset):
    """It was never offered the chunks that came since."""
    dataset.write_run("mine", [ranking("c00", "c01")], origin_of(dataset))
    dataset.write_chunks(chunks(*THERE, "new"))

    assert chunks_of_runs(dataset, ["mine"])["mine"] == RunStatus(
        "mine", "digest", is_stale=True, n_hits=2, n_there=2, retriever="bm25"
    )


def test_a_run_made_on_chunks_edited_by_hand_is_no_stale_one(dataset):
    """The manifest lists the file of before, the run was made on the one that is there."""
    dataset.chunks_path.write_text(dataset.chunks_path.read_text("utf-8") + "\n", "utf-8")
    dataset.write_run("mine", [ranking("c00")], origin_of(dataset))

    assert not chunks_of_runs(dataset, ["mine"])["mine"].is_stale


def test_what_somebody_put_in_the_place_of_a_run_is_judged_by_its_ids(dataset):
    """What is recorded of the file of before says nothing of another one."""
    dataset.write_run("mine", [ranking("c00")], origin_of(dataset))
    path = dataset.files / "runs" / "mine.jsonl"
    path.write_text(ranking(*GONE).model_dump_json() + "\n", "utf-8")

    assert chunks_of_runs(dataset, ["mine"])["mine"] == RunStatus(
        "mine", "ids", is_stale=True, n_hits=N, n_there=0
    )


def test_bytes_of_runs_on_two_corpora_count_as_made_on_that_of_now(dataset):
    """What came with the chunks changed no ranking, and both files are the same."""
    dataset.write_run("before", [ranking("c00")], origin_of(dataset))
    dataset.write_chunks(chunks(*THERE, "new"))
    dataset.write_run("now", [ranking("c00")], origin_of(dataset))

    found = chunks_of_runs(dataset, ["before", "now"])

    assert [run.is_stale for run in found.values()] == [False, False]


def test_a_run_that_was_imported_is_not_one_that_a_refresh_brought_along(dataset):
    """It found the same as a run of before: a gate refused it as made on earlier chunks."""
    brought = origin_of(dataset).model_copy(update={"mapped_from": "0" * 64})
    dataset.write_run("before", [ranking("c00")], brought)
    dataset.write_run("now", [ranking("c00")])

    found = chunks_of_runs(dataset, ["before", "now"])

    assert [run.is_mapped for run in found.values()] == [True, False]


def test_chunks_that_the_manifest_does_not_list_are_measured(dataset):
    """Whoever lays them beside a hand-made set has nothing to accept."""
    dataset.write_run("theirs", [ranking("c00")])
    files = {name: of for name, of in dataset.manifest.files.items() if name != "chunks.jsonl"}
    dataset.write_manifest(dataset.manifest.model_copy(update={"files": files}))
    dataset.chunks_path.write_text(dataset.chunks_path.read_text("utf-8") + "\n", "utf-8")

    assert usable_runs(dataset).names == ("theirs",)


@pytest.mark.parametrize(("n_gone", "is_stale"), [(0, False), (2, False), (3, True), (20, True)])
def test_a_run_of_which_nothing_is_recorded_may_lack_a_tenth(dataset, n_gone, is_stale):
    """A live index may be some documents ahead; other chunks lack far more."""
    dataset.write_run("theirs", [ranking(*GONE[:n_gone], *THERE[n_gone:])])

    assert chunks_of_runs(dataset, ["theirs"])["theirs"].is_stale is is_stale


def test_chunks_that_are_missing_are_told(dataset):
    """They lower the run, and nobody would see why."""
    dataset.write_run("theirs", [ranking("x", *THERE[1:])])

    assert usable_runs(dataset).warnings == (
        "run theirs: 1 of its 20 retrieved chunks are not in the set, and are relevant only where "
        "labels name them",
    )


def test_a_set_without_chunks_has_nothing_to_check_against(dataset):
    """Hand-made sets hold ids only."""
    dataset.write_run("mine", [ranking(*GONE)], origin_of(dataset))
    dataset.chunks_path.write_text("", "utf-8")

    assert chunks_of_runs(dataset, ["mine"]) == {"mine": RunStatus("mine", "nothing")}


def test_ids_are_found_however_their_line_is_written(dataset):
    """Chunks may be somebody's own file, with other spaces, orders and escapes."""
    ids = ["a", 'b"', "\u00e9"]
    rows = [
        {"doc_id": "d", "text": "t", "chunk_id": ids[0]},
        {"chunk_id": ids[1], "doc_id": "d", "text": "t"},
        {"chunk_id": ids[2], "doc_id": "d", "text": "t"},
    ]
    dataset.chunks_path.write_text("\n\n".join(map(json.dumps, rows)), "utf-8")
    dataset.write_run("theirs", [ranking(*ids)])

    assert chunks_of_runs(dataset, ["theirs"])["theirs"].n_there == len(ids)


def test_a_stale_run_that_is_named_is_refused_with_the_way_out(dataset):
    """Somebody asked for it, and must not get an answer about another one."""
    dataset.write_run("mine", [ranking("c00", "x")], origin_of(dataset, "my.mod:search"))
    dataset.write_chunks(chunks("c00", "new"))

    with pytest.raises(DataError) as refused:
        usable_runs(dataset, ["mine"])

    assert str(refused.value) == (
        f"{dataset.path}: run 'mine' is stale: it was made on other chunks than those of now: 1 of "
        "its 2 retrieved chunks are in the set; make it again with "
        f"`ragforge retrieve --dataset {dataset.path} --retriever my.mod:search --name mine`"
    )


def test_what_a_received_manifest_calls_a_retriever_is_not_told_to_be_typed(dataset):
    """Characters that nobody sees would end up in a shell."""
    origin = RunOrigin(chunks_sha256="of other chunks", retriever="bm25\x1b[2K\n::error::x")
    dataset.write_run("mine", [ranking("c00")], origin)

    way_out = chunks_of_runs(dataset, ["mine"])["mine"].way_out(dataset)

    assert way_out.endswith("--retriever SPEC --name mine")


def test_stale_runs_that_nobody_named_are_left_out_by_name(dataset):
    """The others can be measured, and nobody must wonder where one went."""
    dataset.write_run("bm25", [ranking(*GONE)])
    dataset.write_run("mine", [ranking("c00")])

    found = usable_runs(dataset)

    assert found.names == ("mine",)
    assert found.warnings == (
        "run bm25 is stale and left out: 0 of its 20 retrieved chunks are in the set, fewer than "
        "90%, so that it was made on other chunks; "
        f"`ragforge retrieve --dataset {dataset.path} --retriever bm25` makes it again",
    )


def test_where_all_runs_are_stale_there_is_nothing_to_measure(dataset):
    """An empty table looks like a result."""
    dataset.write_run("bm25", [ranking(*GONE)])

    with pytest.raises(DataError, match="run 'bm25' is stale: 0 of its 20 retrieved chunks"):
        usable_runs(dataset).require_any()


def test_a_run_file_beside_the_judgments_of_a_set_is_checked_too(dataset, tmp_path):
    """Brought from outside, it loses by what it could not retrieve."""
    dataset.write_judgments([])
    path = tmp_path / "theirs.trec"
    path.write_text("".join(f"q1 Q0 {c} 1 1.0 x\n" for c in GONE), "utf-8")

    with pytest.raises(DataError, match=r"theirs.trec: is stale: 0 of its 20 retrieved chunks"):
        refuse_files_of_other_chunks(dataset.files / "judgments.jsonl", [path])


def test_an_older_manifest_is_read_and_one_without_runs_is_written_as_before(dataset):
    """Sets made before must be readable, and must not change by being opened."""
    dataset.write_run("theirs", [ranking("c00")])

    written = (dataset.files / "manifest.json").read_text("utf-8")
    assert {key for entry in json.loads(written)["files"].values() for key in entry} == {
        "sha256",
        "records",
    }
    assert open_dataset(dataset.path).manifest.files["runs/theirs.jsonl"].run is None


def test_a_renamed_run_keeps_what_it_was_made_on_and_its_failures(dataset):
    """By another name it is the same run."""
    failure = Failure(what="retrieve", key="mine/q2", kind="error", message="503")
    other = Failure(what="retrieve", key="mine2/q2", kind="error", message="503")
    dataset.write_run("mine", [ranking("c00")], origin_of(dataset))
    dataset.replace_failures("retrieve", [failure, other], lambda key: True)

    dataset.rename_run("mine", "before")

    assert dataset.run_names() == ["before"]
    assert dataset.manifest.files["runs/before.jsonl"].run == origin_of(dataset)
    assert [item.key for item in dataset.failures()] == ["before/q2", "mine2/q2"]
    assert [name for name in dataset.manifest.files if "runs" in name] == ["runs/before.jsonl"]
    assert not dataset.changed_by_hand("runs/before.jsonl")


def test_a_removed_run_takes_nothing_else_along(dataset):
    """Answers of that name are another thing, and other runs' failures theirs."""
    keys = ["mine/q2", "minerva/q2"]
    failures = [Failure(what="retrieve", key=k, kind="error", message="503") for k in keys]
    dataset.write_run("mine", [ranking("c00")], origin_of(dataset))
    dataset.write_answers("mine", [Answer(query_id="q1", answer="!")])
    dataset.replace_failures("retrieve", failures, lambda key: True)

    dataset.remove_run("mine")

    assert (dataset.run_names(), dataset.answer_names()) == ([], ["mine"])
    assert [item.key for item in dataset.failures()] == ["minerva/q2"]
    assert "runs/mine.jsonl" not in dataset.manifest.files


def test_a_name_in_the_failures_of_a_received_set_leads_to_no_other_file(dataset):
    """Else removing that run would remove the queries."""
    crafted = Failure(what="retrieve", key="../queries/q1", kind="error", message="")
    dataset.replace_failures("retrieve", [crafted], lambda key: True)

    with pytest.raises(UsageError, match=r"name '\.\./queries'"):
        dataset.remove_run("../queries")


def test_a_version_keeps_its_own_runs(tmp_path):
    """They were made on its chunks, which the next version no longer has."""
    made = make_set(tmp_path / "set")
    made.write_run("bm25", made.run("bm25"), origin_of(made))
    refreshed(made.path, "b")
    first = open_dataset(made.path / VERSIONS / version_name(1))

    assert usable_runs(first).names == ("bm25",)
    assert open_dataset(made.path).run_names() == []


def asked(dataset, **questions):
    dataset.write_queries([Query(query_id=key, query=text) for key, text in questions.items()])


def test_a_ranking_for_another_question_is_no_ranking_of_this_one(dataset):
    """An id that got a new question would be measured by what was retrieved for the old one."""
    answers = [ranking("c00").for_question("old?"), ranking("c01", query_id="q2").for_question("b")]
    dataset.write_run("mine", answers, origin_of(dataset))
    asked(dataset, q1="new?", q2="b")

    usable = usable_runs(dataset)

    assert [item.query_id for item in usable.rankings("mine")] == ["q2"]
    assert usable.warnings == (
        "run mine: 1 query asks something else since it was made, and counts as failed: q1; "
        f"`ragforge retrieve --dataset {dataset.path} --retriever bm25 --name mine` asks again",
    )


def test_queries_that_came_after_a_run_are_no_zeros_of_it(dataset):
    """A night that adds queries made the run of after the winner over that of before."""
    dataset.write_run("mine", [ranking("c00").for_question("?")], origin_of(dataset))
    asked(dataset, q1="?", q2="new?")

    usable = usable_runs(dataset)

    assert usable.unasked == {"mine": {"q2"}}
    assert usable.warnings == (
        "run mine: 1 query came since it was made, and counts as failed: q2; "
        f"`ragforge retrieve --dataset {dataset.path} --retriever bm25 --name mine` asks again",
    )
    with pytest.raises(
        DataError, match=r"was not asked 1 of the queries that .* has: q2; retrieve"
    ):
        refuse_files_of_a_part(dataset.path, [dataset.run_path("mine")])


def test_a_query_on_which_the_retriever_failed_was_asked(dataset):
    """A broken backend was told as a set that grew."""
    dataset.write_run("mine", [ranking("c00").for_question("?")], origin_of(dataset))
    asked(dataset, q1="?", q2="other?")
    failure = Failure(what="retrieve", key="mine/q2", kind="error", message="down")
    dataset.replace_failures("retrieve", [failure], lambda key: True)

    assert unasked_queries(dataset, ["mine"]) == {}
    refuse_files_of_a_part(dataset.path, [dataset.run_path("mine")])


def test_a_run_for_a_part_of_the_queries_lacks_none_of_the_others(dataset):
    """It was made without them, and is measured on its part."""
    asked(dataset, q1="?", q2="other?")
    part = dataset.choosing(choose(dataset.accepted_queries(), RequestedQueries(sample=1)))
    [query] = part.queries()
    answer = ranking("c00", query_id=query.query_id).for_question(query.asked)
    part.write_run("mine", [answer], origin_of(dataset))

    assert unasked_queries(dataset, ["mine"]) == {}


def test_the_same_question_again_keeps_its_ranking(dataset):
    """A set that is imported twice must not lose its runs."""
    dataset.write_run("mine", [ranking("c00").for_question("?")], origin_of(dataset))

    assert unasked_queries(dataset, ["mine"]) == {}


def test_a_run_that_does_not_say_what_it_was_asked_is_measured(dataset):
    """Runs of other tools, and of earlier versions, name queries by their ids alone."""
    dataset.write_run("mine", [ranking("c00")], origin_of(dataset))
    asked(dataset, q1="new?")

    assert unasked_queries(dataset, ["mine"]) == {}


def test_an_id_with_quotes_is_found_again(dataset):
    """Ids are any text; JSON writes some of them with escapes."""
    name = 'say "é\\'
    answer = ranking("c00", query_id=name).for_question("old?")
    dataset.write_run("mine", [answer], origin_of(dataset))
    asked(dataset, **{name: "new?"})

    assert unasked_queries(dataset, ["mine"])["mine"].reworded == {name}


def test_a_run_file_for_other_questions_is_refused_beside_a_set(dataset):
    """`--qrels` of a set and the file of its run are the same measurement."""
    dataset.write_run("mine", [ranking("c00").for_question("old?")], origin_of(dataset))

    with pytest.raises(DataError, match=r"was asked other questions than .* has now: q1; retrieve"):
        refuse_files_of_other_chunks(dataset.path, [dataset.run_path("mine")])


@pytest.mark.parametrize(("hits", "is_stale"), [("ccx", False), ("cxx", True), ("x", True)])
def test_one_missing_chunk_makes_no_short_log_stale(dataset, hits, is_stale):
    """One document may have gone since; a third of three hits is no other corpus."""
    ids = [f"{letter}0{at}" for at, letter in enumerate(hits)]
    dataset.write_run("log", [ranking(*ids)])

    assert chunks_of_runs(dataset, ["log"])["log"].is_stale == is_stale


def test_hits_of_a_run_are_counted_however_its_lines_are_written(dataset):
    """Somebody's own file may have blanks where ragforge writes none."""
    dataset.write_run("theirs", [ranking("c00", "x")])
    path = dataset.run_path("theirs")
    path.write_text(path.read_text("utf-8").replace('"chunk_id":"x"', '"chunk_id": "x"'), "utf-8")

    assert chunks_of_runs(dataset, ["theirs"])["theirs"].n_hits == 2
