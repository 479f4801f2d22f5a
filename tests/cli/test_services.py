"""Retrievers and systems that settings describe, from end to end."""

import json

import pytest
from scripted_service import Answer

import ragforge
from ragforge.cli import main
from ragforge.records import text_id

pytestmark = pytest.mark.slow

TOKEN = "tok-0123456789abcdefg"


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def settings(tmp_path, scripted, monkeypatch):
    """Settings that name a service behind a token, in a folder of their own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("DOCS_TOKEN", TOKEN)
    place = tmp_path / "mine"
    place.mkdir()
    monkeypatch.chdir(place)
    path = place / "my.toml"
    path.write_text(
        f"""
        [retrievers.docs]
        url = "{scripted.url}/v1/search"
        headers = {{ Authorization = "Bearer ${{DOCS_TOKEN}}" }}
        body = {{ question = "{{query}}", top = "{{k}}" }}
        results = "data.passages"
        id = "meta.chunk"

        [systems.bot]
        url = "{scripted.url}/ask"
        headers = {{ Authorization = "Bearer ${{DOCS_TOKEN}}" }}
        params = {{ q = "{{query}}" }}
        answer = "reply.text"
        contexts = "reply.sources"
        id = "chunk"
        """,
        encoding="utf-8",
    )
    return path


@pytest.fixture
def found(scripted, dataset):
    """Let the service find every chunk, and answer from the first, if it is shown the token."""
    ids = [row["chunk_id"] for row in rows(dataset / "chunks.jsonl")]

    def reply(seen):
        if seen.headers.get("Authorization") != f"Bearer {TOKEN}":
            return Answer("who are you?", 401)
        if seen.path == "/ask":
            return {"reply": {"text": f"{TOKEN}?", "sources": [{"chunk": ids[0]}]}}
        return {"data": {"passages": [{"meta": {"chunk": chunk_id}} for chunk_id in ids]}}

    scripted.answer = reply
    return ids


def held(folder):
    """Return all bytes of a folder."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_service_behind_a_token_makes_a_run(settings, found, dataset, scripted, capsys):
    """It took a Python function before."""
    words = ["retrieve", "--dataset", dataset, "--retriever", "docs", "--config", settings, "-k2"]

    code = main([*map(str, words), "--name", "live"])

    assert code == 0
    [first, *_] = rows(dataset / "runs" / "live.jsonl")
    assert [hit["chunk_id"] for hit in first["ranking"]] == found[:2]
    assert {seen.json["top"] for seen in scripted.seen} == {2}
    captured = capsys.readouterr()
    assert TOKEN not in captured.out + captured.err
    assert TOKEN.encode() not in held(dataset)


def test_a_service_is_measured_at_once(settings, found, dataset, capsys):
    """`evaluate`, `compare` and the pytest plugin make runs by the same names."""
    words = ["evaluate", "--dataset", dataset, "--retriever", "docs", "--config", settings]
    capsys.readouterr()

    code = main([*map(str, words), "-q", "--json"])

    assert code == 0
    assert "docs" in capsys.readouterr().out


def test_a_system_behind_a_token_is_asked(settings, found, dataset, capsys):
    """What it echoes of the token is in no file."""
    words = ["answer", "--dataset", dataset, "--system", "bot", "--name", "bot"]

    code = main([*map(str, words), "--config", str(settings), "-q"])

    assert code == 0
    answers = rows(dataset / "answers" / "bot.jsonl")
    assert {row["answer"] for row in answers} == {"[key]?"}
    assert {tuple(row["chunk_ids"]) for row in answers} == {(found[0],)}
    captured = capsys.readouterr()
    assert TOKEN not in captured.out + captured.err
    assert TOKEN.encode() not in held(dataset)


def test_python_names_them_too(settings, found, dataset):
    """A notebook asks what the command line asks."""
    ds = ragforge.open(dataset)

    made = ds.retrieve("docs", k=1, config=settings, quiet=True)
    answered = ds.answer("bot", name="bot", config=settings, quiet=True)

    assert made.run == "docs"
    assert answered.system == "bot"


def test_a_token_that_is_refused_ends_the_run_with_its_reason(
    settings, found, dataset, monkeypatch, capsys, scripted
):
    """Not one failure a query, and no ranking."""
    monkeypatch.setenv("DOCS_TOKEN", "another-token-0123")
    words = ["retrieve", "--dataset", dataset, "--retriever", "docs", "--config", settings, "-q"]

    code = main([*map(str, words), "--concurrency", "1"])

    error = capsys.readouterr().err
    assert code == 4
    assert "status 401: the service does not take what is sent of ${DOCS_TOKEN}" in error
    assert "another-token-0123" not in error
    assert len(scripted.seen) == 1
    assert rows(dataset / "runs" / "docs.jsonl") == []


def test_a_token_in_the_query_of_an_address_is_kept_nowhere(scripted, dataset, capsys):
    """It stood in the name of the run, and so in files, reports and histories."""
    words = ["retrieve", "--dataset", str(dataset), "--retriever", f"{scripted.url}/x?key={TOKEN}"]
    scripted.answer = lambda seen: {"hits": [{"text": "Beeswax is a polish."}]}
    assert main(words) == 0
    scripted.answer = lambda seen: Answer("no", 500)
    assert main([*words, "--name", "other"]) == 4

    captured = capsys.readouterr()
    assert TOKEN not in captured.out + captured.err
    assert not [path for path in dataset.rglob("*") if TOKEN in path.name]
    assert TOKEN.encode() not in held(dataset)


def test_a_missing_variable_is_named_before_anything_is_asked(
    settings, found, dataset, monkeypatch, capsys, scripted
):
    """With the setting that wants it."""
    monkeypatch.delenv("DOCS_TOKEN")
    words = ["retrieve", "--dataset", dataset, "--retriever", "docs", "--config", settings, "-q"]

    assert main([*map(str, words)]) == 2
    assert (
        "retrievers.docs.headers.Authorization: the variable DOCS_TOKEN of the environment is not "
        "set" in capsys.readouterr().err
    )
    assert scripted.seen == []


def test_a_found_file_sends_no_variable_to_a_service_of_its_own(
    settings, found, dataset, capsys, scripted
):
    """A cloned folder could else read the environment by `--retriever docs`."""
    settings.rename(settings.with_name("ragforge.toml"))
    words = ["retrieve", "--dataset", dataset, "--retriever", "docs", "-q"]

    assert main([*map(str, words)]) == 2
    assert "./ragforge.toml: retrievers.docs, systems.bot: needs your trust" in (
        capsys.readouterr().err
    )
    assert scripted.seen == []


def test_trusting_a_file_shows_whom_it_asks_and_what_it_sends(settings, scripted, capsys, tmp_path):
    """One should see what one agrees to."""
    settings.rename(settings.with_name("ragforge.toml"))
    capsys.readouterr()

    assert main(["config", "trust"]) == 0
    assert (
        f'retrievers.docs = asks "{scripted.url}/v1/search", sends ${{DOCS_TOKEN}}'
        in capsys.readouterr().out
    )


def test_a_name_that_is_none_says_which_there_are(settings, dataset, capsys):
    """A slip of the keyboard."""
    words = ["retrieve", "--dataset", dataset, "--retriever", "doc", "--config", settings, "-q"]

    assert main([*map(str, words)]) == 2
    assert "no 'doc'; did you mean docs?" in capsys.readouterr().err


def test_a_sweep_takes_no_service(settings, dataset, capsys, scripted):
    """It has an index of its own, and does not search what is cut here."""
    words = ["sweep", "--dataset", dataset, "--retriever", "docs", "--config", settings, "-q"]

    assert main([*map(str, words)]) == 2
    assert "has an index of its own" in capsys.readouterr().err
    assert scripted.seen == []


def test_a_probe_tells_what_each_result_is_in_a_set(settings, dataset, capsys, scripted):
    """Ids that a set does not know make every result a hole, which a run tells too late."""
    first, second, *_ = rows(dataset / "chunks.jsonl")
    part = second["text"].strip()[-40:]
    scripted.answer = Answer(
        [
            {"id": first["chunk_id"]},
            {"text": part},
            {"text": "no such text"},
            {"text": " "},
            {"id": "zz"},
        ]
    )
    capsys.readouterr()

    code = main(["probe", scripted.url, "How long?", "--dataset", str(dataset), "--json", "-q"])

    found = json.loads(capsys.readouterr().out)["results"]
    places = [row["in_the_set"] for row in found]
    assert code == 0
    assert places[0] == first["chunk_id"]
    assert places[1].startswith(f"{second['doc_id']}[")
    assert places[2:] == ["nowhere", "nowhere", "unknown id"]


@pytest.mark.parametrize("by", ["address", "settings", "function"])
def test_a_text_under_the_id_of_another_chunk_is_no_hit_of_that_chunk(
    tmp_path, dataset, scripted, capsys, monkeypatch, by
):
    """An index of yesterday, or that numbers its pieces itself, took the grades of other texts."""
    first, second, *_ = rows(dataset / "chunks.jsonl")
    other = "The one-gadget costs one dollar, as everybody knows."
    hits = [
        {"id": first["chunk_id"], "text": second["text"]},
        {"id": second["chunk_id"], "text": other},
    ]
    scripted.answer = Answer({"results": hits})
    settings = tmp_path / "docs.toml"
    settings.write_text(f'[retrievers.docs]\nurl = "{scripted.url}"\n', encoding="utf-8")
    (tmp_path / "misnaming.py").write_text(f"def search(query):\n    return {hits}\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    spec = {"address": scripted.url, "settings": "docs", "function": "misnaming:search"}[by]
    words = ["retrieve", "--dataset", dataset, "--retriever", spec, "--name", "live"]
    capsys.readouterr()

    assert main([*map(str, words), "--config", str(settings)]) == 0

    for row in rows(dataset / "runs" / "live.jsonl"):
        assert [hit["chunk_id"] for hit in row["ranking"]] == [second["chunk_id"], text_id(other)]
    assert (
        "run live: 6 hits came with the id of a chunk of the set and with another text, such as "
        f"'{first['chunk_id']}' with '"
    ) in capsys.readouterr().err


def test_a_system_is_told_of_passages_with_the_id_of_another_text(dataset, scripted, capsys):
    """What it had before it is graded, and not what it is called."""
    first, second, *_ = rows(dataset / "chunks.jsonl")
    passage = {"id": first["chunk_id"], "text": second["text"]}
    scripted.answer = Answer({"answer": "Yes.", "contexts": [passage]})
    capsys.readouterr()

    code = main(["answer", "--dataset", str(dataset), "--system", scripted.url, "--name", "bot"])

    assert code == 0
    answers = rows(dataset / "answers" / "bot.jsonl")
    assert {tuple(row["chunk_ids"]) for row in answers} == {(second["chunk_id"],)}
    assert "3 passages came with the id of a chunk of the set" in capsys.readouterr().err


ECHOES = (
    lambda told: Answer(told, 500),
    lambda told: Answer(f"<html>{told}</html>", kind="text/html"),
    lambda told: Answer(f'{{"half": "{told}'),
    lambda told: Answer("", 302, (("Location", f"http://127.0.0.1:1/?t={told}"),)),
    lambda told: Answer({"error": {"message": told}}),
    lambda told: Answer({"query": told, "data": {"passages": []}}),
    lambda told: Answer({"data": {"passages": [{"meta": {"chunk": told}, "text": told}]}}),
    lambda told: Answer({"data": told}),
    lambda told: Answer({"data": {"passages": [{"meta": {"chunk": [told]}}]}}),
)


@pytest.mark.parametrize("echo", ECHOES, ids=range(len(ECHOES)))
def test_no_echo_of_a_token_is_kept_or_shown(settings, dataset, scripted, capfd, tmp_path, echo):
    """A set is published with its failures, and a log of CI is read by others."""
    scripted.answer = lambda seen: echo(seen.headers["Authorization"])
    words = ["retrieve", "--dataset", dataset, "--retriever", "docs", "--config", settings]

    main([*map(str, words), "--max-failures", "100%"])
    main(["probe", "docs", "Why?", "--config", str(settings)])

    shown = capfd.readouterr()
    assert scripted.seen
    assert TOKEN not in shown.out + shown.err
    assert TOKEN.encode() not in held(dataset) + held(tmp_path / "config")
