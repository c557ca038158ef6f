"""What each estimator says of all targets: who may be ranked, which are the best, and their differences.

A target is ranked by its value and, where it has scores, with its uncertainty. One whose verdict is a refusal is not
ranked: it stands below the others with its value, and no probability, place or regret counts it. One that is left
alone is not the best of anything: there is nobody to be told apart from.

Estimates of one run keep their scores, so that nothing is read again. The scores say nothing of bias: a target whose
mass the logs do not cover is named in ``alerts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mixope.answers.estimate import Estimate
from mixope.base.arrays import FloatArray
from mixope.base.errors import Advice
from mixope.checks import Verdict
from mixope.differences.joint import JointScores
from mixope.differences.pairs import MOST_PAIRED, against, pairwise, with_best
from mixope.differences.records import Differences, Rank, Selection
from mixope.differences.selection import Contest, contest, ranks, regrets
from mixope.uncertainty import Difference, Interval, block_scores, few_episodes, quantile

UNCOVERED = 0.01
"""Target mass outside the logs above which a difference is said to be biased."""
_APPROXIMATE = "{}: an approximation error of about {:.3g} is part of its own interval and not of its differences'"
_LAST, _SURE = "the only one that is ranked", "the only one whose value has an interval"
MOST_LOGGERS = 20
"""With more loggers than this, targets are set against none: a table of all of them says nothing to a reader."""
Contested = tuple[Selection, Differences | None]


def contests_of(
    estimates: Sequence[Estimate], level: float, seed: int = 0, all_pairs: bool = False
) -> tuple[Contested, ...]:
    """For every estimator, in their order, which targets to take; and their differences where two have scores.

    Of more than ``MOST_PAIRED`` targets each is compared with the best, unless ``all_pairs`` are asked for.
    """
    return tuple(_one(group, level, seed, all_pairs) for group in _by_estimator(estimates))


def _by_estimator(estimates: Sequence[Estimate]) -> list[list[Estimate]]:
    """The targets of each estimator; two estimators under one name are told apart by their order."""
    seen: dict[tuple[str, str], int] = {}
    groups: dict[tuple[str, int], list[Estimate]] = {}
    for estimate in estimates:
        if estimate.verdict is Verdict.REFERENCE:
            continue
        turn = seen.get((estimate.target, estimate.estimator), 0)
        seen[estimate.target, estimate.estimator] = turn + 1
        groups.setdefault((estimate.estimator, turn), []).append(estimate)
    return list(groups.values())


def _one(group: list[Estimate], level: float, seed: int, all_pairs: bool) -> Contested:
    usable = [e for e in group if _usable(e)]
    joint = _joint(usable) if usable else None
    chosen = select(group, joint, level, seed)
    if joint is None or len(usable) < 2:
        return chosen, None
    best = next((rank.target for rank in chosen.ranked if rank.target in joint.names), None)
    every = all_pairs or len(usable) <= MOST_PAIRED
    first = usable[0]
    return chosen, Differences(
        estimator=first.estimator,
        estimand=first.estimand,
        level=level,
        n_episodes=first.n_episodes,
        pairs=_concluded(pairwise(joint, level, seed) if every else with_best(joint, level, best), usable),
        selection=chosen,
        loggers=_concluded(_against_loggers(first, joint, level, seed), usable),
        compared="all pairs" if every else "with the best",
        alerts=_alerts(group, usable),
    )


def _concluded(found: Sequence[Difference], usable: Sequence[Estimate]) -> tuple[Difference, ...]:
    """Nothing follows of a difference with a target that is refused."""
    refused = {e.target for e in usable if _refused(e)}
    return tuple(pair.without_conclusion if refused & {pair.first, pair.second} else pair for pair in found)


def _alerts(group: list[Estimate], usable: list[Estimate]) -> tuple[str, ...]:
    """What should be known of the differences."""
    left_out = [
        Advice(f"{e.target}: left out, ", e.no_interval_because or "it has no scores") for e in group if not _usable(e)
    ]
    return (
        *left_out,
        *bias_alerts([(e.target, e.uncovered_mass) for e in usable], any(e.corrects_coverage for e in usable)),
        *(_APPROXIMATE.format(e.target, off) for e in usable if (off := e.measures.approximation or 0.0) > 0),
        *(f"{e.target}: {e.verdict}, and so is every difference with it" for e in usable if _refused(e)),
        *([few] if (few := few_episodes(usable[0].n_episodes)) else []),
    )


def select(group: Sequence[Estimate], joint: JointScores | None, level: float, seed: int = 0) -> Selection:
    """The places of these targets, of which ``joint`` has those with scores, and what is lost if the best are taken."""
    supported = {e.target: e for e in group if not _refused(e) and np.isfinite(e.value)}
    with_scores = [k for k, name in enumerate(joint.names if joint else ()) if name in supported]
    found = contest(joint.take(with_scores), level, seed) if joint and with_scores else None
    sure = {rank.target: _spanned(rank, supported[rank.target], found, level) for rank in ranks(found)} if found else {}
    by_value = sorted(name for name in supported if name not in sure)
    alone = len(sure) == 1 and len(group) > 1
    if alone:
        sure = {name: _alone(rank, _LAST if not by_value else _SURE) for name, rank in sure.items()}
    plain = [Rank(name, supported[name].value, note="by its value alone") for name in by_value]
    others = sorted((e for e in group if e.target not in supported), key=lambda e: e.target)
    apart = [Rank(e.target, e.value, note=_why_apart(e)) for e in others]
    placed = _by_value([*sure.values(), *plain])
    return Selection(
        estimator=group[0].estimator,
        level=level,
        ranks=(*_numbered(placed), *_by_value(apart)),
        regret=regrets(found, level) if found and not alone else (),
        alerts=tuple(_no_scores([supported[name] for name in by_value])),
    )


def _alone(rank: Rank, note: str) -> Rank:
    """Of a target that no other is held against: its value and its interval, and no chances."""
    return replace(
        rank, probability_best=None, expected_rank=None, low=None, high=None, may_be_best=None, places=(), note=note
    )


def _spanned(rank: Rank, estimate: Estimate, found: Contest, level: float) -> Rank:
    """With its interval, and one as many times wider as all intervals together need."""
    own = estimate.interval
    if own is None:
        return rank
    factor = found.values / quantile(level, found.joint.degrees)
    low, high = (rank.value + factor * (end - rank.value) for end in (own.low, own.high))
    return replace(rank, interval=own, joint=Interval(low, high, level, f"{own.method}, all targets"))


def _by_value(found: Sequence[Rank]) -> list[Rank]:
    """Best first, those without a number last; equal ones stay as they are."""
    return sorted(found, key=lambda rank: -np.inf if np.isnan(rank.value) else rank.value, reverse=True)


def _numbered(placed: list[Rank]) -> list[Rank]:
    """Places by value where some of them have no scores; otherwise they are known, and equal ones share theirs."""
    if all(rank.place is not None for rank in placed):
        return placed
    return [replace(rank, place=1 + sum(other.value > rank.value for other in placed)) for rank in placed]


def _why_apart(estimate: Estimate) -> str:
    return str(estimate.verdict) if _refused(estimate) else "it has no value"


def _no_scores(found: Sequence[Estimate]) -> list[str]:
    """Why some have a place by their value alone, each reason once."""
    reasons: dict[str, list[str]] = {}
    for estimate in found:
        reasons.setdefault(estimate.no_interval_because or "it has no scores", []).append(estimate.target)
    said = "by value alone, and no part of probabilities, places and regret: "
    return [Advice(f"{', '.join(names)}: {said}", reason) for reason, names in reasons.items()]


def _joint(usable: Sequence[Estimate]) -> JointScores:
    at_most = min((e.degrees for e in usable if e.degrees is not None), default=np.inf)
    names, values = tuple(e.target for e in usable), np.array([e.value for e in usable])
    return JointScores(names, values, _clusters(usable), at_most)


def _usable(estimate: Estimate) -> bool:
    """A number, and scores of two episodes or more, or of steps that can be cut into blocks."""
    if estimate.scores is None or (len(estimate.scores) < 2 and estimate.step_scores is None):
        return False
    return bool(np.isfinite(estimate.value) and np.isfinite(estimate.scores).all())


def _clusters(usable: Sequence[Estimate]) -> FloatArray:
    """Scores side by side, by episode; one long episode is cut into the same blocks of steps for all of them."""
    if usable[0].n_episodes > 1:
        return np.stack([e.scores for e in usable if e.scores is not None], axis=1)
    return block_scores(np.stack([e.step_scores for e in usable if e.step_scores is not None], axis=1))


def _refused(estimate: Estimate) -> bool:
    return estimate.verdict is Verdict.UNSUPPORTED


def _against_loggers(estimate: Estimate, joint: JointScores, level: float, seed: int) -> tuple[Difference, ...]:
    """Every target less what each logger earned by itself, of those that have a value of their own."""
    known = [(j.label, j.earned.value, j.earned.scores) for j in estimate.loggers if j.earned.value is not None]
    alike = [(label, value, scores) for label, value, scores in known if len(joint.scores) == len(_scores(scores))]
    if not alike or len(estimate.loggers) > MOST_LOGGERS:
        return ()
    labels, values, scores = zip(*alike, strict=True)
    return against(joint, JointScores(labels, np.array(values), np.stack(scores, axis=1)), level, seed)


def _scores(found: FloatArray | None) -> FloatArray:
    return np.zeros(0) if found is None else found


def bias_alerts(masses: Sequence[tuple[str, float]], corrects_coverage: bool) -> tuple[str, ...]:
    """A sentence for every target with uncovered mass."""
    rests = (
        "there the difference rests on the value model"
        if corrects_coverage
        else "the difference can be off by more than its interval shows"
    )
    return tuple(
        f"{name}: {mass:.1%} of the target's mass is on actions that were never logged; {rests}"
        for name, mass in masses
        if mass > UNCOVERED
    )
