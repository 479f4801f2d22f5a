import pytest

from ragforge.corpus.origins.origin import resolve_address, shown_url
from ragforge.errors import UsageError


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:${PW}@db:5432/kb", "postgresql://…@db:5432/kb"),
        ("postgresql://me:a/b@c@db/kb", "postgresql://…"),
        ("postgresql://me:a#b@db/kb", "postgresql://…"),
        ("postgresql://me:12/34@db/kb", "postgresql://…"),
        ("postgresql:me:pw@db/kb", "…"),
        ("simplecache::s3://k:pw@b/x", "…"),
        ("https://h/x.md#token=secret", "https://h/x.md#…"),
        ("postgresql://me@[::1]:5432/kb", "postgresql://…@[::1]:5432/kb"),
        ("postgresql://db/kb?user=me&password=secret", "postgresql://db/kb?…"),
        ("https://host:8080/a@b.md?sig=secret", "https://host:8080/a@b.md?…"),
        ("${DATABASE_URL}", "${DATABASE_URL}"),
        ("s3://kb/docs", "s3://kb/docs"),
        ("sqlite:///kb.db", "sqlite:///kb.db"),
    ],
)
def test_address_is_shown_without_what_may_be_secret(url, shown):
    """Messages and notes end in logs."""
    assert shown_url(url) == shown


def test_variables_are_filled_in_and_escaped_where_they_must(monkeypatch):
    """A password with an @ would name another host."""
    monkeypatch.setenv("USER_X", "me@corp")
    monkeypatch.setenv("PW", "p@s/s")
    monkeypatch.setenv("HOST", "db:5432")

    found = resolve_address("postgresql://${USER_X}:${PW}@${HOST}/kb")

    assert found.full == "postgresql://me%40corp:p%40s%2Fs@db:5432/kb"


def test_whole_address_may_come_from_the_environment(monkeypatch):
    """Platforms hand it over as one variable."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:top-secret@db/kb")

    found = resolve_address("${DATABASE_URL}")

    assert found.full == "postgresql://me:top-secret@db/kb"
    assert "secret" not in f"{found} {found.shown}"


@pytest.mark.parametrize(
    "said",
    [
        "no access with top-secret",
        "cannot open postgresql://me:top-secret@db/kb?sslkey=abcdef",
        "invalid dsn: sslkey=abcdef",
    ],
)
def test_what_a_driver_says_is_cleared_of_secrets(monkeypatch, said):
    """Some repeat the address in full."""
    monkeypatch.setenv("PW", "top-secret")
    found = resolve_address("postgresql://me:${PW}@db/kb?sslkey=abcdef")

    redacted = found.redacted(f"{said}\nand more")

    assert "top-secret" not in redacted
    assert "abcdef" not in redacted
    assert redacted.endswith("and more")


@pytest.mark.parametrize("password", ["hunter2", "x${PW}", "a/b", "a@b"])
def test_password_in_the_address_is_refused_and_not_repeated(monkeypatch, password):
    """It would stand in settings, in the history of the shell and in the list of processes."""
    monkeypatch.setenv("PW", "y")

    with pytest.raises(UsageError, match=r"^postgresql://…: expected the password in the envir"):
        resolve_address(f"postgresql://me:{password}@db/kb")


def test_variable_that_is_not_set_is_named(monkeypatch):
    """An empty password would only fail later, and elsewhere."""
    monkeypatch.delenv("PW", raising=False)

    with pytest.raises(UsageError, match=r"…@db/kb: the environment has no variable PW"):
        resolve_address("postgresql://me:${PW}@db/kb")


@pytest.mark.parametrize("url", ["postgresql:me:hunter2@db/kb", "a::s3://b/hunter2", "db/hunter2"])
def test_what_is_no_address_is_refused_and_not_repeated(url):
    """Where the password begins in it, nobody can tell."""
    with pytest.raises(UsageError, match=r"^…: expected an address such as") as caught:
        resolve_address(url)

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file:///tmp/d?x=top-secret", "no such file: /tmp/d?x=top-secret"),
        ("https://h/x.md#token=top-secret", "not found: x.md#token=top-secret"),
        ("sqlite:///${PW}.db", "cannot open top-secret.db"),
        ("postgresql://top-secret@db/kb", "no user top-secret"),
        ("sqlite:///${SHORT}.db", "cannot open xyz.db"),
    ],
)
def test_nothing_but_scheme_host_and_path_is_in_what_a_driver_says(monkeypatch, url, said):
    """Whatever stands elsewhere may be secret, and so may what a variable holds."""
    monkeypatch.setenv("PW", "top-secret")
    monkeypatch.setenv("SHORT", "xyz")

    redacted = resolve_address(url).redacted(said)

    assert "…" in redacted
    assert "secret" not in redacted
    assert "xyz" not in redacted
