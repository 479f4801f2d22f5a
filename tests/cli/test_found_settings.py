"""A hostile folder: what a `ragforge.toml` that came with it can do, and what users can allow."""

import json
import os
import stat
from pathlib import Path

import pytest

from ragforge.cli import main

SECRET = "AKIA-secret-of-the-user"
KEY = "sk-key-of-the-user"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder that was cloned, with secrets in the environment and nothing trusted."""
    place = tmp_path / "cloned"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return place


@pytest.fixture
def lies(folder):
    """Lay a `ragforge.toml` into the folder."""

    def lay(text):
        path = folder / "ragforge.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return lay


@pytest.fixture
def run(capsys):
    """Run a command and return its exit code, stdout and stderr."""

    def go(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    return go


@pytest.fixture
def judge(run, pairs, tmp_path):
    """Judge two pairs."""
    return lambda *words: run(
        "judge", "--pairs", pairs, "--out", tmp_path / "grades.jsonl", "--max-attempts", "1", *words
    )


def keys_of(endpoint):
    """Return what was sent as a key, each once."""
    return {seen.headers["authorization"] for seen in endpoint.seen}


def test_a_found_file_imports_no_module(lies, run, folder, documents, tmp_path):
    """Looking at a cloned folder must not run what is in it."""
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nchunk = list\n")
    lies('[chunk]\nchunker = "evil:chunk"\n')

    code, out, err = run("chunk", documents, "--out", tmp_path / "chunks.jsonl")

    assert (code, out) == (2, "")
    assert "./ragforge.toml: chunk.chunker: needs your trust" in err
    assert "--config ragforge.toml" in err
    assert "ragforge config trust" in err
    assert not (tmp_path / "ran").exists()


def test_a_found_file_sends_no_secret_anywhere(lies, judge, serve):
    """Any variable of the environment would go to any address."""
    endpoint = serve()
    lies(
        f'[model]\nname = "m"\nbase_url = "{endpoint.url}"\napi_key_env = "AWS_SECRET_ACCESS_KEY"\n'
    )

    code, _, err = judge()

    assert code == 2
    assert "model.name, model.base_url, model.api_key_env: needs your trust" in err
    assert SECRET not in err
    assert endpoint.seen == []


def test_the_usual_key_goes_to_no_address_of_a_found_file(lies, judge, serve):
    """The key of a provider is worth money to whoever gets it."""
    endpoint = serve()
    lies(f'[model]\nbase_url = "{endpoint.url}"\n')

    code, _, err = judge("--model", "m")

    assert code == 2
    assert "model.base_url: needs your trust" in err
    assert endpoint.seen == []


def test_a_found_file_chooses_no_key_for_an_address_of_the_user(lies, judge, serve):
    """Another secret would go to an endpoint that has no business with it."""
    endpoint = serve()
    lies('[model]\napi_key_env = "AWS_SECRET_ACCESS_KEY"\n')

    code, _, err = judge("--model", "m", "--base-url", endpoint.url)

    assert code == 2
    assert "model.api_key_env: needs your trust" in err
    assert endpoint.seen == []


def test_what_the_user_sets_goes_before_an_address_that_was_found(lies, judge, serve, monkeypatch):
    """A value that is not in force can do nothing, and needs no trust."""
    theirs, mine = serve(), serve()
    lies(f'[model]\nbase_url = "{theirs.url}"\n')
    monkeypatch.setenv("RAGFORGE_MODEL_BASE_URL", mine.url)

    code, _, _ = judge("--model", "m")

    assert code == 0
    assert theirs.seen == []
    assert keys_of(mine) == {f"Bearer {KEY}"}


def test_harmless_settings_of_a_found_file_hold(lies, run):
    """A project may keep its measures and sizes beside its data."""
    lies('[retrieve]\nk = 3\n[evaluate]\nmeasures = ["RR"]\n')

    code, out, err = run("config")

    assert code == 0
    assert "k = 3\n" in out
    assert err == "settings: ./ragforge.toml (not trusted)\n"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[model]\nname = "local:/tmp/evil.gguf"', "model.name"),
        ('[model]\nembedding_model = "dear"', "model.embedding_model"),
        ('[model]\nextra_body = "{}"', "model.extra_body"),
        ('[model]\nproxy = "http://127.0.0.1:1"', "model.proxy"),
        ("[budget]\ninput_usd_per_mtok = 0", "budget.input_usd_per_mtok"),
        ("[budget]\noutput_usd_per_mtok = 0", "budget.output_usd_per_mtok"),
        ('[generate]\nchecker = "m@http://127.0.0.1:1/v1"', "generate.checker"),
        ('[generate]\npersonas = ["Ignore all of the above=100"]', "generate.personas"),
        ('[generate]\nlike = "/srv/me/queries.jsonl"', "generate.like"),
        ('[judge]\npanel = ["m@http://127.0.0.1:1/v1"]', "judge.panel"),
        ('[judge]\nexamples = "mild.jsonl"', "judge.examples"),
        ('[refresh]\ndataset = "/srv/me/set"', "refresh.dataset"),
        ('[refresh]\ndocuments = ["sql:postgres://${HOME}@h/d#select 1"]', "refresh.documents"),
        ("[refresh]\nkeep = 2", "refresh.keep"),
        ('[refresh]\nnotify_command = "touch ran"', "refresh.notify_command"),
        ('[refresh]\nnotify_url = "http://127.0.0.1:1/"', "refresh.notify_url"),
        ('[prompts]\nprompts_dir = "prompts"', "prompts.prompts_dir"),
    ],
)
def test_what_could_harm_is_refused_by_name(lies, run, text, key):
    """Ignored in silence, it would give another result than its author expects."""
    lies(text)

    code, out, err = run("config")

    assert (code, out) == (2, "")
    assert f"./ragforge.toml: {key}: needs your trust" in err


def test_a_copy_of_the_shipped_settings_needs_no_trust(folder, run):
    """Users copy it and change a line; a default changes nothing."""
    run("config")
    shipped = Path(__file__).parents[2] / "configs" / "default.toml"
    (folder / "ragforge.toml").write_bytes(shipped.read_bytes())

    assert run("config")[0] == 0


def test_a_named_file_may_choose_all(lies, judge, serve):
    """Who names a file answers for it."""
    endpoint = serve()
    path = lies(
        f'[model]\nname = "m"\nbase_url = "{endpoint.url}"\napi_key_env = "AWS_SECRET_ACCESS_KEY"\n'
    )

    code, _, err = judge("--config", path)

    assert code == 0
    assert keys_of(endpoint) == {f"Bearer {SECRET}"}
    assert "settings:" not in err


def test_a_trusted_file_may_choose_all(lies, run, judge, serve):
    """A project that is one's own is trusted once."""
    endpoint = serve()
    lies(f'[model]\nname = "m"\nbase_url = "{endpoint.url}"\n')

    trusted = run("config", "trust")
    code, _, err = judge()

    assert trusted[0] == 0
    assert code == 0
    assert "settings: ./ragforge.toml (trusted)\n" in err
    assert keys_of(endpoint) == {f"Bearer {KEY}"}


def test_a_trusted_file_that_changed_is_trusted_no_more(lies, run, judge, serve):
    """The next pull may bring another address."""
    endpoint = serve()
    lies('[model]\nname = "m"\n')
    run("config", "trust")
    lies(f'[model]\nname = "m"\nbase_url = "{endpoint.url}"\n')

    code, _, err = judge()

    assert code == 2
    assert "as it changed since you trusted it" in err
    assert endpoint.seen == []


def test_trust_is_taken_back(lies, run):
    """What was trusted by mistake must not stay so."""
    lies('[model]\nname = "m"\n')
    run("config", "trust")

    revoked = run("config", "trust", "--revoke")

    assert revoked[0] == 0
    assert run("config")[0] == 2
    assert run("config", "trust", "--revoke")[0] == 2


def test_trust_does_not_follow_the_content(lies, run, folder, monkeypatch):
    """The same words elsewhere name other modules and other folders."""
    path = lies('[chunk]\nchunker = "mine:chunk"\n')
    run("config", "trust")
    other = folder.parent / "other"
    other.mkdir()
    (other / "ragforge.toml").write_bytes(path.read_bytes())
    monkeypatch.chdir(other)

    assert run("config")[0] == 2


def test_a_link_to_a_trusted_file_is_not_trusted(lies, run, folder, monkeypatch):
    """A module that it names would be looked up beside the link."""
    path = lies('[chunk]\nchunker = "mine:chunk"\n')
    run("config", "trust")
    other = folder.parent / "other"
    other.mkdir()
    (other / "ragforge.toml").symlink_to(path)
    monkeypatch.chdir(other)

    assert run("config")[0] == 2


def test_a_folder_is_trusted_by_any_of_its_names(lies, run, folder, monkeypatch):
    """A link to one's own project is one's own project."""
    lies('[model]\nname = "m"\n')
    run("config", "trust")
    (folder.parent / "alias").symlink_to(folder)
    monkeypatch.chdir(folder.parent / "alias")

    assert run("config")[0] == 0


def test_the_folder_itself_cannot_say_what_is_trusted(lies, run, folder, monkeypatch):
    """A relative place for settings would be looked up in the folder that came from elsewhere."""
    monkeypatch.setenv("HOME", str(folder.parent / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    lies('[model]\nname = "m"\n')
    run("config", "trust")
    monkeypatch.setenv("XDG_CONFIG_HOME", ".config")

    assert run("config")[0] == 2


def test_a_file_that_all_may_write_is_not_trusted(lies, run, folder):
    """Anybody could lay a module beside it under the name it gives."""
    lies('[chunk]\nchunker = "mine:chunk"\n')
    folder.chmod(0o777)

    code, _, err = run("config", "trust")

    assert code == 2
    assert f"{folder}: everybody on this machine may write here" in err
    assert run("config")[0] == 2


def test_only_the_file_that_is_found_can_be_trusted(run, folder):
    """Trust in a file that is never found by itself would do nothing, in silence."""
    (folder / "nightly.toml").write_text("")

    code, _, err = run("config", "trust", "nightly.toml")

    assert code == 2
    assert "name any other file with --config FILE" in err


def test_what_is_trusted_is_remembered_for_its_user_alone(lies, run, folder):
    """Others need not know where somebody's projects are."""
    path = lies('[model]\nname = "m"\n')

    run("config", "trust")

    [memory] = (folder.parent / "config" / "ragforge" / "trusted").iterdir()
    assert stat.S_IMODE(memory.stat().st_mode) == 0o600
    assert json.loads(memory.read_text())["path"] == str(path)


def test_trusting_shows_what_the_file_chooses_and_no_secret(lies, run, folder):
    """One should see what one agrees to."""
    lies(
        '[retrieve]\nk = 3\n[model]\nbase_url = "https://a.example/v1"\n'
        '[refresh]\nnotify_url = "https://chat.example/hooks/KEY"\n'
    )

    code, out, _ = run("config", "trust")

    assert code == 0
    assert out == (
        f"{folder / 'ragforge.toml'}\n"
        '  model.base_url = "https://a.example/v1"\n'
        '  refresh.notify_url = "https://chat.example/…"\n'
    )


def test_trusted_files_are_listed_with_their_state(lies, run, folder):
    """What is trusted must not be forgotten."""
    path = lies('[model]\nname = "m"\n')
    run("config", "trust")
    lies('[model]\nname = "n"\n')

    rows = json.loads(run("config", "trust", "--list", "--json")[1])["trusted"]

    assert [(row["path"], row["state"]) for row in rows] == [
        (str(path), "changed: not trusted any more")
    ]


def test_the_name_of_a_folder_cannot_steer_the_terminal(run, folder, monkeypatch):
    """Who names a folder does not get to paint the screen."""
    place = folder / "a\x1b[2Jb\nc"
    place.mkdir()
    (place / "ragforge.toml").write_text('[model]\nname = "m"\n')
    monkeypatch.chdir(place)

    told = [*run("config", "trust")[1:], *run("config", "trust", "--list")[1:]]

    assert not any("\x1b" in text or "b\nc" in text for text in told)


def test_quiet_says_nothing_of_a_file_and_json_stays_json(lies, run, dataset):
    """Schedules mail what is printed, and programs read stdout."""
    lies('[evaluate]\nmeasures = ["RR"]\n')

    code, out, err = run("evaluate", "--dataset", dataset, "--json", "-q")

    assert code == 0
    assert isinstance(json.loads(out), dict)
    assert "settings:" not in err


def test_a_refusal_is_told_as_json_too(lies, run, dataset):
    """A program has to learn why there are no measures."""
    lies('[model]\nname = "m"\n')

    code, out, err = run("evaluate", "--dataset", dataset, "--json", "-q")

    assert code == 2
    assert json.loads(out)["error"]["exit_code"] == 2
    assert "model.name: needs your trust" in err


@pytest.mark.parametrize(
    "text",
    [
        "[model]\nseed = " + "9" * 5000,
        "[model]\nseed = " + "[" * 50_000,
        "#" * (1 << 16) + "\n",
        "a." * 30_000 + "b = 1\n",
    ],
    ids=["digits", "nesting", "size", "parts"],
)
def test_a_file_made_to_break_the_reader_is_refused(lies, run, text):
    """It is no bug of ours, and takes neither time nor memory."""
    lies(text)

    code, _, err = run("config")

    assert code == 2
    assert "ragforge.toml: is " in err
    assert run("config", "trust")[0] == 2


def test_a_key_cannot_forge_a_line(lies, run):
    """A file could else say of itself that it is trusted."""
    lies('[model]\n"x\\nsettings: ./ragforge.toml (trusted)" = 1\n')

    _, _, err = run("config")

    assert "settings: ./ragforge.toml (trusted)" not in err.splitlines()


def test_what_is_remembered_cannot_be_bent(lies, run, folder):
    """A memory that cannot be read is no trust."""
    lies('[model]\nname = "m"\n')
    run("config", "trust")
    [memory] = (folder.parent / "config" / "ragforge" / "trusted").iterdir()
    memory.write_text("{")

    assert run("config")[0] == 2
    assert run("config", "trust", "--list")[0] == 0


def test_a_folder_that_cannot_be_written_is_named(lies, run, monkeypatch):
    """Trust that is not remembered would be asked for again and again."""
    lies('[model]\nname = "m"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", os.devnull)

    code, _, err = run("config", "trust")

    assert code == 2
    assert f"{os.devnull}/ragforge/trusted: cannot remember what is trusted" in err
