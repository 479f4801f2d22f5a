import importlib.util
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ragforge.files.formats.pairs import PairRow

PAIRS = [
    PairRow(query_id=f"q{query}", query="?", chunk_id=f"c{chunk}", text=".", human_grade=chunk % 4)
    for query in range(30)
    for chunk in range(20)
]


@pytest.fixture(scope="module")
def judges():
    """The benchmark, which is a script and in no package."""
    path = Path(__file__).parents[2] / "benchmarks" / "judges.py"
    if not path.exists():
        pytest.skip("benchmarks are not shipped")
    spec = importlib.util.spec_from_file_location("judges", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sample_is_spread_over_queries(judges):
    """Pairs of one query are judged alike: 25 queries say more than 10."""
    found = Counter(pair.query_id for pair in judges.sample(PAIRS, 200, 8, seed=0))

    assert len(found) == 25
    assert set(found.values()) == {8}


def test_sample_takes_more_of_each_query_where_there_are_few(judges):
    """As many as were asked for, as evenly as can be."""
    found = Counter(pair.query_id for pair in judges.sample(PAIRS[:60], 50, 8, seed=0))

    assert sorted(found.values()) == [16, 17, 17]
    assert len(judges.sample(PAIRS[:60], 500, 8, seed=0)) == 60


def test_sample_does_not_look_at_the_grades(judges):
    """A sample that is even over grades has other base rates, and so another kappa."""
    graded_otherwise = [replace(pair, human_grade=0) for pair in PAIRS]

    ids = [(p.query_id, p.chunk_id) for p in judges.sample(PAIRS, 40, 8, seed=3)]
    others = judges.sample(graded_otherwise[::-1], 40, 8, seed=3)
    assert ids == [(p.query_id, p.chunk_id) for p in others]


def test_sample_depends_on_the_seed(judges):
    """Figures that others cannot draw again are no figures."""
    assert judges.sample(PAIRS, 40, 8, seed=1) == judges.sample(PAIRS, 40, 8, seed=1)
    assert judges.sample(PAIRS, 40, 8, seed=1) != judges.sample(PAIRS, 40, 8, seed=2)


def test_refused_replies_are_read_only_where_they_hold_a_grade(judges, tmp_path):
    """The row about them must not invent any."""
    file = tmp_path / "f.jsonl"
    raws = ['{\\"grade\\": 2}', "prose", '{\\"grade\\": 7}', "[1]", '{\\"grade\\": true}']
    line = '{{"what": "judge", "key": "q/{}", "kind": "invalid", "message": "m", "raw": "{}"}}\n'
    lines = (line.format(n, raw) for n, raw in enumerate(raws))
    file.write_text("".join(lines), encoding="utf-8")

    assert judges._refused(file) == {("q", "0"): 2}
    assert judges._refused(tmp_path / "none.jsonl") == {}
