"""Confidence sequences: their formula, what they cover while one looks, and where they are refused."""

import numpy as np
import pytest
from scipy import optimize, stats

import mixope
from mixope.base.errors import UsageError
from mixope.uncertainty import boundary, bounded_sequence, one_look_level, sequence_interval, sequence_reach
from mixope.uncertainty.sequences import lower_sequence

from .logs import chain_log, factored_log


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_the_boundary_is_least_at_the_plan(level):
    least = optimize.minimize_scalar(lambda clock: boundary(clock, level), bounds=(0.05, 20), method="bounded")
    assert least.x == pytest.approx(1.0, rel=1e-3)
    assert boundary(1.0, level) > stats.norm.ppf(0.5 + level / 2)


def test_the_boundary_is_where_the_mixture_of_likelihoods_is_one_over_alpha():
    """The normal mixture by numerical integration: ∫ exp(μ S − μ² V/2) dN(μ; 0, 1/ρ) = 1/α."""
    level, clock = 0.95, 0.4
    squared = lambda f: (1 + 1 / f) * (np.log(1 + f) - 2 * np.log(1 - level))  # noqa: E731
    best = optimize.minimize_scalar(squared, bounds=(1, 50), method="bounded", options={"xatol": 1e-9}).x
    information, rho = 1.0, 1.0 / (clock * best)
    total = boundary(clock, level) * np.sqrt(information)
    grid = np.linspace(-30, 30, 200_001)
    density = np.exp(grid * total - grid**2 * information / 2) * stats.norm.pdf(grid, scale=1 / np.sqrt(rho))
    assert np.trapezoid(density, grid) == pytest.approx(1 / (1 - level), rel=1e-3)


def test_the_level_of_one_look_gives_the_same_width():
    level = one_look_level(0.7, 0.95)
    assert stats.norm.ppf(0.5 + level / 2) == pytest.approx(boundary(0.7, 0.95))
    assert sequence_reach(0.7, 0.95, 30) == pytest.approx(stats.t.ppf(0.5 + level / 2, 30))
    assert 0 < 1 - one_look_level(1e-6, 0.95) < 1e-11


def peeked(draw, half, looks, tests, seed):
    """The share of tests in which the mean 0 was inside at all looks."""
    generator = np.random.default_rng(seed)
    sample = draw(generator, (tests, looks[-1]))
    n = np.array(looks)
    mean = sample.cumsum(axis=1)[:, n - 1] / n
    spread = np.sqrt((sample**2).cumsum(axis=1)[:, n - 1] / n - mean**2)
    reach = np.array([half(k) for k in n]) * spread / np.sqrt(n - 1)
    return np.mean(np.all(np.abs(mean) <= reach, axis=1))


@pytest.mark.long
@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_a_sequence_holds_at_all_looks_where_an_interval_for_one_look_does_not(law):
    draw = {"normal": np.random.Generator.standard_normal, "exponential": lambda g, s: g.exponential(size=s) - 1}[law]
    looks = range(40, 2_001, 5)
    always = peeked(draw, lambda n: sequence_reach(n / 500, 0.95, n - 1), looks, 2_000, 1)
    once = peeked(draw, lambda n: stats.t.ppf(0.975, n - 1), looks, 2_000, 1)
    assert always >= 0.95
    assert once < 0.75


def test_a_sequence_is_made_from_the_scores():
    scores = np.random.default_rng(0).standard_normal(400) / 400
    found = sequence_interval(2.0, scores, 0.95, planned=400)
    error = np.sqrt(400 / 399 * np.sum(scores**2))
    assert found.width / 2 == pytest.approx(3.035 * error, rel=0.02)
    assert found.method == "clustered score, anytime-valid"
    assert sequence_interval(2.0, scores[:1], 0.95) is None


# --- bounded rewards


def slow_lower(terms, alpha):
    """One term after the other, as the theorem has it."""
    found, best, top, bottom, cost = [], 0.0, 0.0, 0.0, np.log(1 / alpha)
    guess, spread, seen = 0.5, 0.25, []
    squares = 0.25
    for k, term in enumerate(terms, 1):
        bet = min(np.sqrt(2 * np.log(1 / alpha) / (spread * k * np.log(k + 1))), 0.5)
        cost += (-np.log(1 - bet) - bet) * (term - guess) ** 2
        top, bottom = top + bet * term, bottom + bet
        best = max(best, (top - cost) / bottom)
        found.append(min(best, 1.0))
        seen.append(term)
        squares += (term - guess) ** 2
        spread = squares / (k + 1)
        guess = min((0.5 + sum(seen)) / (k + 1), 1.0)
    return np.array(found)


def test_the_bounded_sequence_is_the_slow_loop():
    generator = np.random.default_rng(3)
    terms = generator.exponential(size=200) * (generator.random(200) < 0.4)
    assert lower_sequence(terms, 0.025) == pytest.approx(slow_lower(terms, 0.025))


def weighted_rewards(generator, n):
    """A logger takes action 1 with .2, the target with .7; the target earns .3 × .2 + .7 × .6 = .48."""
    action = generator.random(n) < 0.2
    rewards = (generator.random(n) < np.where(action, 0.6, 0.2)).astype(float)
    return rewards, np.where(action, 0.7 / 0.2, 0.3 / 0.8)


def test_the_bounded_sequence_holds_the_truth_at_all_times():
    generator, inside = np.random.default_rng(4), []
    for _ in range(300):
        rewards, weights = weighted_rewards(generator, 1_500)
        low, high = bounded_sequence(10 * rewards - 5, -5, 5, weights=weights)
        inside.append(bool(np.all((low <= -0.2) & (high >= -0.2))))
    assert np.mean(inside) >= 0.95
    assert high[-1] - low[-1] < 3.0
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) <= 0)


def test_bounded_rewards_on_policy_need_no_weights():
    rewards = np.random.default_rng(5).random(2_000)
    low, high = bounded_sequence(rewards, 0, 1)
    assert low[-1] < 0.5 < high[-1]
    assert high[-1] - low[-1] < 0.1


def test_rewards_beyond_the_bounds_are_refused():
    with pytest.raises(UsageError, match="between low and high"):
        bounded_sequence(np.array([0.2, 1.2]), 0, 1)
    with pytest.raises(UsageError, match="none is negative"):
        bounded_sequence(np.array([0.2, 0.4]), 0, 1, weights=np.array([1.0, -1.0]))


# --- evaluate and compare


def test_evaluate_has_a_sequence_from_scores_and_says_so():
    _, target, _, columns = chain_log(seed=3)
    policy = mixope.TabularPolicy(target)
    once = mixope.evaluate(columns, policy, "emp")
    always = mixope.evaluate(columns, policy, "emp", interval="sequence", planned=24)
    assert always.value == once.value
    assert always.standard_error == once.standard_error
    assert always.interval.method == "clustered score, anytime-valid"
    assert 1.4 < always.interval.width / once.interval.width < 2.2
    unplanned = mixope.evaluate(columns, policy, "emp", interval="sequence")
    assert unplanned.interval.width > always.interval.width


def test_the_target_against_its_loggers_is_watched_too():
    _, target, _, columns = chain_log(seed=3)
    found = mixope.evaluate(columns, mixope.TabularPolicy(target), "emp", interval="sequence")
    assert found.loggers[0].difference.interval.method.endswith("anytime-valid")


def test_differences_of_targets_are_watched_and_what_is_joint_is_not():
    _, target, loggers, columns = chain_log(seed=3)
    targets = {"new": mixope.TabularPolicy(target), "old": mixope.TabularPolicy(loggers[0])}
    once = mixope.compare(columns, targets, "emp").differences[0]
    always = mixope.compare(columns, targets, "emp", interval="sequence", planned=24).differences[0]
    (pair,), (other,) = always.pairs, once.pairs
    assert pair.interval.method == "difference of clustered scores, anytime-valid"
    assert pair.interval.width / 2 == pytest.approx(sequence_reach(1.0, 0.95, 23) * other.standard_error)
    assert pair.joint == other.joint
    assert any("for one look" in said for said in always.alerts)


def test_an_estimator_without_scores_refuses_a_sequence_in_words():
    _, policy, columns = factored_log(seed=3)
    with pytest.raises(UsageError, match=r"'lstdq' has no interval 'sequence' here: "):
        mixope.evaluate(columns, policy, "lstdq", interval="sequence")


def test_a_plan_is_a_number_of_episodes():
    _, target, _, columns = chain_log(seed=3)
    with pytest.raises(UsageError, match="planned"):
        mixope.evaluate(columns, mixope.TabularPolicy(target), interval="sequence", planned=0)
