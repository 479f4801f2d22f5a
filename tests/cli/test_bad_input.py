"""What a user gets wrong ends in one clear message and the right exit code, never a traceback."""

import json
import os
import subprocess
import sys

import pytest

from ragforge.cli import main

pytestmark = pytest.mark.slow


def said(capsys):
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err + shown.out
    return shown.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["jugde"], 2, "did you mean judge?"),
        (["generate", "--out", "x"], 2, "--documents --chunks is required"),
        (["generate", "--documents", "nowhere", "--out", "x"], 3, "nowhere"),
        (["generate", "--chunks", "nowhere.jsonl", "--out", "x"], 3, "nowhere.jsonl"),
        (["chunk", "nowhere", "--out", "x"], 3, "nowhere"),
        (["retrieve", "--dataset", "nowhere", "--retriever", "bm25"], 3, "no such directory"),
        (["judge", "--pairs", "nowhere", "--out", "x"], 3, "nowhere"),
        (["judge", "--pairs", "nowhere"], 2, "--pairs needs --out"),
        (["evaluate"], 2, "--dataset DIR, or --qrels FILE"),
        (["evaluate", "--qrels", "nowhere", "--run", "nowhere"], 3, "nowhere"),
        (["report", "--dataset", "nowhere"], 3, "no such directory"),
        (["config", "--config", "nowhere.toml"], 2, "nowhere.toml: cannot be read"),
        (["schema", "Judgement"], 2, "Judgment"),
        (["prompts", "show", "jugde_relevance"], 2, "did you mean judge_relevance?"),
    ],
)
def test_a_wrong_word_or_path_is_named(tmp_path, monkeypatch, capsys, words, code, message):
    """Whoever mistypes must see what, and what would be right."""
    monkeypatch.chdir(tmp_path)

    assert main(words) == code
    assert message in said(capsys)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "is binary"),
        ("Gr\u00fc\u00dfe".encode("latin-1"), "is not UTF-8"),
        ("text".encode("utf-16"), "is UTF-16"),
        (b"", "every document is empty"),
        (b" \n\t\n", "every document is empty"),
    ],
)
def test_a_document_that_is_no_text_is_refused(tmp_path, capsys, content, message):
    """A file in another encoding would become questions about garbage."""
    path = tmp_path / "a.md"
    path.write_bytes(content)

    assert main(["chunk", str(path), "--out", str(tmp_path / "out.jsonl")]) == 3
    assert message in said(capsys)


def test_a_folder_without_documents_says_what_is_read(tmp_path, capsys):
    """An empty set must not come out of a mistyped folder."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.png").write_bytes(b"PNG")

    assert main(["chunk", str(tmp_path / "docs"), "--out", str(tmp_path / "c.jsonl")]) == 3
    assert ".md" in said(capsys)


def test_fifty_megabytes_on_one_line_are_cut(tmp_path):
    """A minified dump in the folder must not hang the run."""
    path = tmp_path / "big.txt"
    path.write_text("word " * 10_000_000, encoding="utf-8")

    assert main(["chunk", str(path), "--out", str(tmp_path / "c.jsonl"), "-q"]) == 0


CHUNK = '{"chunk_id":"a","doc_id":"d","text":"Beeswax is a polish made by bees for oak."}'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([CHUNK, CHUNK[:40]], ":2:"),
        ([CHUNK, CHUNK], "a"),
        ([CHUNK.replace('"a"', "[]")], ":1:"),
        ([CHUNK.replace("text", "txet")], ":1:"),
        (["not json"], ":1:"),
        (["[1, 2]"], ":1:"),
        ([], "no chunks"),
    ],
)
def test_a_broken_chunk_file_names_the_line(tmp_path, capsys, lines, message):
    """The third million lines in, only the line number helps."""
    path = tmp_path / "chunks.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")

    assert main(["generate", "--chunks", str(path), "--out", str(tmp_path / "set")]) == 3
    shown = said(capsys)
    assert "chunks.jsonl" in shown
    assert message in shown


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("grade", "7", "grade"),
        ("grade", "NaN", "grade"),
        ("grade", "true", "grade"),
        ("grade", '"2"', "grade"),
        ("grades", "2", "grade"),
    ],
)
def test_a_wrong_grade_in_a_dataset_names_file_line_and_field(
    dataset, capsys, field, value, message
):
    """A grade of 7 that counted would lift every mean."""
    path = dataset / "judgments.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[1] = lines[1].replace('"grade":3', f'"{field}":{value}')
    path.write_text("\n".join(lines), encoding="utf-8")

    assert main(["evaluate", "--dataset", str(dataset)]) == 3
    shown = said(capsys)
    assert "judgments.jsonl:2:" in shown
    assert message in shown


def test_a_torn_last_line_in_a_dataset_is_named(dataset, capsys):
    """A file that lost its end must not pass for a shorter one."""
    path = dataset / "queries.jsonl"
    path.write_bytes(path.read_bytes()[:-30])

    assert main(["evaluate", "--dataset", str(dataset)]) == 3
    assert "queries.jsonl:3:" in said(capsys)


def test_a_query_that_comes_twice_is_refused(dataset, capsys):
    """Counted twice, one query would weigh double."""
    path = dataset / "queries.jsonl"
    path.write_text(path.read_text(encoding="utf-8") * 2, encoding="utf-8")

    assert main(["evaluate", "--dataset", str(dataset)]) == 3
    assert "comes twice, first in line 1" in said(capsys)


def test_a_run_of_another_corpus_is_refused(dataset, capsys):
    """A run of another corpus gives zeros that look like a bad retriever."""
    run = dataset / "runs" / "other.jsonl"
    query_id = json.loads((dataset / "queries.jsonl").read_text().splitlines()[0])["query_id"]
    hit = {"chunk_id": "elsewhere", "score": 1.0}
    run.write_text(json.dumps({"query_id": query_id, "ranking": [hit]}) + "\n", encoding="utf-8")

    assert main(["judge", "--dataset", str(dataset), "--run", "other"]) == 3
    assert "0 of its 1 retrieved chunks are in the set" in said(capsys)


def test_chunk_ids_that_the_corpus_lacks_are_reported(dataset, capsys):
    """A live index may be ahead of the set; what it adds cannot be judged."""
    run = dataset / "runs" / "bm25.jsonl"
    rankings = [json.loads(line) for line in run.read_text("utf-8").splitlines()]
    query_id = rankings[0]["query_id"]
    ids = [item["chunk_id"] for ranking in rankings for item in ranking["ranking"]]
    hits = [{"chunk_id": c, "score": 1.0} for c in dict.fromkeys(ids)]
    rows = [{"query_id": query_id, "ranking": [*hits, {"chunk_id": "elsewhere", "score": 0.5}]}]
    rows += [{"query_id": f"other{n}", "ranking": hits} for n in range(9)]
    run.with_name("ahead.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")

    assert main(["judge", "--dataset", str(dataset), "--run", "ahead"]) == 0
    assert "not in chunks.jsonl" in said(capsys)


def test_a_run_that_is_not_there_names_those_that_are(dataset, capsys):
    """A mistyped run name must not silently judge nothing."""
    assert main(["judge", "--dataset", str(dataset), "--run", "bm52"]) == 3
    assert "there are: bm25" in said(capsys)


def test_a_directory_of_another_dataset_is_left_alone(tmp_path, documents, dataset, capsys):
    """Two corpora in one directory would mix their judgments."""
    (documents / "new.md").write_text(
        "# New\n\nA new text is a text that came later, much later.\n"
    )
    before = (dataset / "queries.jsonl").read_bytes()

    assert main(["generate", "--documents", str(documents), "--out", str(dataset)]) == 2
    told = said(capsys)
    assert "holds another dataset (made from other chunks)" in told
    assert "or put these chunks under it with `ragforge generate --rederive`" in told
    assert (dataset / "queries.jsonl").read_bytes() == before


def test_a_directory_of_other_files_is_left_alone(documents, capsys):
    """`--out .` in a project must not fill it with files."""
    assert main(["generate", "--documents", str(documents), "--out", str(documents)]) == 2
    assert "holds no dataset" in said(capsys)


def test_queries_edited_by_hand_are_not_overwritten(documents, dataset, capsys):
    """An hour of corrections must survive a rerun."""
    path = dataset / "queries.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("What", "Which"), encoding="utf-8")

    assert main(["generate", "--documents", str(documents), "-n", "3", "--out", str(dataset)]) == 2
    assert "was changed by hand" in said(capsys)


def test_a_shortfall_says_why_and_keeps_what_there_is(tmp_path, documents, capsys):
    """Ninety of a hundred queries are worth having, and worth knowing about."""
    out = tmp_path / "set"

    assert main(["generate", "--documents", str(documents), "-n", "500", "--out", str(out)]) == 5
    assert "of 500 queries; the corpus carries no more" in said(capsys)
    assert (out / "queries.jsonl").stat().st_size > 0


@pytest.mark.parametrize("spec", ["bm52", "no.such:thing", "os:nothing", "ftp://x"])
def test_a_retriever_that_is_not_there_is_a_usage_error(dataset, capsys, spec):
    """Nobody should wait for an index before learning of a typing error."""
    assert main(["retrieve", "--dataset", str(dataset), "--retriever", spec]) == 2
    assert spec.split(":")[0] in said(capsys)


def test_a_missing_key_names_the_variable(documents, tmp_path, monkeypatch, capsys):
    """The commonest first error must carry its own cure."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    words = ["generate", "--documents", str(documents), "--out", str(tmp_path / "set")]

    assert main([*words, "--model", "gpt-5-mini"]) == 2
    assert "OPENAI_API_KEY" in said(capsys)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_named(tmp_path, capsys):
    """Permissions are the user's to mend, once named."""
    path = tmp_path / "a.md"
    path.write_text("# A\n", encoding="utf-8")
    path.chmod(0)

    assert main(["chunk", str(path), "--out", str(tmp_path / "c.jsonl")]) == 3
    assert "cannot be read" in said(capsys)


def test_a_full_disk_is_named_and_the_old_file_stays(tmp_path, documents, capsys):
    """Half a file would be read as a whole one later."""
    assert main(["chunk", str(documents), "--out", "/dev/full/chunks.jsonl"]) == 3
    assert "cannot be written" in said(capsys)


def test_a_bug_leaves_a_log_and_no_traceback(dataset, monkeypatch, tmp_path, capsys):
    """A user can attach a file; a wall of text on the terminal helps nobody."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("ragforge.files.set.opening.open_dataset", lambda path: 1 / 0)

    assert main(["report", "--dataset", str(dataset)]) == 70
    assert "this is a bug" in said(capsys)
    [log] = tmp_path.glob("ragforge-bug-*.log")
    assert "ZeroDivisionError" in log.read_text(encoding="utf-8")


def test_a_dataset_without_queries_says_how_to_get_some(dataset, capsys):
    """An empty run looks like a retriever that finds nothing."""
    (dataset / "queries.jsonl").write_text("", encoding="utf-8")

    assert main(["retrieve", "--dataset", str(dataset), "--retriever", "bm25"]) == 3
    assert "ragforge generate" in said(capsys)


def test_a_golden_set_of_other_documents_is_refused(tmp_path, dataset, capsys):
    """Queries without a single relevant passage would all score 0."""
    path = tmp_path / "golden.json"
    query = {"id": "h1", "query": "What?", "relevant_doc_ids": ["elsewhere"]}
    path.write_text(json.dumps({"queries": [query]}), encoding="utf-8")
    before = (dataset / "queries.jsonl").read_bytes()

    assert main(["import", str(path), "--dataset", str(dataset)]) == 3
    assert "h1: elsewhere is no chunk" in said(capsys)
    assert (dataset / "queries.jsonl").read_bytes() == before


def test_links_and_pipes_are_written_through(tmp_path, documents):
    """Replacing a link or a device by a file would take it from everybody else."""
    target, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(target)

    assert main(["chunk", str(documents), "--out", str(link), "-q"]) == 0
    assert link.is_symlink()
    assert target.stat().st_size > 0


def test_an_error_is_one_json_object_too(tmp_path, capsys):
    """A script that asked for JSON must get JSON, whatever happens."""
    assert main(["report", "--dataset", str(tmp_path / "no")]) == 3
    capsys.readouterr()

    assert main(["evaluate", "--dataset", str(tmp_path / "no"), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["exit_code"] == 3


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("redirection", "code"), [("> /dev/full", 3), ("2> /dev/full", 0), (">&-", 0), ("2>&-", 0)]
)
def test_a_stream_that_cannot_be_written_is_no_bug(
    dataset, redirection, code, unbuffered, monkeypatch
):
    """A full log disk is the user's to see, not a traceback."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    words = f"{sys.executable} -m ragforge evaluate --dataset {dataset} {redirection}"

    shown = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)

    assert shown.returncode == code
    assert "bug" not in shown.stderr
    assert "ignored" not in shown.stderr


def odd_place(folder, name):
    """Make a file under a name that is not UTF-8, where the file system takes such names."""
    try:
        (folder / name).write_bytes(b"")
    except OSError:
        pytest.skip("the file system takes only UTF-8")
    return folder / name


@pytest.mark.parametrize(
    "command",
    [
        "evaluate --dataset {set} --json",
        "compare --dataset {set} --json",
        "validate --dataset {set} --json",
        "worst --dataset {set} --run b\\xff --json",
        "judge --dataset {set} --run b\\xff --json",
        "report --dataset {set} --out {set}.html",
        "refresh --dataset {set} --documents {documents} --allow-baseline --json",
    ],
)
def test_a_run_whose_name_is_not_utf_8_is_shown_with_its_bytes(dataset, documents, command, capsys):
    """A run that came from an old archive was called a bug, and stopped all others."""
    run = odd_place(dataset / "runs", "b\udcff.jsonl")
    run.write_bytes((dataset / "runs" / "bm25.jsonl").read_bytes())

    words = {"set": dataset, "documents": documents}
    code = main([word.format(**words) for word in command.split()])

    assert (code, "bug" in said(capsys)) == (0, False)


def test_a_set_may_lie_in_a_folder_whose_name_is_not_utf_8(tmp_path, documents):
    """Its name gets into records, which are UTF-8."""
    place = odd_place(tmp_path, "set\udcff")
    place.unlink()

    assert main(["generate", "--documents", str(documents), "-n", "2", "--out", str(place)]) == 0
    manifest = json.loads((place / "manifest.json").read_text("utf-8"))
    assert manifest["name"] == "set\\xff"
