import pytest

from ragforge.errors import UsageError
from ragforge.pipeline.run_list import named_specs


def test_names_are_made_of_the_specs():
    """The name becomes that of a file."""
    assert named_specs(["bm25", "my.app:search"]) == {
        "bm25": "bm25",
        "my-app-search": "my.app:search",
    }


def test_names_may_be_given():
    """Two settings of one retriever are two runs."""
    assert named_specs(["m:f", "m:f"], ["a", "b"]) == {"a": "m:f", "b": "m:f"}


@pytest.mark.parametrize(
    ("specs", "names", "message"),
    [
        (["bm25", "bm25"], [], "both runs would be called 'bm25'"),
        (["bm25", "m:f"], ["x"], "1 given for 2 retrievers"),
        (["bm25"], ["../x"], "expected up to 100 letters"),
    ],
)
def test_names_that_do_not_fit_are_refused(specs, names, message):
    """One run would replace the other without a word."""
    with pytest.raises(UsageError, match=message):
        named_specs(specs, names)
