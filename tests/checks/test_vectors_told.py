"""On vectors: rewards in other rows, cuts that are marked as ends, and loggers that do not agree on what is earned."""

import numpy as np
import pytest

from mixope import checks
from mixope.checks.steadiness import value_over_loggers, welch
from mixope.session.session import look
from mixope.worlds import cartpole, continuous, linear_quadratic, pendulum

WORLDS = {
    "linear-quadratic": (linear_quadratic.linear_quadratic(), linear_quadratic.loggers(4), 40, 50),
    "pendulum": (pendulum.Pendulum(), pendulum.loggers(4), 40, 100),
}


def logs(world="linear-quadratic", seed=0):
    system, loggers, episodes, steps = WORLDS[world]
    return continuous.simulate(system, loggers, episodes, steps, seed=seed)


def told(columns):
    """The statuses of the checks of the logs, by name."""
    return {check.name: check.status for check in checks.check_logs(None, look(columns).sums)}


def moved(columns, steps):
    """Rewards so many rows later in their episodes; what is empty is zero."""
    length = int(columns["step"].max()) + 1
    by_episode = columns["reward"].reshape(-1, length)
    late = np.zeros_like(by_episode)
    if steps > 0:
        late[:, steps:] = by_episode[:, :-steps]
    else:
        late[:, :steps] = by_episode[:, -steps:]
    return {**columns, "reward": late.ravel()}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_rewards_a_step_late_come_out(world, seed):
    columns = logs(world, seed)
    assert told(columns)["rewards in step"] == "pass"
    assert told(moved(columns, 1))["rewards in step"] != "pass"


def test_rewards_a_step_early_come_out_where_the_state_alone_does_not_tell_them():
    assert told(moved(logs(), -1))["rewards in step"] != "pass"


def test_rows_in_any_order_and_derived_next_observations_tell_the_same():
    columns = moved(logs(), 1)
    order = np.random.default_rng(0).permutation(len(columns["reward"]))
    assert told({name: values[order] for name, values in columns.items()})["rewards in step"] != "pass"
    del columns["next_observation"]
    assert told(columns)["rewards in step"] != "pass"


def test_a_few_rows_say_nothing_of_the_order():
    system, loggers, *_ = WORLDS["linear-quadratic"]
    assert "rewards in step" not in told(continuous.simulate(system, loggers, 8, 5, seed=0))


def marked(columns):
    ended = columns["terminated"] | columns["truncated"]
    return {**columns, "terminated": ended, "truncated": np.zeros(len(ended), dtype=bool)}


def test_cuts_that_are_marked_as_ends_come_out():
    columns = logs()
    assert "ends at a limit" not in told(columns)
    assert told(marked(columns))["ends at a limit"] != "pass"


def test_an_end_that_a_clock_in_the_state_tells_is_none():
    columns = marked(logs())
    clock = columns["step"].astype(float)
    timed = {
        **columns,
        "observation": np.column_stack([columns["observation"], clock]),
        "next_observation": np.column_stack([columns["next_observation"], clock + 1]),
    }
    assert "ends at a limit" not in told(timed)


@pytest.mark.parametrize("steps", [30, 60])
def test_poles_that_fall_are_ends_and_a_limit_that_is_marked_so_is_not(steps):
    columns = continuous.simulate(cartpole.CartPole(), cartpole.loggers(4), 80, steps, seed=0)
    fallen = told(columns)
    assert fallen.get("ends at a limit", "pass") == "pass"
    assert told(marked(columns))["ends at a limit"] != "pass"


def test_means_of_loggers_are_compared_as_chance_allows():
    generator = np.random.default_rng(0)
    spread = np.array([0.2, 1.0, 3.0])
    found = [welch([generator.normal(scale=s, size=12) for s in spread]) for _ in range(2_000)]
    assert np.mean(np.array(found) > 1.645) < 0.06
    assert np.mean(np.array(found) > 2.5) < 0.012


def test_a_logger_that_never_saw_the_rare_reward_is_no_evidence():
    scores = np.zeros(80)
    scores[:4] = 1.0
    scores -= scores.mean()
    logger = np.repeat(np.arange(4), 20)
    assert value_over_loggers(np.roll(scores, 10), logger).status == "pass"


def test_a_logger_in_other_units_comes_out_and_equal_scores_do_not():
    generator, logger = np.random.default_rng(0), np.repeat([0, 1, 2, 3], 10)
    scores = generator.normal(size=40)
    assert value_over_loggers(scores, logger).status == "pass"
    assert value_over_loggers(scores + 4 * (logger == 1), logger).status != "pass"
    assert value_over_loggers(np.zeros(40), logger) is None
    assert value_over_loggers(scores[:8], logger[:8]) is None


def swinging(episodes=200, steps=60, seed=0):
    """A thing on a spring: it is x away from the middle, moves by v, and every step costs |x|."""
    draw, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        x, v = 0.3 * draw.normal(size=2)
        for step in range(steps):
            action = int(draw.random() < 1 / (1 + np.exp(-2 * x - 1.5 * v)))
            turned = 0.9 * v - 0.2 * x + 0.24 * (2 * action - 1) + 0.15 * draw.normal()
            rows.append((episode, step, (x, v), action, -abs(x), (x + 0.3 * turned, turned)))
            x, v = x + 0.3 * turned, turned
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation")
    columns = {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    return columns | {"truncated": columns["step"] == steps - 1}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_reward_with_an_edge_is_told_by_its_own_row(seed):
    """No quadratic of the state has the edge of |x|; one of the next row, where x has gone on, may be nearer to it."""
    columns = swinging(seed=seed)
    assert told(columns)["rewards in step"] == "pass"
    assert {told(moved(columns, steps))["rewards in step"] for steps in (1, -1)} == {"fail"}
