import json
import re

import pytest

from ragforge.api.schedules import SCHEDULES
from ragforge.cli import main


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """A settings file of the working directory must not be used."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys):
    """Run `ragforge schedule` and return its exit code, stdout and stderr."""

    def go(*words):
        capsys.readouterr()
        code = main(["schedule", *words])
        return code, *capsys.readouterr()

    return go


def test_without_a_name_all_are_listed_with_their_places(run):
    """Whoever has only the command has to learn what there is."""
    code, out, _ = run()

    assert code == 0
    assert re.findall(r"^([a-z-]+) {2}", out, re.MULTILINE) == ["schedule", *SCHEDULES]
    assert "/etc/cron.d/ragforge-nightly" in out


def test_the_list_is_there_as_json(run):
    """An installer chooses by it."""
    found = json.loads(run("--json")[1])

    assert [item["name"] for item in found["schedules"]] == [*SCHEDULES]


@pytest.mark.parametrize("name", SCHEDULES)
def test_no_hole_is_left_open(run, name):
    """A schedule with a hole runs a command that is not there."""
    code, out, _ = run(name)

    assert code == 0
    assert "@@" not in out


@pytest.mark.parametrize("name", ["systemd-service", "cron", "github", "kubernetes", "airflow"])
def test_every_command_names_its_settings(run, name):
    """What lies in the directory of a service is trusted for what was named, and no more."""
    assert run(name)[1].count("--config") == len(("refresh", "evaluate", "report", "gate"))


def test_a_settings_file_that_was_only_found_is_told(run, tmp_path):
    """The schedule lets it choose code, though nobody named it."""
    (tmp_path / "nightly.toml").write_text('[refresh]\ndataset = "mine"\n')

    code, out, err = run("systemd-service")

    assert code == 0
    assert "--dataset mine\n" in out
    assert "settings: the schedule names nightly.toml of this folder" in err


def test_json_holds_the_text_and_its_place(run):
    """An installer writes the one to the other."""
    found = json.loads(run("systemd-timer", "--json")[1])

    assert found["text"] == run("systemd-timer")[1]
    assert found["place"] == "/etc/systemd/system/ragforge-nightly.timer"


def test_what_is_given_is_put_in(run):
    """One copy in five that is forgotten runs another set."""
    words = ["--dataset", "sets/a", "--config", "a.toml", "--user", "search", "--run", "mine"]
    words += ["--retriever", "my_app.search:f", "--program", "/opt/v/bin/ragforge"]
    out = run("systemd-service", *words, "--directory", "/srv/a", "--gate", "--min RR=0.5")[1]
    shared = "--quiet --config a.toml --dataset sets/a"

    assert re.findall("ExecStart=(.*)", out) == [
        f"/opt/v/bin/ragforge refresh {shared}",
        f"/opt/v/bin/ragforge evaluate {shared} --retriever my_app.search:f --name mine",
        f"/opt/v/bin/ragforge report {shared} --out report.html",
        f"/opt/v/bin/ragforge gate {shared} --run mine --min RR=0.5",
    ]
    assert "\nUser=search\n" in out
    assert "\nWorkingDirectory=/srv/a\n" in out


def test_the_settings_file_names_the_set(run, tmp_path):
    """What is written there need not be typed again."""
    (tmp_path / "mine.toml").write_text('[refresh]\ndataset = "sets/mine"\n', encoding="utf-8")

    assert "--dataset sets/mine " in run("cron", "--config", "mine.toml")[1]


def test_a_settings_file_that_cannot_be_taken_is_told(run, tmp_path):
    """It would fail in the night."""
    (tmp_path / "mine.toml").write_text("[refresh]\nsets = 1\n", encoding="utf-8")
    code, out, err = run("cron", "--config", "mine.toml")

    assert (code, out) == (2, "")
    assert "unknown key refresh.sets" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["crom"], "no schedule 'crom'; did you mean cron?; there are: systemd-service"),
        (["cron", "--time", "25:00"], "--time 25:00: expected HH:MM, such as 03:00"),
        (["cron", "--time", "3"], "--time 3: expected HH:MM"),
        (["cron", "--dataset", "my set"], "--dataset 'my set': expected letters, digits"),
        (["cron", "--user", "a\nb"], "--user 'a\\nb': expected the name"),
        (["cron", "--retriever", "x;reboot"], "--retriever 'x;reboot': expected"),
        (["cron", "--gate", "--min 'P(rel=2)@5=0.5'"], "--gate 'P(rel=2)@5=0.5': expected"),
        (["cron", "--gate", "--min 'RR"], "no closing quotation"),
        (["cron", "--gate", ""], "--gate: expected at least one word"),
        (["cron", "--program", "$HOME/ragforge"], "--program '$HOME/ragforge': expected"),
        (["cron", "--directory", "/srv/50%"], "--directory '/srv/50%': expected"),
        (["systemd-service", "--directory", "rel"], "--directory 'rel': expected an absolute path"),
        (["cron", "--directory", "rel"], "--directory 'rel': expected an absolute path"),
        (["cron", "--directory", "/srv/../a"], "--directory '/srv/../a': expected an absolute"),
        (["airflow", "--directory", ""], "--directory '': expected"),
        (["systemd-service", "--program", "./rf"], "--program './rf': expected an absolute path"),
        (["cron", "--program", "nosuch"], "--program 'nosuch': no such program in /usr/local/bin"),
        (["airflow", "--program", "nosuch"], "--program 'nosuch': no such program in the PATH"),
        (["systemd-service", "--user", "a:b"], "--user 'a:b': expected the name of a user"),
        (["cron", "--user=-a"], "--user '-a': expected the name of a user"),
        (["cron", "--gate", "--nosuch 3"], "--gate '--nosuch 3': gate: no option --nosuch"),
        (["cron", "--gate", "nothing here"], "--gate 'nothing here': gate: unexpected argument"),
        (["cron", "--gate", "--min nosuch@5=1"], "--gate '--min nosuch@5=1': "),
        (["cron", "--gate", "--max-drop RR=0.1"], "needs a --baseline: FILE, last or main"),
        (["cron", "--gate", "--min RR=0.5 --run x"], "holds --dataset or --run"),
        (["cron", "--gate", "--min RR=0.5 --plan"], "--plan decides on no run"),
        (["cron", "--gate", "--max hallucination=0.1 --answers a"], "--answers decides on no run"),
        (["cron", "--gate", "--min RR=0.5 --base x"], "--judge-as-needed and --base RUN go"),
        (["cron", "--gate=--help"], "--gate '--help': gate: no option --help"),
        (["github", "--dataset=@x"], "--dataset '@x': expected a letter, digit or one of"),
        (["github", "--dataset", "x:"], "--dataset 'x:': expected a letter"),
        (["cron", "--dataset=-x"], "--dataset '-x': expected a letter"),
        (["cron", "--dataset", ""], "--dataset '': expected letters"),
        (["github", "--gate", "--max-drop RR=0 --baseline x:"], "--gate 'x:': ends with a colon"),
        (["github", "--dataset", "/srv/help"], "--dataset '/srv/help': expected a path in the rep"),
        (["github", "--report", "../r.html"], "--report '../r.html': expected a path in the rep"),
        (["cron", "--run", "a/b"], "--run: name 'a/b': expected up to 100 letters"),
    ],
)
def test_what_would_mean_something_else_in_a_schedule_is_refused(run, words, message):
    """A shell, a crontab and YAML read the same text differently."""
    code, out, err = run(*words)

    assert (code, out) == (2, "")
    assert message in err


def test_a_directory_that_no_hole_names_may_have_spaces(run, tmp_path, monkeypatch):
    """A workflow runs elsewhere than where it was printed."""
    (tmp_path / "my sets").mkdir()
    monkeypatch.chdir(tmp_path / "my sets")

    assert run("github")[0] == 0
    assert run("cron")[0] == 2


def test_a_program_that_the_schedule_finds_needs_no_path(run):
    """A wrapper in /usr/bin is a common place for it."""
    assert "sh refresh" in run("cron", "--program", "sh")[1]


def test_flags_that_a_schedule_does_not_use_are_told(run):
    """Whoever names a user in a workflow believes that it runs as that one."""
    code, out, err = run("github", "--user", "search", "--time", "04:05", "--directory", "/srv")

    assert code == 0
    assert "search" not in out
    assert err == "not used by github: --directory, --user\n"


def test_the_settings_file_of_a_timer_is_used_for_the_name_of_its_set(run, tmp_path):
    """Its text names no settings file."""
    (tmp_path / "mine.toml").write_text('[refresh]\ndataset = "sets/mine"\n', encoding="utf-8")
    code, out, err = run("systemd-timer", "--config", "mine.toml")

    assert (code, err) == (0, "")
    assert "Nightly refresh of the evaluation set sets/mine" in out
