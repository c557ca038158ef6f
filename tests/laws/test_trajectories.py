"""Trajectories are a monoid up to the order of episodes, and their ratios equal a slow loop."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixope.engines import MemoryEngine, reduce_fragments
from mixope.statistics.grouping import Lookup
from mixope.statistics.trajectories import COLUMNS, RatioColumns, Trajectories, merge_all, trajectories
from mixope.statistics.transitions import transition_keys

from .small_logs import counted, raw_columns, read

BALANCE = RatioColumns("target", ("one", "two"), (0.25, 0.75))
OWN = RatioColumns("target", ("one",), (1.0,))


def log_probabilities(logs, seed=0, impossible=True):
    """A lookup of made-up log-probabilities of the target and two loggers; the target may exclude some."""
    import pyarrow as pa

    sums, transitions = counted(logs)
    generator = np.random.default_rng(seed)
    table = sums.table.select(list(transition_keys(logs.schema)))
    for name in ("target", "one", "two"):
        values = np.log(generator.integers(1, 8, size=transitions.n_groups) / 8)
        if name == "target" and impossible:
            values[generator.random(len(values)) < 0.2] = -np.inf
        table = table.append_column(name, pa.array(values))
    return Lookup(table, transition_keys(logs.schema))


def fragments(logs, columns, lookup, size):
    engine = MemoryEngine(fragment_rows=size)
    return list(
        engine.map_fragments(logs, lambda rows: trajectories(rows, columns), COLUMNS, lookup=lookup, by_episode=True)
    )


def episodes(data):
    """The episodes as a sorted list of plain values: equality up to order."""
    ends = np.cumsum(data.length)
    return sorted(
        (tuple(np.round(data.log_weight[e - n : e], 9)), tuple(data.reward[e - n : e]), bool(t))
        for n, e, t in zip(data.length, ends, data.terminated, strict=True)
    )


ratio_kinds = pytest.mark.parametrize("ratio", [BALANCE, OWN], ids=["balance", "own"])


@ratio_kinds
@given(columns=raw_columns(), size=st.integers(1, 6))
def test_the_laws_hold(ratio, columns, size):
    logs = read(columns)
    pieces = [part for _, part in fragments(logs, ratio, log_probabilities(logs), size)]
    whole, zero = merge_all(pieces), Trajectories()
    a, b, c = pieces[0], merge_all(pieces[1:2]), merge_all(pieces[2:])
    for left, right in [(zero.merge(a), a), (a.merge(zero), a), (a.merge(b).merge(c), a.merge(b.merge(c)))]:
        for name in ("log_weight", "reward", "length", "terminated"):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    assert episodes(a.merge(b)) == episodes(b.merge(a))
    assert episodes(a.merge(b).merge(c)) == episodes(whole)
    assert (whole.n_rows, whole.n_episodes) == (len(columns["step"]), len(set(columns["episode_id"].tolist())))


@ratio_kinds
@given(columns=raw_columns())
def test_cutting_into_fragments_changes_nothing(ratio, columns):
    logs = read(columns)
    lookup = log_probabilities(logs)
    wanted = reduce_fragments(iter(fragments(logs, ratio, lookup, 10**6)), Trajectories(), len(columns["step"]))
    for size in (1, 2, 3):
        found = reduce_fragments(iter(fragments(logs, ratio, lookup, size)), Trajectories(), len(columns["step"]))
        assert episodes(found) == episodes(wanted)


@given(columns=raw_columns())
def test_ratios_equal_a_slow_loop(columns):
    logs = read(columns)
    lookup = log_probabilities(logs)
    joined = {tuple(row[k] for k in lookup.keys): row for row in lookup.table.to_pylist()}
    by_episode = {}
    for row in sorted(logs.table().to_pylist(), key=lambda row: row["step"]):
        by_episode.setdefault((row["policy_id"], row["episode_id"]), []).append(row)
    wanted = []
    for rows in by_episode.values():
        top, one, two, weights = 1.0, 1.0, 1.0, []
        for row in rows:
            line = joined[tuple(row[k] for k in lookup.keys)]
            top, one, two = (x * math.exp(line[k]) for x, k in ((top, "target"), (one, "one"), (two, "two")))
            weights.append(math.log(top / (0.25 * one + 0.75 * two)) if top > 0 else -math.inf)
        wanted.append((tuple(np.round(weights, 9)), tuple(r["reward"] for r in rows), rows[-1]["terminated"]))
    found = merge_all([part for _, part in fragments(logs, BALANCE, lookup, 4)])
    got = episodes(found)
    for (left, *rest), (right, *others) in zip(got, sorted(wanted), strict=True):
        assert rest == others
        np.testing.assert_allclose(left, right, atol=1e-8)


@given(columns=raw_columns().filter(lambda c: "action_prob" in c))
def test_recorded_propensities_are_the_denominator_where_none_is_named(columns):
    logs = read(columns)
    lookup = log_probabilities(logs, impossible=False)
    found = merge_all([part for _, part in fragments(logs, RatioColumns("target"), lookup, 3)])
    joined = {tuple(row[k] for k in lookup.keys): row["target"] for row in lookup.table.to_pylist()}
    total = sum(joined[tuple(r[k] for k in lookup.keys)] - math.log(r["propensity"]) for r in logs.table().to_pylist())
    assert float(found.last_log_weight.sum()) == pytest.approx(total, abs=1e-9)


def test_zero_has_no_episodes():
    zero = Trajectories()
    assert (zero.n_rows, zero.n_episodes) == (0, 0)
    assert merge_all([]).n_episodes == 0


def test_zero_has_no_first_rows():
    assert len(Trajectories().first) == 0
    assert len(Trajectories().last_log_weight) == 0


def test_strangers_refuse_to_merge():
    columns = {
        "episode_id": np.array([0, 1]),
        "step": np.zeros(2, dtype=int),
        "observation": np.array([0, 1]),
        "action": np.array([0, 1]),
        "reward": np.ones(2),
        "next_observation": np.array([1, 0]),
        "terminated": np.zeros(2, dtype=bool),
        "policy_id": np.full(2, "only"),
    }
    logs = read(columns)
    one, two = (merge_all([p for _, p in fragments(logs, r, log_probabilities(logs), 9)]) for r in (BALANCE, OWN))
    with pytest.raises(Exception, match="cannot be merged"):
        one.merge(two)
