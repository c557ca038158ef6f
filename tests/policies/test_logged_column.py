"""A target in a column of the log: the answers are those of the policy, where logged pairs are all that is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mixope
from mixope.base.errors import DataError, UsageError

N = 600
GENERATOR = np.random.default_rng(0)
LAW = GENERATOR.dirichlet([1, 1, 1], size=6)
IDS, ACTION = GENERATOR.integers(0, 6, N), GENERATOR.integers(0, 3, N)
ACTION[(IDS == 2) & (ACTION == 1)] = 0  # a pair that nobody logged
VECTORS = GENERATOR.normal(size=(N, 2))


def steep(states: np.ndarray) -> np.ndarray:
    chance = 1 / (1 + np.exp(-np.asarray(states)[:, 0]))
    return np.stack([1 - chance, chance / 2, chance / 2], axis=1)


def frame(**columns: Any) -> pd.DataFrame:
    besides = {"episode_id": np.arange(N) // 10, "step": np.arange(N) % 10, "action_prob": 1 / 3}
    return pd.DataFrame({**besides, "reward": GENERATOR.normal(size=N) + ACTION, "action": ACTION, **columns})


def read(table: pd.DataFrame) -> mixope.Logs:
    return mixope.read(table, ends="truncated")


def counted(**columns: Any) -> mixope.Logs:
    chances = LAW[IDS, ACTION]
    return read(frame(observation=IDS, target_prob=chances, target_logp=np.log(chances), **columns))


@pytest.mark.parametrize("column", ["target_prob", "target_logp"])
@pytest.mark.parametrize("estimator", ["emp", "wis", "is", "dr"])
def test_on_counted_states_the_column_is_the_policy(column: str, estimator: str) -> None:
    logs = counted()
    by_column, by_policy = (mixope.evaluate(logs, t, estimator) for t in (f"column:{column}", LAW))
    assert by_column.value == pytest.approx(by_policy.value, abs=1e-12)
    assert by_column.interval.low == pytest.approx(by_policy.interval.low, abs=1e-12)
    assert by_column.verdict == by_policy.verdict


def test_factors_and_words_are_found_too() -> None:
    words = np.array(["up", "down", "stay"])[ACTION]
    table = frame(target_prob=LAW[IDS, ACTION]).assign(action=words)
    table["observation.row"], table["observation.side"] = IDS // 2, np.array(["left", "right"])[IDS % 2]
    states = [[row, side] for row in range(3) for side in ("left", "right")]
    policy = mixope.TabularPolicy(LAW, np.array(states, dtype=object), ["up", "down", "stay"])
    logs = read(table)
    assert mixope.evaluate(logs, "column:target_prob", "emp").value == mixope.evaluate(logs, policy, "emp").value


def test_on_vectors_it_serves_trajectory_weights_and_refuses_the_rest() -> None:
    chances = steep(VECTORS)[np.arange(N), ACTION]
    table = frame(target_prob=chances).assign(**{"observation.x": VECTORS[:, 0], "observation.y": VECTORS[:, 1]})
    logs, policy = read(table), mixope.CallablePolicy(steep, actions=[0, 1, 2])
    found = mixope.evaluate(logs, "column:target_prob", "wis").value
    assert found == pytest.approx(mixope.evaluate(logs, policy, "wis").value, abs=1e-12)
    with pytest.raises(DataError, match=r"(?s)logged pairs only.*choose 'wis'"):
        mixope.evaluate(logs, "column:target_prob", "fqe")


WRONG = {
    "no such column": (counted, "column:pi_new", "pi_new"),
    "two values of a pair": (
        lambda: counted(noise=LAW[IDS, ACTION] + 1e-3 * (np.arange(N) % 2)),
        "column:noise",
        "several probabilities for the same state and action",
    ),
    "NaN": (lambda: counted(gaps=np.where(IDS == 0, np.nan, 0.5)), "column:gaps", "on every row"),
    "logarithms": (lambda: counted(logs=np.log(LAW[IDS, ACTION])), "column:logs", "target_logp"),
    "percentages": (lambda: counted(percent=100 * LAW[IDS, ACTION]), "column:percent", "numbers in [0, 1]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_column_that_is_no_target_is_refused(name: str) -> None:
    make, target, words = WRONG[name]
    with pytest.raises(mixope.MixopeError) as caught:
        mixope.evaluate(make(), target, "emp")
    assert words in str(caught.value)


def test_a_column_alone_is_not_asked() -> None:
    with pytest.raises(UsageError, match="a column of the log"):
        mixope.read_policy("column:target_prob").log_prob(IDS, ACTION)
