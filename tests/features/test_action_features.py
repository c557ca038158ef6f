"""Action features: their mean under a policy is what many draws give."""

import tracemalloc

import numpy as np
import pytest

import mixope
from mixope.base.errors import DataError
from mixope.features.actions import DiscreteActions, QuadraticActions

STATES = np.array([[0.0, 0.0], [1.0, -1.0], [-2.0, 0.5]])
DRAWS = 200_000


def by_draws(psi, policy):
    generator = np.random.default_rng(1)
    return np.stack([psi.of(policy.sample(np.repeat(s[None], DRAWS, axis=0), generator)).mean(axis=0) for s in STATES])


def policies(d):
    weights, scale = np.linspace(-0.5, 0.6, 2 * d).reshape(d, 2), np.linspace(0.6, 0.9, d)
    linear = {"weights": weights, "bias": 0.1, "scale": scale}
    return {
        "plain": mixope.LinearGaussianPolicy(**linear),
        "clipped": mixope.LinearGaussianPolicy(**linear, low=-1.0, high=1.0, clipped=True),
        "squashed": mixope.SquashedGaussianPolicy(lambda s: s @ weights.T, scale),
    }


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("law", ["plain", "clipped", "squashed"])
def test_the_mean_under_a_gaussian_equals_many_draws(law, d):
    """Quadrature is exact for the plain law; few nodes are off by some hundredths at a bound."""
    psi = QuadraticActions(np.full(d, 0.2), np.full(d, 0.8))
    policy = policies(d)[law]
    tolerance = {"plain": 0.02, "clipped": 0.1, "squashed": 0.05}[law]
    assert psi.under(policy, STATES) == pytest.approx(by_draws(psi, policy), abs=tolerance)


def test_the_plain_mean_is_exact():
    policy, psi = mixope.LinearGaussianPolicy([0.5, -0.2], 0.1, 0.7), QuadraticActions(np.zeros(1), np.ones(1))
    mean = policy.mean(STATES)[:, 0]
    assert psi.under(policy, STATES) == pytest.approx(np.stack([np.ones(3), mean, mean**2 + 0.49], axis=1), abs=1e-12)


def test_the_box_of_the_environment_clips_what_was_recorded_unclipped():
    policy = policies(1)["plain"]
    psi = QuadraticActions(np.zeros(1), np.ones(1), np.array([-0.4]), np.array([0.4]))
    assert np.array_equal(psi.of(np.array([[2.0], [-9.0], [0.1]]))[:, 1], [0.4, -0.4, 0.1])
    assert psi.under(policy, STATES) == pytest.approx(by_draws(psi, policy), abs=0.08)


def test_squares_and_products_are_all_there():
    psi = QuadraticActions(np.zeros(3), np.ones(3))
    a = np.array([[2.0, 3.0, 5.0]])
    assert psi.of(a).tolist() == [[1, 2, 3, 5, 4, 6, 10, 9, 15, 25]]
    assert psi.size == 10
    assert QuadraticActions(np.array([1.0]), np.array([2.0])).of(np.array([[5.0]])).tolist() == [[1, 2, 4]]


def test_actions_of_many_components_have_no_products_and_cost_no_more_than_their_number():
    """Ten components took 2¹⁰ nodes for every state."""
    psi, policy = QuadraticActions(np.zeros(10), np.ones(10)), policies(10)["squashed"]
    assert psi.size == 11
    assert psi.under(policy, np.zeros((4, 2))).shape == (4, 11)


def test_a_squashed_target_of_ten_components_takes_little_memory():
    """2¹⁰ nodes for each of 500 states took 516 MB."""
    psi, policy = QuadraticActions(np.zeros(10), np.ones(10)), policies(10)["squashed"]
    states = np.random.default_rng(0).normal(size=(500, 2))
    tracemalloc.start()
    psi.under(policy, states)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_a_mixture_of_gaussians_is_drawn_from():
    class Two:
        """Half here, half there."""

        def log_prob(self, observations, actions):
            raise NotImplementedError

        def sample(self, observations, generator):
            side = np.where(generator.random((len(observations), 1)) < 0.5, -1.0, 1.0)
            return side + 0.1 * generator.standard_normal((len(observations), 1))

        def fingerprint(self):
            return "two"

    psi = QuadraticActions(np.zeros(1), np.ones(1))
    many = np.zeros((4000, 2))
    assert psi.under(Two(), many).mean(axis=0) == pytest.approx([1.0, 0.0, 1.01], abs=0.01)
    assert np.array_equal(psi.under(Two(), many), psi.under(Two(), many))


def test_a_target_that_cannot_be_drawn_from_is_refused_with_words():
    policy = mixope.CallablePolicy(lambda observations, actions: np.ones(len(actions)))
    with pytest.raises(DataError, match="cannot be drawn from"):
        QuadraticActions(np.zeros(1), np.ones(1)).under(policy, STATES)


def test_discrete_actions_are_one_hot_and_their_mean_the_law():
    psi = DiscreteActions(np.array(["left", "right", "stay"]))
    assert np.array_equal(psi.of(np.array(["stay", "left"])), np.eye(3)[[2, 0]])

    def law(observations):
        return np.tile([0.2, 0.8], (len(observations), 1))

    named = mixope.CallablePolicy(law, actions=["right", "left"])
    assert psi.under(named, STATES) == pytest.approx(np.tile([0.8, 0.2, 0.0], (3, 1)))
    with pytest.raises(DataError, match="not among those of the sample"):
        psi.of(np.array(["up"]))


def test_discrete_actions_ask_a_function_of_actions_once_for_each():
    psi = DiscreteActions(np.array([0, 1]))
    policy = mixope.CallablePolicy(lambda observations, actions: np.where(actions == 1, 0.7, 0.3))
    assert psi.under(policy, STATES) == pytest.approx(np.tile([0.3, 0.7], (3, 1)))
