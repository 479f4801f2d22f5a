"""What commands print, how they end and what they write stays, unless somebody means it."""

import pytest
from recorded.acts import ACTS
from recorded.recording import PLACE, play


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
def test_commands_do_what_was_recorded(act, tmp_path):
    """People script on it, and replies that were bought before must serve again."""
    assert play(act, tmp_path) == (PLACE / f"{act.name}.txt").read_text(encoding="utf-8")
