"""What arms really earn, and what a test of some days is expected to say: by linear algebra, without simulation.

An arm, or a mixture w over arms that is drawn anew each day, makes one chain of the users:

    P(s, s′) = Σ_a w(a) P(s′ | a, s)        m(s) = Σ_a w(a) m(a, s)

    average     Σ_g share(g) Σ_s d_g(s) m(s)        d_g the stationary law of group g (plans never mix)
    discounted  (1 − γ) μ₀ (I − γ P)⁻¹ m            from the law μ₀ of users who enter on a Monday
    horizon     the mean of the first T days        μ₀ Pᵗ m on day t

The naive difference of a test is the mean of all rows of the treatment less that of all rows of the control. How many
rows of which day each has is fixed by the design, so its expectation is a sum of μ Pᵗ m as well. A treated user who is
not exposed on a day lives that day as under control: exposure e makes the mixture (1 − e, e) of a treatment.

Who is away earns nothing and has no row: the rows are then those that are expected, and what is said of the naive
difference is its limit for many users.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from mixope.base.arrays import FloatArray, is_number
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.worlds.engagement.designs import Choices, Design, check_exposure, check_whole
from mixope.worlds.engagement.settings import world_of
from mixope.worlds.engagement.world import TOLERANCE, World
from mixope.worlds.truth import PolicyChain, solve_chain

Law = str | Mapping[str, float]
"""An arm, or the probability of each arm on each day."""


def value(
    world: World | str,
    arm: Law,
    estimand: Estimand | None = None,
    *,
    metric: str = "revenue",
    exposure: float = 1.0,
    where: Mapping[str, Any] | None = None,
) -> float:
    """What an arm earns per user and day: the long-run average, or another estimand.

    ``where`` asks about the users who enter with these values of state columns (``{"plan": "paid"}``).
    """
    world, estimand = world_of(world), estimand or Estimand()
    P, m = _chain(world, arm, metric, exposure)
    start = _start(world, where or {})
    if estimand.kind == "average":
        return _average(P, m, start)
    if estimand.horizon is not None:
        return float((_laws(P, start, estimand.horizon) @ m).mean())
    if estimand.kind == "episode":
        raise UsageError("users have no end, so that there is no total; ask for the average, or for a discounted value")
    gamma = estimand.discount
    return float((1 - gamma) * (start @ np.linalg.solve(np.eye(len(m)) - gamma * P, m)))


def effect(
    world: World | str,
    estimand: Estimand | None = None,
    *,
    treatment: Law = "B",
    control: Law = "A",
    metric: str = "revenue",
    exposure: float = 1.0,
    where: Mapping[str, Any] | None = None,
) -> float:
    """The value of the treatment less that of the control."""
    world = world_of(world)
    treated = value(world, treatment, estimand, metric=metric, exposure=exposure, where=where)
    return treated - value(world, control, estimand, metric=metric, exposure=exposure, where=where)


def by_day(
    world: World | str,
    arm: Law,
    days: int,
    *,
    metric: str = "revenue",
    exposure: float = 1.0,
    where: Mapping[str, Any] | None = None,
) -> FloatArray:
    """The expected metric on each day after users enter, day 0 first, shape (days,)."""
    world = world_of(world)
    check_whole("days", days, 1)
    P, m = _chain(world, arm, metric, exposure)
    return np.asarray(_laws(P, _start(world, where or {}), days) @ m)


def naive(
    world: World | str,
    users: int = 1000,
    days: int = 14,
    *,
    treatment: str = "B",
    control: str = "A",
    metric: str = "revenue",
    **choices: Unpack[Choices],
) -> float:
    """The expectation of the naive difference of a test that is drawn with this design."""
    return expected_difference(world_of(world), Design(users, days, **choices), treatment, control, metric)


def expected_difference(world: World, design: Design, treatment: str, control: str, metric: str) -> float:
    """The same for a design as a record."""
    asked = [design.arm(name) for name in (treatment, control)]
    total, rows = _expected_rows(world, design, metric)
    empty = [design.arms[a] for a in asked if not rows[a]]
    if empty:
        raise UsageError(f"this test has no row of arm {empty[0]}, so that there is no naive difference")
    treated, kept = (float(total[a] / rows[a]) for a in asked)
    return treated - kept


def apparent(world: World | str, arm: str, days: int = 14, *, metric: str = "revenue", exposure: float = 1.0) -> float:
    """The long-run average that follows from the recorded columns alone, if there is no end of users in the test.

    The chain of the recorded columns z, as it is counted in tests of so many days: P(z, z′) and m(z) are the means of
    P and m over the states behind z, weighed by the expected visits. Where these columns are a Markov state, this is
    :func:`value`; how far it is from there says how much a hidden column matters.
    """
    world = world_of(world)
    check_whole("days", days, 1)
    P, m = _chain(world, arm, metric, exposure)
    visits = _laws(P, _start(world, {}), days).sum(axis=0)
    shown = _shown(world)
    seen = visits @ shown > 0
    behind = (visits[:, None] * shown)[:, seen] / (visits @ shown)[seen]
    moves = behind.T @ P @ shown
    if moves[:, ~seen].any():
        raise UsageError(f"tests of {days} days do not see all that may follow; ask for more days")
    return _average(moves[:, seen], behind.T @ m, (_start(world, {}) @ shown)[seen])


def _chain(world: World, arm: Law, metric: str, exposure: float) -> tuple[FloatArray, FloatArray]:
    """The moves P and the means m of the users under an arm or a mixture."""
    law = mixture(world, arm)
    moves, means = _of_arms(world.transition, exposure), _of_arms(world.metric(metric).mean, exposure)
    return np.tensordot(law, moves, 1), law @ means


def _shown(world: World) -> FloatArray:
    """1 where a state shows a combination of the recorded columns, shape (S, combinations); a missing row shows too."""
    codes = [np.unique(column, return_inverse=True)[1] for column in world.recorded.values()]
    combined = np.stack([world.here.astype(np.int64), *codes])
    kinds, kind = np.unique(combined, axis=1, return_inverse=True)
    return np.eye(kinds.shape[1])[kind.ravel()]


def mixture(world: World, arm: Law) -> FloatArray:
    """The probability of each arm of the world on a day, shape (arms,)."""
    law = np.zeros(len(world.arms))
    for name, weight in ({arm: 1.0} if isinstance(arm, str) else arm).items():
        if not is_number(weight) or not weight >= 0:
            raise UsageError(f"expected a probability for each arm of a mixture, got {weight!r} for {name!r}")
        law[world.arm(name)] = weight
    if abs(law.sum() - 1) > TOLERANCE:
        raise UsageError(f"the probabilities of a mixture sum to 1, got {law.sum():g}")
    return law


def _start(world: World, where: Mapping[str, Any]) -> FloatArray:
    inside = world.start[0] * world.among(where)
    if not inside.any():
        raise UsageError(f"no user enters with {', '.join(f'{name} = {value!r}' for name, value in where.items())}")
    return np.asarray(inside / inside.sum())


def _laws(P: FloatArray, start: FloatArray, days: int) -> FloatArray:
    """The law of states on each day, shape (days, S)."""
    laws = [start]
    for _ in range(days - 1):
        laws.append(laws[-1] @ P)
    return np.stack(laws)


def _average(P: FloatArray, m: FloatArray, start: FloatArray) -> float:
    """The long run of each part of the users that the rest never mixes with, by its share."""
    matrix = sparse.csr_array(P)
    _, part = csgraph.connected_components(matrix, directed=True, connection="weak")
    shares = np.bincount(part, weights=start)
    chains = {k: PolicyChain(matrix, m, np.where(part == k, start, 0.0) / shares[k]) for k in np.flatnonzero(shares)}
    return float(sum(shares[k] * solve_chain(chain).average for k, chain in chains.items()))


def _expected_rows(world: World, design: Design, metric: str) -> tuple[FloatArray, FloatArray]:
    """The expected sum of a metric over the rows of each arm of a design, and how many rows these are."""
    arms = [world.arm(name) for name in design.arms]
    P, m = _of_arms(world.transition, design.exposure)[arms], _of_arms(world.metric(metric).mean, design.exposure)[arms]
    entry, path, users = design.schedules()
    law = world.start[entry % len(world.start)]
    total, rows = np.zeros(len(arms)), np.zeros(len(arms))
    for day in range(design.days):
        for a in range(len(arms)):
            here = (path[:, day] == a) & (entry <= day)
            total[a] += users[here] @ (law[here] @ m[a])
            rows[a] += users[here] @ (law[here] @ world.here)
            law[here] = law[here] @ P[a]
    return total, rows


def _of_arms(of_world: FloatArray, exposure: float) -> FloatArray:
    """What holds for each arm if it reaches users with that probability; the rest live as under control."""
    check_exposure(exposure)
    return np.asarray(exposure * of_world + (1 - exposure) * of_world[:1])
