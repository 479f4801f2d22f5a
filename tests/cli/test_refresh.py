"""`ragforge refresh` as schedulers and people call it, from the flags to the files."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from endpoint import Reply, completion, fault
from nights import SIX, WIDE, make_night
from pipeline.generation.making import endpoint, run, stages

from ragforge.files.set.dataset import Dataset

pytestmark = pytest.mark.slow


class Change:
    """What the endpoint says instead of good replies, by stage; nothing else at first."""

    def __init__(self):
        self.replies = {}

    def __call__(self, stage, reply, body):
        return self.replies.get(stage, reply)


@pytest.fixture(scope="module")
def change():
    """Lets a test have the endpoint misbehave."""
    return Change()


@pytest.fixture(scope="module")
def running(change):
    """An endpoint for all runs."""
    with endpoint(change) as served:
        yield served


@pytest.fixture(scope="module")
def base(tmp_path_factory, running):
    """Six queries about six documents, as generating left them."""
    return make_night(tmp_path_factory.mktemp("base") / "night", running.url, *SIX)


@pytest.fixture
def night(tmp_path, base):
    """The same, to be changed."""
    return base.copy(tmp_path / "night")


@pytest.fixture(scope="module")
def changed(tmp_path_factory, base):
    """One document changed beside a quote, one renamed, one new, one gone."""
    night = base.copy(tmp_path_factory.mktemp("changed") / "night")
    night.add_beside("privacy.md")
    (night.docs / "returns-2024.md").rename(night.docs / "old-returns.md")
    (night.docs / "payment.md").unlink()
    night.add_document()
    return night


@pytest.fixture(scope="module")
def published(tmp_path_factory, changed, running):
    """That refreshed, what was printed, and what was asked."""
    night = changed.copy(tmp_path_factory.mktemp("published") / "night")
    before = len(running.seen)
    found = night.json()
    return night, found, Counter(stages(running)[before:])


def test_a_set_that_generate_made_stays_as_it_is_where_nothing_changed(night, running):
    """The first night after generating must not publish the same again."""
    before, asked = night.state(), len(running.seen)

    done = night.refresh("--json")

    assert (done.code, done.json["status"], done.json["version"]) == (0, "unchanged", 1)
    assert (night.state(), len(running.seen)) == (before, asked)


def test_a_refreshed_set_stays_as_it_is_where_nothing_changed(tmp_path, published, running):
    """On most nights nothing changes: no call, no version, no file written anew."""
    night = published[0].copy(tmp_path / "night")
    before, asked = night.state(), len(running.seen)

    done = night.refresh("--json")

    assert (done.code, done.json["status"], done.json["version"]) == (0, "unchanged", 2)
    assert (night.state(), len(running.seen)) == (before, asked)


def test_what_changed_is_published_as_the_next_version(published):
    """That is what the command is for."""
    night, found, _ = published

    assert (found["status"], found["exit_code"], found["parent"], found["version"]) == (
        "published",
        0,
        1,
        2,
    )
    assert night.dataset.manifest.version == 2
    assert night.dataset.path == night.set


def test_json_tells_what_became_of_documents_and_queries(published):
    """A scheduler's page is made of it, and nothing of it is on standard error."""
    _, found, _ = published

    assert found["documents"]["added"] == ["club.md"]
    assert found["documents"]["removed"] == ["payment.md"]
    assert found["documents"]["renamed"] == [
        {"before": "returns-2024.md", "after": "old-returns.md"}
    ]
    assert found["items"] == {"added": 2, "kept": 3, "remapped": 1, "retired": 1, "reverified": 1}
    assert found["broken_pins"] == []


def test_json_tells_of_the_calls_that_were_made(published):
    """What is billed must be what is told."""
    _, found, asked = published

    assert found["spent"]["calls"] == asked.total()
    assert found["calls"]["verify"] == asked["recheck"] == 2


def test_the_published_set_is_valid(published):
    """Every other command reads it."""
    night = published[0]

    done = run(["validate", "--dataset", str(night.set), "--json"])

    assert done.code == 0, done.out


def test_files_beside_the_versions_lead_to_the_published_ones(published):
    """Scripts read files of a set by their names."""
    night = published[0]

    assert (night.set / "queries.jsonl").read_bytes() == (
        night.set / "versions" / "000002" / "queries.jsonl"
    ).read_bytes()


def test_the_same_inputs_give_the_same_bytes(tmp_path, changed, published):
    """A version is told from another by its digest."""
    night = changed.copy(tmp_path / "night")

    night.json()

    assert night.version(2) == published[0].version(2)


def test_a_dry_run_asks_nothing_and_changes_nothing(tmp_path, changed, running):
    """It is run on sets that others are reading."""
    night = changed.copy(tmp_path / "night")
    before, asked = night.state(), len(running.seen)

    done = night.refresh("--dry-run", "--json")

    assert (done.code, done.json["status"]) == (0, "planned")
    assert (night.state(), len(running.seen)) == (before, asked)


def test_a_dry_run_plans_what_the_run_then_does(tmp_path, changed, published):
    """Whoever reads the plan decides by it."""
    plan = changed.copy(tmp_path / "night").json("--dry-run")["plan"]
    _, found, asked = published

    assert plan["documents"] == found["documents"]
    assert plan["items"]["kept"] == found["items"]["kept"]
    assert plan["items"]["remapped"] == found["items"]["remapped"]
    assert plan["items"]["to_verify"] == found["items"]["reverified"]
    assert plan["items"]["to_search"] == found["items"]["retired"]
    assert plan["calls"]["verify"] == asked["recheck"]


def test_a_dry_run_is_printed_for_people(tmp_path, changed):
    """Most plans are read in a terminal."""
    done = changed.copy(tmp_path / "night").refresh("--dry-run")

    assert done.code == 0
    assert "3 kept, 1 remapped, 1 to verify, 1 to search" in done.out


def test_a_refresh_is_told_to_people(tmp_path, changed):
    """A log of the night is read in the morning."""
    done = changed.copy(tmp_path / "night").refresh()

    assert done.code == 0
    assert "version 2" in done.out


def test_rolling_back_publishes_the_version_before(tmp_path, published):
    """A bad night must be undone in a second."""
    night = published[0].copy(tmp_path / "night")

    done = run(["refresh", "--dataset", str(night.set), "--rollback", "1", "--json"])

    assert (done.code, done.json["exit_code"]) == (0, 0)
    assert (done.json["status"], done.json["version"]) == ("rolled back", 1)
    assert night.dataset.manifest.version == 1


def test_the_refresh_after_going_back_takes_a_new_number(tmp_path, published):
    """Two versions of one number could not be told apart."""
    night = published[0].copy(tmp_path / "night")
    run(["refresh", "--dataset", str(night.set), "--rollback", "1"])

    found = night.json()

    assert (found["status"], found["version"]) == ("published", 3)


def test_going_back_to_a_version_that_is_not_there_names_those_that_are(tmp_path, published):
    """A number is easily mistyped."""
    night = published[0].copy(tmp_path / "night")

    done = run(["refresh", "--dataset", str(night.set), "--rollback", "7"])

    assert done.code == 3
    assert "has no version 7; there are: 1, 2" in done.err
    assert night.dataset.manifest.version == 2


def test_going_back_is_not_tried_out(tmp_path, published):
    """Whoever asks for a dry run expects that nothing happens."""
    night = published[0].copy(tmp_path / "night")

    done = run(["refresh", "--dataset", str(night.set), "--rollback", "1", "--dry-run"])

    assert done.code == 2
    assert "--rollback takes no --dry-run" in done.err
    assert night.dataset.manifest.version == 2


def test_old_versions_are_removed_and_told(tmp_path, published):
    """A version a night fills any disk."""
    night = published[0].copy(tmp_path / "night")
    night.add_beside("shipping-2024.md")

    found = night.json("--keep", "2")

    assert (found["version"], found["removed_versions"]) == (3, [1])
    assert (night.version(1), night.version(2) != {}) == ({}, True)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, changed, running):
    """The same refresh with a budget of five calls, and then with enough."""
    night = changed.copy(tmp_path_factory.mktemp("stopped") / "night")
    before, asked = night.state(), len(running.seen)
    poor = night.refresh("--max-calls", "5", "--concurrency", "1")
    left, paid = night.state(), len(running.seen) - asked
    rich = night.json()
    return night, poor, paid, before == left, rich


def test_a_budget_stops_with_nothing_published(stopped):
    """Half a version is worse than yesterday's."""
    _, poor, paid, is_same, _ = stopped

    assert poor.code == 5
    assert paid == 5
    assert is_same


def test_the_run_after_a_budget_pays_only_the_rest(stopped, published):
    """What was bought is bought."""
    *_, rich = stopped

    assert rich["spent"]["calls"] == published[1]["spent"]["calls"] - 5


def test_the_run_after_a_budget_ends_with_the_bytes_of_one_that_had_enough(stopped, published):
    """How it came about must not be seen in a version."""
    assert stopped[0].version(2) == published[0].version(2)


@pytest.fixture(scope="module")
def rejected(tmp_path_factory, changed):
    """A refresh that changed more of the set than may be."""
    night = changed.copy(tmp_path_factory.mktemp("rejected") / "night", *changed.flags[:4])
    before = night.version_files()
    return night, night.refresh("--json"), before


def test_a_version_that_a_check_stops_ends_with_1(rejected):
    """A schedule has to call somebody."""
    _, done, _ = rejected

    assert (done.code, done.json["status"]) == (1, "rejected")
    assert [check["name"] for check in done.json["checks"] if not check["passed"]] == ["churn"]


def test_a_rejected_version_is_kept_aside_and_the_published_one_stays(rejected):
    """People look at what was stopped; scripts go on with what was there."""
    night, _, before = rejected

    assert night.version_files() == before
    assert Dataset(night.set / "rejected" / "000002").manifest.version == 2


def test_accepted_churn_publishes_what_was_stopped_for_nothing(tmp_path, rejected):
    """The calls of the rejected version are in the store."""
    night = rejected[0].copy(tmp_path / "night")

    found = night.json("--accept-churn")

    assert (found["status"], found["version"], found["spent"]["calls"]) == ("published", 2, 0)


def test_too_many_documents_gone_stops_before_any_call(night, running):
    """A missing mount looks like a night on which everything was deleted."""
    for name in SIX[:3]:
        (night.docs / f"{name}.md").unlink()
    before, asked = night.state(), len(running.seen)

    done = night.refresh("--vanished-most", "0.3")

    assert done.code == 3
    assert "3 of 6 documents vanished" in done.err
    assert (night.state(), len(running.seen)) == (before, asked)


def test_accepted_churn_goes_on_with_the_documents_that_are_left(night):
    """Now and then a team does throw half of its documents away."""
    for name in SIX[:3]:
        (night.docs / f"{name}.md").unlink()

    done = night.refresh("--vanished-most", "0.3", "--accept-churn", "--json")

    assert (done.code, done.json["status"]) == (0, "published")
    assert {item.doc_id for query in night.dataset.queries() for item in query.evidence} == {
        f"{name}.md" for name in SIX[3:]
    }


def review(night, query_id, decision):
    """Have a person decide about a query."""
    path = night.folder / "review.csv"
    path.write_text(f"query_id,revision,decision\n{query_id},1,{decision}\n", encoding="utf-8")
    words = ["review", "import", str(path), "--reviewer", "Ann", "--dataset", str(night.set)]
    assert run(words).code == 0


def test_a_pinned_query_that_loses_its_quote_stops_the_refresh(night):
    """Nobody may change what a person fixed without asking."""
    query_id = night.about("privacy.md").query_id
    review(night, query_id, "pin")
    night.lose("privacy.md")
    before = night.version_files()

    done = night.refresh("--json")

    assert (done.code, done.json["status"]) == (2, "pins broken")
    assert [one["query_id"] for one in done.json["broken_pins"]] == [query_id]
    assert night.version_files() == before


def test_a_pinned_query_whose_quote_stands_is_not_asked_about(night, running):
    """Its text is the person's; only its place is the refresh's."""
    query_id = night.about("privacy.md").query_id
    review(night, query_id, "pin")
    night.add_beside("privacy.md")
    asked = len(running.seen)

    found = night.json()

    assert found["status"] == "published"
    assert "recheck" not in stages(running)[asked:]
    assert night.queries[query_id].status == "accepted"


@pytest.mark.parametrize(
    ("flags", "code", "told"),
    [
        ((), 2, "name the corpus: --documents DIR"),
        (("--documents", "docs", "--chunks", "chunks.jsonl"), 2, "and not both"),
        (("--documents", "missing"), 3, "missing: does not exist"),
        (("--documents", "empty"), 3, "got no file"),
        (("--chunks", "missing.jsonl"), 3, "missing.jsonl"),
    ],
)
def test_a_corpus_that_is_not_there_is_told(night, monkeypatch, flags, code, told):
    """Nothing may be published of what nobody could read."""
    (night.folder / "empty").mkdir()
    monkeypatch.chdir(night.folder)
    before = night.state()

    done = run(["refresh", "--dataset", "set", "-q", *flags])

    assert done.code == code
    assert told in done.err
    assert night.state() == before


def test_a_set_that_is_not_there_is_told(tmp_path):
    """A typing error in a schedule must be seen on the first night."""
    done = run(["refresh", "--dataset", str(tmp_path / "nowhere"), "--documents", str(tmp_path)])

    assert done.code == 3
    assert "nowhere" in done.err
    assert list(tmp_path.iterdir()) == []


def test_no_set_at_all_is_told():
    """The sentence names the flag and the setting."""
    done = run(["refresh", "--documents", "docs"])

    assert done.code == 2
    assert "--dataset DIR" in done.err


@pytest.mark.parametrize("reply", [fault(401, "no such key"), Reply(b"", reset=True)])
def test_an_endpoint_that_fails_ends_with_4_and_publishes_nothing(night, running, change, reply):
    """A night without a model is a night without a version."""
    night.add_beside("privacy.md")
    before = night.version_files()
    change.replies = dict.fromkeys(("recheck", "judge", "write"), reply)

    done = night.refresh("--max-wait-s", "0.1", "--max-attempts", "1")

    change.replies = {}
    assert done.code == 4
    assert night.version_files() == before


def test_an_endpoint_that_is_down_ends_with_4(night):
    """Nothing listens at the address."""
    night.add_beside("privacy.md")

    done = night.refresh(
        "--base-url", "http://127.0.0.1:9/v1", "--max-wait-s", "0.1", "--max-attempts", "1"
    )

    assert done.code == 4
    assert night.dataset.manifest.version == 1


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory, base, change):
    """A set with a query whose check got nonsense, and what was printed."""
    night = base.copy(tmp_path_factory.mktemp("doubtful") / "night")
    query_id = night.add_beside("privacy.md")
    change.replies = {"recheck": Reply(completion("I would rather not say."))}
    found = night.json()
    change.replies = {}
    return night, query_id, found


def test_a_check_that_failed_quarantines_the_query(doubtful):
    """What nobody could check is neither right nor wrong."""
    night, query_id, found = doubtful
    [change] = [one for one in found["changes"] if one["query_id"] == query_id]

    assert (change["action"], night.queries[query_id].status) == ("quarantined", "quarantined")
    assert "check failed" in [cause["kind"] for cause in change["causes"]]


def test_a_check_that_failed_is_done_again_by_the_next_refresh(tmp_path, doubtful):
    """A bad hour of an endpoint must not cost a query."""
    night = doubtful[0].copy(tmp_path / "night")
    night.add_beside("payment.md")

    found = night.json()

    assert actions(found)[doubtful[1]] == "revived"
    assert night.queries[doubtful[1]].status == "accepted"


def test_a_check_that_failed_can_be_done_again_at_once(tmp_path, doubtful):
    """Whoever reads the log in the morning need not wait for a change."""
    night = doubtful[0].copy(tmp_path / "night")

    found = night.json("--retry-failed")

    assert (found["status"], found["version"]) == ("published", 3)
    assert actions(found)[doubtful[1]] == "revived"


def test_failed_judgments_are_told_and_done_again_though_nothing_changed(tmp_path, base, change):
    """ "Nothing changed" was all that was said, and no refresh judged them until a chunk came."""
    night = base.copy(tmp_path / "night")
    night.add_beside("privacy.md")
    change.replies = {"judge": Reply(completion("I would rather not say."))}
    n_failed = night.json()["judgments"]["failed"]
    change.replies = {}

    stays, again = night.json(), night.json("--retry-failed")

    assert n_failed > 0
    assert (stays["status"], stays["n_failed_judgments"]) == ("unchanged", n_failed)
    assert (again["status"], again["n_failed_judgments"]) == ("published", 0)
    assert again["judgments"]["judged"] == n_failed


def actions(found):
    """Return what became of queries, by id."""
    return {change["query_id"]: change["action"] for change in found["changes"]}


def test_settings_come_from_a_file(night, monkeypatch, running):
    """A schedule names one file and nothing else."""
    night.add_beside("privacy.md")
    (night.folder / "nightly.toml").write_text(
        '[refresh]\ndataset = "set"\ndocuments = ["docs"]\nchurn_most = 1.0\n'
        f'[model]\nname = "mock"\nbase_url = "{running.url}"\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(night.folder)

    done = run(["refresh", "--config", "nightly.toml", "--json", "-q"])

    assert (done.code, done.json["status"]) == (0, "published")


def test_chunks_instead_of_documents_are_followed(tmp_path, base):
    """Whoever cuts documents elsewhere has a set as well."""
    night = base.copy(tmp_path / "night")
    chunks = tmp_path / "chunks.jsonl"
    rows = [json.loads(chunk.model_dump_json()) for chunk in night.dataset.chunks()]
    gone = night.about("privacy.md").evidence[0].chunk_id
    kept = [row for row in rows if row["chunk_id"] != gone]
    chunks.write_text("".join(f"{json.dumps(row)}\n" for row in kept), encoding="utf-8")
    words = ["refresh", "--dataset", str(night.set), "--chunks", str(chunks), "--json", "-q"]

    done = run([*words, *night.flags])

    assert (done.code, done.json["status"]) == (0, "published")
    assert done.json["items"]["retired"] == 1


def test_a_set_of_a_model_is_not_left_to_rules_unasked(night):
    """A schedule that lost the name of its model would make the set worse, night by night."""
    night.add_document()

    done = replace(night, flags=WIDE).refresh()

    assert done.code == 2
    assert "no model is named now" in done.err
    assert night.dataset.manifest.version == 1


def test_another_judge_than_that_of_the_set_is_refused_before_anything_is_asked(night, running):
    """A nightly job made a set useless: what is new had grades of a judge of its own."""
    by_panel = [
        one.model_copy(update={"provenance": one.provenance.model_copy(update={"model": "a+b"})})
        if one.source == "judge"
        else one
        for one in night.dataset.judgments()
    ]
    night.dataset.write_judgments(by_panel)
    night.add_document()
    before, asked = night.state(), len(running.seen)

    done = night.refresh()

    assert done.code == 2
    assert "its grades are by another judge (a+b" in done.err
    assert (night.state(), len(running.seen)) == (before, asked)
    assert night.json("--other-judge", "mix")["status"] == "published"


def test_rules_may_refresh_a_set_of_a_model_where_they_are_asked_to(night):
    """It is free, and enough to see what a night would do."""
    night.add_document()

    assert replace(night, flags=WIDE).refresh("--allow-baseline").code == 0


@pytest.mark.parametrize("flags", [("{docs}", "{more}"), ("{docs}", "--documents", "{more}")])
def test_several_sources_may_stand_behind_one_flag(tmp_path, night, flags):
    """As `generate` takes them; and each behind a flag of its own, as before."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "new.md").write_text("# New\n\nThis is a new document.")
    given = [word.format(docs=night.docs, more=tmp_path / "more") for word in flags]
    words = ["refresh", "--documents", *given, "--dataset", str(night.set), *night.flags]

    found = run([*words, "-q", "--dry-run", "--json"]).json

    assert found["plan"]["documents"]["added"] == ["new.md"]


@pytest.mark.parametrize("content", ["", '{"id": 1, "te'])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.md"])
def test_a_file_given_by_name_that_gives_nothing_is_a_fault(tmp_path, night, name, content):
    """An export that broke off would pass as a night without a change."""
    file = tmp_path / name
    file.write_bytes(content.encode() or b"")
    if content:
        file.write_bytes(b"\xff\xfe\x00" + content.encode())
    before = night.state()

    done = night.refresh("--documents", str(file))

    assert done.code == 3
    assert f"{file}: " in done.err
    assert "given by name" in done.err
    assert night.state() == before


def test_documents_that_cannot_be_read_are_told_where_nothing_changed(night):
    """Else nobody learns that they are no longer followed."""
    [name] = sorted(path.name for path in night.docs.iterdir())[:1]
    (night.docs / name).write_bytes(b"\xff\xfe\x00\xd8")

    found, told = night.json(), night.refresh().out

    assert (found["status"], found["unreadable"]) == ("unchanged", [name])
    assert f"1 document cannot be read now and stays as it was: {name}" in told


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_a_hook_that_can_never_be_told_stops_a_refresh_before_it_starts(night, running, flags):
    """Found after publishing, it would be the night of which nobody hears."""
    night.add_document()
    before, asked = night.state(), len(running.seen)

    done = night.refresh("--notify-url", "hooks.example.org/T0", *flags)

    assert done.code == 2
    assert "notify_url: expected http://HOST" in done.err
    assert (night.state(), len(running.seen)) == (before, asked)


def test_each_query_that_was_accepted_is_counted_once(changed):
    """Shares of a night are taken of these counts."""
    items = changed.copy(changed.folder.parent / "counted").json()["items"]

    back = items.get("added", 0) + items.get("revived", 0)
    assert sum(items.values()) - back == len(changed.dataset.queries())
