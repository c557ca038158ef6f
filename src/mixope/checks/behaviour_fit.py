"""Does what stands for the behaviour fit the logged actions, and if it does not, does that matter to the value?

A misfit in standard deviations grows with the rows: in a million of them the second digit of a rounded propensity
shows, and the number says nothing of the value. So it only raises the question. The answer is how far the value moves,
in half-widths of its interval:

    counts            to the value with the actions as they are counted in the rows
    fitted, vectors   of a plain ratio, to the value that the value model corrects it to. A doubly robust value is right
                      if its ratio is right or its value model is, so that the one that agrees with it better counts
    episodes          weights of whole episodes, to those that are fitted to the rows

What was given and is divided by on vectors should be exact, and the value model knows of no other: there misfits of a
few thousand rows decide, whose number does not grow.

An estimator that estimates the behaviour rests on no recorded propensity. Where the column does not fit, either it
belongs to another version, and the value stands; or the names of actions were mixed up, and the value is wrong: a
warning where they are off by more than roundings are, and never more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixope.base.errors import MixopeError
from mixope.behaviours import Behaviour, CountedMixture, KnownMixture
from mixope.behaviours.propensities import SUSPECT
from mixope.checks.check import BEHAVIOUR, Check
from mixope.checks.evidence import Evidence
from mixope.checks.known_policies import misfit_of_policies, misfit_of_propensities
from mixope.checks.verdicts import Diagnostic
from mixope.estimators.state_ratio import solve_on_counts

WARN, FAIL = SUSPECT, 25.0
"""Standard deviations: the first raises the question, the second is for values that nothing can be held against."""
ON_FEATURES = 20.0, 200.0
"""The same where tests are of features, which overlap and are not independent."""
MOVED, LOST = 0.25, 1.0
"""Half-widths by which the value may move before it is doubted, and before it is refused."""
GROSS, ROUNDED = 0.1, 0.03
"""Relative errors of a typical probability: above the first something is mixed up whatever the value makes of it, below
the second it may be a rounding."""
_UNUSED = "The value does not rest on them: it stands if the column is wrong, and not if the names of actions are"
_OTHER = "they may belong to another policy, or the names of actions may be mixed up"
_MIXED = "labels, policies or the names of actions may be mixed up"


@dataclass(frozen=True)
class Misfit:
    """What does not fit, by how many standard deviations, where that starts to be strange and where it is hopeless."""

    deviations: float
    what: str
    limits: tuple[float, float] = (WARN, FAIL)
    cause: str = ""
    used: bool = True
    """Whether the value rests on it, or whoever gave it said that it is so."""
    share: float = 0.0
    """About the relative error of a typical probability, where it is known."""
    by: Behaviour | None = None
    """What stands for it where the estimator does not divide by it, to see what it would do to the value."""

    @property
    def strange(self) -> bool:
        """Whether it is more than chance."""
        return self.deviations > self.limits[0]


def behaviour_fit(evidence: Evidence) -> Diagnostic | None:
    """The misfit that is farthest beyond its limit; None where nothing was fitted, recorded or given."""
    found = [*_divided_by(evidence), *_beside(evidence)]
    if not found:
        return None
    worst = max(found, key=lambda misfit: misfit.deviations / misfit.limits[0])
    share = max(misfit.share for misfit in found if misfit.used or misfit is worst)
    return _judged(replace(worst, share=share), evidence)


def _divided_by(evidence: Evidence) -> list[Misfit]:
    """Of the probabilities that the estimator divides by: Σ(ρ − 1), and the actions themselves."""
    measures, given = evidence.measures, evidence.solution.given
    cause = _OTHER if given else "a model of the logged actions misses something of them"
    found = []
    if measures.behaviour_misfit is not None:
        limits = ON_FEATURES if evidence.on_features else (WARN, FAIL)
        if measures.recorded_misfit is not None and measures.recorded_misfit <= SUSPECT:
            limits = ON_FEATURES[1], np.inf  # in a few thousand rows nothing is wrong
        found.append(Misfit(measures.behaviour_misfit, "the behaviour's probabilities", limits, cause))
    if measures.recorded_misfit is not None:
        what = "the recorded propensities" if given == "propensities" else "the loggers' known policies"
        found.append(Misfit(measures.recorded_misfit, what, cause=_OTHER))
    return found


def _beside(evidence: Evidence) -> list[Misfit]:
    """Of policies and propensities that were given on counts, against the actions themselves.

    A ratio of its own does not tell the target's probabilities from the loggers': it is 1 then in every row.
    """
    problem, measures, given = evidence.counted, evidence.measures, evidence.solution.given
    if problem is None or (measures.behaviour_misfit is not None and given is None):
        return []
    policies, recorded = problem.once(misfit_of_policies), problem.once(misfit_of_propensities)
    found = []
    if policies is not None:
        what = "the loggers' known policies"
        found.append(Misfit(policies.deviations, what, cause=_MIXED, share=policies.share, by=KnownMixture()))
    if recorded is not None:
        what, used = "the recorded propensities", given == "propensities"
        found.append(Misfit(recorded.deviations, what, cause=_MIXED, used=used, share=recorded.share))
    return found


def _judged(misfit: Misfit, evidence: Evidence) -> Diagnostic:
    off = f"{misfit.deviations:.1f} standard deviations"
    if not misfit.strange:
        words = f"{misfit.what} fit the actions that were logged ({off})"
        return FIT.graded(misfit.deviations, *misfit.limits, words)
    said = f"{misfit.what} do not fit the actions that were logged, by {off}"
    if not misfit.used:
        return _column(misfit, said)
    moved = _half_widths(misfit, evidence)
    if moved is None:
        return FIT.graded(misfit.deviations, *misfit.limits, f"{said}; {misfit.cause}")
    if moved <= MOVED and misfit.share > GROSS:
        return FIT.diagnostic(misfit.deviations, misfit.limits[0], "warn", f"{said}; {misfit.cause}")
    if moved <= MOVED:
        said += f", but that moves the value by {moved:.2g} of the half-width of its interval only"
    else:
        said += f"; divided by others, the value would move by {moved:.2g} half-widths of its interval; {misfit.cause}"
    return FIT.graded(moved, MOVED, LOST, said)


def _column(misfit: Misfit, said: str) -> Diagnostic:
    """Of what the value does not rest on."""
    if misfit.share <= ROUNDED:
        said += f", but are off by {misfit.share:.1%} only, as roundings are; the value does not rest on them"
    else:
        said += f"; {misfit.cause}. {_UNUSED}"
    return FIT.graded(misfit.share, ROUNDED, np.inf, said)


def _half_widths(misfit: Misfit, evidence: Evidence) -> float | None:
    """How far the value moves where the behaviour is had in another way, in half-widths; None where nobody knows."""
    interval = evidence.interval
    if interval is None or not interval.width > 0:
        return None
    try:
        moved = _moved(misfit, evidence)
    except MixopeError:  # there is no value to hold it against
        return None
    if moved is None:
        return None
    return 0.0 if evidence.is_rounding(moved) else moved / (interval.width / 2)


def _moved(misfit: Misfit, evidence: Evidence) -> float | None:
    value, measures, solution, problem = evidence.value, evidence.measures, evidence.solution, evidence.counted
    if solution.otherwise is not None:
        return abs(value - solution.otherwise())
    if problem is not None and misfit.by is not None:
        return abs(solve_on_counts(problem, CountedMixture()).value - solve_on_counts(problem, misfit.by).value)
    if solution.given:
        return None
    if measures.corrected is not None:
        return abs(value - measures.corrected)
    if measures.uncorrected is not None and measures.plug_in is not None:
        return min(abs(value - measures.uncorrected), abs(value - measures.plug_in))
    return None


FIT = Check(
    "behaviour fit",
    "data",
    BEHAVIOUR,
    "use 'emp' or 'dr', which estimate the behaviour; find the version of the policy that the propensities belong to,"
    " and look whether actions have the same names throughout",
    behaviour_fit,
)
