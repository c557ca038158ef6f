"""Results to report on: made by hand, so that every field can be as strange as a test wants it."""

from dataclasses import replace

import numpy as np

from mixope.answers.estimate import Earned, Estimate, LoggerShare, Provenance
from mixope.answers.pictures import Grown, Pictures, Reliability, ReliabilityBin, ReturnBar, Visit, Visits
from mixope.backtesting import Backtest, BacktestRow
from mixope.base.estimand import Estimand
from mixope.checks import Diagnostic, Verdict
from mixope.differences import (
    Comparison,
    Difference,
    Differences,
    JointScores,
    Selection,
    contest,
    pairwise,
    ranks,
    regrets,
)
from mixope.estimators.solution import Measures
from mixope.inspection import Cell, Grid
from mixope.inspection.records import Coverage, Gap, LoggerCoverage
from mixope.requests.weights import weight_bins
from mixope.uncertainty import Interval

CHECKS = (
    Diagnostic("effective sample size", 2138.0, 100, "pass", "the weighted logs are worth 2,138 of 8,000 rows (26.7%)"),
    Diagnostic("uncovered mass", 0.0168, 0.005, "warn", "1.68% of the target's steps are actions never logged"),
    Diagnostic("largest weight", 0.0053, 0.05, "pass", "the heaviest row carries 0.53% of all weight"),
    Diagnostic("solver", 1.7e-16, 1e-8, "pass", "solved directly"),
)


def earned(value, gain=0.6) -> Earned:
    """What a logger earns itself, and a target that earns more."""
    difference = Difference(gain, 0.05, Interval(gain - 0.1, gain + 0.1, 0.95, "clustered score, t"), 0.9994)
    return Earned(
        value, Interval(value - 0.07, value + 0.07, 0.95, "clustered score, t"), difference, "mean of the steps"
    )


LOGGERS = tuple(
    LoggerShare(
        f"logger-{k}",
        2000,
        -0.99 + 0.15 * k,
        (0.19, 0.18, 0.27, 0.36)[k],
        (292.0, 522.0, 506.0, 945.0)[k],
        earned(-0.99 + 0.15 * k),
    )
    for k in range(4)
)
PROVENANCE = Provenance(
    "0.1.0",
    7,
    "embedded",
    "5eec68c93af1be6c",
    "ef0ecccdea53",
    ({"path": "a.parquet", "rows": 8000, "sha256": "ab" * 32},),
)


def prediction(label, predicted=0.5, earned=0.55, covered=True, z=-0.9, **changes) -> BacktestRow:
    """A logger as the others predict it, and what it earned."""
    spans = {
        "low": predicted - 0.1,
        "high": predicted + 0.08,
        "earned_low": earned - 0.05,
        "earned_high": earned + 0.05,
    }
    made = {"verdict": "trustworthy", "uncovered_mass": 0.0, "z": z, **spans, **changes}
    return BacktestRow(label=label, predicted=predicted, earned=earned, covered=covered, **made)


BACKTEST = Backtest(
    tuple(prediction(f"logger-{k}", -0.5 + 0.1 * k, -0.55 + 0.12 * k, k != 3) for k in range(4)), "emp", 0.95
)
COVERAGE = Coverage(
    0.56,
    0.11,
    3311,
    (Gap((1, 2, "east"), 3, 0.55, 11, 0.000757), Gap((4, 4, "west"), 2, 0.7, 6, 0.0005)),
    tuple(LoggerCoverage(f"logger-{k}", 0.5 + 0.1 * k, 0.01 * k) for k in range(4)),
    ("row", "column", "wind"),
    Grid(
        ("row", "column"),
        tuple(map(str, range(5))),
        ("0", "1", "2–3"),
        (Cell(0, 0, 90, 0.0), Cell(1, 0, 20, 0.31), Cell(4, 2, 3, 1.0)),
    ),
)
PICTURES = Pictures(
    tuple(Grown(n, -0.19 - 1 / n, -0.19 - 3 / n, -0.19 + 2 / n) for n in (10, 20, 40, 80)),
    (ReturnBar(-100.0, -50.0, 60), ReturnBar(-50.0, 0.0, 0), ReturnBar(0.0, 50.0, 20)),
    Visits(("row", "wind"), (Visit((3, "east"), 0.4, 0.5), Visit((1, "west"), 0.3, 0.1)), 14),
    Reliability("the recorded propensities", tuple(ReliabilityBin(p, p + 0.02, 0.01, 400.0) for p in (0.1, 0.5, 0.8))),
)
WEIGHTS = weight_bins(np.array([0.0, 0.1, 0.8, 1.0, 3.0, 20.0]), np.array([50.0, 300.0, 500.0, 400.0, 90.0, 3.0]))

EXTRAS = {
    "command": "mixope evaluate a.parquet --target t.csv --html x.html",
    "backtest": BACKTEST,
    "band": (-0.9, 0.4),
    "truth": -0.1213,
    "coverage": COVERAGE,
}
SECTIONS = (
    *("estimates", "against", "checks", "weights", "coverage", "stationarity", "backtest", "alerts", "data"),
    "manifest",
)
COMPARED = ("estimates", "choice", "differences", *SECTIONS[1:])


def estimate(**changes) -> Estimate:
    """An estimate with everything in it, but for the changes."""
    made = Estimate(
        estimator="dr",
        estimand=Estimand(),
        target="new",
        value=-0.1917,
        standard_error=0.038,
        interval=Interval(-0.2682, -0.1152, 0.95, "clustered score, t"),
        n_rows=8000,
        n_episodes=80,
        n_dropped=12,
        loggers=LOGGERS,
        effective_sample_size=2138.0,
        uncovered_mass=0.0168,
        outside_mass=0.0025,
        logged_mean=-0.832,
        verdict=Verdict.CAUTION,
        diagnostics=CHECKS,
        solver="solved directly",
        residual=1.7e-16,
        measures=Measures(),
        alerts=("12 rows were dropped: the last row of an unfinished episode has no next observation",),
        provenance=PROVENANCE,
        weights=WEIGHTS,
        against_logs=earned(-0.832),
        pictures=PICTURES,
    )
    return replace(made, **changes)


def reference(**changes) -> Estimate:
    """The average of the logs, which is not judged."""
    plain = tuple(
        LoggerShare(logger.label, logger.rows, logger.logged_mean, earned=logger.earned) for logger in LOGGERS
    )
    made = {
        "estimator": "logged-mean",
        "value": -0.832,
        "verdict": Verdict.REFERENCE,
        "diagnostics": (),
        "loggers": plain,
        "weights": (),
        "pictures": Pictures(returns=PICTURES.returns),
    }
    return estimate(**{**made, "interval": Interval(-0.89, -0.77, 0.95, "clustered score, t"), **changes})


def beside() -> Estimate:
    """An estimate whose interval is far too wide for the figure."""
    return estimate(estimator="is", value=-40.0, interval=Interval(-1e6, 1e6, 0.95, "t"), verdict=Verdict.UNSUPPORTED)


def without_interval() -> Estimate:
    return estimate(estimator="lstdq", interval=None, standard_error=None, no_interval_because="it has no scores")


def comparison() -> Comparison:
    """Two targets, several estimators, one of them without a number."""
    mine = [
        estimate(),
        beside(),
        without_interval(),
        reference(),
        estimate(estimator="wis", value=float("nan"), interval=None),
    ]
    others = [replace(e, target="old") for e in mine]
    skipped = (("known-mixture", "the policy of logger 'logger-0' is not known"),)
    return contested((*mine, *others), differences(), skipped)


def contested(estimates, found, skipped=()) -> Comparison:
    """Estimates with these differences, and the choice that goes with them."""
    return Comparison(tuple(estimates), skipped, (found,), (found.selection,))


def differences(names=("new", "old"), **changes) -> Differences:
    """Targets that differ by little next to what each of them varies, against two loggers."""
    shared = np.random.default_rng(0).normal(size=(80, 1)) * 0.004
    own = np.random.default_rng(1).normal(size=(80, len(names))) * 0.0008
    joint = JointScores(tuple(names), -0.19 - 0.01 * np.arange(len(names)), shared + own)
    ranked = pairwise(joint, 0.95)
    made = Differences(
        "dr",
        Estimand(),
        0.95,
        80,
        ranked,
        selection(joint),
        _against(ranked[0]),
        ("old: 1.7% is not logged",),
    )
    return replace(made, **changes)


def selection(joint, **changes) -> Selection:
    """The places of these targets, with intervals, and what is lost."""
    found = contest(joint, 0.95)
    spans = {name: Interval(v - 0.08, v + 0.08, 0.95, "t") for name, v in zip(joint.names, joint.values, strict=True)}
    wide = {name: Interval(at.low - 0.03, at.high + 0.03, 0.95, "t, all targets") for name, at in spans.items()}
    placed = tuple(replace(rank, interval=spans[rank.target], joint=wide[rank.target]) for rank in ranks(found))
    return replace(Selection("dr", 0.95, placed, regrets(found, 0.95)), **changes)


def _against(pair: Difference) -> tuple[Difference, ...]:
    return tuple(replace(pair, second=f"logger-{k}", value=pair.value + 0.1) for k in range(2))


def backtest(labels=("a", "b", "c"), note="the target cannot be followed on these logs") -> Backtest:
    """One that agrees, one that does not, and one that cannot be predicted."""
    good, far = prediction(labels[0]), prediction(labels[1], earned=0.9, covered=False, z=-5.6, chance=1e-7)
    lost = {"verdict": "not supported by these logs", "uncovered_mass": 1.0, "low": None, "high": None, "note": note}
    nothing = prediction(labels[2], float("nan"), 0.2, False, None, **lost)
    return Backtest((good, far, nothing), "emp", 0.95, ("policies were counted from their own rows",), PROVENANCE)
