"""Every request for moments written out by hand, in double precision: what its terms must add up to."""

from functools import singledispatch

import numpy as np

from mixope.base.arrays import square
from mixope.base.errors import DataError
from mixope.behaviours.calibration import CalibrationMoments
from mixope.estimators.features.estimators import LARGEST_DENSITY, ReferenceSums
from mixope.estimators.features.on_policy import ChainSums
from mixope.estimators.features.ratio import CalibrationSums, RatioSums
from mixope.estimators.features.value import PairGram, ValueSums
from mixope.requests.moments import Moments


@singledispatch
def accumulate(request, total, rows, fold):
    """Add what the rows of one fold are worth."""
    raise NotImplementedError(f"write {type(request).__name__} out here")


def phi_of(features, rows, following=False):
    return np.asarray(features.transform(rows.next_observation if following else rows.observation), dtype=np.float64)


def crossed(phi, factor):
    """One row after another: φ ⊗ f, the features of every factor side by side."""
    return np.array([np.outer(f, p).ravel() for p, f in zip(phi, factor, strict=True)]).reshape(len(phi), -1)


def pairs(design, rows):
    return crossed(phi_of(design.states, rows), design.actions.of(rows.action))


def under(design, policy, rows, following=False):
    at = rows.next_observation if following else rows.observation
    return crossed(phi_of(design.states, rows, following), design.actions.under(policy, at))


def calibration_moments(phi, ratio, weight, count=None):
    """K = Σ c ρ φφᵀ, m = Σ c φ, k = Σ c ρ φ and Σ c²(ρ − 1)²φ² of a batch: φ (n, M), ρ and c (n,).

    Rows that happened ``count`` times count so often.
    """
    if phi.ndim != 2 or ratio.shape != (phi.shape[0],) or weight.shape != (phi.shape[0],):
        raise DataError(
            "features, ratios and weights do not belong to the same rows",
            expected="shapes (n, M), (n,) and (n,)",
            got=f"shapes {phi.shape}, {ratio.shape} and {weight.shape}",
        )
    off, times = (weight * (ratio - 1)) ** 2, weight if count is None else weight * count
    mass, spread = times * ratio, off if count is None else count * off
    plain, weighted = np.stack([times, mass]) @ phi
    return CalibrationMoments(square(phi * np.sqrt(mass)[:, None]), plain, weighted, spread @ phi**2)


@accumulate.register
def _(request: CalibrationSums, total, rows, fold):
    ratio, cut = request.raw.of(rows)
    weights = dict(request.raw.logger_weights)
    c = np.array([weights.get(label, 0.0) for label in rows.logger.tolist()])
    moments = calibration_moments(phi_of(request.features, rows), ratio, c, rows.count)
    for name in ("gram", "plain", "weighted", "spread"):
        total.add(name, 0, getattr(moments, name))
    total.add("cut", 0, float(cut))


@accumulate.register
def _(request: RatioSums, total, rows, fold):
    features = request.ratio.features
    phi, ahead, c = phi_of(features, rows), phi_of(features, rows, following=True), request.ratio.raw.weight(rows)
    factor = 1 + phi @ request.ratio.eta
    raw = request.ratio.raw.of(rows)[0]
    flow = c * raw * np.maximum(factor, 0.0)
    difference = c[:, None] * phi - (request.gamma * np.where(rows.terminated, 0.0, flow))[:, None] * ahead
    total.add("a", fold, difference.T @ phi)
    total.add("gram", fold, (c[:, None] * phi).T @ phi)
    begun = rows.start * rows.times
    for name, weight in {"e": c, "ended": flow * rows.terminated, "start": begun}.items():
        total.add(name, fold, weight @ phi)
    total.add("n", fold, c.sum())
    total.add("starts", fold, begun.sum())
    total.add("clipped", fold, float(((factor < 0) & (raw > 0)).sum()))


@accumulate.register
def _(request: ValueSums, total, rows, fold):
    design, n = request.design, rows.times
    x, over = pairs(design, rows), rows.terminated * n
    going = design.gamma * n * ~rows.terminated
    difference = n[:, None] * x - going[:, None] * under(design, design.target, rows, following=True)
    total.add("a", fold, x.T @ difference)
    for name, weight in {"b": rows.reward * n, "e": n, "ended": over}.items():
        total.add(name, fold, weight @ x)
    total.add("d", fold, difference.sum(axis=0))
    for name, values in {"r": rows.reward * n, "n": n, "ends": over}.items():
        total.add(name, fold, values.sum())
    first = rows.take(rows.start)
    begin = first.times @ under(design, design.target, first) if len(first) else np.zeros(design.size)
    total.add("start", 0, begin)
    total.add("starts", 0, first.times.sum())


@accumulate.register
def _(request: PairGram, total, rows, fold):
    x = pairs(request.pairs, rows)
    total.add("gram", fold, (rows.times[:, None] * x).T @ x)


@accumulate.register
def _(request: ReferenceSums, total, rows, fold):
    design, n, unit = request.design, rows.times, request.log_unit
    x, ahead = pairs(design, rows), under(design, request.reference, rows, following=True)
    density = np.exp(design.target.log_prob(rows.observation, rows.action) - unit)
    probability, capped = np.minimum(density, LARGEST_DENSITY), density > LARGEST_DENSITY
    reference = np.exp(request.reference.log_prob(rows.observation, rows.action) - unit)
    going = design.gamma * probability * n * ~rows.terminated
    total.add("a", 0, ((reference * n)[:, None] * x - going[:, None] * ahead).T @ x)
    total.add("gram", 0, (n[:, None] * x).T @ x)
    total.add("e", 0, (probability * n) @ x)
    total.add("ended", 0, (probability * rows.terminated * n) @ x)
    first = rows.take(rows.start)
    begin = first.times @ under(design, request.reference, first) if len(first) else np.zeros(design.size)
    for name, found in {"start": begin, "starts": first.times.sum(), "n": n.sum(), "capped": capped.sum()}.items():
        total.add(name, 0, found)


@accumulate.register
def _(request: ChainSums, total, rows, fold):
    phi, n = phi_of(request.features, rows), rows.times
    ahead = phi_of(request.features, rows, following=True)
    gap = n[:, None] * phi - (request.gamma * n * ~rows.terminated)[:, None] * ahead
    by_row = np.stack([n * rows.reward, n, n * rows.terminated, n * rows.start])
    whose = [rows.logger == label for label in request.labels] or [np.ones(len(rows), dtype=bool)]
    for k, mine in enumerate(whose):
        total.add(f"gap{k}", 0, phi[mine].T @ gap[mine])
        total.add(f"by row{k}", 0, by_row[:, mine] @ phi[mine])
        total.add(f"size{k}", 0, by_row[:, mine].sum(axis=1))


def moments_of(request, pieces):
    """The moments of some batches."""
    total = Moments(belongs_to=type(request).__name__)
    for piece in pieces:
        accumulate(request, total, piece.rows, piece.fold)
        total.n_rows += len(piece)
    return total
