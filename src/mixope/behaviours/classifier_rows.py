"""A classifier as the mixture on rows: π̂₀(a|s) for discrete actions, from vectors, factors or ids of the state.

Candidates, in order of simplicity: a multinomial logit on standardised coordinates, their squares and products (one-hot
levels where states are factors), and gradient boosting. Log-loss on rows held out decides, since a misspecified model
stays bad though calibrated. b is never below a floor: 1/n of the sample, since an action rarer than that would not have
been seen in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.arrays import AnyArray, FloatArray, IntArray
from mixope.behaviours.rows_protocol import check_weight, first_best, held_out, vectors
from mixope.errors import DataError
from mixope.features.quadratic import FittedQuadratic, Quadratic
from mixope.statistics.rows import Rows

#: As many rows settle which classifier does; the fit itself takes all.
MOST_FOR_CHOICE = 20_000
#: Factors with no more levels are categories to the booster, and one-hot to the logit.
MOST_LEVELS = 64


@dataclass(frozen=True)
class ClassifierRows:
    """b from ``classifier`` (any scikit-learn classifier); by default a logit or boosting, whichever wins held out."""

    classifier: Any = None
    floor: float | None = None
    name: str = "classifier mixture"

    def fit(self, sample: Rows, weight: FloatArray, seed: int = 0) -> FittedClassifier:
        """Choose, then fit to all rows of the sample."""
        weight = check_weight(weight, len(sample))
        used = np.flatnonzero(weight > 0)
        sample = sample.take(used)
        if sample.action.ndim != 1:
            raise DataError(
                "the actions are not ids",
                expected="integers or strings of shape (n,)",
                got=f"shape {sample.action.shape}",
                hint="a Gaussian mixture or a mixture of experts takes vectors",
            )
        candidates = DEFAULTS if self.classifier is None else {type(self.classifier).__name__: self._given}
        law = fit_state_law(sample.observation, sample.action, weight[used], candidates, seed)
        return FittedClassifier(law, self.floor if self.floor is not None else 1 / len(sample))

    def _given(self, encoder: Encoder, seed: int) -> Any:
        from sklearn.base import clone

        return clone(self.classifier)


@dataclass(frozen=True)
class FittedClassifier:
    """Ready. ``held_out`` is mean log π̂₀ of rows left out of the fit, ``chosen`` the classifier that won."""

    law: StateLaw
    floor: float

    @property
    def held_out(self) -> float:
        """In nats a row."""
        return self.law.held_out

    @property
    def chosen(self) -> str:
        """The classifier that won."""
        return self.law.chosen

    def log_prob(self, rows: Rows) -> FloatArray:
        """log π̂₀(a|s), one a row; an action that the sample does not have gets the floor."""
        if rows.action.ndim != 1:
            raise DataError("the actions are not ids", expected="shape (n,)", got=f"shape {rows.action.shape}")
        probabilities = self.law.probs(rows.observation)
        column = _find(rows.action, self.law.classes)
        picked = np.where(column >= 0, probabilities[np.arange(len(rows)), column], 0.0)
        return np.asarray(np.log(np.maximum(picked, self.floor)))


# --- the law of any label given the state: of actions here, of loggers in known_rows.py


@dataclass(frozen=True)
class StateLaw:
    """p̂(class|s), with the classes in the order of columns."""

    classes: AnyArray
    encoder: Encoder
    model: Any
    chosen: str
    held_out: float

    def probs(self, observations: AnyArray) -> FloatArray:
        """One row a state, shape (n, classes)."""
        return _predict(self.model, self.encoder.transform(observations), len(self.classes))


#: Makes an unfitted classifier for states encoded so.
Candidate = Callable[["Encoder", int], Any]


def fit_state_law(
    observations: AnyArray, labels: AnyArray, weight: FloatArray, candidates: Mapping[str, Candidate], seed: int
) -> StateLaw:
    """The candidate with the best held-out log-loss, fitted to all rows."""
    encoder = Encoder.fit(observations)
    classes, code = np.unique(labels, return_inverse=True)
    code = code.astype(np.int64)
    if len(classes) == 1:
        return StateLaw(classes, encoder, Shares().fit(code[:, None], code, weight), "one class", 0.0)
    design = encoder.transform(observations)
    chosen, reached = _choose(candidates, encoder, design, code, weight, seed)
    model = _fit(candidates[chosen](encoder, seed), design, code, weight)
    return StateLaw(classes, encoder, model, chosen, reached)


def _choose(
    candidates: Mapping[str, Candidate],
    encoder: Encoder,
    design: FloatArray,
    code: IntArray,
    weight: FloatArray,
    seed: int,
) -> tuple[str, float]:
    some = np.random.default_rng([seed, 37]).permutation(len(code))[:MOST_FOR_CHOICE]
    design, code, weight = design[some], code[some], weight[some]
    names = list(candidates)

    def score(name: str) -> FloatArray:
        def trial(inside: IntArray, outside: IntArray) -> FloatArray:
            model = _fit(candidates[name](encoder, seed), design[inside], code[inside], weight[inside])
            law = _predict(model, design[outside], int(code.max()) + 1)
            return np.asarray(np.log(np.maximum(law[np.arange(len(outside)), code[outside]], 1 / len(inside))))

        return held_out(trial, len(code), seed)

    best, reached = first_best(map(score, names), weight)
    return names[best], reached


def _fit(model: Any, design: FloatArray, code: IntArray, weight: FloatArray) -> Any:
    """A part of the rows may hold one class only, which most classifiers refuse."""
    if len(np.unique(code)) == 1:
        model = Shares()
    return model.fit(design, code, sample_weight=weight)


def _predict(model: Any, design: FloatArray, n_classes: int) -> FloatArray:
    result = np.zeros((len(design), n_classes))
    result[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(design)
    return result


class Shares:
    """The same law in every state: the shares of the classes."""

    def fit(self, design: AnyArray, code: IntArray, sample_weight: FloatArray) -> Shares:
        """Count."""
        self.classes_, index = np.unique(code, return_inverse=True)
        self.shares = np.bincount(index, weights=sample_weight) / sample_weight.sum()
        return self

    def predict_proba(self, design: AnyArray) -> FloatArray:
        """The shares, for every row."""
        return np.tile(self.shares, (len(design), 1))


def shares(encoder: Encoder, seed: int) -> Any:
    """States say nothing."""
    return Shares()


def logit(encoder: Encoder, seed: int) -> Any:
    """Multinomial logit."""
    return Logit(encoder)


class Logit:
    """Multinomial logit on quadratics of a vector, or on one-hot levels of factors."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def fit(self, design: FloatArray, code: IntArray, sample_weight: FloatArray) -> Logit:
        """By L-BFGS, with a small ridge."""
        from sklearn.linear_model import LogisticRegression

        self.model = LogisticRegression(C=10.0, max_iter=300)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="lbfgs failed to converge")
            self.model.fit(self.encoder.expand(design), code, sample_weight=sample_weight)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, design: FloatArray) -> FloatArray:
        """One row a state."""
        return np.asarray(self.model.predict_proba(self.encoder.expand(design)))


@dataclass(frozen=True)
class Boosting:
    """Gradient boosting of so many rounds; few-level factors are categories."""

    rounds: int

    def __call__(self, encoder: Encoder, seed: int) -> Any:
        """Unfitted."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        few = [k for k, levels in enumerate(encoder.levels) if len(levels) <= MOST_LEVELS]
        return HistGradientBoostingClassifier(
            categorical_features=few or None,
            max_iter=self.rounds,
            max_leaf_nodes=15,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=seed,
        )


DEFAULTS: Mapping[str, Candidate] = {
    "logit": logit,
    "boosting, 40 rounds": Boosting(40),
    "boosting, 150 rounds": Boosting(150),
}


# --- states as numbers


@dataclass(frozen=True)
class Encoder:
    """Vectors as they are; factors and ids by the rank of their ``levels`` in the sample, −1 if it had none such."""

    levels: tuple[AnyArray, ...]
    quadratic: FittedQuadratic | None

    @classmethod
    def fit(cls, observations: AnyArray) -> Encoder:
        """From the states of the sample."""
        if observations.dtype.kind == "f":
            return cls((), Quadratic().fit(vectors(observations, "states")))
        columns = observations.reshape(len(observations), -1)
        return cls(tuple(np.unique(columns[:, k]) for k in range(columns.shape[1])), None)

    def transform(self, observations: AnyArray) -> FloatArray:
        """Numbers of shape (n, d), which trees can split."""
        width = len(self.levels) or (len(self.quadratic.centre) if self.quadratic else 0)
        columns = observations.reshape(len(observations), -1)
        if columns.shape[1] != width:
            raise DataError("the states have another shape", expected=f"{width} columns", got=f"{columns.shape[1]}")
        if self.quadratic is not None:
            return vectors(columns, "states")
        codes = [_find(columns[:, k], known) for k, known in enumerate(self.levels)]
        return np.stack(codes, axis=1).astype(np.float64)

    def expand(self, design: FloatArray) -> FloatArray:
        """Columns for a model that is linear in them."""
        if self.quadratic is not None:
            return self.quadratic.transform(design)
        return np.concatenate([_spread(design[:, k], len(known)) for k, known in enumerate(self.levels)], axis=1)


def _spread(code: FloatArray, n_levels: int) -> FloatArray:
    """One column a level but the first; many levels stay one column, from 0 to 1."""
    if n_levels <= MOST_LEVELS:
        return np.asarray(code[:, None] == np.arange(1, n_levels), dtype=np.float64)
    return np.asarray(np.maximum(code, 0.0)[:, None] / n_levels)


def _find(values: AnyArray, known: AnyArray) -> IntArray:
    """The position of every value among the sorted known ones; −1 where it is none of them."""
    position = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[position] == values, position, -1).astype(np.int64)
