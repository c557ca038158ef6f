"""Torch modules: the same densities as torch's own distributions, whatever form the module gives its outputs in."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import mixope
from mixope.base.errors import DataError, UsageError
from mixope.policies import DiscretePolicy, from_torch, read_policy

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'mixope[torch]'")
pytestmark = pytest.mark.long
nn = torch.nn
CLOSE = 1e-5


class Mean(nn.Module):
    """A Gaussian policy whose log σ is a parameter, one for all states."""

    def __init__(self, form: str = "pair") -> None:
        super().__init__()
        self.body, self.form = nn.Linear(3, 2), form
        self.log_std = nn.Parameter(torch.tensor([-0.5, 0.3]))

    def forward(self, x):
        mean, log_std = self.body(x), self.log_std.expand(len(x), 2)
        if self.form == "pair":
            return mean, self.log_std
        return {"mean": mean, "log_std": log_std} if self.form == "dict" else torch.cat([mean, log_std], dim=1)


class CleanRL(nn.Module):
    """An agent as in CleanRL's single files."""

    def __init__(self, real: bool) -> None:
        super().__init__()
        self.actor, self.critic, self.real = nn.Linear(3, 2), nn.Linear(3, 1), real

    def law(self, x):
        out = self.actor(x)
        return torch.distributions.Normal(out, 0.7) if self.real else torch.distributions.Categorical(logits=out)

    def get_action_and_value(self, x, action=None):
        law = self.law(x)
        action = law.sample() if action is None else action
        chance = law.log_prob(action)
        return action, chance.sum(1) if self.real else chance, law.entropy(), self.critic(x)


@pytest.fixture
def states() -> np.ndarray:
    torch.manual_seed(0)
    return np.random.default_rng(0).normal(size=(50, 3))


def tensor(values: np.ndarray):
    return torch.as_tensor(values, dtype=torch.float32)


def test_logits_and_probabilities_are_the_categorical_law(states) -> None:
    net, taken = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4)), np.arange(50) % 4
    own = torch.distributions.Categorical(logits=net(tensor(states)))
    by_logits = from_torch(net, outputs="logits")
    by_probs = read_policy(nn.Sequential(net, nn.Softmax(dim=1)), outputs="probabilities")
    expected = own.log_prob(torch.as_tensor(taken)).detach().numpy()
    for policy in (by_logits, by_probs):
        assert isinstance(policy, DiscretePolicy)
        assert policy.actions.tolist() == [0, 1, 2, 3]
        np.testing.assert_allclose(policy.log_prob(states, taken), expected, atol=CLOSE)


@pytest.mark.parametrize("form", ["pair", "dict", "beside"])
def test_means_and_scales_are_the_normal_law(states, form: str) -> None:
    net, actions = Mean(form), np.random.default_rng(1).normal(size=(50, 2))
    own = torch.distributions.Normal(net.body(tensor(states)), net.log_std.exp()).log_prob(tensor(actions)).sum(1)
    found = from_torch(net, outputs="mean_log_std").log_prob(states, actions)
    np.testing.assert_allclose(found, own.detach().numpy(), atol=1e-4)


@pytest.mark.parametrize("real", [False, True])
def test_an_agent_as_in_cleanrl_needs_no_words(states, real: bool) -> None:
    agent = CleanRL(real)
    actions = np.random.default_rng(1).normal(size=(50, 2)) if real else np.arange(50) % 2
    own = agent.get_action_and_value(tensor(states), tensor(actions) if real else torch.as_tensor(actions))[1]
    policy = read_policy(agent, actions=None if real else [0, 1])
    np.testing.assert_allclose(policy.log_prob(states, actions), own.detach().numpy(), atol=CLOSE)
    assert isinstance(policy, DiscretePolicy) is not real


def test_a_module_is_run_for_evaluation_and_left_as_it_was(states) -> None:
    net = nn.Sequential(nn.Linear(3, 16), nn.Dropout(0.5), nn.Linear(16, 2))
    net.train()
    policy = from_torch(net, outputs="logits")
    first, second = policy.probs(states), policy.probs(states)
    assert (first == second).all()
    assert net.training
    assert policy.fingerprint() == from_torch(net, outputs="logits").fingerprint()
    before = policy.fingerprint()
    with torch.no_grad():
        net[0].weight += 1
    assert policy.fingerprint() != before


def test_ids_are_embedded_and_otherwise_numbers() -> None:
    embedding = nn.Sequential(nn.Embedding(5, 3))
    found = read_policy(embedding, outputs="logits", actions=["a", "b", "c"]).probs(np.array([0, 4, 4]))
    np.testing.assert_allclose(found[1], torch.softmax(embedding[0].weight[4], 0).detach().numpy(), atol=CLOSE)
    linear = nn.Linear(1, 2)
    assert read_policy(linear, outputs="logits").probs(np.array([0, 3])).shape == (2, 2)


def test_tensors_that_require_grad_are_detached(states) -> None:
    net = nn.Linear(3, 2)
    policy = mixope.CallablePolicy(lambda o: torch.softmax(net(tensor(o)), dim=1).double(), actions=[0, 1])
    np.testing.assert_allclose(policy.probs(states), from_torch(net, outputs="logits").probs(states), atol=1e-6)
    mean = mixope.GaussianPolicy(lambda o: net(tensor(o)), 0.5)
    assert mean.log_prob(states, np.zeros((50, 2))).shape == (50,)


def test_files_need_trust(states, tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(3, 2))
    whole, weights = tmp_path / "whole.pt", tmp_path / "weights.pth"
    torch.save(net, whole)
    torch.save(net.state_dict(), weights)
    expected = from_torch(net, outputs="logits").probs(states)
    with pytest.raises(DataError, match="unpickling runs code"):
        read_policy(whole, outputs="logits")
    np.testing.assert_allclose(read_policy(whole, outputs="logits", trust=True).probs(states), expected)
    with pytest.raises(DataError, match="weights without the module"):
        read_policy(weights, outputs="logits", trust=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(net), str(tmp_path / "scripted.pt"))
        scripted = read_policy(tmp_path / "scripted.pt", outputs="logits", trust=True)
        np.testing.assert_allclose(scripted.probs(states), expected, atol=CLOSE)


def test_a_bare_module_is_asked_what_it_gives() -> None:
    with pytest.raises(UsageError, match=r"say read_policy\(…, outputs=…\), one of probabilities"):
        read_policy(nn.Linear(3, 2))
    with pytest.raises(DataError, match=r"the module Linear failed with RuntimeError"):
        from_torch(nn.Linear(3, 2), outputs="logits").probs(np.zeros((4, 2)))


def test_a_module_is_evaluated_like_the_function_of_it(states) -> None:
    rng, net = np.random.default_rng(2), nn.Linear(3, 2)
    action = rng.integers(0, 2, 50)
    logs = mixope.Logs.from_arrays(
        observation=states,
        action=action,
        reward=action + states[:, 0],
        episode_id=np.arange(50) // 10,
        ends="truncated",
    )
    law = from_torch(net, outputs="logits")
    function = mixope.CallablePolicy(law.probs, actions=[0, 1])
    assert mixope.evaluate(logs, law, "emp").value == mixope.evaluate(logs, function, "emp").value
