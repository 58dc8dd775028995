import pytest

from graphs.evaluation.statistics import bootstrap, estimate, wilson


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_wilson_gives_the_published_intervals(
    right: int, count: int, low: float, high: float
) -> None:
    assert wilson(right, count) == pytest.approx((low, high), abs=1e-4)


def test_the_bootstrap_gives_the_same_each_time_and_covers_the_mean() -> None:
    values = [0.0, 0.5, 0.5, 1.0] * 20
    low, high = bootstrap(values)
    assert (low, high) == bootstrap(values)
    # The normal approximation: 0.5 ± 1.96 · 0.354 / √80.
    assert (low, high) == pytest.approx((0.4225, 0.5775), abs=0.015)
    assert bootstrap([0.25] * 9) == (0.25, 0.25)


def test_shares_and_means_have_intervals_of_their_kind() -> None:
    share = estimate([1.0, 1.0, 1.0])
    assert (share.n, share.value, share.high) == (3, 1.0, 1.0)
    assert share.low == pytest.approx(0.4385, abs=1e-4)
    mean = estimate([0.5, 0.5])
    assert (mean.value, mean.low, mean.high) == (0.5, 0.5, 0.5)
