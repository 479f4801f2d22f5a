import re

import pytest

from ragforge.cli import main
from ragforge.config import Settings, load
from ragforge.files.shipped_folders import shipped

PATH = shipped("configs") / "nightly.toml"


def test_the_example_can_be_loaded():
    """It is what people copy."""
    found = load(PATH, environment={})

    assert found.refresh.dataset == "sets/help"
    assert found.refresh.documents == ("docs",)
    assert found.budget.max_calls == 2000


def test_what_stands_in_comments_can_be_loaded_too(tmp_path):
    """Taking a `#` away must not end in an error."""
    text = re.sub(r"(?m)^# (\w+ = )", r"\1", PATH.read_text(encoding="utf-8"))
    (tmp_path / "all.toml").write_text(text, encoding="utf-8")
    found = load(tmp_path / "all.toml", environment={})

    assert found.model.name == "gpt-5-mini"
    assert found.refresh.notify_command.startswith("/usr/local/bin/")


def test_the_environment_names_the_model():
    """One file serves the offline rehearsal and the night."""
    assert load(PATH, environment={"RAGFORGE_MODEL_NAME": "m"}).model.name == "m"
    assert load(PATH, environment={}).model.name == Settings().model.name


def test_an_installed_ragforge_prints_the_example(capsys):
    """Whoever installed the wheel has no checkout."""
    assert main(["schedule", "settings"]) == 0
    assert capsys.readouterr().out == PATH.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["evaluate", "gate", "report", "refresh"])
def test_every_command_of_a_night_takes_the_settings(name, capsys):
    """Hooks and thresholds are named in one place."""
    assert main([name, "--help-all"]) == 0
    assert "--config FILE" in capsys.readouterr().out
