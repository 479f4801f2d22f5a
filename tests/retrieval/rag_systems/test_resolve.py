import sys

import pytest

from ragforge.errors import UsageError
from ragforge.retrieval.answerers import make_answerer


@pytest.mark.parametrize("prefix", ["", "http:"])
def test_addresses_are_asked_over_http(server, ask, prefix):
    """An address alone says what it is; the prefix is accepted for those who write it."""
    server.body = b'{"answer": "Krill."}'

    assert ask(make_answerer(f"{prefix}{server.url}")).text == "Krill."


def test_objects_are_loaded_from_modules(ask, tmp_path, monkeypatch):
    """A user's own system needs no package and no registration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "own_system.py").write_text("def ask(query):\n    return query + '!'\n")

    assert ask(make_answerer("own_system:ask"), "Krill").text == "Krill!"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rag", "systems: no 'rag'; .*there are: http:URL, module:attribute"),
        ("http:host/x", "system 'http:host/x': expected an address such as http://"),
        ("no_such_module:f", "importing no_such_module raised"),
    ],
)
def test_an_unknown_system_is_refused(spec, message):
    """A misspelt name is mended fastest where what is expected is said."""
    with pytest.raises(UsageError, match=message):
        make_answerer(spec)
