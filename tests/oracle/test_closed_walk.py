"""Closed walks: the last s′ is the first s, so s and s′ have equal counts and several estimators coincide exactly."""

import numpy as np
import pytest

import mixope
from mixope.estimators import state_ratio

from .worlds import closed_walk, counted_policy, random_policy

S, A = 6, 2
TIGHT = {"rel": 0, "abs": 1e-9}


def factored(columns):
    columns = dict(columns)
    for name in ("observation", "next_observation"):
        ids = columns.pop(name)
        columns |= {f"{name}.row": ids // 3, f"{name}.column": ids % 3}
    return columns


def factored_policy(table):
    ids = np.arange(S)
    return mixope.TabularPolicy(table, np.stack([ids // 3, ids % 3], axis=1), factors=("row", "column"))


@pytest.mark.parametrize("seed", range(4))
def test_the_behaviour_itself_earns_the_logged_mean_with_weights_of_one(seed):
    columns = closed_walk(seed, episodes=5)
    target = mixope.TabularPolicy(counted_policy(columns, S, A))
    names = ("emp", "emp-single", "kl-emp", "sadl", "mwl", "dualdice", "model", "lstdq", "dr")
    for result in mixope.compare(mixope.read(columns), {"old": target}, names):
        assert result.value == pytest.approx(columns["reward"].mean(), **TIGHT), result.estimator
        assert result.effective_sample_size == pytest.approx(len(columns["reward"]), rel=1e-9), result.estimator
        assert result.outside_mass == 0


@pytest.mark.parametrize("seed", range(4))
def test_emp_model_and_dr_agree(seed):
    columns = closed_walk(seed)
    target = random_policy(seed, S, A)
    plain = mixope.compare(
        mixope.read(columns), {"new": mixope.TabularPolicy(target)}, ["emp", "model", "dr", "sadl", "mwl", "dualdice"]
    )
    structured = mixope.compare(
        mixope.read(factored(columns)), {"new": factored_policy(target)}, ["emp", "model", "dr"]
    )
    for estimate in (*plain, *structured):
        assert estimate.value == pytest.approx(plain["new", "emp"].value, **TIGHT), estimate.estimator


@pytest.mark.parametrize("seed", range(4))
def test_the_paper_form_agrees_where_its_assumption_holds(seed):
    """s and s′ have the same counts: both forms have one solution, up to the regulariser of the quadratic program."""
    columns, target = closed_walk(seed, steps=3000), mixope.TabularPolicy(random_policy(seed, S, A))
    general = mixope.evaluate(mixope.read(columns), target, "emp")
    paper = mixope.evaluate(mixope.read(columns), target, state_ratio.emp(form="paper"))
    assert paper.value == pytest.approx(general.value, abs=2e-3)


@pytest.mark.parametrize("gamma", [0.5, 0.95])
def test_dualdice_is_mwl_for_a_discounted_value_also_where_mass_leaks(gamma):
    columns = closed_walk(7, steps=60)
    keep = ~((columns["observation"] == 2) & (columns["action"] == 1))
    part = {name: values[keep] for name, values in columns.items()}
    part["episode_id"] = np.arange(keep.sum())
    part["step"] = np.zeros(keep.sum(), dtype=int)
    target = {"new": mixope.TabularPolicy(random_policy(7, S, A))}
    table = mixope.compare(mixope.read(part), target, ["mwl", "dualdice"], gamma=gamma)
    assert table["new", "mwl"].uncovered_mass > 1e-4
    assert table["new", "mwl"].value == pytest.approx(table["new", "dualdice"].value, **TIGHT)
