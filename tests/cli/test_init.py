"""A first settings file."""

import os
import pathlib
import stat
import subprocess
import sys
import tomllib

import pytest

from ragforge.cli import main
from ragforge.config import Settings
from ragforge.pipeline.first_settings import look_around

SECRET = "sk-do-not-show"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder as people have one: documents, a table of questions, a key in .env."""
    place = tmp_path / "project"
    (place / "handbook" / "more").mkdir(parents=True)
    (place / "notes").mkdir()
    (place / "node_modules" / "x").mkdir(parents=True)
    for name in ("handbook/a.md", "handbook/more/b.rst", "notes/c.txt", "README.md"):
        (place / name).write_text("# Wax\n\nBeeswax keeps oak from drying out.\n")
    for number in range(9):
        (place / "node_modules" / "x" / f"{number}.md").write_text("# x\n")
    (place / "asked.csv").write_text("\ufeffQuestion,answer\nWhat is beeswax?,A polish.\n")
    (place / "prices.csv").write_text("item,price\nwax,3\n")
    (place / ".env").write_text(f"export MY_API_KEY={SECRET}\nDEBUG=1\n")
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "trusted"))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    return place


def written(folder):
    """Return what was written."""
    return tomllib.loads((folder / "ragforge.toml").read_text(encoding="utf-8"))


def test_a_folder_is_looked_at(folder):
    """What is there is the best answer."""
    found = look_around(folder, {"HOME": "x"})

    assert dict(found.documents) == {"handbook": 2, "notes": 1, ".": 1}
    assert (found.sets, found.tables, found.keys) == ((), ("asked.csv",), ("MY_API_KEY",))


@pytest.mark.parametrize("head", ["id;Question;answer", "User Input|reference", "a\tquery"])
def test_tables_of_other_signs_and_spellings_are_found(tmp_path, head):
    """What a German Excel saves has semicolons, and `import` reads it."""
    (tmp_path / "asked.csv").write_text(f"{head}\n")

    assert look_around(tmp_path, {}).tables == ("asked.csv",)


def test_a_file_and_the_next_command_come_without_a_question(folder, capsys):
    """A script has no terminal."""
    assert main(["init", "--yes"]) == 0

    told = capsys.readouterr()
    assert told.out == "ragforge.toml\n"
    assert told.err == "next: ragforge import asked.csv --documents handbook --out my-set\n"
    assert written(folder)["model"] == {"name": "offline"}
    assert written(folder)["refresh"] == {"dataset": "my-set", "documents": ["handbook"]}


def test_the_file_is_taken_by_the_next_command(folder, capsys):
    """Settings that need trust would stop it, and these are the user's own answers."""
    words = ["--model", "qwen3@http://127.0.0.1:8080/v1", "--retriever", "http://127.0.0.1:8000/s"]
    assert main(["init", "--yes", *words]) == 0
    capsys.readouterr()

    assert main(["config"]) == 0
    told = capsys.readouterr()
    assert "(trusted)" in told.err
    shown = tomllib.loads(told.out)
    assert (shown["model"]["name"], shown["model"]["base_url"]) == (
        "qwen3",
        "http://127.0.0.1:8080/v1",
    )
    assert written(folder)["retrievers"]["mine"]["url"] == "http://127.0.0.1:8000/s"
    assert "max_cost_usd" not in written(folder)["budget"]


def test_a_file_that_is_there_stays(folder, capsys):
    """It is somebody's work."""
    (folder / "ragforge.toml").write_text("[generate]\nn = 7\n")

    assert main(["init", "--yes"]) == 2
    assert "is there already, and stays" in capsys.readouterr().err
    assert (folder / "ragforge.toml").read_text() == "[generate]\nn = 7\n"


def test_no_key_is_read_or_written(folder, capsys):
    """A settings file goes into git."""
    assert main(["init", "--yes", "--model", "m"]) == 0

    told = capsys.readouterr()
    text = (folder / "ragforge.toml").read_text()
    assert SECRET not in text + told.out + told.err
    assert written(folder)["model"]["api_key_env"] == "MY_API_KEY"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "m@nowhere"], "model.base_url: expected an address"),
        (["--retriever", "http://me:pw@h/x"], "retrievers.mine"),
        (["--model", ""], "model.name"),
    ],
)
def test_an_answer_that_no_command_would_take_writes_nothing(folder, capsys, words, message):
    """The next command would fail, far from the question."""
    assert main(["init", "--yes", *words]) == 2

    assert message in capsys.readouterr().err
    assert not (folder / "ragforge.toml").exists()


def test_without_a_terminal_it_says_how(folder, capsys, monkeypatch):
    """A question that nobody sees would hang a job for ever."""
    with pathlib.Path(os.devnull).open(encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert main(["init"]) == 2

    assert "--yes takes what is offered" in capsys.readouterr().err
    assert not (folder / "ragforge.toml").exists()


def test_five_questions_at_most_are_asked_on_a_terminal(folder):
    """Nothing typed takes what is offered; a folder that is not there is asked for again."""
    ours, theirs = os.openpty()
    os.write(ours, b"nowhere\nnotes\nnone\n\ngpt-5-mini\nsets/wax\n")

    done = subprocess.run(
        [sys.executable, "-m", "ragforge", "init"], stdin=theirs, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    os.close(theirs)
    os.close(ours)

    assert done.stderr.count("]: ") == 6
    assert "nowhere: there is no such thing here" in done.stderr
    assert done.stderr.endswith("next: ragforge generate --documents notes --out sets/wax\n")
    assert written(folder)["model"]["name"] == "gpt-5-mini"


def test_a_set_that_is_there_is_compared(folder, capsys):
    """Who has one needs no other."""
    (folder / "sets").mkdir()
    for name in ("manifest.json", "queries.jsonl"):
        (folder / "sets" / name).write_text("{}")

    assert main(["init", "--yes", "--json"]) == 0
    assert "compare --dataset sets --retriever chargram --retriever bm25" in capsys.readouterr().out


def test_an_empty_folder_leads_to_the_demo(tmp_path, monkeypatch, capsys):
    """There is nothing to make a set of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "trusted"))

    assert main(["init", "--yes"]) == 0
    assert capsys.readouterr().err == "next: ragforge demo\n"


def test_the_settings_are_all_known(folder):
    """A key of yesterday would be an error in the first command."""
    main(["init", "--yes"])

    for section, values in written(folder).items():
        assert section in Settings.model_fields
        assert set(values) <= set(type(Settings.model_fields[section].default).model_fields)


def test_what_cannot_be_written_is_told(folder, capsys):
    """A folder may belong to another."""
    if os.getuid() == 0:
        pytest.skip("root writes everywhere")
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)

    assert main(["init", "--yes"]) == 3


def test_questions_alone_make_a_set(tmp_path, monkeypatch, capsys):
    """Whoever has a service and a table of questions needs no documents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "trusted"))
    (tmp_path / "questions.csv").write_text("id,question\n1,What is beeswax?\n")

    assert main(["init", "--yes"]) == 0

    assert capsys.readouterr().err == "next: ragforge import questions.csv --out my-set\n"
    assert main(["import", "questions.csv", "--out", "my-set"]) == 0
