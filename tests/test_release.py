"""What a release says of itself is one thing, wherever it says it."""

import re
import tomllib
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ragforge

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def _locked():
    lines = (ROOT / "tests" / "constraints.txt").read_text("utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def test_all_files_name_one_version():
    """A citation of another version cites nothing."""
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    newest = re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)[0]

    assert {PROJECT["version"], cited[1], newest} == {ragforge.__version__}


def test_the_locked_versions_are_allowed_ones():
    """Tests of versions that nobody may install prove nothing."""
    extras = PROJECT["optional-dependencies"]
    wanted = [Requirement(line) for line in [*PROJECT["dependencies"], *extras["test"]]]
    for group in next(each for each in wanted if each.name == "ragforge").extras:
        wanted += map(Requirement, extras[group])
    here = default_environment()
    locked = {
        canonicalize_name(each.name): str(each.specifier).removeprefix("==")
        for each in _locked()
        if each.marker is None or each.marker.evaluate(here)
    }
    needed = [
        each
        for each in wanted
        if each.name != "ragforge" and (each.marker is None or each.marker.evaluate(here))
    ]

    assert [
        str(each)
        for each in needed
        if not each.specifier.contains(locked.get(canonicalize_name(each.name), "0"))
    ] == []


def test_the_lock_names_versions_and_no_place():
    """It is installed from whatever registry a machine uses."""
    assert {len(each.specifier) for each in _locked()} == {1}
    assert [each.name for each in _locked() if each.url] == []


def test_the_licence_goes_with_what_is_shipped():
    """Whoever passes the package on passes its licence on."""
    assert PROJECT["license-files"] == ["LICENSE", "NOTICE"]
    assert [name for name in PROJECT["license-files"] if not (ROOT / name).is_file()] == []
