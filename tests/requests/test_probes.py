"""Sums of residuals by episode are those of a loop over the rows, on every engine."""

import numpy as np
import pytest

from mixope import worlds
from mixope.requests.episodes import cluster_scores, episode_sums, score_lookup
from mixope.requests.probes import make_probes
from mixope.requests.transitions import BASIS
from mixope.session.session import count


def columns(noise=1.0):
    model = worlds.make("walk")
    found = worlds.simulate(model, worlds.stages(model, 2, seed=0), 12, 30, seed=1)
    found["reward"] = found["reward"] + noise * np.random.default_rng(0).normal(size=len(found["reward"]))
    return found


def scanned(logs, engine, scores=()):
    counted = count(logs, engine)
    rows, probes = counted.transitions, make_probes(counted.transitions, seed=3)
    lookup, grouping = score_lookup(rows, counted.groups, counted.logs.schema, scores, 0, probes)
    groups = counted.engine.group_sums(counted.logs, grouping, lookup)
    base = counted.logs.step_base
    return counted, episode_sums(groups, rows, base), cluster_scores(groups, len(scores), base)


def residuals(logs):
    """r − r̄ of every row, by a loop over the kinds of transition."""
    keys = list(zip(logs["observation"], logs["action"], logs["next_observation"], logs["terminated"], strict=True))
    off = np.zeros(len(keys))
    for key in set(keys):
        mine = np.array([k == key for k in keys])
        off[mine] = logs["reward"][mine] - logs["reward"][mine].mean()
    return off


@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_rewards_are_compared_with_those_of_their_transition(engine):
    logs = columns()
    _, sums, _ = scanned(logs, engine)
    off, order = residuals(logs), np.lexsort((logs["episode_id"], logs["policy_id"]))
    _, first, episode = np.unique(logs["episode_id"], return_index=True, return_inverse=True)
    by_key = np.argsort([(order == i).argmax() for i in first])
    assert sums.probes.reward == pytest.approx(np.bincount(episode, off)[by_key])
    assert sums.probes.reward_squared == pytest.approx(np.bincount(episode, off**2)[by_key])
    assert sums.probes.reward_by_step == pytest.approx(np.bincount(episode, logs["step"] * off)[by_key])
    assert sums.probes.n_random.tolist() == np.bincount(episode, off != 0)[by_key].tolist()


def test_certain_rewards_leave_exactly_nothing():
    logs = columns(noise=0.0)
    logs["reward"] = logs["reward"] * 1e3 + 0.1
    _, sums, _ = scanned(logs, "memory")
    assert not sums.probes.reward.any()
    assert not sums.probes.reward_squared.any()
    assert not sums.probes.n_random.any()


def test_every_pair_is_balanced_over_all_rows():
    """M_k has mean zero over the rows of each (s, a), so it sums to nothing over all episodes."""
    counted, sums, _ = scanned(columns(), "memory")
    rows = counted.transitions
    for name, values in make_probes(rows, seed=3).columns.items():
        if name.startswith("move"):
            assert np.bincount(rows.pair, values * rows.rows) == pytest.approx(np.zeros(rows.n_pairs), abs=1e-9)
    assert sums.probes.moves.shape[1] > 0
    assert sums.probes.moves.sum(axis=0) == pytest.approx(0.0, abs=1e-9)


def test_a_world_without_chance_has_no_moves():
    model = worlds.make("gridworld")
    logs = worlds.simulate(model, worlds.stages(model, 1, seed=0), 6, 20, seed=0)
    assert scanned(logs, "memory")[1].probes.moves.shape == (6, 0)


@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_scores_by_step_weigh_every_row_by_its_step(engine):
    logs = columns()
    counted = count(logs, engine)
    table = np.zeros((counted.transitions.n_groups, len(BASIS)))
    table[:, BASIS.index("reward")] = 2.0
    table[:, BASIS.index("rows")] = 1.0
    table[:, BASIS.index("starts")] = 5.0
    _, sums, (scores,) = scanned(logs, engine, [table])
    total = (logs["step"] * (2 * logs["reward"] + 1)).sum()
    assert scores.late.sum() == pytest.approx(total)
    assert sums.mean_step == pytest.approx(logs["step"].mean())
