import json

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset


def run(capsys, *words):
    code = main(["import", *map(str, words), "-q"])
    return code, *capsys.readouterr()


@pytest.fixture
def log(tmp_path):
    """A log with one labelled question and two others."""
    rows = [
        {"query": "What does it cost to send back furniture?", "doc_id": "care.txt", "label": 0},
        {"query": "What keeps oak from drying out?", "doc_id": "care.txt", "label": 3},
        {"query": "beeswax", "user": "u1"},
        {"query": "parcel locker size", "user": "u2"},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_table_made_by_hand_becomes_a_set(documents, tmp_path, capsys):
    """Experts work in spreadsheets."""
    table, out = tmp_path / "golden.csv", tmp_path / "set"
    table.write_text(
        "question,answer,doc_id,quote,difficulty,category\n"
        "What keeps oak?,Beeswax.,care.txt,Beeswax is a natural polish,2,Care\n",
        encoding="utf-8-sig",
    )

    code, found, told = run(capsys, table, "--documents", documents, "--out", out)

    [query] = open_dataset(out).queries()
    assert (code, found) == (0, f"{out}\n")
    assert "1 query, 1 judgment taken in" in told
    assert (query.difficulty, query.category) == ("medium", "Care")


def test_log_becomes_queries_and_a_record_of_how_people_ask(documents, log, tmp_path, capsys):
    """One file gives truth and style."""
    out = tmp_path / "set"

    code, found, _ = run(capsys, "--logs", log, "--documents", documents, "--out", out, "--json")

    counts = json.loads(found)
    assert (code, counts["labelled"], counts["judgments"], counts["real_queries"]) == (0, 2, 2, 2)
    assert len(open_dataset(out).queries()) == 2
    assert [real.query for real in open_dataset(out).real_queries()] == [
        "beeswax",
        "parcel locker size",
    ]


def test_unlabelled_questions_can_be_retrieved_for(documents, log, tmp_path, capsys):
    """They are pooled and judged before anybody knows an answer."""
    out = tmp_path / "set"

    words = ("--logs", log, "--documents", documents, "--out", out, "--as-queries")
    code, _, told = run(capsys, *words)
    assert main(["retrieve", "--dataset", str(out), "--retriever", "bm25", "-q"]) == 0

    assert code == 0
    assert "2 other questions kept, which became queries too" in told
    assert len(open_dataset(out).run("bm25")) == 4
    assert main(["validate", "--dataset", str(out)]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a file of queries, --logs LOG, --qrels FILE or --run FILE"),
        (["golden.csv", "--logs", "log.jsonl"], "name either a hand-made set, or logs"),
        (["golden.csv", "--as-queries"], "--as-queries and --clicks go with --logs"),
        (
            ["golden.csv", "--clicks", "relevant"],
            "--as-queries and --clicks go with --logs",
        ),
    ],
)
def test_words_that_do_not_go_together_are_refused(tmp_path, capsys, words, message):
    """A flag without effect misleads."""
    code, _, told = run(capsys, *words, "--dataset", tmp_path)

    assert (code, message in told) == (2, True)


def test_a_share_of_a_week_is_drawn_and_told(documents, log, tmp_path, capsys):
    """What a sample stands for has to be seen when it is taken."""
    out = tmp_path / "set"
    words = ("--logs", log, "--sample", 1, "--batch", "2026-W47")

    code, _, told = run(capsys, *words, "--documents", documents, "--out", out)
    again = run(capsys, *words, "--dataset", out, "--json")

    # Of four rows two have labels: the draw is from half of what was asked.
    assert code == 0
    assert "2 different questions without labels, 0 of them in the set already" in told
    assert "1 question drawn as queries of batch 2026-W47 (--draw frequency --seed 0)" in told
    assert "are 50.0% of all that was asked" in told
    assert json.loads(again[1])["sample"] == {
        "batch": "2026-W47",
        "draw": "frequency",
        "seed": 0,
        "asked": 4,
        "distinct": 2,
        "there": 1,
        "drawn": 0,
        "drawn_before": 1,
        "other_batches": [],
        "share": 0.25,
        "strata": [{"asked": "once", "n_distinct": 2, "n_there": 1, "n_drawn": 0, "share": 0.5}],
    }
    assert len(open_dataset(out).queries()) == 3
    assert main(["validate", "--dataset", str(out)]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--logs", "l.jsonl", "--draw", "even"], "--draw goes with --sample N"),
        (["--logs", "l.jsonl", "--seed", "0"], "--seed goes with --sample N"),
        (["golden.csv", "--sample", "5"], "--sample goes with --logs"),
        (["--logs", "l.jsonl", "--sample", "0"], "--sample 0: expected at least 1"),
        (["--logs", "l.jsonl", "--sample", "2", "--as-queries"], "--as-queries takes all"),
        (["--logs", "l.jsonl", "--sample", "2", "--clicks", "relevant"], "--sample draws from"),
        (["--logs", "l.jsonl", "--sample", "2", "--seed", "-1"], "--seed -1: expected at least 0"),
        (["--logs", "l.jsonl", "--sample", "2", "--batch", ""], "--batch: expected a name"),
    ],
)
def test_flags_of_a_sample_that_cannot_be_are_refused(tmp_path, capsys, words, message):
    """A flag without effect misleads."""
    code, _, told = run(capsys, *words, "--dataset", tmp_path)

    assert (code, message in told) == (2, True)


@pytest.fixture
def elsewhere(tmp_path):
    """A set of which the corpus has no relevant document."""
    path = tmp_path / "elsewhere.json"
    path.write_text(json.dumps([{"query": "Where?", "relevant": ["gone.md"]}]))
    return path


@pytest.mark.parametrize("is_there", [True, False])
def test_a_failed_import_leaves_nothing_behind(documents, elsewhere, tmp_path, capsys, is_there):
    """Half a set would be taken for one, and the next import would find it there."""
    out = tmp_path / "new"
    if is_there:
        out.mkdir()

    code, _, _ = run(capsys, elsewhere, "--documents", documents, "--out", out)

    assert (code, out.exists()) == (3, is_there)
    assert not is_there or not [*out.iterdir()]


def test_a_failed_import_leaves_a_set_that_was_there(documents, elsewhere, log, tmp_path, capsys):
    """What was taken in before is not this import's to remove."""
    out = tmp_path / "set"
    run(capsys, "--logs", log, "--documents", documents, "--out", out)
    before = {path: path.read_bytes() for path in out.iterdir() if path.is_file()}

    code, _, _ = run(capsys, elsewhere, "--documents", documents, "--out", out)

    assert code == 3
    assert {path: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


def test_ids_may_all_be_missing_where_that_is_allowed(documents, elsewhere, tmp_path, capsys):
    """The documents may come later; until then all that is measured is 0, and it is told."""
    out = tmp_path / "set"

    words = (elsewhere, "--documents", documents, "--out", out, "--allow-missing")
    code, _, told = run(capsys, *words)

    assert (code, "gone.md; no run can find them" in told) == (0, True)


def test_a_table_without_names_of_columns_is_told(tmp_path, capsys):
    """Its first question would else be proposed as the name of a column."""
    table = tmp_path / "questions.csv"
    table.write_text("How do I set a timeout?,Pass timeout=5\nWhat is HTTP/2?,A protocol\n")

    assert main(["import", str(table), "--out", str(tmp_path / "set")]) == 3

    told = capsys.readouterr().err
    assert "the first line reads like data: 'How do I set a timeout?'" in told
    assert "--map" not in told


def test_grades_of_a_model_are_not_taken_for_those_of_people(tmp_path, capsys):
    """A judge held against them would be held against another judge."""
    qrels = tmp_path / "by-model.qrels"
    qrels.write_text("a 0 x 2\nb 0 y 0\n")
    out = tmp_path / "set"

    assert main(["import", "--qrels", str(qrels), "--out", str(out), "--made-by", "model:m-1"]) == 0

    judgments = open_dataset(out).judgments()
    assert {item.source for item in judgments} == {"judge"}
    by = {(item.provenance.kind, item.provenance.model) for item in judgments}
    assert by == {("llm", "m-1")}
    assert "those of people" not in capsys.readouterr().err


def test_new_grades_of_a_model_are_kept_beside_those_of_people(tmp_path):
    """A calibration would hold people's labels against grades that the model no longer gives."""
    first, second = tmp_path / "first.qrels", tmp_path / "second.qrels"
    first.write_text("a 0 x 1\na 0 y 3\nb 0 y 0\n")
    second.write_text("a 0 x 3\na 0 y 2\nb 0 y 0\n")
    words = ["--out", str(tmp_path / "set"), "--made-by", "model:m-1"]
    assert main(["import", "--qrels", str(first), *words]) == 0
    made = open_dataset(tmp_path / "set")
    of_model, *others = made.judgments()
    by_people = of_model.model_copy(update={"source": "human", "grade": 0, "provenance": None})
    made.write_judgments([by_people, *others])
    made.write_label_checks([of_model])

    assert main(["import", "--qrels", str(second), *words]) == 0

    made = open_dataset(tmp_path / "set")
    assert [item.grade for item in made.judgments()] == [0, 2, 0]
    assert [(item.chunk_id, item.grade) for item in made.label_checks()] == [("x", 3)]


def test_a_model_without_a_name_made_nothing(tmp_path, capsys):
    """`model:` alone says nothing that a record could keep."""
    qrels = tmp_path / "by-model.qrels"
    qrels.write_text("a 0 x 2\n")
    out = tmp_path / "set"

    assert main(["import", "--qrels", str(qrels), "--out", str(out), "--made-by", "model:"]) == 2

    assert "expected model:NAME" in capsys.readouterr().err
    assert not out.exists()


def test_import_says_on_which_scale_qrels_were_taken(tmp_path, capsys):
    """A 1 is relevant in one file and not in another."""
    out, qrels = tmp_path / "set", tmp_path / "q.trec"
    qrels.write_text("q1 0 d1 1\nq1 0 d2 0\nq1 0 d3 -1\n", encoding="utf-8")

    code, _, told = run(capsys, "--qrels", qrels, "--out", out)
    other, _, of_other = run(capsys, "--qrels", qrels, "--out", tmp_path / "o", "--grades", "1=1")

    assert (code, other) == (0, 0)
    assert "q.trec: 2 judgments of 3 taken in" in told
    assert "0 and 1 alone: 1 is relevant, kept as grade 2" in told
    assert "left out: 1 below 0, which is not judged" in told
    assert "1 is relevant" not in of_other
    assert {item.grade for item in open_dataset(tmp_path / "o").judgments()} == {0, 1}


def test_grades_go_with_qrels(tmp_path, capsys):
    """Elsewhere nothing would come of them."""
    code, _, told = run(capsys, "x.csv", "--out", tmp_path / "set", "--grades", "1=2")

    assert code == 2
    assert "--grades goes with --qrels FILE" in told


@pytest.fixture
def beir(tmp_path):
    """Make a BEIR folder with a corpus of two texts and some labels."""

    def made(*labels):
        folder = tmp_path / "beir"
        (folder / "qrels").mkdir(parents=True)
        query = {"_id": "q1", "text": "How long are cards valid?"}
        (folder / "queries.jsonl").write_text(json.dumps(query))
        corpus = [
            {"_id": "d1", "title": "Cards", "text": "Cards are valid for five years."},
            {"_id": "d2", "title": "", "text": "Parking is free."},
        ]
        (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
        rows = ["query-id\tcorpus-id\tscore", *(f"q1\t{name}\t2" for name in labels)]
        (folder / "qrels" / "test.tsv").write_text("\n".join(rows))
        return folder

    return made


def test_a_beir_folder_comes_with_its_corpus(beir, tmp_path, capsys):
    """It was left out without a word, so that no retriever had anything to search."""
    out = tmp_path / "set"

    code, _, _ = run(capsys, beir("d1"), "--out", out)

    assert code == 0
    assert [chunk.chunk_id for chunk in open_dataset(out).chunks()] == ["d1", "d2"]


@pytest.mark.parametrize(("grade", "labels"), [("0", "pooled"), ("1", None)])
def test_a_beir_folder_that_grades_what_is_not_relevant_is_of_a_pool(
    beir, tmp_path, capsys, grade, labels
):
    """What has no grade was not looked at: a gate on the folder refused the run, one on the set
    passed it."""
    folder, out = beir("d1"), tmp_path / "set"
    with (folder / "qrels" / "test.tsv").open("a") as rows:
        rows.write(f"\nq1\td2\t{grade}")

    code, _, told = run(capsys, folder, "--out", out)

    assert code == 0
    assert open_dataset(out).manifest.labels == labels
    assert ("labels are of a pool" in told) == (labels == "pooled")


def test_relevant_ids_that_the_corpus_of_a_beir_folder_lacks_are_refused(beir, tmp_path, capsys):
    """Recall counts what no run can find, as in Python."""
    out = tmp_path / "set"

    code, _, told = run(capsys, beir("d1", "d9"), "--out", out)

    assert (code, out.exists()) == (3, False)
    assert "1 relevant id is of no chunk and no document: q1: d9" in told


def test_two_runs_of_one_name_are_refused(tmp_path, capsys):
    """The second would take the place of the first, and be compared as if it were both."""
    (tmp_path / "q.trec").write_text("q1 0 a 2\nq1 0 b 0\n")
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.trec").write_text("q1 Q0 a 1 1.0 t\n")
    files = [word for name in ("old", "new") for word in ("--run", tmp_path / name / "run.trec")]
    words = ("--qrels", tmp_path / "q.trec", *files, "--out", tmp_path / "set")

    code, _, told = run(capsys, *words)
    assert code == 2
    assert "both runs would be called 'run'; give each a --name of its own" in told
    assert not (tmp_path / "set").exists()

    assert run(capsys, *words, "--name", "old", "--name", "new")[0] == 0
    assert open_dataset(tmp_path / "set").run_names() == ["new", "old"]
