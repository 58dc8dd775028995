"""How sure a figure is: 95 % intervals of shares, means and paired differences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Z = 1.959964  # of the normal distribution, for 95 %
RESAMPLES = 2000
SEED = 20240229  # the same figures from the same results, each time
LIMITS = (2.5, 97.5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A mean over `n` cases and where the true one lies, with 95 % confidence."""

    n: int
    value: float
    low: float
    high: float


def estimate(scores: Sequence[float]) -> Estimate:
    """Return the mean: by Wilson where every score is 0 or 1, else by the bootstrap."""
    mean = float(np.mean(scores))
    if all(score in {0.0, 1.0} for score in scores):
        low, high = wilson(sum(scores), len(scores))
    else:
        low, high = bootstrap(scores)
    return Estimate(n=len(scores), value=mean, low=low, high=high)


def wilson(right: float, count: int) -> tuple[float, float]:
    """Return the interval of a share, which is never outside 0 and 1."""
    share = right / count
    width = Z * math.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    middle = share + Z**2 / (2 * count)
    scale = 1 + Z**2 / count
    return max(0.0, (middle - width) / scale), min(1.0, (middle + width) / scale)


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of a mean, from means of cases drawn again and again."""
    chance = np.random.default_rng(SEED)
    drawn = chance.choice(np.array(values), size=(RESAMPLES, len(values)))
    low, high = np.percentile(drawn.mean(axis=1), LIMITS)
    return float(low), float(high)
