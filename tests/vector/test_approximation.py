"""What bumps cannot follow: the ridge that shows in held-out scores, the change with half the bumps, the interval."""

import numpy as np
import pytest
from scipy import stats

import mixope
from mixope.diagnostics.approximation import approximation, correction
from mixope.diagnostics.evidence import Evidence
from mixope.estimators import Measures, Solution, Weights
from mixope.estimators.feature_scores import EpisodeTerms, ScorePart, Summed, _choose, _solution
from mixope.estimators.feature_value import ValueSums, ValueSystem, value_design
from mixope.features import NormalisedBumps
from mixope.intervals import Interval, Uncertainty, widen
from mixope.statistics.moments import Moments
from mixope.statistics.weights import WeightCount

from .worlds import TARGET, lq_logs, posed


def solved(truth, fine, coarse, name):
    """One episode whose ratio is off by ``fine``, and by ``coarse`` with half the bumps; a value that corrects half."""
    one, none = np.ones(2), np.zeros((2, 1, 2))

    def terms(off):
        return EpisodeTerms(one, one, one * (truth + off), none + truth + off / 2, none, one, 0 * one)

    summed = Summed(terms(fine), terms(coarse), Weights(one, one, 1.0), ScorePart(None, WeightCount.of(one, one)))
    problem = posed(lq_logs(1, 4, 5)).problem
    model = ValueSystem(problem, None, None, (1e-6,))
    model.__dict__["value"] = truth
    return _solution(problem, summed, model, doubly_robust=name == "dr", crossed=False)


def test_the_error_left_is_the_change_with_half_the_bumps_and_a_quarter_of_that_of_the_ratio():
    found = solved(2.0, -0.2, -0.6, "dr")
    assert found.value == pytest.approx(1.9)
    assert found.measures.half_the_bumps == pytest.approx(1.7)
    assert found.measures.approximation == pytest.approx(np.hypot(0.2, 0.4 / 4))


def test_a_plain_ratio_is_left_as_it_is_with_the_whole_change_as_its_error():
    found = solved(1.0, 0.25, 0.5, "emp")
    assert (found.value, found.measures.approximation) == (1.25, 0.25)


def sure(low=0.8, high=1.4, blocks=None):
    return Uncertainty(Interval(low, high, 0.9, "clustered score, t"), 0.1, n_blocks=blocks)


@pytest.mark.parametrize("blocks", [None, 7])
def test_approximation_adds_in_squares_on_both_sides(blocks):
    found = widen(sure(blocks=blocks), 1.0, 0.3, 12)
    reach = stats.t.ppf(0.95, (blocks or 12) - 1) * 0.3
    assert (found.interval.high - 1.0) ** 2 == pytest.approx(0.4**2 + reach**2)
    assert (1.0 - found.interval.low) ** 2 == pytest.approx(0.2**2 + reach**2)
    assert found.standard_error**2 == pytest.approx(0.1**2 + 0.3**2)
    assert found.interval.method == "clustered score, t + approximation"


@pytest.mark.parametrize("error", [0.0, float("nan"), float("inf")])
def test_without_an_error_of_approximation_nothing_changes(error):
    assert widen(sure(), 1.0, error, 12) == sure()
    assert widen(Uncertainty(because="no"), 1.0, 0.3, 12) == Uncertainty(because="no")


def evidence(width, **measures):
    """An estimate of one with an interval of this width, which is its standard error too."""
    interval = None if width is None else Interval(1.0 - width / 2, 1.0 + width / 2, 0.9, "by hand")
    return Evidence(Solution(1.0, measures=Measures(**measures)), Uncertainty(interval, width), None)


@pytest.mark.parametrize(("error", "status"), [(0.1, "pass"), (0.9, "warn")])
def test_features_that_matter_more_than_episodes_ask_for_caution(error, status):
    found = approximation(evidence(1.0, approximation=error, half_the_bumps=2.0))
    assert (found.status, found.value) == (status, pytest.approx(error**2))
    assert approximation(evidence(1.0)) is None
    assert approximation(evidence(None, approximation=error, half_the_bumps=2.0)) is None


@pytest.mark.parametrize(("corrected", "status"), [(1.4, "pass"), (1.6, "warn")])
def test_a_plain_ratio_that_the_value_model_moves_out_of_its_interval_asks_for_caution(corrected, status):
    found = correction(evidence(1.0, corrected=corrected))
    assert (found.status, found.value) == (status, pytest.approx(2 * (corrected - 1.0)))
    assert correction(evidence(1.0)) is None
    assert correction(evidence(0.0, corrected=corrected)) is None


def test_the_correction_of_emp_is_the_value_of_dr():
    plain, robust = (mixope.evaluate(lq_logs(1, 20, 50), TARGET, name) for name in ("emp", "dr"))
    assert plain.measures.corrected == pytest.approx(robust.value, abs=1e-9)
    assert robust.measures.corrected is None


@pytest.mark.parametrize("name", ["dr", "emp"])
def test_the_interval_says_how_much_of_it_is_approximation(name):
    found = mixope.evaluate(lq_logs(1, 20, 50), TARGET, name)
    error, half = found.measures.approximation, found.interval.width / 2
    assert found.interval.method == "clustered score, t + approximation"
    chance = np.sqrt(np.sum(found.scores**2))
    assert half == pytest.approx(stats.t.ppf(0.975, 19) * np.hypot(chance, error), rel=1e-9)
    assert [d.value for d in found.diagnostics if d.name == "approximation"] == [
        pytest.approx(error**2 / found.standard_error**2)
    ]
    change = abs(found.value - found.measures.half_the_bumps)
    assert error >= change - 1e-12 if name == "dr" else error == pytest.approx(change)


def test_features_of_ones_own_are_taken_as_they_are():
    found = mixope.evaluate(lq_logs(1, 20, 50), TARGET, "dr", features=NormalisedBumps(20))
    assert found.measures.approximation is None
    assert found.interval.method == "clustered score, t"


# --- the ridge ----------------------------------------------------------------------------------------------------


def terms(errors):
    """Twenty episodes whose scores have, by λ, this size in and out of the fit."""
    signs = np.where(np.arange(20) % 2, 1.0, -1.0)
    ones, zeros = np.ones(20), np.zeros(20)
    difference = signs[:, None, None] * np.array(errors)[None]
    return EpisodeTerms(ones, ones, zeros, difference, np.zeros_like(difference), ones, zeros)


@pytest.mark.parametrize(
    ("errors", "chosen"),
    [
        ([(1.0, 9.0), (2.0, 2.1), (2.0, 2.0)], 1),  # learnt by heart: small inside, large outside
        ([(9.0, 1.0), (3.0, 3.0), (2.0, 2.0)], 2),  # wild on all rows, tame on the folds
        ([(2.0, 2.1), (2.0, 2.0), (1.9, 2.0)], 0),  # no difference to speak of: the smallest
        ([(np.inf, 1.0), (5.0, 5.0), (np.nan, 1.0)], 1),
    ],
)
def test_the_smallest_ridge_that_is_sure_in_and_out_of_the_fit(errors, chosen):
    with np.errstate(invalid="ignore"):
        assert _choose(posed(lq_logs(1, 4, 5)).problem, terms(errors), True) == chosen


@pytest.mark.parametrize("gamma", [None, 0.9])
def test_held_out_values_come_from_a_fit_without_the_fold(gamma):
    """Against a value fitted on rows from which the fold was taken out."""
    asked = posed(lq_logs(1, 12, 30), NormalisedBumps(8), gamma=gamma)
    problem, ridges = asked.problem, (1e-4, 1e-2)
    request = ValueSums(value_design(problem))
    (moments,) = asked.rounds.ask([request])
    found = ValueSystem(problem, request.design, moments, ridges)
    rows = problem.known.sample
    fold = problem.fold_of(rows)
    assert len(np.unique(fold)) == problem.folds
    for k in range(problem.folds):
        others = Moments()
        for j in set(range(problem.folds)) - {k}:
            request.accumulate(others, rows.take(fold == j), j)
        alone = ValueSystem(problem, request.design, others, ridges)
        alone.__dict__["start"] = found.start  # the start law is known, and so not held out
        mine = rows.take(fold == k)
        held_out = found.fit.terms(mine, k, logged=False)[0][:, :, 1]
        assert held_out == pytest.approx(alone.fit.terms(mine, k, logged=False)[0][:, :, 0], abs=1e-8)
