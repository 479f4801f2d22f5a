import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ragforge.corpus.origins.sql import opened_sql, parse_sql
from ragforge.errors import DataError, UsageError

pytest.importorskip("sqlalchemy")

ROWS = [(2, "Elm", "An elm."), (10, "Oak", "An oak."), (1, None, "Trees.")]
QUERY = "SELECT id, title, body, seen FROM articles"


class Database:
    """A file of SQLite with a table of articles."""

    def __init__(self, path):
        self.path = path
        self.url = f"sql:sqlite:///{path}"
        self.run("CREATE TABLE articles (id, title, body, seen DEFAULT 'now')")

    def run(self, *statements):
        with contextlib.closing(sqlite3.connect(self.path)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    def fill(self, rows):
        with contextlib.closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("DELETE FROM articles")
            connection.executemany("INSERT INTO articles (id, title, body) VALUES (?, ?, ?)", rows)


@pytest.fixture
def database(tmp_path):
    found = Database(tmp_path / "kb.db")
    found.fill(ROWS)
    return found


def test_each_row_is_a_document(database, read):
    """Its id is that of the row, behind the database's name."""
    assert read(f"{database.url}#{QUERY}") == {
        "kb.jsonl#1": "Trees.",
        "kb.jsonl#2": "An elm.",
        "kb.jsonl#10": "An oak.",
    }


def test_order_of_the_database_does_not_matter(database, read):
    """A database promises none, and the same rows must give the same bytes."""
    texts = []
    for order in ("ASC", "DESC"):
        read(f"{database.url}#{QUERY} ORDER BY id {order}")
        [file] = read.place.rglob("kb.jsonl")
        texts.append(file.read_bytes())

    assert texts[0] == texts[1]


def test_changes_and_deletions_are_seen(database, read):
    """What is gone there must be gone here."""
    read(f"{database.url}#{QUERY}")
    database.fill([(2, "Elm", "Another elm."), (3, "Yew", "A yew.")])

    assert read(f"{database.url}#{QUERY}") == {
        "kb.jsonl#2": "Another elm.",
        "kb.jsonl#3": "A yew.",
    }


def test_format_is_a_column_like_the_others(database, read):
    """Wikis hold Markdown or HTML."""
    found = read(f"{database.url}#SELECT id, '<p>' || body AS text, 'html' AS format FROM articles")

    assert found["kb.jsonl#2"] == "An elm."


@pytest.mark.parametrize(
    "query",
    [
        f"{QUERY};",
        f"-- all\n/* of them */ {QUERY}",
        f"with x as ({QUERY}) select * from x",
        f"{QUERY} WHERE body NOT LIKE '%:x%' AND body <> ':y' AND seen <> '100%'",
        f"kb: {QUERY}",
    ],
)
def test_query_reaches_the_database_as_it_stands(database, read, query):
    """Colons and per cent signs mean something to some drivers."""
    assert len(read(f"{database.url}#{query}")) == 3


def test_two_queries_of_one_database_need_names(database, read):
    """Their ids could be the same."""
    faq = f"{database.url}#faq: SELECT id, body FROM articles WHERE id = 1"

    assert len(read(f"{database.url}#{QUERY}", faq)) == 4
    with pytest.raises(UsageError, match=r"another query has the name 'kb'.*sql:URL#NAME: SELECT"):
        read(f"{database.url}#{QUERY}", f"{database.url}#{QUERY} WHERE id = 1")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((None, "t", "b"), r"#kb: row 1: id: expected an id, got None"),
        (("", "t", "b"), r"#kb: row 1: id: expected an id, got ''"),
        ((1.5, "t", "b"), r"#kb: row 1: id: expected an id, got 1\.5"),
        ((7, "t", None), r"row 1 \(id 7\): body: expected text, got None; leave .* IS NOT NULL"),
        ((7, "t", b"x"), r"row 1 \(id 7\): body: expected text, got b'x'"),
        ((7, 5, "b"), r"row 1 \(id 7\): title: expected text, got 5"),
    ],
)
def test_value_that_cannot_be_taken_is_named(database, read, row, message):
    """Of a million rows, the message says which."""
    database.fill([row])

    with pytest.raises(DataError, match=message):
        read(f"{database.url}#{QUERY}")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT title, body FROM articles", r"#kb: id: expected one of id, doc_id, .* 'title'"),
        ("SELECT id, title FROM articles", r"#kb: text: expected one of text, content, "),
        ("SELECT id, id, body FROM articles", r"column 'id' comes twice; name one with AS"),
        ("SELECT id, doc, body FROM articles", r"#kb: no such column: doc\Z"),
        ("SELECT 1 AS id, body FROM articles", r"#kb: id '1' comes twice"),
        (f"{QUERY} WHERE id = 5", r"#kb: no row; expected documents"),
        ("SELECT id, body, 'x' AS format FROM articles", r"format: expected one of text, .*'x'"),
    ],
)
def test_query_that_gives_no_documents_is_a_data_error(database, read, query, message):
    """It must not look like a corpus without documents."""
    with pytest.raises(DataError, match=message):
        read(f"{database.url}#{query}")


def test_fault_half_way_leaves_the_mirror_as_it_was(database, read):
    """A connection that is lost must not look like deletions."""
    read(f"{database.url}#{QUERY}")
    before = read.state()
    database.fill([*((number, "t", "b") for number in range(3000)), (None, "t", "b")])

    with pytest.raises(DataError, match=r"row 3001: id: expected an id"):
        read(f"{database.url}#{QUERY}")

    kept = {path: held for path, held in read.state().items() if "incoming" not in path.parts}
    assert kept == before


def test_missing_file_is_a_data_error_and_is_not_made(read, tmp_path):
    """SQLite would make an empty database, and the next message would mislead."""
    with pytest.raises(DataError, match=r"absent\.db: no such file"):
        read(f"sql:sqlite:///{tmp_path}/absent.db#{QUERY}")

    assert not (tmp_path / "absent.db").exists()


def test_file_that_is_no_database_is_a_data_error(read, tmp_path):
    """A path mistaken is the commonest fault."""
    (tmp_path / "kb.db").write_text("text " * 100)

    with pytest.raises(DataError, match="#kb: file is not a database"):
        read(f"sql:sqlite:///{tmp_path}/kb.db#{QUERY}")


@pytest.mark.parametrize("query", ["", "DELETE FROM articles", "PRAGMA x", "--SELECT", "1"])
def test_query_that_does_not_read_is_refused(database, query):
    """A list of sources is no place for statements that change something."""
    with pytest.raises(UsageError, match=r"kb\.db: expected sql:URL#SELECT id, title, text FROM"):
        parse_sql(f"{database.url}#{query}")


def test_statement_hidden_in_a_query_changes_nothing(database, read):
    """The database is opened to be read only."""
    with pytest.raises(DataError, match=r"readonly|only execute one statement"):
        read(f"{database.url}#WITH x AS (SELECT 1) DELETE FROM articles")

    assert len(read(f"{database.url}#{QUERY}")) == 3


def test_unknown_kind_of_database_is_a_clear_error(read):
    """The message names what was not found."""
    with pytest.raises(DataError, match=r"sql:oracel://db/kb#kb: Can't load plugin: .*oracel"):
        read(f"sql:oracel://db/kb#{QUERY}")


def test_missing_driver_is_named(read, monkeypatch):
    """SQLAlchemy brings none for servers."""
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(UsageError, match=r"needs the package psycopg, .* 'psycopg\[binary\]'"):
        read(f"sql:postgresql+psycopg://me@db/kb#{QUERY}")


def test_missing_sqlalchemy_is_named(read, monkeypatch, database):
    """The extra is what installs it."""
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)

    with pytest.raises(UsageError, match=r"needs the package SQLAlchemy; .*'ragforge\[sql\]'"):
        read(f"{database.url}#{QUERY}")


def test_sqlalchemy_is_imported_only_for_a_database():
    """It takes longer than all else that cutting documents imports."""
    code = (
        "import sys, ragforge.corpus.origins.fetching; "
        "sys.exit(bool({'sqlalchemy', 'fsspec'} & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "spec",
    [
        f"sql:postgresql://me:hunter#2PW@db/kb#{QUERY}",
        f"sql:postgresql://me:12#2PW@db/kb#{QUERY}",
        f"sql:postgresql:me:2PW@db/kb#{QUERY}",
    ],
)
def test_password_in_an_odd_place_is_not_repeated(spec):
    """What is refused goes into logs and to hooks."""
    with pytest.raises(UsageError, match="expected") as caught:
        parse_sql(spec)

    assert "2PW" not in str(caught.value)
    assert "hunter" not in str(caught.value)


def test_variable_in_the_path_is_not_shown(read, monkeypatch):
    """Nobody can tell which variable holds a secret."""
    monkeypatch.setenv("DB_PASSWORD", "top-secret")

    with pytest.raises(DataError, match="no such file") as caught:
        read(f"sql:sqlite:///${{DB_PASSWORD}}.db#{QUERY}")

    assert "top-secret" not in str(caught.value)
    assert not any("secret" in path.name for path in read.place.iterdir())


@pytest.mark.parametrize("value", ["1", "TRUE", "'t'", "'yes'"])
@pytest.mark.parametrize("column", ["deleted", "is_deleted"])
def test_rows_that_are_deleted_are_no_documents(database, read, column, value):
    """Many a database keeps them, as exports do."""
    query = f"SELECT id, body, CASE id WHEN 2 THEN {value} ELSE 0 END AS {column} FROM articles"

    assert read(f"{database.url}#{query}").keys() == {"kb.jsonl#1", "kb.jsonl#10"}


def test_rows_with_a_time_of_deletion_are_no_documents(database, read):
    """It is the other way to say so; their text may be gone already."""
    query = (
        "SELECT id, CASE id WHEN 2 THEN NULL ELSE body END AS body, "
        "CASE id WHEN 2 THEN '2024-05-01' END AS deleted_at FROM articles"
    )

    assert read(f"{database.url}#{query}").keys() == {"kb.jsonl#1", "kb.jsonl#10"}


def test_deletion_that_is_not_plain_is_an_error(database, read):
    """A guess would keep what is gone, or lose what is there."""
    with pytest.raises(DataError, match=r"#kb: row 1: deleted: expected true or false, got 'gone'"):
        read(f"{database.url}#SELECT id, body, 'gone' AS deleted FROM articles")


def _binaries():
    places = [*Path("/usr/lib/postgresql").glob("*/bin"), *map(Path, os.get_exec_path())]
    return next((place for place in places if (place / "initdb").exists()), None)


@pytest.fixture(scope="module")
def postgres():
    """A server on a socket of its own, and a role with a password."""
    pytest.importorskip("psycopg")
    binaries = _binaries()
    if binaries is None or (os.geteuid() == 0 and shutil.which("runuser") is None):
        pytest.skip("needs the programs of a PostgreSQL server")
    # Folders of pytest are open to their owner alone, and their paths are long for a socket.
    place = Path(tempfile.mkdtemp(prefix="ragforge-pg-"))
    place.chmod(0o755)
    data = place / "data"
    as_user = []
    if os.geteuid() == 0:  # The server refuses to run as root.
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(place, "postgres")

    def run(program, *words):
        command = [*as_user, str(binaries / program), *map(str, words)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=place)

    run("initdb", "-D", data, "-U", "owner", "-A", "trust", "--no-sync")
    options = f"-k {place} -c listen_addresses= -c fsync=off"
    run("pg_ctl", "-D", data, "-w", "-l", place / "log", "-o", options, "start")
    run(
        *("psql", "-q", "-h", place, "-U", "owner", "-d", "postgres"),
        *("-c", "CREATE TABLE articles (id bigint, title text, body text)"),
        *("-c", "INSERT INTO articles SELECT n, 't', 'b%:' || n FROM generate_series(1, 2500) n"),
        *("-c", "CREATE ROLE me LOGIN SUPERUSER PASSWORD 'p@ss/w:rd'"),
    )
    rules = "local all me scram-sha-256\nlocal all all trust\n"
    (data / "pg_hba.conf").write_text(rules)
    run("pg_ctl", "-D", data, "reload")
    yield f"sql:postgresql+psycopg://me:${{PG_PASSWORD}}@/postgres?host={place}"
    run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    shutil.rmtree(place)


@pytest.mark.slow
def test_postgres_is_read_in_a_stream(postgres, read, monkeypatch):
    """With a real server, whose password needs escaping."""
    monkeypatch.setenv("PG_PASSWORD", "p@ss/w:rd")

    found = read(f"{postgres}#SELECT id, title, body FROM articles WHERE body LIKE 'b%'")

    assert len(found) == 2500
    assert found["postgres.jsonl#7"] == "b%:7"


def test_postgres_is_only_read(postgres, read, monkeypatch):
    """Even where the role may write, and the statement looks like a query."""
    monkeypatch.setenv("PG_PASSWORD", "p@ss/w:rd")
    writes = "WITH x AS (DELETE FROM articles RETURNING id, body) SELECT * FROM x"

    with pytest.raises(DataError, match=r"read-only transaction|DECLARE CURSOR"):
        read(f"{postgres}#{writes}")


def test_refused_password_is_not_shown(postgres, read, monkeypatch):
    """What a server says goes into logs."""
    monkeypatch.setenv("PG_PASSWORD", "wrong-secret")

    with pytest.raises(DataError, match="password authentication failed") as caught:
        read(f"{postgres}#{QUERY}")

    assert "wrong-secret" not in str(caught.value)


def test_fault_of_the_server_half_way_is_a_data_error(postgres, read, monkeypatch):
    """What was read until then is no corpus."""
    monkeypatch.setenv("PG_PASSWORD", "p@ss/w:rd")
    ends = "CASE WHEN id = 2400 THEN (1 / (id - 2400))::text ELSE body END"
    killed = "SELECT id, CASE WHEN id = 2400 THEN pg_terminate_backend(pg_backend_pid())::text"

    with pytest.raises(DataError, match="division by zero"):
        read(f"{postgres}#SELECT id, {ends} AS text FROM articles")
    with pytest.raises(DataError, match="terminat"):
        read(f"{postgres}#{killed} ELSE body END AS text FROM articles")

    assert not list(read.place.rglob("postgres.jsonl"))


def test_engine_is_closed_where_the_query_fails(database):
    """A pool of connections must not outlive the reading."""
    spec = parse_sql(f"{database.url}#SELECT x FROM articles")

    with opened_sql(spec) as origin, pytest.raises(DataError, match="no such column"):
        origin.fetch("kb.jsonl", database.path.with_name("out"))

    assert not database.path.with_name("out").exists()
