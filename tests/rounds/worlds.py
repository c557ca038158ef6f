"""Small worlds in which states are ids, factors or numbers and actions are discrete or continuous; engines that watch.

A place 0 … 5 (or a point of the plane) drifts with the action: up with probability σ(2a − 1) or σ(a). Two loggers lean
differently, some episodes end for good, the others are cut.
"""

from dataclasses import dataclass

import numpy as np

import mixope
from mixope.engines import MemoryEngine
from mixope.features import NormalisedBumps, OneHot
from mixope.policies import CallablePolicy, GaussianPolicy
from mixope.requests.grouping import Grouped

PLACES = 6
WORDS = np.array(["even", "odd"])
STATES, ACTIONS = ("ids", "factors", "floats"), ("discrete", "continuous")
LABELS = ("logger-0", "logger-1")
LEANS = {"target": 0.6, LABELS[0]: -0.4, LABELS[1]: 0.9}


def written(states, latent, actions="discrete"):
    """Latent places or points as they stand in a log; a factor is a word where policies can read words."""
    if states != "factors":
        return latent
    if actions == "continuous":
        return np.stack([latent // 2, latent % 2], axis=1)
    return np.stack([latent // 2, WORDS[latent % 2]], axis=1).astype(object)


def height(states, observations):
    """One number of the state that policies look at, however the state is written."""
    rows = np.asarray(observations).reshape(len(observations), -1)
    if states == "floats":
        return rows[:, 0].astype(np.float64)
    if states == "ids":
        return (rows[:, 0].astype(np.int64) - 2.5) / 2
    odd = (rows[:, 1] == "odd") if rows.dtype.kind == "O" else rows[:, 1]
    return (2 * rows[:, 0].astype(np.int64) + odd - 2.5) / 2


@dataclass(frozen=True)
class Law:
    """The probability of both actions."""

    states: str
    lean: float
    actions: tuple = (0, 1)

    def __call__(self, observations):
        up = 1.0 / (1.0 + np.exp(-self.lean - 0.5 * height(self.states, observations)))
        return np.stack([1 - up, up], axis=1)


@dataclass(frozen=True)
class Mean:
    """The mean of a continuous action."""

    states: str
    lean: float

    def __call__(self, observations):
        return (0.5 * self.lean + 0.3 * height(self.states, observations))[:, None]


@dataclass(frozen=True)
class Density:
    """The density of a Gaussian action and nothing else: it cannot be drawn from."""

    states: str
    lean: float

    def __call__(self, observations, actions):
        return np.exp(policy(self.states, "continuous", self.lean).log_prob(observations, actions))


def policy(states, actions, lean=LEANS["target"], names=(0, 1)):
    if actions == "continuous":
        return GaussianPolicy(Mean(states, lean), [0.8])
    return CallablePolicy(Law(states, lean, tuple(names)))


def known(states, actions, names=(0, 1)):
    return {label: policy(states, actions, LEANS[label], names) for label in LABELS}


def columns(states, actions, episodes=24, horizon=8, seed=0, names=(0, 1), ends=True):
    """A log with recorded propensities; ``names`` are those of the discrete actions."""
    generator = np.random.default_rng(seed)
    laws = known(states, actions)
    kept = {name: [] for name in ("observation", "action", "reward", "next_observation", "terminated", "action_logp")}
    keys = {"policy_id": [], "episode_id": [], "step": []}
    for episode in range(episodes):
        label = LABELS[episode % 2]
        now = generator.integers(PLACES, size=1) if states != "floats" else generator.normal(size=(1, 2))
        for step in range(horizon):
            seen = written(states, now, actions)
            action = _draw(laws[label], seen, actions, generator)
            pull = 2.0 * float(action.ravel()[0]) - 1.0 if actions == "discrete" else float(action.ravel()[0])
            following, reward = _move(states, now, pull, generator)
            over = ends and generator.random() < 0.06
            logp = float(laws[label].log_prob(seen, action)[0])
            row = (seen[0], action[0], reward, written(states, following, actions)[0], over, logp)
            for name, value in zip(kept, row, strict=True):
                kept[name].append(value)
            for name, value in zip(keys, (label, episode, step), strict=True):
                keys[name].append(value)
            now = following
            if over:
                break
    made = {name: np.array(values) for name, values in {**keys, **kept}.items()}
    if actions == "discrete":
        made["action"] = np.array(names)[made["action"].astype(np.int64)]
    last = np.append(made["episode_id"][1:] != made["episode_id"][:-1], True)
    made["truncated"] = last & ~made["terminated"]
    return _spread(made) if states == "factors" else made


def _draw(law, seen, actions, generator):
    if actions == "continuous":
        return law.sample(seen, generator)
    return (generator.random(1) < law.probs(seen)[:, 1]).astype(np.int64)


def _move(states, now, pull, generator):
    if states == "floats":
        following = 0.7 * now + 0.3 * pull * np.array([[1.0, 0.3]]) + 0.4 * generator.normal(size=(1, 2))
        return following, round(float(following[0, 0] - 0.2 * now[0, 1] ** 2), 6)
    up = generator.random() < 1.0 / (1.0 + np.exp(-pull))
    following = np.clip(now + (1 if up else -1), 0, PLACES - 1)
    return following, round(float(following[0] % 3 + 0.1 * generator.normal()), 6)


def _spread(made):
    """Factors as columns of their own."""
    for name in ("observation", "next_observation"):
        both = made.pop(name)
        made |= {
            f"{name}.half": both[:, 0].astype(np.int64),
            f"{name}.word": both[:, 1].astype(int if both.dtype.kind == "i" else str),
        }
    return made


def features(states):
    """Few bumps for numbers, one-hot for everything else."""
    return NormalisedBumps(8) if states == "floats" else OneHot()


def read(states, actions, **options):
    return mixope.read(columns(states, actions, **options))


class Watching(MemoryEngine):
    """Counts scans: calls that read the rows in any pieces, and passes over whole episodes apart."""

    def __init__(self, **options):
        super().__init__(**options)
        self.scans, self.whole, self.requests = 0, 0, []

    def group_sums(self, logs, grouping, lookup=None):
        self.scans += 1
        (found,) = super().scan(logs, [Grouped(grouping, lookup)])
        return found

    def scan(self, logs, requests, expected_rows=None):
        self.requests.append(list(requests))
        self.scans += any(not request.whole_episodes for request in requests)
        self.whole += any(request.whole_episodes for request in requests)
        return super().scan(logs, requests, expected_rows)

    @property
    def passes(self):
        return self.scans, self.whole
