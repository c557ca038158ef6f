"""How weights are spread: shares that add up, the same by group and by batch."""

from functools import reduce

import numpy as np
import pytest

from mixope.requests.weights import WeightCount, weight_bins


def test_rows_and_weight_land_in_the_bin_of_their_multiple_of_the_mean():
    bins = weight_bins(np.array([0.0, 0.5, 1.0, 8.0]), np.array([2.0, 4.0, 5.0, 1.0]))
    mean = (4 * 0.5 + 5 * 1.0 + 8.0) / 12  # 1.25
    assert mean == 1.25
    found = {(b.low, b.high): (b.rows_share, b.weight_share) for b in bins if b.rows_share}
    assert found == {
        (None, 0.0): (pytest.approx(2 / 12), 0.0),
        (0.25, 0.5): (pytest.approx(4 / 12), pytest.approx(2 / 15)),
        (0.5, 1.0): (pytest.approx(5 / 12), pytest.approx(5 / 15)),
        (4.0, 8.0): (pytest.approx(1 / 12), pytest.approx(8 / 15)),
    }


def test_batches_add_up_to_what_all_rows_give():
    weight = np.random.default_rng(0).exponential(size=1000)
    weight /= weight.mean()
    count = reduce(
        WeightCount.merge, (WeightCount.of(batch, np.ones(len(batch))) for batch in np.array_split(weight, 7))
    )
    whole = weight_bins(weight, np.ones(1000))
    for one, two in zip(count.bins(), whole, strict=True):
        assert (one.rows_share, one.weight_share) == pytest.approx((two.rows_share, two.weight_share))
    assert count.largest == weight.max()
    assert sum(b.rows_share for b in whole) == pytest.approx(1.0)


def test_nothing_weighed_has_no_bins():
    assert weight_bins(np.zeros(3), np.ones(3)) == ()
    assert WeightCount.of(np.zeros(3), np.ones(3)).bins() == ()
    assert WeightCount.of(np.zeros(0), np.zeros(0)).bins() == ()


@pytest.mark.parametrize("mean", [80.0, 1e-9, 2.0**40])
def test_bins_are_multiples_of_the_mean_whatever_it_is(mean):
    """Totals of episodes weigh a row by the steps of an episode: all weights stood in the last bin, or in the first."""
    weight = np.random.default_rng(4).choice([0.0, 0.3, 0.7, 1.5, 3.0, 12.0], size=1000)
    weight *= mean / weight.mean()
    parts = [WeightCount.of(batch, np.ones(len(batch))) for batch in np.array_split(weight, 3)]
    found = reduce(WeightCount.merge, parts).bins()
    for each, plain in zip(found, weight_bins(weight, np.ones(1000)), strict=True):
        assert (each.low, each.high) == (plain.low, plain.high)
        assert (each.rows_share, each.weight_share) == pytest.approx((plain.rows_share, plain.weight_share))
