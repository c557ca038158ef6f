"""Customers who never came back are no copies of each other; copies with noise in the last digits are copies."""

import numpy as np
import pytest
from tests.adversarial.test_repeated_episodes import check, of_vectors, repeated

from mixope.worlds import cartpole, continuous, linear_quadratic, pendulum


def customers(n, seed, *, vectors=False, weeks=26):
    """Four in five never come back; each gets an offer of his own for ever, which is not in the state."""
    generator = np.random.default_rng(seed)
    alive, offer = generator.random(n) < 0.2, generator.integers(0, 2, n)
    weeks_since, rows = np.zeros(n, dtype=int), []
    for week in range(weeks):
        bought = alive & (generator.random(n) < 0.25 + 0.1 * offer)
        paid = np.where(bought, np.round(np.exp(generator.normal(3, 0.5, n)), 2), 0.0)
        following = np.where(bought, 0, weeks_since + 1)
        rows.append((np.arange(n), np.full(n, week), weeks_since, offer, paid, following))
        weeks_since = following
    episode, step, here, action, reward, there = (np.concatenate(column) for column in zip(*rows, strict=True))
    states = {"observation": here, "next_observation": there}
    if vectors:
        states = {
            f"{name}.{k}": of(at) for name, at in states.items() for k, of in (("share", _share), ("root", _root))
        }
    return {"episode_id": episode, "step": step, "action": action, "reward": reward, **states}


def _share(weeks):
    return weeks / 26.0


def _root(weeks):
    return np.sqrt(weeks + 1.0)


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("n", [50, 300, 1500])
def test_customers_who_never_came_back_are_no_copies(n, vectors):
    assert check(customers(n, seed=n, vectors=vectors)).status == "pass"


@pytest.mark.parametrize("vectors", [False, True])
def test_copies_of_such_customers_are_still_found(vectors):
    found = check(repeated(customers(300, seed=1, vectors=vectors), share=0.3))
    assert found.status != "pass"


def noisy(columns, size, share=1.0):
    """Copies whose numbers differ in the last digits."""
    given, generator = repeated(columns, share=share), np.random.default_rng(3)
    copy = given["episode_id"] >= 10_000
    for name, values in given.items():
        if values.dtype.kind == "f":
            given[name] = np.where(copy, values * (1 + size * generator.normal(size=len(values))), values)
    return given


@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e-7])
@pytest.mark.parametrize(("episodes", "steps"), [(40, 10), (300, 1)])
def test_copies_that_differ_in_the_last_digits_do_not_pass(episodes, steps, size):
    found = check(noisy(of_vectors(episodes, steps), size))
    assert found.status == "fail"
    assert found.value == pytest.approx(0.5, abs=0.06)


def test_some_copies_that_differ_in_the_last_digits_are_said_to():
    found = check(noisy(of_vectors(300, 6), 1e-8, share=0.1))
    assert found.status == "warn"
    assert "but for the last digits" in found.sentence


HEALTHY = {
    "one step": lambda seed: of_vectors(400, 1, seed),
    "many": lambda seed: of_vectors(3_000, 2, seed),
    "few": lambda seed: of_vectors(25, 30, seed),
    "pendulum": lambda seed: continuous.simulate(pendulum.Pendulum(), pendulum.loggers(4), 40, 20, seed=seed),
    "linear": lambda seed: continuous.simulate(
        linear_quadratic.linear_quadratic(), linear_quadratic.loggers(4), 60, 5, seed=seed
    ),
    "cartpole": lambda seed: continuous.simulate(cartpole.CartPole(), cartpole.loggers(4), 60, 60, seed=seed),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_measured_episodes_are_no_near_copies(name):
    assert [check(HEALTHY[name](seed)).value for seed in range(3)] == [0.0] * 3
