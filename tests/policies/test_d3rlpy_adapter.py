"""d3rlpy: densities are those of its own distributions, in the units of its scalers; greedy ones ask for epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixope.base.errors import DataError, UsageError
from mixope.policies import read_policy

d3rlpy = pytest.importorskip("d3rlpy", reason="needs d3rlpy: pip install 'mixope[d3rlpy]'")
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
import torch  # noqa: E402
from d3rlpy import algos, preprocessing  # noqa: E402
from d3rlpy.models.torch import policies as own  # noqa: E402

LOW, HIGH = np.array([-2.0, 0.0]), np.array([2.0, 0.5])
STATES = np.random.default_rng(0).normal(size=(60, 3))
INSIDE = LOW + (HIGH - LOW) * np.random.default_rng(1).uniform(0.05, 0.95, size=(60, 2))


def built(kind: str, size: int = 2, **options: Any) -> Any:
    torch.manual_seed(0)
    algorithm = getattr(algos, f"{kind}Config")(**options).create(device="cpu:0")
    algorithm.create_impl((3,), size)
    return algorithm


def scaled() -> dict[str, Any]:
    seen = preprocessing.StandardObservationScaler(mean=np.full(3, 0.5), std=np.full(3, 2.0))
    return {
        "observation_scaler": seen,
        "action_scaler": preprocessing.MinMaxActionScaler(minimum=LOW, maximum=HIGH),
    }


@pytest.mark.parametrize("kind", ["SAC", "CQL", "AWAC", "IQL"])
def test_densities_are_the_library_s_own(kind: str) -> None:
    algorithm = built(kind, **scaled())
    make = own.build_squashed_gaussian_distribution if kind in ("SAC", "CQL") else own.build_gaussian_distribution
    tensor = torch.as_tensor(STATES, dtype=torch.float32)
    units = torch.as_tensor((INSIDE - LOW) / (HIGH - LOW) * 2 - 1, dtype=torch.float32)
    with torch.no_grad():
        law = make(algorithm.impl.policy(algorithm.config.observation_scaler.transform(tensor)))
        expected = law.log_prob(units)[:, 0].numpy() - np.log((HIGH - LOW) / 2).sum()
    assert np.abs(read_policy(algorithm).log_prob(STATES, INSIDE) - expected).max() <= 1e-4


def test_draws_of_the_algorithm_have_the_moments_of_the_policy() -> None:
    algorithm = built("SAC", **scaled())
    rows = np.repeat(STATES[:1], 20_000, axis=0)
    drawn = algorithm.sample_action(rows.astype(np.float32))
    ours = read_policy(algorithm).sample(rows, np.random.default_rng(0))
    np.testing.assert_allclose(ours.mean(axis=0), drawn.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(ours.std(axis=0), drawn.std(axis=0), atol=0.05)


def test_discrete_sac_has_a_law_and_q_learners_ask_for_an_epsilon() -> None:
    soft = built("DiscreteSAC", 4)
    with torch.no_grad():
        expected = soft.impl.policy(torch.as_tensor(STATES, dtype=torch.float32)).probs.numpy()
    np.testing.assert_allclose(read_policy(soft).probs(STATES), expected, atol=1e-6)
    for kind in ("DQN", "DiscreteCQL", "DiscreteBC"):
        greedy = built(kind, 4)
        with pytest.raises(UsageError, match="always takes its best action"):
            read_policy(greedy)
        best = greedy.predict(STATES.astype(np.float32))
        found = read_policy(greedy, epsilon=0.2).log_prob(STATES, best)
        np.testing.assert_allclose(np.exp(found), 0.85, atol=1e-9)


def test_deterministic_actors_ask_for_a_scale() -> None:
    actor = built("TD3", **scaled())
    with pytest.raises(UsageError, match=r"TD3 takes one action in a state.*scale="):
        read_policy(actor)
    policy = read_policy(actor, scale=0.1)
    np.testing.assert_allclose(policy.mean(STATES), actor.predict(STATES.astype(np.float32)), atol=1e-6)


def test_a_saved_algorithm_is_the_same_policy_and_needs_trust(tmp_path: Path) -> None:
    algorithm = built("SAC")
    algorithm.save(str(tmp_path / "model.d3"))
    with pytest.raises(DataError, match="unpickling runs code"):
        read_policy(tmp_path / "model.d3")
    loaded, taken = read_policy(tmp_path / "model.d3", trust=True), INSIDE / 4
    np.testing.assert_array_equal(loaded.log_prob(STATES, taken), read_policy(algorithm).log_prob(STATES, taken))
    assert loaded.fingerprint() == read_policy(algorithm).fingerprint()


def test_an_algorithm_without_a_network_is_told_so() -> None:
    with pytest.raises(UsageError, match="SAC has no network yet"):
        read_policy(algos.SACConfig().create(device="cpu:0"))
    with pytest.raises(UsageError, match="looks at past steps"):
        read_policy(algos.DecisionTransformerConfig().create(device="cpu:0"))
