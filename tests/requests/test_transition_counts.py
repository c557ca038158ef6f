"""Encoding of counted transitions, and what is read off them."""

import numpy as np
import pytest
from hypothesis import given

from laws.small_logs import counted, raw_columns, read
from mixope.base.errors import MixopeError
from mixope.requests.grouping import GroupSums
from mixope.requests.problem import restrict
from mixope.requests.transitions import encode, transition_grouping


@given(columns=raw_columns())
def test_codes_stand_for_the_values_that_were_logged(columns):
    """Every group decodes to a key that a loop over the rows counts equally often."""
    logs = read(columns)
    _, t = counted(logs)
    schema, wanted = logs.schema, {}
    for row in logs.table().to_pylist():
        now = tuple(row[c] for c in schema.observation)
        then = None if row["terminated"] else tuple(row[c] for c in schema.next_observation)
        key = (row["policy_id"], now, row[schema.action[0]], then)
        count, total = wanted.get(key, (0, 0.0))
        wanted[key] = (count + 1, total + row["reward"])
    states = [tuple(np.atleast_1d(o).tolist()) for o in t.observations]
    found = {
        (t.loggers[j], states[s], t.actions.tolist()[a], states[n] if n >= 0 else None): (rows, reward)
        for j, s, a, n, rows, reward in zip(
            t.logger, t.state, t.action, t.next_state, t.rows.tolist(), t.reward.tolist(), strict=True
        )
    }
    assert found == wanted
    assert len(set(states)) == t.n_states
    assert t.n_rows == len(columns["step"])


@given(columns=raw_columns())
def test_pairs_starts_and_loggers_add_up(columns):
    logs = read(columns)
    _, t = counted(logs)
    assert t.n_pairs == len(set(zip(t.state.tolist(), t.action.tolist(), strict=True)))
    np.testing.assert_array_equal(t.pair_state[t.pair], t.state)
    np.testing.assert_array_equal(t.pair_action[t.pair], t.action)
    assert t.start_law.sum() == pytest.approx(1.0)
    assert t.starts.sum() == len(set(columns["episode_id"].tolist()))
    assert t.logger_rows().sum() == t.n_rows
    assert t.logger_means() @ t.logger_rows() == pytest.approx(columns["reward"].sum(), abs=1e-9)
    assert len(t.terminated) == len([n for n in t.next_state if n < 0])


@given(columns=raw_columns())
def test_a_part_of_the_groups_keeps_its_numbers(columns):
    _, t = counted(read(columns))
    keep = np.arange(0, t.n_groups, 2)
    part = restrict(t, keep)
    assert part.n_states == t.n_states
    np.testing.assert_array_equal(part.state, t.state[keep])
    np.testing.assert_array_equal(part.rows, t.rows[keep])
    np.testing.assert_array_equal(part.pair_state[part.pair], part.state)


def test_nothing_cannot_be_encoded():
    logs = read(
        {
            "episode_id": np.array([0]),
            "step": np.array([0]),
            "observation": np.array([0]),
            "action": np.array([0]),
            "reward": np.array([0.0]),
            "next_observation": np.array([0]),
            "terminated": np.array([False]),
            "policy_id": np.array(["only"]),
        }
    )
    with pytest.raises(MixopeError, match="no rows"):
        encode(GroupSums.zero(transition_grouping(logs.schema)), logs.schema)
