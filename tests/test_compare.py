"""Comparisons: what the same episodes say of several targets, without reading them again."""

import json
from dataclasses import replace

import numpy as np
import pytest

import mixope
from mixope import worlds
from mixope.checks import Verdict
from mixope.differences import contests_of
from mixope.engines import memory
from mixope.uncertainty import standard_error

EPISODES = (  # (state, action, reward, next state), two states and two actions, every pair seen
    ((0, 0, 1.0, 1), (1, 0, 0.0, 0), (0, 1, 2.0, 0)),
    ((0, 1, 0.0, 1), (1, 1, 1.0, 1), (1, 0, 0.5, 0)),
    ((1, 0, 0.0, 1), (1, 1, 3.0, 0), (0, 0, 1.0, 0)),
    ((0, 0, 0.0, 0), (0, 1, 2.0, 1), (1, 1, 1.0, 0)),
)
LAWS = {"a": np.array([[0.5, 0.5], [0.3, 0.7]]), "b": np.array([[0.6, 0.4], [0.3, 0.7]])}


def tiny():
    rows = [(e, t, *row) for e, episode in enumerate(EPISODES) for t, row in enumerate(episode)]
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def scores_by_hand(law):
    """η and Σ ωρ (r − η + V(s′) − q(s,a)) / N by episode, from the counted model of the world."""
    rows = [row for episode in EPISODES for row in episode]
    count, moves, reward = np.zeros((2, 2)), np.zeros((2, 2, 2)), np.zeros((2, 2))
    for s, a, r, after in rows:
        count[s, a] += 1
        moves[s, a, after] += 1
        reward[s, a] += r
    world, mean = moves / count[..., None], reward / count
    chain, earned = np.einsum("sa,sat->st", law, world), (law * mean).sum(axis=1)
    stay = chain[0, 1] + chain[1, 0]
    occupied = np.array([chain[1, 0], chain[0, 1]]) / stay
    value = occupied @ earned
    v = np.array([0.0, np.linalg.lstsq((np.eye(2) - chain)[:, 1:], earned - value, rcond=None)[0][0]])
    q = mean - value + world @ v
    weight = occupied[:, None] * law / count
    own = count / (count - 1)  # about the mean of the other rows of the pair
    return value, [sum((weight * own)[s, a] * (r - value + v[n] - q[s, a]) for s, a, r, n in e) for e in EPISODES]


def policies(laws=LAWS):
    return {name: mixope.TabularPolicy(law) for name, law in laws.items()}


def world(name="gridworld-slip", loggers=3, episodes=45, horizon=30):
    model = worlds.make(name)
    laws = worlds.stages(model, loggers, seed=0)
    return worlds.simulate(model, laws, episodes, horizon, seed=0), laws


def near_and_far(laws):
    return {"near": mixope.TabularPolicy(0.9 * laws[2] + 0.1 * laws[1]), "far": mixope.TabularPolicy(laws[1])}


def test_differences_are_those_of_scores_summed_by_hand():
    (found,) = mixope.compare(tiny(), policies(), ["emp"]).differences
    (value_a, scores_a), (value_b, scores_b) = (scores_by_hand(law) for law in LAWS.values())
    pair = found["a", "b"]
    assert pair.value == pytest.approx(value_a - value_b, abs=1e-12)
    error = np.sqrt(4 / 3 * np.sum((np.array(scores_a) - scores_b) ** 2))
    assert pair.standard_error == pytest.approx(error, abs=1e-12)
    assert pair.interval.high - pair.value == pytest.approx(3.182446305284263 * error)  # t of 3 degrees
    apart = np.sqrt(4 / 3) * np.hypot(*map(np.linalg.norm, (scores_a, scores_b)))
    assert pair.independent_standard_error == pytest.approx(apart)


def test_any_number_of_targets_costs_two_scans(monkeypatch):
    scans = []
    real = memory.MemoryEngine.scan
    monkeypatch.setattr(memory.MemoryEngine, "scan", lambda *a, **k: scans.append(1) or real(*a, **k))
    columns, laws = world()
    many = {f"t{k}": mixope.TabularPolicy((1 - k / 9) * laws[2] + k / 9 * laws[0]) for k in range(6)}
    result = mixope.compare(columns, many, ["emp"], engine="memory")
    assert len(scans) == 2
    assert len(result.differences[0].pairs) == 15


def test_they_agree_with_a_comparison_of_targets_on_their_own():
    columns, laws = world()
    targets = near_and_far(laws)
    both = mixope.compare(columns, targets, ["emp", "wis-step"])
    for found in both.differences:
        alone = mixope.compare_targets(columns, targets, found.estimator)
        assert found["near", "far"].joint == alone["near", "far"].joint
        assert found.selection == alone.selection


def test_json_has_differences_and_places_and_one_target_has_the_first_and_nothing_to_lose():
    columns, laws = world()
    targets = near_and_far(laws)
    record = json.loads(mixope.compare(columns, targets, ["logged-mean", "emp"]).to_json())
    assert [found["estimator"] for found in record["differences"]] == ["emp"]
    assert [rank["target"] for rank in record["ranks"]] == ["near", "far"]
    assert record["ranks"] == record["differences"][0]["ranks"] == record["selections"][0]["ranks"]
    assert [found["k"] for found in record["regret"]] == [1, 2]
    assert record["differences"][0]["pairs"][0]["conclusion"] == "near is better"
    alone = mixope.compare(columns, {"near": targets["near"]}, ["emp"])
    assert alone.differences == ()
    record = json.loads(alone.to_json())
    assert [(rank["place"], rank["probability_best"]) for rank in record["ranks"]] == [(1, 1.0)]
    assert [(found["expected"], found["bound"]) for found in record["regret"]] == [(0.0, 0.0)]
    assert "which to take" not in alone.full()


def test_a_target_against_itself_is_even_and_said_to_be_the_same():
    columns, laws = world()
    twice = {"one": mixope.TabularPolicy(laws[2]), "two": mixope.TabularPolicy(laws[2])}
    (found,) = mixope.compare(columns, twice, ["emp"]).differences
    pair = found["one", "two"]
    assert pair.probability_first_is_better == 0.5
    assert pair.conclusion == "the same on every episode"
    assert [rank.probability_best for rank in found.selection.ranks] == [0.5, 0.5]
    assert {rank.span for rank in found.selection.ranks} == {"1–2"}
    assert json.loads(found.to_json())["pairs"][0]["narrower"] is None


def test_what_differs_by_rounding_alone_is_the_same_on_every_episode():
    """Each logger takes one action for ever: a target that does the same is that logger, solved by another way."""
    generator = np.random.default_rng(0)
    n, length = 60, 14
    arm, state = np.repeat(np.arange(n) % 2, length), generator.integers(3, size=(n, length + 1))
    columns = {
        "episode_id": np.repeat(np.arange(n), length),
        "step": np.tile(np.arange(length), n),
        "observation": state[:, :-1].ravel(),
        "next_observation": state[:, 1:].ravel(),
        "action": arm,
        "reward": generator.normal(size=n * length) / 3.0,
        "policy_id": np.array(["zero", "one"])[arm],
        "truncated": np.tile(np.arange(length) == length - 1, n),
    }
    always = {"zero": mixope.TabularPolicy([[1.0, 0.0]] * 3), "one": mixope.TabularPolicy([[0.0, 1.0]] * 3)}
    (found,) = mixope.compare(columns, always, ["emp"]).differences
    same = [pair for pair in found.loggers if pair.first == pair.second]
    assert [(pair.first, pair.value, pair.standard_error) for pair in same] == [("zero", 0.0, 0.0), ("one", 0.0, 0.0)]
    assert {pair.conclusion for pair in same} == {"the same on every episode"}
    assert all(pair.to_dict()["narrower"] is None for pair in same)


def test_a_target_is_set_against_what_a_logger_earned_over_as_many_steps():
    columns, laws = world()
    result = mixope.compare(columns, near_and_far(laws), ["emp"], horizon=30)
    pair = result.differences[0]["near", "logger-0"]
    mine = columns["policy_id"] == "logger-0"
    assert pair.value == pytest.approx(result["near", "emp"].value - columns["reward"][mine].mean())
    sums = [columns["reward"][mine & (columns["episode_id"] == e)].sum() for e in set(columns["episode_id"][mine])]
    own = np.zeros(45)
    own[: len(sums)] = (np.array(sums) - np.mean(sums)) / (30 * len(sums))  # logger-0 has the first episodes
    by_hand = np.sqrt(45 / 44) * np.linalg.norm(result["near", "emp"].scores - own)
    assert pair.standard_error == pytest.approx(by_hand)


@pytest.mark.parametrize("options", [{}, {"gamma": 0.9}, {"horizon": 20}, {"horizon": 40}], ids=str)
def test_a_target_that_is_a_logger_is_as_good_as_that_logger_under_every_estimand(options):
    """Also where episodes were cut: a mean over their rows would be another quantity than what is estimated."""
    columns, laws = world()
    targets = {f"like {k}": mixope.TabularPolicy(law) for k, law in enumerate(laws[:2])}
    found = mixope.compare(columns, targets, ["emp"], **options).differences[0]
    assert len(found.loggers) == 6
    for k in range(2):
        pair = found[f"like {k}", f"logger-{k}"]
        assert abs(pair.value) < 3 * pair.standard_error
        assert pair.joint.low <= 0 <= pair.joint.high


def test_every_target_has_the_band_that_it_has_alone():
    model = worlds.make("singlepath")
    lazy = np.tile([1.0, 0.0], (5, 1))
    columns = worlds.simulate(model, [lazy, np.tile([0.6, 0.4], (5, 1))], 20, 20, seed=0)
    never = (columns["observation"] == 2) & (columns["action"] == 1)
    columns = {name: values[~never] for name, values in columns.items()}
    columns["episode_id"] = np.arange(len(columns["reward"]))
    columns["step"] = np.zeros(len(columns["reward"]), dtype=int)
    targets = {"lazy": mixope.TabularPolicy(lazy), "even": mixope.TabularPolicy(np.full((5, 2), 0.5))}
    result = mixope.compare(columns, targets, ["emp"])
    assert result["lazy", "emp"].band is None
    assert result["even", "emp"].band == mixope.evaluate(columns, targets["even"], "emp").band
    assert result["even", "emp"].band is not None


def test_one_long_episode_has_differences_by_blocks():
    model = worlds.make("singlepath")
    laws = worlds.stages(model, 2, seed=0)
    columns = worlds.simulate(model, laws[:1], 1, 3000, seed=0)
    targets = {"a": mixope.TabularPolicy(laws[0]), "b": mixope.TabularPolicy(0.9 * laws[0] + 0.1 * laws[1])}
    result = mixope.compare(columns, targets, ["emp"])
    assert result.differences[0]["a", "b"].standard_error > 0


def test_a_refused_target_is_named_beside_its_differences():
    columns, laws = world(episodes=30)
    near, far = mixope.compare(columns, near_and_far(laws), ["emp"])
    ((_, found),) = contests_of([near, replace(far, verdict=Verdict.UNSUPPORTED)], 0.95)
    assert [alert for alert in found.alerts if "not supported" in alert] == [
        "far: not supported by these logs, and so is every difference with it"
    ]
    ((_, none),) = contests_of([near, replace(far, scores=None)], 0.95)
    assert none is None


def vectors():
    """Two loggers push a point to and fro; the state is one float."""
    generator, (episodes, steps) = np.random.default_rng(0), (12, 12)
    slope = np.where(np.arange(episodes) % 2, 1.0, -0.5)
    x, action = np.zeros((episodes, steps + 1)), np.zeros((episodes, steps), dtype=int)
    for t in range(steps):
        action[:, t] = generator.random(episodes) < 1 / (1 + np.exp(-slope * x[:, t]))
        x[:, t + 1] = 0.7 * x[:, t] + action[:, t] - 0.5 + 0.3 * generator.normal(size=episodes)
    return mixope.Logs.from_arrays(
        observation=x[:, :-1].reshape(-1, 1),
        next_observation=x[:, 1:].reshape(-1, 1),
        action=action.ravel(),
        reward=x[:, :-1].ravel(),
        episode_id=np.repeat(np.arange(episodes), steps),
        step=np.tile(np.arange(steps), episodes),
        policy_id=np.repeat(np.where(slope > 0, "b", "a"), steps),
    )


def pushing(slope):
    def probabilities(states):
        right = 1 / (1 + np.exp(-slope * np.asarray(states).ravel()))
        return np.stack([1 - right, right], axis=1)

    return mixope.CallablePolicy(probabilities, actions=np.array([0, 1]))


def test_vectors_have_differences_and_weights_by_logger_too():
    result = mixope.compare(vectors(), {"one": pushing(0.5), "two": pushing(0.4)}, ["emp"])
    one, two = result.estimates
    pair = result.differences[0]["one", "two"]
    assert pair.standard_error == pytest.approx(standard_error(one.scores - two.scores))
    assert pair.narrower > 3
    assert sum(logger.weight_share for logger in one.loggers) == pytest.approx(1.0)
    assert all(0 < logger.effective_sample_size <= logger.rows for logger in one.loggers)
    assert sum(found.rows_share for found in one.weights) == pytest.approx(1.0)
