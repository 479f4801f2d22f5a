"""The pytest plugin: measures a run of a dataset for the tests that are marked, and gates on it.

```python
@pytest.mark.ragforge(dataset="sets/help", run="bm25")
def test_retrieval_is_good_enough(assert_measure):
    assert_measure("nDCG@10", min=0.70)
    assert_measure("RR", max_drop=0.02, baseline="sets/help/baseline.json")


@pytest.mark.ragforge(dataset="sets/help", retriever="my_app.search:retriever")
def test_each_query_finds_something(ragforge_query):
    assert ragforge_query.value("Success@5") == 1
```

The marker takes `dataset` (relative to pytest's rootdir; the ini option `ragforge_dataset` where
unset), `run` or `retriever`, `measures` and `rel_threshold`. Markers of a class or module hold for
its tests, and a nearer one goes before. A retriever is run anew, once a session and in each worker
of pytest-xdist; what it returns is not written into the dataset. Its settings come from variables
and from `ragforge.toml` of the working directory, which is trusted no further than on the command
line: `ragforge config trust`.

Fixtures: `ragforge_run` (an `EvaluatedRun`), `ragforge_query` (a `MeasuredQuery`; the test runs
once for each answerable query, whose id is the id of the case) and `assert_measure`.

Nothing but pytest is imported here: who does not use the plugin waits for nothing.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ragforge.pipeline.evaluated import EvaluatedRun
    from ragforge.pytest_plugin.asserting import AssertMeasure
    from ragforge.pytest_plugin.measuring import MeasuredQuery

QUERY = "ragforge_query"
REPORTED = "ragforge"
"""Name of the property of a test's report (and of its JUnit XML) that says what was measured."""
UNUSED = "ragforge unused"
"""Likewise, where a test is marked and measured nothing."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option."""
    parser.addini(
        "ragforge_dataset",
        "dataset directory of tests marked with ragforge that name none, relative to the rootdir",
        default="",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "ragforge(dataset, run, retriever, measures, rel_threshold): which run of which ragforge "
        "dataset ragforge_run, ragforge_query and assert_measure measure",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a case for each query."""
    if QUERY in metafunc.fixturenames:
        from ragforge.pytest_plugin.measuring import cases_of

        cases = cases_of(metafunc)
        metafunc.parametrize(QUERY, cases, ids=[case.name for case in cases], indirect=True)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Note a marked test that measured nothing, and so asserted nothing of a run."""
    if item.get_closest_marker("ragforge") is not None:
        measured = [name for name, _ in item.user_properties if name == REPORTED]
        if not measured:
            item.user_properties.append((UNUSED, "measured nothing"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was measured, if anything was, and which tests only look as if they measured."""
    noted = [
        (report.nodeid, name, str(value))
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
    ]
    lines = {line for _, name, line in noted if name == REPORTED}
    passed = {report.nodeid for report in terminalreporter.stats.get("passed", ())}
    unused = passed & {nodeid for nodeid, name, _ in noted if name == UNUSED}
    if lines or unused:
        terminalreporter.section("ragforge")
    for line in sorted(lines):
        terminalreporter.write_line(line)
    if unused:
        tests = "1 marked test" if len(unused) == 1 else f"{len(unused)} marked tests"
        terminalreporter.write_line(f"{tests} measured nothing, such as {min(unused)}")


@pytest.fixture
def ragforge_run(request: pytest.FixtureRequest) -> "EvaluatedRun":
    """The run that the marker `ragforge` names, measured; measured once a session."""
    from ragforge.pytest_plugin.measuring import run_of

    return run_of(request)


@pytest.fixture
def ragforge_query(request: pytest.FixtureRequest) -> "MeasuredQuery":
    """One answerable query of the set: its values, and what was retrieved with grades."""
    from ragforge.pytest_plugin.measuring import query_of

    return query_of(request)


@pytest.fixture
def assert_measure(request: pytest.FixtureRequest) -> "AssertMeasure":
    """Fail the test unless the run's measure holds to a minimum, or to a baseline."""
    from ragforge.pytest_plugin.asserting import AssertMeasure

    return AssertMeasure(request)
