from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from ragforge.errors import DataError
from ragforge.files.set.opening import create_dataset
from ragforge.viewer.served import KEPT, KeptOfDatasets, ServedDatasets
from ragforge.viewer.server import serving

PATIENCE_S = 20


@pytest.fixture
def started():
    """Set when a report is being made."""
    return Event()


@pytest.fixture
def done():
    """Has a report that is being made end when it is set."""
    return Event()


@pytest.fixture
def slow(started, done, rendered):
    """Make a report that takes until `done`."""

    def make(dataset):
        rendered.append(dataset.path.name)
        started.set()
        assert done.wait(PATIENCE_S)
        return "report"

    return make


def test_other_pages_are_answered_while_a_report_is_made(
    folder, dataset, slow, site_at, started, done
):
    """A large dataset takes long, and must not stop the live pages."""
    with serving([folder], slow) as access, ThreadPoolExecutor() as pool:
        report = pool.submit(site_at(access).ask, "/datasets/first/report")
        assert started.wait(PATIENCE_S)
        meanwhile = site_at(access).ask("/").status
        done.set()

        assert (meanwhile, report.result().status) == (200, 200)


def test_two_who_ask_at_once_get_the_one_report(folder, dataset, slow, rendered, started, done):
    """Impatient reloading must not multiply the work."""
    shown = ServedDatasets([folder]).find("first")
    reports = KeptOfDatasets(slow)
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(reports.of, shown) for _ in range(3)]
        assert started.wait(PATIENCE_S)
        done.set()

    assert ([item.result().value for item in asked], rendered) == (["report"] * 3, ["first"])


def test_only_the_reports_asked_for_last_are_kept(tmp_path, render, rendered):
    """Pages of many datasets must not fill the memory."""
    for number in range(KEPT + 1):
        create_dataset(tmp_path / f"s{number}", {"seed": str(number)})
    reports, served = KeptOfDatasets(render), ServedDatasets([tmp_path])
    for name in [*(f"s{number}" for number in range(KEPT + 1)), f"s{KEPT}", "s0"]:
        reports.of(served.find(name))

    assert rendered == [*(f"s{number}" for number in range(KEPT + 1)), "s0"]


def test_a_failure_is_not_kept(folder, dataset, rendered):
    """What was broken may have been repaired."""

    def make(found):
        rendered.append(found.path.name)
        raise DataError("broken")

    reports, shown = KeptOfDatasets(make), ServedDatasets([folder]).find("first")
    for _ in range(2):
        with pytest.raises(DataError, match="broken"):
            reports.of(shown)

    assert rendered == ["first", "first"]


def test_the_call_store_counts_by_its_stamp(folder, dataset, render, rendered):
    """Reports show replies of it, and it may be too large to be read each time."""
    reports, shown = KeptOfDatasets(render), ServedDatasets([folder]).find("first")
    reports.of(shown)
    dataset.store_path.parent.mkdir()
    dataset.store_path.write_bytes(b"x")
    reports.of(shown)

    assert rendered == ["first", "first"]
