"""A classifier as the mixture: π̂₀(a|s) for discrete actions, from vectors, factors or ids of the state.

Counting gives an action that was never logged in a state probability 0 and says nothing of its neighbours; a classifier
shares what it learns between states. Candidates on rows, in order of simplicity: a multinomial logit on standardised
coordinates, their squares and products (one-hot levels where states are factors); where several loggers are labelled, a
logit for each of them, Σ_j p̂(j|s) π̂_j(a|s), since a mixture of logits is none; and gradient boosting. Log-loss on rows
held out decides, since a misspecified model stays bad though calibrated. On counted logs, a training row is a logged
pair with all its rows as its weight, and boosting may split down to single pairs. b is never below a floor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray, positions, short_seed, sum_by
from mixope.base.errors import DataError, UsageError
from mixope.behaviours.logit import fit_logit
from mixope.behaviours.protocol import (
    Behaviour,
    FittedBehaviour,
    distinct,
    first_best,
    held_out,
    usable_rows,
    vectors,
)
from mixope.features import StateEncoding
from mixope.features.quadratic import FittedQuadratic, Quadratic
from mixope.logs import Role
from mixope.requests.rows import Rows

#: As many rows settle which classifier does; the fit itself takes all.
MOST_FOR_CHOICE = 20_000
#: Factors with no more levels are categories to the booster, and one-hot to the logit.
MOST_LEVELS = 64
#: The floor on counted logs. On rows it is 1/n of the sample: an action rarer than that would not have been seen in it.
PAIR_FLOOR = 1e-6
#: A logit per logger is tried for so many of them.
MOST_LOGGERS = 12
#: C of a logit, and how long Newton's method may take over one.
LOGIT_STRENGTH, LOGIT_ITERATIONS = 10.0, 60


@dataclass(frozen=True)
class ClassifierMixture(Behaviour):
    """b from ``classifier`` (any scikit-learn classifier), on the state or on ``features(observations)``.

    By default, whichever of a logit and two sizes of boosting wins held out; on counted logs, boosting of pairs.
    """

    classifier: Any = None
    features: Callable[[AnyArray], FloatArray] | None = None
    floor: float | None = None
    name = "classifier mixture"

    def __post_init__(self) -> None:
        if self.floor is not None and not 0 <= self.floor < 1:
            raise UsageError(f"expected a floor from 0 to 1, got {self.floor}")
        if self.classifier is not None and not hasattr(self.classifier, "predict_proba"):
            raise UsageError(f"expected a classifier with fit and predict_proba, got {self.classifier!r}")

    def fit(self, rows: Rows, weight: FloatArray, seed: int = 0) -> FittedClassifier:
        """Choose, then fit to all rows, or to all pairs."""
        rows, weight = usable_rows(rows, weight)
        _check_ids(rows)
        candidates, floor = BY_ROWS, 1 / len(rows)
        if rows.pair is not None:
            first, pair = distinct(rows.pair, len(rows))
            rows, weight = rows.take(first), sum_by(pair, weight)
            candidates, floor = BY_PAIRS, PAIR_FLOOR
            if self.features is None and rows.observation.ndim == 1:
                raise UsageError(
                    "states are opaque ids: a classifier has nothing to learn from. Log the state as factors (several"
                    " columns observation.x …), give the classifier features, or use the counted mixture"
                )
        elif 1 < len(np.unique(rows.logger)) <= MOST_LOGGERS:
            simplest, *others = BY_ROWS
            candidates = {simplest: BY_ROWS[simplest], **BY_LOGGERS, **{name: BY_ROWS[name] for name in others}}
        if self.classifier is not None:
            candidates = {type(self.classifier).__name__: self._given}
        law = fit_state_law(rows, rows.action, weight, candidates, seed, self.features)
        return FittedClassifier(law, floor if self.floor is None else self.floor)

    def _given(self, encoder: Encoder, seed: int) -> Any:
        from sklearn.base import clone

        return clone(self.classifier)


@dataclass(frozen=True)
class FittedClassifier(FittedBehaviour):
    """Ready: the law of actions, nowhere below the floor."""

    law: StateLaw
    floor: float

    @property
    def notes(self) -> tuple[str, ...]:
        """Of the classifier."""
        return self.law.notes

    def log_prob(self, rows: Rows) -> FloatArray:
        """log π̂₀(a|s), one per row; an action that the sample does not have gets the floor."""
        _check_ids(rows)
        column = positions(rows.action, self.law.classes)
        picked = np.where(column >= 0, self.law.probs(rows)[np.arange(len(rows)), column], 0.0)
        return np.asarray(np.log(np.maximum(picked, self.floor)))


def _check_ids(rows: Rows) -> None:
    if rows.action.ndim != 1:
        raise DataError(
            "the actions are not ids",
            expected="integers or strings of shape (n,)",
            got=f"shape {rows.action.shape}",
            hint="a Gaussian mixture or a mixture of experts takes vectors",
        )


@dataclass(frozen=True)
class StateLaw:
    """p̂(class|s), classes in the order of columns; the candidate ``chosen``, by its mean ``held_out`` log p̂ per row."""

    classes: AnyArray
    encoder: Encoder
    model: Any
    chosen: str
    held_out: float

    @property
    def notes(self) -> tuple[str, ...]:
        """What the model has to say of its fit."""
        return tuple(getattr(self.model, "notes", ()))

    def probs(self, rows: Rows) -> FloatArray:
        """Shape (n, classes); where states are numbered, each distinct one is asked for once."""
        first, back = distinct(rows.state, len(rows))
        return self.at(rows.observation[first])[back]

    def at(self, observations: AnyArray) -> FloatArray:
        """The same for states alone."""
        return _predict(self.model, self.encoder.transform(observations), len(self.classes))


#: Makes an unfitted classifier for states encoded so.
Candidate = Callable[["Encoder", int], Any]


def fit_state_law(
    rows: Rows,
    labels: AnyArray,
    weight: FloatArray,
    candidates: Mapping[str, Candidate],
    seed: int,
    features: Callable[[AnyArray], FloatArray] | None = None,
) -> StateLaw:
    """The candidate with the best held-out log-loss, fitted to all rows; of counted pairs the first, and no loss."""
    encoder = Encoder.fit(rows.observation, features, rows.roles)
    classes, code = np.unique(labels, return_inverse=True)
    code, design = code.astype(np.int64), encoder.transform(rows.observation)
    examples = Examples(design, code, weight, np.unique(rows.logger, return_inverse=True)[1].astype(np.int64))
    if len(classes) == 1:
        return StateLaw(classes, encoder, _fit(None, examples), "one class", 0.0)
    makers = {name: partial(candidate, encoder, seed) for name, candidate in candidates.items()}
    chosen, reached = next(iter(makers)), float("nan")
    if rows.pair is None:
        chosen, reached = _choose(makers, examples, seed)
    return StateLaw(classes, encoder, _fit(makers[chosen](), examples), chosen, reached)


@dataclass(frozen=True)
class Examples:
    """States in numbers, the class of each, what it counts, and who logged it."""

    design: FloatArray
    code: IntArray
    weight: FloatArray
    logger: IntArray

    def take(self, chosen: AnyArray) -> Examples:
        """Some of them."""
        return Examples(self.design[chosen], self.code[chosen], self.weight[chosen], self.logger[chosen])


def _choose(makers: Mapping[str, Callable[[], Any]], examples: Examples, seed: int) -> tuple[str, float]:
    some = examples.take(np.random.default_rng([seed, 37]).permutation(len(examples.code))[:MOST_FOR_CHOICE])
    n, n_classes = len(some.code), int(some.code.max()) + 1

    def score(make: Callable[[], Any]) -> FloatArray:
        def trial(inside: IntArray, outside: IntArray) -> FloatArray:
            law = _predict(_fit(make(), some.take(inside)), some.design[outside], n_classes)
            found = law[np.arange(len(outside)), some.code[outside]]
            return np.asarray(np.log(np.maximum(found, 1 / len(inside))))

        return held_out(trial, n, seed)

    best, reached = first_best(map(score, makers.values()), some.weight)
    return list(makers)[best], reached


def _fit(model: Any, examples: Examples) -> Any:
    """A part of the rows may hold one class only, which most classifiers refuse."""
    if len(np.unique(examples.code)) == 1:
        model = shares()
    if isinstance(model, LogitPerLogger):
        return model.fit(examples)
    return model.fit(examples.design, examples.code, sample_weight=examples.weight)


def _predict(model: Any, design: FloatArray, n_classes: int) -> FloatArray:
    result = np.zeros((len(design), n_classes))
    if len(design) == 0:  # of which scikit-learn makes an error
        return result
    result[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(design)
    return result


def shares(encoder: Encoder | None = None, seed: int = 0) -> Any:
    """States say nothing: the shares of the classes, everywhere."""
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior")


class Logit:
    """Multinomial logit on quadratics of a vector, or on one-hot levels of factors."""

    def __init__(self, encoder: Encoder, seed: int = 0) -> None:
        self.encoder = encoder

    def fit(self, design: FloatArray, code: IntArray, sample_weight: FloatArray) -> Logit:
        """With a small ridge, to the minimum: what is broken off depends on rounding."""
        self.classes_, code = np.unique(code, return_inverse=True)
        columns = self.encoder.expand(design)
        self.model = fit_logit(columns, code.astype(np.int64), sample_weight, LOGIT_STRENGTH, LOGIT_ITERATIONS)
        return self

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether Newton's method came to an end."""
        if self.model.converged:
            return ()
        return (f"the logit behind the behaviour did not converge in {LOGIT_ITERATIONS} iterations of Newton's method",)

    def predict_proba(self, design: FloatArray) -> FloatArray:
        """One row per state."""
        return self.model.probs(self.encoder.expand(design))


@dataclass(frozen=True)
class Boosting:
    """Gradient boosting of so many rounds of trees; few-level factors are categories."""

    rounds: int
    leaves: int = 15
    ridge: float = 1.0
    smallest_leaf: int = 20

    def __call__(self, encoder: Encoder, seed: int) -> Any:
        """Unfitted."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        few = [k for k, levels in enumerate(encoder.levels) if len(levels) <= MOST_LEVELS]
        return HistGradientBoostingClassifier(
            categorical_features=few or None,
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            l2_regularization=self.ridge,
            min_samples_leaf=self.smallest_leaf,
            early_stopping=False,
            random_state=short_seed(seed),
        )


class LogitPerLogger:
    """Σ_j p̂(j|s) π̂_j(a|s): a logit for the actions of each logger, and ``weights`` for who logs where."""

    def __init__(self, weights: Candidate, encoder: Encoder, seed: int) -> None:
        self.encoder, self.seed = encoder, seed
        self.weights = weights(encoder, seed)

    def fit(self, examples: Examples) -> LogitPerLogger:
        """On the rows of each, and on all."""
        present = np.unique(examples.logger)
        self.classes_ = np.arange(int(examples.code.max()) + 1)
        of_each = [examples.take(examples.logger == j) for j in present]
        self.laws = [_fit(Logit(self.encoder, self.seed), mine) for mine in of_each]
        who = Examples(examples.design, np.searchsorted(present, examples.logger), examples.weight, examples.logger)
        self.who = _fit(self.weights, who)
        return self

    def predict_proba(self, design: FloatArray) -> FloatArray:
        """One row per state."""
        share = _predict(self.who, design, len(self.laws))
        laws = [_predict(law, design, len(self.classes_)) for law in self.laws]
        return np.asarray(sum(share[:, [j]] * law for j, law in enumerate(laws)))


#: On rows held-out loss chooses, so a few sizes do (a logistic law and a checkerboard: tests/behaviours).
BY_ROWS: Mapping[str, Candidate] = {
    "logit": Logit,
    "boosting, 40 rounds": Boosting(40),
    "boosting, 150 rounds": Boosting(150),
}
#: Besides, where several loggers are labelled.
BY_LOGGERS: Mapping[str, Candidate] = {
    "a logit per logger": partial(LogitPerLogger, Logit),
    "a logit per logger, boosted shares": partial(LogitPerLogger, Boosting(40)),
}
#: On pairs a row stands for many, so leaves of one pair are allowed. Measured on Taxi and Gridworld with factors
#: (docs/benchmarks.md, "emp (classifier mixture)"; benchmarks/efficiency.py).
BY_PAIRS: Mapping[str, Candidate] = {"boosting of pairs": Boosting(200, leaves=31, ridge=0.0, smallest_leaf=1)}


@dataclass(frozen=True)
class Encoder:
    """Vectors as they are; factors and ids by the rank of their ``levels`` in the sample, −1 if it had none such.

    Columns with roles of their own become vectors by their encoding, which is one of ``features``.
    """

    levels: tuple[AnyArray, ...]
    quadratic: FittedQuadratic | None
    features: Callable[[AnyArray], FloatArray] | None = None

    @classmethod
    def fit(
        cls,
        observations: AnyArray,
        features: Callable[[AnyArray], FloatArray] | None = None,
        roles: Sequence[Role] | None = None,
    ) -> Encoder:
        """From the states of the sample, or from features of them."""
        if features is None and roles is not None:
            features = StateEncoding.fit(observations, roles).transform
        if features is not None:
            observations = np.asarray(features(observations), dtype=np.float64)
        if observations.dtype.kind == "f":
            return cls((), Quadratic().fit(vectors(observations, "states")), features)
        return cls(tuple(np.unique(column) for column in observations.reshape(len(observations), -1).T), None)

    def transform(self, observations: AnyArray) -> FloatArray:
        """Numbers of shape (n, d), which trees can split."""
        if self.features is not None:
            observations = np.asarray(self.features(observations), dtype=np.float64)
        columns = observations.reshape(len(observations), -1)
        width = len(self.levels) if self.quadratic is None else len(self.quadratic.centre)
        if columns.shape[1] != width:
            raise DataError("the states have another shape", expected=f"{width} columns", got=f"{columns.shape[1]}")
        if self.quadratic is not None:
            return vectors(columns, "states")
        codes = [positions(column, known) for column, known in zip(columns.T, self.levels, strict=True)]
        return np.stack(codes, axis=1).astype(np.float64)

    def expand(self, design: FloatArray) -> FloatArray:
        """Columns for a model that is linear in them: of a factor, one per level but the first, or its rank."""
        if self.quadratic is not None:
            return self.quadratic.transform(design)
        parts = []
        for code, n in zip(design.T, map(len, self.levels), strict=True):
            parts.append(code[:, None] == np.arange(1, n) if n <= MOST_LEVELS else np.maximum(code, 0.0)[:, None] / n)
        found = np.concatenate(parts, axis=1, dtype=np.float64)
        return found if found.shape[1] else np.zeros((len(design), 1))  # every state is the same
