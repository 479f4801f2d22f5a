"""Which configurations of a sweep are told apart from the best of them."""

import numpy as np
import pytest

from ragforge.corpus.documents import Document
from ragforge.evaluating.configurations import Configuration, Top
from ragforge.evaluating.sweep import RankedConfiguration, SweptQueries, measure_sweep
from ragforge.evaluating.sweep_answers import AnsweredConfiguration, compare_answers
from ragforge.measures import parse_measure
from ragforge.measures.evidence_coverage import RetrievedText, Stretch
from ragforge.records import AnswerGrade, Evidence, Query

N_QUERIES, N_CONFIGURATIONS, WIDTH = 60, 24, 20
TEXT = "".join(f"Fact {n:03} is here.\n".ljust(WIDTH, "-") for n in range(N_QUERIES))


def configuration(n):
    """Return one of them."""
    return Configuration("recursive", 500, 0, f"r{n:02}")


def hits(seed, shares):
    """Return whether each configuration finds the quote of each query, by chance."""
    rng = np.random.default_rng(seed)
    return rng.random((len(shares), N_QUERIES)) < np.array(shares)[:, np.newaxis]


def measured(found):
    """Return a sweep whose configurations find what they are to find."""
    queries = [
        Query(
            query_id=f"q{n:03}",
            query=f"Where is fact {n}?",
            evidence=(
                Evidence(
                    doc_id="d",
                    chunk_id="c",
                    quote=f"Fact {n:03} is here.",
                    start=n * WIDTH,
                    end=n * WIDTH + 17,
                ),
            ),
        )
        for n in range(N_QUERIES)
    ]
    ranked = [
        RankedConfiguration(
            configuration(k),
            1,
            WIDTH,
            {
                query.query_id: [
                    RetrievedText(17, 5, (Stretch("d", at * WIDTH, at * WIDTH + 17),))
                    for at in [n if of[n] else (n + 1) % N_QUERIES]
                ]
                for n, query in enumerate(queries)
            },
        )
        for k, of in enumerate(found)
    ]
    swept = SweptQueries(
        queries,
        {q.query_id for q in queries},
        None,
        {"d": TEXT},
        {"d": Document("d", "", TEXT, "text")},
    )
    return measure_sweep(ranked, swept, [Top(cutoff=1)], parse_measure("EvidenceR@1"))


EQUAL = [0.4] * N_CONFIGURATIONS


@pytest.mark.parametrize("seed", [7, 16])
def test_no_configuration_is_worse_for_losing_to_the_luckiest_of_equals(seed):
    """Holm over the 23 comparisons with the best called one worse here: the best is picked."""
    results = measured(hits(seed, EQUAL))

    assert sum(item.is_worse for item in results) == 0


def test_a_configuration_that_is_much_worse_is_told_apart():
    """Allowing for all pairs must not hide what is plain."""
    results = measured(hits(0, [*EQUAL[1:], 0.02]))

    assert [item.configuration for item in results if item.is_worse] == [configuration(23)]


def test_answers_of_equals_are_not_worse_for_losing_to_the_luckiest():
    """The best by answers is picked by them too."""
    answered = [
        AnsweredConfiguration(
            configuration(k),
            {},
            {
                f"q{n:03}": AnswerGrade(
                    query_id=f"q{n:03}",
                    verdict="correct" if hit else "incorrect",
                    score=float(hit),
                    has_hallucination=False,
                )
                for n, hit in enumerate(of)
            },
            {},
            5.0,
        )
        for k, of in enumerate(hits(16, EQUAL))
    ]

    assert sum(item.is_worse for item in compare_answers(answered, None)) == 0
