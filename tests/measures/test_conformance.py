import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from ragforge.errors import DataError
from ragforge.measures import evaluate, parse_measure

pytestmark = pytest.mark.usefixtures("columns_as")

CASES = Path(__file__).parents[1] / "data" / "conformance"
COUNTS = {"NumRet", "NumRel", "NumRelRet"}


@dataclass(frozen=True)
class Case:
    qrels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]
    rel: int


def load(name):
    folder = CASES / name
    case = json.loads((folder / "case.json").read_text())
    inputs = CASES / case.get("inputs", name)
    qrels, run = {}, {}
    for query_id, _, chunk_id, grade, *_ in rows(inputs / "qrels.txt"):
        qrels.setdefault(query_id, {})[chunk_id] = int(grade)
    for query_id, _, chunk_id, _, score, *_ in rows(inputs / "run.txt"):
        run.setdefault(query_id, {})[chunk_id] = float(score)
    return Case(qrels, run, case["rel"])


def rows(path):
    packed = path.with_name(path.name + ".gz")
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    lines = (line.strip() for line in text.decode().splitlines())
    return [line.split() for line in lines if line and not line.startswith("#")]


def expected(name, file):
    """Return the expected values by (query id or "all", canonical measure name)."""
    header, *lines = (CASES / name / file).read_text().splitlines()
    measures = [str(parse_measure(measure)) for measure in header.split("\t")[1:]]
    return {
        (query_id, measure): float(value)
        for query_id, *values in (line.split("\t") for line in lines)
        for measure, value in zip(measures, values, strict=True)
        if query_id != "all" or measure not in COUNTS
    }


def computed(name, wanted):
    case = load(name)
    measures = list(dict.fromkeys(measure for _, measure in wanted))
    scores = evaluate(case.qrels, case.run, measures, rel_threshold=case.rel)
    values = {**scores.per_query, "all": {m: scores.mean(m) for m in measures}}
    return {key: values[key[0]][key[1]] for key in wanted}


WITH_VALUES = sorted(path.parent.name for path in CASES.glob("*/trec_eval.tsv"))


@pytest.mark.parametrize("name", WITH_VALUES)
def test_values_equal_trec_eval(name):
    """Numbers must be comparable with what the field has published for thirty years."""
    wanted = expected(name, "trec_eval.tsv")

    assert computed(name, wanted) == pytest.approx(wanted, rel=0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_VALUES)
def test_values_equal_the_reference_where_trec_eval_has_none(name):
    """F1, ERR, RBP, Judged and the exponential gain are checked as strictly."""
    wanted = expected(name, "reference.tsv")

    assert computed(name, wanted) == pytest.approx(wanted, rel=0, abs=1e-12)


def test_all_cases_with_values_are_there():
    """A lost data folder must not pass as a green run."""
    assert len(WITH_VALUES) == 27


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("err_empty_qrels", "qrels: expected at least one query"),
        ("err_empty_run", "run: expected at least one query"),
        ("err_nan_score", "query '1': chunk 'a': score: expected a number, got nan"),
    ],
)
def test_inputs_without_meaning_are_refused(name, message):
    """trec_eval gives up without a place, or computes from an undefined order."""
    case = load(name)

    with pytest.raises(DataError, match=message):
        evaluate(case.qrels, case.run)


def test_disjoint_topics_are_zero_with_a_warning():
    """trec_eval reports zeros and says nothing."""
    case = load("err_disjoint")

    scores = evaluate(case.qrels, case.run)

    assert (scores.mean("AP"), len(scores.warnings)) == (0.0, 1)
