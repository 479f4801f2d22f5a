import sys

import pytest

from ragforge import plugins
from ragforge.errors import UsageError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in an empty directory, and undo what loading does to the import path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def install(folder, name, entry):
    """Lay out what pip would install for a package with one entry point."""
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[ragforge.retrievers]\n{entry}\n")
    sys.path.append(str(folder))


def test_modules_of_the_working_directory_are_found(here):
    """`ragforge` the script must find what `python -m ragforge` finds."""
    (here / "plain_plugin.py").write_text("class Box:\n    value = 5\n")

    assert plugins.find("retrievers", "plain_plugin:Box.value") == 5


def test_a_local_file_does_not_hide_an_installed_module(here):
    """A folder `datasets` of the user's must not break a package that needs that name."""
    (here / "statistics.py").write_text("mean = 'hidden'\n")

    assert plugins.find("retrievers", "statistics:mean")([1, 3]) == 2


def test_naming_an_installed_module_opens_no_folder(here):
    """Packages try to import what they can do without, and would find it in the folder."""
    plugins.find("retrievers", "statistics:mean")

    assert str(here) not in sys.path


def test_entry_points_are_found_by_name(here):
    """Installed plugins are used by a short name."""
    install(here, "entry-plugin", "entry = entry_plugin:make")
    (here / "entry_plugin.py").write_text("def make(): ...\n")

    assert plugins.find("retrievers", "entry").__name__ == "make"


def test_an_unknown_name_lists_built_ins_and_plugins(here):
    """A misspelt name is mended fastest by the list of the right ones."""
    install(here, "listed-plugin", "listed = listed_plugin:make")

    message = "no 'lsited'; did you mean listed.; there are: bm25, listed, module:attribute"
    with pytest.raises(UsageError, match=f"retrievers: {message}"):
        plugins.find("retrievers", "lsited", ("bm25",))


@pytest.mark.parametrize("name", [":x", "m:", "m:x y", "dir/m.py:x", "m:x:y", "..m:x"])
def test_what_is_no_module_and_attribute_is_refused(name):
    """A path or a shell's leftover must not reach the import system."""
    with pytest.raises(UsageError, match=r"expected package\.module:attribute"):
        plugins.find("retrievers", name)


def test_a_missing_module_is_named():
    """The usual mistake is a wrong working directory."""
    message = "importing nowhere_plugin raised ModuleNotFoundError: No module named"
    with pytest.raises(UsageError, match=message):
        plugins.find("retrievers", "nowhere_plugin:x")


def test_a_module_that_fails_is_the_users_to_mend(here):
    """A plugin that raises at import is no bug of ragforge."""
    (here / "failing_plugin.py").write_text("raise OSError('no index')\n")

    with pytest.raises(UsageError, match="importing failing_plugin raised OSError: no index"):
        plugins.find("retrievers", "failing_plugin:x")


def test_a_missing_attribute_names_the_nearest(here):
    """A misspelt function is mended fastest by its right name."""
    (here / "partial_plugin.py").write_text("def search(): ...\n")

    with pytest.raises(UsageError, match=r"no attribute 'serach'; did you mean search\?"):
        plugins.find("retrievers", "partial_plugin:serach")


def test_a_digest_of_sources_is_of_what_the_module_imports_beside_it_too(here):
    """What was kept of a system is not what it would say now."""
    package = here / "answering_plugin"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "app.py").write_text("def read():\n    from . import words\n    return words.ALL\n")
    (package / "words.py").write_text("from answering_plugin.deep import ALL\n")
    (package / "deep.py").write_text("ALL = 1\n")
    (package / "other.py").write_text("ALL = 1\n")
    found = plugins.find("retrievers", "answering_plugin.app:read")
    before = plugins.sources_digest(found)

    (package / "other.py").write_text("ALL = 2\n")
    same = plugins.sources_digest(found)
    (package / "deep.py").write_text("ALL = 2\n")

    assert before == same != plugins.sources_digest(found)


@pytest.mark.parametrize("found", [len, 3, object()])
def test_what_has_no_file_has_no_digest_of_sources(found):
    """Nothing tells when it changes."""
    assert plugins.sources_digest(found) == ""
