"""Making sets and opening them."""

import csv
import json
import shutil

import pytest

import ragforge as rf
from ragforge.cli import main

pytestmark = pytest.mark.slow


TEXTS = {
    "returns.md": (
        "# Returns\n\nA restocking fee is a charge of ten percent for opened furniture.\n\n"
        "## Deadline\n\nUnopened goods go back within thirty days of delivery, free of charge.\n"
    ),
    "shipping": (
        "# Shipping\n\nA parcel locker is a public box that takes small deliveries at night.\n\n"
        "## Costs\n\nShipping costs five euros for orders below fifty euros, above it is free.\n"
    ),
}


def test_a_set_is_generated_from_texts_at_hand(place):
    """A notebook has its documents in variables."""
    made = rf.generate(TEXTS, out="set", n=2, quiet=True)

    assert [query.status for query in made.queries()] == ["accepted", "accepted"]
    assert {chunk.doc_id for chunk in made.chunks()} == {"returns.md", "shipping.md"}


def test_a_set_is_named_by_its_directory(place):
    """Whoever makes the object himself gives what `open` takes."""
    made = rf.generate(TEXTS, out="set", n=2, quiet=True)

    assert [each.query for each in rf.EvaluationSet("set").queries()] == [
        each.query for each in made.queries()
    ]


def test_the_call_and_the_command_make_the_same_files(place):
    """A set that was begun in a notebook must go on in a shell."""
    for name, text in TEXTS.items():
        path = place / "docs" / f"{name.removesuffix('.md')}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    rf.generate("docs", out="one", n=2, quiet=True)
    main(["generate", "--documents", "docs", "-n", "2", "--out", "two", "-q"])

    files = ("queries.jsonl", "judgments.jsonl", "chunks.jsonl", "plan.jsonl")
    assert [(place / "one" / name).read_bytes() for name in files] == [
        (place / "two" / name).read_bytes() for name in files
    ]


def test_fewer_queries_than_wanted_are_an_error_and_stay(place):
    """A job at night must notice; the work is not thrown away."""
    with pytest.raises(rf.ShortfallError, match=r"set: .*ragforge\.open\('set'\)"):
        rf.generate(TEXTS, out="set", n=500, quiet=True)

    assert list(rf.open("set").queries())


def test_a_shortfall_may_be_allowed(place):
    """A notebook goes on with what there is."""
    made = rf.generate(TEXTS, out="set", n=500, allow_shortfall=True, quiet=True)

    assert list(made.queries())


def test_an_estimate_leaves_nothing_behind(place):
    """Who asks what it costs has not bought yet."""
    counted = rf.estimate_generation(TEXTS, out="set", n=2, quiet=True)

    assert (counted.calls, counted.cost_usd) == (0, 0.0)
    assert not (place / "set" / "manifest.json").exists()


@pytest.mark.parametrize("corpus", [{}, {"documents": "docs", "chunks": "chunks.jsonl"}])
def test_a_corpus_is_named_once(corpus):
    """Two corpora would be one too many, and none is too few."""
    with pytest.raises(rf.UsageError, match="either documents or chunks"):
        rf.generate(**corpus, out="set")


def test_a_name_of_a_text_cannot_lead_out_of_the_documents():
    """Texts by name may come from anywhere."""
    with pytest.raises(rf.UsageError, match="expected a name such as"):
        rf.generate({"../../other.md": "text"}, out="set")


def test_hand_made_queries_are_taken_as_records(by_hand):
    """A data frame or a list is what people have at hand."""
    labels = {(item.query_id, item.chunk_id): item.grade for item in by_hand.judgments()}

    assert labels == {("q1", "a"): 3, ("q2", "c"): 3}


def test_a_table_becomes_a_set(place):
    """Spreadsheets are where hand-made sets begin."""
    (place / "golden.csv").write_text(
        "question,answer,doc_id,quote\nWhen does it open?,at nine,hours.md,opens at nine\n"
    )

    made = rf.from_csv(
        "golden.csv", {"hours.md": "# Hours\n\nThe gate opens at nine.\n"}, out="set", quiet=True
    )

    assert [item.expected_answer for item in made.queries()] == ["at nine"]


def test_another_file_is_no_table(place):
    """The name of a function is a promise about its input."""
    with pytest.raises(rf.UsageError, match="from_queries takes others"):
        rf.from_csv("golden.jsonl", "docs", out="set")


def test_a_beir_folder_becomes_a_set(by_hand, place):
    """Public sets come in this form, and export writes it."""
    by_hand.export("beir", place / "beir")

    made = rf.from_beir(place / "beir", out="set", quiet=True)

    assert {item.query for item in made.queries()} == {
        "When does the gate open?",
        "What do children pay?",
    }


def test_what_holds_no_set_is_not_opened(place):
    """An error in the first line is better than one in the tenth."""
    with pytest.raises(rf.DataError, match="no such directory"):
        rf.open("nowhere")


def test_queries_are_added_to_a_set(by_hand):
    """Sets grow by hand, too."""
    done = by_hand.add_queries(
        [{"query_id": "q3", "query": "What does the shop sell?", "relevant_doc_ids": ["d"]}],
        quiet=True,
    )

    assert done.to_dict()["queries"] == 1
    assert [query.query_id for query in by_hand.queries()] == ["q1", "q2", "q3"]


def test_records_are_of_questions_by_their_words_and_leave_other_labels(by_hand):
    """They made a twin, and records of an id took the labels of records before."""
    [asked] = [query.query for query in by_hand.queries() if query.query_id == "q1"]
    before = {one.chunk_id for one in by_hand.judgments() if one.query_id == "q1"}

    by_hand.add_queries([{"question": asked, "relevant_doc_ids": ["d"], "grade": 0}], quiet=True)

    assert [query.query_id for query in by_hand.queries()] == ["q1", "q2"]
    now = {one.chunk_id: one.grade for one in by_hand.judgments() if one.query_id == "q1"}
    assert (now.keys(), now["d"]) == (before | {"d"}, 0)


def test_another_question_under_an_id_of_a_set_is_refused(by_hand):
    """No row is at fault, and no temporary file is named."""
    rows = [{"query_id": "q1", "query": "Who painted the fence?"}]

    with pytest.raises(rf.UsageError, match=r"^given: 1 id is of another question in .*'q1' asks"):
        by_hand.add_queries(rows, quiet=True)

    assert by_hand.add_queries(rows, others="replace", quiet=True).to_dict()["other_questions"] == 1


def test_an_unknown_keyword_names_the_nearest(by_hand):
    """A misspelt limit must not be no limit."""
    with pytest.raises(TypeError, match=r"judge\(\) .*'max_cost_us'; did you mean 'max_cost_usd'"):
        by_hand.judge(max_cost_us=1)


def test_a_misspelt_argument_is_of_the_call_that_was_made(by_hand):
    """The flag of a gate is its argument here, and evaluate has none of that name."""
    with pytest.raises(TypeError, match=r"gate\(\) .*'allowed'; did you mean 'allow'"):
        by_hand.gate("mine", min={"RR": 0.5}, allowed="few")


def test_a_value_that_is_not_allowed_names_the_keyword(by_hand):
    """Who writes Python does not look for a flag."""
    with pytest.raises(rf.ConfigError, match=r"^depth: judge\.depth: .* got -1"):
        by_hand.judge(depth=-1)


def test_settings_of_a_set_hold_for_the_calls_that_take_them(found):
    """An address is told once, not in each call; what a call does not take is passed over."""
    told = found.with_settings(k=1, depth=1, quiet=True)

    assert told.retrieve(lambda query, k: ["a", "b"][:k], name="one").rows()[0]["chunk_id"] == "a"
    assert len(next(told.rankings("one")).ranking) == 1


def test_settings_of_a_set_are_known_keywords(by_hand):
    """A misspelt keyword would else never be noticed."""
    with pytest.raises(TypeError, match="did you mean 'base_url'"):
        by_hand.with_settings(base_ur="http://127.0.0.1:1/v1")


def test_a_found_file_needs_trust_as_on_the_command_line(by_hand, place):
    """A folder of somebody else's must not choose who gets the documents."""
    (place / "ragforge.toml").write_text('[model]\nbase_url = "http://127.0.0.1:9/v1"\n')

    with pytest.raises(rf.ConfigError, match=r"model\.base_url: needs your trust"):
        by_hand.judge(quiet=True)


def test_a_named_file_and_the_environment_are_obeyed(found, place, monkeypatch):
    """The order is that of the command line: file, environment, keyword."""
    (place / "my.toml").write_text("[retrieve]\nk = 1\n")
    monkeypatch.setenv("RAGFORGE_EVALUATE_REL_THRESHOLD", "3")

    run = found.retrieve(lambda query, k: ["a", "b"][:k], name="x", config="my.toml", quiet=True)
    shown = found.evaluate("x", "P@1", quiet=True)

    assert len(run.rows()) == 2
    assert shown.found.rel_threshold == 3


def test_nothing_is_printed_but_progress(by_hand, capsys):
    """A library that prints spoils what its caller prints."""
    by_hand.retrieve("bm25")
    by_hand.judge()
    by_hand.evaluate()

    shown = capsys.readouterr()
    assert shown.out == ""
    assert "retrieve: 2 done" in shown.err


def test_quiet_means_quiet(by_hand, capsys):
    """What was told is in the result all the same."""
    by_hand.retrieve("bm25", quiet=True)
    judged = by_hand.judge(quiet=True)

    assert capsys.readouterr() == ("", "")
    assert judged.notes[0].startswith("no model is asked")


def test_an_observer_is_told(by_hand):
    """Progress of one's own, such as a dashboard."""
    seen = []

    by_hand.retrieve("bm25", observer=seen.append, quiet=True)

    assert {"stage.start", "unit", "stage.end"} <= {event.name for event in seen}


def test_a_file_of_events_is_an_observer_too(by_hand, place):
    """The names of the command line go here as well."""
    by_hand.retrieve("bm25", quiet=True)
    by_hand.evaluate(observer="events=events.jsonl", quiet=True)

    lines = (place / "events.jsonl").read_text().splitlines()
    names = {json.loads(line)["name"] for line in lines}
    assert "evaluation.query" in names


def test_a_set_follows_its_corpus(place):
    """The nightly job of the shell, as a call: a new version, what changed, and the way back."""
    (place / "docs").mkdir()
    for name, text in TEXTS.items():
        (place / "docs" / f"{name.removesuffix('.md')}.md").write_text(text, encoding="utf-8")
    made = rf.generate("docs", out="set", n=2, quiet=True)
    (place / "docs" / "care.md").write_text(
        "# Care\n\nBeeswax is a natural polish that keeps oak from drying out.\n", encoding="utf-8"
    )

    done = made.refresh("docs", quiet=True)

    assert (done.status, done.is_published, done.version) == ("published", True, 2)
    assert made.diff(since=1).to_dict()["documents"]["added"] == ("care.md",)
    assert made.refresh("docs", quiet=True).status == "unchanged"
    assert made.roll_back(1) == 1
    assert made.manifest.version == 1


def test_a_refresh_names_one_corpus(by_hand):
    """Nothing to follow is not the same as nothing new."""
    with pytest.raises(rf.UsageError, match="by documents or chunks, and not by both"):
        by_hand.refresh(quiet=True)


def test_chunks_at_hand_are_a_corpus(place):
    """Those of a vector store, for instance."""
    chunks = [
        {"chunk_id": name, "doc_id": f"{name}.md", "text": text}
        for name, text in zip("ab", TEXTS.values(), strict=True)
    ]

    made = rf.generate(chunks=chunks, out="set", n=1, quiet=True)

    assert [chunk.chunk_id for chunk in made.chunks()] == ["a", "b"]


def test_decisions_of_people_are_taken_in(by_hand, place):
    """A sheet out, decisions in."""
    by_hand.export_review("sheet.csv", reviewer="Ann")
    with (place / "sheet.csv").open(encoding="utf-8-sig", newline="") as stream:
        first, *rest = csv.DictReader(stream)
    with (place / "sheet.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(first))
        writer.writeheader()
        writer.writerows([{**first, "decision": "approve"}, *rest])

    reviewed = by_hand.import_review("sheet.csv", reviewer="Ann", dry_run=True)

    assert reviewed.to_dict()["approve"] == 1


def test_logs_of_users_become_queries(by_hand, place):
    """What was asked in production, and how often."""
    rows = [{"id": "l1", "query": "Where is the shop?"}, {"id": "l2", "query": "Is it open?"}]
    (place / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    taken = by_hand.add_logs("log.jsonl", as_queries=True, quiet=True)

    assert taken.to_dict()["queries"] == 2
    assert len(list(by_hand.queries())) == 4


def test_the_demo_is_a_set_to_look_around_in(place, monkeypatch):
    """The whole pipeline without a key; nobody's model is asked, whatever is set."""
    monkeypatch.setenv("RAGFORGE_MODEL_NAME", "of-somebody")

    made = rf.demo("shown", n=5, quiet=True)

    assert made.runs == ("bm25", "chargram")
    assert len(made.systems) == 2
    assert (place / "shown" / "report.html").is_file()
    assert {item.provenance.kind for item in made.judgments() if item.provenance} == {
        "baseline",
        "human",
    }


def test_chunks_are_replaced_as_by_the_command(place, capsys):
    """Evidence follows its quotes, and grades the texts."""
    made = rf.generate(TEXTS, out="set", n=2, quiet=True)
    shutil.copytree("set", "copy")
    for name, text in TEXTS.items():
        (place / "documents").mkdir(exist_ok=True)
        (place / "documents" / f"{name.removesuffix('.md')}.md").write_text(text, encoding="utf-8")
    words = ["--documents", "documents", "--out", "copy", "--max-chars", "500", "-q", "--json"]
    assert main(["generate", "--rederive", *words]) == 0

    found = made.rederive("documents", max_chars=500, quiet=True)

    assert json.loads(json.dumps(found.to_dict())) == json.loads(capsys.readouterr().out)
    assert list(made.chunks()) == list(rf.open("copy").chunks())
    assert (found.rows(), found.table().split(" ")[1:3]) == ([], ["of", str(found.found.n_quotes)])


def test_a_slip_in_the_name_of_a_quote_labels_no_whole_document(place, capsys):
    """Else a grade of a passage would silently be one of all that its document holds."""
    (place / "q.csv").write_text(
        "question,answer,doc_id,qoute\nWhat is a fee?,ten,returns.md,A restocking fee\n",
        encoding="utf-8",
    )

    with pytest.raises(rf.DataError, match="'qoute': is no field that is read; did you mean 'quo"):
        rf.from_csv("q.csv", TEXTS, out="set", quiet=True)


def test_a_beir_folder_is_not_cut(place):
    """A size that nothing is cut to would be taken for one that was."""
    with pytest.raises(rf.UsageError, match="max_chars: goes with documents"):
        rf.from_beir("beir", out="set", max_chars=100, quiet=True)


def test_an_estimate_leaves_no_folder_behind(place):
    """A folder that is there looks like a set that was begun."""
    rf.estimate_generation(TEXTS, out="set", n=2, quiet=True)

    assert not (place / "set").exists()
