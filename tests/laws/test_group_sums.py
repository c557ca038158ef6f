"""Sums over groups form a commutative monoid, for every grouping that the library makes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixope.base.errors import UsageError
from mixope.engines import MemoryEngine
from mixope.requests.grouping import Aggregate, Grouping, GroupSums, joined
from mixope.requests.transitions import transition_grouping

from .small_logs import episode_grouping, raw_columns, read

GROUPINGS = {
    "transitions": lambda logs: (transition_grouping(logs.schema), None),
    "episodes": lambda logs: episode_grouping(logs)[::-1],
    "total": lambda logs: (Grouping(("policy_id",), (Aggregate("rows", "count"),)), None),
}
each = pytest.mark.parametrize("name", GROUPINGS)


def rows_for(logs, lookup):
    """All canonical rows in one table, joined with the lookup."""
    rows = logs.table(logs.schema.columns)
    return rows if lookup is None else joined(rows, lookup)


@st.composite
def parts(draw):
    """A log, and its rows dealt to three piles (some may be empty)."""
    columns = draw(raw_columns())
    n = len(columns["step"])
    pile = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    return read(columns), np.array(pile)


def three(name, drawn):
    logs, pile = drawn
    grouping, lookup = GROUPINGS[name](logs)
    rows, zero = rows_for(logs, lookup), GroupSums.zero(grouping)
    take = [rows.take(np.flatnonzero(pile == k)) for k in range(3)]
    return zero, rows, [zero.update(table) if table.num_rows else zero for table in take], (logs, grouping, lookup)


def assert_equal(left, right):
    assert left.grouping == right.grouping
    if left.table is None or right.table is None:
        assert left.table is None
        assert right.table is None
        return
    assert left.table.to_pylist() == right.table.to_pylist()


@each
@given(drawn=parts())
def test_zero_is_neutral(name, drawn):
    zero, rows, _, _ = three(name, drawn)
    whole = zero.update(rows)
    assert zero.n_groups == 0
    assert_equal(zero.merge(whole), whole)
    assert_equal(whole.merge(zero), whole)
    assert_equal(zero.merge(zero), zero)


@each
@given(drawn=parts())
def test_merging_is_associative_and_commutative(name, drawn):
    _, _, (a, b, c), _ = three(name, drawn)
    assert_equal(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert_equal(a.merge(b), b.merge(a))


@each
@given(drawn=parts())
def test_merging_parts_equals_one_pass_and_the_engine(name, drawn):
    zero, rows, (a, b, c), (logs, grouping, lookup) = three(name, drawn)
    assert_equal(a.merge(b).merge(c), zero.update(rows))
    assert_equal(zero.update(rows), MemoryEngine().group_sums(logs, grouping, lookup))


@each
@given(drawn=parts())
def test_updating_row_by_row_equals_one_pass(name, drawn):
    zero, rows, _, _ = three(name, drawn)
    one_by_one = zero
    for i in range(rows.num_rows):
        one_by_one = one_by_one.update(rows.slice(i, 1))
    assert_equal(one_by_one, zero.update(rows))


@given(columns=raw_columns())
def test_counts_equal_a_slow_loop(columns):
    logs = read(columns)
    sums = MemoryEngine().group_sums(logs, transition_grouping(logs.schema))
    wanted = {}
    base = int(columns["step"].min())
    for row in logs.table().to_pylist():
        key = tuple(row[k] for k in sums.grouping.keys)
        entry = wanted.setdefault(key, [0, 0.0, np.inf, -np.inf, 0, 0.0])
        entry[0] += 1
        entry[1] += row["reward"]
        entry[2], entry[3] = min(entry[2], row["reward"]), max(entry[3], row["reward"])
        entry[4] += row["step"] == base
        entry[5] += 1 / row["propensity"] if logs.schema.has_propensity else 0.0
    assert sums.n_groups == len(wanted)
    for row in sums.table.to_pylist():
        found = [row[c] for c in ("rows", "reward", "lowest", "highest", "starts")]
        found.append(row.get("inverse", 0.0))
        assert found == wanted[tuple(row[k] for k in sums.grouping.keys)]


def test_strangers_refuse_to_merge():
    count = (Aggregate("rows", "count"),)
    mine = GroupSums.zero(Grouping(("observation",), count, belongs_to="one target"))
    for stranger in (
        Grouping(("action",), count, belongs_to="one target"),
        Grouping(("observation",), (Aggregate("rows", "sum", ("reward",)),), belongs_to="one target"),
        Grouping(("observation",), count, belongs_to="another target"),
    ):
        with pytest.raises(UsageError, match="cannot be merged"):
            mine.merge(GroupSums.zero(stranger))


def test_episode_scores_of_different_score_tables_refuse_to_merge():
    columns = {
        "episode_id": np.array([0, 0, 1]),
        "step": np.array([0, 1, 0]),
        "observation": np.array([0, 1, 0]),
        "action": np.array([0, 0, 1]),
        "reward": np.array([1.0, 2.0, 3.0]),
        "next_observation": np.array([1, 0, 1]),
        "terminated": np.zeros(3, dtype=bool),
        "policy_id": np.full(3, "only"),
    }
    logs = read(columns)
    sums = []
    for seed in (1, 2):
        lookup, grouping = episode_grouping(logs, seed)
        sums.append(MemoryEngine().group_sums(logs, grouping, lookup))
    with pytest.raises(UsageError, match="cannot be merged"):
        sums[0].merge(sums[1])
