"""Each method against a law that is known by construction."""

import numpy as np
import pytest
from scipy import stats

from mixope.base.estimand import Estimand
from mixope.uncertainty import (
    SCORE_INTERVALS,
    IntervalChoice,
    Scores,
    bca_interval,
    block_length,
    block_scores,
    clustered_interval,
    few_episodes,
    judge_scores,
    likelihood_interval,
    percentile_interval,
    standard_error,
)
from mixope.uncertainty.likelihood import deviance
from mixope.uncertainty.refits import acceleration, median_bias


def scores_of(sample):
    return (sample - sample.mean()) / len(sample)


def resampled_means(sample, generator, replicates=2000):
    return generator.choice(sample, size=(replicates, len(sample))).mean(axis=1)


def test_the_normal_interval_is_the_t_interval_of_many_episodes():
    sample = np.random.default_rng(0).normal(size=12)
    t, normal = (clustered_interval(sample.mean(), scores_of(sample), 0.9, law) for law in ("t", "normal"))
    assert normal.width / t.width == pytest.approx(stats.norm.ppf(0.95) / stats.t.ppf(0.95, 11))
    assert (t.method, normal.method) == ("clustered score, t", "clustered score, normal")


@pytest.mark.parametrize("episodes", [4, 12])
def test_the_t_interval_of_a_mean_is_the_textbook_one_and_covers_with_few_episodes(episodes):
    """Without m/(m−1) it would hold the mean of four normal numbers in 92 of 100 samples."""
    generator, held = np.random.default_rng(11), 0
    for _ in range(2000):
        sample = generator.normal(size=episodes)
        found = clustered_interval(sample.mean(), scores_of(sample), 0.95)
        held += found.low <= 0.0 <= found.high
    exact = stats.t.interval(0.95, episodes - 1, sample.mean(), stats.sem(sample))
    assert (found.low, found.high) == pytest.approx(exact)
    assert held / 2000 == pytest.approx(0.95, abs=0.012)


def test_bca_covers_a_skewed_mean_on_both_sides_better_than_percentile():
    """Means of 25 exponentials: the percentile interval misses mostly on one side."""
    generator = np.random.default_rng(1)
    missed = {"bca": [0, 0], "percentile": [0, 0]}
    for _ in range(300):
        sample = generator.exponential(size=25)
        means = resampled_means(sample, generator, 600)
        found = {
            "bca": bca_interval(sample.mean(), means, scores_of(sample), 0.9),
            "percentile": percentile_interval(means, 0.9),
        }
        for name, interval in found.items():
            missed[name][0] += interval.low > 1.0
            missed[name][1] += interval.high < 1.0
    assert missed["bca"][1] < missed["percentile"][1]
    assert sum(missed["bca"]) / 300 == pytest.approx(0.1, abs=0.06)


def test_bca_agrees_with_an_independent_program():
    generator = np.random.default_rng(3)
    sample = generator.exponential(size=40)
    reference = stats.bootstrap((sample,), np.mean, n_resamples=9999, method="BCa", rng=generator).confidence_interval
    ours = bca_interval(sample.mean(), resampled_means(sample, generator, 9999), scores_of(sample), 0.95)
    assert ours.low == pytest.approx(reference.low, abs=0.03)
    assert ours.high == pytest.approx(reference.high, abs=0.03)


def test_bca_of_a_symmetric_law_is_the_percentile_interval():
    means = np.sort(np.random.default_rng(2).normal(size=4001))
    symmetric = np.concatenate([means, -means])
    bca = bca_interval(0.0, symmetric, np.array([-1.0, 1.0]), 0.95)
    plain = percentile_interval(symmetric, 0.95)
    assert (bca.low, bca.high) == pytest.approx((plain.low, plain.high))


def test_corrections_stay_finite():
    assert np.isfinite(median_bias(10.0, np.arange(5.0)))
    assert median_bias(1.0, np.ones(5)) == 0.0
    assert acceleration(np.zeros(3)) == 0.0


def test_empirical_likelihood_is_near_t_on_normal_data():
    sample = np.random.default_rng(4).normal(size=200)
    t = clustered_interval(sample.mean(), scores_of(sample), 0.95)
    likelihood = likelihood_interval(sample.mean(), scores_of(sample), 0.95)
    assert likelihood.low == pytest.approx(t.low, abs=0.05 * t.width)
    assert likelihood.high == pytest.approx(t.high, abs=0.05 * t.width)
    assert likelihood.method == "empirical likelihood"


def test_empirical_likelihood_ends_lie_on_the_limit_and_lean_with_the_skewness():
    sample = np.random.default_rng(5).exponential(size=60)
    interval = likelihood_interval(sample.mean(), scores_of(sample), 0.95)
    limit = stats.chi2.ppf(0.95, 1)
    assert deviance(sample - interval.low) == pytest.approx(limit, abs=1e-6)
    assert deviance(sample - interval.high) == pytest.approx(limit, abs=1e-6)
    assert interval.high - sample.mean() > sample.mean() - interval.low


def test_empirical_likelihood_stays_within_the_episodes():
    sample = np.array([0.0, 1.0, 5.0])
    interval = likelihood_interval(sample.mean(), scores_of(sample), 0.9999)
    assert 0.0 <= interval.low < interval.high <= 5.0
    assert deviance(np.array([1.0, 2.0])) == np.inf
    same = likelihood_interval(2.0, np.zeros(4), 0.95)
    assert (same.low, same.high) == (2.0, 2.0)
    assert likelihood_interval(2.0, np.zeros(1), 0.95) is None


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_batch_means_find_the_long_run_variance_of_an_autoregression(rho):
    """se² of the mean of an AR(1) with unit innovations is 1/(n (1−ρ)²) in the limit."""
    n, found = 20_000, []
    for seed in range(8):
        noise = np.random.default_rng([6, seed]).normal(size=n)
        x = np.empty(n)
        x[0] = noise[0]
        for t in range(1, n):
            x[t] = rho * x[t - 1] + noise[t]
        found.append(standard_error(block_scores(scores_of(x))) ** 2 * n)
    assert np.mean(found) == pytest.approx(1.0 / (1.0 - rho) ** 2, rel=0.2)


def test_blocks_are_longer_where_dependence_is_longer_and_never_fewer_than_ten():
    noise = np.random.default_rng(7).normal(size=2000)
    slow = np.cumsum(noise)
    assert block_length(noise) == 45
    assert block_length(slow) == 200
    assert len(block_scores(slow)) == 10
    assert block_length(np.stack([noise, slow], axis=1)) == 200


def test_independent_scores_in_blocks_have_the_plain_error():
    sample = np.random.default_rng(8).normal(size=10_000)
    assert standard_error(block_scores(scores_of(sample))) == pytest.approx(0.01, rel=0.2)
    assert standard_error(block_scores(scores_of(sample), length=1)) == pytest.approx(stats.sem(sample))


def blocks_of(value, scores):
    by_step = Scores(np.array([scores.sum()]), scores, np.array([len(scores)]))
    return judge_scores(IntervalChoice("blocks"), value, by_step, 0.95, Estimand(), 1)


def test_a_short_sequence_has_no_blocks():
    assert "at least 50 steps" in blocks_of(0.0, np.zeros(20)).because
    assert blocks_of(np.nan, np.zeros(200)).interval is None
    found = blocks_of(1.0, np.random.default_rng(0).normal(size=200) / 200)
    assert found.interval.low < 1.0 < found.interval.high
    assert found.n_blocks == 13


def test_few_episodes_are_said():
    assert few_episodes(20) is None
    assert "one episode" in few_episodes(1)
    assert "5 episodes" in few_episodes(5)


def test_intervals_have_names():
    sample = np.random.default_rng(0).normal(size=30)
    found = {name: SCORE_INTERVALS[name](0.0, scores_of(sample), 0.95).method for name in ("t", "normal", "likelihood")}
    assert found == {
        "t": "clustered score, t",
        "normal": "clustered score, normal",
        "likelihood": "empirical likelihood",
    }
