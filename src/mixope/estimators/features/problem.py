"""The question where states or actions are not counted: a sample of the rows, features of it, and the target.

A request sees all rows; what must be chosen before that (landmarks, behaviour models, ridges) is chosen on a sample,
which is the same rows whatever the pieces the logs came in. What depends on the logs alone is fitted once and shared by
all targets and estimators of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray, runs
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.behaviours import Behaviour, FittedBehaviour
from mixope.estimators.counts.flow import no_ends
from mixope.features import ColumnFeatures, FeatureMap, FittedMap, NormalisedBumps, default_size, fit_encoded
from mixope.features.actions import DiscreteActions, QuadraticActions
from mixope.logs import Schema, StateColumns
from mixope.policies import ContinuousPolicy, Policy
from mixope.requests.relevance import relevance_of
from mixope.requests.request import content_key
from mixope.requests.rows import FOLDS, Rows, fold_of, required
from mixope.solvers.devices import Device

T = TypeVar("T")
JUDGES = 6000
"""Rows of the sample by which fits are judged."""
_SINGLE_FROM = 10_000
"""Logs of so many rows have their default features, and the products of them, in float32; totals are float64."""
_VALUE_GROWTH = 15.0
_MOST_COLUMNS = 1200


@dataclass(frozen=True)
class SampledRows:
    """What is known of the logs before any estimator asks: all loggers with their rows and starts, and a sample.

    ``has_propensities`` says whether every row has one, ``any_end`` whether some episode ends; ``logged_actions`` are
    all discrete actions, in order; ``columns`` says what the numbers of mixed states mean. ``fits`` and ``maps`` keep
    what was fitted on the sample, by content.
    """

    schema: Schema
    n_rows: int
    logger_rows: Mapping[str, float]
    logger_starts: Mapping[str, float]
    sample: Rows
    features: FeatureMap | None = None
    seed: int = 0
    has_propensities: bool = False
    logged_actions: AnyArray | None = None
    any_end: bool = True
    columns: StateColumns | None = None
    fits: dict[str, tuple[object, object]] = field(default_factory=dict, repr=False, compare=False)
    maps: dict[str, FittedMap] = field(default_factory=dict, repr=False, compare=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """All loggers, in order; a logger that the sample misses is among them."""
        return tuple(sorted(self.logger_rows))

    def of_loggers(self, labels: Collection[str]) -> SampledRows:
        """What is known of the rows of some loggers, as if nobody else had logged anything; nothing is fitted yet.

        Which discrete actions there are remains known.
        """
        return replace(
            self,
            n_rows=int(sum(self.logger_rows[label] for label in labels)),
            logger_rows={label: self.logger_rows[label] for label in labels},
            logger_starts={label: self.logger_starts[label] for label in labels},
            sample=self.sample.take(np.isin(self.sample.logger, list(labels))),
            fits={},
            maps={},
        )

    @cached_property
    def judges(self) -> Rows:
        """A few thousand rows of the sample, to judge fits by."""
        if len(self.sample) <= JUDGES:
            return self.sample
        chosen = np.random.default_rng([self.seed, 29]).choice(len(self.sample), JUDGES, replace=False)
        return self.sample.take(np.sort(chosen))

    def once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """``make()``, or what it gave before for a key of the same content."""
        name = content_key(key)
        if name not in self.fits:
            self.fits[name] = (key, make())
        found: T = self.fits[name][1]  # type: ignore[assignment]
        return found

    @property
    def state_features(self) -> FittedMap:
        """φ for ratio and calibration, fitted on the sample."""
        return self._map("state", self.features or self._bumps(default_size(self.n_rows)), self.seed)

    @property
    def coarse_features(self) -> FittedMap | None:
        """Half as many bumps, where their number chose itself: what changes with them is an error of approximation."""
        if self.features is not None:
            return None
        return self._map("coarse", self._bumps(max(self.state_features.size // 2, 1)), self.seed)

    def own_features(self, n_rows: float) -> FittedMap:
        """Half as many bumps as that many rows would have, for what those who logged them earned by themselves."""
        size = max(default_size(n_rows) // 2, 10)
        return self._map(f"own {size}", self.features or self._bumps(size), self.seed)

    def value_features(self, n_actions: int) -> FittedMap:
        """φ for the value: 15 ∛n bumps, as many as 1,200 columns allow."""
        size = min(int(_VALUE_GROWTH * self.n_rows ** (1 / 3)), _MOST_COLUMNS // n_actions)
        return self._map(f"value {n_actions}", self.features or self._bumps(max(size, 10)), self.seed + 1)

    def _bumps(self, size: int) -> FeatureMap:
        """Bumps on vectors; on the columns of mixed states, each as it matters."""
        single = self.n_rows >= _SINGLE_FROM
        return (
            NormalisedBumps(size, single=single) if self.sample.roles is None else ColumnFeatures(size, single=single)
        )

    def _map(self, what: str, features: FeatureMap, seed: int) -> FittedMap:
        if what not in self.maps:
            sample = self.sample
            if isinstance(features, ColumnFeatures):
                made = features.on(sample.roles, self.relevance)
                self.maps[what] = made.fit(sample.observation, seed)
            else:
                self.maps[what] = fit_encoded(features, sample.observation, sample.roles, seed)
        return self.maps[what]

    @property
    def relevance(self) -> FloatArray:
        """How much each column of the state matters for what follows, learned on the sample."""
        return self.once(("relevance",), lambda: relevance_of(self.judges, self.seed))

    def fitted(self, behaviour: Behaviour, weights: Mapping[str, float]) -> FittedBehaviour:
        """A behaviour fitted on the sample with row weights by logger, once."""

        def fit() -> FittedBehaviour:
            c = by_label(self.sample, weights)
            if not (c > 0).any():
                label = next(label for label, weight in weights.items() if weight > 0)
                raise UsageError(
                    f"logger {label!r} has {self.logger_rows[label]:,.0f} of {self.n_rows:,} rows, none of which is in"
                    f" the sample of {len(self.sample):,} rows on which behaviours are fitted. Give its policy, or use"
                    " an estimator that pools the loggers, such as 'dr' or 'emp'"
                )
            return behaviour.fit(self.sample.take(c > 0), c[c > 0], self.seed)

        return self.once(("behaviour", behaviour, sorted(weights.items())), fit)


def by_label(rows: Rows, weights: Mapping[str, float]) -> FloatArray:
    """c of every row, by its logger's label."""
    labels, run = runs(rows.logger)
    return np.array([weights.get(label, 0.0) for label in labels.tolist()], dtype=np.float64)[run]


def logger_weight(rows: Rows, weights: Mapping[str, float]) -> FloatArray:
    """c of every row, by its logger's label and by how often it happened."""
    return np.asarray(by_label(rows, weights) * rows.times)


@dataclass(frozen=True)
class FeatureProblem:
    """Everything that an estimator on features may look at; it never opens a file."""

    known: SampledRows
    target: Policy
    estimand: Estimand = field(default_factory=Estimand)
    loggers: Mapping[str, Policy] = field(default_factory=dict)
    folds: int = FOLDS
    cross_fit: bool = False
    piece_steps: int | None = None
    device: Device = "auto"
    """Where networks are trained and moments added up."""
    kind: ClassVar[str] = "features"
    """What an estimator takes that can solve it."""
    counted: ClassVar[None] = None
    """No counts of these rows."""
    reader: ClassVar[None] = None
    """There is no flow behind a solution, and nothing to be read off it."""
    _solved: dict[tuple[str, int], tuple[object, object]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def once(self, what: str, source: object, make: Callable[[], T]) -> T:
        """``make()``, or what it gave before for the very same sums: estimators of a target solve them once."""
        key = (what, id(source))
        if key not in self._solved:
            self._solved[key] = (source, make())
        found: T = self._solved[key][1]  # type: ignore[assignment]
        return found

    def either(self, on_counts: Callable[[Any], T], on_features: Callable[[FeatureProblem], T]) -> T:
        """Of what is to be done on counts and what on features, the one that applies, done."""
        return on_features(self)

    def forget(self) -> None:
        """Drop what was solved, and the sums behind it."""
        self._solved.clear()

    def forget_before(self, requests: Sequence[Any]) -> None:
        """Drop what nobody needs once these are asked: all who asked for sums have what they need."""
        self.forget()

    @property
    def leaves_propensities(self) -> bool:
        """Whether propensities were recorded, and it should be said that a fitted behaviour does not use them."""
        return self.known.has_propensities

    def __post_init__(self) -> None:
        if self.folds < 1 or FOLDS % self.folds:
            raise UsageError(f"folds must divide {FOLDS}, got {self.folds}")

    @property
    def labels(self) -> tuple[str, ...]:
        """All loggers."""
        return self.known.labels

    @property
    def seed(self) -> int:
        """Of the run."""
        return self.known.seed

    @property
    def gamma(self) -> float:
        """The discount, 1 where there is none."""
        return self.estimand.discount

    @property
    def drawable(self) -> bool:
        """Whether a value model has a mean over the target's actions."""
        return self.known.schema.action_kind == "discrete" or isinstance(self.target, ContinuousPolicy)

    @cached_property
    def actions(self) -> DiscreteActions | QuadraticActions:
        """One-hot for ids; quadratic in the executed action for vectors, within the target's box where it has one."""
        sample = self.known.sample
        if sample.action.ndim == 1:
            logged = self.known.logged_actions
            return DiscreteActions(np.unique(sample.action) if logged is None else logged)
        n = sample.times
        mean = n @ sample.action / n.sum()
        spread = np.sqrt(n @ (sample.action - mean) ** 2 / n.sum())
        return QuadraticActions(
            mean,
            np.where(spread > 0, spread, 1.0),
            getattr(self.target, "low", None),
            getattr(self.target, "high", None),
            self.seed,
        )

    def fold_of(self, rows: Rows) -> IntArray:
        """The fold of every row's episode."""
        return fold_of(required(rows.draw), FOLDS) % self.folds

    def check_ends(self) -> None:
        """An undiscounted total is finite only if episodes end."""
        if self.estimand.needs_ends and not self.known.any_end:
            raise no_ends()

    def refuse_horizon(self, name: str) -> None:
        """There is one stationary ratio per discount, and none for a horizon."""
        self.check_ends()
        if self.estimand.kind == "horizon":
            raise UsageError(
                f"{name!r} on features estimates the average, the discounted value and the total of an episode; for a"
                " horizon use 'lstdq',"
                " importance sampling ('wis-step'), or states that can be counted"
            )
