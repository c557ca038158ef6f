"""Episode sums: scores equal a loop, and the structure of an episode is judged without sorting it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.small_logs import counted, episode_grouping, raw_columns, read
from mixope.engines import MemoryEngine
from mixope.requests.episodes import cluster_scores, episode_sums
from mixope.requests.transitions import BASIS


def summed(logs, seed=0):
    lookup, grouping = episode_grouping(logs, seed)
    _, transitions = counted(logs)
    groups = MemoryEngine().group_sums(logs, grouping, lookup)
    return episode_sums(groups, transitions, logs.step_base, seed), groups, lookup


@given(columns=raw_columns())
@pytest.mark.long
def test_scores_equal_a_loop_over_rows(columns):
    logs = read(columns)
    _, groups, lookup = summed(logs)
    joined = {tuple(row[k] for k in lookup.keys): row for row in lookup.table.to_pylist()}
    wanted = {}
    for row in logs.table().to_pylist():
        inverse = 1 / row["propensity"] if logs.schema.has_propensity else 0.0
        basis = (1.0, row["reward"], inverse, inverse * row["reward"], float(row["start"]))
        line = joined[tuple(row[k] for k in lookup.keys)]
        score = [sum(line.get(f"c{k}_{b}", 0.0) * x for b, x in zip(BASIS, basis, strict=True)) for k in (0, 1)]
        key = (row["source"], row["policy_id"], row["episode_id"])
        wanted[key] = np.add(wanted.get(key, np.zeros(2)), score)
    keys = zip(*(groups.table.column(k).to_pylist() for k in ("source", "policy_id", "episode_id")), strict=True)
    scores = np.stack([each.by_cluster for each in cluster_scores(groups, 2, logs.step_base)], axis=1)
    np.testing.assert_allclose(scores, [wanted[key] for key in keys], atol=1e-10)


@given(columns=raw_columns())
@pytest.mark.long
def test_healthy_episodes_raise_no_suspicion(columns):
    found, _, _ = summed(read(columns))
    assert not found.irregular_steps.any()
    assert not found.broken_chain.any()
    assert found.rows.sum() == len(columns["step"])


def chain(n=8, states=50):
    """One long episode through distinct states."""
    return {
        "episode_id": np.zeros(n, dtype=int),
        "step": np.arange(n),
        "observation": np.arange(n) % states,
        "action": np.zeros(n, dtype=int),
        "reward": np.zeros(n),
        "next_observation": (np.arange(n) + 1) % states,
        "terminated": np.zeros(n, dtype=bool),
        "policy_id": np.full(n, "only"),
    }


@given(at=st.integers(1, 7), away=st.integers(1, 40))
def test_an_observation_from_elsewhere_breaks_the_chain(at, away):
    columns = chain()
    columns["observation"][at] = (at + 9 + away) % 50
    found, _, _ = summed(read(columns))
    assert found.broken_chain.tolist() == [True]
    assert found.irregular_steps.tolist() == [False]


@given(at=st.integers(1, 6))
def test_a_missing_row_breaks_the_chain_and_the_steps(at):
    columns = {name: np.delete(values, at) for name, values in chain().items()}
    found, _, _ = summed(read(columns))
    assert found.broken_chain.tolist() == [True]
    assert found.irregular_steps.tolist() == [True]


@given(at=st.integers(1, 7), by=st.sampled_from([-1, 1, 5]))
def test_steps_that_are_off_are_noticed(at, by):
    columns = chain()
    columns["step"][at] += by
    found, _, _ = summed(read(columns))
    assert found.irregular_steps.tolist() == [True]


def test_long_episodes_are_summed_exactly():
    """Signatures of up to 31 bits over two hundred thousand rows: no false alarm and no missed break."""
    columns = chain(200_000, states=977)
    found, _, _ = summed(read(columns))
    assert not found.broken_chain.any()
    assert not found.irregular_steps.any()
    columns["observation"][77_777] += 1
    assert summed(read(columns))[0].broken_chain.all()


def test_episodes_that_begin_late_are_judged_from_their_own_first_step():
    columns = {name: np.concatenate([values, values[3:]]) for name, values in chain().items()}
    columns["episode_id"][8:] = 1
    found, _, _ = summed(read(columns))
    assert found.irregular_steps.tolist() == [False, False]
    assert found.broken_chain.tolist() == [False, False]
