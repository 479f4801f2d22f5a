"""Runs by command: stale ones, dead ones, and those that are taken out or renamed."""

import json

import pytest

from ragforge.cli import main
from ragforge.files.set.opening import open_dataset
from ragforge.records import Chunk
from ragforge.retrieval.local_models import is_installed

pytestmark = pytest.mark.slow


MODULE = """
asked = []

def dead(query, k):
    raise ValueError("the index is gone")

def third(query, k):
    asked.append(query)
    if len(asked) % 3 == 0:
        raise ValueError("no")
    return ["c"]
"""


@pytest.fixture
def called(capsys):
    """Call a command; return exit code, stdout and stderr."""

    def go(*words):
        capsys.readouterr()
        return main([*map(str, words)]), *capsys.readouterr()

    return go


@pytest.fixture
def documents(tmp_path):
    """Three documents whose sections hold several paragraphs, so that they can be cut finer."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for thing in ("beeswax", "linseed", "shellac"):
        paragraphs = [
            f"The {thing} of grade {grade} is a natural polish that keeps {wood} from drying out."
            for grade, wood in enumerate(("oak", "beech", "walnut", "ash"))
        ]
        text = "\n\n".join([f"# About {thing}", *paragraphs])
        (folder / f"{thing}.md").write_text(text, "utf-8")
    return folder


def cut_anew(dataset, documents, called):
    """Put other chunks under the set, with the run of before as somebody else may bring it."""
    there = open_dataset(dataset)
    rankings, origin = there.run("bm25"), there.manifest.files["runs/bm25.jsonl"].run
    cut = ["--rederive", "--documents", documents, "--max-chars", "100"]
    assert called("generate", *cut, "--out", dataset, "-q")[0] == 0
    there.write_run("bm25", rankings, origin)
    there.drop_uncited_texts()


@pytest.fixture
def recut(dataset, documents, called):
    """The set with a run of its chunks of before, and one of its chunks of now."""
    called("judge", "--dataset", dataset, "-q")
    cut_anew(dataset, documents, called)
    name = ["--retriever", "bm25", "--name", "again"]
    assert called("retrieve", "--dataset", dataset, *name, "-q")[0] == 0
    return dataset


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """A module with a user's retrievers."""
    name = f"theirs_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


NAMED = [
    ["evaluate", "--run", "bm25"],
    ["compare", "bm25", "again"],
    ["compare", "--base", "bm25", "again"],
    ["gate", "--run", "bm25", "--min", "RR=0.1"],
    ["report", "--run", "bm25"],
    ["worst", "--run", "bm25"],
    ["judge", "--run", "bm25"],
    ["evaluate", "--run", "bm25", "--retriever", "chargram"],
]


@pytest.mark.parametrize("words", NAMED, ids=" ".join)
def test_a_stale_run_that_is_named_is_refused(recut, called, words):
    """It lost most of what it retrieved when the chunks were replaced, and would only lose."""
    code, out, err = called(words[0], "--dataset", recut, *words[1:])

    assert (code, out) == (3, "")
    assert "run 'bm25' is stale: it was made on other chunks than those of now" in err
    assert f"`ragforge retrieve --dataset {recut} --retriever bm25`" in err


@pytest.mark.parametrize("command", ["evaluate", "report", "worst"])
def test_a_stale_run_that_nobody_named_is_left_out_by_name(recut, called, command):
    """The others are measured, and a line says where it went."""
    code, out, err = called(command, "--dataset", recut, "--json")

    found = json.loads(out)
    names = [run["name"] for run in found["runs"]] if command == "report" else [*found["runs"]]
    assert (code, names) == (0, ["again"])
    assert found["warnings"] == [
        line.removeprefix("warning: ") for line in err.splitlines() if "is stale" in line
    ]
    assert found["warnings"][0].startswith("run bm25 is stale and left out")


def test_a_comparison_of_all_runs_leaves_a_stale_one_out(recut, called):
    """It was told to be worse by what no longer exists."""
    called("retrieve", "--dataset", recut, "--retriever", "chargram", "-q")

    code, out, err = called("compare", "--dataset", recut, "--json")

    assert (code, json.loads(out)["names"]) == (0, ["again", "chargram"])
    assert "warning: run bm25 is stale and left out" in err


def test_a_comparison_that_lacks_a_run_says_which_is_stale(recut, called):
    """Two are there, and one is asked for."""
    code, _, err = called("compare", "--dataset", recut)

    assert code == 2
    assert "at least two runs, got again" in err
    assert "run bm25 is stale and left out" in err


def test_a_gate_takes_the_only_run_that_is_not_stale(recut, called):
    """There is no other that could be meant."""
    allow = ["--allow-few", "--allow-holes", "--allow-baseline-judge"]
    _, out, _ = called("gate", "--dataset", recut, "--min", "RR=0.1", *allow, "--json")

    found = json.loads(out)
    assert found["run"] == "again"
    assert [note for note in found["notes"] if note.startswith("run bm25 is stale and left out")]


def test_a_pool_of_all_runs_leaves_a_stale_one_out(recut, called):
    """Judging what nobody retrieves any more costs money for nothing."""
    code, _, err = called("judge", "--dataset", recut)

    assert code == 0
    assert "warning: run bm25 is stale and left out" in err


def test_the_history_says_which_run_is_stale_now(recut, called):
    """Its evaluations of before stand; it cannot go on."""
    called("evaluate", "--dataset", recut)
    (recut / "runs" / "again.jsonl").write_text(
        '{"query_id":"q","ranking":[{"chunk_id":"gone","score":1.0}]}\n', "utf-8"
    )

    code, out, err = called("history", "--dataset", recut, "--json")

    [found] = json.loads(out)["datasets"]
    assert (code, [item["run"] for item in found["runs"]]) == (0, ["again"])
    assert found["notes"][0].startswith("run again is stale: 0 of its 1 retrieved chunks")
    assert "warning: run again is stale" in err


def test_the_page_names_the_run_that_is_left_out(recut, called, tmp_path):
    """Whoever reads it did not see the command's warning."""
    page = tmp_path / "report.html"
    called("report", "--dataset", recut, "--out", page)

    assert "run bm25 is stale and left out" in page.read_text("utf-8")


def test_a_set_whose_runs_are_all_stale_is_measured_by_none(dataset, documents, called):
    """The report has other things to say; a table of measures has not."""
    cut_anew(dataset, documents, called)

    codes = [
        called(*words, "--dataset", dataset)[0]
        for words in (["evaluate"], ["worst"], ["judge"], ["gate", "--min", "RR=1"], ["report"])
    ]

    assert codes == [3, 3, 3, 3, 0]


def test_retrieving_again_is_the_way_out(recut, called):
    """What the message says must help."""
    called("retrieve", "--dataset", recut, "--retriever", "bm25", "-q")

    code, out, err = called("evaluate", "--dataset", recut, "--run", "bm25", "--json")

    assert (code, [*json.loads(out)["runs"]]) == (0, ["bm25"])
    assert "stale" not in err


def test_a_stale_run_is_replaced_by_one_with_failures(recut, called, theirs):
    """Else a run that cannot be measured would stand in the way of one that can."""
    called("retrieve", "--dataset", recut, "--retriever", f"{theirs}:third", "--name", "bm25")

    [_, listed] = json.loads(called("runs", "list", "--dataset", recut, "--json")[1])["runs"]

    assert (listed["n_queries"], listed["chunks"]) == (2, "now")
    assert listed["retriever"] == f"{theirs}:third"


def test_a_stale_run_outlives_a_retriever_that_is_down(recut, called, theirs):
    """Nothing is no better than what was retrieved once."""
    called("retrieve", "--dataset", recut, "--retriever", f"{theirs}:dead", "--name", "bm25")

    [_, listed] = json.loads(called("runs", "list", "--dataset", recut, "--json")[1])["runs"]

    assert (listed["n_queries"], listed["chunks"]) == (3, "others")


def test_runs_are_listed_with_what_they_were_made_on(recut, called):
    """Before anything is measured, one sees what can be."""
    code, out, _ = called("runs", "list", "--dataset", recut)

    rows = [line.split() for line in out.splitlines()[2:]]
    assert code == 0
    assert [(row[0], row[1], row[2], row[-1]) for row in rows] == [
        ("again", "3", "0", "bm25"),
        ("bm25", "3", "0", "bm25"),
    ]
    assert "those of now" in out
    assert "stale: " in out


def test_a_dead_run_changes_no_comparison_and_can_be_removed(dataset, called, theirs):
    """A retriever that failed on all queries joined the best group."""
    called("judge", "--dataset", dataset, "-q")
    called("retrieve", "--dataset", dataset, "--retriever", "chargram", "-q")
    alone = json.loads(called("compare", "--dataset", dataset, "--json")[1])
    dead = ["--retriever", f"{theirs}:dead", "--name", "dead"]
    assert called("retrieve", "--dataset", dataset, *dead)[0] == 4

    beside = json.loads(called("compare", "--dataset", dataset, "--json")[1])
    code, out, _ = called("runs", "rm", "--dataset", dataset, "dead", "--json")
    after = json.loads(called("compare", "--dataset", dataset, "--json")[1])

    assert beside["comparisons"] == alone["comparisons"]
    assert "dead: has no value in any query, and is left out" in beside["warnings"]
    assert (code, json.loads(out)["removed"]) == (0, ["dead"])
    assert after == alone
    assert not (dataset / "failures.jsonl").read_text("utf-8")


def test_a_report_compares_without_a_dead_run(dataset, called, theirs):
    """It stands in the tables with its failures, and in no family."""
    called("judge", "--dataset", dataset, "-q")
    called("retrieve", "--dataset", dataset, "--retriever", "chargram", "-q")
    called("retrieve", "--dataset", dataset, "--retriever", f"{theirs}:dead", "--name", "a-dead")

    found = json.loads(called("report", "--dataset", dataset, "--json")[1])

    assert [run["name"] for run in found["runs"]] == ["a-dead", "bm25", "chargram"]
    assert found["comparison"]["names"] == ["bm25", "chargram"]


def test_a_run_of_which_only_failures_are_left_can_be_removed(dataset, called, theirs):
    """It would stand in every table for ever."""
    dead = ["--retriever", f"{theirs}:dead", "--name", "dead"]
    called("retrieve", "--dataset", dataset, *dead)
    (dataset / "runs" / "dead.jsonl").unlink()

    assert called("runs", "rm", "--dataset", dataset, "dead")[0] == 0
    listed = json.loads(called("runs", "list", "--dataset", dataset, "--json")[1])["runs"]
    assert [item["run"] for item in listed] == ["bm25"]


def test_a_run_that_cannot_be_read_is_listed_and_can_be_removed(dataset, called):
    """That is the one to be found."""
    (dataset / "runs" / "torn.jsonl").write_text('{"query_id"', "utf-8")

    listed = json.loads(called("runs", "list", "--dataset", dataset, "--json")[1])["runs"]

    assert [(item["run"], item["chunks"]) for item in listed] == [
        ("bm25", "now"),
        ("torn", "unreadable"),
    ]
    assert called("runs", "rm", "--dataset", dataset, "torn")[0] == 0


def test_a_removed_run_stays_in_the_history(dataset, called):
    """What was measured was measured."""
    called("judge", "--dataset", dataset, "-q")
    called("evaluate", "--dataset", dataset)
    before = (dataset / "history.jsonl").read_bytes()

    assert called("runs", "rm", "--dataset", dataset, "bm25")[0] == 0
    assert (dataset / "history.jsonl").read_bytes() == before
    assert called("validate", "--dataset", dataset)[0] == 0


def test_no_run_is_removed_where_one_is_not_there(dataset, called):
    """A name mistyped must not cost the others."""
    code, _, err = called("runs", "rm", "--dataset", dataset, "bm25", "mb25")

    assert code == 3
    assert "no run 'mb25'; did you mean bm25?; there are: bm25" in err
    assert (dataset / "runs" / "bm25.jsonl").exists()


def test_a_run_is_renamed_as_it_is(dataset, called):
    """The same rankings under another name."""
    before = (dataset / "runs" / "bm25.jsonl").read_bytes()

    code, out, _ = called("runs", "rename", "--dataset", dataset, "bm25", "old")

    assert (code, out) == (0, f"{dataset}/runs/old.jsonl\n")
    assert (dataset / "runs" / "old.jsonl").read_bytes() == before
    assert called("validate", "--dataset", dataset)[0] == 0


@pytest.mark.parametrize(
    ("names", "code", "said"),
    [
        (["bm25", "bm25"], 3, "has a run 'bm25'"),
        (["bm25", "../x"], 2, "name '../x'"),
        (["none", "x"], 3, "no 'none'; there are: bm25"),
    ],
)
def test_a_name_that_cannot_be_taken_renames_nothing(dataset, called, names, code, said):
    """Another run must not be written over, nor a file elsewhere."""
    found, _, err = called("runs", "rename", "--dataset", dataset, *names)

    assert (found, said in err) == (code, True)
    assert [path.name for path in (dataset / "runs").iterdir()] == ["bm25.jsonl"]


@pytest.mark.parametrize(
    ("allowed", "code"), [([], 4), (["--max-failures", "34%"], 0), (["--max-failures", "0.33"], 4)]
)
def test_failures_beyond_what_is_allowed_decide_the_exit_code(
    dataset, called, theirs, allowed, code
):
    """A nightly job must not go on with a third of its queries unanswered."""
    words = ["--retriever", f"{theirs}:third", "--name", "mine", *allowed, "--json"]

    found, out, err = called("retrieve", "--dataset", dataset, *words)

    assert found == code
    assert json.loads(out)["failed"] == 1
    assert "run mine: the retriever failed on 1 of 3 queries (33.3%)" in err
    assert (dataset / "runs" / "mine.jsonl").exists()


def test_a_share_that_is_none_is_refused_before_anything_is_asked(dataset, called):
    """An hour of retrieval must not end in a usage error."""
    words = ["--retriever", "bm25", "--max-failures", "7"]

    code, _, err = called("retrieve", "--dataset", dataset, *words)

    assert code == 2
    assert "--max-failures 7" in err


@pytest.fixture
def grown(dataset, called):
    """A set with a run of its chunks of before, whose ids are all there, and one of now."""
    called("judge", "--dataset", dataset, "-q")
    made = open_dataset(dataset)
    made.write_chunks([*made.chunks(), Chunk(chunk_id="new", doc_id="d", text="Beeswax.")])
    name = ["--retriever", "bm25", "--name", "new"]
    assert called("retrieve", "--dataset", dataset, *name, "-q")[0] == 0
    return dataset


@pytest.mark.parametrize("command", ["compare", "evaluate"])
def test_a_stale_run_is_refused_by_path_as_by_name(grown, called, command):
    """Its ids are all there, so that counting them does not tell."""
    runs = ["--run", grown / "runs" / "bm25.jsonl", "--run", grown / "runs" / "new.jsonl"]

    code, out, err = called(command, "--qrels", grown / "judgments.jsonl", *runs)

    assert (code, out) == (3, "")
    assert "bm25.jsonl: is stale: it was made on other chunks than those of now" in err


def test_a_copy_elsewhere_of_a_stale_run_is_refused(grown, called, tmp_path):
    """Taken out of the set, it is what it was."""
    copy = tmp_path / "mine.jsonl"
    copy.write_bytes((grown / "runs" / "bm25.jsonl").read_bytes())

    code, _, err = called("evaluate", "--qrels", grown / "judgments.jsonl", "--run", copy)

    assert code == 3
    assert "mine.jsonl: is stale" in err


def test_a_stale_run_that_was_moved_stays_stale(grown, called):
    """A name says nothing of what a run was made on."""
    (grown / "runs" / "bm25.jsonl").rename(grown / "runs" / "before.jsonl")

    code, _, err = called("compare", "--dataset", grown, "before", "new")

    assert code == 3
    assert "run 'before' is stale: it was made on other chunks" in err
    listed = json.loads(called("runs", "list", "--dataset", grown, "--json")[1])["runs"]
    assert [(item["run"], item["chunks"], item["is_recorded"]) for item in listed] == [
        ("before", "others", True),
        ("new", "now", True),
    ]


def test_a_stale_run_copied_over_a_fresh_one_is_stale(grown, called):
    """What the manifest says of a name is of other bytes."""
    stale = (grown / "runs" / "bm25.jsonl").read_bytes()
    (grown / "runs" / "new.jsonl").write_bytes(stale)

    code, _, err = called("evaluate", "--dataset", grown, "--run", "new")

    assert code == 3
    assert "run 'new' is stale: it was made on other chunks" in err


def test_accepting_files_does_not_wash_a_stale_run(grown, called):
    """The manifest would forget the only name that tells."""
    (grown / "runs" / "bm25.jsonl").rename(grown / "runs" / "before.jsonl")

    assert called("validate", "--dataset", grown, "--accept")[0] == 0
    assert called("evaluate", "--dataset", grown, "--run", "before")[0] == 3


def test_a_fresh_run_that_was_moved_is_measured_without_counting(grown, called):
    """It was made on the chunks of now under its name of before as well."""
    (grown / "runs" / "new.jsonl").rename(grown / "runs" / "mine.jsonl")

    assert called("evaluate", "--dataset", grown, "--run", "mine")[0] == 0
    listed = json.loads(called("runs", "list", "--dataset", grown, "--json")[1])["runs"]
    assert [(item["run"], item["chunks"], item["is_recorded"]) for item in listed] == [
        ("bm25", "others", True),
        ("mine", "now", True),
    ]


@pytest.mark.skipif(not is_installed("static"), reason="no weights")
@pytest.mark.parametrize(
    ("words", "name", "spec"),
    [
        (["--retriever", "static"], "static", "static"),
        (["--retriever", "bm25+static"], "bm25-and-static", "bm25+static"),
        (["--retriever", "bm25", "--rerank", "static"], "bm25-by-static", "bm25>static"),
    ],
)
def test_local_models_make_runs(dataset, called, words, name, spec):
    """The manifest keeps what made the run, so that it can be made again."""
    code, _, _ = called("retrieve", "--dataset", dataset, *words, "-q")
    _, out, _ = called("runs", "list", "--dataset", dataset, "--json")

    assert code == 0
    assert {row["run"]: row["retriever"] for row in json.loads(out)["runs"]}[name] == spec


def test_ranking_anew_by_what_is_no_local_model_is_refused(dataset, called):
    """A misspelt name must not make a run of the first retriever."""
    code, _, err = called(
        "retrieve", "--dataset", dataset, "--retriever", "bm25", "--rerank", "mini"
    )

    assert code == 2
    assert "no local model 'mini' to rank anew with; there are minilm, static" in err
