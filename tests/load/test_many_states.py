"""Many states: what is as long as the counts is held while it is needed, and once."""

import gc

import numpy as np
import pytest

import mixope
from mixope.estimators import make
from mixope.estimators.counts.flow import Flow
from mixope.requests.episodes import score_lookup
from mixope.requests.joined import Joined
from mixope.requests.problem import Problem
from mixope.session.session import count
from solving import solved

from .logs import chain_log


@pytest.fixture(scope="module")
def world():
    target, _, columns = chain_log(0, episodes=60, horizon=20, n_loggers=4)
    return mixope.TabularPolicy(target), columns


def flows():
    """How many are in memory; what nobody refers to is freed at once, without a search for cycles."""
    return sum(isinstance(found, Flow) for found in gc.get_objects())


@pytest.mark.parametrize("estimators", [["emp"], ["emp", "model", "sadl"]], ids=["one", "several"])
def test_no_flow_is_in_memory_when_the_last_scan_begins(world, estimators, monkeypatch):
    target, columns = world
    gc.collect()
    before, seen, join = flows(), [], Joined.of

    def watched(*given, **options):
        seen.append(flows())
        return join(*given, **options)

    monkeypatch.setattr(Joined, "of", watched)
    gc.disable()
    try:
        mixope.compare(columns, {"target": target}, estimators=estimators)
    finally:
        gc.enable()
    assert seen == [before]


def test_score_tables_are_joined_with_the_rows_without_a_copy(world):
    target, columns = world
    counted = count(columns)
    scores = solved(make("emp"), Problem(counted.transitions, target)).scores.by_cluster
    lookup, _ = score_lookup(counted.transitions, counted.groups, counted.logs.schema, [scores])
    (column,) = lookup.table.column("c0_reward").chunks
    assert np.shares_memory(column.to_numpy(), scores)
