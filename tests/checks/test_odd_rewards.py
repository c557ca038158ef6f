"""Codes, limits and single rows among rewards are warned of; what worlds give is not."""

import numpy as np
import pytest

import mixope
from mixope.checks.odd_rewards import rewards_are_real
from mixope.requests.odd_rewards import odd_rewards

N = 4000
NOWHERE = np.zeros(N, dtype=bool)
ODD = {"sentinel rewards", "rewards at a limit", "dominant rewards"}


def scattered(seed, share):
    return np.random.default_rng([seed, 7]).random(N) < share


def found(reward, ended=NOWHERE, placed=False):
    return {check.name: check for check in rewards_are_real(odd_rewards(reward, ended, lambda rows: placed))}


def measured(seed=0):
    return np.clip(np.random.default_rng(seed).normal(size=N), -3, 3.5)


def with_value(value, share, reward=None, seed=0):
    return np.where(scattered(seed, share), value, measured(seed) if reward is None else reward)


@pytest.mark.parametrize(
    ("value", "share"), [(-999.0, 0.01), (-1.0, 0.1), (-9.0, 0.02), (9999.0, 0.005), (-99.0, 0.01), (0.5, 0.05)]
)
def test_a_code_among_measured_rewards_is_named(value, share):
    check = found(with_value(value, share))["sentinel rewards"]
    assert check.status == "warn"
    assert check.value == pytest.approx(scattered(0, share).mean())
    assert f"exactly {value:g}" in check.sentence


@pytest.mark.parametrize("value", [-999.0, 9999.0, 32767.0, -2147483648.0])
def test_a_code_far_beyond_whole_numbers_is_named(value):
    whole = np.random.default_rng(1).integers(-3, 4, N).astype(float)
    assert found(with_value(value, 0.01, whole), placed=True)["sentinel rewards"].status == "warn"


def counts(low=0, high=101):
    return np.random.default_rng(1).integers(low, high, N).astype(float)


@pytest.mark.parametrize(
    ("value", "whole"),
    [(-999.0, counts()), (-9999.0, counts(-2000, 3000)), (-99.0, counts(-9, 10)), (-1e6, counts()), (5e5, counts())],
)
def test_a_code_that_stands_alone_is_named_though_others_are_large(value, whole):
    """Ten times as large as all others is more than −999 is among rewards of up to 100."""
    assert found(with_value(value, 0.01, whole))["sentinel rewards"].value == pytest.approx(scattered(0, 0.01).mean())
    assert not found(with_value(value, 0.01, whole), placed=True)


def test_two_codes_side_by_side_are_none_of_the_others():
    codes = np.random.default_rng(2).choice([-999.0, -998.0], N)
    assert found(with_value(codes, 0.01, counts()))["sentinel rewards"].status == "warn"


def test_a_code_is_looked_for_among_hundreds_of_numbers_that_come_more_often():
    assert found(with_value(32767.0, 0.004, counts(-100, 101)))["sentinel rewards"].status == "warn"


def test_a_value_of_a_place_or_of_an_end_is_the_worlds():
    rows = scattered(0, 0.02)
    assert not found(with_value(-100.0, 0.02), ended=rows)
    assert not found(with_value(-1.0, 0.02), placed=True)


def test_one_row_that_outweighs_all_others_is_named():
    reward = measured()
    reward[17] = 1e6
    check = found(reward)["dominant rewards"]
    assert (check.value, check.status) == (1.0, "warn")
    assert "1 row makes" in check.sentence


@pytest.mark.parametrize("sides", ["high", "low", "both"])
def test_rewards_that_were_cut_off_are_named(sides):
    reward = measured()
    low, high = np.quantile(reward, [0.2, 0.8])
    cut = np.clip(reward, low if sides != "high" else None, high if sides != "low" else None)
    check = found(cut)["rewards at a limit"]
    assert check.status == "warn"
    assert check.value == pytest.approx(0.2, abs=0.01)


def healthy():
    draw = np.random.default_rng(5)
    buys = draw.random(N) < 0.1
    yield "zeros and ones", (draw.random(N) < 0.1).astype(float)
    yield "a step costs 1, a goal earns 20, a fault costs 11", draw.choice([-1.0, 20.0, -11.0], N, p=[0.9, 0.06, 0.04])
    yield "whole numbers", draw.integers(-5, 6, N).astype(float)
    yield "a goal of 100", np.where(draw.random(N) < 0.01, 100.0, -1.0)
    yield "purchases of any amount", np.where(buys, draw.lognormal(3, 1, N), 0.0)
    yield "purchases at one price", np.where(buys, 30.0, 0.0)
    yield "prices in cents, 9.99 most of all", np.where(buys, draw.choice([9.99, 19.99, 4.5, 99.0], N), 0.0)
    yield "prices of round numbers less one", draw.choice([0.0, 99.0, 199.0, 499.0, 999.0], N, p=[0.9, *[0.025] * 4])
    yield (
        "refunds of round numbers less one",
        draw.choice([-99.0, 0.0, 19.0, 49.0, 99.0], N, p=[0.01, 0.9, *[0.03] * 3]),
    )
    yield "a fault costs 99", draw.choice([0.0, -1.0, -99.0], N, p=[0.5, 0.48, 0.02])
    yield "amounts in whole numbers", np.where(buys, np.round(draw.lognormal(3, 1.5, N)), 0.0)
    yield "lognormal amounts", draw.lognormal(3, 2, N)
    yield "measured", draw.normal(size=N)
    yield "never above nothing", np.minimum(draw.normal(size=N), 0.0)
    yield "a tolerance between 0 and 1", np.minimum(draw.random(N) * 1.5, 1.0)
    yield "a cost per step and something rare", np.where(buys, draw.lognormal(2, 1, N), -1.0)
    yield "two purchases in all", np.where(np.arange(N) < 2, 30.0, 0.0)
    yield "nothing", np.zeros(N)
    yield "a dollar for every step", np.ones(N)


@pytest.mark.parametrize(("name", "reward"), list(healthy()))
def test_what_worlds_give_is_left_alone(name, reward):
    assert not found(reward), name


def log(reward, vectors, seed=0, steps=20):
    """A coin decides where every step leads; the reward of state 0, or of a first coordinate above 1, is all −1."""
    draw, n = np.random.default_rng(seed), len(reward)
    states = draw.normal(size=(n, 2)) if vectors else draw.integers(0, 5, n)
    after = draw.normal(size=(n, 2)) if vectors else draw.integers(0, 5, n)
    step = np.arange(n) % steps
    return {
        "episode_id": np.arange(n) // steps,
        "step": step,
        "observation": states,
        "action": draw.integers(0, 2, n),
        "reward": reward,
        "next_observation": after,
        "truncated": step == steps - 1,
    }


UNIFORM = mixope.CallablePolicy(lambda states: np.full((len(states), 2), 0.5), actions=[0, 1])


@pytest.mark.parametrize("vectors", [False, True])
def test_logs_of_every_kind_are_judged_by_where_a_value_stands(vectors):
    """The same −1 in a tenth of the rows, at random, or wherever the state says so."""
    odd = log(with_value(-1.0, 0.1), vectors)
    told = {d.name: d for d in mixope.evaluate(odd, UNIFORM, "emp").diagnostics}
    assert told["sentinel rewards"].status == "warn"
    world = log(measured(), vectors)
    here = world["observation"][:, 0] > 1.0 if vectors else world["observation"] == 0
    world["reward"] = np.where(here, -1.0, world["reward"])
    assert not ODD & {d.name for d in mixope.evaluate(world, UNIFORM, "emp").diagnostics}


@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_engines_see_the_same_code(engine):
    found = mixope.evaluate(log(with_value(-999.0, 0.01), False), UNIFORM, engine=engine)
    check = {d.name: d for d in found.diagnostics}["sentinel rewards"]
    assert check.value == pytest.approx(scattered(0, 0.01).mean())
    assert found.verdict != "trustworthy"
