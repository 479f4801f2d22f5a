"""The plugin as users have it: suites of their own, run by pytest."""

import os
import subprocess
import sys

import numpy as np
import pydantic
import pytest
from evidence_sets import dataset_of, query, random_set, write_run
from measured_set import make_measured_set

from ragforge.config import EvaluateSettings
from ragforge.files.manifest import RunOrigin
from ragforge.files.set.baseline import write_baseline
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.versions import publish, refresh_lock, stage_version
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pytest_plugin import asserting, retrieved
from ragforge.records import Chunk

pytestmark = pytest.mark.slow


# What an inner suite imports first is forgotten after it; numpy cannot be imported twice, and a
# record that one pydantic completed fits no other.
PRELOADED = (asserting, retrieved, np, pydantic)

# Inner suites must not take over what is set for this one.
INNER = ("-p", "no:cacheprovider", "--strict-markers", "-W", "error")


@pytest.fixture
def dataset(pytester):
    """Thirty queries: `good` is perfect but fails on the last, `bad` has each answer second."""
    return make_measured_set(pytester.path / "set", 30)


@pytest.fixture
def run(pytester, dataset):
    """Run a suite of one file."""

    def run_suite(source, *words):
        pytester.makepyfile(test_suite=f"import pytest\n{source}")
        return pytester.runpytest_inprocess(*INNER, *words)

    return run_suite


def marked(test, **marker):
    """Return a test with the marker."""
    given = ", ".join(f"{name}={value!r}" for name, value in ({"dataset": "set"} | marker).items())
    return f"@pytest.mark.ragforge({given})\n{test}\n"


GATE = "def test_gate(assert_measure):\n    assert_measure({})"
RUN = "def test_run(ragforge_run):\n    {}"
QUERY = "def test_query(ragforge_query):\n    {}"


def test_a_suite_without_markers_imports_nothing_of_ours(pytester):
    """Whoever has ragforge installed pays for it in every suite, so it must cost nothing there."""
    pytester.makepyfile(
        "import sys\n"
        "def test_nothing():\n"
        "    ours = {name for name in sys.modules if name.startswith('ragforge')}\n"
        "    assert ours == {'ragforge', 'ragforge.pytest_plugin'}\n"
        "    assert not {'numpy', 'pydantic', 'openai', 'tqdm'} & set(sys.modules)\n"
    )

    found = pytester.runpytest_subprocess(*INNER, "-q", "-p", "no:hypothesispytest")

    found.assert_outcomes(passed=1)
    assert "ragforge" not in found.stdout.str() + found.stderr.str()


def test_a_run_above_the_minimum_passes(run):
    """The plain case."""
    result = run(marked(GATE.format("'nDCG@10', min=0.5, allow=['holes']"), run="bad"))

    result.assert_outcomes(passed=1)


def test_a_run_below_the_minimum_fails_at_the_line_of_the_test(run):
    """The traceback is for the reader of the suite, not of the plugin."""
    result = run(marked(GATE.format("'RR', min=0.6, allow=['holes']"), run="bad"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*test_suite.py:4: AssertionError"])
    result.stdout.fnmatch_lines(["E *min RR*0.6000*0.5000*FAIL*"])
    result.stdout.no_fnmatch_line("*asserting.py*")


def test_a_failure_of_the_gate_is_an_assertion_that_can_be_expected(run):
    """A suite may state that a run is not good enough yet."""
    body = (
        "def test_gate(assert_measure):\n"
        "    with pytest.raises(AssertionError, match='min RR 0.6'):\n"
        "        assert_measure('RR', min=0.6, allow=['holes'])"
    )

    run(marked(body, run="bad")).assert_outcomes(passed=1)


def test_failures_count_at_their_worst(run):
    """A retriever that fails on the hard queries must not pass because it did."""
    result = run(marked(GATE.format("'RR', min=0.99, allow=['holes']"), run="good"))

    result.assert_outcomes(failed=1)


def test_too_few_queries_refuse_the_gate(run, pytester):
    """Four queries say nothing, whatever their mean is; the message says how to go on."""
    make_measured_set(pytester.path / "few", 4)

    result = run(marked(GATE.format("'RR', min=0.1"), run="bad", dataset="few"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *4 queries have a value*", "E *allow=*'few'*"])


def test_a_refusal_can_be_allowed(run, pytester):
    """Small sets have their use while a suite is built."""
    make_measured_set(pytester.path / "few", 4)
    call = "'RR', min=0.1, point=True, allow=['few', 'holes']"

    run(marked(GATE.format(call), run="bad", dataset="few")).assert_outcomes(passed=1)


@pytest.fixture
def baseline(dataset, pytester):
    """The run `good` as a baseline."""
    [good] = evaluate_runs(dataset, ["good"], EvaluateSettings())
    write_baseline(pytester.path / "baseline.json", good.baseline)


@pytest.mark.parametrize(("name", "outcome"), [("good", "passed"), ("bad", "failed")])
def test_a_run_is_held_against_a_baseline(run, baseline, name, outcome):
    """Most gates ask whether a change made it worse."""
    call = "'RR', max_drop=0.2, baseline='baseline.json', allow=['holes']"

    result = run(marked(GATE.format(call), run=name))

    result.assert_outcomes(**{outcome: 1})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'nDGC@10', min=0.5", "*nDGC@10*"),
        ("'RR'", "*give min, or max_drop with a baseline*"),
        ("'RR', max_drop=0.1", "*max_drop and baseline go together*"),
        ("'RR', min=1.5", "*out of range*"),
        ("'RR', min='high'", "*expected a number, got 'high'*"),
        ("'RR', min=0.1, allow='few'", "*allow: expected a list of: few*"),
        ("'RR', max_drop=0.1, baseline='none.json'", "*none.json*"),
        ("'RR', max_drop=0.1, baseline='last'", "*the history has no earlier evaluation*"),
    ],
)
def test_a_wrong_call_fails_with_a_sentence(run, call, message):
    """Nobody should read a traceback of ours to find a typing error of theirs."""
    result = run(marked(GATE.format(call), run="bad"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ({"dataset": "nowhere"}, "*nowhere: no such directory*"),
        ({"dataset": ""}, "*no dataset: mark the test*"),
        ({"dataset": 3}, "*dataset: expected a path, got 3*"),
        ({"run": "bm25"}, "*no 'bm25'; there are: bad, good*"),
        ({"run": 3}, "*run: expected a text, got 3*"),
        ({}, "*which run? The marker names none; there are: bad, good*"),
        ({"run": "bad", "retriever": "bm25"}, "*either run or retriever*"),
        ({"retriever": "no_such_module:it"}, "*no_such_module*"),
        ({"run": "bad", "measures": ["nDGC"]}, "*nDGC*"),
        ({"run": "bad", "rel_threshold": "high"}, "*rel_threshold*"),
        ({"runs": "bad"}, "*'runs' is unknown; did you mean 'run'?"),
    ],
)
def test_a_wrong_marker_fails_the_test_and_no_other(run, marker, message):
    """One typing error must not take the whole suite down."""
    other = "def test_other(): pass\n"

    result = run(other + marked(RUN.format("pass"), **marker))

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    result.stdout.no_fnmatch_line("*During handling*")


def test_a_run_of_other_chunks_fails_the_test(run, dataset):
    """A suite must not go red, or green, by chunks that are gone."""
    dataset.write_chunks([Chunk(chunk_id="new", doc_id="d", text="New.")])

    result = run(marked(GATE.format("'RR', min=0.1, allow=['holes']"), run="bad"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*run 'bad' is stale: 0 of its 90 retrieved chunks*"])


@pytest.mark.parametrize("given", [{"run": "bad"}, {"retriever": "bm25"}], ids=str)
def test_edited_chunks_fail_the_test(run, dataset, given):
    """The grades are of other texts; the set goes by its own name, also beside itself."""
    path = dataset.chunks_path
    path.write_text(path.read_text("utf-8").replace('"text":"', '"text":"Not '), "utf-8")

    result = run(marked(GATE.format("'RR', min=0.1, allow=['holes']"), **given))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*chunks.jsonl: was changed since ragforge wrote it*"])
    result.stdout.fnmatch_lines([f"*validate --dataset {dataset.path} --accept*"])


def test_the_only_run_that_is_not_stale_is_taken_and_the_other_told(run, dataset):
    """There is no other that could be meant."""
    origin = RunOrigin(chunks_sha256="of other chunks")
    dataset.write_run("good", dataset.run("good"), origin)

    result = run(marked(GATE.format("'RR', min=0.1, allow=['holes']")))

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*, bad (30 queries*", "warning: run good is stale and left out*"])


def test_a_marker_without_keywords_is_explained(run):
    """`ragforge("set")` looks right."""
    result = run("@pytest.mark.ragforge('set')\ndef test_run(ragforge_run): pass")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*'set' has no name; expected keywords*"])


def test_the_run_is_what_was_evaluated(run):
    """Whatever no assertion of ours covers can be asserted with it."""
    body = RUN.format("assert ragforge_run.scores.mean('RR') == 0.5")

    run(marked(body, run="bad", measures="RR")).assert_outcomes(passed=1)


def test_each_answerable_query_is_a_case_with_its_id(run):
    """A case that is renamed or moved loses its past in every CI service."""
    result = run(marked(QUERY.format("pass"), run="bad"), "-v")

    result.assert_outcomes(passed=30)
    result.stdout.fnmatch_lines(["*::test_query?q00? PASSED*", "*::test_query?q29? PASSED*"])
    result.stdout.no_fnmatch_line("*never*")


def test_a_query_has_its_values_and_graded_chunks(run):
    """What failed must be visible in the test that failed."""
    body = QUERY.format(
        "assert ragforge_query.value('MRR') == 0.5\n"
        "    assert ragforge_query.text.startswith('Where is fact')\n"
        "    assert [c.grade for c in ragforge_query.retrieved] == [0, 3, None]\n"
        "    assert ragforge_query.latency_s == 0.02"
    )

    run(marked(body, run="bad", measures=["RR"]), "-k", "q07").assert_outcomes(passed=1)


def test_a_query_that_failed_has_no_value(run):
    """A failure is never a value, so that no comparison with it can pass."""
    body = QUERY.format("assert ragforge_query.value('RR') >= 0")

    result = run(marked(body, run="good"))

    result.assert_outcomes(passed=29, failed=1)
    result.stdout.fnmatch_lines(["*query q29: no RR: the retriever failed on it*"])


def test_a_set_that_cannot_be_read_fails_where_its_queries_were_to_be_cases(run):
    """A parametrised test without cases is skipped, and a gate that is skipped lets all through."""
    result = run(marked(QUERY.format("pass"), run="bad", dataset="nowhere"))

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*nowhere: no such directory*"])


def test_the_ini_file_names_the_dataset(run, pytester):
    """A suite with one dataset should say so once."""
    pytester.makeini("[pytest]\nragforge_dataset = set\n")

    result = run("@pytest.mark.ragforge(run='bad')\n" + RUN.format("pass"))

    result.assert_outcomes(passed=1)


def test_a_nearer_marker_goes_before(run):
    """A module names the dataset, and a test the run."""
    source = "pytestmark = pytest.mark.ragforge(dataset='set', run='nowhere', measures='RR')\n"
    body = RUN.format("assert (ragforge_run.evaluation.run, [*ragforge_run.evaluation.measures])")

    result = run(f"{source}@pytest.mark.ragforge(run='bad')\n{body} == ('bad', ['RR'])")

    result.assert_outcomes(passed=1)


def test_a_retriever_is_run_without_writing_into_the_dataset(run, dataset, pytester):
    """A test that changes what the next test reads is no test."""
    before = {path: path.read_bytes() for path in dataset.path.rglob("*") if path.is_file()}

    result = run(marked(RUN.format("assert ragforge_run.scores.mean('RR') > 0"), retriever="bm25"))

    result.assert_outcomes(passed=1)
    after = {path: path.read_bytes() for path in dataset.path.rglob("*") if path.is_file()}
    assert after == before


def test_a_found_settings_file_chooses_nothing_that_needs_trust(run, pytester, monkeypatch):
    """The command line refuses it, and a suite must not be the way around."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(pytester.path / "config"))
    (pytester.path / "ragforge.toml").write_text("[model]\nbase_url = 'http://127.0.0.1:1/v1'\n")

    result = run(marked(RUN.format("pass"), retriever="bm25"))

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*./ragforge.toml: model.base_url: needs your trust*"])


def test_a_found_settings_file_is_named_in_the_summary(run, pytester, monkeypatch):
    """Values rest on it, and nobody named it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(pytester.path / "config"))
    (pytester.path / "ragforge.toml").write_text("[retrieve]\nk = 3\n")

    result = run(marked(RUN.format("pass"), retriever="bm25"))

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["settings: ./ragforge.toml (not trusted)"])


def test_a_retriever_of_the_user_is_asked_once(run, pytester):
    """Thirty cases must not ask thirty times thirty queries."""
    pytester.makepyfile(
        my_search="""
        from ragforge.testing import FixedRetriever

        class Counted(FixedRetriever):
            asked = 0

            async def retrieve(self, query, k):
                Counted.asked += 1
                return await super().retrieve(query, k)

        retriever = Counted({})
        """
    )
    pytester.syspathinsert()
    body = QUERY.format("import my_search\n    assert my_search.Counted.asked == 31")

    result = run(marked(body, retriever="my_search:retriever"))

    result.assert_outcomes(passed=30)


def test_a_retriever_is_asked_once_for_whatever_measures(run, pytester):
    """Each measure would be of another ranking, and each ranking be paid for."""
    pytester.syspathinsert()
    pytester.makepyfile(
        my_search="asked = []\n"
        "def retriever(query, k):\n"
        "    asked.append(query)\n"
        "    return ['cq00']\n"
    )
    body = (
        "def test_gate(assert_measure):\n"
        "    import my_search\n"
        "    for measure in ('nDCG@10', 'P@3', 'Success@2'):\n"
        "        assert_measure(measure, min=0, allow=['holes'])\n"
        "    assert len(my_search.asked) == 31"
    )

    run(marked(body, retriever="my_search:retriever")).assert_outcomes(passed=1)


def test_a_retriever_of_a_nearer_marker_goes_before_a_run(run):
    """Either says which run; a module with a run could have no test of a retriever."""
    source = "pytestmark = pytest.mark.ragforge(dataset='set', run='bad')\n"
    body = RUN.format("assert ragforge_run.evaluation.run == 'bm25'")

    result = run(f"{source}@pytest.mark.ragforge(retriever='bm25')\n{body}")

    result.assert_outcomes(passed=1)


def test_the_session_ends_with_what_was_measured(run):
    """A log of CI says how good the run is also on the days on which it is good enough."""
    result = run(marked(GATE.format("'RR', min=0.1"), run="good", measures="RR"))

    [title] = [at for at, line in enumerate(result.outlines) if "= ragforge =" in line]
    told = "set version 1, good (30 queries, 1 failed, 29 of 87 without a grade): RR 1.000 "
    assert result.outlines[title + 1].startswith(told)


def test_a_retriever_runs_while_the_loop_of_a_test_runs(run):
    """Suites of async code keep a loop of their own, which nothing may patch or end."""
    source = """
import asyncio

@pytest.fixture
def loop_is_running(request):
    async def measure():
        return request.getfixturevalue('ragforge_run')
    return asyncio.run(measure())
"""
    body = "def test_run(loop_is_running):\n    assert loop_is_running.scores.mean('RR') > 0"

    run(source + marked(body, retriever="bm25")).assert_outcomes(passed=1)


def test_the_plugin_can_be_switched_off(run):
    """`-p no:ragforge` is how pytest's users switch things off."""
    result = run("def test_run(ragforge_run): pass", "-p", "no:ragforge")

    assert any("fixture 'ragforge_run' not found" in line for line in result.outlines)


def test_cases_come_in_the_same_order_whatever_the_hash_seed(pytester, dataset):
    """Workers of pytest-xdist refuse to run when they collected differently."""
    pytester.makepyfile(f"import pytest\n{marked(QUERY.format('pass'), run='bad')}")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *INNER]

    listed = {
        subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.rpartition("\n\n")[0]
        for seed in ("1", "2")
    }

    assert len(listed) == 1


def test_workers_of_xdist_share_the_cases(run):
    """Large suites run in parallel, and their summary is written by a process without tests."""
    pytest.importorskip("xdist")

    result = run(marked(QUERY.format("pass"), run="bad"), "-n", "2")

    result.assert_outcomes(passed=30)
    result.stdout.fnmatch_lines(["*= ragforge =*", "set version 1, bad (30 queries*"])


@pytest.mark.parametrize("test", ["def test_gate(assert_measure):\n    pass", "def test(): ..."])
def test_a_marked_test_that_measures_nothing_is_told(run, test):
    """A forgotten call looks like a quality that is held."""
    result = run(marked(test, run="bad"))

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 marked test measured nothing, such as test_suite.py::test*"])


@pytest.mark.parametrize(
    "test",
    [
        "def test_skipped():\n    pytest.skip()",
        RUN.format("assert ragforge_run.scores"),
        GATE.format("'RR', min=0.1, allow=['holes']"),
    ],
)
def test_marked_tests_that_measure_or_are_skipped_are_not_told(run, test):
    """A line that is always there is read by nobody."""
    result = run(marked(test, run="bad"))

    assert not any("measured nothing" in line for line in result.outlines)


def test_a_version_that_is_published_meanwhile_is_measured_anew(run, dataset):
    """A session may be long, and the set is refreshed every night."""
    with refresh_lock(dataset.path), stage_version(dataset, 2) as staged:
        staged.write_run("bad", dataset.run("bad")[:10])
        publish(staged, dataset.path)
    source = (
        "from pathlib import Path\n"
        "from ragforge.files.set.versions import roll_back\n"
        + marked(RUN.format("assert ragforge_run.evaluation.version == 2"), run="bad")
        + marked(
            "def test_again(request):\n"
            "    roll_back(Path('set'), 1)\n"
            "    found = request.getfixturevalue('ragforge_run')\n"
            "    assert found.evaluation.version == 1",
            run="bad",
        )
    )

    run(source).assert_outcomes(passed=2)


def test_a_refreshed_set_is_retrieved_from_with_the_call_store_of_its_home(run, dataset):
    """Embeddings are paid for once for all versions."""
    with refresh_lock(dataset.path), stage_version(dataset, 2) as staged:
        publish(staged, dataset.path)
    dataset.store_path.write_bytes(b"kept")
    source = marked(
        "def test_run(ragforge_run, tmp_path):\n"
        "    from pathlib import Path\n"
        "    from ragforge.files.set.opening import open_dataset\n"
        "    from ragforge.pytest_plugin.retrieved import retrieve_beside\n"
        "    beside, _ = retrieve_beside(open_dataset(Path('set')), 'bm25', tmp_path, print)\n"
        "    assert beside.store_path.read_bytes() == b'kept'",
        retriever="bm25",
    )

    run(source).assert_outcomes(passed=1)


def test_measures_of_evidence_are_asserted_as_others(pytester, run):
    """An index with chunks of its own has a gate in the suite, too."""
    random_set(pytester.path / "cut", 5, n_queries=30)
    asked = {"dataset": "cut", "run": "cut"}
    outcome = run(
        marked(GATE.format("'TokenR@6', min=0.05"), **asked)
        + marked(
            "def test_of_query(ragforge_query):\n"
            "    assert 0 <= ragforge_query.value('EvidenceR@4') <= 1",
            **asked,
            measures=["EvidenceR@4"],
        )
    )

    outcome.assert_outcomes(passed=31)


def test_a_query_without_placed_evidence_says_so(pytester, run):
    """It has no value, and that is not 0."""
    dataset_of(pytester.path / "bare", {"d": "Some text here."}, 30, [query("q")])
    write_run(Dataset(pytester.path / "bare"), "own", q=["d-0000"])
    outcome = run(
        marked(
            QUERY.format("ragforge_query.value('EvidenceR@4')"),
            dataset="bare",
            measures=["EvidenceR@4", "RR"],
        )
    )

    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*query q: no EvidenceR@4: *no evidence with a place*"])
