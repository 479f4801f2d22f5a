import pytest

from ragforge.evaluating.judgments import label_reading
from ragforge.records import Judgment


def judged(*sources):
    return [
        Judgment(query_id="q", chunk_id=f"c{number}", grade=2, source=source)
        for number, source in enumerate(sources)
    ]


@pytest.mark.parametrize(
    ("said", "sources", "has_pool", "reading"),
    [
        (None, ["human", "human"], False, "complete"),
        (None, ["human", "judge"], False, "pooled"),
        (None, ["human", "evidence"], False, "pooled"),
        (None, ["human"], True, "pooled"),
        (None, [], False, "pooled"),
        ("partial", ["human"], False, "partial"),
        ("pooled", ["human"], False, "pooled"),
        ("complete", ["human"], False, "complete"),
        ("complete", ["human", "judge"], False, "pooled"),
    ],
)
def test_what_has_no_label_follows_from_who_labelled(said, sources, has_pool, reading):
    """A golden set lists what is relevant; a judge only ever saw a pool."""
    assert label_reading(said, judged(*sources), has_pool=has_pool) == reading
