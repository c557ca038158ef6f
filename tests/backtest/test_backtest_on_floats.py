"""Backtests where states are not counted: linear–quadratic worlds, and vectors with discrete actions."""

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import mixope
from mixope import LinearGaussianPolicy
from mixope.backtesting import backtest
from mixope.base.errors import UsageError
from mixope.engines import MemoryEngine
from mixope.features import NormalisedBumps
from mixope.logs import write
from mixope.worlds import continuous, linear_quadratic

pytestmark = pytest.mark.long

BUMPS = NormalisedBumps(30)
LAWS = [([-0.3, -0.4], 0.0, 0.7), ([-0.4, -0.3], 0.1, 0.8), ([-0.4, -0.5], -0.1, 0.7), ([-0.3, -0.3], 0.0, 0.8)]
POLICIES = {f"logger-{j}": LinearGaussianPolicy(*law) for j, law in enumerate(LAWS)}


@cache
def system():
    """Episodes begin as they go on, so that the mean of a few steps is the long-run average."""
    plain = linear_quadratic.linear_quadratic()
    return replace(plain, S0=linear_quadratic.long_run(plain, POLICIES["logger-0"]).stationary.covariance)


def world(loggers=3, episodes=60, horizon=40, seed=0):
    policies = list(POLICIES.values())[:loggers]
    return continuous.simulate(system(), policies, episodes, horizon, seed=seed), dict(list(POLICIES.items())[:loggers])


def by_label(result):
    return {row.label: row for row in result.rows}


def of(columns, mask):
    return {name: values[mask] for name, values in columns.items()}


class Sending(MemoryEngine):
    """Counts scans, and sends every request away before it is answered."""

    scans = 0

    def scan(self, logs, requests, expected_rows=None):
        self.scans += 1
        return super().scan(logs, pickle.loads(pickle.dumps(requests)), expected_rows)


def test_healthy_loggers_are_predicted():
    agree = 0
    for seed in range(3):
        columns, known = world(seed=seed)
        found = backtest(columns, loggers=known, features=BUMPS)
        assert {row.policy for row in found.rows} == {"known"}
        assert found.check.status == "pass"
        agree += found.agree
    assert agree >= 8


def test_policies_that_are_fitted_predict_within_their_noise_what_the_known_ones_do():
    columns, known = world()
    found = by_label(backtest(columns, features=BUMPS))
    sure = by_label(backtest(columns, loggers=known, features=BUMPS))
    assert {row.policy for row in found.values()} == {"fitted"}
    for label, row in found.items():
        assert row.covered
        assert row.predicted == pytest.approx(sure[label].predicted, abs=row.high - row.low)


def test_nothing_needs_to_be_said_and_auto_does():
    columns, _ = world(episodes=30)
    found = backtest(columns)
    assert found.estimator == "dr"
    assert found.agree == 3
    assert any("fitted to their own rows" in note for note in found.notes)
    assert any("after 40 steps" in note for note in found.notes)
    assert {row.estimand for row in found.rows} == {"long-run average"}
    for row in found.rows:
        mine = columns["reward"][columns["policy_id"] == row.label]
        assert row.earned == pytest.approx(mine.mean(), abs=1e-12)


def test_shifted_rewards_of_one_logger_come_out():
    columns, known = world()
    columns["reward"] = columns["reward"] + 0.5 * (columns["policy_id"] == "logger-2")
    found = backtest(columns, loggers=known, features=BUMPS)
    assert not by_label(found)["logger-2"].covered
    assert found.check.status == "warn"
    assert "logger-2" in found.check.sentence


@pytest.mark.parametrize("estimator", ["dr", "emp", "known-mixture", "mwl", "sadl", "lstdq", "logged-mean"])
def test_no_row_of_a_logger_enters_its_own_prediction(estimator):
    columns, known = world(episodes=15, horizon=20)
    mine = columns["policy_id"] == "logger-1"
    changed = {name: values.copy() for name, values in columns.items()}
    generator = np.random.default_rng(0)
    changed["reward"][mine] = generator.normal(7.0, 3.0, size=mine.sum())
    changed["action"][mine] = generator.normal(-3.0, 5.0, size=changed["action"][mine].shape)
    for name in ("observation", "next_observation"):
        changed[name][mine] += 20.0
    before, after = (
        by_label(backtest(c, loggers=known, estimator=estimator, features=NormalisedBumps(10)))["logger-1"]
        for c in (columns, changed)
    )
    assert (before.predicted, before.low, before.high) == (after.predicted, after.low, after.high)
    assert before.verdict == after.verdict
    assert before.earned != after.earned


@pytest.mark.parametrize("estimator", ["dr", "emp"])
def test_a_prediction_is_an_evaluation_on_files_that_leave_the_logger_out(estimator):
    columns, known = world(episodes=20)
    found = by_label(backtest(columns, loggers=known, estimator=estimator))["logger-0"]
    others = of(columns, columns["policy_id"] != "logger-0")
    expected = mixope.evaluate(others, known["logger-0"], estimator, interval="t")
    assert found.predicted == pytest.approx(expected.value, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((expected.interval.low, expected.interval.high), abs=1e-9)
    assert found.n_rows + expected.n_rows == len(columns["reward"])


@pytest.mark.parametrize("loggers", [2, 4])
def test_four_scans_do_for_any_number_of_loggers(loggers):
    engine = Sending()
    columns, _ = world(loggers, episodes=8 * loggers, horizon=20)
    assert len(backtest(columns, engine=engine, features=NormalisedBumps(10)).rows) == loggers
    assert engine.scans == 4


def test_files_pieces_and_memory_agree(tmp_path):
    columns, known = world(episodes=15, horizon=20)
    write(columns, tmp_path / "logs.parquet")
    features = NormalisedBumps(10)
    found = [
        backtest(logs, loggers=known, features=features, engine=engine)
        for logs, engine in (
            (columns, "memory"),
            (columns, MemoryEngine(fragment_rows=37)),
            (str(tmp_path / "logs.parquet"), "embedded"),
        )
    ]
    for rows in zip(*(result.rows for result in found), strict=True):
        for name in ("predicted", "low", "high", "earned", "earned_low"):
            assert [getattr(row, name) for row in rows] == pytest.approx([getattr(rows[0], name)] * 3, abs=1e-9)


@pytest.mark.parametrize("estimator", ["wis", "is-step", "mis"])
def test_estimators_of_whole_episodes_are_refused_in_words(estimator):
    columns, known = world(episodes=9, horizon=20)
    with pytest.raises(UsageError, match="needs whole episodes"):
        backtest(columns, loggers=known, estimator=estimator)


def test_a_plug_in_value_is_shown_and_not_judged():
    columns, known = world(episodes=15, horizon=20)
    found = backtest(columns, loggers=known, estimator="lstdq", features=NormalisedBumps(10))
    assert all(np.isfinite(row.predicted) and row.low is None and not row.supported for row in found.rows)
    assert found.coverage is None


def test_a_logger_without_a_density_is_named_and_the_others_are_predicted():
    columns, _ = world(episodes=30, horizon=20)
    mine = columns["policy_id"] == "logger-2"
    columns["action"][mine] = 0.4 * columns["observation"][mine][:, :1]
    rows = by_label(backtest(columns, features=NormalisedBumps(10), estimator="mwl"))
    assert "cannot be fitted to its rows" in rows["logger-2"].note
    assert rows["logger-2"].verdict == "not supported by these logs"
    assert np.isfinite(rows["logger-0"].predicted)
    assert np.isfinite(rows["logger-1"].predicted)


def test_one_logger_is_no_backtest():
    columns, _ = world(1, episodes=4, horizon=20)
    with pytest.raises(UsageError, match="at least two labelled loggers"):
        backtest(columns)


# --- vectors with discrete actions


def switches(slopes, episodes=20, steps=40, seed=0):
    """s′ = .7 s ± .4 + noise, r = −s² + .3 a, and P(a = 1 | s) = σ(slope · s)."""
    generator = np.random.default_rng(seed)
    n = episodes * len(slopes)
    slope, s = np.repeat(slopes, episodes), generator.normal(size=n)
    parts = []
    for step in range(steps):
        a = (generator.random(n) < 1 / (1 + np.exp(-slope * s))).astype(np.int64)
        following = 0.7 * s + 0.4 * (2 * a - 1) + generator.normal(0, 0.3, size=n)
        parts.append((np.arange(n), np.full(n, step), s, a, 0.3 * a - s**2, following))
        s = following
    episode, step, s, a, r, t = (np.stack(column, axis=1).ravel() for column in zip(*parts, strict=True))
    return {
        "policy_id": np.array([f"logger-{e // episodes}" for e in episode]),
        "episode_id": episode,
        "step": step,
        "observation": s[:, None],
        "action": a,
        "reward": r,
        "next_observation": t[:, None],
    }


def test_discrete_actions_are_imitated_by_a_classifier():
    found = backtest(switches([-0.5, -1.0, 0.0], episodes=12), features=NormalisedBumps(12))
    assert {row.policy for row in found.rows} == {"fitted"}
    assert found.agree == 3
