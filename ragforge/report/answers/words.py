"""How the part of a report about answers is to be read."""

from typing import Final

ANSWERS_NOTE: Final = (
    "“No answer” counts the queries that can be graded (they have an expected answer, or are meant "
    "to have none) and that the system did not answer at all; “unchecked” counts the graded "
    "answers that were not checked for hallucination."
)
GIVEN_NOTE: Final = (
    "The answers brought grades of their own, which are in no other number here: all others are of "
    "the judge. Kappa is Cohen's, without weights: 0 is chance. Scores are over answers that have "
    "one from both."
)
RATES_NOTE: Final = (
    "The 95 % interval, by resampling queries, says how far other queries of the same kind could "
    "move the number; fewer than 5 values have none. Bounds: what the answers without a grade "
    "could still do to it, be they not answered, failed or not graded yet: all at their worst, all "
    "at their best. Correct given attempted leaves out the answers that were not attempted; the "
    "harmonic mean of both joins it with correct, so that neither silence nor guessing pays. Where "
    "a question has no answer, to say so is correct. Strict counts what is said in part as "
    "missing. Hallucination: the answer claims what none of its chunks says; its bounds take in "
    "answers that were not checked."
)
SLICES_NOTE: Final = (
    "In brackets: 95 % intervals. A slice with fewer than 5 graded answers is too small to read "
    "anything from."
)
DIAGNOSIS_NOTE: Final = (
    "Retrieval is good when at least one relevant chunk was among the chunks the answer was "
    "made from; an answer is good when its verdict is correct. Shares are of the queries that fit "
    "a field, with the 95 % interval."
)
CONTEXT_NOTE: Final = (
    "Context precision: the share of an answer's chunks that are relevant, over its judged chunks; "
    "the bounds take those without a judgment as not relevant, and as relevant. Score and wrong "
    "claims: of answers made from relevant chunks only, and of those with irrelevant ones among "
    "them. The difference is how much higher the second score is: below 0, noise hurts. It is not "
    "given with fewer than 5 answers in a group. The groups are different queries, and one may "
    "simply be harder. A wrong claim contradicts a fact, or is what no chunk says."
)
LENGTH_NOTE: Final = (
    "What an answer 2.7 times as long scores more, of attempted answers. A slope that chance "
    "hardly explains (p below 0.01) may be the judge's taste for length."
)
RATE_LABELS: Final = {
    "correct": "correct",
    "partial": "partial",
    "incorrect": "incorrect",
    "not_attempted": "not attempted",
    "correct_given_attempted": "correct given attempted",
    "correct_harmonic_mean": "harmonic mean of both",
    "score": "mean score",
    "strict_score": "mean strict score",
    "hallucination": "hallucination",
    "decided_by_rule": "decided by rule",
}
