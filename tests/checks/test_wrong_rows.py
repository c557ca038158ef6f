"""States, rewards and marks that stand in the wrong row come out, also where only some of them do."""

import numpy as np
import pytest

import mixope
from mixope.checks import check_logs
from mixope.checks.ends import surplus_in
from mixope.checks.order import rewards_of_others, states_in_step
from mixope.requests.shifts import RewardShifts, Shifts
from mixope.requests.stale import Staleness, pearson_within, predicted
from mixope.session.session import count, look

GENERATOR = np.random.default_rng(7)
STATES, ACTIONS = 6, 3
MOVES = GENERATOR.dirichlet(np.full(STATES, 0.4), size=(STATES, ACTIONS))
LOGGERS = GENERATOR.dirichlet(np.ones(ACTIONS), size=(2, STATES))
REWARD = GENERATOR.normal(size=(STATES, ACTIONS, STATES))
ENDS = np.where(np.arange(STATES)[:, None] == 2, 0.3, 0.0) * np.ones(ACTIONS)


def drawn(chances, generator):
    return np.minimum((np.cumsum(chances, 1) < generator.random(len(chances))[:, None]).sum(1), chances.shape[1] - 1)


def logs(seed=0, episodes=150, steps=12, noise=0.3, ends=True, labelled=True):
    """Two loggers in a small world that nobody else simulates; episodes are cut after some steps."""
    generator = np.random.default_rng(seed)
    logger, state = np.arange(episodes) * 2 // episodes, generator.integers(0, STATES, episodes)
    alive, rows = np.ones(episodes, dtype=bool), []
    for step in range(steps):
        action = drawn(LOGGERS[logger, state], generator)
        after = drawn(MOVES[state, action], generator)
        ended = (generator.random(episodes) < ENDS[state, action]) & ends
        reward = REWARD[state, action, after] + noise * generator.normal(size=episodes)
        cut = ~ended & (step == steps - 1)
        rows.append(
            (np.arange(episodes), np.full(episodes, step), logger, state, action, reward, after, ended, cut, alive)
        )
        alive, state = alive & ~ended, after
    names = ("episode_id", "step", "policy_id", "observation", "action", "reward", "next_observation")
    *values, lived = (np.stack(part, axis=1) for part in zip(*rows, strict=True))
    found = {n: v[lived] for n, v in zip((*names, "terminated", "truncated"), values, strict=True)}
    found["policy_id"] = np.char.add("logger-", found["policy_id"].astype(str))
    return found if labelled else {n: v for n, v in found.items() if n != "policy_id"}


def vectors(seed=0, episodes=40, steps=30, discrete=False):
    """A wheel that is pushed: nothing in it is linear or normal but the noise."""
    generator, rows = np.random.default_rng(seed), []
    state = generator.normal(size=(episodes, 2))
    for _ in range(steps):
        action = np.sin(2 * state[:, 0]) + 0.5 * generator.normal(size=episodes)
        action = (action > 0).astype(int) if discrete else action
        push = np.column_stack([0.5 * action, np.zeros(episodes)])
        after = 0.7 * state + 0.4 * np.tanh(2 * state[:, ::-1]) + push + 0.3 * generator.normal(size=(episodes, 2))
        rows.append((state, action, np.maximum(state[:, 0], 0) + 0.1 * after[:, 1] ** 2, after))
        state = after
    observation, action, reward, after = (np.stack(part, axis=1) for part in zip(*rows, strict=True))
    return {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": np.tile(np.arange(steps), episodes),
        "observation": observation.reshape(-1, 2),
        "action": action.ravel() if discrete else action.reshape(-1, 1),
        "reward": reward.ravel() + 0.1 * generator.normal(size=episodes * steps),
        "next_observation": after.reshape(-1, 2),
        "terminated": np.zeros(episodes * steps, dtype=bool),
        "truncated": np.tile(np.arange(steps) == steps - 1, episodes),
    }


def first_of(columns):
    return np.append(True, np.diff(columns["episode_id"]) != 0)


def stale(columns):
    """Beside every action the state of the step before; the first row has its own."""
    before, first = np.roll(columns["observation"], 1, axis=0), first_of(columns)
    before[first] = columns["observation"][first]
    return {**columns, "observation": before, "next_observation": columns["observation"]}


def some_late(columns, share=1 / 3, early=False):
    first = first_of(columns)
    edge, by = (np.roll(first, -1), -1) if early else (first, 1)
    chosen = (np.random.default_rng(5).random(first.sum()) < share)[np.cumsum(first) - 1]
    moved = np.where(edge, 0.0, np.roll(columns["reward"], by))
    return {**columns, "reward": np.where(chosen, moved, columns["reward"])}


def cuts_marked(columns, share=0.3):
    chosen = columns["truncated"] & (np.random.default_rng(6).random(len(columns["reward"])) < share)
    return {**columns, "terminated": columns["terminated"] | chosen, "truncated": columns["truncated"] & ~chosen}


def checked(columns, engine=None):
    seen = look(columns, engine)
    transitions = getattr(seen, "transitions", None)
    sums = seen.rounds().run(seen.structure())
    return {check.name: check for check in check_logs(transitions, sums)}


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@pytest.mark.parametrize("labelled", [True, False])
def test_states_one_step_late_come_out(engine, labelled):
    check = checked(stale(logs(labelled=labelled)), engine)["states in step"]
    assert (check.status, check.value > 5) == ("warn", True) or check.status == "fail"
    assert checked(logs(labelled=labelled), engine)["states in step"].value < 0


def test_a_green_answer_from_stale_states_is_green_no_more():
    target = mixope.TabularPolicy(np.roll(LOGGERS[0], 1, axis=1))
    reasons = {d.name for d in mixope.evaluate(stale(logs()), target).diagnostics if d.status != "pass"}
    assert "states in step" in reasons


@pytest.mark.parametrize("discrete", [False, True])
def test_stale_vectors_come_out(discrete):
    assert checked(stale(vectors(discrete=discrete)))["states in step"].status != "pass"
    assert checked(vectors(discrete=discrete))["states in step"].value < 0


def test_loggers_that_remember_what_they_did_raise_no_alarm():
    """Several loggers that nobody named, and one that repeats itself: the action before tells the action, no more."""
    generator, rows = np.random.default_rng(3), []
    state, before = generator.integers(0, STATES, 300), generator.integers(0, ACTIONS, 300)
    for _ in range(8):
        action = np.where(generator.random(300) < 0.8, before, drawn(LOGGERS[0, state], generator))
        after = drawn(MOVES[state, action], generator)
        rows.append((state, action, after))
        state, before = after, action
    state, action, after = (np.stack(part, axis=1).ravel() for part in zip(*rows, strict=True))
    columns = {"episode_id": np.repeat(np.arange(300), 8), "step": np.tile(np.arange(8), 300), "observation": state}
    columns |= {"action": action, "reward": np.ones(2400), "next_observation": after}
    assert checked(columns)["states in step"].value < 0


def test_where_states_tell_nothing_nothing_is_said():
    """One state: no column of states can be late."""
    columns = logs(ends=False)
    nothing = np.zeros_like(columns["observation"])
    found = checked({**columns, "observation": nothing, "next_observation": nothing})
    assert "states in step" not in found or found["states in step"].status == "pass"
    assert states_in_step(Staleness(np.ones(3), 5.0, 2.0)) is None


@pytest.mark.parametrize("early", [False, True])
def test_rewards_of_some_episodes_in_the_wrong_row_come_out(early):
    check = checked(some_late(logs(), early=early))["rewards of others"]
    assert check.status == "warn"
    assert ("early" if early else "late") in check.sentence
    assert checked(logs())["rewards of others"].status == "pass"


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("discrete", [False, True])
def test_on_vectors_too(early, discrete):
    assert checked(some_late(vectors(discrete=discrete), early=early))["rewards of others"].status == "warn"
    assert checked(vectors(discrete=discrete))["rewards of others"].status == "pass"


def test_rare_large_rewards_do_not_drown_small_ones():
    """A purchase of 1,000 in the last row of some episodes, and a small cost of one action everywhere else."""
    columns, generator = logs(noise=0.0), np.random.default_rng(1)
    cost = -0.1 * (columns["action"] == 1)
    paid = {**columns, "reward": cost + 1000.0 * (columns["terminated"] & (generator.random(len(cost)) < 0.5))}
    assert checked(paid)["rewards of others"].status == "pass"
    assert checked(some_late(paid))["rewards of others"].status == "warn"


def test_rewards_that_never_vary_say_nothing():
    assert rewards_of_others(RewardShifts(np.zeros(40), np.zeros(40))) is None
    nothing = np.full(40, -np.inf)
    assert rewards_of_others(Shifts(RewardShifts(np.zeros(40), np.zeros(40)), nothing, nothing)) is None
    assert "rewards of others" not in checked({**logs(), "reward": np.ones(len(logs()["reward"]))})


def test_cuts_that_are_marked_as_ends_come_out():
    assert checked(cuts_marked(logs()))["ends at cuts"].status != "pass"
    assert checked(logs())["ends at cuts"].status == "pass"


def test_ends_at_cuts_needs_cuts_and_ends():
    columns = logs()
    whole = np.isin(columns["episode_id"], columns["episode_id"][columns["terminated"]])
    assert "ends at cuts" not in checked({name: values[whole] for name, values in columns.items()})
    assert "ends at cuts" not in checked(logs(ends=False))


def test_a_clock_that_ends_everything_at_the_same_rate_is_healthy():
    """A discount that is played out, and cuts after lengths of their own: the marks may all be right."""
    columns, generator = logs(ends=False, episodes=300), np.random.default_rng(2)
    ended = generator.random(len(columns["reward"])) < 0.1
    later = np.cumsum(ended) - ended
    begun = later[first_of(columns)][np.cumsum(first_of(columns)) - 1]
    kept = later == begun
    found = {name: values[kept] for name, values in columns.items()}
    found["terminated"] = ended[kept]
    found["truncated"] &= ~ended[kept]
    assert checked(found)["ends at cuts"].status == "pass"


@pytest.mark.long
def test_healthy_logs_raise_no_alarm():
    names = ("states in step", "rewards of others", "ends at cuts")
    for seed in range(60):
        found = checked(logs(seed, episodes=40 + 3 * seed, steps=4 + seed % 9, noise=seed % 3, labelled=seed % 2 == 0))
        assert {found[name].status for name in names if name in found} <= {"pass"}


def test_predictions_are_those_of_the_other_rows():
    given, outcome = np.array([0, 0, 0, 1]), np.array([2, 2, 1, 1])
    assert predicted(given, outcome, 0.25) == pytest.approx([1.25 / 3, 1.25 / 3, 0.25 / 3, 0.25])


def test_chi_squared_within_strata_has_the_mean_of_all_orders():
    """Over all orders of the rows of a stratum the statistic, so corrected, is its degrees of freedom in the mean."""
    generator = np.random.default_rng(0)
    stratum, left = np.repeat([0, 1], [7, 9]), generator.integers(0, 3, 16)
    right, found = generator.integers(0, 2, 16), []
    for _ in range(4000):
        order = np.concatenate([generator.permutation(7), 7 + generator.permutation(9)])
        found.append(pearson_within(stratum, left, right[order]))
    assert np.mean([f[0] for f in found]) == pytest.approx(found[0][1], rel=0.04)


def test_a_surplus_of_rare_events_is_poissons():
    """Two of a thousand rows weigh, and what happens to one row in a hundred happens to both: a chance of 2e-4."""
    weight, happened = np.zeros(1000), np.zeros(1000)
    weight[:2] = 1.0
    happened[:10] = 1.0
    assert 3.0 < surplus_in(np.zeros(1000, dtype=int), weight, happened) < 4.0
    assert surplus_in(np.arange(1000), weight, happened) is None


def test_long_logs_are_not_put_in_order(monkeypatch):
    monkeypatch.setattr("mixope.session.session.MOST_ORDERED", 100)
    assert not {"states in step", "rewards of others", "ends at cuts"} & set(checked(logs()))
    assert count(logs()).transitions.n_rows > 100


def test_first_rows_that_all_episodes_lack_leave_a_note_and_no_more():
    """Rows that begin mid-way are healthy rows of a world that begins there: only the number of the step can speak."""
    columns, target = logs(), mixope.TabularPolicy(LOGGERS[0])
    lost = {name: values[~first_of(columns)] for name, values in columns.items()}
    from_zero = {**lost, "step": lost["step"] - 1}
    found = [mixope.evaluate(each, target, estimand="episode") for each in (columns, lost, from_zero)]
    assert [any("no episode begins before step 1" in note for note in each.notes) for each in found] == [0, 1, 0]
    assert found[1].value == found[2].value
    statuses = [[(d.name, d.status) for d in each.diagnostics] for each in found]
    assert statuses[1] == statuses[2]
    average = mixope.evaluate({**logs(ends=False), "step": logs(ends=False)["step"] + 1}, target)
    assert not any("no episode begins" in note for note in average.notes)
