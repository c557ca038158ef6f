"""Rows after which nobody knows what came, made counts of transitions: by hand, and against a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mixope
from mixope.logs import Logs
from mixope.requests.followed import Followed, follow_up
from mixope.requests.transitions import UNFOLLOWED, Transitions
from mixope.session.session import count

END = "end"
"""What stands for the next state of a row that ended its episode; None: nobody knows it."""


def counted(rows: list[tuple[str, int, int, float, Any]]) -> Transitions:
    """From (logger, s, a, r, s′), each an episode of its own."""
    names = ("policy_id", "observation", "action", "reward", "next_observation")
    columns: dict[str, list[Any]] = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    columns["terminated"] = [following == END for following in columns["next_observation"]]
    columns["next_observation"] = [None if each == END else each for each in columns["next_observation"]]
    table = pa.table({**columns, "episode_id": range(len(rows)), "step": [0] * len(rows)})
    return count(mixope.read(table)).transitions


ONE_PAIR = [
    ("a", 0, 0, 1.0, 0),
    ("a", 0, 0, 1.0, 1),
    ("a", 0, 0, 1.0, 1),
    ("a", 0, 0, 3.0, END),
    ("a", 0, 0, 9.0, None),
]


def law(found: Followed, logger: int = 0) -> dict[tuple[int, int, int], float]:
    t = found.transitions
    mine = np.flatnonzero(t.logger == logger)
    return {(int(t.state[g]), int(t.action[g]), int(t.next_state[g])): float(t.rows[g]) for g in mine}


def test_a_row_that_goes_on_is_dealt_to_the_next_states_and_not_to_the_end() -> None:
    found = follow_up(counted(ONE_PAIR), to_the_last=False)
    assert found is not None
    assert law(found) == pytest.approx({(0, 0, 0): 4 / 3, (0, 0, 1): 8 / 3, (0, 0, -1): 1.0})
    assert found.transitions.reward.sum() == 15.0
    assert found.transitions.starts.sum() == 5.0


def test_counts_whose_next_states_are_all_known_are_left_alone() -> None:
    assert follow_up(counted(ONE_PAIR[:4]), to_the_last=True) is None


def test_a_logger_without_next_states_borrows_those_of_others_and_keeps_its_rows() -> None:
    found = follow_up(counted([*ONE_PAIR[:3], ("b", 0, 0, 5.0, None)]), to_the_last=False)
    assert found is not None
    assert law(found, 0) == pytest.approx({(0, 0, 0): 1.0, (0, 0, 1): 2.0})
    assert law(found, 1) == pytest.approx({(0, 0, 0): 1 / 3, (0, 0, 1): 2 / 3})


@pytest.mark.parametrize(("to_the_last", "rows"), [(False, 3.0), (True, 4.0)])
def test_a_pair_that_goes_on_nowhere_counts_where_its_reward_is_all_that_is_needed(
    to_the_last: bool, rows: float
) -> None:
    found = follow_up(counted([*ONE_PAIR[:3], ("a", 1, 0, 5.0, None)]), to_the_last=to_the_last)
    assert found is not None
    assert found.transitions.n_rows == rows
    assert law(found).get((1, 0, 1), 0.0) == rows - 3.0


def test_a_pair_that_only_ends_or_goes_on_nowhere_stays_where_it_is() -> None:
    found = follow_up(counted([("a", 0, 0, 1.0, END), ("a", 0, 0, 1.0, None), ("a", 1, 0, 1.0, 0)]), to_the_last=False)
    assert found is not None
    assert law(found) == {(0, 0, -1): 1.0, (0, 0, 0): 1.0, (1, 0, 0): 1.0}


def random_rows(seed: int) -> list[tuple[str, int, int, float, Any]]:
    rng = np.random.default_rng(seed)
    return [
        (str(rng.choice(["a", "b", "c"])), int(rng.integers(4)), int(rng.integers(2)), float(rng.normal()), following)
        for following in rng.choice(np.array([0, 1, 2, 3, END, None], dtype=object), 150)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_pairs_have_the_rewards_the_ends_and_the_next_states_of_a_loop(seed: int) -> None:
    rows = random_rows(seed)
    found = follow_up(counted(rows), to_the_last=True)
    assert found is not None
    t = found.transitions
    for s in range(4):
        for a in range(2):
            mine = [row for row in rows if row[1:3] == (s, a)]
            here = (t.state == s) & (t.action == a)
            assert t.rows[here].sum() == pytest.approx(len(mine))
            assert t.reward[here].sum() == pytest.approx(sum(row[3] for row in mine))
            assert t.rows[here & (t.next_state == -1)].sum() == sum(row[4] == END for row in mine)
            known = [row[4] for row in mine if row[4] not in (END, None)]
            for following in range(4):
                share = known.count(following) / len(known)
                alive = len(mine) - sum(row[4] == END for row in mine)
                assert t.rows[here & (t.next_state == following)].sum() == pytest.approx(share * alive)
    for j, label in enumerate(t.loggers):
        assert t.rows[t.logger == j].sum() == pytest.approx(sum(row[0] == label for row in rows))


@pytest.mark.parametrize("seed", range(3))
def test_sums_go_there_and_back(seed: int) -> None:
    logged = counted(random_rows(seed))
    found = follow_up(logged, to_the_last=True)
    assert found is not None
    np.testing.assert_allclose(found.sums_of_logged(found.transitions.rows), logged.rows)
    np.testing.assert_allclose(found.added_up(logged.reward), found.transitions.reward)


def test_scores_stand_for_as_many_rows_as_their_next_states_do() -> None:
    """Two of three rows that go on tell where: what they add about their mean counts 3/2 times; the third has it."""
    logged = counted([("a", 0, 0, 0.0, 0), ("a", 0, 0, 0.0, 1), ("a", 0, 0, 0.0, END), ("a", 0, 0, 0.0, None)])
    found = follow_up(logged, to_the_last=False)
    assert found is not None
    table = np.zeros((3, 5))
    table[:, 0] = np.select([found.transitions.next_state == k for k in (0, 1)], [1.0, 5.0], 7.0)
    scores = found.scores_of_logged(table)[:, 0]
    by_next = {int(after): float(score) for after, score in zip(logged.next_state, scores, strict=True)}
    assert by_next == pytest.approx({0: 0.0, 1: 6.0, -1: 7.0, UNFOLLOWED: 3.0})


def test_arrays_that_are_logs_say_which_rows_lead_nowhere() -> None:
    logs = Logs.from_arrays(observation=[0, 1, 2], action=[0, 1, 0], reward=[1.0, 2.0, 3.0], ends="truncated")
    assert logs.table(["unfollowed"]).column(0).to_pylist() == [False, False, True]
    assert list(count(logs).transitions.next_state) == [1, 2, UNFOLLOWED]
