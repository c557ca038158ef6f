"""An answer that the logs do not support draws no conclusion anywhere; and no answer goes beyond what is possible."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import mixope
from mixope.checks import Verdict
from mixope.estimators import Solution
from mixope.requests.scores import ClusterScores

RARE = mixope.TabularPolicy([[0.0, 1.0]] * 3)
USUAL = mixope.TabularPolicy([[0.9, 0.1]] * 3)


def rarely(episodes=40, steps=10, taken=0.012, seed=4):
    """Three states; action 1 is rare and pays less, so that few rows tell of a target that always takes it."""
    draw = np.random.default_rng(seed)
    state = draw.integers(3, size=(episodes, steps + 1))
    action = (draw.random((episodes, steps)) < taken).astype(int)
    return {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": np.tile(np.arange(steps), episodes),
        "observation": state[:, :-1].ravel(),
        "next_observation": state[:, 1:].ravel(),
        "action": action.ravel(),
        "reward": (1.0 - action + 0.1 * draw.normal(size=action.shape)).ravel(),
        "policy_id": np.repeat(np.where(np.arange(episodes) % 2, "one", "two"), steps),
        "truncated": np.tile(np.arange(steps) == steps - 1, episodes),
    }


@pytest.fixture(scope="module")
def refused():
    found = mixope.evaluate(rarely(), RARE)
    assert found.verdict is Verdict.UNSUPPORTED
    assert found.against_logs.difference.interval.high < 0  # it would have concluded
    return found


def gains(found):
    return [rival.difference for _, rival in found.rivals if rival.difference is not None]


def test_values_stay_and_conclusions_go(refused):
    assert len(gains(refused)) == 3
    assert all(gain.conclusion is None and gain.probability_better is None for gain in gains(refused))
    record = json.loads(refused.to_json())
    gain = record["against_logs"]["difference"]
    assert set(gain) == {"value", "standard_error", "interval", "probability_better"}
    assert gain["probability_better"] is None
    assert gain["value"] == pytest.approx(refused.against_logs.difference.value)
    assert mixope.Estimate.from_json(refused.to_json()).to_json() == refused.to_json()


@pytest.mark.parametrize("words", ["target is worse", "target is better", "it would earn", "P(better)"])
def test_no_surface_concludes(refused, words, tmp_path):
    page = refused.report(tmp_path / "page.html").read_text().replace("P(target is better)", "P")
    assert words not in (str(refused) + refused.full()).replace("#P(better)", "").replace(" P(better) ", " ")
    assert words not in page
    assert words not in refused._repr_html_()


def test_a_comparison_draws_none_of_a_refused_target():
    found = mixope.compare(rarely(), {"rare": RARE, "usual": USUAL}, "emp")
    (differences,) = found.differences
    pair = differences["rare", "usual"]
    assert (pair.probability_first_is_better, pair.conclusion) == (None, None)
    assert {p.conclusion is None for p in differences.loggers if p.first == "rare"} == {True}
    assert {p.conclusion is None for p in differences.loggers if p.first == "usual"} == {False}
    written = json.loads(found.to_json())["differences"][0]["pairs"][0]
    assert written["conclusion"] is None
    assert written["probability_first_is_better"] is None
    assert written["value"] == pytest.approx(pair.value)
    assert mixope.Comparison.from_json(found.to_json()).to_json() == found.to_json()
    assert "no conclusion" in found.full()


def test_bounds_under_confounding_of_a_refused_answer_flip_nothing():
    found = mixope.evaluate(rarely(), RARE, confounding=1.5)
    assert found.verdict is Verdict.UNSUPPORTED
    assert (found.confounding.flips_at, found.confounding.open_at) == (None, None)
    assert len(found.confounding.sentences) == 1
    assert found.confounding.curve


# --- what is possible


def vectors(reward, episodes=60, steps=15, seed=0):
    """One float that is pushed to and fro; action probabilities are recorded."""
    draw = np.random.default_rng(seed)
    x, action, chance = (np.zeros((episodes, steps + k)) for k in (1, 0, 0))
    x[:, 0] = draw.normal(size=episodes)
    for t in range(steps):
        right = 1 / (1 + np.exp(-x[:, t]))
        action[:, t] = draw.random(episodes) < right
        chance[:, t] = np.where(action[:, t] == 1, right, 1 - right)
        x[:, t + 1] = 0.7 * x[:, t] + action[:, t] - 0.5 + 0.3 * draw.normal(size=episodes)
    return {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": np.tile(np.arange(steps), episodes),
        "observation": x[:, :-1].reshape(-1, 1),
        "next_observation": x[:, 1:].reshape(-1, 1),
        "action": action.ravel().astype(int),
        "action_prob": chance.ravel(),
        "reward": reward(x[:, :-1]).ravel(),
        "truncated": np.tile(np.arange(steps) == steps - 1, episodes),
    }


def pushing(states):
    right = 1 / (1 + np.exp(-2 * np.asarray(states).ravel()))
    return np.stack([1 - right, right], axis=1)


PUSHING = mixope.CallablePolicy(pushing, actions=np.array([0, 1]))


@pytest.mark.parametrize("seed", range(3))
def test_weights_that_are_not_normalised_and_miss_what_is_possible_ask_for_caution(seed):
    found = mixope.evaluate(vectors(np.ones_like, seed=seed), PUSHING, "is-step")
    (check,) = [check for check in found.diagnostics if check.name == "reward range"]
    assert found.value != 1.0
    assert check.status != "pass"
    assert found.verdict is not Verdict.TRUSTWORTHY


@dataclass(frozen=True)
class Corrected:
    """An estimator whose correction carries the value above the rewards, as that of a doubly robust one can."""

    value: float
    spread: float = 0.02
    name: str = "corrected"

    def solve(self, problem):
        scores = np.random.default_rng(0).normal(size=60)
        return Solution(self.value, scores=ClusterScores(self.spread * (scores - scores.mean()) / 60))


@pytest.mark.parametrize("asked", [{}, {"gamma": 0.9}], ids=str)
def test_a_value_above_all_rewards_is_the_highest_reward(asked):
    found = mixope.evaluate(vectors(np.ones_like), PUSHING, Corrected(1.003), **asked)
    assert found.value == 1.0
    assert found.interval.low == found.interval.high == 1.0
    assert sum("beyond what the logged rewards allow" in note for note in found.notes) == 1
    assert found.standard_error > 0  # how uncertain it is stays
    assert found.against_logs.difference.value == pytest.approx(1.0 - found.against_logs.value)


def test_the_interval_keeps_the_part_that_is_possible():
    found = mixope.evaluate(vectors(lambda x: (x > 0).astype(float)), PUSHING, Corrected(0.999))
    assert found.value == 0.999
    assert found.interval.high == 1.0
    assert found.interval.low < 0.999
    assert not any("beyond what the logged rewards allow" in note for note in found.notes)


def test_what_no_chance_explains_is_not_moved_but_refused():
    found = mixope.evaluate(vectors(np.ones_like), PUSHING, Corrected(2.0))
    assert found.value == 2.0
    assert found.verdict is Verdict.UNSUPPORTED


def test_a_handful_of_rows_does_not_say_what_is_possible():
    """Three rewards lie on one side of their mean in a quarter of all logs."""
    columns = rarely(3, 1, 0.5, seed=1)
    found = mixope.evaluate(columns, USUAL, "emp")
    assert "cut" not in found.interval.method


def test_an_interval_that_nothing_limits_stays_as_it_was():
    found = mixope.evaluate(vectors(lambda x: x), PUSHING, "dr", interval="normal")  # as far down as up
    assert "cut" not in found.interval.method
    assert found.interval.high - found.value == pytest.approx(found.value - found.interval.low)


@pytest.mark.parametrize("estimator", ["emp", "model", "wis-step"])
@pytest.mark.parametrize("asked", [{}, {"gamma": 0.8}, {"horizon": 6}], ids=str)
def test_an_outer_band_holds_the_interval(estimator, asked):
    columns = rarely(taken=0.3)
    keep = ~((columns["observation"] == 2) & (columns["action"] == 1))
    columns = {name: values[keep] for name, values in columns.items()}
    columns["episode_id"] = np.arange(keep.sum())
    columns["step"] = np.zeros(keep.sum(), dtype=int)
    if "horizon" in asked:
        asked = {"horizon": 1}
    target = mixope.TabularPolicy([[0.9, 0.1]] * 3)
    found = mixope.evaluate(columns, target, estimator, **asked)
    if found.band is None:
        pytest.skip("an estimator that sees nothing uncovered")
    assert found.band[0] <= found.interval.low <= found.interval.high <= found.band[1]
