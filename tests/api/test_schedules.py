"""Schedules from Python: the same text as the command prints."""

import json

import pytest

import ragforge as rf
from ragforge.cli import main


def test_the_kinds_are_those_of_the_command(capsys):
    """Whoever has only Python has to learn what there is."""
    main(["schedule", "--json"])

    assert rf.list_schedules().to_dict() == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["cron", "airflow", "settings"])
def test_a_schedule_is_the_one_of_the_command(name, capsys):
    """One text, two doors."""
    main(["schedule", name, "--json"])

    assert rf.schedule(name).to_dict() == json.loads(capsys.readouterr().out)


def test_rules_are_given_as_to_the_gate(capsys):
    """They become the flags of the command that runs every night."""
    rules = {
        "min": {"nDCG@10": 0.6},
        "max_drop": {"RR": 0.02},
        "baseline": "last",
        "point": True,
        "allow": ["few", "holes"],
    }

    made = rf.schedule("cron", dataset="sets/x", gate=rules)

    flags = "--min nDCG@10=0.6 --max-drop RR=0.02 --baseline last --point --allow-few --allow-holes"
    assert flags in made.text
    main(["schedule", "cron", "--dataset", "sets/x", "--gate", flags])
    assert f"{made.table()}\n" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"min": {"nDCG@10": 2}}, rf.UsageError, "min"),
        ({"point": True}, rf.UsageError, "nothing to check"),
        ({"max_drop": {"RR": 0.1}}, rf.UsageError, "needs a baseline"),
        ({"min": {"RR": 0.1}, "allow": "all"}, rf.UsageError, "there are: few"),
        ({"mim": {"RR": 0.1}}, TypeError, "did you mean 'min'"),
    ],
)
def test_rules_that_no_gate_takes_are_refused(rules, error, message):
    """They would fail every night."""
    with pytest.raises(error, match=message):
        rf.schedule("cron", gate=rules)


def test_messages_name_keywords():
    """Python has no flags."""
    with pytest.raises(rf.UsageError, match=r"^time 25:00: expected HH:MM"):
        rf.schedule("cron", time="25:00")


def test_what_is_not_used_is_told():
    """A user that systemd never hears of."""
    assert rf.schedule("settings", time="04:00").notes == ("not used by settings: time",)


def test_a_set_names_itself(by_hand):
    """Nobody has to repeat where it is."""
    by_hand = rf.open("by-hand")

    assert "--dataset by-hand" in by_hand.schedule("cron", time="04:30").text
