"""The bootstrap by drawing, as other tools compute it: what the ideal one is the limit of."""

import numpy as np

from ragforge.measures.intervals import Ends, corrected_shares


def resampled_ends(values, seed, level=0.95, method="bca", n_resamples=9_999):
    """Return the ends of the interval of the mean from resamples; the same seed draws the same."""
    array, generator = np.asarray(values), np.random.default_rng(seed)
    batch = max(1, (1 << 20) // len(array))
    sizes = [min(batch, n_resamples - start) for start in range(0, n_resamples, batch)]
    drawn = (generator.integers(0, len(array), (size, len(array))) for size in sizes)
    means = np.concatenate([array[places].mean(axis=-1) for places in drawn])
    below = (float(np.mean(means < array.mean())) + float(np.mean(means <= array.mean()))) / 2
    central = Ends((1 - level) / 2, (1 + level) / 2)
    shares = corrected_shares(array, level, below) if method == "bca" else central
    return Ends(*np.quantile(means, [shares.low, shares.high]).tolist())
