"""How sure a figure is: 95 % intervals of shares, means and paired differences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z = 1.959964  # of the normal distribution, for 95 %


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A mean over `n` cases and where the true one lies, with 95 % confidence."""

    n: int
    value: float
    low: float
    high: float


def estimate(scores: Sequence[float]) -> Estimate:
    """Return the mean of scores between 0 and 1, by Wilson.

    Scores in between vary less than those of 0 and 1 with the same mean: theirs is narrower
    at most, so the interval is never too narrow, whether they are few or all the same.
    """
    mean = sum(scores) / len(scores)
    low, high = wilson(sum(scores), len(scores))
    return Estimate(n=len(scores), value=mean, low=low, high=high)


def wilson(right: float, count: int) -> tuple[float, float]:
    """Return the interval of a share, which is never outside 0 and 1."""
    share = right / count
    width = Z * math.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    middle = share + Z**2 / (2 * count)
    scale = 1 + Z**2 / count
    return max(0.0, (middle - width) / scale), min(1.0, (middle + width) / scale)


def estimate_change(differences: Sequence[float]) -> Estimate:
    """Return the mean of paired differences between -1 and 1, by Agresti and Min (2005).

    Half a case is added to each of the four ways in which two runs can go, half of which
    differ: so cases of which none changed do not prove that none ever will.
    """
    count, total = len(differences), sum(differences)
    spread = sum(each**2 for each in differences) + 1 - total**2 / (count + 2)
    middle, width = total / (count + 2), Z * math.sqrt(spread) / (count + 2)
    return Estimate(
        n=count,
        value=total / count,
        low=max(-1.0, middle - width),
        high=min(1.0, middle + width),
    )
