"""The checks of one estimate: each goes from evidence to a value, a threshold, a status and a sentence.

Most have one shape, a number that should not be too high (or too low), and stand in the table :data:`GRADED`; why the
thresholds are what they are is in docs/trust.md. The verdict is the worst of all: any failure means that the logs do
not support an answer, any warning asks for caution. All checks, also those of the logs themselves, are in one list:
:data:`mixope.checks.CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixope.base.errors import Advice
from mixope.checks.coverage import gap_limits, gap_reach
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic, graded


@dataclass(frozen=True)
class Check:
    """A line of the table: what is measured (None where it does not apply), where it warns and fails, what it says."""

    name: str
    measure: Callable[[Evidence], float | None]
    limits: Callable[[Evidence], tuple[float, float]]
    sentence: Callable[[Evidence], str]
    high_is_bad: bool = True

    def __call__(self, evidence: Evidence) -> Diagnostic | None:
        """Judge the evidence."""
        value = self.measure(evidence)
        if value is None:
            return None
        return graded(self.name, value, *self.limits(evidence), self.sentence(evidence), high_is_bad=self.high_is_bad)


def _fixed(warn: float, fail: float) -> Callable[[Evidence], tuple[float, float]]:
    return lambda evidence: (warn, fail)


def _besides_uncovered(evidence: Evidence) -> str:
    """What is known of a gap besides its size."""
    if evidence.solution.corrects_coverage:
        return " (the value model on the factors corrects for it as far as they tell)"
    reach = gap_reach(evidence)
    if reach is None:
        return ""
    return f"; by the actions that were logged once, a gap like this moves the value by {reach:.2g} half-widths"


def _unit_of_weight(evidence: Evidence) -> str:
    return "row" if evidence.measures.effective_episodes is None else "episode"


def _few_rare(evidence: Evidence) -> bool:
    return (evidence.measures.rare_rewards or 0.0) < 30


def _episodes_behind(evidence: Evidence) -> str:
    n, blocks = evidence.n_clusters, evidence.uncertainty.n_blocks
    what = "unit" if evidence.clusters is not None and evidence.clusters.named else "episode"
    said = f"1 {what} stands behind the interval" if n == 1 else f"{n:,} {what}s stand behind the interval"
    cut = "" if blocks is None else f", cut into {blocks} blocks of steps"
    return said + cut + ("; fewer than 20 make it unreliable" if n < 20 else "")


GRADED: tuple[Check, ...] = (
    Check(
        "effective sample size",  # how many rows of the target's own; a plug-in value weighs nothing
        lambda f: f.effective_sample_size,
        _fixed(100, 10),
        lambda f: (
            f"the weighted logs are worth {f.effective_sample_size or 0.0:,.0f} of {f.survey.n_rows:,} rows"
            f" ({(f.effective_sample_size or 0.0) / max(f.survey.n_rows, 1):.1%})"
        ),
        high_is_bad=False,
    ),
    Check(
        "uncovered mass",  # target probability on actions never logged where it would be; vectors are not counted
        lambda f: None if f.on_features else f.solution.uncovered_mass,
        gap_limits,
        lambda f: (
            f"{f.solution.uncovered_mass:.2%} of the target's steps are actions never logged in their state"
            + _besides_uncovered(f)
        ),
    ),
    Check(
        "mass outside",  # of the target, outside the part of the logs that was solved; vectors have no parts
        lambda f: None if f.on_features else f.solution.outside_mass,
        _fixed(0.05, 0.5),
        lambda f: (
            f"{f.solution.outside_mass:.2%} of the target may lie outside the part of the logs where it is followed"
        ),
    ),
    Check(
        "largest weight",  # one row should not decide
        lambda f: f.largest_share,
        _fixed(0.05, 0.25),
        lambda f: f"the heaviest {_unit_of_weight(f)} carries {f.largest_share or 0.0:.2%} of all weight",
    ),
    Check(
        "leaked mass",  # state–action ratios lose mass where the target takes an action that was not logged
        lambda f: f.measures.leaked_mass,
        _fixed(0.005, 0.10),
        lambda f: f"{f.measures.leaked_mass or 0.0:.2%} of the mass leaks into actions that were never logged",
    ),
    Check(
        "episodes",  # the independent pieces; blocks of steps stand in for them where there are few and long ones
        lambda f: float(f.n_clusters),
        lambda f: (20, 2 if f.uncertainty.n_blocks is None else 1),
        _episodes_behind,
        high_is_bad=False,
    ),
    Check(
        "held-out stationarity",  # the ratio of some episodes on the flow of the others, in the direction of the value
        lambda f: f.measures.held_out,
        _fixed(3.0, 10.0),
        lambda f: (
            "a ratio from other episodes leaves the flow of those held out unbalanced by"
            f" {f.measures.held_out or 0.0:.1f} standard deviations"
        ),
    ),
    Check(
        "next observations",  # a column that slipped, or was shuffled, gives every row another row's outcome
        lambda f: f.survey.astray / max(f.survey.n_rows, 1) if f.survey.astray else None,
        _fixed(0.0, 0.1),
        lambda f: (
            f"{f.survey.astray:,} rows ({f.survey.astray / max(f.survey.n_rows, 1):.2%}) do not begin where the row"
            " before them led; their next observations may belong to other rows"
        ),
    ),
    Check(
        "missing rows",  # nobody knows what they earned; which rows are lost may hang on it
        lambda f: f.survey.holes / max(f.survey.n_rows, 1) if f.survey.holes else None,
        _fixed(0.0, np.inf),
        lambda f: (
            f"before {f.survey.holes:,} rows ({f.survey.holes / max(f.survey.n_rows, 1):.2%}) steps are left out, and"
            " they do not begin where the row before them led: rows are missing, perhaps those of some outcomes"
        ),
    ),
    Check(
        "rare rewards",  # a few events decide, and chance among them is larger than their spread between episodes
        lambda f: f.measures.rare_rewards,
        _fixed(30, -np.inf),
        lambda f: (
            "nearly all rows earn the same; those that do not are worth"
            f" {f.measures.rare_rewards or 0.0:,.0f} rows to the target"
            + ("; of fewer than 30 no interval can tell how often they happen" if _few_rare(f) else "")
        ),
        high_is_bad=False,
    ),
    Check(
        "pairs far away",  # a learned value is a guess where nobody went, and all networks may guess alike
        lambda f: f.measures.far_pairs,
        _fixed(0.25, 0.75),
        lambda f: (
            f"{f.measures.far_pairs or 0.0:.0%} of what the target would do lies farther from what was logged than 95 %"
            " of the logged rows lie from other episodes"
        ),
    ),
    Check(
        "cut weights",  # ratios above e¹⁵, calibrations below 0 and densities above a million are cut
        lambda f: f.n_cut / max(f.survey.n_rows, 1) if f.n_cut else None,
        _fixed(0.02, 0.2),
        lambda f: (
            f"the weights of {f.n_cut:,.0f} rows ({f.n_cut / max(f.survey.n_rows, 1):.2%}) were cut: ratios above e¹⁵,"
            " calibrations below zero, densities above a million"
        ),
    ),
)


def mean_weight(evidence: Evidence) -> Diagnostic | None:
    """Weights that are right account for all of the mass, and no more; ratios on counts do by construction."""
    mean = evidence.measures.mean_weight
    if mean is None:
        return None
    words = f"the weights account for {mean:.3g} of the mass that they should"
    return replace(graded("mean weight", abs(mean - 1.0), 0.2, 0.5, words), value=mean, bound="within")


def known_bias(evidence: Evidence) -> Diagnostic | None:
    """A method that is known to be biased on logs like these."""
    bias = evidence.solution.known_bias
    return None if bias is None else Diagnostic("known bias", 1.0, 0.0, "warn", bias)


def has_interval(evidence: Evidence) -> Diagnostic | None:
    """A value without an error bar is never trustworthy; one that is no number, or has none beside it, is no answer."""
    interval = evidence.interval
    ends = (evidence.value,) if interval is None else (evidence.value, interval.low, interval.high)
    if not np.all(np.isfinite(ends)):
        said = "the value is" if not np.isfinite(evidence.value) else "the ends of the interval are"
        return Diagnostic("interval", 0.0, 1.0, "fail", f"{said} not finite: the logs do not bound it", "at least")
    if interval is not None:
        return None
    because = evidence.uncertainty.because or "there are no scores"
    return Diagnostic("interval", 0.0, 1.0, "warn", Advice("there is no interval: ", because), "at least")


def rewards_seen(evidence: Evidence) -> Diagnostic | None:
    """Where every reward is 0, the value is 0 whoever acts, and its interval has no width: nothing was learnt."""
    if evidence.survey.lowest != 0.0 or evidence.survey.highest != 0.0:
        return None
    words = "every logged reward is 0, so that these logs cannot tell what anybody earns; were rewards recorded?"
    return Diagnostic("rewards seen", 0.0, 0.0, "warn", words, "other than")


def reward_range(evidence: Evidence) -> Diagnostic | None:
    """A mean of rewards lies among the rewards, a sum of them among the sums of that many.

    A value that was corrected by a model can lie beyond by chance, so that it is the interval which must reach there.
    One whose weights are not normalised is not moved there (:mod:`mixope.checks.possible`), and asks for caution.
    """
    low, high = _possible(evidence)
    value, interval = evidence.value, evidence.interval
    slack = 1e-9 * max(abs(value), 1.0)
    inside = low - slack <= value <= high + slack
    reaches = interval is not None and interval.low <= high + slack and interval.high >= low - slack
    where = "lies inside" if inside else "lies outside, by chance," if reaches else "lies OUTSIDE"
    return Diagnostic(
        "reward range",
        value,
        high if value > high else low,
        "pass" if inside or (reaches and evidence.solution.normalised) else "warn" if reaches else "fail",
        f"the value {where} {_what_is_possible(evidence, low, high)}",
        "at most" if value > high else "at least",
    )


def _possible(evidence: Evidence) -> tuple[float, float]:
    """The lowest and the highest value; of an episode, what its steps can earn, of which there is at least one.

    Their number is known from counts. On features it is an estimate like the value, so that the most that a discount
    allows stands in for it.
    """
    low, high = rewards_of_a_step(evidence)
    if evidence.estimand.kind != "episode":
        return low, high
    steps = None if evidence.on_features else evidence.measures.episode_length
    if steps is not None:
        return low * steps, high * steps
    most = evidence.estimand.forever if evidence.estimand.discount < 1.0 else np.inf
    return (low if low >= 0 else low * most), (high if high <= 0 else high * most)


def rewards_of_a_step(evidence: Evidence) -> tuple[float, float]:
    """The lowest and the highest; after an end that is absorbing a step earns 0, though no row says so."""
    low, high = evidence.survey.lowest, evidence.survey.highest
    return (min(low, 0.0), max(high, 0.0)) if _counts_steps_after_an_end(evidence) else (low, high)


def _counts_steps_after_an_end(evidence: Evidence) -> bool:
    per_step = not evidence.estimand.restarts and evidence.estimand.kind != "episode"
    return per_step and bool((evidence.survey.episodes.ended > 0).any())


def _what_is_possible(evidence: Evidence, low: float, high: float) -> str:
    if evidence.estimand.kind == "episode":
        return f"what an episode can earn by the logged rewards, {low:.6g} to {high:.6g}"
    after = " (0 is earned after an end)" if _counts_steps_after_an_end(evidence) else ""
    return f"the logged rewards, {low:g} to {high:g}{after}"


def solver(evidence: Evidence) -> Diagnostic:
    """Whether the equations were solved."""
    solved = evidence.solution.solved
    return Diagnostic("solver", solved.residual, 1e-8, "pass" if solved.ok else "warn", solved.outcome.value)
