import pytest

from graphs.evaluation.statistics import estimate, estimate_change, wilson


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


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param([0.5], id="one in between"),
        pytest.param([1.0], id="one right"),
        pytest.param([0.0], id="one wrong"),
        pytest.param([0.5, 0.5], id="two alike"),
        pytest.param([1.0] * 45, id="all right"),
        pytest.param([0.25] * 9, id="all alike"),
    ],
)
def test_few_or_equal_scores_claim_no_certainty(scores: list[float]) -> None:
    found = estimate(scores)
    assert found.low <= found.value <= found.high
    assert found.high - found.low > 1 / (len(scores) + 4)


def test_a_mean_has_an_interval_that_covers_it_and_narrows() -> None:
    few, many = estimate([0.0, 0.5, 0.5, 1.0] * 2), estimate([0.0, 0.5, 0.5, 1.0] * 20)
    assert (few.value, many.value, many.n) == (0.5, 0.5, 80)
    assert (many.low, many.high) == pytest.approx((0.393, 0.607), abs=1e-3)
    assert few.low < many.low
    assert many.high < few.high


def test_changes_have_the_published_interval() -> None:
    # Agresti and Min (2005): 1144 pairs, 132 changed one way, 107 the other.
    found = estimate_change([1.0] * 132 + [-1.0] * 107 + [0.0] * 905)
    assert found.value == pytest.approx(25 / 1144)
    assert (found.low, found.high) == pytest.approx((-0.0047, 0.0483), abs=2e-4)


@pytest.mark.parametrize(
    ("differences", "least"),
    [
        pytest.param([0.0], 1.2, id="one that did not change"),
        pytest.param([0.0] * 45, 0.08, id="many that did not change"),
        pytest.param([1.0], 0.9, id="one that changed"),
        pytest.param([-1.0] * 3, 0.9, id="all changed"),
    ],
)
def test_changes_of_few_or_none_claim_no_certainty(
    differences: list[float], least: float
) -> None:
    found = estimate_change(differences)
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert found.high - found.low > least
