"""A mixture of labelled loggers: one Gaussian for the rows of each, and a logit for who logs where.

With x = (1, φ(s)), every logger j a heteroscedastic Gaussian (:mod:`mixope.behaviours.gaussian`) of its own rows, and
the labels of all rows for the shares,

    b(a|s) = Σ_j p̂(j|s) π̂_j(a|s),      π̂_j = N(a; xᵀβ_j, exp(xᵀγ_j)),      p̂(·|s) = softmax(xᵀW).

It is the model of :mod:`mixope.behaviours.experts` with labels in the place of the rounds that guess who acted: each
Gaussian is fitted once and the logit is a convex problem, so the cost is that of one Gaussian on all rows and of one
logit. Decided held out, by the actions: on which features, whether loggers are told apart at all, and at last whether
variances depend on the state (for each logger that is tried with ten rows per feature and logger); else γ_j is a
constant and β_j a regression in closed form, which is as good as it gets with few rows. Loggers that have too few rows
for a model, or that hardly vary their actions, share the Gaussian of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import logsumexp

from mixope.base.arrays import FloatArray, IntArray
from mixope.behaviours.gaussian import (
    FEWEST_ROWS,
    SMALLEST,
    VARIANCE_RIDGE,
    Fit,
    FittedDensity,
    Gaussians,
    Prepared,
    choose,
    fit_gaussian,
    gram,
    ridges,
    rows_for_choice,
    same_everywhere,
    varied,
)
from mixope.behaviours.protocol import Behaviour, first_best, usable_rows
from mixope.features.protocol import FeatureMap
from mixope.requests.rows import Rows

#: So many loggers get a model of their own; with more, experts are found without labels.
MOST_LOGGERS = 12
#: How long L-BFGS may take over the logit, in whitened coordinates, where a few dozen iterations do.
GATE_ITERATIONS = 200


def fit_loggers(rows: Prepared, *, steady: bool = False) -> Gaussians:
    """π̂_j of each logger on its own rows, and p̂(j|s); those without a model of their own are one more, on all rows."""
    own = _rows_by_logger(rows)
    which = np.full(len(rows.weight), len(own))
    for k, mine in enumerate(own):
        which[mine] = k
    parts = [rows.take(mine) for mine in own] + ([rows] if (which == len(own)).any() else [])
    fits = [fit_gaussian(part, steady=steady) for part in parts]
    if len(fits) == 1:
        return fits[0]
    gate, settled = fit_gate(rows.design, np.eye(len(fits))[which], rows.weight)
    everywhere = same_everywhere(rows.draws, rows.weight, rows.design.shape[1])
    converged = settled and all(fit.converged for fit in fits)
    return Gaussians(tuple(fit.experts[0] for fit in fits), gate, everywhere, converged)


def _rows_by_logger(rows: Prepared) -> list[IntArray]:
    """The rows of each logger that can have a model, in the order of their first rows, whatever loggers are called."""
    spread = SMALLEST * rows.draws.value.var(axis=0)
    each = (np.flatnonzero(rows.label == label) for label in np.unique(rows.label))
    found = [m for m in each if len(m) >= FEWEST_ROWS and (rows.draws.value[m].var(axis=0) > spread).all()]
    return sorted(found, key=lambda mine: int(mine[0]))


def fit_gate(design: FloatArray, share: FloatArray, weight: FloatArray) -> tuple[FloatArray, bool]:
    """W that minimises Σ c (log Σ_k exp(xᵀw_k) − Σ_k r_k xᵀw_k) + ½λ|W|², and whether L-BFGS came to its end.

    The curvature is at most ½ Σ c xxᵀ (Böhning 1992): in coordinates in which that is the identity, few steps do.
    """
    from scipy.optimize import minimize

    ridge = ridges(design.shape[1], VARIANCE_RIDGE)[:, None]
    root = np.linalg.inv(np.linalg.cholesky(gram(design, weight, 2 * VARIANCE_RIDGE))).T
    white, shape = design @ root, (design.shape[1], share.shape[1])

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        v = flat.reshape(shape)
        scores, w = white @ v, root @ v
        total = logsumexp(scores, axis=1)
        slope = white.T @ (weight[:, None] * (np.exp(scores - total[:, None]) - share)) + root.T @ (ridge * w)
        value = float(weight @ (total - np.sum(share * scores, axis=1)) + 0.5 * np.sum(ridge * w**2))
        return value / weight.sum(), slope.ravel() / weight.sum()

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": GATE_ITERATIONS})
    return root @ found.x.reshape(shape), bool(found.success)


#: In order of simplicity. Features are chosen with the first two, whose cost hardly grows with the components of an
#: action; variances that depend on the state follow.
STEADY: Sequence[Fit] = (partial(fit_gaussian, steady=True), partial(fit_loggers, steady=True))
VARYING: Sequence[Fit] = (fit_gaussian, fit_loggers)


@dataclass(frozen=True)
class MixtureOfLoggers(Behaviour):
    """b from one Gaussian per label, or from one for all rows, whichever wins held out."""

    features: FeatureMap | None = None
    name = "mixture of loggers"

    def fit(self, rows: Rows, weight: FloatArray, seed: int = 0) -> FittedDensity:
        """Choose features, box and whether to tell loggers apart; then fit to all rows of positive weight."""
        rows, weight = varied(*usable_rows(rows, weight))
        choice, steady = choose(self.features, rows, weight, seed, STEADY)
        known = choice.prepare(rows, weight)
        part = known.some(rows_for_choice(rows.action.shape[1]), seed)
        n, columns = part.design.shape
        enough = n >= 10 * columns * len(np.unique(part.label))
        fits = (steady, *(VARYING if enough else VARYING[:1]))
        best, reached = first_best((part.held_out(fit, seed) for fit in fits), part.weight, len(fits))
        return FittedDensity(replace(choice, held_out=reached), fits[best](known))
