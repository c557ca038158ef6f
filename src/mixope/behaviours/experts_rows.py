"""A mixture of experts as the mixture: several Gaussians, with shares that depend on the state.

With x = (1, φ(s)) and every expert a heteroscedastic Gaussian (:mod:`mixope.behaviours.gaussian_rows`),

    b(a|s) = Σ_k g_k(s) N(a; xᵀβ_k, exp(xᵀγ_k)),      g(s) = softmax(xᵀW).

EM: shares r_k of every row among the experts, then one round of every expert with weights c r_k and a few steps of W.
Loggers that differ in the same state make a pooled law that is not Gaussian; labels, where there are any, start the
rounds. How many experts is decided held out: one more must gain more than the standard error of its gain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixope.arrays import AnyArray, FloatArray, IntArray
from mixope.behaviours.boxed_draws import Draws
from mixope.behaviours.gaussian_fit import (
    GAIN,
    VARIANCE_RIDGE,
    Gaussian,
    defended,
    fit_gaussian,
    gram,
    improve,
    ridges,
    same_everywhere,
)
from mixope.behaviours.gaussian_rows import Choice, FittedGaussian, choose, usable
from mixope.behaviours.rows_protocol import check_weight, first_best, held_out
from mixope.errors import UsageError
from mixope.features.protocol import FeatureMap
from mixope.statistics.rows import Rows

MOST_EXPERTS = 6
#: EM costs a regression an expert a round; more rows than this would sharpen what calibration mends anyway.
MOST_ROWS = 40_000
MOST_FOR_CHOICE = 15_000
ROUNDS = 40


@dataclass(frozen=True)
class MixtureOfExperts:
    """b from ``n_experts`` Gaussians; by default as many as help, up to four, or one more than there are labels."""

    n_experts: int | None = None
    features: FeatureMap | None = None
    name: str = "mixture of experts"

    def __post_init__(self) -> None:
        if self.n_experts is not None and self.n_experts < 1:
            raise UsageError(f"expected at least one expert, got {self.n_experts}")

    def fit(self, sample: Rows, weight: FloatArray, seed: int = 0) -> FittedExperts | FittedGaussian:
        """One Gaussian, or the number of experts that wins held out."""
        used = check_weight(weight, len(sample)) > 0
        states, actions, weight = usable(sample, weight)
        choice = choose(self.features, states, actions, weight, seed)
        rows = ExpertRows(choice.design(states), choice.box.draws(actions), weight, _codes(sample.logger[used]))
        n_experts, reached = self._count(rows.some(MOST_FOR_CHOICE, seed), seed)
        if n_experts == 1:
            return FittedGaussian(choice, fit_gaussian(rows.design, rows.draws, rows.weight))
        return FittedExperts(choice, fit_experts(rows.some(MOST_ROWS, seed), n_experts, seed), reached)

    def _count(self, rows: ExpertRows, seed: int) -> tuple[int, float]:
        """The number of experts, and its held-out log-likelihood."""
        labels = len(np.unique(rows.label))
        most = min(labels + 1, MOST_EXPERTS) if labels > 1 else 4
        counts = [self.n_experts] if self.n_experts is not None else list(range(1, most + 1))
        best, reached = first_best((_held_out(rows, count, seed) for count in counts), rows.weight)
        return counts[best], reached


@dataclass(frozen=True)
class FittedExperts:
    """Ready. ``held_out`` in nats a row, for the chosen number of experts."""

    choice: Choice
    model: Experts
    held_out: float

    @property
    def chosen(self) -> str:
        """How many experts, on which features."""
        return f"{len(self.model.experts)} experts, {self.choice.label}"

    @property
    def note(self) -> str:
        """What was found about bounds of the actions; empty if nothing."""
        return self.choice.box.note

    def log_prob(self, rows: Rows) -> FloatArray:
        """log b(a|s), one a row."""
        states, actions = self.choice.arrays(rows)
        return self.model.log_density(self.choice.design(states), self.choice.box.draws(actions))


@dataclass(frozen=True)
class Experts:
    """Experts, the weights W of the gate, shape (1 + M, K), and the law of all actions together."""

    experts: tuple[Gaussian, ...]
    gate: FloatArray
    everywhere: Gaussian

    def joint(self, design: FloatArray, draws: Draws) -> FloatArray:
        """log g_k(s) N_k(a|s), shape (n, K)."""
        return _log_gate(design @ self.gate) + np.stack([e.log_density(design, draws) for e in self.experts], axis=1)

    def log_density(self, design: FloatArray, draws: Draws) -> FloatArray:
        """log b̂(a|s), defended as one Gaussian is."""
        return defended(_log_sum(self.joint(design, draws)), self.everywhere, draws)


@dataclass(frozen=True)
class ExpertRows:
    """What EM works on."""

    design: FloatArray
    draws: Draws
    weight: FloatArray
    label: IntArray

    def take(self, rows: IntArray) -> ExpertRows:
        """Some of the rows."""
        return ExpertRows(self.design[rows], self.draws.take(rows), self.weight[rows], self.label[rows])

    def some(self, most: int, seed: int) -> ExpertRows:
        """All rows, or as many as ``most`` of them."""
        n = len(self.weight)
        if n <= most:
            return self
        return self.take(np.sort(np.random.default_rng([seed, 31]).choice(n, most, replace=False)))


def fit_experts(rows: ExpertRows, n_experts: int, seed: int) -> Experts:
    """Rounds of EM until they gain nothing."""
    share = _first_shares(rows, n_experts, seed)
    columns = rows.design.shape[1]
    experts = tuple(same_everywhere(rows.draws, rows.weight * share[:, k], columns) for k in range(n_experts))
    everywhere = same_everywhere(rows.draws, rows.weight, columns)
    model = Experts(experts, np.zeros((columns, n_experts)), everywhere)
    information = gram(rows.design, rows.weight, 2 * VARIANCE_RIDGE)
    before = -np.inf
    for _ in range(ROUNDS):
        model = _round(model, rows, share, information)
        joint = model.joint(rows.design, rows.draws)
        each = _log_sum(joint)
        share = np.exp(joint - each[:, None])
        now = float(np.average(each, weights=rows.weight))
        if now - before < 10 * GAIN:
            break
        before = now
    return _allowing_for_error(model, rows, share)


def _allowing_for_error(model: Experts, rows: ExpertRows, share: FloatArray) -> Experts:
    """Each expert by the rows that are its own."""
    experts = (e.allowing_for_error(rows.design, rows.weight * share[:, k]) for k, e in enumerate(model.experts))
    return replace(model, experts=tuple(experts))


def _round(model: Experts, rows: ExpertRows, share: FloatArray, information: FloatArray) -> Experts:
    experts = tuple(
        improve(expert, rows.design, rows.draws, rows.weight * share[:, k]) for k, expert in enumerate(model.experts)
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
    g = np.exp(_log_gate(design @ gate))
    slope = design.T @ (weight[:, None] * (share - g)) - ridges(len(gate), VARIANCE_RIDGE)[:, None] * gate
    return np.asarray(gate + 2 * np.linalg.solve(information, slope))


def _first_shares(rows: ExpertRows, n_experts: int, seed: int) -> FloatArray:
    """By label where there are as many; else by clusters of what one Gaussian leaves unexplained."""
    group = rows.label
    if len(np.unique(group)) != n_experts:
        from sklearn.cluster import KMeans

        mean, log_variance = fit_gaussian(rows.design, rows.draws, rows.weight).model.moments(rows.design)
        left = (rows.draws.value - mean) * np.exp(-0.5 * log_variance)
        group = KMeans(n_experts, n_init=2, random_state=seed).fit(left, sample_weight=rows.weight).labels_
    return np.where(group[:, None] == np.arange(n_experts), 0.9, 0.1 / max(n_experts - 1, 1))


def _held_out(rows: ExpertRows, n_experts: int, seed: int) -> FloatArray:
    def trial(inside: IntArray, outside: IntArray) -> FloatArray:
        known, new = rows.take(inside), rows.take(outside)
        if n_experts == 1:
            return fit_gaussian(known.design, known.draws, known.weight).log_density(new.design, new.draws)
        return fit_experts(known, n_experts, seed).log_density(new.design, new.draws)

    return held_out(trial, len(rows.weight), seed)


def _log_gate(scores: FloatArray) -> FloatArray:
    return scores - _log_sum(scores)[:, None]


def _log_sum(terms: FloatArray) -> FloatArray:
    """log Σ_k exp of every row."""
    top = terms.max(axis=1)
    return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))


def _codes(labels: AnyArray) -> IntArray:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
