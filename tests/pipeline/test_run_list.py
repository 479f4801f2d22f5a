import pytest

from ragforge.errors import UsageError
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.run_list import RunHoles, describe_holes, holes_of, named_specs
from ragforge.records import Hit, Judgment, Query, Ranking


def test_names_are_made_of_the_specs():
    """The name becomes that of a file."""
    assert named_specs(["bm25", "my.app:search"]) == {
        "bm25": "bm25",
        "my-app-search": "my.app:search",
    }


def test_names_tell_fusion_from_ranking_anew():
    """Both are runs of bm25 and minilm, and not the same."""
    assert [*named_specs(["bm25+minilm", "bm25>minilm"])] == ["bm25-and-minilm", "bm25-by-minilm"]


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


@pytest.fixture
def dataset(tmp_path):
    """A query with twelve retrieved chunks, one that was retired, and two runs."""
    made = create_dataset(tmp_path / "set", made_from={})
    made.write_queries(
        [Query(query_id="q", query="?"), Query(query_id="old", query="!", status="retired")]
    )
    hits = tuple(Hit(chunk_id=f"c{at:02}", score=-at) for at in range(12))
    made.write_run("bm25", [Ranking(query_id=name, ranking=hits) for name in ("q", "old")])
    made.write_run("short", [Ranking(query_id="q", ranking=hits[:1])])
    return made


def test_nothing_is_told_before_anything_is_graded(dataset):
    """Everything is a hole then, and judging is what comes next anyway."""
    dataset.write_judgments([Judgment(query_id="q", chunk_id="c00", grade=None, failure="error")])

    assert holes_of(dataset) == []


def test_chunks_without_a_grade_are_holes(dataset):
    """A failed judgment leaves as much of a hole as none."""
    grades = {"c00": 2, "c01": None, "c02": 0, "c11": 3}
    dataset.write_judgments(
        Judgment(
            query_id="q", chunk_id=name, grade=grade, failure="error" if grade is None else None
        )
        for name, grade in grades.items()
    )

    assert holes_of(dataset) == [RunHoles("bm25", 10, 8), RunHoles("short", 1, 0)]
    assert holes_of(dataset, ["short"]) == [RunHoles("short", 1, 0)]


def test_the_command_that_fills_holes_is_named(dataset):
    """Who reads of a hole wants to be rid of it."""
    line = describe_holes(RunHoles("bm25", 1000, 8), dataset)

    assert line == (
        "run bm25: 8 of 1,000 chunks in the top 10 are holes; "
        f"`ragforge judge --dataset {dataset.path} --run bm25` judges them"
    )
    assert describe_holes(RunHoles("bm25", 10, 0), dataset) == ""
