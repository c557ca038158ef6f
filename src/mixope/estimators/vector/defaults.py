"""Which behaviour a mixture is by default, what is known of the loggers, and which logger is nearest to the target."""

from __future__ import annotations

import numpy as np

from mixope.arrays import AnyArray, FloatArray
from mixope.behaviours.default_rows import default_row_behaviour
from mixope.behaviours.known_rows import KnownMixtureRows
from mixope.behaviours.rows_protocol import RowBehaviour
from mixope.errors import UsageError
from mixope.estimators.vector.problem import VectorProblem
from mixope.policies import ContinuousPolicy, DiscretePolicy
from mixope.statistics.rows import Rows

_STATES = 2000
_DRAWS = 8


def default_behaviour(problem: VectorProblem) -> RowBehaviour:
    """A classifier for discrete actions, a Gaussian or a mixture of experts for continuous ones."""
    return default_row_behaviour(problem.scan.logs.schema.action_kind, problem.labels)


def known_behaviour(problem: VectorProblem) -> RowBehaviour:
    """The mixture of the loggers' policies, all of which must be known."""
    missing = [label for label in problem.labels if label not in problem.loggers]
    if missing:
        raise UsageError(
            f"the policy of logger {missing[0]!r} is not known. Give it with loggers={{{missing[0]!r}: policy}}, or"
            " choose an estimator that does not need it, such as 'emp'"
        )
    return KnownMixtureRows(problem.loggers)


def nearest_logger_weights(problem: VectorProblem) -> dict[str, float]:
    """c = w^KL / w: argmin_j KL(π‖π_j) = argmax_j E_π log π_j, over states of the sample and draws of the target."""
    sample = problem.scan.sample
    generator = np.random.default_rng([problem.seed, 19])
    some = sample.take(generator.choice(len(sample), min(len(sample), _STATES), replace=False))
    score = np.stack([_closeness(problem, some, label) for label in problem.labels])
    nearest = np.argmax(score, axis=0)
    wanted = np.bincount(nearest, minlength=len(problem.labels)) / len(some)
    share = np.array([np.mean(sample.logger == label) for label in problem.labels])
    return {label: float(w / s) for label, w, s in zip(problem.labels, wanted, share, strict=True)}


def _closeness(problem: VectorProblem, some: Rows, label: str) -> FloatArray:
    """E_π log π_j in every state."""
    total = np.zeros(len(some))
    for weight, actions in _draws(problem, some):
        if label in problem.loggers:
            log_prob = problem.loggers[label].log_prob(some.observation, actions)
        else:
            mine = problem.scan.sample.logger == label
            fitted = problem.fitted(default_behaviour(problem), f"closeness {label}", mine.astype(np.float64))
            log_prob = fitted.log_prob(_with_actions(some, actions))
        total += weight * np.maximum(log_prob, -50.0)
    return total


def _draws(problem: VectorProblem, some: Rows) -> list[tuple[FloatArray, AnyArray]]:
    """Actions of the target with their weights: all of them if discrete, a few draws if not."""
    target, n = problem.target, len(some)
    if some.action.ndim == 1:
        actions = np.unique(problem.scan.sample.action)
        if isinstance(target, DiscretePolicy):
            probs = problem.value.design.actions.under(target, some.observation)
            return [(probs[:, k], np.full(n, a)) for k, a in enumerate(actions)]
        return [(np.exp(target.log_prob(some.observation, np.full(n, a))), np.full(n, a)) for a in actions]
    if not isinstance(target, ContinuousPolicy):
        raise UsageError("re-weighting by nearness needs a target that can be drawn from (a sample method)")
    draws = (target.sample(some.observation, np.random.default_rng([problem.seed, 23, k])) for k in range(_DRAWS))
    return [(np.full(n, 1.0 / _DRAWS), actions) for actions in draws]


def _with_actions(rows: Rows, actions: AnyArray) -> Rows:
    values = {name: getattr(rows, name) for name in rows.__dataclass_fields__}
    return Rows(**{**values, "action": actions})
