"""The unit of a column is nobody's business: states and actions in other units have the same value and verdict.

And a column with values that stand for something else ends in an answer or in words, never in an error of a library.
"""

from __future__ import annotations

import contextlib
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import mixope
from mixope.base.errors import MixopeError, MixopeWarning
from mixope.behaviours import ClassifierMixture, HeteroscedasticGaussian
from mixope.estimators import REGISTRY
from mixope.estimators.asking import answered
from mixope.estimators.learned import LearnedValue
from mixope.features import NormalisedBumps, Standardise
from mixope.features.quadratic import Quadratic
from mixope.features.standard import FAR
from mixope.policies import CallablePolicy
from mixope.requests.sentinels import sentinels_of
from mixope.solvers.fitted_q import FittedQSettings
from mixope.solvers.linear import solve_ratio

N, STEPS = 24, 12
FACTORS = (1e-6, 1e-3, 1e2, 1e6)


def drawn(discrete: bool, seed: int = 1) -> dict[str, np.ndarray]:
    """Rows of a small linear world with two numbers and a category."""
    draw = np.random.default_rng(seed)
    state, group = draw.normal(size=(N, 2)), draw.integers(3, size=N)
    found: dict[str, list[np.ndarray]] = {name: [] for name in ("x", "group", "a", "r", "after", "later")}
    for _ in range(STEPS):
        if discrete:
            action = (draw.random(N) < 1 / (1 + np.exp(-state[:, 0]))).astype(int)
        else:
            action = 0.5 * state[:, 0] + draw.normal(size=N)
        reward = 0.5 * state[:, 0] + 0.3 * action * (group == 1) + 0.1 * draw.normal(size=N)
        after = 0.6 * state + 0.3 * action[:, None] + 0.5 * draw.normal(size=state.shape)
        later = np.where(draw.random(N) < 0.8, group, draw.integers(3, size=N))
        for name, values in zip(found, (state, group, action, reward, after, later), strict=True):
            found[name].append(values)
        state, group = after, later
    return {name: np.concatenate(values) for name, values in found.items()}


def logs_of(rows: dict[str, np.ndarray], kind: str, unit: float, action_unit: float = 1.0) -> mixope.Logs:
    """The rows with the first number, and actions, in other units."""
    place = np.arange(N * STEPS)

    def states(numbers: np.ndarray, groups: np.ndarray) -> object:
        scaled = numbers * [unit, 1.0]
        if kind == "vectors":
            return scaled
        return {"x": scaled[:, 0], "y": scaled[:, 1], "group": np.array(["a", "b", "c"])[groups]}

    action = rows["a"] if rows["a"].dtype.kind == "i" else rows["a"] * action_unit
    return mixope.Logs.from_arrays(
        observation=states(rows["x"], rows["group"]),
        next_observation=states(rows["after"], rows["later"]),
        action=action,
        reward=rows["r"],
        episode_id=place % N,
        step=place // N,
        truncated=place // N == STEPS - 1,
        roles={"group": "category"} if kind == "mixed" else None,
    )


def target_of(kind: str, discrete: bool, unit: float, action_unit: float = 1.0) -> object:
    """The same policy in these units."""

    def first(states: np.ndarray) -> np.ndarray:
        return np.asarray(states["x"] if kind == "mixed" else states[:, 0]) / unit

    def law(states: np.ndarray) -> np.ndarray:
        chance = 1 / (1 + np.exp(-0.5 - first(states)))
        return np.stack([1 - chance, chance], axis=1)

    if discrete:
        return CallablePolicy(law, [0, 1])
    return mixope.GaussianPolicy(lambda states: action_unit * (0.2 + 0.5 * first(states)), action_unit)


def estimator_of(name: str, discrete: bool) -> object:
    """Cheap, where the default would fit several models and choose between them."""
    from sklearn.naive_bayes import GaussianNB

    if name == "fqe":
        return LearnedValue(FittedQSettings(width=16, renewals=4, steps=4, batch=32), jobs=1)
    if name in ("emp", "emp-single", "kl-emp", "dr", "kernel"):
        behaviour = (
            ClassifierMixture(GaussianNB(var_smoothing=0.0)) if discrete else HeteroscedasticGaussian(Standardise())
        )
        return REGISTRY[name].make(behaviour=behaviour)
    return name


def answer(name: str, kind: str, discrete: bool, unit: float = 1.0, action_unit: float = 1.0) -> object:
    """Value, standard error and verdict; or what kind of refusal it is."""
    logs = logs_of(drawn(discrete), kind, unit, action_unit)
    target = target_of(kind, discrete, unit, action_unit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixopeWarning)
        try:
            found = mixope.evaluate(logs, target, estimator_of(name, discrete), estimand="discounted", gamma=0.8)
        except MixopeError as refusal:
            return type(refusal)
    low, high = (found.interval.low, found.interval.high) if found.interval else (0.0, 0.0)
    statuses = [(check.name, check.status) for check in found.diagnostics]
    return np.array([found.value, low, high]), found.verdict, statuses


NAMES = [name for name in REGISTRY if name not in ("emp-neural", "model", "opt-emp", "latent-classes")]


@pytest.mark.long
@pytest.mark.parametrize("unit", FACTORS)
@pytest.mark.parametrize(("kind", "discrete"), [("vectors", True), ("vectors", False), ("mixed", True)])
@pytest.mark.parametrize("name", NAMES)
def test_the_unit_of_a_column_changes_no_value_and_no_verdict(
    name: str, kind: str, discrete: bool, unit: float
) -> None:
    compare(answer(name, kind, discrete), answer(name, kind, discrete, unit))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize(("kind", "discrete"), [("vectors", False), ("mixed", True)])
@pytest.mark.parametrize("name", ["dr", "sadl"])
def test_neither_at_the_ends_of_the_range(name: str, kind: str, discrete: bool, unit: float) -> None:
    compare(answer(name, kind, discrete), answer(name, kind, discrete, unit))


@pytest.mark.parametrize("unit", FACTORS)
@pytest.mark.parametrize("name", ["dr", "emp", "dualdice", "wis-step", "sadl"])
def test_the_unit_of_an_action_changes_no_value_and_no_verdict(name: str, unit: float) -> None:
    compare(answer(name, "vectors", False), answer(name, "vectors", False, 1.0, unit))


def compare(before: object, after: object) -> None:
    """Alike up to rounding; a refusal is the same refusal."""
    if isinstance(before, type):
        assert before is after
        return
    assert isinstance(before, tuple)
    assert isinstance(after, tuple)
    np.testing.assert_allclose(after[0], before[0], rtol=1e-6, atol=1e-6)
    assert after[1:] == before[1:]


# --- values that stand for something else


def spoilt(share: float) -> dict[str, np.ndarray]:
    """Real actions; the first number was not always measured."""
    rows = drawn(discrete=False)
    bad = np.random.default_rng(5).random(len(rows["r"])) < share
    rows["x"][bad, 0] = -999
    rows["after"][:-N][bad[N:], 0] = -999
    return rows


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_a_value_that_stands_for_something_else_is_named_with_column_and_share(share: float) -> None:
    logs = logs_of(spoilt(share), "vectors", 1.0)
    said = r"observation.0 is -999 in \d+\.\d+% of the rows"
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with contextlib.suppress(MixopeError):  # a refusal in words is an answer; no other error is
            mixope.evaluate(logs, target_of("vectors", False, 1.0), "dr", estimand="discounted", gamma=0.95)
    assert [str(one.message) for one in heard if "-999" in str(one.message)]
    with pytest.warns(MixopeWarning, match=said):
        found = mixope.evaluate(logs, target_of("vectors", False, 1.0), "emp", estimand="discounted", gamma=0.95)
    assert [check.status for check in found.diagnostics if check.name == "sentinel states"] == ["warn"]
    assert found.verdict != "trustworthy"


def test_healthy_columns_have_no_such_value() -> None:
    for seed in range(50):
        draw = np.random.default_rng(seed)
        states = np.stack(
            [
                draw.normal(size=500),
                np.exp(2 * draw.normal(size=500)),
                draw.standard_t(2, 500),
                draw.poisson(3, 500),
                draw.geometric(0.1, 500),
                draw.random(500) < 0.01,
                draw.integers(1000, size=500),
            ],
            axis=1,
        )
        assert not sentinels_of(SimpleNamespace(observation=states, roles=None))


def test_few_values_far_away_do_not_make_all_others_one_point() -> None:
    draw = np.random.default_rng(3)
    plain = draw.normal(size=(500, 1))
    spoilt = np.where(draw.random((500, 1)) < 0.05, -999.0, plain)
    for features in (Standardise(), Quadratic(), NormalisedBumps(20)):
        found = features.fit(spoilt).transform(spoilt)
        kept = found[spoilt[:, 0] > -999]
        assert np.isfinite(found).all()
        assert kept.std(axis=0).max() > 0.05
    held = Standardise().fit(spoilt)
    first, third = np.quantile(spoilt, (0.25, 0.75))
    assert held.low[0] == pytest.approx(first - FAR * (third - first))


def test_a_ridge_is_never_less_than_rounding() -> None:
    """Ratios of 1e8 made a matrix of 1e16, beside which an absolute ridge of 1e-6 is nothing."""
    draw = np.random.default_rng(2)
    phi = draw.random((200, 8))
    gram = phi.T @ phi / 200
    system = gram - 1e9 * np.outer(phi[0], phi[0]) * (1 + 1e-9)
    theta, solved, _ = solve_ratio(system, phi.mean(axis=0), phi.mean(axis=0), gram)
    assert np.isfinite(theta).all()
    assert np.isfinite(solved.residual)


def test_equations_that_cannot_be_solved_are_refused_in_words() -> None:
    def start() -> object:
        return np.linalg.solve(np.zeros((2, 2)), np.ones(2))

    with pytest.raises(MixopeError, match="cannot be solved"):
        answered(start, lambda requests: ())
