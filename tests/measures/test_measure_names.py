import pytest

from ragforge.errors import UsageError
from ragforge.measures import DEFAULT_MEASURES, Measure, parse_measure
from ragforge.measures.formulas import FORMULAS
from ragforge.measures.measure_names import SYNTAX


@pytest.mark.parametrize(
    "name",
    [
        *DEFAULT_MEASURES,
        "nDCG",
        "nDCG(gain='exp')@10",
        "DCG(gain='exp')",
        "P(rel=2)@5",
        "R",
        "F1(rel=2)@5",
        "Success",
        "RR@10",
        "AP(rel=3)@100",
        "infAP",
        "Rprec",
        "bpref(rel=2)",
        "RBP(p=0.8)",
        "RBP(p=0.95,rel=2)@20",
        "ERR(max=4)@20",
        "NumRet",
        "NumRel(rel=2)",
        "NumRelRet",
        "SetP",
        "SetR",
        "SetF",
        "EvidenceR",
        "EvidenceR@10",
        "TokenR(tokens=2000)@10",
        "TokenP(tokens=500)",
        "TokenIoU@5",
    ],
)
def test_canonical_names_are_printed_as_read(name):
    """A printed name can be given back, in a gate or a later comparison."""
    assert str(parse_measure(name)) == name


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("MRR", "RR"),
        ("mrr@10", "RR@10"),
        ("MRR@10", "RR@10"),
        ("recip_rank", "RR"),
        ("hit_rate@5", "Success@5"),
        ("Hit@5", "Success@5"),
        ("HitRate@1", "Success@1"),
        ("success_5", "Success@5"),
        ("NDCG@10", "nDCG@10"),
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(gain='exp')@10"),
        ("nDCG(gain=linear)@10", "nDCG@10"),
        ('nDCG(gain="exp")', "nDCG(gain='exp')"),
        ("precision_at_5", "P@5"),
        ("evidence_recall@5", "EvidenceR@5"),
        ("token recall@10", "TokenR@10"),
        ("IoU@5", "TokenIoU@5"),
        ("evidencer(tokens=2000)", "EvidenceR(tokens=2000)"),
        ("precisionAt5", "P@5"),
        ("meanPrecisionAtK", "P@10"),
        ("ndcg_at_k", "nDCG@10"),
        ("hit_rate_at_5", "Success@5"),
        ("hit@1", "Success@1"),
        ("recall@k", "R@10"),
        ("mean_mrr", "RR"),
        ("mean_ndcg@10", "nDCG@10"),
        ("mean average precision", "AP"),
        ("precision@5", "P@5"),
        ("P_5", "P@5"),
        ("recall@10", "R@10"),
        ("recall_10", "R@10"),
        ("MAP", "AP"),
        ("map_cut_100", "AP@100"),
        ("R-Prec", "Rprec"),
        ("num_rel_ret", "NumRelRet"),
        ("set_recall", "SetR"),
        ("RBP", "RBP(p=0.8)"),
        ("RBP(rel=2,p=0.80)", "RBP(p=0.8,rel=2)"),
        ("ERR@10", "ERR(max=3)@10"),
        (" P ( rel = 2 ) @ 5 ", "P(rel=2)@5"),
    ],
)
def test_aliases_are_read_but_never_printed(alias, name):
    """One measure under two names would look like two measures."""
    assert str(parse_measure(alias)) == name


def test_measures_of_equal_meaning_are_equal():
    """Callers key their results by measure."""
    assert parse_measure("hit_rate@5") == Measure("Success", cutoff=5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", "no measure 'nDGC'; nearest: nDCG"),
        ("recal@10", "no measure 'recal'; nearest: R"),
        ("qqqqq", "no measure 'qqqqq'; there are: nDCG, DCG, P"),
        ("", "no measure ''; there are"),
        ("P@0", "cutoff: expected a whole number of at least 1, got '0'"),
        ("P@-1", "cutoff: expected a whole number of at least 1, got '-1'"),
        ("P@ten", "cutoff: expected a whole number of at least 1, got 'ten'"),
        ("P@", "cutoff: expected a whole number of at least 1, got ''"),
        ("P@1.5", "cutoff: expected a whole number of at least 1, got '1.5'"),
        ("ndcg_cut_0", "cutoff: expected a whole number of at least 1, got '0'"),
        ("P", "P needs a cutoff, as in P@10"),
        ("SetP@5", "SetP takes no cutoff, got '5'"),
        ("nDCG(rel=2)@5", "no setting 'rel'; nDCG takes only gain"),
        ("Judged(p=1)@5", "no setting 'p'; Judged takes no settings"),
        ("P(rel=0)@5", "rel: expected a whole number of at least 1, got '0'"),
        ("P(rel=1,rel=2)@5", "setting 'rel' is given twice"),
        ("P(rel)@5", "rel: expected a whole number of at least 1, got ''"),
        ("nDCG(gain='cubic')@5", "gain: expected 'linear' or 'exp', got 'cubic'"),
        ("ERR(max=1001)", "max: expected at most 1000, got '1001'"),
        ("RBP(p=1)", "p: expected a number between 0 and 1, got '1'"),
        ("RBP(p=x)", "p: expected a number between 0 and 1, got 'x'"),
        ("RBP(p=nan)", "p: expected a number between 0 and 1, got 'nan'"),
        ("P(rel=2@5", r"expected NAME, NAME@k or NAME\(setting=value\)@k"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(text, message):
    """A misspelt measure that is skipped or guessed would give a table nobody asked for."""
    with pytest.raises(UsageError, match=message):
        parse_measure(text)


def test_every_name_has_one_formula():
    """A name that parses and cannot be computed would fail only in the middle of a run."""
    assert sorted(SYNTAX) == sorted(FORMULAS)
