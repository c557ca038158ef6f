"""What the phase diagram is measured by: logs of softer and harder loggers, and what they tend to.

A logger of softness s acts as that of the paper's figures with probability s, and else takes the action that one likes
best:

    π_s(a|s) = s π(a|s) + (1 − s) 1{a = argmax π(·|s)}

so that 1 is the logger of the figures, and 0, which covers next to nothing, is never reached. States are logged with
their factors where they have some, for ``dr`` to learn from.

:class:`PhaseLog` is a log: the error of every method, and the *uncovered* share of the target's mass, Σ d_π(s) π(a|s)
over the pairs (s, a) that the log does not have. :class:`PhaseLimit` is what endless logs tend to, exact: the ratio of
first-order variances (:mod:`mixope.worlds.first_order`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from mixope import worlds
from mixope.base.arrays import FloatArray
from mixope.base.errors import MixopeError
from mixope.base.estimand import Estimand
from mixope.estimators import make
from mixope.estimators.counts.solution import without_scores
from mixope.paper.cases import log_seed, world
from mixope.paper.experiment import Row
from mixope.policies import TabularPolicy
from mixope.requests.problem import Problem
from mixope.session.session import Counted, count
from mixope.worlds.first_order import FutureLogs, asymptotic_variance
from mixope.worlds.simulation import Columns, share_episodes

EMP, BCH, DR = "emp", "bch-pooled", "dr"
METHODS = (EMP, BCH, DR)


@dataclass(frozen=True)
class PhaseLog:
    """``episodes`` in all, of ``horizon`` steps each, by so many loggers of one softness."""

    environment: str
    loggers: int
    softness: float
    episodes: int
    horizon: int
    seed: int
    repetition: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-16, one core; on Taxi most of it is ``dr``."""
        rows = self.episodes * self.horizon
        return 0.08 + min(rows / 25_000, 0.4) if self.environment == "taxi" else 0.025 + rows / 1_500_000

    def measure(self) -> list[Row]:
        """One row per method: its error, or None where it refused."""
        here = softened(self.environment, self.loggers, self.softness, self.horizon)
        told = self.environment, self.loggers, self.softness, self.episodes, self.horizon
        seed = log_seed(self.seed, self.repetition, *told)
        columns = worlds.simulate(here.model, here.loggers, self.episodes, self.horizon, seed=seed)
        missed = uncovered(here, columns)
        labels = share_episodes(self.loggers, self.episodes, self.horizon)[columns["episode_id"]]
        counted = count({**with_factors(here, columns), "policy_id": labels})  # numbers are counted faster than names
        problem = Problem.of_logged(counted.transitions, target_of(here), Estimand("average"))
        return [
            {"method": method, "error": _error(here.truth.average, problem, method, counted), "uncovered": missed}
            for method in METHODS
        ]


def _error(truth: float, problem: Problem, method: str, counted: Counted) -> float | None:
    try:
        solution = without_scores(partial(make(method).solve, problem), counted.rounds().ask)
    except MixopeError:
        return None
    return float(solution.value - truth)


@dataclass(frozen=True)
class PhaseLimit:
    """The same loggers for ever."""

    environment: str
    loggers: int
    softness: float
    horizon: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-16, one core."""
        return 0.4 if self.environment == "taxi" else 0.05

    def measure(self) -> list[Row]:
        """The ratio of variances, and how likely a logger's favourite action is."""
        here = softened(self.environment, self.loggers, self.softness, self.horizon)
        bch, emp = (asymptotic_variance(here, method) for method in (BCH, EMP))
        favourite = float((here.row_law * here.policies.max(axis=2)).sum())
        return [{"method": BCH, "limit": bch / emp, "favourite": favourite}]


@lru_cache(maxsize=64)
def softened(environment: str, loggers: int, softness: float, horizon: int) -> FutureLogs:
    """The environment with so many loggers of that softness."""
    here = world(environment, loggers)
    laws = [soften(law, softness) for law in here.laws]
    return FutureLogs(here.known, here.target.probabilities, laws, horizon)


def soften(law: FloatArray, softness: float) -> FloatArray:
    """The law with probability ``softness``, else its favourite action (the first of those)."""
    favourite = np.eye(law.shape[1])[law.argmax(axis=1)]
    return np.asarray(softness * law + (1 - softness) * favourite)


def uncovered(here: FutureLogs, columns: Columns) -> float:
    """The share of the target's mass on pairs that the log does not have."""
    gone = here.needed.copy()
    gone[columns["observation"], columns["action"]] = 0.0
    return float(gone.sum())


def with_factors(here: FutureLogs, columns: Columns) -> Columns:
    """The log with factors in place of ids of states, where states have some."""
    if not here.model.factors:
        return columns
    ids = {name: columns[name] for name in ("observation", "next_observation")}
    written = {f"{name}.{f}": column[ids[name]] for name in ids for f, column in here.model.factors.items()}
    return {**{name: column for name, column in columns.items() if name not in ids}, **written}


def target_of(here: FutureLogs) -> TabularPolicy:
    """The target on states as they are logged: factors where there are some, else ids."""
    factors = here.model.factors
    if not factors:
        return TabularPolicy(here.target)
    return TabularPolicy(here.target, np.stack(list(factors.values()), 1), factors=list(factors))
