import pytest
from fakes import Recorder

from ragforge.config import RefreshSettings
from ragforge.errors import DataError, LockedError
from ragforge.refresh.refreshing import notify_of_failure


@pytest.fixture
def told(tmp_path):
    """Tell a command of a failure and return the notes; it says the kind."""
    settings = RefreshSettings(notify_command="sh -c 'echo $RAGFORGE_EVENT'")

    def go(error):
        recorder = Recorder()
        notify_of_failure(tmp_path, error, settings, recorder)
        return [event.message for event in recorder.named("note")]

    return go


def test_a_failure_is_told(told):
    """Nobody reads the log of a night."""
    assert told(DataError("no disk")) == ["notify_command 'sh': failed"]


def test_a_second_refresh_at_once_is_not_told_as_a_failure(told):
    """The first one is at work and tells its own end; an alarm for nothing is soon ignored."""
    assert told(LockedError("set: another refresh of this set is running")) == []
