"""A classifier as the mixture: π̂₀(a|s) from any scikit-learn classifier on the factors (or features) of the state.

Counting gives an action that was never logged in a state probability 0 and says nothing of its neighbours; a classifier
shares what it learns between states with common factors. It is fitted on the pooled (re-weighted) counts of (s, a): one
training row a logged pair, with its count as sample weight. A misspecified one is worse than counting even after
calibration, so its error can be measured on rows held out (:func:`held_out_loss`), and Σ(ρ − 1) is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.arrays import AnyArray, FloatArray, IntArray, sum_by
from mixope.behaviours.protocol import Inverse
from mixope.errors import UsageError
from mixope.problem import Problem
from mixope.statistics.transitions import Transitions

_SMALLEST = 1e-6


@dataclass(frozen=True)
class ClassifierMixture:
    """b from ``classifier`` (default: gradient boosting) on factor codes, or on ``features(observations)``."""

    classifier: Any = None
    features: Callable[[AnyArray], FloatArray] | None = None
    name: str = "classifier mixture"
    counted: bool = False
    fitted: bool = True

    def invert(self, problem: Problem, weight: FloatArray) -> Inverse:
        """Fit on the counts, predict on the logged pairs."""
        rows = problem.transitions
        design = self._design(rows)
        law = self._fit(rows, design, rows.rows * weight, problem.seed)
        return Inverse.of_groups(np.maximum(law[rows.state, rows.action], _SMALLEST), rows)

    def _design(self, rows: Transitions) -> FloatArray:
        if self.features is not None:
            return np.asarray(self.features(rows.observations), dtype=np.float64)
        if not rows.factors:
            raise UsageError(
                "states are opaque ids: a classifier has nothing to learn from. Log the state as factors (several"
                " columns observation.x …), pass features=…, or use the counted mixture"
            )
        return factor_codes(rows.observations)

    def _fit(self, rows: Transitions, design: FloatArray, count: FloatArray, seed: int) -> FloatArray:
        """π̂₀ in every state, over the logged actions."""
        by_pair = sum_by(rows.pair, count, rows.n_pairs)
        used = by_pair > 0
        actions = rows.pair_action[used]
        law = np.zeros((rows.n_states, len(rows.actions)))
        if len(np.unique(actions)) == 1:
            law[:, actions[0]] = 1.0
            return law
        model = clone_or_default(self.classifier, design, seed)
        model.fit(design[rows.pair_state[used]], actions, sample_weight=by_pair[used])
        law[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(design)
        return law


def factor_codes(observations: AnyArray) -> FloatArray:
    """Each factor as numbers: integers as they are, strings by rank."""
    columns = observations.reshape(len(observations), -1)
    coded = [np.unique(columns[:, k], return_inverse=True)[1] for k in range(columns.shape[1])]
    return np.stack(coded, axis=1).astype(np.float64)


def clone_or_default(classifier: Any, design: FloatArray, seed: int) -> Any:
    """An unfitted copy of the user's classifier, or the default booster with few-level factors as categories."""
    from sklearn.base import clone

    if classifier is not None:
        return clone(classifier)
    from sklearn.ensemble import HistGradientBoostingClassifier

    few = [k for k in range(design.shape[1]) if len(np.unique(design[:, k])) <= 32]
    return HistGradientBoostingClassifier(
        categorical_features=few,
        max_iter=200,
        learning_rate=0.1,
        min_samples_leaf=1,  # a training row is a pair with all its logged rows
        early_stopping=False,
        random_state=seed,
    )


def held_out_loss(behaviour: ClassifierMixture, problem: Problem, folds: int = 3) -> float:
    """Mean −log π̂₀ of rows left out of the fit: each row falls into one of ``folds`` parts."""
    rows = problem.transitions
    generator = np.random.default_rng([problem.seed, 11])
    design = behaviour._design(rows)
    parts: list[IntArray] = [
        part.astype(np.int64) for part in generator.multinomial(rows.rows.astype(np.int64), np.full(folds, 1 / folds)).T
    ]
    loss = 0.0
    for out in parts:
        law = behaviour._fit(rows, design, rows.rows - out, problem.seed)
        loss -= float(out @ np.log(np.maximum(law[rows.state, rows.action], _SMALLEST)))
    return loss / rows.n_rows
