"""Where the logs fall into parts that are never left, the average is that of every part, by where episodes lead."""

from dataclasses import replace

import numpy as np
import pytest

import mixope
from mixope.base.estimand import Estimand
from mixope.estimators import make
from mixope.requests.problem import Problem
from mixope.session.session import count
from mixope.solvers.components import long_runs
from mixope.worlds import engagement
from solving import solved

START, FREE, PAID, NEW = 0, (1, 2), (3, 4), (5, 6)
NAMES = ("episode_id", "step", "observation", "action", "reward", "next_observation", "truncated")
REWARD = {0: 0.0, 1: 1.0, 2: 0.0, 3: 4.0, 4: 2.0, 5: 9.0, 6: 7.0}


def table(rows):
    return {name: np.array(column) for name, column in zip(NAMES, zip(*rows, strict=True), strict=True)}


def plans(episodes=200, steps=8, paid=0.3, seed=0, choose=False):
    """Users with one plan for ever; with ``choose`` all begin undecided, and action 1 makes them pay more often."""
    generator, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        state = START if choose else generator.choice(PAID if generator.random() < paid else FREE)
        for step in range(steps):
            action = int(generator.random() < 0.5)
            if state == START:
                following = generator.choice(PAID if generator.random() < (0.2, 0.6)[action] else FREE)
            else:
                following = generator.choice(PAID if state in PAID else FREE, p=(0.3, 0.7) if action else (0.6, 0.4))
            earned = REWARD[int(state)] + 0.3 * generator.normal()
            rows.append((episode, step, int(state), action, earned, int(following), step == steps - 1))
            state = following
    return table(rows)


def without(columns, episodes):
    kept = ~np.isin(columns["episode_id"], episodes)
    return {name: values[kept] for name, values in columns.items()}


LEANS = mixope.TabularPolicy([[0.2, 0.8]] * 7)
"""Action 1 in four of five steps: 0.36 of the time in the first state of a plan, 0.64 in the second."""


def of_part(columns, part):
    inside = np.isin(columns["observation"], part) & np.isin(columns["next_observation"], part)
    return mixope.evaluate({name: values[inside] for name, values in columns.items()}, LEANS, "emp").value


@pytest.mark.parametrize("estimator", ["emp", "dr", "model", "sadl", "mwl", "dualdice", "kl-emp", "lstdq"])
def test_plans_that_nobody_changes_weigh_by_the_episodes_that_start_in_them(estimator):
    columns = plans()
    first = columns["observation"][columns["step"] == 0]
    share = np.isin(first, PAID).mean()
    found = mixope.evaluate(columns, LEANS, estimator)
    assert found.value == pytest.approx((1 - share) * of_part(columns, FREE) + share * of_part(columns, PAID), abs=1e-3)
    assert found.outside_mass == pytest.approx(0.0, abs=1e-9)
    assert any("2 parts that the target never leaves" in note for note in found.alerts)
    assert found.estimand == Estimand("average")


def test_a_target_that_chooses_its_part_ends_there_by_what_it_does():
    """From the start action 1 leads to PAID with 0.6, action 0 with 0.2: the target gets there in 0.52 of all lives."""
    columns = plans(4000, choose=True, seed=1)
    begun, paid = columns["observation"] == START, np.isin(columns["next_observation"], PAID)
    chance = sum(p * paid[begun & (columns["action"] == a)].mean() for a, p in enumerate((0.2, 0.8)))
    found = mixope.evaluate(columns, LEANS, "emp")
    assert chance == pytest.approx(0.52, abs=0.03)
    assert found.value == pytest.approx(
        (1 - chance) * of_part(columns, FREE) + chance * of_part(columns, PAID), abs=1e-3
    )
    truth = 0.48 * 0.36 + 0.52 * (4 * 0.36 + 2 * 0.64)
    assert found.interval.low < truth < found.interval.high


@pytest.mark.parametrize("choose", [False, True])
def test_the_error_is_that_of_leaving_out_a_group_of_episodes_at_a_time(choose):
    """It is the chance of getting to a part, and of starting towards it, that makes most of it."""
    columns = plans(400, choose=choose, seed=2)
    found = mixope.evaluate(columns, LEANS, "emp")
    groups = np.array_split(np.random.default_rng(0).permutation(400), 50)
    values = np.array([mixope.evaluate(without(columns, group), LEANS, "emp").value for group in groups])
    jackknife = np.sqrt((len(groups) - 1) * np.mean((values - values.mean()) ** 2))
    assert found.standard_error == pytest.approx(jackknife, rel=0.2)


def test_a_heavy_part_that_the_target_leaves_is_not_its_long_run():
    """Seven of eight rows are logged while it is new; in the end nothing is."""
    rows = []
    for episode in range(200):
        state, left = NEW[0], 6 + episode % 3
        for step in range(8):
            following = FREE[step % 2] if step >= left - 1 or state in FREE else NEW[(step + 1) % 2]
            rows.append((episode, step, state, 0, REWARD[state], following, step == 7))
            state = following
    columns = table(rows)
    assert np.isin(columns["observation"], NEW).mean() > 0.8
    found = mixope.evaluate(columns, mixope.TabularPolicy([[1.0]] * 7), "emp")
    assert 0.0 <= found.value <= 1.0
    assert found.outside_mass < 0.05  # if one row more had led back to what is new


def test_a_loop_at_the_end_of_one_episode_is_no_long_run():
    columns = plans(200, paid=0.0, seed=3)
    lost = np.flatnonzero(columns["episode_id"] == 199)[-3:]
    columns["next_observation"][lost], columns["observation"][lost[1:]] = NEW[0], NEW[0]
    kept = without(columns, [199])
    found, before = (mixope.evaluate(each, LEANS, "emp") for each in (columns, kept))
    assert found.value == pytest.approx(before.value, abs=0.02)
    assert not any("parts" in note for note in found.alerts)


def test_where_no_start_is_known_the_part_with_the_most_rows_is_taken_and_that_is_said():
    columns = plans()
    rows = count(columns).transitions
    found = solved(make("emp"), Problem(replace(rows, starts=np.zeros_like(rows.starts)), LEANS))
    assert found.value == pytest.approx(of_part(columns, FREE), abs=1e-9)
    assert any("the part with the most rows was taken" in note for note in found.notes)
    assert found.outside_mass > 0.2


def with_gaps(columns):
    """As factors (plan, place), without action 1 at the first place: something is left to predict."""
    columns = dict(columns)
    for name in ("observation", "next_observation"):
        state = columns.pop(name) - 1
        columns[f"{name}.plan"], columns[f"{name}.place"] = np.array(["free", "paid"])[state // 2], state % 2
    kept = ~((columns["observation.place"] == 0) & (columns["action"] == 1) & (columns["observation.plan"] == "paid"))
    return {name: values[kept] for name, values in columns.items()}


def cut_to_steps(columns):
    """Each row an episode of its own, so that rows can be left out."""
    n = len(columns["step"])
    return {**columns, "episode_id": np.arange(n), "step": np.zeros(n, int), "truncated": np.ones(n, bool)}


def test_what_was_never_logged_is_predicted_within_a_plan_and_plans_weigh_by_starts():
    columns = cut_to_steps(with_gaps(plans(300, seed=4)))
    keys = [[plan, place] for plan in ("free", "paid") for place in (0, 1)]
    target = mixope.TabularPolicy([[0.2, 0.8]] * 4, keys, factors=["plan", "place"])
    mine = {p: {k: v[columns["observation.plan"] == p] for k, v in columns.items()} for p in ("free", "paid")}
    alone = {plan: mixope.evaluate(rows, target, "dr").value for plan, rows in mine.items()}
    share = np.mean(columns["observation.plan"] == "paid")
    found = mixope.evaluate(columns, target, "dr")
    assert found.value == pytest.approx((1 - share) * alone["free"] + share * alone["paid"], rel=1e-9)
    assert found.measures.approximation > 0
    between = np.sqrt(share * (1 - share) / len(columns["step"])) * (alone["paid"] - alone["free"])
    assert found.standard_error > between


def test_a_part_is_believed_by_the_rule_of_three():
    """Of 100 rows at 0 some lead to 1, where 20 rows stay: left once in 20/3 at the most, it holds most from 15 on."""
    source, destination = np.array([0, 0, 1]), np.array([0, 1, 1])
    for entries, last in ((14.0, 0), (15.0, 1)):
        run, doubt = long_runs(
            source, destination, np.array([100 - entries, entries, 20.0]), np.array([100.0, 20.0]), 2
        )
        assert np.flatnonzero(run >= 0).tolist() == [last]
        assert doubt.tolist() == pytest.approx([0.0, 100 / (100 + 20 * entries)])


def arm(name):
    return lambda observations, actions: np.where(np.asarray(actions) == name, 1.0, 0.0)


@pytest.mark.long
@pytest.mark.parametrize(("setting", "hidden"), [("opposite", ()), ("wear-out", ()), ("novelty", "plan")])
def test_intervals_of_the_long_run_cover_it_though_users_have_a_plan(setting, hidden):
    truth = {name: engagement.value(setting, name) for name in "AB"}
    hits = []
    for seed in range(20):
        test = engagement.draw(setting, users=1000, days=14, seed=seed, hidden=hidden)
        state = [name for name in test.column_names if name not in ("user", "day", "variant", "revenue")]
        names = {"episode_id": "user", "step": "day", "action": "variant", "reward": "revenue", "observation": state}
        logs = mixope.read(test, columns=names, ends="truncated")
        found = mixope.compare(logs, {name: arm(name) for name in "AB"}, ["emp"])
        pair = found.differences[0]["A", "B"]
        spans = [(e.interval, truth[e.target]) for e in found.estimates]
        hits.append([low_high.low < true < low_high.high for low_high, true in spans])
        hits[-1].append(pair.interval.low < truth["A"] - truth["B"] < pair.interval.high)
    assert np.all(np.sum(hits, axis=0) >= 16)
