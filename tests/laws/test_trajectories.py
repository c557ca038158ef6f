"""Whole episodes in step order: their ratios equal a slow loop, in whatever pieces the rows came."""

import math

import numpy as np
import pytest
from hypothesis import given

from mixope.engines import MemoryEngine
from mixope.requests.trajectories import NumberedSteps, RatioColumns, Trajectories
from mixope.session.session import count

from .small_logs import raw_columns, read


def log_probabilities(seen, seed=0, impossible=True):
    """Made-up log-probabilities of the target and two loggers by transition; the target may exclude some."""
    generator = np.random.default_rng(seed)
    target, one, two = np.log(generator.integers(1, 8, size=(3, seen.transitions.n_groups)) / 8)
    if impossible:
        target[generator.random(len(target)) < 0.2] = -np.inf
    return target, one, two


RATIOS = {
    "balance": lambda target, one, two: RatioColumns(target, (one, two), (0.25, 0.75)),
    "own": lambda target, one, two: RatioColumns(target, (one,), (1.0,)),
}


def weighed(seen, ratio, rows_per_fragment=10**6):
    request = NumberedSteps(seen.numbers)
    (found,) = MemoryEngine(rows_per_fragment, threads=1).scan(seen.logs, [request])
    return found.in_key_order().weighed(ratio)


@pytest.mark.parametrize("kind", RATIOS)
@given(columns=raw_columns())
def test_cutting_into_fragments_changes_nothing(kind, columns):
    seen = count(read(columns))
    ratio = RATIOS[kind](*log_probabilities(seen))
    wanted = weighed(seen, ratio)
    assert (wanted.n_rows, wanted.n_episodes) == (len(columns["step"]), len(set(columns["episode_id"].tolist())))
    for size in (1, 2, 3):
        found = weighed(seen, ratio, size)
        for name in ("log_weight", "reward", "length", "terminated"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
        assert found.keys.equals(wanted.keys)


@pytest.mark.parametrize("kind", RATIOS)
@given(columns=raw_columns())
def test_ratios_equal_a_slow_loop(kind, columns):
    seen = count(read(columns))
    laws = log_probabilities(seen)
    found = weighed(seen, RATIOS[kind](*laws), 4)
    number = _numbers(seen)
    by_episode = {}
    for row in sorted(seen.logs.table().to_pylist(), key=lambda row: row["step"]):
        by_episode.setdefault((row["source"], row["policy_id"], row["episode_id"]), []).append(row)
    ends = np.cumsum(found.length)
    for rows, n, end, last in zip(
        (by_episode[key] for key in sorted(by_episode)), found.length, ends, found.terminated, strict=True
    ):
        top, one, two, weights = 1.0, 1.0, 1.0, []
        for row in rows:
            top, one, two = (x * math.exp(law[number(row)]) for x, law in zip((top, one, two), laws, strict=True))
            base = 0.25 * one + 0.75 * two if kind == "balance" else one
            weights.append(math.log(top / base) if top > 0 else -math.inf)
        np.testing.assert_allclose(found.log_weight[end - n : end], weights, atol=1e-9)
        assert found.reward[end - n : end].tolist() == [row["reward"] for row in rows]
        assert last == rows[-1]["terminated"]


def _numbers(seen):
    """The number of a row's transition, by a dictionary."""
    lookup = seen.numbers
    lines = {tuple(line[k] for k in lookup.keys): line["transition"] for line in lookup.table.to_pylist()}
    return lambda row: lines[tuple(row[k] for k in lookup.keys)]


@given(columns=raw_columns().filter(lambda c: "action_prob" in c))
def test_recorded_propensities_are_the_denominator_where_none_is_named(columns):
    seen = count(read(columns))
    target, _, _ = log_probabilities(seen, impossible=False)
    found = weighed(seen, RatioColumns(target), 3)
    number = _numbers(seen)
    total = sum(target[number(row)] - math.log(row["propensity"]) for row in seen.logs.table().to_pylist())
    assert float(found.last_log_weight.sum()) == pytest.approx(total, abs=1e-9)


def test_no_rows_have_no_episodes():
    zero = Trajectories()
    assert (zero.n_rows, zero.n_episodes, len(zero.first), len(zero.last_log_weight)) == (0, 0, 0, 0)
