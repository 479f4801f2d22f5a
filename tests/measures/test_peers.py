import random

import pytest

from ragforge.measures import evaluate

pytestmark = pytest.mark.usefixtures("columns_as")

GENERATOR = random.Random(7)
CHUNKS = [f"d{n}" for n in range(60)]
QRELS = {
    f"q{n}": {chunk: GENERATOR.randrange(4) for chunk in GENERATOR.sample(CHUNKS, 20)}
    for n in range(25)
}
# Halves and quarters are the same number in single precision, which pytrec_eval keeps.
RUN = {
    f"q{n}": {chunk: GENERATOR.randrange(80) / 4 for chunk in GENERATOR.sample(CHUNKS, 40)}
    for n in range(25)
}


def test_values_equal_pytrec_eval():
    """It wraps trec_eval's own code."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = ["map", "ndcg", "ndcg_cut_10", "P_10", "recall_10", "recip_rank", "bpref", "Rprec"]

    theirs = pytrec_eval.RelevanceEvaluator(QRELS, set(names)).evaluate(RUN)
    ours = evaluate(QRELS, RUN, names, rel_threshold=1)

    assert {q: list(row.values()) for q, row in ours.per_query.items()} == {
        q: pytest.approx([row[name] for name in names], rel=0, abs=1e-12)
        for q, row in theirs.items()
    }


def test_values_equal_ir_measures():
    """Its spelling of names is the one printed here."""
    ir_measures = pytest.importorskip("ir_measures")
    names = ["nDCG@10", "P(rel=2)@5", "R(rel=2)@20", "AP(rel=2)", "RR(rel=2)", "Success(rel=2)@5"]

    parsed = [ir_measures.parse_measure(name) for name in names]
    theirs = ir_measures.calc_aggregate(parsed, QRELS, RUN)
    ours = evaluate(QRELS, RUN, names)

    assert [ours.mean(name) for name in names] == pytest.approx(
        [theirs[measure] for measure in parsed], rel=0, abs=1e-12
    )
