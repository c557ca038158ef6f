"""The same contract where states have factors and some actions were never logged: the value model must not break it."""

from functools import cache

import numpy as np
import pytest

import mixope

ESTIMATORS = ("dr", "lstdq", "emp", "model", "sadl")
ESTIMANDS = {"average": {}, "discounted": {"gamma": 0.9}, "horizon": {"horizon": 6}}
ROWS, COLUMNS, ACTIONS = 4, 3, 3
SHIFT, SCALE = 50.0, 0.01


@cache
def columns():
    """A torus walk whose moves add up by factor; one action of every third state is never logged."""
    generator = np.random.default_rng(2)
    episodes, steps = 60, 12
    n = episodes * steps
    row, column = np.empty(n, dtype=int), np.empty(n, dtype=int)
    after_row, after_column, action = row.copy(), column.copy(), row.copy()
    for e in range(episodes):
        x, y = int(generator.integers(ROWS)), 0
        for t in range(steps):
            i = e * steps + t
            allowed = [a for a in range(ACTIONS) if (a, (x * COLUMNS + y) % 3) != (2, 0)]
            row[i], column[i], action[i] = x, y, generator.choice(allowed)
            moved = generator.random() < 0.8
            x = (x + int(moved and action[i] == 0)) % ROWS
            y = (y + int(moved and action[i] == 1)) % COLUMNS
            after_row[i], after_column[i] = x, y
    reward = row * 0.5 - column + action * 0.25 + generator.normal(scale=0.3, size=n)
    index = np.arange(n)
    return {
        "episode_id": index // steps,
        "step": index % steps,
        "observation.row": row,
        "observation.column": column,
        "action": action,
        "reward": reward,
        "next_observation.row": after_row,
        "next_observation.column": after_column,
        "terminated": np.zeros(n, dtype=bool),
        "policy_id": np.array(["left", "right"])[index // steps % 2],
    }


def target(names=(np.arange(ROWS), np.arange(COLUMNS))):
    law = np.random.default_rng(9).dirichlet([3, 3, 1], size=ROWS * COLUMNS)
    states = np.array([[x, y] for x in names[0] for y in names[1]])
    return mixope.TabularPolicy(law, states, factors=("row", "column"))


@cache
def solved(variant, estimand):
    base = dict(columns())
    policy = target()
    if variant == "shifted":
        base["reward"] = base["reward"] + SHIFT
    elif variant == "scaled":
        base["reward"] = base["reward"] * SCALE
    elif variant == "shuffled":
        order = np.random.default_rng(1).permutation(len(base["step"]))
        base = {name: values[order] for name, values in base.items()}
    elif variant == "factors swapped":
        base = dict(sorted(base.items(), key=lambda item: item[0]))
        base = {name: base[name] for name in reversed(list(base))}
    elif variant == "renamed":
        names = np.array(["n3", "n1", "n2", "n0"]), np.array(["c1", "c2", "c0"])
        for part in ("observation", "next_observation"):
            base[f"{part}.row"] = names[0][base[f"{part}.row"]]
            base[f"{part}.column"] = names[1][base[f"{part}.column"]]
        policy = target(names)
    names = [n for n in ESTIMATORS if estimand != "horizon" or n != "sadl"]
    if variant == "split":
        odd = base["episode_id"] % 2 == 1
        parts = [{name: values[mask] for name, values in base.items()} for mask in (odd, ~odd)]
        logs = mixope.read(*parts)
    else:
        logs = mixope.read(base)
    return {e.estimator: e for e in mixope.compare(logs, {"new": policy}, names, **ESTIMANDS[estimand])}


ALL = ("dr", "lstdq", "emp", "model")


def assert_errors_close(found, wanted, factor, tolerance):
    """Standard errors, or none in both (a plug-in value model has no score)."""
    assert (found.standard_error is None) == (wanted.standard_error is None), found.estimator
    if wanted.standard_error is not None:
        assert found.standard_error == pytest.approx(factor * wanted.standard_error, rel=tolerance), found.estimator
    else:
        assert found.no_interval_because


def test_there_is_something_to_cure():
    assert solved("as it is", "average")["emp"].uncovered_mass > 0.02
    assert abs(solved("as it is", "average")["dr"].value - solved("as it is", "average")["emp"].value) > 1e-4


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("variant", ["shuffled", "split", "factors swapped"])
def test_order_and_files_do_not_matter(variant, estimand):
    for name, found in solved(variant, estimand).items():
        wanted = solved("as it is", estimand)[name]
        assert found.value == pytest.approx(wanted.value, rel=1e-8, abs=1e-8), name
        assert_errors_close(found, wanted, 1.0, 1e-6)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_scaled_rewards_scale_the_answer(estimand):
    for name, found in solved("scaled", estimand).items():
        wanted = solved("as it is", estimand)[name]
        assert found.value == pytest.approx(SCALE * wanted.value, rel=1e-8), name
        assert_errors_close(found, wanted, SCALE, 1e-6)


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("name", ALL)
def test_shifted_rewards_shift_the_answer(name, estimand):
    found, wanted = solved("shifted", estimand)[name], solved("as it is", estimand)[name]
    assert found.value == pytest.approx(wanted.value + SHIFT, rel=1e-8)
    assert_errors_close(found, wanted, 1.0, 1e-5)


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("name", ALL)
def test_names_of_factor_levels_do_not_matter(name, estimand):
    found, wanted = solved("renamed", estimand)[name], solved("as it is", estimand)[name]
    assert found.value == pytest.approx(wanted.value, rel=1e-8)
