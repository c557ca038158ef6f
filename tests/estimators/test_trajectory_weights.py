"""Importance sampling of whole episodes against loops over episodes."""

import numpy as np
import pytest

import mixope
from mixope.worlds import simulate, walk

GAMMA, HORIZON = 0.9, 4


@pytest.fixture(scope="module")
def setting():
    generator = np.random.default_rng(3)
    target, *loggers = generator.dirichlet([5, 5], size=(3, 6))
    return simulate(walk(), loggers, 30, 7, seed=2), target, loggers


def episodes(columns):
    """(label, states, actions, rewards, whether it ended) of every episode."""
    for e in np.unique(columns["episode_id"]):
        mine = columns["episode_id"] == e
        names = ("observation", "action", "reward")
        yield columns["policy_id"][mine][0], *(columns[n][mine] for n in names), bool(columns["terminated"][mine][-1])


def step_weights(kind, t):
    return GAMMA**t if kind == "discounted" else float(kind == "average" or t < HORIZON)


def span(kind, n, ended):
    if kind == "discounted":
        return 1 / (1 - GAMMA) if ended else sum(GAMMA**t for t in range(n))
    if kind == "horizon":
        return HORIZON if ended else min(n, HORIZON)
    return n


def slow(columns, target, loggers, kind, balance):
    """Per episode: W_t, Σ g r parts and G, then the four classic estimates."""
    laws = {f"logger-{j}": law for j, law in enumerate(loggers)}
    data = list(episodes(columns))
    share = {j: sum(1 for e in data if e[0] == j) / len(data) for j in laws}
    whole, per_step, weights, spans, earned = 0.0, 0.0, [], [], []
    for label, s, a, r, ended in data:
        top, own, each, running = 1.0, 1.0, dict.fromkeys(laws, 1.0), []
        for t in range(len(s)):
            top *= target[s[t], a[t]]
            own *= laws[label][s[t], a[t]]
            each = {j: each[j] * laws[j][s[t], a[t]] for j in laws}
            below = sum(share[j] * each[j] for j in laws) if balance else own
            running.append(top / below)
        g = [step_weights(kind, t) for t in range(len(s))]
        size = span(kind, len(s), ended)
        mean = sum(x * y for x, y in zip(g, r, strict=True)) / size
        whole += running[-1] * mean / len(data)
        per_step += sum(x * w * y for x, w, y in zip(g, running, r, strict=True))
        weights.append(running[-1])
        spans.append(size)
        earned.append(mean)
    normalised = float(np.average(earned, weights=weights))
    return {"plain": whole, "step": per_step / sum(spans), "normalised": normalised}


ESTIMANDS = {"average": {}, "discounted": {"gamma": GAMMA}, "horizon": {"horizon": HORIZON}}


@pytest.mark.parametrize("kind", ESTIMANDS)
def test_the_classic_estimates_equal_a_loop(setting, kind):
    columns, target, loggers = setting
    own, balanced = (slow(columns, target, loggers, kind, balance) for balance in (False, True))
    known = {f"logger-{j}": mixope.TabularPolicy(law) for j, law in enumerate(loggers)}
    wanted = {
        "is": own["plain"],
        "is-step": own["step"],
        "wis": own["normalised"],
        "mis": balanced["plain"],
        "mis-step": balanced["step"],
    }
    given = {"new": mixope.TabularPolicy(target)}
    table = mixope.compare(mixope.read(columns), given, list(wanted), loggers=known, **ESTIMANDS[kind])
    for name, value in wanted.items():
        assert table["new", name].value == pytest.approx(value, rel=1e-9), name


def test_stepwise_normalisation_equals_a_loop(setting):
    columns, target, loggers = setting
    laws = {f"logger-{j}": law for j, law in enumerate(loggers)}
    steps = {}
    for label, s, a, r, _ in episodes(columns):
        weight = 1.0
        for t in range(len(s)):
            weight *= target[s[t], a[t]] / laws[label][s[t], a[t]]
            steps.setdefault(t, []).append((weight, r[t]))
    means = [sum(w * r for w, r in rows) / sum(w for w, _ in rows) for rows in steps.values()]
    result = mixope.evaluate(mixope.read(columns), mixope.TabularPolicy(target), "wis-step")
    assert result.value == pytest.approx(np.mean(means), rel=1e-9)


def test_unknown_propensities_are_counted_by_logger(setting):
    columns, target, _ = setting
    bare = {name: values for name, values in columns.items() if name != "action_prob"}
    counted = {}
    for label in np.unique(columns["policy_id"]):
        counts = np.zeros((6, 2))
        mine = columns["policy_id"] == label
        np.add.at(counts, (columns["observation"][mine], columns["action"][mine]), 1)
        counted[label] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    wanted = slow(columns, target, list(counted.values()), "average", balance=False)
    result = mixope.evaluate(mixope.read(bare), mixope.TabularPolicy(target), "is")
    assert result.value == pytest.approx(wanted["plain"], rel=1e-9)


def test_on_its_own_logs_a_policy_has_weights_of_one(setting):
    columns, _, loggers = setting
    mine = columns["policy_id"] == "logger-0"
    alone = {name: values[mine] for name, values in columns.items()}
    table = mixope.compare(mixope.read(alone), {"old": mixope.TabularPolicy(loggers[0])}, ["is", "wis", "is-step"])
    means = [r.mean() for *_, r, _ in episodes(alone)]
    assert table["old", "is"].value == pytest.approx(np.mean(means), rel=1e-9)
    assert table["old", "wis"].value == pytest.approx(np.mean(means), rel=1e-9)
    assert table["old", "is-step"].value == pytest.approx(alone["reward"].mean(), rel=1e-9)
    assert table["old", "is"].effective_sample_size == pytest.approx(len(alone["step"]), rel=1e-9)


def test_a_horizon_beyond_the_episodes_is_refused(setting):
    columns, target, _ = setting
    with pytest.raises(mixope.UsageError, match="cannot see 50"):
        mixope.evaluate(mixope.read(columns), mixope.TabularPolicy(target), "wis", horizon=50)


def test_a_target_that_no_episode_follows_to_the_end_has_no_weight(setting):
    """Every episode takes an action that the target never takes: plain weights are 0, normalised ones do not exist."""
    columns, _, _ = setting
    both = [e for e in np.unique(columns["episode_id"]) if len(set(columns["action"][columns["episode_id"] == e])) == 2]
    mine = np.isin(columns["episode_id"], both)
    part = {name: values[mine] for name, values in columns.items()}
    never = mixope.TabularPolicy(np.tile([0.0, 1.0], (6, 1)))
    assert mixope.evaluate(mixope.read(part), never, "is").value == 0.0
    result = mixope.evaluate(mixope.read(part), never, "wis")
    assert np.isnan(result.value)
    assert result.interval is None
    assert str(result.verdict) == "not supported by these logs"
