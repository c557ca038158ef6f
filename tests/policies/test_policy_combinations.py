"""Mixtures, softened and constant policies are laws again, and align actions by value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixope.base.errors import DataError, UsageError
from mixope.policies import CallablePolicy, Constant, DiscretePolicy, Mixture, Softened, TabularPolicy, uniform

SEEDS = st.integers(0, 10_000)


def random_policy(generator: np.random.Generator, states: int, actions: int) -> TabularPolicy:
    order = generator.permutation(actions)
    table = generator.dirichlet(np.full(actions, 0.3), states)
    return TabularPolicy(table[:, order], actions=np.char.add("a", order.astype(str)))


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, count=st.integers(1, 4), actions=st.integers(1, 5))
def test_a_mixture_is_the_average_by_action_and_sums_to_one(seed: int, count: int, actions: int) -> None:
    generator = np.random.default_rng(seed)
    policies = [random_policy(generator, 3, actions) for _ in range(count)]
    weights = generator.dirichlet(np.ones(count))
    mixture, states = Mixture(policies, weights), np.arange(3)
    assert isinstance(mixture, DiscretePolicy)
    np.testing.assert_allclose(mixture.probs(states).sum(axis=1), 1)
    for j, action in enumerate(mixture.actions):
        taken = np.repeat(action, 3)
        slow = sum(w * np.exp(p.log_prob(states, taken)) for w, p in zip(weights, policies, strict=True))
        np.testing.assert_allclose(mixture.probs(states)[:, j], slow, atol=1e-14)
        np.testing.assert_allclose(np.exp(mixture.log_prob(states, taken)), slow, atol=1e-14)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, actions=st.integers(1, 5), epsilon=st.floats(0, 1))
def test_softening_keeps_laws_and_lifts_every_action(seed: int, actions: int, epsilon: float) -> None:
    policy = random_policy(np.random.default_rng(seed), 3, actions)
    softened, states = Softened(policy, epsilon), np.arange(3)
    probs = softened.probs(states)
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    np.testing.assert_allclose(probs, (1 - epsilon) * policy.probs(states) + epsilon / actions)
    for j, action in enumerate(softened.actions):
        np.testing.assert_allclose(np.exp(softened.log_prob(states, np.repeat(action, 3))), probs[:, j], atol=1e-14)


def test_a_mixture_is_the_same_in_any_order() -> None:
    generator = np.random.default_rng(0)
    one, two = random_policy(generator, 3, 3), random_policy(generator, 3, 3)
    assert Mixture([one, two], [0.3, 0.7]).fingerprint() == Mixture([two, one], [0.7, 0.3]).fingerprint()
    assert Mixture([one, two], [0.3, 0.7]).fingerprint() != Mixture([one, two], [0.7, 0.3]).fingerprint()


def test_a_policy_of_weight_zero_is_not_even_asked() -> None:
    narrow, wide = TabularPolicy([[0.5, 0.5]]), TabularPolicy([[0.1, 0.9]] * 2)
    mixture = Mixture([narrow, wide], [0, 1])
    assert mixture.probs(np.array([1])).tolist() == [[0.1, 0.9]]
    assert mixture.weights.tolist() == [1.0]


def test_combinations_take_any_discrete_policy() -> None:
    call = CallablePolicy(lambda observations: np.tile([0.2, 0.8], (len(observations), 1)), actions=["r", "l"])
    mixture = Mixture([uniform(["l", "r"]), Softened(call, 0.5)])
    np.testing.assert_allclose(mixture.probs(np.zeros((1, 3))), [[0.575, 0.425]])


def test_equal_weights_by_default() -> None:
    mixture = Mixture([TabularPolicy([[1.0, 0.0]]), TabularPolicy([[0.0, 1.0]])])
    assert mixture.probs(np.array([0])).tolist() == [[0.5, 0.5]]
    assert np.exp(mixture.log_prob(np.array([0]), np.array([1]))).tolist() == [0.5]


def test_an_action_that_counts_as_zero_stays_zero_when_softened() -> None:
    softened = Softened(TabularPolicy([[0.5, 0.5]], unknown_actions="zero"), 0.2)
    assert softened.log_prob(np.array([0, 0]), np.array([9, 1])).tolist() == [-np.inf, np.log(0.5)]
    with pytest.raises(DataError, match="does not know"):
        Softened(TabularPolicy([[0.5, 0.5]]), 0.2).log_prob(np.array([0]), np.array([9]))


def test_softening_fingerprints_differ_by_epsilon() -> None:
    policy = TabularPolicy([[0.5, 0.5]])
    assert Softened(policy, 0.1).fingerprint() != Softened(policy, 0.2).fingerprint()


def test_uniform_answers_everywhere_or_in_its_states() -> None:
    everywhere = uniform(["l", "r"])
    assert everywhere.probs(np.zeros((2, 4))).tolist() == [[0.5, 0.5]] * 2
    assert everywhere.log_prob(np.array([3]), np.array(["r"])).tolist() == [np.log(0.5)]
    bounded = uniform([4, 5, 6], states=["a", "b"])
    np.testing.assert_allclose(bounded.probs(np.array(["b"])), 1 / 3)
    with pytest.raises(DataError, match="'c'"):
        bounded.probs(np.array(["c"]))


def test_constant_laws_do_not_depend_on_the_order_of_actions() -> None:
    assert Constant([0.1, 0.9], [1, 2]).fingerprint() == Constant([0.9, 0.1], [2, 1]).fingerprint()


MALFORMED = {
    "no policies": (lambda: Mixture([]), UsageError, "at least one policy"),
    "not discrete": (
        lambda: Mixture([CallablePolicy(lambda o, a: a)]),
        UsageError,
        "policy 0 of the mixture has no finite",
    ),
    "softening the unknown": (
        lambda: Softened(CallablePolicy(lambda o, a: a), 0.1),
        UsageError,
        "the policy to soften",
    ),
    "epsilon": (lambda: Softened(uniform([0, 1]), 1.5), UsageError, "expected 0 … 1, got 1.5"),
    "weights, count": (lambda: Mixture([uniform([0])], [0.5, 0.5]), DataError, "weights do not fit"),
    "weights, sum": (lambda: Mixture([uniform([0])], [0.5]), DataError, "the weights of 1 row"),
    "weights, sign": (lambda: Mixture([uniform([0])] * 2, [-0.5, 1.0]), DataError, "weights have negative"),
    "other actions": (lambda: Mixture([uniform([0, 1]), uniform([1, 2])]), DataError, "missing 0; besides 2"),
    "fewer actions": (lambda: Mixture([uniform([0, 1]), uniform([1])]), DataError, "missing 0; besides none"),
    "kinds of actions": (lambda: Mixture([uniform([0]), uniform(["0"])]), DataError, "string actions"),
    "constant, shape": (lambda: Constant([[0.5, 0.5]]), DataError, "one action law"),
    "constant, labels": (lambda: Constant([0.5, 0.5], [1]), DataError, "do not fit their labels"),
    "constant, sum": (lambda: Constant([0.5, 0.4]), DataError, "do not sum to one"),
    "uniform over nothing": (lambda: uniform([]), DataError, "needs actions"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_combinations_are_refused_in_their_own_words(name: str) -> None:
    make, kind, words = MALFORMED[name]
    with pytest.raises(kind) as caught:
        make()
    assert words in str(caught.value)
