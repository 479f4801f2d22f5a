"""What a command imports before it works: most of the time that a short one takes."""

import json
import subprocess
import sys

import pytest
from measured_set import make_measured_set

from ragforge.cli import COMMANDS

HEAVY = ("numpy", "asyncio", "openai", "tqdm", "tenacity", "rensa", "markdown_it", "ssl")
"""Modules that take 20 ms of CPU and more, and those that bring such."""
RUN = """
import io, json, sys
from ragforge.cli import main
kept, sys.stdout = sys.stdout, io.StringIO()
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=kept)
"""


def loaded(*words, cwd=None):
    """Return the modules that a command loads in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words], cwd=cwd, capture_output=True, text=True, check=True
    )
    code, modules = json.loads(done.stdout)
    assert code in (0, 1, 2), done.stderr  # 1: a gate does not pass.
    return modules


@pytest.fixture
def workplace(tmp_path):
    """A folder with a set, and files of the kinds that commands take."""
    make_measured_set(tmp_path / "set", 3)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "care.txt").write_text("Beeswax is a natural polish for oak.\n")
    (tmp_path / "golden.csv").write_text(
        "question,answer,doc_id,quote\nWhat is beeswax?,A polish.,care.txt,Beeswax is a natural\n"
    )
    (tmp_path / "traffic.jsonl").write_text(
        '{"query_id": "q1", "query": "What is beeswax?", "answer": "A polish.", '
        '"contexts": ["Beeswax is a natural polish for oak."]}\n'
    )
    (tmp_path / "qrels.trec").write_text("q1 0 d1 1\nq2 0 d1 1\n")
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 2.0 r\nq2 Q0 d2 1 2.0 r\n")
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_loads_nothing_heavy(name):
    """It needs the names of options, and is asked for by somebody who waits."""
    modules = loaded(name, "--help")

    # What `mock` can be told is beside the server that is told it.
    allowed = {"asyncio", "ssl"} if name == "mock" else set()
    assert [each for each in HEAVY if each in modules and each not in allowed] == []
    assert len(modules) <= (370 if allowed else 290)


@pytest.mark.parametrize(
    "words", [(), ("--help",), ("--version",), ("evalute",), ("help", "measures")], ids=" ".join
)
def test_what_no_command_is_needed_for_loads_no_pydantic(words):
    """A completion or a script asks for the version and nothing else."""
    modules = loaded(*words)

    assert "pydantic" not in modules
    assert len(modules) <= 190


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (("validate", "--dataset", "set"), 330),
        (("runs", "list", "--dataset", "set"), 330),
        (("export", "--dataset", "set", "--as", "trec", "--out", "out"), 335),
        (("schedule",), 250),
        (("config",), 280),
        (("help", "measures"), 250),
        (("schema", "Judgment"), 290),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_a_command_that_computes_nothing_loads_no_numpy(words, most, tmp_path):
    """It would be half of the time that the command takes."""
    make_measured_set(tmp_path / "set", 3)

    modules = loaded(*words, cwd=tmp_path)

    assert [name for name in ("numpy", "asyncio", "openai", "tqdm") if name in modules] == []
    assert len(modules) <= most


@pytest.mark.parametrize(
    ("line", "heavy"),
    [
        ("worst --dataset set", "numpy asyncio openai tqdm rensa markdown_it"),
        ("chunk docs --out chunks.jsonl -q", "numpy asyncio openai tqdm rensa sqlite3"),
        ("import golden.csv --documents docs --out new -q", "numpy asyncio openai tqdm rensa"),
        ("judge --dataset set --dry-run", "numpy openai tqdm tenacity rensa markdown_it"),
        ("evaluate --dataset set", "asyncio openai tqdm rensa markdown_it"),
        ("compare --dataset set bad good", "asyncio openai tqdm rensa markdown_it"),
        ("gate --dataset set --run good --min RR=0", "asyncio openai tqdm rensa markdown_it"),
        ("history --dataset set", "asyncio openai tqdm rensa markdown_it"),
    ],
    ids=lambda text: text.split()[0],
)
def test_a_command_loads_no_module_that_it_has_no_use_for(line, heavy, workplace):
    """numpy takes as long as all else that such a command does, the others 20 to 60 ms each."""
    modules = loaded(*line.split(), cwd=workplace)

    assert [name for name in heavy.split() if name in modules] == []


def test_a_sheet_for_reviewers_loads_a_search_only_for_queries_without_an_answer(tmp_path):
    """The chunks nearest to those are looked for; beside others stands their evidence."""
    made = make_measured_set(tmp_path / "set", 3)
    made.write_queries([query for query in made.queries() if query.answerable])

    modules = loaded("review", "export", "--dataset", "set", "--out", "page.html", cwd=tmp_path)

    heavy = ("numpy", "asyncio", "openai", "tqdm", "rensa")
    assert [name for name in heavy if name in modules] == []


def test_measures_of_files_load_no_numpy(tmp_path):
    """Whoever has trec_eval in a script waits for each call of it."""
    (tmp_path / "qrels.trec").write_text("q1 0 d1 1\nq2 0 d1 1\n")
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 2.0 r\nq2 Q0 d2 1 2.0 r\n")

    modules = loaded("evaluate", "--qrels", "qrels.trec", "--run", "run.trec", cwd=tmp_path)

    assert [name for name in ("numpy", "asyncio", "openai", "tqdm") if name in modules] == []


@pytest.mark.parametrize(
    "line",
    [
        "init --yes",
        "chunk docs --out chunks.jsonl -q",
        "validate --dataset set",
        "export --dataset set --as trec --out out",
        "runs list --dataset set",
        "evaluate --dataset set",
        "evaluate --qrels qrels.trec --run run.trec --rel-threshold 1",
        "compare --dataset set bad good",
        "retrieve --dataset set --retriever bm25 -q",
        "gate --dataset set --run good --min RR=0",
        "worst --dataset set",
        "history --dataset set",
        "judge --dataset set --offline-model none -q",
        "judge --dataset set --dry-run --concurrency 8 --max-cost-usd 0.5",
        "plan --dataset set",
        "diff set set",
        "schedule",
        "config",
        "prompts list",
        "completion bash",
    ],
)
def test_a_command_that_reads_plain_files_loads_no_pydantic(line, workplace):
    """Its import and the validators that it builds are most of what such a command takes."""
    modules = loaded(*line.split(), cwd=workplace)

    assert [name for name in ("pydantic", "pydantic_core") if name in modules] == []


@pytest.mark.parametrize(
    "line",
    [
        "validate --dataset set",
        "runs list --dataset set",
        "diff set set",
    ],
)
def test_a_command_loads_no_module_for_what_it_does_not_do(line, tmp_path):
    """Each takes two to ten milliseconds, in a command that has a tenth of a second."""
    make_measured_set(tmp_path / "set", 3)

    modules = loaded(*line.split(), cwd=tmp_path)

    unused = (
        "difflib",
        "shutil",
        "tempfile",
        "traceback",
        "zipfile",
        "tomllib",
        "socket",
        "logging",
    )
    assert [name for name in unused if name in modules] == []


@pytest.mark.parametrize(
    ("line", "most", "unused"),
    [
        (
            "evaluate --dataset set",
            112,
            "evaluation files.formats.qrels files.formats.runs files.formats.trec "
            "files.formats.row_relevance files.row measures.power",
        ),
        (
            "compare --dataset set bad good",
            125,
            "files.formats.qrels files.formats.runs files.formats.trec evaluating.answers.rates",
        ),
        (
            "gate --dataset set --run good --min RR=0",
            120,
            "report.junit pipeline.history evaluating.history.trends files.formats.runs",
        ),
        (
            "judge --dataset set --offline-model none -q",
            130,
            "prompts llm.structured files.formats.pairs corpus.chunking corpus.documents "
            "pipeline.evaluated pipeline.graded_quotes retrieval.tokens",
        ),
        (
            "import golden.csv --documents docs --out new -q",
            116,
            "report.generation measures.power pipeline.intake.logs pipeline.intake.runs_and_qrels "
            "pipeline.intake.former_grades measures.scores corpus.origins.sql corpus.origins.git "
            "stages.asking llm.chat",
        ),
        (
            "chunk docs --out chunks.jsonl -q",
            78,
            "files.set.dataset files.manifest llm.budget mock.script evaluating.gate plugins "
            "corpus.quote_locations corpus.origins.sql corpus.origins.git corpus.origins.bucket",
        ),
        (
            "ground --answers traffic.jsonl --out grounded.jsonl --offline-model none -q",
            95,
            "pipeline.retrieving pipeline.answer.asking_systems retrieval.answerers http_service "
            "stages.ground.llm evaluating.answers.rates measures.unseen_values prompts "
            "files.set.dataset evaluating.runs evaluating.judgments",
        ),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) and "--" in value else "",
)
def test_a_command_loads_few_modules_of_the_package(line, most, unused, workplace):
    """Each takes 0.4 ms; half of what a command loaded was of other commands."""
    modules = loaded(*line.split(), cwd=workplace)

    own = {name.removeprefix("ragforge.") for name in modules if name.startswith("ragforge.")}
    assert [name for name in unused.split() if name in own] == []
    assert len(own) <= most


@pytest.mark.parametrize(
    ("line", "unused"),
    [
        ("evaluate --dataset set", "csv zipfile difflib"),
        ("plan --dataset set", "csv zipfile difflib subprocess"),
        ("compare --dataset set bad good", "csv decimal gzip zipfile subprocess xml"),
        ("gate --dataset set --run good --min RR=0", "csv zipfile xml http.client"),
        (
            "judge --dataset set --offline-model none -q",
            "csv decimal fractions zipfile difflib importlib.resources http.client sqlite3",
        ),
        (
            "import golden.csv --documents docs --out new -q",
            "fractions statistics decimal importlib.resources zipfile subprocess",
        ),
        ("chunk docs --out chunks.jsonl -q", "csv decimal difflib subprocess hmac zipfile"),
        (
            "ground --answers traffic.jsonl --out grounded.jsonl --offline-model none -q",
            "numpy http.client zipfile importlib.resources difflib csv",
        ),
    ],
    ids=lambda value: value.split()[0] if "--" in value else "",
)
def test_a_command_loads_no_module_of_python_for_others(line, unused, workplace):
    """Those of Python take one to five milliseconds each; `http.client` takes 17."""
    modules = loaded(*line.split(), cwd=workplace)

    assert [name for name in unused.split() if name in modules] == []


def test_a_file_with_a_fault_is_told_as_pydantic_tells_it(tmp_path):
    """It is loaded then: nothing is read by laxer rules."""
    made = make_measured_set(tmp_path / "set", 3)
    rows = made.path / "judgments.jsonl"
    rows.write_text(rows.read_text().replace('"grade":0', '"grade":7', 1))

    done = subprocess.run(
        [sys.executable, "-m", "ragforge", "evaluate", "--dataset", "set"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 3
    assert "grade: input should be less than or equal to 3, got 7" in done.stderr
