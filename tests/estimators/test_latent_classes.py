"""Units that differ for ever, as classes: against hand-solved mixtures, against ``emp``, and what must not matter."""

import json

import numpy as np
import pytest
from benchmarks.classes import TOP, WANTED, WORLDS

import mixope
from mixope.answers.resampling import prepare
from mixope.base.errors import UsageError
from mixope.estimators.latent_classes import PRIOR, LatentClasses
from mixope.session.session import count

TARGET = mixope.TabularPolicy(np.tile([1 - WANTED, WANTED], (TOP + 1, 1)))
ASKED = {"average": {}, "discounted": {"gamma": 0.8}, "horizon": {"horizon": 6}}
ONE_ACTION = mixope.TabularPolicy(np.ones((2, 1)))


def movers_and_stayers(movers=15, stayers=45, steps=10, ends=False):
    """Movers go to the other state at every step, stayers stay; a step in state 1 earns 1. All begin in state 0.

    With ``ends``, movers end after two steps, and stayers after ten.
    """
    rows = []
    for episode in range(movers + stayers):
        mover = episode < movers
        length = 2 if ends and mover else steps
        for t in range(length):
            state, after = (t % 2, 1 - t % 2) if mover else (0, 0)
            rows.append((episode, t, state, 0, float(state), after, t == length - 1))
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "last")
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    last = columns.pop("last")
    return {**columns, "terminated": last & ends, "truncated": last & (not ends)}


def chain_of(log, units):
    """The chain of some units by hand: P and ends with the rows that every class is given, starts in state 0."""
    mine = np.isin(log["episode_id"], units)
    moves = np.zeros((2, 3))
    for chosen, weight in ((mine, 1.0), (np.ones(len(mine), bool), None)):
        for s in range(2):
            here = chosen & (log["observation"] == s)
            for t in range(3):
                there = log["terminated"] if t == 2 else (log["next_observation"] == t) & ~log["terminated"]
                moves[s, t] += np.sum(here & there) * (PRIOR / here.sum() if weight is None else weight)
    return moves / moves.sum(axis=1, keepdims=True)


def value_of(chain, asked):
    moves, reward = chain[:, :2], np.array([0.0, 1.0])
    if "gamma" in asked:
        return 0.2 * np.linalg.solve(np.eye(2) - 0.8 * moves, reward)[0]
    if "horizon" in asked:
        law, total = np.array([1.0, 0.0]), 0.0
        for _ in range(6):
            total, law = total + law @ reward, law @ moves
        return total / 6
    return moves[0, 1] / (moves[0, 1] + moves[1, 0])


@pytest.mark.parametrize("estimand", ASKED)
def test_two_classes_are_solved_as_by_hand(estimand):
    log, asked = movers_and_stayers(), ASKED[estimand]
    found = mixope.evaluate(log, ONE_ACTION, "latent-classes", **asked)
    by_hand = [value_of(chain_of(log, units), asked) for units in (np.arange(15), np.arange(15, 60))]
    assert found.measures.classes == 2
    assert found.value == pytest.approx(0.25 * by_hand[0] + 0.75 * by_hand[1], rel=1e-6)
    of_class = found.measures.by_class
    assert [of_class["1 share"], of_class["2 share"]] == pytest.approx([0.75, 0.25], abs=1e-6)
    assert [of_class["1 value"], of_class["2 value"]] == pytest.approx(by_hand[::-1], rel=1e-6)


def test_an_average_that_starts_again_draws_another_unit():
    """Earnings of an episode over its length, each in the mean of all classes; a class of long episodes weighs more."""
    log = movers_and_stayers(ends=True)
    found = mixope.evaluate(log, ONE_ACTION, "latent-classes")
    earned, length = np.zeros(2), np.zeros(2)
    for c, units in enumerate((np.arange(15), np.arange(15, 60))):
        moves = chain_of(log, units)[:, :2]
        visits = np.linalg.solve(np.eye(2) - moves.T, [1.0, 0.0])
        earned[c], length[c] = visits[1], visits.sum()
    share = np.array([0.25, 0.75])
    assert found.measures.classes == 2
    assert found.value == pytest.approx(float(share @ earned / (share @ length)), rel=1e-6)


@pytest.mark.parametrize("estimand", [*ASKED, "episode"])
def test_one_class_is_emp(estimand):
    asked = {"estimand": "episode"} if estimand == "episode" else ASKED[estimand]
    log = mixope.read(WORLDS["alike, leave" if estimand == "episode" else "paces"].write(40, 3))
    one, emp, model = (mixope.evaluate(log, TARGET, name, **asked) for name in (LatentClasses(1), "emp", "model"))
    assert (one.value, one.interval) == (emp.value, emp.interval)
    assert one.diagnostics == emp.diagnostics
    assert one.value == pytest.approx(model.value, rel=1e-9)


def test_where_units_are_alike_it_is_emp():
    log = mixope.read(WORLDS["alike"].write(100, 0))
    found = mixope.evaluate(log, TARGET, "latent-classes")
    assert found.measures.classes == 1
    assert found.value == mixope.evaluate(log, TARGET, "emp").value


@pytest.mark.parametrize("world", ["two paces", "paces, 5 episodes each", "responses"])
def test_the_interval_holds_a_truth_that_the_plain_chain_misses(world):
    log, truth = mixope.read(WORLDS[world].write(250, 1)), WORLDS[world].value()
    emp, found = (mixope.evaluate(log, TARGET, name) for name in ("emp", "latent-classes"))
    assert not emp.interval.low < truth < emp.interval.high
    assert found.interval.low < truth < found.interval.high


def test_what_cannot_be_seen_in_an_episode_is_seen_in_a_user():
    """Episodes of one step: who is who is told by the user alone."""
    log = movers_and_stayers()
    log = {**log, "user": log["episode_id"], "episode_id": np.arange(len(log["step"])), "step": 0 * log["step"]}
    log["truncated"] = np.ones(len(log["step"]), dtype=bool)
    apart = mixope.evaluate(log, ONE_ACTION, "latent-classes", gamma=0.8)
    by_user = mixope.evaluate(log, ONE_ACTION, "latent-classes", gamma=0.8, unit="user")
    assert (apart.measures.classes, by_user.measures.classes) == (1, 2)
    assert by_user.n_units == 60
    assert by_user.measures.by_class["1 units"] == pytest.approx(45, abs=1e-3)


def test_renamed_shuffled_and_rescaled_logs_have_the_same_classes():
    plain = WORLDS["paces"].write(120, 5)
    order = np.random.default_rng(0).permutation(len(plain["step"]))
    names = np.array(["d", "b", "a", "c"])
    other = {name: values[order] for name, values in plain.items()}
    other.update(observation=names[other["observation"]], next_observation=names[other["next_observation"]])
    other["reward"] = 3.0 - 2.0 * other["reward"]
    target = mixope.TabularPolicy(np.tile([1 - WANTED, WANTED], (TOP + 1, 1)), names)
    before, after = mixope.evaluate(plain, TARGET, "latent-classes"), mixope.evaluate(other, target, "latent-classes")
    assert before.measures.classes == after.measures.classes > 1
    assert after.value == pytest.approx(3.0 - 2.0 * before.value, rel=1e-6)
    assert after.standard_error == pytest.approx(2.0 * before.standard_error, rel=1e-5)


def test_scores_are_what_a_refit_finds_and_refits_are_those_of_the_repeated_log():
    log = WORLDS["two paces"].write(40, 2)
    refit = prepare(count(mixope.read(log)), TARGET, LatentClasses(2))
    score, step = refit.influence(), 1e-2
    for unit in range(4):  # but for the rows that every class is given, which hang on all units
        at = step * (np.arange(40) == unit)
        slope = (refit.solve(1 + at).value - refit.solve(1 - at).value) / (2 * step)
        assert score[unit] == pytest.approx(slope, abs=0.1 * score.std())
    times = np.arange(40) % 3
    rows = [np.flatnonzero(log["episode_id"] == e) for e in np.repeat(np.arange(40), times)]
    repeated = {name: values[np.concatenate(rows)] for name, values in log.items()}
    repeated["episode_id"] = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    again = mixope.evaluate(repeated, TARGET, LatentClasses(2))
    assert refit.solve(times.astype(float)).value == pytest.approx(again.value, rel=1e-5)


def test_intervals_by_refits_are_to_be_had():
    log = WORLDS["two paces"].write(40, 2)
    found = mixope.evaluate(log, TARGET, LatentClasses(2), interval="percentile", replicates=20, jobs=1)
    plain = mixope.evaluate(log, TARGET, LatentClasses(2))
    assert 0.5 < found.standard_error / plain.standard_error < 2.0


def test_shares_values_and_sizes_of_classes_are_written_and_read():
    found = mixope.evaluate(movers_and_stayers(), ONE_ACTION, "latent-classes")
    written = json.loads(found.to_json())["measures"]
    assert written["classes"] == 2
    assert written["class 2 share"] == pytest.approx(0.25, abs=1e-6)
    again = mixope.Estimate.from_json(found.to_json()).measures
    assert again.by_class == pytest.approx(found.measures.by_class, rel=1e-9)
    assert any("75 % at" in alert for alert in found.alerts)


def test_a_number_of_classes_that_makes_no_sense_is_refused():
    with pytest.raises(UsageError, match="1 to 20"):
        LatentClasses(0)
