"""The question on vectors: passes over the logs, the target, the estimand; and what several estimators can share.

Features, the value model and each (behaviour, weights) ratio are made once a target and kept for the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mixope.arrays import FloatArray
from mixope.behaviours.rows_protocol import FittedBehaviour, RowBehaviour
from mixope.estimand import Estimand
from mixope.estimators.vector.ratio import RatioFit
from mixope.estimators.vector.scan import Scan
from mixope.estimators.vector.value import FOLDS, ValueFit, some_rows, value_design, value_moments
from mixope.features import FeatureMap, FittedMap, NormalisedBumps, default_size
from mixope.policies import ContinuousPolicy, Policy
from mixope.statistics.rows import Rows


@dataclass(frozen=True)
class VectorProblem:
    """Everything a feature estimator may use."""

    scan: Scan
    target: Policy
    estimand: Estimand = field(default_factory=Estimand)
    loggers: Mapping[str, Policy] = field(default_factory=dict)
    features: FeatureMap | None = None
    seed: int = 0
    folds: int = FOLDS
    cross_fit: bool = False
    _ratios: dict[str, RatioFit] = field(default_factory=dict, repr=False, compare=False)
    _behaviours: dict[str, FittedBehaviour] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The loggers of the sample, in order."""
        return tuple(np.unique(self.scan.sample.logger).tolist())

    @cached_property
    def state_features(self) -> FittedMap:
        """φ for ratio and calibration, fitted on the sample."""
        features = self.features or NormalisedBumps(default_size(self.scan.logs.total_rows()))
        return features.fit(self.scan.sample.observation, self.seed)

    @cached_property
    def coarse_features(self) -> FittedMap | None:
        """Half as many bumps, where their number chose itself: what changes with them is an error of approximation."""
        if self.features is not None:
            return None
        return NormalisedBumps(max(self.state_features.size // 2, 1)).fit(self.scan.sample.observation, self.seed)

    @cached_property
    def value(self) -> ValueFit:
        """LSTD-Q, one pass."""
        design = value_design(self.scan, self.target, self.estimand, self.features)
        moments = value_moments(self.scan, design, self.folds)
        return ValueFit(design, self.estimand, moments, self.folds)

    @cached_property
    def value_if_drawable(self) -> ValueFit | None:
        """The value model, or nothing for a target that gives densities only."""
        drawable = self.scan.sample.action.ndim == 1 or isinstance(self.target, ContinuousPolicy)
        return self.value if drawable else None

    def fitted(self, behaviour: RowBehaviour, key: str, weight: FloatArray | None = None) -> FittedBehaviour:
        """A behaviour fitted on the sample, once a key."""
        if key not in self._behaviours:
            sample = self.scan.sample
            ones = np.ones(len(sample)) if weight is None else weight
            use = ones > 0
            self._behaviours[key] = behaviour.fit(sample.take(use), ones[use], self.seed)
        return self._behaviours[key]

    def ratio(self, key: str, behaviour: FittedBehaviour, weight: Callable[[Rows], FloatArray]) -> RatioFit:
        """A state ratio, once a key."""
        return self._ratio(key, behaviour, weight, self.state_features)

    def coarse_ratio(
        self, key: str, behaviour: FittedBehaviour, weight: Callable[[Rows], FloatArray]
    ) -> RatioFit | None:
        """The same with half the bumps, once a key; nothing for features that were given."""
        coarse = self.coarse_features
        return None if coarse is None else self._ratio(f"coarse {key}", behaviour, weight, coarse)

    def _ratio(
        self, key: str, behaviour: FittedBehaviour, weight: Callable[[Rows], FloatArray], features: FittedMap
    ) -> RatioFit:
        if key not in self._ratios:
            judges = some_rows(self.scan.sample, self.seed)
            fixed = (self.scan, self.target, self.estimand, behaviour)
            self._ratios[key] = RatioFit(*fixed, features, weight, self.folds, judges)
        return self._ratios[key]
