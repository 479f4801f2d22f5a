import pytest

from ragforge.stages.ground.parts import Exchange, Passage


@pytest.fixture
def exchange():
    """Make an exchange; passages are texts by chunk id, or pairs of them."""

    def make(answer, passages=(), query_id="q1", question="What do whales eat?", lost=()):
        pairs = passages.items() if isinstance(passages, dict) else passages
        return Exchange(query_id, question, answer, tuple(Passage(*pair) for pair in pairs), lost)

    return make
