import re
from importlib.metadata import PackageNotFoundError

from ragforge import __version__
from ragforge.cli import main, versions


def test_the_version_is_alone_in_the_first_line(capsys):
    """Scripts read it."""
    assert main(["--version"]) == 0

    assert capsys.readouterr().out.splitlines()[0] == f"ragforge {__version__}"


def test_what_is_installed_is_listed_with_its_version(capsys):
    """A report of a bug begins with it."""
    main(["-V"])

    shown = capsys.readouterr().out
    assert re.search(r"^Python 3\.\d+\.\d+, numpy \d.*pydantic \d", shown, re.MULTILINE)
    assert re.search(r"^extra view: starlette \d[^,]*, uvicorn \d", shown, re.MULTILINE)
    assert "test" not in versions._extras()


def test_an_extra_of_which_a_package_is_missing_is_not_installed(monkeypatch):
    """Half of a server does not serve."""
    asked = versions.version

    def without_uvicorn(name):
        if name == "uvicorn":
            raise PackageNotFoundError(name)
        return asked(name)

    monkeypatch.setattr(versions, "version", without_uvicorn)

    assert re.search(r"^not installed: .*view", versions.version_text(), re.MULTILINE)


def test_a_checkout_that_is_not_installed_has_a_version_all_the_same(monkeypatch):
    """Nobody knows its extras."""

    def unknown(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(versions, "requires", unknown)

    assert versions._extras() == {}
    assert versions.version_text().startswith(f"ragforge {__version__}\n")
