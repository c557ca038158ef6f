"""What bumps cannot follow: the ridge that predicts held-out rows, the change with half the bumps, the interval."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import mixope
from mixope.checks.approximation import approximation, correction
from mixope.checks.evidence import Evidence
from mixope.estimators import Measures, Solution, Weights
from mixope.estimators.features.scores import EpisodeTerms, ScorePart, Summed, _solution
from mixope.estimators.features.value import FIRST_RIDGE, PairGram, ValueSums, ValueSystem, value_design
from mixope.features import NormalisedBumps
from mixope.requests.moments import Moments
from mixope.requests.weights import WeightCount
from mixope.uncertainty import Interval, Uncertainty, degrees_of_freedom, widen

from .worlds import TARGET, lq_logs, posed


def solved(truth, fine, coarse, name):
    """One episode whose ratio is off by ``fine``, and by ``coarse`` with half the bumps; a value that corrects half."""
    one, none = np.ones(2), np.zeros((2, 2))

    def terms(off):
        return EpisodeTerms(one, one, one * (truth + off), none + truth + off / 2, none, one, 0 * one)

    summed = Summed(terms(fine), terms(coarse), Weights(one, one, 1.0), ScorePart(None, WeightCount.of(one, one)))
    problem = posed(lq_logs(1, 4, 5)).problem
    model = ValueSystem(problem, None, None, None, (1e-6,))
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
    survey = SimpleNamespace(lowest=0.0, highest=2.0)
    return Evidence(Solution(1.0, measures=Measures(**measures)), Uncertainty(interval, width), survey)


def test_rounding_is_no_error_of_approximation():
    found = approximation(evidence(1e-16, approximation=2e-16, half_the_bumps=1.0))
    assert (found.status, found.value) == ("pass", 0.0)
    moved = correction(evidence(1e-15, corrected=1.0 + 4e-16))
    assert (moved.status, moved.value) == ("pass", 0.0)


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
    error = found.measures.approximation
    # one of the twenty episodes stands out, and the interval reaches farther to its side
    half = min(found.value - found.interval.low, found.interval.high - found.value)
    assert found.interval.method == "clustered score, t + approximation"
    chance = np.sqrt(20 / 19 * np.sum(found.scores**2))
    by_chance = stats.t.ppf(0.975, degrees_of_freedom(found.scores)) * chance
    assert half == pytest.approx(np.hypot(by_chance, stats.t.ppf(0.975, 19) * error), rel=1e-9)
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


def value_of(gamma, ridges):
    """A value on a small log, its rows, and the fold of each row."""
    asked = posed(lq_logs(1, 12, 30), NormalisedBumps(8), gamma=gamma)
    problem = asked.problem
    design = value_design(problem)
    moments, gram = asked.rounds.ask([ValueSums(design), PairGram(design.pairs)])
    rows = problem.known.sample
    return ValueSystem(problem, design, moments, gram["gram"], ridges), rows, problem.fold_of(rows)


@pytest.mark.parametrize("gamma", [None, 0.9])
def test_the_ridge_is_the_one_whose_regression_predicts_rows_that_it_has_not_seen(gamma):
    """Against a slow loop: r + γV(s′) regressed on x(s,a) without a fold, and its error on the fold."""
    ridges = (1e-6, 1e-3, 1e-1, 10.0)
    found, rows, fold = value_of(gamma, ridges)
    x, ahead, discount = found.design.taken(rows), found.design.ahead(rows), gamma or 1.0
    errors = np.zeros(len(ridges))
    for k in np.unique(fold):
        use = np.arange(4) != k
        beta, level = found._solve(use.astype(float), FIRST_RIDGE)
        y = rows.reward + discount * (ahead @ beta) + (-level if gamma is None else discount * level)
        mine = fold == k
        centre, middle = x[~mine].mean(axis=0), y[~mine].mean()
        z, n = x[~mine] - centre, int((~mine).sum())
        for j, ridge in enumerate(ridges):
            slope = np.linalg.solve(z.T @ z + n * ridge * np.eye(x.shape[1]), z.T @ (y[~mine] - middle))
            errors[j] += np.sum((y[mine] - middle - (x[mine] - centre) @ slope) ** 2)
    assert found.ridge == ridges[int(np.argmin(errors))]
    told = sum(found._held_out_errors(use) for use in found._others)
    assert told - told[0] == pytest.approx(errors - errors[0], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("gamma", [None, 0.9])
def test_held_out_values_come_from_a_fit_without_the_fold(gamma):
    """Against a value fitted on rows from which the fold was taken out."""
    found, rows, fold = value_of(gamma, (1e-2,))
    problem = found.problem
    assert len(np.unique(fold)) == problem.folds
    for k in range(problem.folds):
        others = Moments()
        for j in set(range(problem.folds)) - {k}:
            ValueSums(found.design).accumulate(others, rows.take(fold == j), j)
        alone = ValueSystem(problem, found.design, others, found.gram, (1e-2,))
        alone.__dict__["start"] = found.start  # the start law is known, and so not held out
        mine = rows.take(fold == k)
        held_out = found.fit.terms(mine, k, logged=False)[0][:, 1]
        assert held_out == pytest.approx(alone.fit.terms(mine, k, logged=False)[0][:, 0], abs=1e-8)
