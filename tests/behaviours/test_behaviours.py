"""Behaviours against loops over rows."""

from collections import Counter

import numpy as np
import pytest

from mixope.base.errors import MixopeError
from mixope.behaviours import CountedMixture, KnownMixture, Logged, PerLogger
from mixope.behaviours.calibration import misfit, state_factors

from .problems import S, by_group, laws, plain, problem, rows

SEEDS = range(3)


def invert(behaviour, found, weight=None):
    """Fitted on the groups of a problem and asked about them."""
    groups = found.transitions.as_rows()
    weight = np.ones(len(groups)) if weight is None else weight
    return behaviour.knowing(found.loggers).fit(groups, weight).invert(groups)


def assert_inverse(behaviour, columns, found, b, weight=None):
    """Σ 1/b, Σ r/b and Σ 1/b² per group, where ``b`` gives the denominator of a row."""
    got = invert(behaviour, found, weight)
    np.testing.assert_allclose(got.inverse, by_group(found, columns, lambda row: 1 / b(row)), rtol=1e-10)
    np.testing.assert_allclose(got.reward, by_group(found, columns, lambda row: row[3] / b(row)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got.squared, by_group(found, columns, lambda row: b(row) ** -2), rtol=1e-10)
    return got


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mixture_is_the_frequency_of_actions_over_all_rows(seed):
    columns = rows(seed)
    pairs = Counter((s, a) for _, s, a, *_ in plain(columns))
    states = Counter(s for _, s, *_ in plain(columns))
    found = problem(columns, laws(9, 1)[0])
    got = assert_inverse(CountedMixture(), columns, found, lambda row: pairs[row[1], row[2]] / states[row[1]])
    assert not got.by_row


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mixture_of_reweighted_rows_counts_weights(seed):
    columns, each = rows(seed), {"a": 0.5, "b": 3.0}
    pairs, states = Counter(), Counter()
    for label, s, a, *_ in plain(columns):
        pairs[s, a] += each[label]
        states[s] += each[label]
    found = problem(columns, laws(9, 1)[0])
    weight = np.array([each[found.transitions.loggers[j]] for j in found.transitions.logger])
    assert_inverse(CountedMixture(), columns, found, lambda row: pairs[row[1], row[2]] / states[row[1]], weight)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_logger_is_counted_apart(seed):
    columns = rows(seed)
    pairs = Counter((j, s, a) for j, s, a, *_ in plain(columns))
    states = Counter((j, s) for j, s, *_ in plain(columns))
    found = problem(columns, laws(9, 1)[0])
    assert_inverse(PerLogger(CountedMixture()), columns, found, lambda row: pairs[row[:3]] / states[row[:2]])


@pytest.mark.parametrize("seed", SEEDS)
def test_logged_propensities_are_taken_row_by_row(seed):
    """Also where a logger changed its mind within a state."""
    columns = rows(seed)
    columns["action_prob"] = np.random.default_rng(seed).uniform(0.1, 1.0, size=len(columns["step"]))
    got = assert_inverse(Logged(), columns, problem(columns, laws(9, 1)[0]), lambda row: row[5])
    assert got.by_row


@pytest.mark.parametrize("seed", SEEDS)
def test_known_policies_stand_in_for_propensities_that_were_not_logged(seed):
    columns, law = rows(seed), dict(zip("ab", laws([seed, 1], 2), strict=True))
    found = problem({k: v for k, v in columns.items() if k != "action_prob"}, laws(9, 1)[0], law)
    assert_inverse(Logged(), columns, found, lambda row: law[row[0]][row[1], row[2]])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_known_mixture_mixes_policies_by_their_share_of_the_state(seed):
    columns, law = rows(seed), dict(zip("ab", laws([seed, 1], 2), strict=True))
    counts = Counter((j, s) for j, s, *_ in plain(columns))

    def mixed(row):
        _, s, a, *_ = row
        total = sum(counts[j, s] for j in "ab")
        return sum(counts[j, s] / total * law[j][s, a] for j in "ab")

    assert_inverse(KnownMixture(), columns, problem(columns, laws(9, 1)[0], law), mixed)


def test_the_known_mixture_of_one_logger_needs_only_its_propensities():
    columns = rows(0, labels=("a",))
    found = problem(columns, laws(9, 1)[0])
    assert_inverse(KnownMixture(), columns, found, lambda row: row[5])


def test_a_logger_whose_propensities_change_is_not_one_policy():
    columns = rows(0, labels=("a",))
    columns["action_prob"] = np.random.default_rng(1).uniform(0.2, 1.0, size=len(columns["step"]))
    found = problem(columns, laws(9, 1)[0])
    with pytest.raises(MixopeError, match="not one policy"):
        invert(KnownMixture(), found)


def test_what_is_not_known_is_asked_for_by_name():
    columns = rows(0)
    del columns["action_prob"]
    found = problem(columns, laws(9, 1)[0], {"a": laws([0, 1], 2)[0]})
    with pytest.raises(MixopeError, match="logger 'b' is not known"):
        invert(KnownMixture(), found)
    with pytest.raises(MixopeError, match="policies of loggers 'b'"):
        invert(Logged(), found)
    with pytest.raises(MixopeError, match="no recorded propensities"):
        invert(Logged(), problem(columns, laws(9, 1)[0]))


def test_a_logged_action_that_its_logger_never_takes_is_an_error():
    columns, law = rows(0, labels=("a",)), np.tile([1.0, 0.0, 0.0], (S, 1))
    del columns["action_prob"]
    found = problem(columns, laws(9, 1)[0], {"a": law})
    for behaviour in (KnownMixture(), Logged()):
        with pytest.raises(MixopeError, match="positive probability for every logged action"):
            invert(behaviour, found)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("behaviour", [CountedMixture(), PerLogger(CountedMixture()), Logged()], ids=lambda b: b.name)
def test_calibrated_ratios_add_up_to_the_rows_of_every_state(seed, behaviour):
    columns = rows(seed)
    keep = ~((columns["observation"] == 2) & (columns["action"] == 1))  # an action that is never logged there
    found = problem({k: v[keep] for k, v in columns.items()}, laws(9, 1)[0])
    t = found.transitions
    ratio = found.pair_target[t.pair] * invert(behaviour, found).inverse
    factor = state_factors(t.state, t.rows, ratio, t.n_states)
    total, rows_of = np.zeros(S), np.zeros(S)
    for g in range(t.n_groups):
        total[t.state[g]] += factor[t.state[g]] * ratio[g]
        rows_of[t.state[g]] += t.rows[g]
    np.testing.assert_allclose(total, rows_of, rtol=1e-12)
    assert factor[2] != pytest.approx(1.0, abs=1e-3)


def test_a_state_where_the_target_takes_no_logged_action_has_factor_zero():
    factor = state_factors(np.array([0, 1]), np.array([3.0, 4.0]), np.array([0.0, 2.0]), 2)
    assert factor.tolist() == [0.0, 2.0]


def measured_misfit(columns, target):
    found = problem(columns, target)
    t, got = found.transitions, invert(Logged(), found)
    target_of = found.pair_target[t.pair]
    return misfit(t.state, t.rows, target_of * got.inverse, target_of**2 * got.squared, t.n_states)


def test_the_misfit_of_right_propensities_is_a_standard_normal_and_that_of_wrong_ones_is_large():
    target = laws(9, 1, concentration=8.0)[0]
    right = [measured_misfit(rows(seed, n=1500, logger_laws=laws(5, 2, 8.0)), target)[0] for seed in range(12)]
    assert abs(np.mean(right)) < 1.0
    assert max(np.abs(right)) < 4.0
    columns = rows(0, n=1500, logger_laws=laws(5, 2, 8.0))
    columns["action_prob"] = np.clip(columns["action_prob"] * 1.5, 0, 1)
    assert measured_misfit(columns, target)[0] > 10


def test_in_few_states_the_misfit_of_right_propensities_is_no_more_often_large_than_a_normal_deviate():
    draw, chance, wanted = np.random.default_rng(0), np.array([0.3, 0.7]), np.array([0.6, 0.4])
    ratio, one = wanted / chance, np.zeros(2, dtype=np.int64)
    found = []
    for _ in range(2000):
        taken = draw.multinomial(400, chance).astype(np.float64)
        found.append(misfit(one, taken, taken * ratio, taken * ratio**2, 1)[0])
    assert np.mean(np.array(found) > 3.0) < 0.004  # a normal deviate: 0.00135; χ² less its mean over its spread: 0.022


def test_states_with_few_rows_are_not_judged():
    assert measured_misfit(rows(0, n=40), laws(9, 1)[0]) == (0.0, 0)
