"""A mixture of experts as the mixture: several Gaussians, with shares that depend on the state.

With x = (1, φ(s)) and every expert a heteroscedastic Gaussian (:mod:`mixope.behaviours.gaussian`),

    b(a|s) = Σ_k g_k(s) N(a; xᵀβ_k, exp(xᵀγ_k)),      g(s) = softmax(xᵀW).

EM: shares r_k of every row among the experts, then one round of every expert with weights c r_k and a few steps of W.
Loggers that differ in the same state make a pooled law that is not Gaussian; labels, where there are any, start the
rounds (a few labelled loggers need none: :mod:`mixope.behaviours.labelled`). How many experts is decided held out: one
more must gain more than the standard error of its gain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import logsumexp, softmax

from mixope.base.arrays import FloatArray, short_seed
from mixope.base.errors import UsageError
from mixope.behaviours.gaussian import (
    GAIN,
    VARIANCE_RIDGE,
    FittedDensity,
    Gaussians,
    Prepared,
    choose,
    fit_gaussian,
    gram,
    improve,
    ridges,
    same_everywhere,
    varied,
)
from mixope.behaviours.protocol import Behaviour, first_best, usable_rows
from mixope.features.protocol import FeatureMap
from mixope.requests.rows import Rows

MOST_EXPERTS = 6
#: The cost is bounded: at most ROUNDS rounds of EM, each one regression per expert and component and five steps of the
#: gate, on at most MOST_ROWS rows (more would sharpen what calibration corrects anyway) and on so few that rows ×
#: features² × components × experts is at most MOST_WORK, though never fewer than ten per feature. The choice of how
#: many experts makes three such fits on at most MOST_FOR_CHOICE rows for each of a few numbers. The notes say how many
#: rows were used if not all, and whether the fit still gained after its rounds.
MOST_ROWS = 40_000
MOST_FOR_CHOICE = 8_000
MOST_WORK = 2e9
ROUNDS = 40


@dataclass(frozen=True)
class MixtureOfExperts(Behaviour):
    """b from ``n_experts`` Gaussians; by default one, or as many as there are labels (unlabelled: up to four)."""

    n_experts: int | None = None
    features: FeatureMap | None = None
    name = "mixture of experts"

    def __post_init__(self) -> None:
        if self.n_experts is not None and self.n_experts < 1:
            raise UsageError(f"expected at least one expert, got {self.n_experts}")

    def fit(self, rows: Rows, weight: FloatArray, seed: int = 0) -> FittedDensity:
        """One Gaussian, or the number of experts that wins held out."""
        rows, weight = varied(*usable_rows(rows, weight))
        choice, _ = choose(self.features, rows, weight, seed, (fit_gaussian,))
        known = choice.prepare(rows, weight)
        counts = self._counts(len(np.unique(known.label)))
        affordable = _affordable(known, max(counts))
        n_experts, reached = _count(known.some(min(MOST_FOR_CHOICE, affordable), seed), counts, seed)
        if n_experts == 1:
            return FittedDensity(choice, fit_gaussian(known))
        part = known.some(min(MOST_ROWS, affordable), seed)
        choice = replace(choice, label=f"{n_experts} experts, {choice.label}", held_out=reached)
        return FittedDensity(choice, fit_experts(part, n_experts, seed), _cut_down(part, known))

    def _counts(self, labels: int) -> list[int]:
        """The numbers of experts to try."""
        if self.n_experts is not None:
            return [self.n_experts]
        return [1, min(labels, MOST_EXPERTS)] if labels > 1 else [1, 2, 3, 4]


def _count(rows: Prepared, counts: list[int], seed: int) -> tuple[int, float]:
    """The number of experts, and its held-out log-likelihood."""
    fits = (fit_gaussian if k == 1 else partial(fit_experts, n_experts=k, seed=seed) for k in counts)
    best, reached = first_best((rows.held_out(fit, seed) for fit in fits), rows.weight)
    return counts[best], reached


def _affordable(rows: Prepared, n_experts: int) -> int:
    """How many rows keep a round within its bound."""
    columns, components = int(rows.design.shape[1]), int(rows.draws.value.shape[1])
    return max(int(MOST_WORK / (columns**2 * components * n_experts)), 10 * columns)


def _cut_down(part: Prepared, rows: Prepared) -> tuple[str, ...]:
    used, n = len(part.weight), len(rows.weight)
    if used == n:
        return ()
    columns, components = rows.design.shape[1], rows.draws.value.shape[1]
    words = f"experts were fitted to {used:,} of {n:,} rows of the sample, to bound the time that it takes"
    return (f"{words} with {columns} features and {components} components of the action",)


def fit_experts(rows: Prepared, n_experts: int, seed: int) -> Gaussians:
    """Rounds of EM until they gain nothing; then each expert allows for its error by the rows that are its own."""
    share = _first_shares(rows, n_experts, seed)
    columns = rows.design.shape[1]
    experts = tuple(same_everywhere(rows.draws, rows.weight * share[:, k], columns) for k in range(n_experts))
    everywhere = same_everywhere(rows.draws, rows.weight, columns)
    model = Gaussians(experts, np.zeros((columns, n_experts)), everywhere)
    information = gram(rows.design, rows.weight, 2 * VARIANCE_RIDGE)
    before = -np.inf
    for _ in range(ROUNDS):
        model = _round(model, rows, share, information)
        joint = model.joint(rows)
        each = np.asarray(logsumexp(joint, axis=1))
        share = np.exp(joint - each[:, None])
        now = float(np.average(each, weights=rows.weight))
        if now - before < 10 * GAIN:
            model = replace(model, converged=True)
            break
        before = now
    own = (e.allowing_for_error(rows.design, rows.weight * share[:, k]) for k, e in enumerate(model.experts))
    return replace(model, experts=tuple(own))


def _round(model: Gaussians, rows: Prepared, share: FloatArray, information: FloatArray) -> Gaussians:
    weights = [rows.weight * share[:, k] for k in range(len(model.experts))]
    experts = tuple(
        improve(expert, rows.design, rows.draws, weight, gram(rows.design, weight, VARIANCE_RIDGE))
        for expert, weight in zip(model.experts, weights, strict=True)
    )
    gate = model.gate
    for _ in range(5):
        gate = gate_step(gate, rows.design, share, rows.weight, information)
    return replace(model, experts=experts, gate=gate)


def gate_step(
    gate: FloatArray, design: FloatArray, share: FloatArray, weight: FloatArray, information: FloatArray
) -> FloatArray:
    """W + 2 (Σ c xxᵀ + 2λ)⁻¹ (Σ c x (r − g)ᵀ − λW).

    The curvature of the log-likelihood is at most ½ Σ c xxᵀ (Böhning 1992), so a step never loses and one matrix does.
    """
    g = softmax(design @ gate, axis=1)
    slope = design.T @ (weight[:, None] * (share - g)) - ridges(len(gate), VARIANCE_RIDGE)[:, None] * gate
    return np.asarray(gate + 2 * np.linalg.solve(information, slope))


def _first_shares(rows: Prepared, n_experts: int, seed: int) -> FloatArray:
    """By label where there are as many; else by clusters of what one Gaussian leaves unexplained."""
    group = rows.label
    if len(np.unique(group)) != n_experts:
        from sklearn.cluster import KMeans

        mean, log_variance = fit_gaussian(rows).experts[0].moments(rows.design)
        left = (rows.draws.value - mean) * np.exp(-0.5 * log_variance)
        group = KMeans(n_experts, n_init=2, random_state=short_seed(seed)).fit(left, sample_weight=rows.weight).labels_
    return np.where(group[:, None] == np.arange(n_experts), 0.9, 0.1 / max(n_experts - 1, 1))
