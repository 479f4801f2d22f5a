"""Settings in force, and schemas of records, from Python."""

import json

import pytest

import ragforge as rf
from ragforge.cli import main


def test_settings_are_those_of_the_command(capsys, monkeypatch):
    """A call and a command of one folder work alike."""
    monkeypatch.setenv("RAGFORGE_MODEL_NAME", "of-environment")
    main(["config"])

    found = rf.settings(quiet=True)

    assert f"{found.table()}\n" == capsys.readouterr().out
    assert found.settings.model.name == "of-environment"


def test_keywords_go_first():
    """One can ask what a call would work with."""
    assert rf.settings(k=5, panel="a,b").to_dict()["retrieve"] == {"k": 5}


def test_rows_name_the_environment():
    """Whoever writes a compose file looks it up here."""
    rows = {row["setting"]: row for row in rf.settings(quiet=True).rows()}

    assert rows["timeout_s"]["environment"] == "RAGFORGE_MODEL_TIMEOUT_S"


def test_secrets_are_not_shown():
    """A notebook is shared with its output."""
    found = rf.settings(notify_url="https://hooks.example/T0/secret", quiet=True)

    assert "secret/" not in json.dumps([found.to_dict(), found.rows(), found.table()])
    assert "T0" not in json.dumps([found.to_dict(), found.rows(), found.table()])
    assert "hooks.example" in found.table()


def test_schemas_are_those_of_the_command(capsys):
    """Programs in other languages are made from them."""
    main(["schema"])
    assert "".join(f"{name}\n" for name in rf.schema_names()) == capsys.readouterr().out

    main(["schema", "Judgment"])
    assert rf.schema("Judgment") == json.loads(capsys.readouterr().out)


def test_an_unknown_record_names_the_nearest_else_those_there_are():
    """Nobody guesses twice, or reads sixty names for one letter too many."""
    with pytest.raises(rf.UsageError, match=r"no record 'Judgement'; did you mean Judgment\?$"):
        rf.schema("Judgement")
    with pytest.raises(rf.UsageError, match="no record 'xyz'; there are: Answer"):
        rf.schema("xyz")
