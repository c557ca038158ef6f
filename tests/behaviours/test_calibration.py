"""Calibration: the identity it solves, its one-hot case, and the z-scores it gives away."""

import numpy as np
import pytest

from laws.slow_moments import calibration_moments
from mixope.base.errors import DataError
from mixope.behaviours import state_factors
from mixope.behaviours.calibration import apply_calibration, solve_calibration, z_scores
from mixope.features import NormalisedBumps


def sample(n=4000, shift=0.3, seed=0, wrong=0.0):
    """States, ratios of N(shift·s, 1) to N(0, 1) (or to a wrong N(wrong, 1)) at actions from N(0, 1), weights."""
    generator = np.random.default_rng(seed)
    states = generator.normal(size=(n, 2))
    action = generator.normal(size=n)
    ratio = np.exp(-0.5 * (action - shift * states[:, 0]) ** 2 + 0.5 * (action - wrong) ** 2)
    return states, ratio, generator.uniform(0.5, 2.0, n)


def test_calibrated_ratios_leave_the_features_as_they_are():
    states, ratio, weight = sample()
    phi = NormalisedBumps(40).fit(states).transform(states)
    moments = calibration_moments(phi, ratio, weight)
    solved = solve_calibration(moments)
    calibrated, clipped = apply_calibration(ratio, phi, solved.eta)
    assert clipped == 0
    np.testing.assert_allclose(phi.T @ (weight * calibrated), phi.T @ weight, rtol=1e-8)
    assert solved.residual < 1e-8
    assert solved.rank == 40
    assert solved.condition > 1


def test_redundant_features_are_left_out_and_the_identity_still_holds():
    states, ratio, weight = sample()
    phi = NormalisedBumps(10).fit(states).transform(states)
    phi = np.concatenate([phi, np.ones((len(phi), 1)), phi[:, :1], np.zeros((len(phi), 1))], axis=1)
    solved = solve_calibration(calibration_moments(phi, ratio, weight))
    calibrated, _ = apply_calibration(ratio, phi, solved.eta)
    assert solved.rank == 10
    np.testing.assert_allclose(phi.T @ (weight * calibrated), phi.T @ weight, rtol=1e-8)


def test_one_hot_features_give_the_factor_of_every_state():
    generator = np.random.default_rng(0)
    state = generator.choice(6, p=[0.5, 0.3, 0.15, 0.04, 0.009, 0.001], size=5000)
    ratio = generator.choice([0.0, 0.5, 3.0], size=5000)
    ratio[state == 3] = 0.0
    weight = generator.uniform(0.5, 2.0, 5000)
    phi = np.eye(6)[state]
    calibrated, _ = apply_calibration(ratio, phi, solve_calibration(calibration_moments(phi, ratio, weight)).eta)
    factor = state_factors(state, weight, weight * ratio, 6)
    np.testing.assert_allclose(calibrated, ratio * factor[state], rtol=1e-10)


def test_a_row_that_happened_n_times_counts_like_n_rows():
    states, ratio, weight = sample(300)
    times = np.arange(300) % 4
    copies = np.repeat(np.arange(300), times)
    phi = NormalisedBumps(6).fit(states).transform(states)
    grouped = calibration_moments(phi, ratio, weight, times.astype(float))
    copied = calibration_moments(phi[copies], ratio[copies], weight[copies])
    for name in ("gram", "plain", "weighted", "spread"):
        np.testing.assert_allclose(getattr(grouped, name), getattr(copied, name), rtol=1e-12)


def test_batches_add_up_to_one_pass():
    states, ratio, weight = sample()
    phi = NormalisedBumps(15).fit(states).transform(states)
    parts = np.array_split(np.arange(len(phi)), 7)
    sums = [calibration_moments(phi[part], ratio[part], weight[part]) for part in parts]
    whole = calibration_moments(phi, ratio, weight)
    for name in ("gram", "plain", "weighted", "spread"):
        np.testing.assert_allclose(sum(getattr(part, name) for part in sums), getattr(whole, name), rtol=1e-12)


def test_z_scores_are_standard_normal_for_the_right_behaviour():
    scores = []
    for seed in range(200):
        states, ratio, weight = sample(600, shift=0.15, seed=seed)
        quadrant = (states > 0) @ np.array([1, 2])
        scores.append(z_scores(calibration_moments(np.eye(4)[quadrant], ratio, weight)))
    values = np.concatenate(scores)
    assert abs(values.mean()) < 0.15
    assert 0.9 < values.std() < 1.1
    assert 0.02 < np.mean(np.abs(values) > 1.96) < 0.08


def test_z_scores_are_large_for_a_wrong_behaviour():
    states, ratio, weight = sample(wrong=0.3)
    phi = NormalisedBumps(8).fit(states).transform(states)
    assert np.abs(z_scores(calibration_moments(phi, ratio, weight))).max() > 5


def test_z_scores_are_zero_where_target_and_behaviour_agree():
    phi = np.ones((5, 1))
    assert z_scores(calibration_moments(phi, np.ones(5), np.ones(5))).tolist() == [0.0]


def test_ratios_never_fall_below_zero_and_such_rows_are_counted():
    phi = np.array([[0.0], [1.0], [2.0]])
    calibrated, clipped = apply_calibration(np.array([1.0, 1.0, 0.0]), phi, np.array([-2.0]))
    np.testing.assert_array_equal(calibrated, [1.0, 0.0, 0.0])
    assert clipped == 1


def test_a_ridge_shrinks_the_correction():
    states, ratio, weight = sample()
    phi = NormalisedBumps(10).fit(states).transform(states)
    moments = calibration_moments(phi, ratio, weight)
    free, held = solve_calibration(moments), solve_calibration(moments, ridge=1.0)
    assert np.linalg.norm(held.eta) < np.linalg.norm(free.eta)
    assert held.residual > free.residual


def test_a_target_outside_the_logs_and_mixed_rows_are_refused():
    phi = np.ones((4, 1))
    with pytest.raises(DataError, match="no weight to any logged row"):
        solve_calibration(calibration_moments(phi, np.zeros(4), np.ones(4)))
    with pytest.raises(DataError, match="same rows"):
        calibration_moments(phi, np.ones(3), np.ones(4))
