"""Refits on features: the bootstrap of whole episodes on numbers, and LSTD-Q over a horizon."""

import numpy as np
import pytest

import mixope
from mixope.answers.resampling import FeatureRefit
from mixope.base.estimand import Estimand
from mixope.estimators import make
from mixope.estimators.features import value as feature_value
from mixope.estimators.state_ratio import StateRatio
from mixope.features import NormalisedBumps, OneHot
from mixope.session.questions import ask
from mixope.session.session import look
from mixope.worlds import continuous, linear_quadratic, simulate
from random_worlds import random_model
from rounds import worlds
from rounds.worlds import known, policy

BUMPS = NormalisedBumps(8)
ESTIMATORS = {
    "bch-pooled": "bch-pooled",
    "emp with a Gaussian": StateRatio("emp", behaviour="gaussian"),
    "mwl": "mwl",
    "lstdq": "lstdq",
    "wis-step": "wis-step",
    "mis": "mis",
    "logged-mean": "logged-mean",
}


@pytest.fixture(scope="module")
def columns():
    return worlds.columns("floats", "continuous", episodes=24, horizon=6)


def evaluated(columns, name, **options):
    target = policy("floats", "continuous")
    return mixope.evaluate(
        columns, target, ESTIMATORS[name], features=BUMPS, loggers=known("floats", "continuous"), **options
    )


@pytest.mark.parametrize("name", ["bch-pooled", "lstdq", "wis-step"])
def test_refits_on_numbers_bracket_the_value_and_repeat(columns, name):
    runs = [evaluated(columns, name, interval="percentile", replicates=8, jobs=1, seed=seed) for seed in (0, 0, 1)]
    first, again, other = runs
    assert first.interval.low < first.value < first.interval.high
    assert first.interval == again.interval
    assert first.interval != other.interval
    assert first.interval.replicates + first.interval.failed == 8
    assert first.standard_error > 0


def test_refits_are_the_same_whatever_the_jobs(columns):
    one, two = (evaluated(columns, "bch-pooled", interval="percentile", replicates=4, jobs=jobs) for jobs in (1, 2))
    assert one.interval == two.interval
    assert one.standard_error == two.standard_error


def refit_of(columns, name, estimand=None, features=BUMPS):
    seen = look(columns, features=features)
    (question,) = ask(
        seen.logs, seen.labels, {"new": policy("floats", "continuous")}, estimand=estimand or Estimand(),
        loggers=known("floats", "continuous"),
    )  # fmt: skip
    return FeatureRefit.prepare(seen.logs, seen.problem(question), make(ESTIMATORS[name]))


@pytest.mark.parametrize("estimand", [Estimand(), Estimand("discounted", 0.9)], ids=str)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_episode_once_is_the_log_itself(columns, name, estimand):
    if name == "logged-mean" and estimand.kind != "average":
        pytest.skip("the logged mean has no discount")
    refit = refit_of(columns, name, estimand)
    solved = refit.solve(np.ones(refit.n_episodes))
    found = evaluated(columns, name, estimand=estimand)
    assert solved.value == pytest.approx(found.value, abs=1e-9)
    if found.scores is not None:
        assert solved.scores.by_cluster == pytest.approx(found.scores, abs=1e-9)


@pytest.mark.parametrize("name", ["bch-pooled", "mwl", "lstdq", "wis-step", "logged-mean"])
def test_an_episode_that_counts_twice_is_one_that_was_logged_twice(columns, name):
    """The features are those of the whole log, so both are given the same."""
    fitted = Fixed(BUMPS.fit(columns["observation"], 0))
    refit = refit_of(columns, name, features=fitted)
    weight = np.ones(refit.n_episodes)
    weight[[0, 5]] = 2.0, 3.0
    keys = sorted({(str(p), int(e)) for p, e in zip(columns["policy_id"], columns["episode_id"], strict=True)})
    pieces = []
    for number, (label, episode) in enumerate(keys):
        rows = np.flatnonzero((columns["policy_id"] == label) & (columns["episode_id"] == episode))
        pieces += [(rows, episode + 100 * time) for time in range(int(weight[number]))]
    written = {name_: np.concatenate([values[rows] for rows, _ in pieces]) for name_, values in columns.items()}
    written["episode_id"] = np.concatenate([np.full(len(rows), episode) for rows, episode in pieces])
    target, loggers = policy("floats", "continuous"), known("floats", "continuous")
    found = mixope.evaluate(written, target, ESTIMATORS[name], features=fitted, loggers=loggers)
    assert refit.solve(weight).value == pytest.approx(found.value, rel=1e-7)


class Fixed:
    """A map that was fitted before."""

    def __init__(self, fitted):
        self.fitted = fitted

    def fit(self, observations, seed=0):
        return self.fitted


# --- lstdq over a horizon

S, A = 4, 2


def covered():
    generator = np.random.default_rng(17)
    model = random_model(generator, [0.4, 0.6, 0.0, 0.0], A, lambda s, t: (t == S - 1) & (s < S - 1))
    laws = generator.dirichlet([5, 5], size=(3, S))
    return simulate(model, list(laws[1:]), 80, 8, seed=3), laws[0]


def slow_recursion(columns, law, horizon):
    """q_t(s,a) is the mean of r + Σ π q_{t+1}(s′) over the rows of the pair; nothing follows an end."""
    pairs = {}
    for s, a, r, then, over in zip(
        *(columns[n] for n in ("observation", "action", "reward", "next_observation", "terminated")), strict=True
    ):
        pairs.setdefault((int(s), int(a)), []).append((float(r), int(then), bool(over)))
    q = np.zeros((S, A))
    for _ in range(horizon):
        value = (law * q).sum(axis=1)
        q = np.array(
            [
                [np.mean([r + (0.0 if over else value[then]) for r, then, over in pairs[s, a]]) for a in range(A)]
                if (s, 0) in pairs
                else [0.0] * A
                for s in range(S)
            ]
        )
    first = columns["observation"][columns["step"] == 0]
    return float((law * q).sum(axis=1)[first].mean()) / horizon


@pytest.mark.parametrize("horizon", [1, 2, 5, 30])
def test_lstdq_over_a_horizon_is_a_backward_recursion(horizon, monkeypatch):
    columns, law = covered()
    target = mixope.TabularPolicy(law)
    plain = mixope.evaluate(columns, target, "lstdq", horizon=horizon, features=OneHot())
    exact = mixope.evaluate(columns, target, "model", horizon=horizon)
    slow = slow_recursion(columns, law, horizon)
    assert plain.value == pytest.approx(slow, abs=1e-4)
    assert plain.value == pytest.approx(exact.value, abs=1e-4)
    monkeypatch.setattr(feature_value, "HORIZON_RIDGES", (1e-12,))
    without_ridge = mixope.evaluate(columns, target, "lstdq", horizon=horizon, features=OneHot())
    assert without_ridge.value == pytest.approx(slow, abs=1e-8)
    assert without_ridge.interval is None


def test_a_horizon_that_explodes_with_a_small_ridge_is_steadied_by_a_larger_one():
    """Four loggers far from the target: with λ = 1e-6 the recursion gives 47; from 1e-4 on all folds agree."""
    cut = continuous.simulate(linear_quadratic.linear_quadratic(), linear_quadratic.loggers(4), 100, 40, seed=3)
    found = mixope.evaluate(mixope.read(cut), linear_quadratic.target(), "lstdq", horizon=10)
    assert found.value == pytest.approx(-0.657, abs=0.25)
