from ragforge.pipeline.backend import with_embeddings

EMBEDDINGS = {"calls": 5, "cached": 2, "prompt_tokens": 100, "cost_usd": 0.25}
ESTIMATE = {
    "calls": 10,
    "calls_high": 20,
    "cached": 1,
    "seconds": None,
    "tokens": {"low": 1, "high": 3},
    "cost_usd": {"low": 1.0, "high": 2.0},
}


def test_embeddings_are_in_the_sums_of_an_estimate():
    """Limits hold for all calls, so what to set them to must count all."""
    assert with_embeddings(ESTIMATE, EMBEDDINGS) == {
        "calls": 15,
        "calls_high": 25,
        "cached": 3,
        "seconds": None,
        "tokens": {"low": 101, "high": 103},
        "cost_usd": {"low": 1.25, "high": 2.25},
        "embeddings": EMBEDDINGS,
    }


def test_a_sum_with_an_unknown_price_is_unknown():
    """A part of the money is not the money."""
    summed = with_embeddings(ESTIMATE, {**EMBEDDINGS, "cost_usd": None})

    assert summed["cost_usd"] == {"low": None, "high": None}


def test_embeddings_beside_the_offline_baseline_are_all_there_is():
    """It asks nobody, but what looks for chunks does."""
    summed = with_embeddings({"calls": 0, "cached": 0}, EMBEDDINGS)

    assert (summed["calls"], summed["cached"], summed["embeddings"]) == (5, 2, EMBEDDINGS)
