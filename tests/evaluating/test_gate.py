import pytest

from ragforge.errors import UsageError
from ragforge.evaluating.gate import Threshold, parse_count, parse_share, parse_thresholds


@pytest.mark.parametrize(
    ("text", "measure", "value"),
    [
        ("nDCG@10=0.70", "nDCG@10", 0.7),
        ("mrr=.5", "RR", 0.5),
        ("P(rel=2)@5=0.5", "P(rel=2)@5", 0.5),
        ("RBP(p=0.9)=5e-1", "RBP(p=0.9)", 0.5),
        (" R@10 = 80% ", "R@10", 0.8),
        ("RR=0", "RR", 0.0),
        ("RR=1", "RR", 1.0),
        ("NumRet=12", "NumRet", 12.0),
    ],
)
def test_a_threshold_is_read(text, measure, value):
    """Names are those of every other command, aliases too."""
    assert parse_thresholds([text], "--min") == (Threshold(measure, value),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDCG@10", "expected MEASURE=NUMBER, such as"),
        ("P(rel=2)@5", "expected MEASURE=NUMBER, such as"),
        ("=0.5", "expected MEASURE=NUMBER, such as"),
        ("", "expected MEASURE=NUMBER, such as"),
        ("RR=", "'' is no number; expected a number from 0 to 1"),
        ("RR=abc", "'abc' is no number; expected a number from 0 to 1"),
        ("RR=nan", "'nan' is no number"),
        ("RR=inf", "'inf' is no number"),
        ("RR=0,5", "'0,5' is no number"),
        ("RR=\u0660", "'\u0660' is no number"),
        ("RR=0x1", "'0x1' is no number"),
        ("RR=1e999", "1e999 is out of range; expected a number from 0 to 1"),
        ("RR=-0.1", "-0.1 is out of range"),
        ("RR=1.01", "1.01 is out of range"),
        ("RR=70", "70 is out of range; expected a number from 0 to 1, or 0% to 100%"),
        ("RR=101%", "101% is out of range"),
        ("NumRet=-1", "-1 is out of range; expected a number from 0 on"),
        ("NumRet=5%", "a percentage of what"),
        ("nDGC@10=0.5", "nearest: nDCG"),
        ("P=0.5", "cutoff"),
    ],
)
def test_a_malformed_threshold_is_refused(text, message):
    """A gate that reads something else than was meant lets the wrong runs ship."""
    with pytest.raises(UsageError, match=message):
        parse_thresholds([text], "--min")


def test_a_message_names_the_flag_and_what_was_given():
    """Several flags take thresholds."""
    with pytest.raises(UsageError, match=r"^--max-drop RR=x: 'x' is no number"):
        parse_thresholds(["RR=x"], "--max-drop")


def test_a_measure_given_twice_is_refused():
    """Which of the two holds would be a guess."""
    with pytest.raises(UsageError, match="RR is given twice"):
        parse_thresholds(["RR=0.5", "MRR=0.6"], "--min")


@pytest.mark.parametrize(
    ("text", "value"), [("1%", 0.01), ("0.01", 0.01), ("0", 0.0), ("100%", 1.0), ("0.5 %", 0.005)]
)
def test_a_share_is_read(text, value):
    """People write both."""
    assert parse_share(text, "--max-failures") == value


@pytest.mark.parametrize("text", ["5", "101%", "-1%", "nan", "", "%", "one"])
def test_a_malformed_share_is_refused(text):
    """`5` for five percent would let everything fail."""
    with pytest.raises(UsageError, match=r"^--max-failures .*expected a number from 0 to 1"):
        parse_share(text, "--max-failures")


def test_a_count_is_read():
    """It is a number of queries."""
    assert parse_count("30", "--min-queries") == 30


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "", "9999999999"])
def test_a_malformed_count_is_refused(text):
    """It is a number of queries."""
    with pytest.raises(UsageError, match=r"^--min-queries .*expected a whole number"):
        parse_count(text, "--min-queries")
