"""`ragforge probe`: what one question to a service shows."""

import json

import pytest
from scripted_service import Answer

from ragforge.cli import main

TOKEN = "tok-0123456789abcdefg"
PASSAGES = {
    "took": 3,
    "data": {
        "passages": [
            {
                "meta": {"chunk": "returns-1", "path": "returns.md"},
                "body": "Unopened goods go back within thirty days.",
                "score": 0.91,
            },
            {
                "meta": {"chunk": "care-1", "path": "care.txt"},
                "body": "Beeswax keeps oak from drying out.",
                "score": 0.44,
            },
        ]
    },
}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Work in an empty folder, with a token in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCS_TOKEN", TOKEN)
    monkeypatch.setenv("PIN", "7h3k")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def probe(place, scripted, capsys):
    """Probe a service of some settings; return the exit code, stdout and stderr."""

    def go(settings, *words, name="docs"):
        path = place / "my.toml"
        path.write_text(
            f'[retrievers.docs]\nurl = "{scripted.url}/search"\n{settings}', encoding="utf-8"
        )
        capsys.readouterr()
        code = main(["probe", name, "How long?", "--config", str(path), "-q", *words])
        return code, *capsys.readouterr()

    return go


def test_what_is_understood_is_a_table(scripted, probe):
    """Before a run, one sees that ids, documents, scores and texts are the right ones."""
    scripted.answer = Answer(PASSAGES)

    code, out, _ = probe(
        'headers = { Authorization = "Bearer ${DOCS_TOKEN}" }\n'
        'results = "data.passages"\nid = "meta.chunk"\ntext = "body"\n'
        'document = "meta.path"\nscore = "score"\n'
    )

    assert code == 0
    assert "understood: 2 results\n" in out
    assert (
        "rank  id         document    score  text\n"
        "1     returns-1  returns.md  0.91   Unopened goods go back within thirty days.\n"
        "2     care-1     care.txt    0.44   Beeswax keeps oak from drying out.\n"
    ) in out
    assert f"  POST {scripted.url}/search\n" in out
    assert "  Authorization: Bearer ${DOCS_TOKEN}\n" in out
    assert '  {"query": "How long?", "k": 10}' in out
    assert "reply  200 application/json, " in out


def test_paths_are_proposed_where_none_is_known(scripted, probe):
    """The reply has the answer to what the settings should be."""
    scripted.answer = Answer(PASSAGES)

    code, out, _ = probe("")

    assert code == 3
    assert "not understood: retrievers.docs: no list of results in the reply" in out
    assert "these paths may be meant, in [retrievers.docs]:" in out
    for line in (
        'results = "data.passages"   # a list of 2',
        "id = \"meta.chunk\"   # the text 'returns-1'",
        'text = "body"   # the text ',
        "document = \"meta.path\"   # the text 'returns.md'",
        'score = "score"   # 0.91',
    ):
        assert f"  {line}" in out


def test_what_is_proposed_is_understood(scripted, probe):
    """A proposal that does not work sends its reader in circles."""
    scripted.answer = Answer(PASSAGES)
    found = json.loads(probe("", "--json")[1])

    settings = "".join(
        f"{item['setting']} = {json.dumps(item['path'])}\n" for item in found["proposals"]
    )
    again = json.loads(probe(settings, "--json")[1])

    assert again["state"] == "understood"
    assert again["missing"] == []
    assert [row["id"] for row in again["results"]] == ["returns-1", "care-1"]


def test_a_path_that_matches_nothing_is_named_beside_its_likeliest(scripted, probe):
    """One letter is enough to go wrong."""
    scripted.answer = Answer(PASSAGES)

    code, out, _ = probe('results = "data.passage"\nid = "meta.chunk"\n')

    assert code == 3
    assert "retrievers.docs.results = 'data.passage': matches nothing in the reply" in out
    assert 'results = "data.passages"' in out


def test_what_a_reply_does_not_give_is_told(scripted, probe):
    """Without documents, a text that stands in two of them stands in both."""
    scripted.answer = Answer(json.loads(json.dumps(PASSAGES).replace('"meta"', '"info"')))

    code, out, _ = probe('results = "data.passages"\nid = "info.chunk"\ntext = "body"\n')

    assert code == 0
    assert "nothing was found for: document\n" in out
    assert 'document = "info.path"' in out
    assert "results =" not in out.partition("these paths may be meant")[2]


def test_texts_without_ids_are_understood(scripted, probe):
    """They are placed by their text once there is a set."""
    scripted.answer = Answer([{"text": "Goods go back within thirty days."}])

    code, out, _ = probe("")

    assert code == 0
    assert "nothing was found for: id, document, score" in out


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (Answer("<html>Sign in</html>", kind="text/html"), 3, "a page of HTML and not JSON"),
        (Answer('{"data": ['), 3, "the reply is not JSON"),
        (Answer("busy", 500), 4, "failed: retrievers.docs: status 500: 'busy'"),
        (Answer("who?", 401), 4, "failed: retrievers.docs: status 401"),
        (Answer("", 302, (("Location", "http://evil.example/"),)), 4, "a redirect to"),
        (Answer({"error": "no index"}), 4, "the reply tells of an error: no index"),
        (Answer({"hits": []}), 0, "understood: nothing was found, which is a value"),
        (Answer({"query": "Why?", "hits": ["a"]}), 3, "the reply is for another query"),
    ],
)
def test_each_end_has_its_code_and_its_reason(scripted, probe, answer, code, told):
    """A script waits until a service is ready."""
    scripted.answer = answer

    found = probe("")

    assert found[0] == code
    assert told in found[1]


def test_nothing_secret_is_shown(scripted, probe):
    """What is printed is pasted into chats; the service echoes all that it got."""
    scripted.answer = lambda seen: {
        "hits": [
            {"id": seen.headers["X-Pin"], "text": seen.headers["Authorization"], "file": "7h3k"}
        ],
        "seen": {"headers": seen.headers, "params": seen.params, "body": seen.content.decode()},
    }
    settings = (
        'headers = { Authorization = "Bearer ${DOCS_TOKEN}", X-Pin = "${PIN}" }\n'
        'params = { sig = "${DOCS_TOKEN}" }\nbody = { q = "{query}", key = "${DOCS_TOKEN}" }\n'
    )

    shown = "".join((*probe(settings)[1:], *probe(settings, "--json")[1:]))

    assert TOKEN not in shown
    assert "7h3k" not in shown
    assert "sig=${DOCS_TOKEN}" in shown
    assert "X-Pin: ${PIN}" in shown


def test_a_reply_cannot_steer_the_terminal(scripted, probe):
    """What a stranger's service says is data."""
    scripted.answer = Answer(
        {"hits": [{"id": "a\x1b[2J", "text": "b\x1b]0;x\x07", "score": 1}], "x": "\x1b[31m"}
    )

    assert "\x1b" not in "".join(probe("")[1:])


def test_an_address_can_be_probed_without_settings(scripted, capsys):
    """The first look at a service; a field is set for this question alone."""
    scripted.answer = Answer(PASSAGES)

    code = main(
        [
            *("probe", f"{scripted.url}/find", "How long?", "-q", "-k", "3"),
            *("--set", "params.q={query}", "--set", "params.n={k}"),
            *("--set", "headers.Authorization=Bearer ${DOCS_TOKEN}"),
            *("--set", "results=data.passages", "--set", "id=meta.chunk"),
        ]
    )

    assert code == 0
    [seen] = scripted.seen
    assert (seen.method, seen.params) == ("GET", {"q": "How long?", "n": "3"})
    assert seen.headers["Authorization"] == f"Bearer {TOKEN}"
    assert "returns-1" in capsys.readouterr().out


def test_an_address_becomes_a_service_of_a_file(scripted, capsys, place):
    """What was tried on the command line, with what is proposed, is what goes into the file."""
    scripted.answer = Answer(PASSAGES)
    words = ["--set", "headers.X-Token=${DOCS_TOKEN}", "--set", 'body={"q": "{query}", "n": null}']
    main(["probe", f"{scripted.url}/find", "How long?", "-q", *words])
    out = capsys.readouterr().out

    lines = out.partition("for a settings file, under a name of yours:\n")[2].splitlines()
    settings = "\n".join(lines).replace("NAME", "mine")
    (place / "found.toml").write_text(settings, encoding="utf-8")

    assert main(["probe", "mine", "How long?", "--config", "found.toml", "-q"]) == 0
    assert "returns-1" in capsys.readouterr().out
    assert scripted.seen[1].json == {"q": "How long?", "n": None}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nope"], "no 'nope' among the retrievers of the settings"),
        (["nope", "--as", "system"], "[systems.NAME] of a settings file names one"),
        (["http://127.0.0.1:1/x", "--set", "results"], "--set results: expected FIELD=VALUE"),
        (["http://127.0.0.1:1/x", "--set", "reslts=a"], "reslts: Extra inputs are not permitted"),
        (
            ["http://127.0.0.1:1/x", "--set", "headers.Authorization=Bearer hunter2"],
            "a secret in Authorization, which does not belong into a file",
        ),
        (["http://127.0.0.1:1/x?api_key=hunter2"], "a secret in api_key"),
        (["http://127.0.0.1:1/x", "--set", "body={broken"], "body: is no JSON"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(capsys, words, told):
    """It is told before anything is sent, and repeats no secret."""
    name, *flags = words

    code = main(["probe", name, "How long?", "-q", *flags])

    error = capsys.readouterr().err
    assert code == 2
    assert told in error
    assert "hunter2" not in error


def test_an_answer_is_shown_with_its_contexts(scripted, probe):
    """A system is measured by both."""
    scripted.answer = Answer(
        {
            "choices": [
                {
                    "finish_reason": "stop",
                    "message": {
                        "content": "Thirty days.",
                        "context": {
                            "citations": [{"content": "thirty days", "filepath": "returns.md"}]
                        },
                    },
                }
            ]
        }
    )
    settings = f'[systems.bot]\nurl = "{scripted.url}"\ndialect = "openai-chat"\n'

    code, out, _ = probe(settings, name="bot")

    assert code == 0
    assert "understood: an answer, with 1 passages of context\n\nThirty days.\n" in out
    assert "1        -   returns.md  thirty days" in out


def test_paths_of_an_answer_are_proposed(scripted, probe):
    """With those of its contexts, and of what stands in them."""
    scripted.answer = Answer(
        {"out": {"msg": "Thirty days."}, "refs": [{"cid": "c1", "snippet": "thirty days"}]}
    )
    settings = f'[systems.bot]\nurl = "{scripted.url}"\n'

    code, out, _ = probe(settings, "--json", name="bot")

    found = json.loads(out)
    assert (code, found["state"]) == (3, "not understood")
    assert {item["setting"]: item["path"] for item in found["proposals"]} == {
        "answer": "out.msg",
        "contexts": "refs",
        "text": "snippet",
    }


def test_a_name_of_both_has_to_be_told(scripted, probe):
    """One of the two would be asked by chance."""
    scripted.answer = Answer({"answer": "Yes.", "hits": ["a"]})
    settings = f'[systems.docs]\nurl = "{scripted.url}"\n'

    assert probe(settings)[0] == 2
    assert "Yes." in probe(settings, "--as", "system")[1]
    assert "understood: 1 results" in probe(settings, "--as", "retriever")[1]


def test_a_service_of_a_found_file_is_not_asked(place, scripted, capsys):
    """To look at a cloned folder's services is to ask them."""
    (place / "ragforge.toml").write_text(
        f'[retrievers.docs]\nurl = "{scripted.url}"\nparams = {{ q = "{{query}}" }}\n'
    )

    assert main(["probe", "docs", "How long?"]) == 2
    assert "retrievers.docs: needs your trust" in capsys.readouterr().err
    assert scripted.seen == []
