"""What a reader of the first release found, each as a test that failed on it; the number is that of the finding."""

import re
from dataclasses import replace
from time import process_time

import numpy as np
import pytest

import mixope
from mixope.base.errors import DataError, UsageError
from mixope.base.estimand import Estimand
from mixope.behaviours import HeteroscedasticGaussian, Logged
from mixope.checks import Verdict
from mixope.estimators import REGISTRY, neural
from mixope.estimators.features import ratio as feature_ratio
from mixope.estimators.neural import NeuralRatio
from mixope.estimators.solution import Measures, combine_measures
from mixope.estimators.state_ratio import StateRatio
from mixope.features import NormalisedBumps, Standardise
from mixope.policies import CallablePolicy, GaussianPolicy
from mixope.requests.request import content_key
from mixope.session.questions import ask
from mixope.session.session import look
from rounds import worlds
from rounds.worlds import features, policy

pytestmark = pytest.mark.long

WORLDS = [("ids", "discrete"), ("floats", "discrete"), ("floats", "continuous"), ("ids", "continuous")]
everywhere = pytest.mark.parametrize(("states", "actions"), WORLDS)


def evaluated(states, actions, columns, name="bch-pooled", target=None, **options):
    given = None if (states, actions) == ("ids", "discrete") else features(states)
    options = {"features": given, **options}
    return mixope.evaluate(columns, target or policy(states, actions), name, **options)


# --- 1: rows that do not fit together are seen, whatever states are made of


def shuffled_next(columns):
    order = np.random.default_rng(1).permutation(len(columns["step"]))
    return {**columns, "next_observation": columns["next_observation"][order]}


def inside(columns):
    """The first row of the longest episode."""
    episodes, lengths = np.unique(columns["episode_id"], return_counts=True)
    return int(np.flatnonzero(columns["episode_id"] == episodes[np.argmax(lengths)])[0])


def swapped_next(columns):
    """Two rows in the middle of one episode exchange where they lead."""
    rows, following = inside(columns) + np.array([1, 4]), columns["next_observation"].copy()
    following[rows] = following[rows[::-1]]
    return {**columns, "next_observation": following}


def repeated_step(columns):
    row = inside(columns) + 3
    return {name: np.insert(values, row, values[row], axis=0) for name, values in columns.items()}


def rows_after_an_end(columns):
    ended = columns["terminated"].copy()
    ended[inside(columns) + 2] = True
    return {**columns, "terminated": ended}


def step_left_out(columns):
    row = inside(columns) + 2
    return {name: np.delete(values, row, axis=0) for name, values in columns.items()}


FAULTS = [shuffled_next, swapped_next, repeated_step, rows_after_an_end, step_left_out]


def outcome(states, actions, columns):
    """What a user is told: the first line of the error, or the alerts and the verdict; without numbers and names."""
    try:
        found = evaluated(states, actions, columns)
    except DataError as error:
        return "error", _bare(error.problem)
    return str(found.verdict), *(_bare(alert) for alert in found.alerts)


def _bare(sentence):
    return re.sub(r"\[[^\]]*\]|'[^']*'|[-\d.,e]*\d", "#", sentence)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@everywhere
def test_1_faults_of_structure_are_told_alike_on_ids_and_numbers(states, actions, fault):
    told = outcome(states, actions, fault(worlds.columns(states, actions)))
    same = outcome("ids", "discrete", fault(worlds.columns("ids", "discrete")))
    assert len(told) > 1
    assert told[1:] == same[1:]
    assert (told[0] == "error") == (same[0] == "error")
    if fault is not step_left_out:  # rows that are missing leave the others as they are
        assert told[0] != "trustworthy"


def as_float32(columns):
    rounded = columns["next_observation"].astype(np.float32).astype(np.float64)
    return {**columns, "next_observation": rounded}


def out_of_order(columns):
    order = np.random.default_rng(2).permutation(len(columns["step"]))
    return {name: values[order] for name, values in columns.items()}


def equal_episode_ids(columns):
    return {**columns, "episode_id": columns["episode_id"] // 2}


def first_steps_missing(columns):
    kept = (columns["step"] > 1) | (columns["episode_id"] % 3 > 0)
    return {name: values[kept] for name, values in columns.items()}


def steps_from_one(columns):
    return {**columns, "step": columns["step"] + 1}


def far_away(columns):
    """Numbers such as years, whose sums lose digits."""
    shift = {name: columns[name] + np.array([0.0, 2e6]) for name in ("observation", "next_observation")}
    return {**columns, **shift}


HEALTHY = [dict, as_float32, out_of_order, equal_episode_ids, first_steps_missing, steps_from_one, far_away]


@pytest.mark.parametrize("change", HEALTHY, ids=lambda change: change.__name__)
@pytest.mark.parametrize("actions", worlds.ACTIONS)
def test_1_sound_logs_of_numbers_raise_nothing(actions, change):
    """With true ends and cuts, and two loggers."""
    columns = worlds.columns("floats", actions, episodes=30)
    assert columns["terminated"].any()
    assert columns["truncated"].any()
    found = evaluated("floats", actions, change(columns))
    assert found.alerts == ()
    assert not any("step" in d.name or "chain" in d.name for d in found.diagnostics if d.status != "pass")


# --- 2: loggers come from all rows


def rare(actions):
    """Thirty episodes of two loggers and one of a third, of two rows."""
    columns = worlds.columns("floats", actions, episodes=31)
    last = columns["episode_id"] == 30
    kept = ~last | (columns["step"] < 2)
    columns = {name: values[kept] for name, values in columns.items()}
    label = columns["policy_id"].astype(object)
    label[columns["episode_id"] == 30] = "rare"
    return {**columns, "policy_id": label.astype(str)}


@pytest.mark.parametrize("name", ["emp", "bch-pooled", "dr"])
def test_2_a_logger_that_the_sample_misses_keeps_its_weight(name, monkeypatch):
    monkeypatch.setattr("mixope.session.session.SAMPLE_ROWS", 60)
    columns = rare("discrete")
    seeds = [seed for seed in range(12) if "rare" not in look(columns, seed=seed).rows.sample.logger]
    assert seeds
    found = evaluated("floats", "discrete", columns, name, seed=seeds[0])
    shares = {share.label: share for share in found.loggers}
    assert shares["rare"].rows == 2
    assert shares["rare"].weight_share > 0


def test_2_a_logger_alone_that_the_sample_misses_is_named(monkeypatch):
    monkeypatch.setattr("mixope.session.session.SAMPLE_ROWS", 60)
    columns = rare("discrete")
    seed = next(seed for seed in range(12) if "rare" not in look(columns, seed=seed).rows.sample.logger)
    with pytest.raises(UsageError, match=r"logger 'rare' has 2 of .* rows, none of which is in the sample"):
        evaluated("floats", "discrete", columns, "emp-single", seed=seed)


# --- 3 and 12: a target that is a density and nothing else


@pytest.mark.parametrize("name", ["bch", "emp-single", "emp", "bch-pooled"])
def test_3_and_12_a_density_alone_gives_a_value_without_interval_that_is_never_trustworthy(name):
    density = CallablePolicy(worlds.Density("floats", 0.6))
    columns = worlds.columns("floats", "continuous", episodes=40)
    found = evaluated("floats", "continuous", columns, name, density)
    drawn = evaluated("floats", "continuous", columns, name)
    assert found.value == pytest.approx(drawn.value, rel=1e-9)
    assert found.interval is None
    assert "densities only" in found.no_interval_because
    assert found.verdict is not Verdict.TRUSTWORTHY
    assert any(d.name == "interval" and d.status == "warn" for d in found.diagnostics)


def test_3_all_estimators_can_be_compared_on_a_density():
    density = CallablePolicy(worlds.Density("floats", 0.6))
    columns = worlds.columns("floats", "continuous", episodes=24)
    found = mixope.compare(columns, {"new": density}, "all", features=NormalisedBumps(8))
    assert {"bch", "emp-single", "emp", "wis-step"} <= {e.estimator for e in found}
    assert {"dr", "lstdq"} <= {name for name, _ in found.skipped}


# --- 6: wis-step is a loop over steps


def slow_wis_step(log_weights, rewards, ended, estimand):
    """One step after another, over the episodes that reach it, times the share that has not ended before."""
    longest = max(map(len, rewards))
    above, gains, surviving = 0.0, 0.0, 1.0
    for t in range(longest):
        if estimand.kind == "discounted":
            gain = estimand.gamma**t
        else:
            gain = 1.0 if estimand.kind == "average" or t < estimand.horizon else 0.0
        top = bottom = over_now = 0.0
        for log_weight, reward, over in zip(log_weights, rewards, ended, strict=True):
            if t < len(reward):
                top += np.exp(log_weight[t]) * reward[t]
                bottom += np.exp(log_weight[t])
                over_now += np.exp(log_weight[t]) * (over and t == len(reward) - 1)
        above += gain * surviving * (top / bottom if bottom > 0 else 0.0)
        gains += gain
        if bottom > 0 and estimand.kind != "average":
            surviving *= 1.0 - over_now / bottom
    if surviving < 1e-9 and estimand.kind == "discounted":
        gains = 1 / (1 - estimand.gamma)
    if surviving < 1e-9 and estimand.kind == "horizon":
        gains = estimand.horizon
    return above / gains


ESTIMANDS = [Estimand(), Estimand("discounted", 0.8), Estimand("horizon", horizon=4)]


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=str)
@pytest.mark.parametrize("impossible", [False, True], ids=["weights", "some weights are zero"])
@pytest.mark.parametrize("all_end", [False, True], ids=["cut and ended", "all ended"])
@everywhere
def test_6_wis_step_is_a_slow_loop(states, actions, estimand, impossible, all_end):
    columns = worlds.columns(states, actions, episodes=40, horizon=9, seed=4)
    last = columns["truncated"] | columns["terminated"]
    generator = np.random.default_rng(3)
    ends = last if all_end else last & (generator.random(len(last)) < 0.7)
    columns = {**columns, "terminated": ends, "truncated": last & ~ends}
    target = policy(states, actions)
    if impossible:
        target = CallablePolicy(Never(target), log=True)
    log_prob = target.log_prob(columns["observation"], columns["action"])
    assert np.isneginf(log_prob).any() == impossible
    cuts = np.flatnonzero(np.diff(columns["episode_id"])) + 1
    log_weights = [np.cumsum(part) for part in np.split(log_prob - columns["action_logp"], cuts)]
    rewards, ended = np.split(columns["reward"], cuts), [bool(part[-1]) for part in np.split(ends, cuts)]
    assert len({*map(len, rewards)}) > 4
    found = evaluated(states, actions, columns, "wis-step", target, estimand=estimand)
    assert found.value == pytest.approx(slow_wis_step(log_weights, rewards, ended, estimand), rel=1e-9, abs=1e-12)
    assert found.scores.sum() == pytest.approx(0.0, abs=1e-9)


class Never:
    """A policy that never does one thing that was logged: −inf there."""

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, observations, actions):
        found = np.array(self.inner.log_prob(observations, actions))
        height = np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)[:, 0]
        found[(height > 0.8) & (np.asarray(actions, dtype=np.float64).reshape(len(actions)) < 0.3)] = -np.inf
        return found


def test_6_many_ended_episodes_cost_no_more_than_their_rows():
    """Sixteen times the episodes are far from 256 times the work; two thousand episodes used to take seconds."""
    n = 60_000
    generator = np.random.default_rng(0)
    columns = {
        "episode_id": np.arange(n), "step": np.zeros(n, dtype=np.int64), "observation": generator.integers(4, size=n),
        "action": generator.integers(2, size=n), "reward": generator.normal(size=n), "action_prob": np.full(n, 0.5),
        "next_observation": np.zeros(n, dtype=np.int64), "terminated": np.ones(n, dtype=bool),
    }  # fmt: skip
    target = mixope.TabularPolicy(np.full((4, 2), 0.5))
    began = process_time()
    mixope.evaluate(columns, target, "wis-step", gamma=0.9)
    assert process_time() - began < 10


# --- 9: what is cut is counted and shown


def cut_weights(found):
    return next(d for d in found.diagnostics if d.name == "cut weights")


def test_9_truncated_ratios_are_counted_and_shown():
    columns = worlds.columns("floats", "continuous", episodes=30)
    logp = columns["action_logp"].copy()
    logp[:5] -= 40.0
    found = evaluated("floats", "continuous", {**columns, "action_logp": logp})
    assert found.measures.truncated_ratios == 5
    assert cut_weights(found).value >= 5 / len(logp)
    assert "were cut" in str(cut_weights(found).sentence)
    assert found.to_dict()["measures"]["truncated_ratios"] == 5


def test_9_capped_densities_are_counted_and_shown():
    columns = worlds.columns("floats", "continuous", episodes=30)
    sharp = GaussianPolicy(worlds.Mean("floats", 0.6), [1e-9])
    columns["action"][:4] = sharp.mean(columns["observation"][:4])
    found = evaluated("floats", "continuous", columns, "sadl", sharp)
    assert found.measures.capped_densities == 4
    assert cut_weights(found).value >= 4 / len(columns["step"])


def test_9_clipped_calibrations_are_counted_and_shown(monkeypatch):
    monkeypatch.setattr(feature_ratio, "_CALIBRATION_RIDGES", (0.0,))
    columns = worlds.columns("floats", "continuous", episodes=30)
    far = policy("floats", "continuous", 3.0)
    found = evaluated("floats", "continuous", columns, target=far, features=NormalisedBumps(40))
    assert found.measures.clipped_calibrations > 0
    assert cut_weights(found).value > 0


def test_9_nothing_is_said_where_nothing_was_cut():
    found = evaluated("floats", "continuous", worlds.columns("floats", "continuous", episodes=30))
    assert found.measures.truncated_ratios is None
    assert found.measures.capped_densities is None


# --- 10: misspelt settings


def test_10_a_misspelt_behaviour_is_an_error_that_offers_the_nearest(monkeypatch):
    monkeypatch.setattr(neural, "load_jax", lambda *words: None)
    with pytest.raises(UsageError, match="Did you mean 'per-logger'"):
        StateRatio("emp", behaviour="per logger")
    with pytest.raises(UsageError, match="Did you mean 'logged'"):
        StateRatio("emp", behaviour="loged")
    with pytest.raises(UsageError, match="expected a behaviour"):
        StateRatio("emp", behaviour=None)
    columns = worlds.columns("floats", "continuous")
    with pytest.raises(UsageError, match="Did you mean 'mixture'"):
        evaluated("floats", "continuous", columns, NeuralRatio(behaviour="mixtur"))


# --- 11: fits are shared by content


def first_requests(estimator, problem):
    asking = estimator.solve(problem)
    return next(asking)


def test_11_neural_ratios_share_the_fits_of_emp_and_do_not_collide(monkeypatch):
    monkeypatch.setattr(neural, "load_jax", lambda *words: None)
    seen = look(worlds.columns("floats", "continuous"), features=NormalisedBumps(8))
    (question,) = ask(seen.logs, seen.labels, {"new": policy("floats", "continuous")}, estimand=Estimand())
    problem = seen.problem(question)
    plain, again, emp = (
        first_requests(e, problem) for e in (NeuralRatio(), NeuralRatio(tests=20), REGISTRY["emp"].make())
    )
    assert [*map(content_key, plain)] == [*map(content_key, again)] == [*map(content_key, emp)]
    assert plain[0].raw.behaviour is again[0].raw.behaviour is emp[0].raw.behaviour
    few, many = (
        first_requests(NeuralRatio(behaviour=HeteroscedasticGaussian(features=map_)), problem)
        for map_ in (NormalisedBumps(3), NormalisedBumps(9))
    )
    logged = first_requests(NeuralRatio(behaviour=Logged()), problem)
    assert len({content_key(requests[0]) for requests in (plain, few, many, logged)}) == 4
    assert few[0].raw.behaviour is not many[0].raw.behaviour


# --- 13: measures of an average


def test_13_measures_of_an_average_combine_by_their_own_rule():
    parts = [
        Measures(mean_weight=0.1, effective_sample_size=100.0, truncated_ratios=2.0, approximation=0.2, held_out=1.0),
        Measures(mean_weight=1.0, effective_sample_size=300.0, truncated_ratios=3.0, approximation=0.4, held_out=4.0),
    ]
    found = combine_measures(parts, [0.5, 0.5])
    assert found.mean_weight == 0.1
    assert found.effective_sample_size == pytest.approx(1 / (0.25 / 100 + 0.25 / 300))
    assert found.truncated_ratios == 5.0
    assert found.approximation == pytest.approx(0.3)
    assert found.held_out == 4.0
    assert combine_measures([parts[0], replace(parts[1], held_out=None)], [0.5, 0.5]).held_out is None
    assert combine_measures([Measures(mean_weight=1.0), Measures(mean_weight=3.0)], [0.5, 0.5]).mean_weight == 3.0


# --- found on the way


def test_integers_are_standardised_as_numbers():
    """Mean and scale used to be cut to integers, so that a scale below one became zero."""
    states = np.array([[0, 0], [1, 0], [2, 1], [1, 1]])
    fitted = Standardise().fit(states)
    assert fitted.transform(states) == pytest.approx(fitted.transform(states.astype(np.float64)))


def test_the_kernel_form_fits_the_default_behaviour():
    columns = worlds.columns("floats", "continuous", episodes=20)
    kernel, emp = (evaluated("floats", "continuous", columns, name) for name in ("kernel", "emp"))
    assert kernel.value == pytest.approx(emp.value, abs=4 * emp.standard_error)
