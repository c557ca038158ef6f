"""Intervals by name on vectors: the same formulas from the same scores, blocks of steps, and refits."""

import numpy as np
import pytest
from scipy import stats

import mixope
from mixope.answers.resampling import FeatureRefit
from mixope.base.errors import UsageError
from mixope.behaviours import Logged
from mixope.engines import EmbeddedEngine, MemoryEngine
from mixope.estimators import StateRatio, make
from mixope.estimators.kernel import KernelRatio
from mixope.features import OneHot
from mixope.uncertainty import likelihood_interval
from mixope.worlds import linear_quadratic
from uncertainty.logs import resampled

from .worlds import SYSTEM, TARGET, Counted, Monomials, drop_ridges, id_columns, id_policies, lq_columns, lq_logs, posed

pytestmark = pytest.mark.long


def ask(logs, estimator="emp", **options):
    return mixope.evaluate(logs, TARGET, estimator, features=Monomials(), **options)


def test_t_normal_and_likelihood_come_from_the_same_scores():
    found = {name: ask(lq_logs(), interval=name) for name in ("t", "normal", "likelihood", "auto")}
    value, scores = found["t"].value, found["t"].scores
    error = np.sqrt(20 / 19 * np.sum(scores**2))
    for name, law in (("t", stats.t(19)), ("normal", stats.norm), ("auto", stats.t(19))):
        interval = found[name].interval
        assert (interval.low, interval.high) == pytest.approx(value + law.ppf([0.025, 0.975]) * error)
    assert found["likelihood"].interval == likelihood_interval(value, scores, 0.95)


def one_long_id_log():
    """The ids of one logger as one long episode."""
    columns = id_columns(False)
    mine = columns["policy_id"] == columns["policy_id"][0]
    rows = {name: values[mine] for name, values in columns.items()}
    n = int(mine.sum())
    follows = {**rows, "episode_id": np.zeros(n, dtype=int), "step": np.arange(n)}
    return {**follows, "next_observation": np.append(rows["observation"][1:], rows["next_observation"][-1])}


@pytest.mark.parametrize("engine", [MemoryEngine(fragment_rows=50), EmbeddedEngine()], ids=["memory", "embedded"])
def test_blocks_of_one_hot_states_are_those_of_counts(monkeypatch, engine):
    drop_ridges(monkeypatch)
    target, logs = mixope.TabularPolicy(id_policies()[0]), mixope.read(one_long_id_log())
    pairs = {"logged-mean": ("logged-mean", "logged-mean"), "emp": (StateRatio("emp", behaviour=Counted()), "emp")}
    for ours, counted in pairs.values():
        on_features = mixope.evaluate(logs, target, ours, features=OneHot(), engine=engine)
        on_counts = mixope.evaluate(logs, target, counted)
        assert on_features.interval.method == on_counts.interval.method
        assert "blocks of" in on_counts.interval.method
        assert on_features.interval.width == pytest.approx(on_counts.interval.width, rel=1e-4)


def test_longer_pieces_leave_value_and_blocks_nearly_as_they_are(monkeypatch):
    """Logs beyond memory are summed in pieces of several steps before they are cut into blocks."""
    logs = lq_logs(episodes=1, horizon=2000)
    plain = ask(logs)
    monkeypatch.setattr("mixope.session.session.MOST_PIECES", 500)
    pieces = ask(logs)
    assert pieces.value == pytest.approx(plain.value, rel=1e-12)
    assert pieces.standard_error == pytest.approx(plain.standard_error, rel=0.3)
    assert int(pieces.interval.method.split()[-2]) % 4 == 0


def test_blocks_of_a_long_linear_quadratic_episode_cover():
    truth, hits, logs = linear_quadratic.average(SYSTEM, TARGET), 0, 10
    for seed in range(logs):
        found = ask(lq_logs(episodes=1, horizon=600, seed=seed), "dr")
        hits += found.interval.low <= truth <= found.interval.high
    assert hits >= 8
    assert any("there is 1 episode" in alert for alert in found.alerts)
    assert np.shape(found.scores) == (1,)


def test_trajectory_weights_have_episodes_and_no_blocks():
    logs = lq_logs(episodes=4, horizon=500)
    known = {"logger-0": linear_quadratic.loggers(1)[0]}
    assert "blocks of" in ask(logs, loggers=known).interval.method
    assert ask(logs, "wis-step", loggers=known).interval.method == "clustered score, t"
    with pytest.raises(UsageError, match="weighs whole episodes"):
        ask(logs, "wis-step", loggers=known, interval="blocks")


@pytest.mark.parametrize("name", ["bch-pooled", "wis-step", "is", "mwl", "lstdq"])
def test_a_replicate_equals_rows_resampled_and_read_anew(name):
    """Up to the scale of the actions, which is that of the sample as it is."""
    columns = lq_columns(1, 24, 20)
    refit = FeatureRefit.prepare(mixope.read(columns), posed(mixope.read(columns), Monomials()).problem, make(name))
    for number in range(2):
        slow = ask(mixope.read(resampled(columns, refit.weights(number))), name)
        assert refit.replicate(number) == pytest.approx(slow.value, rel=1e-5 if name in ("mwl", "lstdq") else 1e-9)


@pytest.mark.parametrize("gamma", [None, 0.9])
def test_a_replicate_of_the_kernel_form_counts_rows_and_starts_as_often_as_they_happened(gamma):
    columns = lq_columns(1, 10, 15)
    kernel = KernelRatio(kernel=lambda x, y: np.exp(-((x[:, None] - y[None]) ** 2).sum(axis=2)), behaviour=Logged())
    asked = posed(mixope.read(columns), Monomials(), gamma=gamma)
    refit = FeatureRefit.prepare(mixope.read(columns), asked.problem, kernel)
    slow = ask(mixope.read(resampled(columns, refit.weights(0))), kernel, gamma=gamma)
    assert refit.replicate(0) == pytest.approx(slow.value, rel=1e-8)


@pytest.mark.parametrize("name", ["bca", "percentile"])
def test_refits_give_intervals_to_all_even_without_scores(name):
    logs = lq_logs(episodes=24, horizon=20)
    for estimator in ("bch-pooled", "lstdq"):
        found = ask(logs, estimator, interval=name, replicates=20, jobs=1)
        assert found.interval.low < found.value < found.interval.high
        assert found.interval.method.startswith("episode bootstrap")
