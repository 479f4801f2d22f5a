"""A comparison that cannot know which is better names no winner."""

from ragforge.pipeline.comparing.deciding import AS_USUAL, Contender, Contest, Undecided, decide
from ragforge.report.comparison import render_comparison
from ragforge.report.comparison_json import comparison_json

WHY = "old was graded by one judge, and new by another"
LOW = {f"q{n:02}": 0.1 + n / 100 for n in range(20)}
HIGH = {query_id: value + 0.4 for query_id, value in LOW.items()}


def contest(withheld, *others):
    """Return a contest of `old`, a better `new`, and others as good as `old`."""
    names = ("old", "new", *others)
    values = {"nDCG@10": LOW, "RR": LOW}, {"nDCG@10": HIGH, "RR": HIGH}
    couples = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]
    doubts = {(a, b, measure): Undecided() for a, b in couples for measure in ("nDCG@10", "RR")}
    return Contest(
        of="runs",
        contenders=[Contender(name, values[name == "new"]) for name in names],
        measures=("nDCG@10", "RR"),
        undecided=doubts | {("old", "new", name): Undecided(withheld=WHY) for name in withheld},
        texts={},
        rel_threshold=2,
    )


def test_a_withheld_winner_is_unknown_and_says_why():
    """A wrong winner costs more than none."""
    found = comparison_json(decide(contest(["nDCG@10"]), AS_USUAL))["comparisons"]

    assert [(item["winner"], item["why"]) for item in found] == [("UNKNOWN", WHY), ("B", None)]


def test_a_withheld_winner_is_called_better_in_no_sentence():
    """Whoever reads one sentence must not take it for a result."""
    text = " ".join(render_comparison(decide(contest(["nDCG@10", "RR"]), AS_USUAL)).split())

    assert f"UNKNOWN which is better in nDCG@10 and RR: {WHY}." in text
    assert "is better in nDCG@10 by" not in text


def test_a_withheld_winner_is_no_surviving_difference():
    """The list of what survives is what people copy."""
    text = render_comparison(decide(contest(["nDCG@10", "RR"], "third"), AS_USUAL))

    assert "Differences that survive the correction: 2 of 6 comparisons" in text
    assert "UNKNOWN in 2 comparisons." in text


def test_a_measure_with_a_withheld_winner_has_no_letters():
    """A letter says told apart, or not, of all runs at once."""
    report = decide(contest(["nDCG@10"], "third"), AS_USUAL)

    assert report.letters == {"RR": {"old": "b", "new": "a", "third": "b"}}
    assert "No letters in nDCG@10: see what is UNKNOWN." in " ".join(
        render_comparison(report).split()
    )
