"""Rewards that stand a row too late or too early come out; actions that were swapped do where somebody can tell."""

import numpy as np
import pytest
from scipy import stats

import mixope
from mixope import worlds
from mixope.checks.known_policies import misfit_of_propensities
from mixope.checks.order import excess, rewards_in_step
from mixope.requests.problem import Problem
from mixope.requests.shifts import RewardShifts, reward_shifts
from mixope.requests.trajectories import NumberedSteps
from mixope.requests.transitions import transition_cells
from mixope.session.session import count

pytestmark = pytest.mark.long

MODEL = worlds.make("singlepath")
LOGGERS = worlds.stages(MODEL, 2, seed=0)
TARGET = mixope.TabularPolicy(worlds.target(MODEL, seed=0))


def logs(seed=0, episodes=60, noise=0.0, steps=20):
    columns = worlds.simulate(MODEL, LOGGERS, episodes, steps, seed=seed)
    chance = np.random.default_rng([seed, 1]).normal(size=len(columns["reward"]))
    return {**columns, "reward": columns["reward"] + noise * chance}


def moved(columns, steps):
    """Every reward so many rows later in its episode; what leaves an episode is lost, what is empty is zero."""
    by_episode = columns["reward"].reshape(-1, 20)
    late = np.zeros_like(by_episode)
    if steps > 0:
        late[:, steps:] = by_episode[:, :-steps]
    else:
        late[:, :steps] = by_episode[:, -steps:]
    return {**columns, "reward": late.ravel()}


def shifts_of(columns):
    counted = count(columns)
    (ordered,) = counted.rounds().ask([NumberedSteps(counted.numbers)])
    return reward_shifts(ordered.in_key_order(), transition_cells(counted.transitions))


def judged(columns, estimator="emp", **options):
    found = mixope.evaluate(columns, TARGET, estimator, **options)
    return {d.name: d for d in found.diagnostics}


def test_the_sums_are_those_of_a_loop_over_the_rows():
    columns = logs(episodes=12, noise=0.5)
    keys = list(zip(columns["observation"], columns["action"], columns["next_observation"], strict=True))
    n = len(keys)
    pairs = [(t, t - 1) for t in range(n) if t % 20]
    expected = np.zeros(12)
    for t, before in pairs:
        parts = []
        for kinds in ([(i, keys[i]) for i, _ in pairs], [(i, keys[j]) for i, j in pairs]):
            mine = keys[t] if not parts else keys[before]
            others = [columns["reward"][i] for i, kind in kinds if kind == mine]
            known = len(others) > 1
            parts.append(
                (columns["reward"][t] - np.mean(others)) ** 2 * len(others) / (len(others) - 1) if known else None
            )
        if None not in parts:
            expected[t // 20] += parts[0] - parts[1]
    order = np.lexsort((columns["episode_id"][::20], columns["policy_id"][::20]))
    assert shifts_of(columns).late == pytest.approx(expected[order])


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@pytest.mark.parametrize(("steps", "when"), [(1, "late"), (-1, "early")])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_rewards_in_the_wrong_row_come_out(steps, when, noise, engine):
    check = judged(moved(logs(noise=noise), steps), engine=engine)["rewards in step"]
    assert check.status != "pass"
    assert check.sentence.endswith(f"recorded one step {when}")


def test_rewards_in_the_right_row_raise_no_alarm():
    """Whatever they depend on: the whole transition, the state alone, the next state alone, or nothing."""
    worth = np.random.default_rng(3).normal(size=5)
    for seed in range(10):
        columns = logs(seed)
        chance = np.random.default_rng([seed, 2]).normal(size=len(columns["reward"]))
        for mean in (columns["reward"], worth[columns["observation"]], worth[columns["next_observation"]], 0.0):
            for noise in (0.1, 1.0):
                found = rewards_in_step(shifts_of({**columns, "reward": mean + noise * chance}))
                assert found.status == "pass"


def test_a_world_that_branches_raises_no_alarm():
    """Kinds of transition grow rarer with every step, and a reward is told by what a row shares with the one before."""
    generator = np.random.default_rng(0)
    alarms = 0
    for _ in range(10):
        action = generator.integers(0, 2, size=(400, 6))
        node = np.concatenate([np.ones((400, 1), dtype=int), np.zeros((400, 6), dtype=int)], axis=1)
        for step in range(6):
            node[:, step + 1] = 2 * node[:, step] + action[:, step]
        reward = 0.1 * np.log2(node[:, :-1]) + generator.normal(size=(400, 6))
        columns = {
            "episode_id": np.repeat(np.arange(400), 6),
            "step": np.tile(np.arange(6), 400),
            "observation": node[:, :-1].ravel(),
            "action": action.ravel(),
            "reward": reward.ravel(),
            "next_observation": node[:, 1:].ravel(),
            "terminated": np.tile(np.arange(6) == 5, 400),
        }
        alarms += rewards_in_step(shifts_of(columns)).status != "pass"
    assert alarms == 0


def test_where_nothing_tells_rows_apart_nothing_is_said():
    columns = logs()
    assert rewards_in_step(shifts_of({**columns, "reward": np.full(len(columns["reward"]), 0.1)})) is None
    assert rewards_in_step(RewardShifts(np.ones(5), np.ones(5))) is None
    assert excess(np.array([1.0] * 6)) == np.inf


def test_long_logs_are_not_put_in_order(monkeypatch):
    monkeypatch.setattr("mixope.session.session.MOST_ORDERED", 1_000)
    assert "rewards in step" not in judged(logs())


def swapped(columns):
    """Both actions under the other's name, for all loggers alike."""
    return {**columns, "action": 1 - columns["action"]}


def with_propensities(columns, action):
    logger = np.where(columns["policy_id"] == "logger-0", 0, 1)
    return {**columns, "action_prob": np.stack(LOGGERS)[logger, columns["observation"], action]}


@pytest.mark.parametrize("estimator", ["bch", "bch-pooled"])
def test_swapped_actions_come_out_by_propensities_of_the_logged_names(estimator):
    """Recorded at the time they only say that another policy logged: such rows are like any of that policy."""
    healthy = logs(episodes=120)
    broken = swapped(healthy)
    assert judged(with_propensities(healthy, healthy["action"]), estimator)["behaviour fit"].status == "pass"
    assert judged(with_propensities(broken, broken["action"]), estimator)["behaviour fit"].status == "fail"
    assert judged(with_propensities(broken, healthy["action"]), estimator)["behaviour fit"].status == "pass"


KNOWN = {f"logger-{j}": mixope.TabularPolicy(law) for j, law in enumerate(LOGGERS)}


@pytest.mark.parametrize("estimator", ["known-mixture", "emp", "dr", "sadl"])
def test_swapped_actions_come_out_by_known_policies(estimator):
    assert judged(logs(episodes=120), estimator, loggers=KNOWN)["behaviour fit"].status == "pass"
    assert judged(swapped(logs(episodes=120)), estimator, loggers=KNOWN)["behaviour fit"].status == "fail"
    unknown = {name: column for name, column in logs(episodes=120).items() if name != "action_prob"}
    assert "behaviour fit" not in judged(unknown, "emp")


@pytest.mark.parametrize("estimator", ["emp", "dr", "sadl"])
def test_propensities_are_held_against_actions_also_where_the_behaviour_is_counted(estimator):
    healthy = logs(episodes=120)
    broken = swapped(healthy)
    found = judged(with_propensities(broken, broken["action"]), estimator)["behaviour fit"]
    assert found.status == "warn"  # the value does not rest on them; the names of actions may be mixed up
    assert "the recorded propensities do not fit the actions that were logged" in found.sentence
    assert judged(with_propensities(healthy, healthy["action"]), estimator)["behaviour fit"].status == "pass"


def test_names_that_changed_with_their_propensities_are_another_policys_and_fit():
    """Such rows have the law of the rows of loggers that act so: nothing in them can tell."""
    broken = with_propensities(swapped(logs(episodes=120)), logs(episodes=120)["action"])
    assert judged(broken, "emp")["behaviour fit"].status == "pass"


def propensities_by_hand(columns):
    """Pearson's χ² over loggers, states and actions that are expected five times; in complete states A − 1 degrees."""
    statistic = degrees = 0.0
    for logger in np.unique(columns["policy_id"]):
        for state in range(5):
            here = (columns["policy_id"] == logger) & (columns["observation"] == state)
            for action in (0, 1):
                mine = here & (columns["action"] == action)
                probability = columns["action_prob"][mine][0] if mine.any() else 0.0
                expected = here.sum() * probability
                if min(expected, here.sum() - expected) >= 5:
                    statistic += (mine.sum() - expected) ** 2 / expected
                    degrees += 1 - probability
    return stats.norm.isf(stats.chi2.sf(statistic, degrees))


def test_the_misfit_of_propensities_is_pearsons():
    columns = logs(episodes=40)
    assert judged(columns, "emp")["behaviour fit"].value == pytest.approx(propensities_by_hand(columns))


def test_propensities_that_vary_from_row_to_row_fit_if_they_are_right():
    """A logger that acts by the hour as well: neither state nor counts know it, and each row is right."""
    generator, found = np.random.default_rng(4), []
    for _ in range(40):
        columns = logs(seed=int(generator.integers(1_000_000)))
        n = len(columns["reward"])
        chance = generator.choice([0.2, 0.5, 0.9], n)
        action = (generator.random(n) < chance).astype(int)
        columns.update(action=action, action_prob=np.where(action == 1, chance, 1 - chance))
        found.append(judged(columns, "emp")["behaviour fit"].value)
    assert max(found) < 3.5
    assert np.mean(found) < 0.5  # on the safe side


def changing(seed, switch=0.05, states=9, n=700):
    """What one of three actions is likely in a state is drawn anew now and then; every row has its own probability."""
    generator = np.random.default_rng(seed)
    favourite, rows = generator.integers(3, size=states), []
    for _ in range(n):
        state = generator.integers(states)
        if generator.random() < switch:
            favourite[state] = generator.integers(3)
        chances = np.where(np.arange(3) == favourite[state], 0.9, 0.05)
        action = generator.choice(3, p=chances)
        rows.append((state, action, chances[action]))
    state, action, chance = map(np.array, zip(*rows, strict=True))
    return {
        "episode_id": np.arange(n) // 10,
        "step": np.arange(n) % 10,
        "observation": state,
        "action": action,
        "reward": generator.normal(size=n),
        "next_observation": generator.permutation(state),
        "action_prob": chance,
    }


def misfit(columns):
    return misfit_of_propensities(Problem(count(columns).transitions, mixope.TabularPolicy(np.full((9, 3), 1 / 3))))


def test_propensities_of_loggers_that_change_fit_if_they_are_right():
    """Few rows of a state: those that were taken while an action was likely do not show that it once was not."""
    assert max(misfit(changing(seed)).deviations for seed in range(20)) < 3.5
    assert max(misfit(changing(seed, switch=1.0)).deviations for seed in range(20)) < 3.5


def test_propensities_of_loggers_that_change_and_are_wrong_come_out():
    for seed in range(5):
        columns = changing(seed, n=2000)
        shuffled = np.random.default_rng(seed).permutation(columns["action_prob"])
        assert misfit({**columns, "action_prob": shuffled}).deviations > 4
        assert misfit({**columns, "action_prob": (1 - columns["action_prob"]) / 2 + 0.01}).deviations > 10


def test_actions_that_are_nearly_certain_raise_no_alarm():
    """One exception in a state where a fifth of one was expected is no evidence, in a hundred such states neither."""
    generator = np.random.default_rng(5)
    for _ in range(20):
        state = np.repeat(np.arange(100), 20)
        action = (generator.random(2_000) < 0.01).astype(int)
        columns = {
            "episode_id": np.arange(2_000) // 10,
            "step": np.arange(2_000) % 10,
            "observation": state,
            "action": action,
            "reward": generator.normal(size=2_000),
            "next_observation": generator.permutation(state),
            "action_prob": np.where(action == 1, 0.01, 0.99),
        }
        found = misfit_of_propensities(Problem(count(columns).transitions, TARGET))
        assert found is None or found.deviations < 4


def test_a_state_with_a_missing_propensity_says_nothing():
    columns = logs()
    gap = np.where(np.arange(len(columns["reward"])) % 3 == 0, np.nan, columns["action_prob"])
    assert "behaviour fit" not in judged({**columns, "action_prob": gap}, "emp")


@pytest.mark.parametrize("name", ["singlepath", "walk", "gridworld-slip"])
def test_policies_that_did_log_fit(name):
    model = worlds.make(name)
    laws = worlds.stages(model, 3, seed=0)
    known = {f"logger-{j}": mixope.TabularPolicy(law) for j, law in enumerate(laws)}
    target, found = mixope.TabularPolicy(worlds.target(model, seed=0)), []
    for seed in range(12):
        columns = worlds.simulate(model, laws, 60, 30, seed=seed)
        estimate = mixope.evaluate(columns, target, "emp", loggers=known)
        found.append(next(d.value for d in estimate.diagnostics if d.name == "behaviour fit"))
    assert max(found) < 3.5
    assert abs(np.mean(found)) < 1.0


def test_labels_that_changed_places_do_not_fit():
    columns = logs(episodes=240)
    columns["policy_id"] = np.where(columns["policy_id"] == "logger-0", "logger-1", "logger-0")
    assert judged(columns, "emp", loggers=KNOWN)["behaviour fit"].status != "pass"


def test_an_action_that_a_policy_never_takes_does_not_fit():
    sure = {**KNOWN, "logger-0": mixope.TabularPolicy(np.tile([1.0, 0.0], (5, 1)))}
    assert judged(logs(), "emp", loggers=sure)["behaviour fit"].status == "fail"
