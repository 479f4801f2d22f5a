import json

import pytest

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.files.manifest import RunOrigin
from ragforge.files.set.opening import create_dataset
from ragforge.files.set.stale_runs import usable_runs
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.evaluating import evaluate_files
from ragforge.pipeline.intake.importing import dataset_without_chunks, import_queries
from ragforge.pipeline.intake.runs_and_qrels import import_qrels, import_run
from ragforge.pipeline.intake.set_of_files import MeasuredFiles, set_of_files
from ragforge.records import Chunk, Query

QRELS = "q1 0 c1 3\nq1 0 c2 0\nq2 0 c3 2\nq2 0 c1 -1\n"
RUN = "q1 Q0 c2 1 9 x\nq1 Q0 c1 2 8 x\nq2 Q0 c3 1 5 x\nq2 Q0 c9 2 4 x\n"


@pytest.fixture
def notes():
    """What was told."""
    return []


@pytest.fixture
def told(notes):
    """An observer that keeps notes."""
    return lambda event: notes.append(event.message) if event.name == "note" else None


@pytest.fixture
def dataset(tmp_path):
    """Two queries on three chunks of two documents."""
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks(
        [
            Chunk(chunk_id="c1", doc_id="help/a.md", text="One."),
            Chunk(chunk_id="c2", doc_id="help/a.md", text="Two."),
            Chunk(chunk_id="c3", doc_id="help/b.md", text="Three."),
        ]
    )
    made.write_queries(
        [Query(query_id="q1", query="What is one?"), Query(query_id="q2", query="What is three?")]
    )
    return made


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_run_is_taken_under_the_name_of_its_file(dataset, tmp_path, told, notes):
    """Runs of other tools are held against those made here."""
    taken = import_run(written(tmp_path, "my bm25.trec", RUN), dataset, told)

    rankings = {
        item.query_id: [h.chunk_id for h in item.ranking] for item in dataset.run(taken.name)
    }
    assert taken.name == "my-bm25"
    assert rankings == {"q1": ["c2", "c1"], "q2": ["c3", "c9"]}


def test_unknown_chunk_keeps_its_rank_and_is_told(dataset, tmp_path, told, notes):
    """Without it, what stands below would look better than it is."""
    taken = import_run(written(tmp_path, "x.trec", RUN), dataset, told)

    assert (taken.n_unknown_hits, list(taken.unknown_ids)) == (1, ["c9"])
    assert any("1 of 4 hits are of no chunk" in note and "'c9'" in note for note in notes)


def test_query_goes_by_its_words_where_it_has_no_id(dataset, tmp_path, told, notes):
    """A spreadsheet of results holds questions, not our ids."""
    table = "question,chunk_id,score\nwhat is  ONE?,c1,2\nWhat is two?,c2,1\n"

    taken = import_run(written(tmp_path, "x.csv", table), dataset, told)

    assert [item.query_id for item in dataset.run("x")] == ["q1"]
    assert taken.unknown_queries == ("What is two?",)
    assert any("left out 1 query ('What is two?')" in note for note in notes)
    assert any("1 query of the set is not in it and count" in note for note in notes)


def test_document_of_one_chunk_each_stands_for_the_chunk(tmp_path, told, notes):
    """Document ids are all that many rankers give."""
    made = create_dataset(tmp_path / "set", {})
    made.write_chunks([Chunk(chunk_id=f"c{n}", doc_id=f"help/{n}.md", text="T.") for n in (1, 2)])
    made.write_queries([Query(query_id="q1", query="What?")])
    table = "query_id,doc_id,score\nq1,help/2.md,2\nq1,1.md,1\n"

    import_run(written(tmp_path, "x.csv", table), made, told)

    [ranking] = made.run("x")
    assert [hit.chunk_id for hit in ranking.ranking] == ["c2", "c1"]
    assert any("2 ids by document or end of path" in note for note in notes)


def test_run_of_another_corpus_is_refused(dataset, tmp_path, told):
    """Each of its hits would count as not relevant."""
    path = written(tmp_path, "x.trec", "q1 Q0 z1 1 9 x\n")

    with pytest.raises(DataError, match=r"no id is of a chunk or document .* holds 'z1'.*'c1'"):
        import_run(path, dataset, told)


FOREIGN = "q1 Q0 z1 1 9 x\nq1 Q0 c1 2 8 x\nq2 Q0 z2 1 5 x\nq2 Q0 c3 2 4 x\n"


def test_run_with_many_unknown_chunks_is_refused_when_it_comes(dataset, tmp_path, told):
    """Each command that measures refused it, after the import had said that all was well."""
    path = written(tmp_path, "x.trec", FOREIGN)

    with pytest.raises(DataError, match=r"2 of 4 hits .* more than 10%.*--allow-missing"):
        import_run(path, dataset, told)

    assert dataset.run_names() == []


def test_run_with_many_unknown_chunks_is_measured_where_they_are_allowed(dataset, tmp_path, told):
    """It is not stale: a set may hold a part of the chunks that a ranker searched."""
    import_qrels(written(tmp_path, "qrels.trec", "q1 0 c1 3\nq2 0 c3 2\n"), dataset, told)

    import_run(written(tmp_path, "x.trec", FOREIGN), dataset, told, allow_missing=True)
    usable = usable_runs(dataset, ["x"])

    [run] = evaluate_runs(dataset, ["x"], EvaluateSettings(measures=("RR",)))
    assert run.scores.mean("RR") == 0.5
    assert any("2 of its 4 retrieved chunks are not in the set" in text for text in usable.warnings)


def test_allowed_run_is_stale_once_the_chunks_are_others(dataset, tmp_path, told):
    """What was allowed then says nothing of the chunks of now."""
    import_run(written(tmp_path, "x.trec", FOREIGN), dataset, told, allow_missing=True)
    chunk = Chunk(chunk_id="c4", doc_id="help/c.md", text="Four.")
    dataset.write_chunks([*dataset.chunks(), chunk])

    with pytest.raises(DataError, match="'x' is stale"):
        usable_runs(dataset, ["x"])


def test_a_document_that_a_ranking_names_twice_is_told(tmp_path, told, notes):
    """What stands below moves up, and no count said why RR was another one than by the files."""
    made = create_dataset(tmp_path / "set", {})
    names = ("help/two.md", "help/three.md")
    made.write_chunks([Chunk(chunk_id=name, doc_id=name, text="T.") for name in names])
    made.write_queries([Query(query_id="q2", query="What?")])
    run = "q2 Q0 two.md 1 3 x\nq2 Q0 help/two.md 2 2 x\nq2 Q0 three.md 3 1 x\n"

    taken = import_run(written(tmp_path, "x.trec", run), made, told)

    assert (taken.n_hits, taken.n_repeated) == (2, 1)
    assert any("1 hit names what stands higher in its ranking" in note for note in notes)


def test_a_run_in_the_place_of_another_is_told(dataset, tmp_path, told, notes):
    """The first of two files under one name was gone without a word."""
    import_run(written(tmp_path, "x.trec", RUN), dataset, told)
    import_run(written(tmp_path, "x.trec", RUN), dataset, told)
    assert not any("takes the place" in note for note in notes)

    import_run(written(tmp_path, "x.trec", RUN.replace(" 9 x", " 1 x")), dataset, told)

    assert any("run x: takes the place of another run of that name" in note for note in notes)


def test_run_of_other_queries_is_refused(dataset, tmp_path, told):
    """Nothing of it could be measured."""
    path = written(tmp_path, "x.trec", "t1 Q0 c1 1 9 x\n")

    with pytest.raises(DataError, match=r"no query is in .* holds 't1'; the set has 'q1', 'q2'"):
        import_run(path, dataset, told)


def test_run_that_a_retriever_made_is_not_replaced(dataset, tmp_path, told):
    """A file called like a retriever is another run."""
    dataset.write_run("bm25", [], RunOrigin(chunks_sha256="0" * 64, retriever="bm25"))

    with pytest.raises(UsageError, match="made by the retriever bm25; give the file's another"):
        import_run(written(tmp_path, "bm25.trec", RUN), dataset, told)


def test_qrels_grade_the_queries_that_are_there(dataset, tmp_path, told, notes):
    """Labels and questions come in files of their own."""
    text = QRELS.replace("q2 0 c1 -1\n", "") + "q7 0 c1 1\n"

    taken = import_qrels(written(tmp_path, "qrels.trec", text), dataset, told)

    grades = {(item.query_id, item.chunk_id): item.grade for item in dataset.judgments()}
    assert grades == {("q1", "c1"): 3, ("q1", "c2"): 0, ("q2", "c3"): 2}
    assert taken.unknown_queries == ("q7",)
    assert any("does not say who graded" in note for note in notes)


def test_chunks_judged_not_relevant_tell_of_a_pool(dataset, tmp_path, told):
    """What is in no pool was looked at by nobody: a gate counts it as a hole."""
    import_qrels(written(tmp_path, "qrels.trec", QRELS), dataset, told)

    assert dataset.manifest.labels == "pooled"


def test_grade_beyond_the_scale_is_refused(dataset, tmp_path, told):
    """A set has grades from 0 to 3."""
    path = written(tmp_path, "qrels.trec", "q1 0 c1 4\n")

    with pytest.raises(DataError, match="has grades up to 4, and a set those from 0 to 3"):
        import_qrels(path, dataset, told)


def test_a_grade_below_0_is_no_judgment(dataset, tmp_path, told):
    """trec_eval takes the pair for not judged: as a grade of 0 it raised Judged@k."""
    taken = import_qrels(written(tmp_path, "qrels.trec", QRELS), dataset, told)

    assert ("q2", "c1") not in {(item.query_id, item.chunk_id) for item in dataset.judgments()}
    assert taken.left_out == {"below 0, which is not judged": 1}


def test_what_is_left_out_of_qrels_is_counted(dataset, tmp_path, told):
    """Of 9,260 judgments 5,694 were taken, and nothing said of the others."""
    import_qrels(written(tmp_path, "first.trec", "q1 0 c1 3\n"), dataset, told)
    text = f"{QRELS}q1 0 z1 0\nq1 0 z2 0\nq2 0 help/b.md 1\nq2 0 b.md 0\nq8 0 c1 1\n"

    taken = import_qrels(written(tmp_path, "qrels.trec", text), dataset, told)

    assert taken.left_out == {
        "of queries that the set does not have": 1,
        "below 0, which is not judged": 1,
        "of grade 0, of chunks that the set does not have": 2,
        "of chunks that another id of the file names too": 1,
        "graded by people before": 1,
    }
    assert taken.n_pairs == taken.result.n_judgments + sum(taken.left_out.values())


def test_zeros_of_unknown_chunks_are_kept_where_relevant_ones_are(dataset, tmp_path, told):
    """A run may hold them: then Judged@k and bpref are those of the files."""
    path = written(tmp_path, "qrels.trec", "q1 0 c1 1\nq1 0 z1 0\n")

    taken = import_qrels(path, dataset, told, allow_missing=True)

    assert not taken.left_out
    assert {item.chunk_id: item.grade for item in dataset.judgments()} == {"c1": 2, "z1": 0}


def test_relevant_chunk_that_is_not_there_is_refused(dataset, tmp_path, told):
    """Without it recall would rise in silence."""
    path = written(tmp_path, "qrels.trec", "q1 0 c1 1\nq1 0 c99 1\n")

    with pytest.raises(DataError, match="1 relevant id is of no chunk and no document: q1: c99"):
        import_qrels(path, dataset, told)


def test_who_graded_comes_along(dataset, tmp_path, told, notes):
    """Grades of a judge must not become those of people."""
    row = {
        "query_id": "q1",
        "chunk_id": "c1",
        "grade": 3,
        "source": "judge",
        "provenance": {"kind": "llm", "model": "m", "prompt": "p"},
    }
    path = written(tmp_path, "judgments.jsonl", json.dumps(row) + "\n")

    import_qrels(path, dataset, told)

    [judgment] = dataset.judgments()
    assert (judgment.source, judgment.provenance.kind, judgment.provenance.model) == (
        "judge",
        "llm",
        "m",
    )
    assert not any("who graded" in note for note in notes)


SWAPPED = "query_id,query,chunk_id,{}\nq1,What is three?,c3,2\nq2,What is one?,c1,2\n"


@pytest.mark.parametrize(("take", "column"), [(import_qrels, "grade"), (import_run, "score")])
def test_ids_beside_the_words_of_another_question_are_refused(
    dataset, tmp_path, told, take, column
):
    """A renumbered table put people's grades on other questions, and a perfect run had RR 0."""
    path = written(tmp_path, "ann.csv", SWAPPED.format(column))

    with pytest.raises(
        UsageError, match=r"2 ids are of another question.*'What is three\?' is 'q2'"
    ):
        take(path, dataset, told)
    assert dataset.judgments() == []
    assert dataset.run_names() == []


@pytest.mark.parametrize(("take", "column"), [(import_qrels, "grade"), (import_run, "score")])
def test_words_of_no_question_of_the_set_are_taken_by_the_id(dataset, tmp_path, told, take, column):
    """A question may be put in other words."""
    text = SWAPPED.replace("What is three", "Which is the first one").replace("is one", "is  THREE")
    path = written(tmp_path, "ann.csv", text.format(column))

    take(path, dataset, told)

    hits = {
        (item.query_id, hit.chunk_id)
        for name in dataset.run_names()
        for item in dataset.each_ranking(name)
        for hit in item.ranking
    }
    grades = {(one.query_id, one.chunk_id) for one in dataset.judgments()}
    assert hits | grades == {("q1", "c3"), ("q2", "c1")}


TEXTS = {
    "csv": "query_id,chunk_id,text,score\nq1,c1,Norway takes ten days by ship.,2\n",
    "jsonl": json.dumps(
        {
            "query_id": "q1",
            "ranking": [{"chunk_id": "c1", "text": "Norway takes ten days by ship."}],
        }
    ),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_run_with_a_text_of_another_chunk_is_refused(dataset, tmp_path, told, kind):
    """Where ids had shifted, a run was measured by chunks that it had not retrieved."""
    texts = {"c1": "Gift cards last for five years.", "c2": "Norway takes ten days by ship."}
    dataset.write_chunks(
        Chunk(chunk_id=name, doc_id=name, text=text) for name, text in texts.items()
    )
    path = written(tmp_path, f"run.{kind}", TEXTS[kind])

    with pytest.raises(DataError, match=r"'c1' is named beside .* stands in 'c2'"):
        import_run(path, dataset, told)


def test_a_run_with_texts_of_its_chunks_is_taken(dataset, tmp_path, told):
    """As is, cut short, or worded as in no chunk: the index may be older."""
    texts = {"c1": "Gift cards last for five years.", "c2": "Norway takes ten days by ship."}
    dataset.write_chunks(
        Chunk(chunk_id=name, doc_id=name, text=text) for name, text in texts.items()
    )
    rows = "q1,c1,Gift cards last for five,3\nq1,c2,We do not ship to Norway at all.,2\n"
    path = written(tmp_path, "run.csv", f"query_id,chunk_id,text,score\n{rows}")

    assert import_run(path, dataset, told).n_hits == 2


@pytest.mark.parametrize("binary", [False, True])
def test_files_are_measured_as_a_set_as_they_are_alone(tmp_path, told, binary):
    """A gate on files must not decide on other numbers than `evaluate` prints."""
    text = QRELS.replace(" 3", " 1").replace(" 2\n", " 1\n") if binary else QRELS
    qrels, run = written(tmp_path, "q.trec", text), written(tmp_path, "x.trec", RUN)
    settings = EvaluateSettings(measures=("nDCG@10", "DCG@10", "RR", "AP", "P@5", "Judged@10"))

    alone = evaluate_files(qrels, [run], settings).scores["x"]
    with set_of_files(MeasuredFiles(qrels, [run]), told) as made:
        [found] = evaluate_runs(made, ["x"], settings)

    means = {name: alone.mean(name) for name in settings.measures}
    assert {name: found.scores.mean(name) for name in settings.measures} == means


def test_two_runs_of_one_name_are_refused(tmp_path, told):
    """The second would take the place of the first."""
    (tmp_path / "other").mkdir()
    qrels, first = written(tmp_path, "q.trec", QRELS), written(tmp_path, "x.trec", RUN)
    second = written(tmp_path, "other/x.trec", RUN)
    files = MeasuredFiles(qrels, [first, second])

    with pytest.raises(UsageError, match="two runs are called 'x'"), set_of_files(files, told):
        pass


def test_errors_name_the_file_and_no_temporary_folder(tmp_path, told):
    """Nobody can mend a file in a folder that is gone."""
    qrels = written(tmp_path, "q.trec", QRELS)
    run = written(tmp_path, "x.trec", "t1 Q0 c1 1 9 x\n")
    files = MeasuredFiles(qrels, [run])

    with (
        pytest.raises(DataError, match=r"x\.trec: no query is in ") as caught,
        set_of_files(files, told),
    ):
        pass

    assert "ragforge-" not in str(caught.value)
    assert str(qrels) in str(caught.value)


def test_questions_alone_make_a_set(tmp_path, told, notes):
    """A service has documents that nobody but it can read."""
    made = dataset_without_chunks(tmp_path / "set")
    path = written(tmp_path, "q.csv", "question,answer,quote\nWhat is one?,It is one.,One.\n")

    import_queries(path, made, told)

    [query] = made.queries()
    assert (query.query, query.expected_answer, made.judgments()) == (
        "What is one?",
        "It is one.",
        [],
    )
    assert (
        "1 quote not looked up, as the set has no documents; import the file into a new set with "
        "--documents DIR --out NEW"
    ) in notes


def test_a_set_with_chunks_is_added_to_by_its_name(tmp_path):
    """A run of one file more is for the set that is there, not for a new one."""
    made = create_dataset(tmp_path / "set", {"chunks": "digest"})

    with pytest.raises(UsageError, match=f"add to it with --dataset {made.path}"):
        dataset_without_chunks(made.path)


def test_ids_of_files_are_exact(tmp_path, told):
    """A run of `Q1` passed a gate for `q1` by its score, where trec_eval and `evaluate` give 0."""
    qrels = written(tmp_path, "two.qrels", "q1 0 d1 1\nq2 0 d2 1\n")
    run = written(
        tmp_path, "two.trec", "q1 Q0 x1 1 1 t\nQ1 Q0 d1 1 1 t\nq2 Q0 x2 1 1 t\nQ2 Q0 d2 1 1 t\n"
    )
    with set_of_files(MeasuredFiles(qrels, [run]), told) as made:
        hits = {item.query_id: [hit.chunk_id for hit in item.ranking] for item in made.run("two")}
    assert hits == {"q1": ["x1"], "q2": ["x2"]}

    other = written(tmp_path, "other.trec", "Q1 Q0 d1 1 1 t\nQ2 Q0 d2 1 1 t\n")
    with (
        pytest.raises(DataError, match="no query is in"),
        set_of_files(MeasuredFiles(qrels, [other]), told),
    ):
        pass


def test_words_never_win_over_an_id(dataset, tmp_path, told):
    """The words of a query are no second ranking of it, where its id names one."""
    [query, *_] = dataset.queries()
    rows = f'{{"{query.query_id}": ["c1"], "{query.query.upper()}": ["c2"]}}'
    run = written(tmp_path, "run.json", rows)
    taken = import_run(run, dataset, told)
    [ranking] = dataset.run("run")
    assert [hit.chunk_id for hit in ranking.ranking] == ["c1"]
    assert taken.unknown_queries == (query.query.upper(),)
