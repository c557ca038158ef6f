"""Pendulum policies of several skills, by a small natural actor–critic on many chains at once.

Actor and critic are linear in M Gaussian bumps φ(s) on a grid of (θ, θ̇), normalised to sum to one:

    π_w(a|s) = N( 2 tanh(wᵀφ(s)), σ² ),        V(s) = vᵀφ(s).

Every round all chains run on for some steps. The critic is fitted by ridge regression on the λ-returns
G = r + γ( (1 − λ) V(s′) + λ G′ ), the advantage is A = G − V(s), standardised over the round. The actor steps along the
natural gradient, scaled to a fixed divergence δ from the policy before:

    g = mean A ∇log π,   H = mean ψψᵀ/σ² + damping,   w ← w + H⁻¹g √(2δ / gᵀH⁻¹g),   ψ = ∂(2 tanh wᵀφ)/∂w.

The stages are snapshots whose averages, measured by simulation, come nearest to equal steps between the first actor,
which does not look at the state, and the best.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import UsageError
from mixope.policies.gaussian import GaussianPolicy
from mixope.worlds import continuous
from mixope.worlds.pendulum import MAX_SPEED, MAX_TORQUE, Pendulum


@dataclass(frozen=True)
class ActorTraining:
    """How the actor is trained; ``sigma`` is its noise, in training and afterwards."""

    rounds: int = 28
    chains: int = 256
    steps: int = 40
    gamma: float = 0.98
    trace: float = 0.9
    divergence: float = 0.003
    damping: float = 3e-3
    ridge: float = 1e-3
    sigma: float = 1.0
    restart: float = 0.005
    angles: int = 15
    speeds: int = 11
    snapshot_every: int = 2
    measured_chains: int = 300
    measured_steps: int = 300


@dataclass(frozen=True)
class Bumps:
    """φ(s): products of a periodic bump in θ and a Gaussian one in θ̇, as wide as the grid's meshes."""

    angles: int
    speeds: int

    @property
    def count(self) -> int:
        """M."""
        return self.angles * self.speeds

    def __call__(self, observations: AnyArray) -> FloatArray:
        """φ, shape (n, M)."""
        cosine, sine, speed = np.asarray(observations, dtype=np.float64).T
        grid = np.arange(self.angles) * (2 * np.pi / self.angles)
        narrow = (self.angles / (2 * np.pi)) ** 2
        # cos(θ − c) − 1 ≈ −½(θ − c)² near the centre c, and is periodic.
        around = np.exp(narrow * (cosine[:, None] * np.cos(grid) + sine[:, None] * np.sin(grid) - 1))
        ticks = np.linspace(-MAX_SPEED, MAX_SPEED, self.speeds)
        along = np.exp(-0.5 * ((speed[:, None] - ticks) / (ticks[1] - ticks[0])) ** 2)
        around, along = (part / part.sum(axis=1, keepdims=True) for part in (around, along))
        return np.asarray((around[:, :, None] * along[:, None, :]).reshape(len(speed), -1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ActorMean:
    """The mean 2 tanh(wᵀφ(s))."""

    bumps: Bumps
    weights: FloatArray

    def __call__(self, observations: AnyArray) -> FloatArray:
        """Shape (n, 1)."""
        return MAX_TORQUE * np.tanh(self.bumps(observations) @ self.weights)[:, None]

    def policy(self, sigma: float) -> GaussianPolicy:
        """The actor with its noise."""
        return GaussianPolicy(self, sigma, low=-MAX_TORQUE, high=MAX_TORQUE)


def train(stages: int = 4, seed: int = 0, *, training: ActorTraining = ActorTraining()) -> list[GaussianPolicy]:
    """``stages`` policies of rising average, from one that does not look at the state to the best of the training."""
    if stages < 2:
        raise UsageError(f"expected at least two stages, got {stages}")
    snapshots = [actor.policy(training.sigma) for actor in learn(seed, training)]
    size = {"chains": training.measured_chains, "steps": training.measured_steps, "burn_in": 100, "seed": seed}
    averages = np.array([continuous.average(Pendulum(), policy, **size).value for policy in snapshots])
    return [snapshots[i] for i in spread(averages, stages)]


def spread(averages: FloatArray, stages: int) -> list[int]:
    """Positions, the first and the best among them, whose averages are nearest to equal steps between the two."""
    levels = np.linspace(averages[0], averages.max(), stages)
    chosen = [int(np.abs(averages - level).argmin()) for level in levels]
    if len(set(chosen)) < stages:
        raise UsageError(f"the training has no {stages} distinct stages; ask for fewer, or train more finely")
    return chosen


def learn(seed: int, training: ActorTraining = ActorTraining()) -> list[ActorMean]:
    """The actors after every few rounds, the untrained one first."""
    generator = np.random.default_rng(seed)
    bumps = Bumps(training.angles, training.speeds)
    actor = ActorMean(bumps, np.zeros(bumps.count))
    critic = np.zeros(bumps.count)
    states = Pendulum().start(training.chains, generator)
    actors = [actor]
    for number in range(1, training.rounds + 1):
        rollout = _run(actor, states, training, generator)
        critic = _fit(rollout, _returns(rollout, critic, training), training)
        actor = replace(actor, weights=_improved(actor, rollout, critic, training))
        states = _restarted(rollout.last, training, generator)
        if number % training.snapshot_every == 0:
            actors.append(actor)
    return actors


@dataclass(frozen=True, eq=False)
class _Rollout:
    """φ of shape (steps + 1, chains, M), noise a − μ and reward of shape (steps, chains), and the states at the end."""

    features: FloatArray
    noise: FloatArray
    reward: FloatArray
    last: FloatArray


def _run(actor: ActorMean, states: FloatArray, training: ActorTraining, generator: np.random.Generator) -> _Rollout:
    world = Pendulum()
    shape = (training.steps, training.chains)
    noise, reward = training.sigma * generator.standard_normal(shape), np.empty(shape)
    features = np.empty((training.steps + 1, training.chains, actor.bumps.count))
    for t in range(training.steps):
        features[t] = actor.bumps(world.observe(states))
        mean = MAX_TORQUE * np.tanh(features[t] @ actor.weights)
        states, reward[t] = world.step(states, (mean + noise[t])[:, None], generator)
    features[-1] = actor.bumps(world.observe(states))
    return _Rollout(features, noise, reward, states)


def _returns(rollout: _Rollout, critic: FloatArray, training: ActorTraining) -> FloatArray:
    """G_t = r_t + γ( (1 − λ) V(s_{t+1}) + λ G_{t+1} ), with V for G after the last step."""
    values, returns = rollout.features @ critic, np.empty_like(rollout.reward)
    following = values[-1]
    for t in reversed(range(len(returns))):
        blend = (1 - training.trace) * values[t + 1] + training.trace * following
        following = returns[t] = rollout.reward[t] + training.gamma * blend
    return returns


def _fit(rollout: _Rollout, returns: FloatArray, training: ActorTraining) -> FloatArray:
    """Ridge regression of the returns, about their mean, on φ; bumps sum to one, so a constant is V = c·1."""
    phi = rollout.features[:-1].reshape(returns.size, -1)
    middle = returns.mean()
    gram = phi.T @ phi / len(phi) + training.ridge / phi.shape[1] * np.eye(phi.shape[1])
    return np.asarray(np.linalg.solve(gram, phi.T @ (returns.ravel() - middle) / len(phi)) + middle)


def _improved(actor: ActorMean, rollout: _Rollout, critic: FloatArray, training: ActorTraining) -> FloatArray:
    """w after one natural step."""
    advantage = _returns(rollout, critic, training) - rollout.features[:-1] @ critic
    advantage = ((advantage - advantage.mean()) / advantage.std()).ravel()
    phi = rollout.features[:-1].reshape(len(advantage), -1)
    slope = MAX_TORQUE * (1 - np.tanh(phi @ actor.weights) ** 2)
    psi = phi * slope[:, None] / training.sigma
    gradient = psi.T @ (advantage * rollout.noise.ravel() / training.sigma) / len(psi)
    curvature = psi.T @ psi / len(psi) + training.damping * np.eye(psi.shape[1])
    direction = np.linalg.solve(curvature, gradient)
    length = np.sqrt(2 * training.divergence / (gradient @ direction))
    return np.asarray(actor.weights + length * direction, dtype=np.float64)


def _restarted(states: FloatArray, training: ActorTraining, generator: np.random.Generator) -> FloatArray:
    """Some chains begin afresh, so that no part of the circle is forgotten."""
    chance = 1 - (1 - training.restart) ** training.steps
    afresh = generator.random(len(states)) < chance
    return np.where(afresh[:, None], Pendulum().start(len(states), generator), states)
