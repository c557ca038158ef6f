"""Reliability: do actions to which a probability p is given happen with the frequency p?

    counts      the known policies of the loggers, or the propensities that they recorded, over (logger, state, action)
    features    the classifier of the actions, over the rows by which fits are judged and all actions

A behaviour that is counted fits by construction, and has no picture. As in the check of the behaviour
(:mod:`mixope.checks.known_policies`), a choice enters that is expected to happen, and not to happen, at
least five times: nobody recorded the propensity of an action that was not taken. Of n choices of probability p, chance
moves the frequency by √(p(1 − p)/n).
"""

from __future__ import annotations

import numpy as np

from mixope.answers.pictures.records import Reliability, ReliabilityBin
from mixope.base.arrays import FloatArray, sum_by
from mixope.behaviours.classifier import FittedClassifier
from mixope.checks.known_policies import LEAST
from mixope.estimators.features.problem import FeatureProblem, SampledRows
from mixope.policies.protocol import Policy
from mixope.requests.problem import Problem, pair_probabilities
from mixope.requests.transitions import Transitions, restrict

BINS = 10
MOST_CHOICES = 2_000_000
"""Rows times actions that are looked at."""
ROUNDING = 1e-9
"""A probability that lies on the edge of two bins belongs to the upper one, whatever sums leave of it."""
Choices = tuple[FloatArray, FloatArray, FloatArray]
"""p, how often it could have been, how often it was."""


def reliability(problem: Problem | FeatureProblem) -> Reliability | None:
    """Of what is known of the loggers, or was fitted to them; None where there is nothing to be held against."""
    return problem.either(lambda counted: counted.once(_on_counts), _on_features)


def _on_features(problem: FeatureProblem) -> Reliability | None:
    return problem.known.once(("reliability",), lambda: _of_classifier(problem.known))


def _on_counts(problem: Problem) -> Reliability | None:
    rows = problem.logged
    known = [(rows.loggers.index(name), law) for name, law in problem.loggers.items() if name in rows.loggers]
    if known:
        return _binned("the known policies of the loggers", [_of_policy(rows, j, law) for j, law in known])
    if rows.inverse is None or rows.inverse_squared is None:
        return None
    return _binned("the recorded propensities", [_of_recorded(rows, j) for j in range(len(rows.loggers))])


def _of_policy(rows: Transitions, number: int, policy: Policy) -> Choices:
    """A policy is asked about the states where its logger was, and no others: it need not know them."""
    here = sum_by(rows.state, rows.rows * (rows.logger == number), rows.n_states) > 0
    there = restrict(rows, np.flatnonzero(here[rows.state]))
    return _expected(there, number, pair_probabilities(policy, there, f"logger {rows.loggers[number]!r}"))


def _of_recorded(rows: Transitions, number: int) -> Choices:
    """p̄ = Σ 1/p / Σ 1/p² of every pair: recorded propensities may differ from row to row."""
    assert rows.inverse is not None
    assert rows.inverse_squared is not None
    mine = np.flatnonzero(rows.logger == number)
    inverse, squared = (
        sum_by(rows.pair[mine], each[mine], rows.n_pairs) for each in (rows.inverse, rows.inverse_squared)
    )
    known = np.isfinite(squared) & (squared > 0)
    return _expected(rows, number, np.divide(inverse, squared, out=np.zeros(rows.n_pairs), where=known))


def _expected(rows: Transitions, number: int, law: FloatArray) -> Choices:
    """The pairs that this logger should choose, and should not choose, at least a few times."""
    taken = sum_by(rows.pair, rows.rows * (rows.logger == number), rows.n_pairs)
    visits = sum_by(rows.pair_state, taken, rows.n_states)[rows.pair_state]
    judged = np.minimum(visits * law, visits * (1 - law)) >= LEAST
    return law[judged], visits[judged], taken[judged]


def _of_classifier(known: SampledRows) -> Reliability | None:
    """Of the pooled classifier that the run has fitted already."""
    fitted = [found for key, found in known.fits.values() if _pools(key, known.labels)]
    law = next((found.law for found in fitted if isinstance(found, FittedClassifier)), None)
    if law is None:
        return None
    judges = known.judges
    rows = judges.take(np.arange(min(len(judges), max(MOST_CHOICES // len(law.classes), 1))))
    predicted = law.probs(rows)
    taken = rows.action[:, None] == law.classes[None, :]
    times = np.broadcast_to(rows.times[:, None], predicted.shape)
    return _binned("the fitted behaviour", [(predicted.ravel(), times.ravel(), (times * taken).ravel())])


def _pools(key: object, labels: tuple[str, ...]) -> bool:
    """Whether this is the key of a behaviour that was fitted to the rows of all loggers."""
    if not (isinstance(key, tuple) and len(key) == 3 and key[0] == "behaviour"):
        return False
    return [name for name, weight in key[2] if weight > 0] == list(labels)


def _binned(of: str, found: list[Choices]) -> Reliability | None:
    """Ten bins of equal width; those that hold anything."""
    p, times, taken = (np.concatenate(parts) for parts in zip(*found, strict=True))
    place = np.minimum((p * BINS + ROUNDING).astype(np.int64), BINS - 1)
    n, mean, seen, variance = (sum_by(place, v, BINS) for v in (times, times * p, taken, times * p * (1 - p)))
    filled = np.flatnonzero(n > 0).tolist()
    bins = tuple(
        ReliabilityBin(float(mean[k] / n[k]), float(seen[k] / n[k]), float(np.sqrt(variance[k]) / n[k]), float(n[k]))
        for k in filled
    )
    return Reliability(of, bins) if bins else None
