"""The total of an episode, E Σ γᵗ rₜ until the end: exact on a small world, for every estimator and cut."""

import numpy as np
import pytest

import mixope
from mixope.base.errors import MixopeError

LEADS = {  # (state, action): where it leads, with the rest an end; and the mean reward
    (0, 0): ((0.6, 0.2, 0.0), 1.0),
    (0, 1): ((0.1, 0.6, 0.2), 0.5),
    (1, 0): ((0.3, 0.3, 0.2), 0.0),
    (1, 1): ((0.0, 0.3, 0.5), 2.0),
    (2, 0): ((0.2, 0.2, 0.3), -1.0),
    (2, 1): ((0.1, 0.1, 0.4), 3.0),
}
START = np.array([0.7, 0.3, 0.0])
CHANCE = np.array([0.5, 0.8, 0.3])
"""Of action 1 under the target, by state."""
LAW = np.column_stack([1 - CHANCE, CHANCE])
TARGET = mixope.TabularPolicy(LAW)


def exact(gamma=1.0, rewards=None):
    """By hand: V = r + γPV, from the start."""
    matrix = sum(LAW[:, [a]] * np.array([LEADS[s, a][0] for s in range(3)]) for a in (0, 1))
    reward = sum(LAW[:, a] * np.array([LEADS[s, a][1] for s in range(3)]) for a in (0, 1))
    return float(START @ np.linalg.solve(np.eye(3) - gamma * matrix, reward if rewards is None else rewards))


def simulated(chance, episodes, seed, most=10_000, label="a", noise=0.1):
    """Columns of a log, whole or cut after ``most`` steps."""
    generator = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        state, step = int(generator.random() < START[1]), 0
        while True:
            action = int(generator.random() < chance[state])
            law, reward = LEADS[state, action]
            following = int(np.searchsorted(np.cumsum(law), generator.random()))
            ended, step = following == 3, step + 1
            noisy = reward + noise * generator.normal()
            rows.append((f"{label}{episode}", step - 1, state, action, noisy, following % 3, ended, chance[state]))
            if ended or step == most:
                break
            state = following
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "p")
    columns = {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    p = columns.pop("p")
    columns["action_prob"] = np.where(columns["action"] == 1, p, 1 - p)
    return {**columns, "policy_id": np.full(len(rows), label)}


def together(*parts):
    return mixope.Logs.from_arrays(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


WHOLE = together(simulated((0.3, 0.4, 0.5), 300, 1), simulated((0.7, 0.6, 0.5), 300, 2, label="b"))
CUT = together(simulated((0.3, 0.4, 0.5), 300, 1, most=4), simulated((0.7, 0.6, 0.5), 300, 2, label="b"))
ALL = ("emp", "dr", "model", "lstdq", "mwl", "dualdice", "sadl", "emp-single", "kl-emp", "bch", "bch-pooled")
EPISODIC = ("is", "wis", "is-step", "wis-step", "mis", "mis-step")


@pytest.mark.parametrize("gamma", [None, 0.9])
@pytest.mark.parametrize("name", [*ALL, *EPISODIC])
def test_every_estimator_finds_the_total(name, gamma):
    found = mixope.evaluate(WHOLE, TARGET, name, estimand="episode", gamma=gamma)
    truth, error = exact(gamma or 1.0), found.standard_error
    assert abs(found.value - truth) < 3 * error < 2.5
    assert found.unit == "reward per episode"
    length = exact(gamma or 1.0, np.ones(3))
    assert found.measures.episode_length == pytest.approx(length, rel=0.25 if name in EPISODIC else 0.1)


@pytest.mark.parametrize("gamma", [None, 0.9])
@pytest.mark.parametrize("name", [*ALL, "wis-step"])
def test_episodes_that_were_cut_are_not_taken_to_have_ended(name, gamma):
    """Nearly half of one logger's episodes were cut after four steps, and the answer is the same."""
    found = mixope.evaluate(CUT, TARGET, name, estimand="episode", gamma=gamma)
    assert abs(found.value - exact(gamma or 1.0)) < 3 * found.standard_error < 1.5
    assert any("were cut before their end" in note for note in found.notes)


@pytest.mark.parametrize("name", ["is", "wis", "is-step", "mis", "mis-step"])
def test_weights_of_whole_episodes_refuse_logs_that_were_cut(name):
    with pytest.raises(MixopeError, match="cut before their end"):
        mixope.evaluate(CUT, TARGET, name, estimand="episode")
    found = mixope.evaluate(CUT, TARGET, name, gamma=0.9)
    assert "known bias" in [d.name for d in found.diagnostics if d.status == "warn"]


def test_the_discounted_value_is_the_discounted_total_per_step():
    total = mixope.evaluate(WHOLE, TARGET, "emp", estimand="episode", gamma=0.9)
    per_step = mixope.evaluate(WHOLE, TARGET, "emp", gamma=0.9)
    assert per_step.value == pytest.approx(0.1 * total.value)
    assert per_step.interval.width == pytest.approx(0.1 * total.interval.width)


def test_on_policy_the_total_is_the_mean_of_the_totals():
    logs = simulated((0.5, 0.8, 0.3), 400, 3)
    earned = np.array([logs["reward"][logs["episode_id"] == e].sum() for e in np.unique(logs["episode_id"])])
    found = mixope.evaluate(mixope.Logs.from_arrays(**logs), TARGET, "is", estimand="episode")
    assert found.value == pytest.approx(earned.mean())
    assert found.standard_error == pytest.approx(earned.std(ddof=1) / np.sqrt(len(earned)), rel=0.01)
    better = mixope.evaluate(mixope.Logs.from_arrays(**logs), TARGET, "emp", estimand="episode")
    assert abs(better.value - earned.mean()) < 2 * found.standard_error


@pytest.mark.parametrize("name", ["emp", "dr", "lstdq", "mwl", "bch-pooled", "wis-step"])
def test_on_features_it_is_the_same_total(name):
    """One bump per state: features can say what counts can."""
    from mixope.features import OneHot

    counted = mixope.evaluate(CUT, TARGET, name, estimand="episode")
    found = mixope.evaluate(CUT, TARGET, name, estimand="episode", features=OneHot())
    assert found.value == pytest.approx(counted.value, rel=0.02)
    assert found.measures.mean_weight is None or found.measures.mean_weight == pytest.approx(1.0, abs=0.05)


def test_logs_that_never_end_have_no_total_without_a_discount():
    never = simulated((0.3, 0.4, 0.5), 50, 1, most=3)
    never["terminated"] = np.zeros_like(never["terminated"])
    logs = mixope.Logs.from_arrays(**never)
    for name in ("emp", "dr", "model", "mwl"):
        with pytest.raises(MixopeError, match="no episode of these logs ends"):
            mixope.evaluate(logs, TARGET, name, estimand="episode")
    assert mixope.evaluate(logs, TARGET, "emp", estimand="episode", gamma=0.9).value > 0


@pytest.mark.parametrize("name", ["emp", "dr", "lstdq", "mwl", "wis-step"])
def test_on_features_too(name):
    never = simulated((0.3, 0.4, 0.5), 50, 1, most=3)
    never["terminated"] = np.zeros_like(never["terminated"])
    never["observation"], never["next_observation"] = (
        never[c][:, None] / 2 for c in ("observation", "next_observation")
    )
    target = mixope.CallablePolicy(lambda states: LAW[(2 * states[:, 0]).astype(int)], actions=[0, 1])
    with pytest.raises(MixopeError, match="episode"):
        mixope.evaluate(mixope.Logs.from_arrays(**never), target, name, estimand="episode")


def test_states_from_which_no_end_was_logged_are_left_out_and_counted():
    """Rows of a loop without a way out have no finite total; the rest is answered."""
    logs = simulated((0.3, 0.4, 0.5), 200, 1)
    loop = {
        "episode_id": np.full(10, "loop"),
        "step": np.arange(10),
        "observation": np.full(10, 3),
        "action": np.zeros(10, dtype=int),
        "reward": np.ones(10),
        "next_observation": np.full(10, 3),
        "terminated": np.zeros(10, dtype=bool),
        "action_prob": np.ones(10),
        "policy_id": np.full(10, "a"),
    }
    target = mixope.TabularPolicy(np.vstack([LAW, [1.0, 0.0]]))
    found = mixope.evaluate(together(logs, loop), target, "emp", estimand="episode")
    assert np.isfinite(found.value)
    assert found.outside_mass > 0


@pytest.mark.parametrize("gamma", [0.0, 1.5, -1.0])
def test_a_discount_of_the_total_is_above_0_and_at_most_1(gamma):
    with pytest.raises(MixopeError, match="gamma must be above 0 and at most 1"):
        mixope.evaluate(WHOLE, TARGET, "emp", estimand="episode", gamma=gamma)


def test_by_default_an_estimate_says_that_episodes_end_and_what_else_could_be_asked():
    found = mixope.evaluate(WHOLE, TARGET)
    (said,) = found.notes
    assert "starts again" in said
    assert "episode" in said
