"""`ragforge generate` as scripts and people call it."""

import pytest
from pipeline.generation.making import at, endpoint, files, generate, run


@pytest.fixture(scope="module")
def running():
    """An endpoint for all runs."""
    with endpoint() as served:
        yield served


def test_json_is_one_object(tmp_path, running):
    """A pipeline decides by it whether the set is good enough."""
    done = generate(tmp_path / "set", *at(running), "--json", n=4)

    found = done.json
    assert (done.code, found["n_wanted"], found["n_accepted"], found["shortfall"]) == (
        0,
        4,
        4,
        None,
    )
    assert [step["name"] for step in found["funnel"]] == [
        "source and writer",
        "rules",
        "checks by a model",
        "pool",
    ]
    assert found["documents"]["covered"] == 4
    assert {row["margin"] for row in found["shares"]} == {
        "type",
        "difficulty",
        "persona",
        "language",
    }
    assert found["spent"]["calls"] == len(running.seen)
    assert found["completion"]["n_pairs"] > 0


def test_json_of_a_shortfall_says_why(tmp_path):
    """The exit code alone does not."""
    documents = tmp_path / "docs"
    documents.mkdir()
    (documents / "a.md").write_text("The harbour office opens at seven in the morning.\n")

    done = generate(tmp_path / "set", "--json", n=4, documents=documents)

    assert done.code == 5
    assert "of 4 queries" in done.json["shortfall"]


@pytest.fixture(scope="module")
def tried(tmp_path_factory, running):
    """A dry run, and then the real one."""
    out = tmp_path_factory.mktemp("tried") / "set"
    before = len(running.seen)
    dry = generate(out, *at(running), "--dry-run", "--json", n=12)
    asked, left = len(running.seen) - before, files(out)
    generate(out, *at(running), n=12)
    calls = len(running.seen) - before
    again = generate(out, *at(running), "--dry-run", "--json", n=12)
    return dry, asked, left, calls, again


def test_a_dry_run_asks_and_writes_nothing(tried):
    """It is there to be run before anything is decided."""
    dry, asked, left, *_ = tried

    assert (dry.code, asked, left) == (0, 0, {})


def test_a_dry_run_tells_what_it_will_take(tried):
    """Off by a factor of two, a budget is still a budget."""
    dry, _, _, calls, _ = tried

    assert calls / 2 <= dry.json["calls"] <= calls * 2
    assert calls <= dry.json["calls_high"]


def test_a_dry_run_of_what_is_there_tells_of_no_call(tried):
    """Whoever repeats a command wants to know that it is free."""
    *_, again = tried

    assert again.json["calls"] == 0


@pytest.mark.parametrize(
    ("flags", "code", "told"),
    [
        (("--types", "fact=60,procedure=30"), 2, "90"),
        (("--types", "fcat=100"), 2, "did you mean fact"),
        (("--difficulties", "esay=100"), 2, "did you mean easy"),
        (("--language", "english=100"), 2, "'english' is no ISO 639-1 code"),
        (("--personas", "me=-5"), 2, "personas"),
        (("--like", "missing.jsonl"), 3, "missing.jsonl: cannot be read"),
        (("--checks", "maybe"), 2, "on"),
        (("-n", "0"), 2, "greater than 0"),
        (("--checker", "@http://127.0.0.1:1/v1"), 2, "expected NAME or NAME@URL"),
        (("--checker", "x@http://me:pw@host/v1"), 2, "no user name or password"),
        (("--checker", "x@http://"), 2, "expected an address"),
    ],
)
def test_what_cannot_be_wanted_is_told_before_anything_is_made(tmp_path, flags, code, told):
    """A typing error must not become a set of something else."""
    done = generate(tmp_path / "set", *flags)

    assert done.code == code
    assert told in done.err
    assert not (tmp_path / "set" / "queries.jsonl").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "holds no query"),
        (b"\n\n", "holds no query"),
        (b"\xff\xfe\x00\x01", "is not UTF-8"),
        (b'{"text": "x"}', "like:1: expected a text under query"),
        (b'{"query": ', "like:1: is no JSON"),
    ],
)
def test_a_file_of_real_queries_that_is_none(tmp_path, content, told):
    """Queries without any style, sold as those of users, would be worse than an error."""
    (tmp_path / "like").write_bytes(content)

    done = generate(tmp_path / "set", "--like", str(tmp_path / "like"))

    assert done.code == 3
    assert told in done.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "no chunks"),
        (b"{\n", "chunks.jsonl:1"),
        (b'{"chunk_id": "a", "doc_id": "d"}\n', "text"),
        (b'{"chunk_id": "a", "doc_id": "d", "text": "x"}\n' * 2, "that is used once"),
        (b"\x80\x81\n", "chunks.jsonl"),
    ],
)
def test_a_broken_file_of_chunks(tmp_path, content, told):
    """The line is named, and nothing is made of the rest."""
    path = tmp_path / "chunks.jsonl"
    path.write_bytes(content)

    done = run(["generate", "--chunks", str(path), "--out", str(tmp_path / "set")])

    assert done.code == 3
    assert told in done.err
    assert not (tmp_path / "set" / "queries.jsonl").exists()


def test_an_out_that_cannot_be_written(tmp_path):
    """Told before anything is paid for."""
    (tmp_path / "file").write_text("")

    done = generate(tmp_path / "file" / "set")

    assert done.code == 3
    assert str(tmp_path / "file") in done.err


def test_rederiving_needs_a_set(tmp_path):
    """There is nothing whose evidence could be looked up."""
    done = generate(tmp_path / "set", "--rederive")

    assert done.code == 3
    assert "ragforge generate --out DIR" in done.err
    assert not (tmp_path / "set").exists()


def test_validate_has_nothing_to_say(tmp_path, running):
    """What is made here must hold to the formats that are checked there."""
    generate(tmp_path / "set", *at(running), n=4)

    done = run(["validate", "--dataset", str(tmp_path / "set")])

    assert done.code == 0, done.err


def test_a_set_of_other_settings_is_not_written_over(tmp_path, running):
    """What differs is named."""
    generate(tmp_path / "set", *at(running), n=2)
    before = files(tmp_path / "set")

    done = generate(tmp_path / "set", *at(running), "--types", "why=100", n=2)

    assert (done.code, files(tmp_path / "set")) == (2, before)
    assert "kinds" in done.err


def test_rederiving_tells_what_has_to_be_made_anew(tmp_path):
    """A run of other chunks is measured by its texts, and says nothing of the system of now."""
    out = tmp_path / "set"
    assert generate(out, n=4).code == 0
    assert run(["judge", "--dataset", str(out), "--complete", "-q"]).code == 0
    assert run(["retrieve", "--dataset", str(out), "--retriever", "bm25", "-q"]).code == 0

    done = generate(out, "--rederive", "--max-chars", "300")

    assert done.code == 0
    assert "4 of 4 quotes found again (100 %)" in done.err
    assert "--retriever bm25` makes it again" in done.err


def test_a_dry_run_of_rederiving_is_refused(tmp_path):
    """Whoever tries it out must not find the grades gone."""
    out = tmp_path / "set"
    assert generate(out, n=2).code == 0
    before = files(out)

    assert generate(out, "--rederive", "--dry-run", "--max-chars", "300").code == 2
    assert files(out) == before
