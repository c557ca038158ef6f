"""More than the mean: the distribution of what an episode of the target returns, its quantiles and its worst share.

Each logged episode e has a return Y_e and a weight w_e, Σ w = 1 (:mod:`mixope.estimators.whole_returns`):

    F(y) = Σ w_e 1{Y_e ≤ y}        q_α: the smallest y with F(y) ≥ α        CVaR_α = q_α − Σ w_e (q_α − Y_e)⁺ / α

the mean of the worst share α of episodes (Chandak and others, "Universal off-policy evaluation", 2021, for the
distribution; Rockafellar and Uryasev 2000 for the second form). Scores by episode, of which intervals are made:

    mean   w (Y − m)        CVaR   w (q − (q − Y)⁺/α − CVaR)        F(y)   w (1{Y ≤ y} − F(y))

The interval of a quantile is that of F at it, turned round (Woodruff). Weights of whole episodes vanish exponentially
with their length, and the tail rests on a share of them only: the verdict counts the episodes behind the tail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mixope.answers.answering import answer
from mixope.answers.estimate import Estimate
from mixope.base.arrays import FloatArray, is_number
from mixope.base.errors import Advice, DataError, Setting, UsageError
from mixope.base.estimand import Estimand, Kind
from mixope.base.keywords import offers_names
from mixope.base.rendering import Record, Rows
from mixope.checks import Check, Diagnostic, Verdict, verdict
from mixope.checks.check import FAR
from mixope.engines import Engine
from mixope.estimators.trajectory import weighted
from mixope.estimators.whole_returns import episode_returns, episode_weights
from mixope.logs import LogSource
from mixope.policies import PolicySource
from mixope.session.questions import as_estimand, check_level
from mixope.session.session import Session, look
from mixope.uncertainty import Interval, clustered_interval, degrees_of_freedom, quantile, standard_error

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_POINTS = 200
"""Of the distribution, as it is kept."""
WARN, FAIL = 20.0, 5.0
"""Effective episodes behind the tail."""
TAIL = Check(
    "episodes in the tail",
    "weights",
    FAR,
    "a larger share (alpha), more episodes, a nearer target",
)


@dataclass(frozen=True)
class Amount:
    """One number of a distribution: the mean, a quantile, the mean of the worst share."""

    name: str
    value: float
    standard_error: float | None
    interval: Interval | None

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        low, high = (self.interval.low, self.interval.high) if self.interval else (None, None)
        return {"amount": self.name, "value": self.value, "low": low, "high": high}


@dataclass(frozen=True)
class Point:
    """The share of episodes that return at most so much."""

    value: float
    share: float


@dataclass(frozen=True)
class TargetReturns:
    """The distribution of one target's returns."""

    target: str
    mean: Amount
    tail: Amount
    quantiles: tuple[Amount, ...]
    distribution: tuple[Point, ...]
    effective_episodes: float
    verdict: Verdict
    checks: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Returns(Record):
    """Returns of all targets; ``alpha`` is the worst share of episodes that the tail is the mean of.

    ``refused`` has the targets that no logged episode speaks of, each with the reason.
    """

    estimand: Estimand
    alpha: float
    level: float
    n_episodes: int
    targets: tuple[TargetReturns, ...]
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def main(self) -> TargetReturns:
        """The first target."""
        return self.targets[0]

    def __getitem__(self, target: str) -> TargetReturns:
        return next(found for found in self.targets if found.target == target)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        estimand = {name: value for name, value in asdict(self.estimand).items() if value is not None}
        refused = [{"target": name, "reason": reason} for name, reason in self.refused]
        return self._written({**asdict(self), "estimand": estimand, "unit": self.estimand.unit, "refused": refused})

    @classmethod
    def fields_of_json(cls, written: Mapping[str, Any]) -> dict[str, Any]:
        """The fields; a refusal is written as an object."""
        refused = written.get("refused", [])
        pairs = [[found.get("target"), found.get("reason")] for found in refused if isinstance(found, Mapping)]
        return {**written, "refused": pairs if isinstance(refused, list) and len(pairs) == len(refused) else refused}

    def tables(self) -> Mapping[str, Rows]:
        """One row per amount; the distributions; the checks."""
        every = [(found, {"target": found.target}) for found in self.targets]
        return {
            "amounts": [{**key, **a.row()} for found, key in every for a in (found.mean, found.tail, *found.quantiles)],
            "distribution": [{**key, **asdict(point)} for found, key in every for point in found.distribution],
            "checks": [{**key, **check.row()} for found, key in every for check in found.checks],
        }


@offers_names
def returns(
    logs: LogSource,
    target: PolicySource | Mapping[str, PolicySource],
    *,
    alpha: float = 0.1,
    estimand: Kind | Estimand = "episode",
    gamma: float | None = None,
    horizon: int | None = None,
    level: float = 0.95,
    loggers: Mapping[str, PolicySource] | None = None,
    engine: str | Engine | None = None,
    seed: int = 0,
) -> Returns:
    """How the returns of a target's episodes are spread, and what the worst of them return.

    :param logs: whatever :func:`mixope.read` takes, or what it gave; episodes should be short, or the target like the
        loggers, because whole episodes are weighed.
    :param target: a policy, or a mapping of names to policies: their risks are then drawn against their means. (A
        policy that is itself a dict of columns is given by name.)
    :param alpha: the share of the worst episodes whose mean is the tail (CVaR, expected shortfall).
    :param estimand: ``"episode"`` (its total until the end), ``"horizon"`` (per step, of the first ``horizon``) or
        ``"discounted"`` (with ``gamma``).

    All other arguments are those of :func:`mixope.evaluate`.

    >>> found = mixope.returns("logs/*.parquet", {"new": "new.csv", "old": "old.csv"}, alpha=0.05)
    >>> found["new"].tail.value
    -3.1
    """
    check_level(level)
    check_share(alpha, "alpha")
    asked = as_estimand("average" if horizon is not None and estimand == "episode" else estimand, gamma, horizon)
    targets = dict(target) if isinstance(target, Mapping) and target else {"target": target}
    return spread(look(logs, engine, None, seed), targets, asked, alpha, level=level, loggers=loggers, seed=seed)


def check_share(alpha: float, name: str) -> None:
    """A share of the worst episodes."""
    if not is_number(alpha) or not 0.0 < alpha < 1.0:
        raise UsageError(f"{name} is the share of the worst episodes, between 0 and 1, such as 0.1; got {alpha!r}")


def spread(
    session: Session,
    targets: Mapping[str, PolicySource],
    estimand: Estimand,
    alpha: float,
    *,
    level: float = 0.95,
    loggers: Mapping[str, PolicySource] | None = None,
    seed: int = 0,
) -> Returns:
    """The distributions of all targets that some logged episode speaks of; where it speaks of none, an error."""
    if estimand.kind == "average":
        said = "a long-run average has no distribution over episodes: ask for "
        raise UsageError(Advice(said, Setting("estimand", "episode"), " or ", Setting("horizon", 10)))
    helpers = (episode_weights(), episode_returns(), weighted())
    found = answer(session, targets, helpers, estimand=estimand, level=level, loggers=loggers, seed=seed, units=False)
    made, refused = [], []
    for name in targets:
        weights, earned, mean = (e for e in found if e.target == name)
        if weights.scores is None or earned.scores is None or not weights.scores.any():
            refused.append(name)
        else:
            made.append(_of_target(mean, weights.scores, earned.scores, alpha, level))
    if not made:
        raise _vanished(refused[0], found[0].n_episodes)
    reasons = tuple((name, NO_EPISODE) for name in refused)
    return Returns(estimand, float(alpha), level, found[0].n_episodes, tuple(made), reasons)


NO_EPISODE = Advice(
    "no logged episode is one that it could have had, so that all weights vanish; a shorter stretch can do: ",
    Setting("horizon"),
)


def _vanished(name: str, episodes: int) -> DataError:
    return DataError(
        f"No logged episode is one that {name!r} could have had: all weights vanish",
        expected="episodes in which the target could have taken every logged action",
        got=f"{episodes:,} episodes with weight 0",
        hint=Advice("episodes are too long for weights of whole ones; a shorter stretch can do: ", Setting("horizon")),
    )


def _of_target(mean: Estimate, w: FloatArray, y: FloatArray, alpha: float, level: float) -> TargetReturns:
    """The distribution from weights and returns by episode; the checks are those of the mean, and one of the tail."""
    tail, q = _tail(w, y, alpha, level)
    size = _effective(w * (y <= q))
    said = f"the worst {alpha:.3g} of the target's episodes rest on {size:,.1f} effective episodes of the logs"
    checks = (TAIL.graded(size, WARN, FAIL, said, high_is_bad=False), *mean.diagnostics)
    return TargetReturns(
        target=mean.target,
        mean=_amount("mean", float(w @ y), w * (y - w @ y), level),
        tail=tail,
        quantiles=tuple(_quantile(w, y, share, level) for share in QUANTILES),
        distribution=_distribution(w, y),
        effective_episodes=_effective(w),
        verdict=verdict(checks),
        checks=checks,
    )


def _amount(name: str, value: float, scores: FloatArray, level: float) -> Amount:
    return Amount(name, value, standard_error(scores), clustered_interval(value, scores, level))


def _tail(w: FloatArray, y: FloatArray, alpha: float, level: float) -> tuple[Amount, float]:
    """The mean of the worst share, and the quantile below which they lie."""
    q = weighted_quantile(w, y, alpha)
    short = q - np.maximum(q - y, 0.0) / alpha
    value = float(w @ short)
    return _amount(f"mean of the worst {alpha:.3g}", value, w * (short - value), level), q


def _quantile(w: FloatArray, y: FloatArray, share: float, level: float) -> Amount:
    """With the interval of the share of episodes at it, turned round; it has no standard error of its own."""
    q = weighted_quantile(w, y, share)
    below = (y <= q).astype(np.float64)
    scores = w * (below - w @ below)
    reach = quantile(level, degrees_of_freedom(scores)) * standard_error(scores)
    low, high = (weighted_quantile(w, y, min(max(share + side * reach, 0.0), 1.0)) for side in (-1, 1))
    return Amount(f"quantile {share:.3g}", q, None, Interval(low, high, level, "share of episodes, turned round"))


def weighted_quantile(w: FloatArray, y: FloatArray, share: float) -> float:
    """The smallest return that at least this share of the weight does not exceed."""
    order = np.argsort(y, kind="stable")
    order = order[w[order] > 0]
    reached = np.searchsorted(np.cumsum(w[order]), share - 1e-12)
    return float(y[order[min(int(reached), len(order) - 1)]])


def _effective(w: FloatArray) -> float:
    """(Σ w)² / Σ w²."""
    squares = float(np.sum(w**2))
    return float(w.sum()) ** 2 / squares if squares > 0 else 0.0


def _distribution(w: FloatArray, y: FloatArray) -> tuple[Point, ...]:
    """F at the returns that were seen, or at evenly spread ones of very many."""
    values, place = np.unique(y[w > 0], return_inverse=True)
    share = np.cumsum(np.bincount(place.ravel(), w[w > 0]))
    chosen = np.unique(np.linspace(0, len(values) - 1, min(MOST_POINTS, len(values))).round().astype(np.int64))
    return tuple(Point(float(values[k]), float(min(share[k], 1.0))) for k in chosen)
