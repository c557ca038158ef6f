"""Stable-Baselines3: densities are the library's own, for models and for files, in the units of the action space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.running import json_of, run

import mixope
from mixope.base.errors import DataError, MixopeWarning, UsageError
from mixope.logs import write
from mixope.policies import DiscretePolicy, read_policy

sb3 = pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install 'mixope[sb3]'")
gymnasium = pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install 'mixope[sb3]'")
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
import torch  # noqa: E402

LOW, HIGH = np.array([-2.0, 0.0], dtype=np.float32), np.array([2.0, 0.5], dtype=np.float32)
ALGORITHMS = {
    "PPO": ("discrete", sb3.PPO, {"n_steps": 8, "batch_size": 8}),
    "A2C": ("box", sb3.A2C, {}),
    "A2C gSDE": ("box", sb3.A2C, {"use_sde": True}),
    "SAC": ("box", sb3.SAC, {"buffer_size": 10}),
    "SAC gSDE": ("box", sb3.SAC, {"buffer_size": 10, "use_sde": True}),
    "TD3": ("box", sb3.TD3, {"buffer_size": 10}),
    "DQN": ("discrete", sb3.DQN, {"buffer_size": 10}),
}


class World(gymnasium.Env):
    """Observations of three numbers; three actions, or a box of two."""

    def __init__(self, actions: str = "discrete", seen: Any = None) -> None:
        self.observation_space = seen or gymnasium.spaces.Box(-5.0, 5.0, (3,), np.float32)
        box = gymnasium.spaces.Box(LOW, HIGH, dtype=np.float32)
        self.action_space = gymnasium.spaces.Discrete(3) if actions == "discrete" else box

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation_space.sample(), 0.0, False, True, {}


def model(name: str) -> Any:
    actions, make, options = ALGORITHMS[name]
    torch.manual_seed(0)
    made = make("MlpPolicy", World(actions), device="cpu", **options)
    with torch.no_grad():  # away from the symmetric start
        for parameter in made.policy.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return made


def states(count: int = 60) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, 3))


def inside(count: int = 60) -> np.ndarray:
    return LOW + (HIGH - LOW) * np.random.default_rng(1).uniform(0.02, 0.98, size=(count, 2))


def own_log_prob(trained: Any, seen: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """By the library's own distributions; squashed ones are densities of actions scaled to ±1."""
    tensor, _ = trained.policy.obs_to_tensor(seen.astype(np.float32))
    with torch.no_grad():
        if hasattr(trained.policy, "get_distribution"):
            law, given = trained.policy.get_distribution(tensor), taken
        else:
            mean, log_std, besides = trained.actor.get_action_dist_params(tensor)
            law = trained.actor.action_dist.proba_distribution(mean, log_std, **besides)
            given = trained.policy.scale_action(taken)
        found = law.log_prob(torch.as_tensor(given, dtype=torch.float32 if taken.ndim == 2 else torch.long)).numpy()
    return found if hasattr(trained.policy, "get_distribution") else found - np.log((HIGH - LOW) / 2).sum()


@pytest.mark.parametrize("name", ["PPO", "A2C", "A2C gSDE", "SAC", "SAC gSDE"])
def test_densities_are_the_library_s_own(name: str) -> None:
    trained, seen = model(name), states()
    taken = np.arange(60) % 3 if ALGORITHMS[name][0] == "discrete" else inside()
    policy = read_policy(trained)
    difference = np.abs(policy.log_prob(seen, taken) - own_log_prob(trained, seen, taken))
    assert difference.max() <= 1e-4
    assert isinstance(policy, DiscretePolicy) is (name == "PPO")


@pytest.mark.parametrize("name", ["PPO", "A2C", "SAC", "SAC gSDE", "TD3", "DQN"])
def test_a_saved_model_is_the_same_policy_and_needs_trust(name: str, tmp_path: Path) -> None:
    trained, seen = model(name), states()
    trained.save(tmp_path / "model.zip")
    discrete = ALGORITHMS[name][0] == "discrete"
    said: dict[str, Any] = {"TD3": {"scale": 0.1}, "DQN": {"epsilon": 0.1}}.get(name, {})
    with pytest.raises(DataError, match="unpickling runs code"):
        read_policy(tmp_path / "model.zip", **said)
    with pytest.warns(MixopeWarning, match="VecNormalize"):
        loaded = read_policy(tmp_path / "model.zip", trust=True, **said)
    taken = np.arange(60) % 3 if discrete else inside()
    np.testing.assert_array_equal(loaded.log_prob(seen, taken), read_policy(trained, **said).log_prob(seen, taken))
    assert loaded.fingerprint() == read_policy(trained, **said).fingerprint()


def test_draws_of_the_model_have_the_frequencies_of_the_policy() -> None:
    trained = model("PPO")
    drawn, _ = trained.predict(np.repeat(states(1), 20_000, axis=0), deterministic=False)
    share = np.bincount(drawn, minlength=3) / 20_000
    np.testing.assert_allclose(read_policy(trained).probs(states(1))[0], share, atol=0.02)


def test_clipped_draws_pile_up_at_the_bounds() -> None:
    trained = model("A2C")
    drawn, _ = trained.predict(np.repeat(states(1), 20_000, axis=0), deterministic=False)
    at = np.array([[LOW[0], HIGH[1]]])
    share = ((drawn[:, 0] <= LOW[0]) & (drawn[:, 1] >= HIGH[1])).mean()
    policy = read_policy(trained)
    assert np.exp(policy.log_prob(states(1), at))[0] == pytest.approx(share, abs=0.02)
    outside = np.array([[9.0, 0.0]])
    with pytest.raises(DataError, match="outside the policy's box"):
        policy.log_prob(states(1), outside)
    raw = read_policy(trained, law="plain").log_prob(states(1), outside)
    assert raw[0] == pytest.approx(own_log_prob(trained, states(1), outside)[0], abs=1e-4)


def test_greedy_models_ask_for_an_epsilon_and_deterministic_ones_for_a_scale() -> None:
    q, actor, seen = model("DQN"), model("TD3"), states()
    with pytest.raises(UsageError, match=r"DQN always takes its best action.*epsilon=0\.05"):
        read_policy(q)
    with pytest.raises(UsageError, match=r"(?s)TD3 takes one action in a state.*scale="):
        read_policy(actor)
    best, _ = q.predict(seen.astype(np.float32), deterministic=True)
    np.testing.assert_allclose(np.exp(read_policy(q, epsilon=0.3).log_prob(seen, best)), 0.8, atol=1e-9)
    assert read_policy(q, epsilon=0).probs(seen).max(axis=1).tolist() == [1.0] * 60
    centre, _ = actor.predict(seen.astype(np.float32), deterministic=True)
    np.testing.assert_allclose(read_policy(actor, scale=0.1).mean(seen), centre, atol=1e-6)


def test_observations_are_normalised_where_the_model_knows_how() -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    wrapped = VecNormalize(DummyVecEnv([World]))
    wrapped.obs_rms.mean, wrapped.obs_rms.var = np.full(3, 2.0), np.full(3, 4.0)
    trained = sb3.PPO("MlpPolicy", wrapped, device="cpu", n_steps=8, batch_size=8)
    seen, taken = states(), np.arange(60) % 3
    expected = own_log_prob(trained, wrapped.normalize_obs(seen), taken)
    np.testing.assert_allclose(read_policy(trained).log_prob(seen, taken), expected, atol=1e-4)


def test_ids_are_one_hot_as_the_library_has_them_and_other_actions_are_refused() -> None:
    trained = sb3.PPO("MlpPolicy", World(seen=gymnasium.spaces.Discrete(4)), device="cpu", n_steps=8, batch_size=8)
    assert read_policy(trained).probs(np.array([0, 1, 3])).shape == (3, 3)
    world = World()
    world.action_space = gymnasium.spaces.MultiDiscrete([2, 2])
    with pytest.raises(UsageError, match="Discrete and one-dimensional Box"):
        read_policy(sb3.PPO("MlpPolicy", world, device="cpu", n_steps=8, batch_size=8))


def test_the_command_takes_a_saved_model(tmp_path: Path) -> None:
    seen, rng = states(400), np.random.default_rng(2)
    rows = {"episode_id": np.arange(400) // 20, "step": np.arange(400) % 20, "action": rng.integers(0, 3, 400)}
    columns = {f"observation.{k}": seen[:, k] for k in range(3)}
    write({**rows, **columns, "reward": seen[:, 0]}, tmp_path / "log.parquet")
    question = (tmp_path / "log.parquet", "--ends", "truncated", "--estimator", "emp")
    trained = model("PPO")
    trained.save(tmp_path / "ppo.zip")
    model("DQN").save(tmp_path / "dqn.zip")
    found = json_of("evaluate", *question, "--target", tmp_path / "ppo.zip", "--trust")
    logs = mixope.read(tmp_path / "log.parquet", ends="truncated")
    assert found["value"] == pytest.approx(mixope.evaluate(logs, trained, "emp").value, abs=1e-9)
    refused = run("evaluate", *question, "--target", tmp_path / "dqn.zip", "--trust")
    assert refused.exit_code == 2
    assert "--target-epsilon 0.05" in refused.stderr
