"""On vectors what happened before tells a good part of what comes next only where the state leaves something out."""

import numpy as np
import pytest

import mixope
from mixope.checks.state import state_of_vectors
from mixope.engines import MemoryEngine
from mixope.requests.vector_pasts import WholeEpisodes
from mixope.session import look
from mixope.worlds import continuous, linear_quadratic, pendulum


def swings(seed, drop=()):
    columns = continuous.simulate(pendulum.Pendulum(), pendulum.loggers(4), 16, 100, seed=seed)
    kept = [k for k in range(3) if k not in drop]
    return {**columns, **{name: columns[name][:, kept] for name in ("observation", "next_observation")}}


def regions(seed, episodes=150, steps=20):
    """A number that goes its own way, and a region that pays and stays for a while."""
    g = np.random.default_rng([seed, 3])
    x, region, parts = g.normal(size=episodes), g.integers(0, 3, episodes), []
    for t in range(steps):
        action = g.integers(0, 2, episodes)
        later = 0.6 * x + 0.5 * action + 0.4 * g.normal(size=episodes)
        moved = np.where(g.random(episodes) < 0.1, g.integers(0, 3, episodes), region)
        reward = later + 0.6 * region + 0.3 * g.normal(size=episodes)
        parts.append((np.arange(episodes), np.full(episodes, t), x, region, action, reward, later, moved))
        x, region = later, moved
    episode, step, x, region, action, reward, later, moved = (np.concatenate(p) for p in zip(*parts, strict=True))
    names = np.array(["north", "south", "west"])
    rows = {"episode_id": episode, "step": step, "action": action, "reward": reward}
    rows |= {"observation.x": x, "observation.region": names[region]}
    rows |= {"next_observation.x": later, "next_observation.region": names[moved]}
    return rows | {"truncated": step == steps - 1, "terminated": np.zeros(len(step), dtype=bool)}


def coin(states):
    return np.full((len(states["x"]), 2), 0.5)


coin.actions = [0, 1]


def state_of(found):
    return next((check for check in found.diagnostics if check.name == "state"), None)


def test_pendulum_with_all_its_columns_passes():
    found = mixope.evaluate(swings(0), pendulum.target(), "emp")
    assert state_of(found).status == "pass"


def test_a_speed_that_is_missing_shows_in_how_the_angle_changed():
    check = state_of_vectors(look(mixope.read(swings(0, drop=(2,)))).sums.pasts)
    assert (check.status, check.value > 0.5) == ("warn", True)
    assert "how component" in check.sentence


def test_mixed_states_pass_whole_and_are_doubted_without_the_region_that_pays():
    columns = regions(0)
    assert state_of(mixope.evaluate(columns, coin, "emp")).status == "pass"
    cut = {name: values for name, values in columns.items() if not name.endswith("region")}
    check = state_of(mixope.evaluate(cut, coin, "emp"))
    assert (check.status, "the past of the episode" in check.sentence) == ("warn", True)


def test_what_rests_on_no_state_is_not_judged():
    columns = {**swings(0, drop=()), "policy_id": np.zeros(1600, dtype=int)}
    assert state_of(mixope.evaluate(columns, pendulum.target(), "wis-step", horizon=5)) is None


@pytest.mark.parametrize("size", [50, 230])
def test_episodes_are_taken_whole_or_not_at_all(size):
    columns = continuous.simulate(linear_quadratic.linear_quadratic(), linear_quadratic.loggers(4), 12, 20, seed=1)
    (found,) = MemoryEngine().scan(mixope.read(columns), [WholeEpisodes(size)])
    _, rows = np.unique(found.rows.episode, return_counts=True)
    assert set(rows.tolist()) == {20}
    assert size <= len(found.step) < size + 20
