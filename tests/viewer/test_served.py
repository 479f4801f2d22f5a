import pytest
from versioned_sets import make_set, refreshed

from ragforge.errors import DataError
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.versions import roll_back
from ragforge.viewer.served import KeptOfDatasets, ServedDatasets, check_roots, followed

pytestmark = pytest.mark.slow


@pytest.fixture
def home(folder):
    """A set with the versions 1 and 2."""
    path = make_set(folder / "set").path
    refreshed(path, "b")
    return path


def shown_versions(served):
    """Return the versions of all datasets that are shown."""
    return [shown.manifest.version for shown in served.datasets()]


def test_a_refreshed_set_is_shown_once(folder, home):
    """Its versions are no sets of their own."""
    served = ServedDatasets([folder])

    assert [(shown.name, shown.title) for shown in served.datasets()] == [("set", "set")]
    assert shown_versions(served) == [2]


def test_a_version_published_meanwhile_is_shown(home):
    """The page is open all night."""
    served = ServedDatasets([home])
    before = shown_versions(served)
    refreshed(home, "c")
    after = shown_versions(served)
    roll_back(home, 1)

    assert (before, after, shown_versions(served)) == ([2], [3], [1])


def test_a_version_has_the_history_of_its_set(home, add, make_evaluation):
    """Evaluations are compared across versions."""
    add(Dataset(home), make_evaluation())

    [shown] = ServedDatasets([home / "versions" / "000001"]).datasets()

    assert shown.n_evaluations == 1
    assert shown.manifest.version == 1


def test_a_set_whose_link_leads_nowhere_is_shown_with_what_is_wrong(home):
    """The others must still be shown."""
    (home / "current").unlink()

    [shown] = ServedDatasets([home]).datasets()

    assert "expected a link to a version" in shown.problem


def test_a_folder_without_a_set_is_refused(folder):
    """An empty page would not tell why."""
    folder.mkdir(exist_ok=True)

    with pytest.raises(DataError, match="holds no dataset"):
        check_roots([folder])


def test_a_report_is_made_anew_for_another_version(home, render, rendered):
    """A report of yesterday's set must not stand for that of today."""
    reports, served = KeptOfDatasets(render), ServedDatasets([home])
    reports.of(served.find("set"))
    reports.of(served.find("set"))
    refreshed(home, "c")
    reports.of(served.find("set"))

    assert rendered == ["set", "set"]


def test_a_run_that_is_added_to_a_version_makes_its_report_anew(home, render, rendered):
    """The folder of runs is a link there."""
    reports, served = KeptOfDatasets(render), ServedDatasets([home])
    reports.of(served.find("set"))
    (home / "runs").resolve().mkdir()
    (home / "runs" / "new.jsonl").write_text("", "utf-8")
    reports.of(served.find("set"))

    assert rendered == ["set", "set"]


def test_an_evaluation_makes_the_report_anew(home, render, rendered, add, make_evaluation):
    """The history belongs to all versions."""
    reports, served = KeptOfDatasets(render), ServedDatasets([home / "versions" / "000001"])
    reports.of(served.find("000001"))
    add(Dataset(home), make_evaluation())
    reports.of(served.find("000001"))

    assert rendered == ["000001", "000001"]


def test_a_run_of_another_version_leaves_a_report_as_it_is(home, render, rendered):
    """Seven versions would be read for each look."""
    reports, served = KeptOfDatasets(render), ServedDatasets([home])
    reports.of(served.find("set"))
    (home / "versions" / "000001" / "runs" / "new.jsonl").write_text("", "utf-8")
    reports.of(served.find("set"))

    assert rendered == ["set"]


def test_of_a_long_history_little_is_held(folder, dataset, add, make_evaluation):
    """A thousand sets with a year of nights each must fit into the memory."""
    days = [f"2026-03-{day:02}T00:00:00+00:00" for day in range(1, 29)]
    add(dataset, *(make_evaluation(run=run, at=at) for at in days for run in ("a", "b")))
    shown = ServedDatasets([folder]).find("first")

    assert (shown.n_evaluations, len(shown.past), shown.recent.runs) == (57, 20, ("a", "b", "bm25"))
    assert [len(shown.recent.of_run(run)) for run in ("a", "b", "bm25")] == [2, 2, 1]
    assert len(shown.history().evaluations) == 57


def test_what_an_evaluation_lacks_is_held_of_the_ones_before(folder, dataset, add, make_evaluation):
    """A measure that was left out once has the trend that it had."""
    other = {"RR": make_evaluation().measures["nDCG@10"]}
    add(dataset, make_evaluation(at="2026-01-02T00:00:00+00:00", measures=other))
    add(dataset, make_evaluation(at="2026-01-03T00:00:00+00:00", measures=other))
    shown = ServedDatasets([folder]).find("first")

    held = [item.at[:10] for item in shown.recent.of_run("bm25")]
    assert held == ["2026-01-01", "2026-01-02", "2026-01-03"]


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        ("nDCG@10 P@5", "nDCG@10"),
        ("P@5 nDCG@10", "P@5"),
        ("Judged@10 RR", "RR"),
        ("NumRet", "NumRet"),
    ],
)
def test_what_was_named_first_is_followed(measures, expected, make_evaluation):
    """The pages of a set that is decided by P@5 put nDCG@10 first."""
    made = make_evaluation()
    value = next(iter(made.measures.values()))
    named = made.model_copy(update={"measures": dict.fromkeys(measures.split(), value)})

    assert followed(named) == expected
