"""The law of rewards at knots: same rows, same mean, never less spread, exact where rewards lie on knots."""

import numpy as np
import pytest

from mixope.engines import embedded, memory
from mixope.requests.quantities import above, quantity
from mixope.requests.spread import KNOTS, Spread, useful_knots
from mixope.session.session import count


def log(reward, seed=0):
    """Two states and two actions at random with these rewards."""
    n = len(reward)
    generator = np.random.default_rng(seed)
    state = generator.integers(0, 2, n)
    return {
        "episode_id": np.arange(n) // 5,
        "step": np.arange(n) % 5,
        "observation": state,
        "action": generator.integers(0, 2, n),
        "reward": reward,
        "next_observation": generator.integers(0, 2, n),
    }


def laws(columns, engine=None):
    """Of every transition the rewards as logged, and the law at knots as rewards and rows."""
    seen = count(columns, engine)
    rows, found = seen.transitions, seen.reward_spread()
    law = found.laws(rows.rows, rows.reward, rows.lowest, rows.highest)
    for g in range(rows.n_groups):
        mine = np.ones(len(columns["reward"]), dtype=bool)
        for name, code in (("observation", rows.state), ("action", rows.action), ("next_observation", rows.next_state)):
            mine &= columns[name] == code[g]
        yield columns["reward"][mine], law.reward[law.group == g], law.rows[law.group == g]


def above_mean(values, weights, least):
    return float(weights @ np.maximum(values - least, 0.0))


@pytest.mark.parametrize("engine", [memory.MemoryEngine(), embedded.EmbeddedEngine()], ids=["memory", "embedded"])
def test_rows_and_means_are_kept_and_the_spread_is_hardly_more(engine):
    columns = log(np.random.default_rng(1).normal(size=2000))
    for logged, at, rows in laws(columns, engine):
        assert rows.sum() == pytest.approx(len(logged))
        assert rows @ at / rows.sum() == pytest.approx(logged.mean())
        assert (at.min(), at.max()) == pytest.approx((logged.min(), logged.max()))
        for least in np.linspace(-3, 3, 25):
            mine, theirs = above_mean(logged, np.ones(len(logged)), least), above_mean(at, rows, least)
            assert mine <= theirs + 1e-9 * len(logged)
            assert theirs - mine <= 0.06 * len(logged)


def test_a_few_values_that_are_the_least_or_the_most_somewhere_come_back_as_they_are():
    generator = np.random.default_rng(2)
    columns = log(generator.choice([-11.0, -1.0, 1.0, 100.0], 600))
    inner = generator.choice([-1.0, 1.0], 600)  # all that is earned in state 0
    columns["reward"] = np.where(columns["observation"] == 0, inner, columns["reward"])
    for logged, at, rows in laws(columns):
        values, often = np.unique(logged, return_counts=True)
        np.testing.assert_allclose(at, values)
        np.testing.assert_allclose(rows, often)


def test_rewards_that_do_not_vary_cost_no_scan_and_are_one_knot():
    columns = log(np.zeros(50))
    columns["reward"] = columns["action"] * 1.5
    assert len(useful_knots(count(columns).transitions)) == 0
    for logged, at, rows in laws(columns):
        assert at.tolist() == [logged[0]]
        assert rows.tolist() == [len(logged)]


def test_without_knots_rewards_lie_at_both_ends():
    law = Spread.unknown(1).laws(np.array([4.0]), np.array([2.0]), np.array([0.0]), np.array([2.0]))
    np.testing.assert_allclose(law.reward, [0.0, 2.0])
    np.testing.assert_allclose(law.rows, [3.0, 1.0])


def test_knots_are_few():
    assert len(useful_knots(count(log(np.random.default_rng(3).lognormal(size=3000))).transitions)) <= 2 * KNOTS


def test_what_is_above_is_the_same_in_numpy_and_sql():
    import duckdb

    found = quantity(above(-0.25))
    values = [-3.0, -0.25, 0.0, 7.5]
    asked = duckdb.sql(f"SELECT {found.sql} FROM (SELECT unnest({values}::DOUBLE[]) AS reward)").fetchall()
    assert [row[0] for row in asked] == found.of(np.array(values)).tolist() == [0.0, 0.0, 0.25, 7.75]
    missing = duckdb.sql(f"SELECT {found.sql} FROM (SELECT NULL::DOUBLE AS reward)").fetchall()
    assert np.isnan(missing[0][0])
