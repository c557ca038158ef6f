"""CartPole-v1 as Gymnasium rolls it out: what a stranger would log, asked for a discounted value and per episode."""

import numpy as np
import pytest

import mixope
from mixope.base.estimand import Estimand
from mixope.worlds import cartpole

pytestmark = pytest.mark.long
gymnasium = pytest.importorskip("gymnasium")
GAINS = (0.12, 0.2, 0.3)
QUESTIONS = (Estimand("discounted", gamma=0.99), Estimand("episode", gamma=0.99), Estimand("episode"))


def rollouts(episodes, seed):
    """Columns as a recording loop writes them, every logger's share under its own label."""
    environment, generator, rows = gymnasium.make("CartPole-v1"), np.random.default_rng(seed), []
    for episode in range(episodes):
        gain = GAINS[episode % len(GAINS)]
        law, step, over = cartpole.Balance(gain), 0, False
        state, _ = environment.reset(seed=int(generator.integers(2**31)))
        while not over:
            action = int(generator.random() < law(state[None, :])[0, 1])
            following, reward, terminated, truncated, _ = environment.step(action)
            rows.append((f"gain {gain}", episode, step, state, action, reward, following, terminated, truncated))
            state, step, over = following, step + 1, terminated or truncated
    names = ("policy_id", "episode_id", "step", "observation", "action", "reward", "next_observation")
    return {
        name: np.array(column)
        for name, column in zip((*names, "terminated", "truncated"), zip(*rows, strict=True), strict=True)
    }


@pytest.mark.parametrize("seed", [0, 1])
def test_cartpole_is_answered_rightly_and_not_refused(seed):
    logs = mixope.Logs.from_arrays(**rollouts(120, seed))
    for estimand in QUESTIONS:
        found = mixope.evaluate(logs, cartpole.target(), estimand=estimand)
        truth = cartpole.truth(cartpole.target(), estimand, chains=5000)
        assert found.interval.low - 2 * truth.standard_error <= truth.value, str(estimand)
        assert truth.value <= found.interval.high + 2 * truth.standard_error, str(estimand)
        assert found.interval.width < 0.5 * truth.value
        assert str(found.verdict) in ("trustworthy", "caution")
        assert [d.name for d in found.diagnostics if d.status == "fail"] == []
