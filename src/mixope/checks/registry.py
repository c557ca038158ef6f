"""All checks, in the order in which they judge. To add one: a file, a line here, a row in docs/verdicts.md.

Packages add theirs (:mod:`mixope.base.plugins`), which judge after ours.
"""

from __future__ import annotations

import warnings
from functools import cache

from mixope.base import plugins
from mixope.base.errors import MixopeWarning, UsageError
from mixope.checks import (
    absorbing,
    agreement,
    approximation,
    behaviour_fit,
    coverage,
    deciding,
    dropped,
    edge,
    ends,
    learning,
    logs,
    odd_rewards,
    order,
    remembered,
    repeats,
    replay,
    state,
    stationarity,
    steadiness,
    value,
    weights,
    width,
)
from mixope.checks.check import Check

CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        weights.SAMPLE_SIZE,
        coverage.UNCOVERED,
        coverage.ELSEWHERE,
        weights.LARGEST,
        weights.LEAKS,
        logs.EPISODES,
        stationarity.HELD_OUT,
        logs.NEXT,
        logs.MISSING,
        deciding.RARE_REWARDS,
        coverage.FAR_AWAY,
        weights.CUT_WEIGHTS,
        behaviour_fit.FIT,
        weights.MEAN,
        value.BIAS,
        value.INTERVAL,
        logs.REWARDS,
        value.RANGE,
        width.WIDTH,
        stationarity.SOLVER,
        dropped.DROPPED,
        ends.STOPPED,
        steadiness.WORLD,
        steadiness.REWARDS_OVER_STEPS,
        steadiness.BY_EPISODE,
        ends.AT_A_LIMIT,
        learning.LEARNED,
        odd_rewards.STATES,
        odd_rewards.SENTINELS,
        odd_rewards.LIMIT,
        odd_rewards.DOMINANT_ROWS,
        agreement.LOGGERS,
        ends.OUTLASTING,
        agreement.EPISODES,
        ends.OVER_STEPS,
        ends.AT_CUTS,
        order.IN_STEP,
        order.OF_OTHERS,
        order.STATES,
        repeats.REPEATED,
        steadiness.VALUE_OVER_EPISODES,
        steadiness.VALUE_OVER_LOGGERS,
        steadiness.VALUE_OVER_STEPS,
        replay.REPLAY,
        replay.BY_LOGGER,
        replay.LATER_STEPS,
        replay.LATER_EPISODES,
        state.MARKOV,
        remembered.LONGER,
        absorbing.ABSORBING,
        deciding.DECIDING,
        deciding.RARE_ENDS,
        coverage.BIAS,
        edge.EDGE,
        approximation.APPROXIMATION,
        approximation.CORRECTION,
    )
}
"""The checks of an estimate and of the logs behind it."""
plugins.reserve("checks", CHECKS)


def judges() -> dict[str, Check]:
    """These, and those of packages that are installed: all that judge an estimate and the logs behind it."""
    return {**CHECKS, **_added()}


def checks() -> dict[str, Check]:
    """These, and those that are made where more is known (:data:`mixope.base.plugins.WINGS`)."""
    return {**judges(), **{name: plugins.load("checks", name) for name in plugins.WINGS["checks"]}}


@cache
def _added() -> dict[str, Check]:
    """The checks of other packages; one that cannot be used is left out, with a warning."""
    found = {}
    for name, point in plugins.added("checks").items():
        try:
            check = plugins.load("checks", name)
            if not isinstance(check, Check) or check.name != name:
                raise UsageError(
                    f"{name!r} of {plugins.package_of(point)} is no Check of that name. Update that package."
                )
            found[name] = check
        except UsageError as error:
            warnings.warn(f"{error} The check is left out", MixopeWarning, stacklevel=2)
    return found
