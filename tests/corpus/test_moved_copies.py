"""Which chunk of now is which of before, where several have one text."""

import pytest

from ragforge.corpus.moved_copies import Copy, match_copies


def copies(*named, homes=None):
    """Return chunks, each by its document, and its id there, which begins with its place."""
    homes = homes or {}
    both = (name.split("/") for name in named)
    return [Copy(doc, int(own[0]), f"{doc}/{own}", homes.get(doc, doc)) for doc, own in both]


@pytest.mark.parametrize(
    ("before", "now", "homes", "moved"),
    [
        (["a/1", "a/2"], ["b/1", "b/2"], {"a": "b"}, {"a/1": ["b/1"], "a/2": ["b/2"]}),
        (["a/1", "a/3"], ["a/2", "a/4"], {}, {"a/1": ["a/2"], "a/3": ["a/4"]}),
        (["a/1"], ["a/2", "a/4"], {}, {"a/1": ["a/2", "a/4"]}),
        (["a/1", "a/2"], ["a/4"], {}, {"a/1": ["a/4"], "a/2": ["a/4"]}),
        (["a/1", "b/1"], ["b/1", "c/1"], {"a": "b", "b": "c"}, {"a/1": ["b/1"], "b/1": ["c/1"]}),
        (["a/1", "b/1"], ["a/1", "b/1"], {"a": "b", "b": "a"}, {"a/1": ["b/1"], "b/1": ["a/1"]}),
        (["p/4", "p/5"], ["o/3", "p/4"], {}, {"p/4": ["p/4"], "p/5": ["o/3"]}),
        (["1/1", "3/1"], ["2/2", "4/2"], {}, {"1/1": ["2/2"], "3/1": ["4/2"]}),
        (["a/1", "b/1"], ["b/2"], {}, {"a/1": ["b/2"], "b/1": ["b/2"]}),
        (["a/1"], ["b/1", "c/1"], {}, {"a/1": ["b/1", "c/1"]}),
        (["a/1"], [], {}, {}),
    ],
    ids=(
        "renamed edited repeated cut shifted swapped over-a-border by-order one-left unknown gone"
    ).split(),
)
def test_each_copy_is_one_of_now(before, now, homes, moved):
    """Two of before that were both of now had each other's grades."""
    found = match_copies(copies(*before, homes=homes), copies(*now))

    assert {name: [*places] for name, places in found.items()} == moved
