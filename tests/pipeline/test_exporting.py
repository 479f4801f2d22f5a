import json
import re

import pytest
from measured_set import make_measured_set

from ragforge.cli import main
from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluation import evaluate
from ragforge.files.set.opening import open_dataset
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.evaluating import evaluate_files
from ragforge.pipeline.exporting import export
from ragforge.records import Fact, Hit, Judgment, Provenance, Ranking, Turn

MEASURES = ("nDCG@10", "RR", "P@5")


@pytest.fixture
def dataset(tmp_path):
    """Four answerable queries with grades 3 and 0, one unanswerable, two runs."""
    return make_measured_set(tmp_path / "set")


def graded(dataset):
    return {(one.query_id, one.chunk_id): one.grade for one in dataset.judgments()}


def imported(tmp_path, *arguments):
    place = tmp_path / "again"
    assert main(["import", *map(str, arguments), "--out", str(place), "--quiet"]) == 0
    return open_dataset(place)


def test_a_beir_folder_comes_back_with_the_same_grades(tmp_path, dataset):
    """A benchmark that goes out and in again must measure the same."""
    out = tmp_path / "beir"

    export(dataset, "beir", out)

    assert graded(imported(tmp_path, out, "--chunks", out)) == graded(dataset)


def test_a_json_file_comes_back_with_the_same_grades(tmp_path, dataset):
    """The same for the form of tutorials; its chunks come from the set."""
    out = tmp_path / "queries.json"

    export(dataset, "json", out)

    chunks = dataset.files / "chunks.jsonl"
    assert graded(imported(tmp_path, out, "--chunks", chunks)) == graded(dataset)


def test_the_json_form_lists_relevant_ids_beside_grades(tmp_path, dataset):
    """Both are read by people's own scripts; a chunk of grade 0 is in no list."""
    out = tmp_path / "queries.json"

    export(dataset, "json", out)

    assert json.loads(out.read_text())["queries"][1] == {
        "id": "q00",
        "query": "Where is fact q00?",
        "expected_answer": "here",
        "relevant_doc_ids": ["cq00"],
        "graded_relevance": {"cq00": 3, "cx": 0},
    }


def test_trec_files_measure_as_the_set_does(tmp_path, dataset):
    """trec_eval reads them; its numbers are those of the set."""
    out = tmp_path / "trec"

    export(dataset, "trec", out)

    scores = evaluate(out / "qrels.trec", out / "runs" / "bad.trec", MEASURES)
    assert {name: round(scores.mean(name), 4) for name in MEASURES} == {
        "nDCG@10": 0.6309,
        "RR": 0.5,
        "P@5": 0.2,
    }


@pytest.mark.parametrize(
    ("form", "lost"),
    [
        (
            "trec",
            (
                "4 expected answers",
                "1 unanswerable query's mark",
                "1 query of a run on which its retriever failed (it counts 0 elsewhere)",
                "6 chunks' texts",
                "why it was graded so",
            ),
        ),
        (
            "beir",
            (
                "4 expected answers",
                "1 unanswerable query's mark",
                "2 runs",
                "why it was graded so",
            ),
        ),
        ("json", ("2 runs", "6 chunks' texts", "why it was graded so")),
    ],
)
def test_what_a_form_cannot_hold_is_told(tmp_path, dataset, form, lost):
    """Whoever hands the files on must know what is not in them."""
    assert export(dataset, form, tmp_path / "out").lost == lost


PARTS = "queries' parts, dev or test"
CONVERSATION = (
    "1 follow-up's conversation (the question is written as it stands on its own)",
    "1 query's persona or language",
)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("trec", ("2 facts of expected answers", *CONVERSATION, f"2 {PARTS}")),
        ("json", ("2 facts of expected answers", *CONVERSATION, f"2 {PARTS}")),
        ("beir", ("2 facts of expected answers", *CONVERSATION)),
    ],
)
def test_facts_conversations_and_parts_that_are_lost_are_told(tmp_path, lenient, form, expected):
    """They were lost without a word: a follow-up came back as a question of its own."""
    one, two = lenient.queries()
    facts = (Fact(fact_id="f1", text="so it is"), Fact(fact_id="f2", text="and so"))
    turns = (Turn(role="user", text="Do you ship?"), Turn(role="assistant", text="Yes."))
    lenient.write_queries(
        [
            one.model_copy(update={"facts": facts, "split": "test", "language": "de"}),
            two.model_copy(update={"history": turns, "standalone": "To Oslo?", "split": "dev"}),
        ]
    )

    lost = export(lenient, form, tmp_path / "out").lost
    assert set(expected) == {of for of in lost if re.search("fact|convers|part|persona", of)}


@pytest.mark.parametrize(
    ("parts", "lost", "back"),
    [
        (("dev", "dev"), 0, ["dev", "dev"]),
        (("test", "test"), 2, [None, None]),
        (("dev", None), 1, ["dev", "test"]),
        ((None, None), 0, [None, None]),
    ],
)
def test_parts_come_back_from_beir_or_are_told(tmp_path, lenient, parts, lost, back):
    """A set of dev queries alone came back as one without parts."""
    lenient.write_queries(
        query.model_copy(update={"split": part})
        for query, part in zip(lenient.queries(), parts, strict=True)
    )

    told = [of for of in export(lenient, "beir", tmp_path / "out").lost if "test.tsv" in of]
    again = imported(tmp_path, tmp_path / "out", "--chunks", tmp_path / "chunks.json")
    assert [int(of.partition(" ")[0]) for of in told] == [lost] * bool(lost)
    assert [query.split for query in again.queries()] == back


def test_a_failed_judgment_is_told_and_no_grade(tmp_path, dataset):
    """A failure is never a value, in no form."""
    failed = Judgment(query_id="q00", chunk_id="cy", grade=None, failure="refused")
    dataset.write_judgments([*dataset.judgments(), failed])

    result = export(dataset, "trec", tmp_path / "out")

    assert "1 judgment without a grade" in result.lost
    assert " cy " not in (tmp_path / "out" / "qrels.trec").read_text()


def test_an_export_does_not_write_into_a_dataset(tmp_path, dataset):
    """queries.jsonl of a set and of BEIR have one name."""
    with pytest.raises(UsageError, match="--out"):
        export(dataset, "beir", dataset.path)


def test_an_id_that_trec_cannot_hold_is_refused(tmp_path, dataset):
    """An id with a blank would shift all columns."""
    blank = Judgment(query_id="q00", chunk_id="c 1", grade=2, source="human")
    dataset.write_judgments([*dataset.judgments(), blank])

    with pytest.raises(DataError, match=r"qrels\.trec: id 'c 1'"):
        export(dataset, "trec", tmp_path / "out")


def test_the_command_prints_the_files(tmp_path, dataset, capsys):
    """A script goes on with them."""
    out = tmp_path / "queries.json"

    assert main(["export", "--dataset", str(dataset.path), "--as", "json", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"


FORMS = ("trec", "beir", "json")
CHUNKS = [{"id": name, "document": "d", "text": f"text {name}"} for name in ("c1", "c2", "c3")]


@pytest.fixture
def lenient(tmp_path):
    """A set whose author calls grades from 1 on relevant, and a run that finds all of it.

    q1: c1 3, c2 1; q2: c3 1, c1 0. The run has c1, c2 for q1 and c3, c1 for q2.
    P@2 is (2/2 + 1/2) / 2 = 0.75; with relevant from 2 on it is (1/2 + 0/2) / 2 = 0.25.
    """
    rows = [
        row("q1", ["c1", "c2"], {"c1": 3, "c2": 1}),
        row("q2", ["c3"], {"c3": 1, "c1": 0}),
    ]
    (tmp_path / "queries.json").write_text(json.dumps({"queries": rows}))
    (tmp_path / "chunks.json").write_text(json.dumps(CHUNKS))
    (tmp_path / "run.json").write_text(json.dumps({"q1": ["c1", "c2"], "q2": ["c3", "c1"]}))
    place = str(tmp_path / "lenient")
    queries, chunks = str(tmp_path / "queries.json"), str(tmp_path / "chunks.json")
    assert main(["import", queries, "--chunks", chunks, "--out", place, "--quiet"]) == 0
    return open_dataset(tmp_path / "lenient")


def row(name, listed, grades):
    return {"id": name, "query": name, "relevant_doc_ids": listed, "graded_relevance": grades}


def given_by(judge, dataset, query_id, chunk_id, grade):
    by = Provenance(kind=judge, model=f"the {judge}")
    new = Judgment(
        query_id=query_id,
        chunk_id=chunk_id,
        grade=grade,
        contains_answer=grade >= 2,
        provenance=by,
    )
    dataset.write_judgments([*dataset.judgments(), new])


def precision(qrels, tmp_path):
    return evaluate(qrels, tmp_path / "run.json", ["P@2"]).mean("P@2")


@pytest.mark.parametrize("form", FORMS)
def test_an_export_measures_by_the_authors_threshold(tmp_path, lenient, form):
    """Qrels alone say grade 2 and above, and P@2 would fall from 0.75 to 0.25 in silence."""
    export(lenient, form, tmp_path / "out")

    assert precision(tmp_path / "out", tmp_path) == 0.75


@pytest.mark.parametrize("form", FORMS)
def test_an_export_comes_back_with_the_authors_threshold(tmp_path, lenient, form):
    """A set that moves to another machine keeps its numbers."""
    export(lenient, form, tmp_path / "out")

    again = imported(tmp_path, tmp_path / "out", "--chunks", tmp_path / "chunks.json")
    assert again.manifest.rel_threshold == 1
    assert graded(again) == graded(lenient)


@pytest.mark.parametrize("file", ["trec/qrels.trec", "beir/qrels/test.tsv"])
def test_a_file_of_an_export_measures_by_the_authors_threshold(tmp_path, lenient, file):
    """People name the file of judgments, not its folder."""
    export(lenient, file.partition("/")[0], tmp_path / file.partition("/")[0])

    assert precision(tmp_path / file, tmp_path) == 0.75


def test_a_dataset_as_qrels_measures_by_its_threshold(tmp_path, lenient):
    """`--qrels` of a set and `--dataset` of the same set give one number."""
    assert precision(lenient.path, tmp_path) == 0.75


def test_a_threshold_that_is_asked_for_goes_before_that_of_an_export(tmp_path, lenient):
    """Whoever asks for 2 gets 2: (1/2 + 0/2) / 2."""
    export(lenient, "trec", tmp_path / "out")

    scores = evaluate(tmp_path / "out", tmp_path / "run.json", ["P@2"], rel_threshold=2)
    assert scores.mean("P@2") == 0.25


@pytest.mark.parametrize("form", FORMS)
def test_the_grades_of_a_baseline_do_not_come_back_as_peoples(tmp_path, lenient, form):
    """People's grades pass gates and name winners; a baseline's do neither."""
    given_by("baseline", lenient, "q1", "c3", 2)

    export(lenient, form, tmp_path / "out")

    again = imported(tmp_path, tmp_path / "out", "--chunks", tmp_path / "chunks.json")
    assert [item for item in again.judgments() if item.source == "judge"] == [
        item for item in lenient.judgments() if item.source == "judge"
    ]
    assert again.manifest.labels == "pooled"


def test_quotes_that_people_picked_are_told_as_nobody_elses(tmp_path, dataset, capsys):
    """Of their own grades people were told that they are "not graded by people: human 6"."""
    dataset.write_judgments(
        one.model_copy(
            update={"source": "evidence", "provenance": Provenance(kind="human", model="Ann")}
        )
        for one in dataset.judgments()
    )
    export(dataset, "json", tmp_path / "set.json")
    capsys.readouterr()

    arguments = ["--chunks", str(dataset.chunks_path), "--out", str(tmp_path / "again")]
    assert main(["import", str(tmp_path / "set.json"), *arguments]) == 0

    assert "graded by people" not in capsys.readouterr().err


def test_a_reformatted_file_does_not_lose_who_graded(tmp_path, lenient):
    """Editors sort keys and break lines."""
    given_by("baseline", lenient, "q1", "c3", 2)
    export(lenient, "json", tmp_path / "out.json")
    document = json.loads((tmp_path / "out.json").read_text())
    (tmp_path / "out.json").write_text(json.dumps(document, indent=2, sort_keys=True))

    again = imported(tmp_path, tmp_path / "out.json", "--chunks", tmp_path / "chunks.json")
    sources = {(one.query_id, one.chunk_id): one.source for one in again.judgments()}
    assert sources["q1", "c3"] == "judge"


@pytest.mark.parametrize("labels", ["pooled", "partial"])
@pytest.mark.parametrize("form", FORMS)
def test_what_a_chunk_without_a_label_is_comes_back(tmp_path, lenient, form, labels):
    """A partial set that comes back complete calls what nobody looked at not relevant."""
    lenient.write_manifest(lenient.manifest.model_copy(update={"labels": labels}))

    export(lenient, form, tmp_path / "out")

    again = imported(tmp_path, tmp_path / "out", "--chunks", tmp_path / "chunks.json")
    assert again.manifest.labels == labels


def test_both_splits_of_a_beir_export_come_back(tmp_path, lenient):
    """One of them alone is another set with another mean."""
    queries = [
        query.model_copy(update={"split": split})
        for query, split in zip(lenient.queries(), ("dev", "test"), strict=True)
    ]
    lenient.write_queries(queries)

    export(lenient, "beir", tmp_path / "out")

    again = imported(tmp_path, tmp_path / "out", "--chunks", tmp_path / "chunks.json")
    assert {one.query_id: one.split for one in again.queries()} == {"q1": "dev", "q2": "test"}
    assert precision(tmp_path / "out", tmp_path) == 0.75


def test_a_split_of_an_earlier_export_is_not_read(tmp_path, lenient):
    """The folder may hold a file that the set no longer has."""
    (tmp_path / "out" / "qrels").mkdir(parents=True)
    (tmp_path / "out" / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq9\tc1\t2\n")

    export(lenient, "beir", tmp_path / "out")

    assert precision(tmp_path / "out", tmp_path) == 0.75


def test_a_query_without_labels_comes_back_from_beir(tmp_path, lenient):
    """In a complete set it says that nothing is relevant to it."""
    bare = lenient.queries()[0].model_copy(update={"query_id": "q3", "query": "q3"})
    lenient.write_queries([*lenient.queries(), bare])

    export(lenient, "beir", tmp_path / "out")

    again = imported(tmp_path, tmp_path / "out", "--chunks", tmp_path / "chunks.json")
    assert [one.query_id for one in again.queries()] == ["q1", "q2", "q3"]


def test_what_is_left_out_of_a_foreign_beir_folder_is_told(tmp_path, lenient, capsys):
    """The test split alone is what BEIR measures on; the rest must not vanish in silence."""
    export(lenient, "beir", tmp_path / "out")
    (tmp_path / "out" / "ragforge.json").unlink()
    qrels = tmp_path / "out" / "qrels"
    (qrels / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq2\tc3\t1\n")
    (qrels / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tc1\t2\n")

    imported(tmp_path, tmp_path / "out", "--chunks", tmp_path / "chunks.json")

    assert "qrels/train.tsv left out: only test.tsv is taken" in capsys.readouterr().err


def test_questions_are_written_to_trec_without_quotes(tmp_path, lenient):
    """Readers of topics cut at the first tab; quotes would become words of the question."""
    text = 'an invoice, "account" copy'
    queries = [one.model_copy(update={"query": text}) for one in lenient.queries()]
    lenient.write_queries(queries)

    export(lenient, "trec", tmp_path / "out")

    assert (tmp_path / "out" / "queries.tsv").read_text() == f"q1\t{text}\nq2\t{text}\n"


def test_a_judges_one_is_not_relevant_where_the_author_counts_from_one(tmp_path, lenient):
    """It says that no part of the answer is there; P@2 must not rise from 0.75 to 1.0."""
    given_by("llm", lenient, "q2", "c2", 1)
    lenient.write_run("r", [ranking("q1", "c1", "c2"), ranking("q2", "c3", "c2")])

    [run] = evaluate_runs(lenient, ["r"], EvaluateSettings(measures=("P@2",)))
    found = evaluate_files(
        lenient.path, [lenient.run_path("r")], EvaluateSettings(measures=("P@2",))
    )
    assert run.scores.mean("P@2") == 0.75
    assert found.scores["r"].mean("P@2") == 0.75


def test_a_judges_one_is_relevant_where_somebody_asks_for_that(lenient):
    """A threshold that is asked for holds for all grades: (2/2 + 2/2) / 2."""
    given_by("llm", lenient, "q2", "c2", 1)
    lenient.write_run("r", [ranking("q1", "c1", "c2"), ranking("q2", "c3", "c2")])

    settings = EvaluateSettings(measures=("P@2",), rel_threshold=1)
    [run] = evaluate_runs(lenient, ["r"], settings)
    assert run.scores.mean("P@2") == 1.0


def test_ones_of_a_judge_alone_are_not_relevant(lenient):
    """A judge whose grades stay below 2 found nothing; zeros and ones are people's scale."""
    by = Provenance(kind="llm", model="m")
    ones = [
        Judgment(query_id=query_id, chunk_id="c1", grade=1, provenance=by)
        for query_id in ("q1", "q2")
    ]
    lenient.write_manifest(lenient.manifest.model_copy(update={"rel_threshold": None}))
    lenient.write_judgments(ones)
    lenient.write_run("r", [ranking("q1", "c1"), ranking("q2", "c1")])

    [run] = evaluate_runs(lenient, ["r"], EvaluateSettings(measures=("P@1",)))
    assert run.scores.mean("P@1") == 0.0


def ranking(query_id, *chunk_ids):
    hits = tuple(Hit(chunk_id=name, score=9.0 - at) for at, name in enumerate(chunk_ids))
    return Ranking(query_id=query_id, ranking=hits)


@pytest.mark.parametrize("form", FORMS)
def test_a_set_of_lists_alone_comes_back_as_one(tmp_path, form):
    """Its ones are relevant and no grades; as grades, a judge beside them would outweigh them."""
    (tmp_path / "queries.json").write_text(json.dumps([{"query": "Where?", "relevant": ["c1"]}]))
    (tmp_path / "chunks.json").write_text(json.dumps(CHUNKS))
    chunks = ("--chunks", tmp_path / "chunks.json")
    words = ["import", tmp_path / "queries.json", *chunks, "--out", tmp_path / "first", "-q"]
    assert main([str(word) for word in words]) == 0
    first = open_dataset(tmp_path / "first")

    export(first, form, tmp_path / "out")

    again = imported(tmp_path, tmp_path / "out", *chunks)
    assert graded(again) == graded(first)
    assert (again.manifest.is_binary, again.manifest.rel_threshold) == (True, None)


@pytest.fixture
def whole(tmp_path):
    """A set of two documents of two chunks; q1 is labelled by document d2, q2 by chunk d1-b.

    Its run holds d1-a, d2-b for q1 and d1-b for q2: RR is (1/2 + 1) / 2 = 0.75.
    """
    chunks = [
        {"id": f"{doc_id}-{part}", "document": doc_id, "text": f"text {doc_id} {part}"}
        for doc_id in ("d1", "d2")
        for part in "ab"
    ]
    rows = [row("q1", ["d2"], {"d2": 3}), row("q2", ["d1-b"], {"d1-b": 3})]
    (tmp_path / "chunks.json").write_text(json.dumps(chunks))
    (tmp_path / "queries.json").write_text(json.dumps({"queries": rows}))
    (tmp_path / "run.json").write_text(json.dumps({"q1": ["d1-a", "d2-b"], "q2": ["d1-b"]}))
    place, queries = tmp_path / "whole", tmp_path / "queries.json"
    files = [str(queries), "--chunks", str(tmp_path / "chunks.json")]
    assert main(["import", *files, "--out", str(place), "--quiet"]) == 0
    return open_dataset(place)


def reciprocal_rank(dataset, tmp_path):
    run = str(tmp_path / "run.json")
    assert main(["import", "--run", run, "--dataset", str(dataset.path), "--quiet"]) == 0
    [measured] = evaluate_runs(dataset, ["run"], EvaluateSettings(measures=["RR"]))
    return measured.scores.mean("RR")


def test_labels_of_documents_come_back_from_beir(tmp_path, whole):
    """As labels of chunks they found nothing: a run of chunks fell to 0."""
    export(whole, "beir", tmp_path / "out")

    again = imported(tmp_path, tmp_path / "out")
    assert [(item.chunk_id, item.level) for item in again.judgments()] == [
        ("d2", "document"),
        ("d1-b", "chunk"),
    ]
    assert reciprocal_rank(again, tmp_path) == reciprocal_rank(whole, tmp_path) == 0.75


def test_chunks_of_an_export_with_labels_of_documents_are_no_documents(tmp_path, whole):
    """A retriever would search each text twice."""
    export(whole, "beir", tmp_path / "out")

    again = imported(tmp_path, tmp_path / "out", "--chunks", tmp_path / "out")
    assert list(again.chunks()) == list(whole.chunks())


def test_a_foreign_reader_finds_all_that_labels_name_in_the_corpus(tmp_path, whole):
    """Readers of BEIR know corpus.jsonl alone, and look ids of qrels up there."""
    result = export(whole, "beir", tmp_path / "out")

    lines = (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()
    ids = {json.loads(line)["_id"] for line in lines}
    assert ids == {"d1-a", "d1-b", "d2-a", "d2-b", "d1", "d2"}
    assert (
        "2 documents apart from the chunks (corpus.jsonl holds both; search in chunks.jsonl)"
        in result.lost
    )


def test_chunks_of_an_earlier_export_do_not_stay(tmp_path, whole, lenient):
    """They would be read before the corpus that stands beside them."""
    export(whole, "beir", tmp_path / "out")
    (tmp_path / "chunks.json").write_text(json.dumps(CHUNKS))

    export(lenient, "beir", tmp_path / "out")

    again = imported(tmp_path, tmp_path / "out", "--chunks", tmp_path / "out")
    assert [chunk.chunk_id for chunk in again.chunks()] == ["c1", "c2", "c3"]


@pytest.mark.parametrize("form", ["trec", "json"])
def test_labels_of_documents_come_back_with_chunks(tmp_path, whole, form):
    """The other forms hold no chunks, and say so."""
    result = export(whole, form, tmp_path / "out")

    again = imported(tmp_path, tmp_path / "out", "--chunks", tmp_path / "chunks.json")
    assert any("--chunks FILE" in item for item in result.lost)
    assert reciprocal_rank(again, tmp_path) == 0.75


@pytest.mark.parametrize("form", ["trec", "json"])
def test_chunks_that_cannot_count_for_their_documents_are_told(tmp_path, whole, form, capsys):
    """Without chunks nothing tells whose they are; q1 counted 0 in silence."""
    export(whole, form, tmp_path / "out")
    again = imported(tmp_path, tmp_path / "out")

    assert reciprocal_rank(again, tmp_path) == 0.5
    assert main(["evaluate", "--dataset", str(again.path), "-m", "RR"]) == 0
    assert (
        "run run: no hit of 1 query labelled by whole documents names a labelled document"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_run_of_chunks_on_an_export_with_labels_of_documents_is_told(
    tmp_path, whole, form, capsys
):
    """The same of files that are measured as they are."""
    export(whole, form, tmp_path / "out")

    files = ["--qrels", str(tmp_path / "out"), "--run", str(tmp_path / "run.json")]
    assert main(["evaluate", *files, "-m", "RR"]) == 0
    assert "labelled by whole documents names a labelled document" in capsys.readouterr().err
