"""One target is enough: every evaluate says how it compares with each logger and with all of them, like with like."""

import json

import numpy as np
import pytest

import mixope
from mixope.report.decision import decision
from mixope.report.words import meaning
from mixope.worlds import simulate, truth, walk
from rounds import worlds

QUESTIONS = [{}, {"gamma": 0.9}, {"horizon": 5}, {"estimand": "episode"}]


def logs(states="ids", **options):
    return worlds.columns(states, "discrete", **{"episodes": 120, "horizon": 12, **options})


def one_logger(states, episodes=240, **options):
    made = logs(states, episodes=episodes, **options)
    mine = made["policy_id"] == worlds.LABELS[0]
    return {name: values[mine] for name, values in made.items()}


@pytest.mark.parametrize("states", ["ids", "factors"])
@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_the_only_logger_s_own_policy_earns_what_the_logs_earn(states, question):
    own = worlds.policy(states, "discrete", worlds.LEANS[worlds.LABELS[0]])
    found = mixope.evaluate(one_logger(states), own, "emp", **question)
    gain = found.against_logs.difference
    assert gain.interval.low <= 0.0 <= gain.interval.high
    assert 0.01 < gain.probability_better < 0.99
    assert gain.standard_error < found.standard_error
    assert found.loggers[0].difference == gain


@pytest.mark.long
@pytest.mark.parametrize("question", [*QUESTIONS[:2], QUESTIONS[3]], ids=str)
def test_so_it_is_where_states_are_numbers(question):
    own = worlds.policy("floats", "discrete", worlds.LEANS[worlds.LABELS[0]])
    found = mixope.evaluate(one_logger("floats"), own, "dr", **question)
    gain = found.against_logs.difference
    assert gain.interval.low <= 0.0 <= gain.interval.high
    assert "approximation" in gain.interval.method  # as the target's own interval is widened


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_the_difference_is_of_the_same_episodes(question):
    found = mixope.evaluate(logs(), worlds.policy("ids", "discrete"), **question)
    assert [name for name, _ in found.rivals] == [*worlds.LABELS, "all logs"]
    for _, rival in found.rivals:
        gain = rival.difference
        assert gain.value == pytest.approx(found.value - rival.value)
        assert gain.standard_error == pytest.approx(np.linalg.norm(found.scores - rival.scores), rel=0.01)
        assert (gain.interval.low > 0) == (gain.probability_better > 0.975)
        assert rival.interval.low < rival.value < rival.interval.high


def doubling(episodes=300, seed=0):
    """Sessions that last: action 1 earns 2 a step and action 0 earns 1; half of the steps end a session."""
    generator = np.random.default_rng(seed)
    length = generator.geometric(0.5, size=episodes)
    n = int(length.sum())
    action = generator.integers(2, size=n)
    last = np.zeros(n, dtype=bool)
    last[np.cumsum(length) - 1] = True
    step = np.arange(n) - np.repeat(np.cumsum(length) - length, length)
    return {
        "episode_id": np.repeat(np.arange(episodes), length), "step": step, "observation": np.zeros(n, dtype=int),
        "action": action, "reward": 1.0 + action, "next_observation": np.zeros(n, dtype=int), "terminated": last,
    }  # fmt: skip


def test_a_target_that_earns_more_is_never_said_to_earn_less_than_another_unit():
    """A discounted value of 0.36 stood beside a mean per step of 1.5, and was judged to lie below it."""
    columns = doubling()
    always = mixope.TabularPolicy(np.array([[0.0, 1.0]]))
    found = mixope.evaluate(columns, always, gamma=0.9)
    sums = [
        0.1 * sum(0.9**t * r for t, r in enumerate(columns["reward"][columns["episode_id"] == e])) for e in range(300)
    ]
    assert found.value < found.logged_mean
    assert found.against_logs.value == pytest.approx(np.mean(sums))
    assert found.against_logs.difference.interval.low > 0
    assert "“target” is better than what ran" in decision(found)
    assert "P(better) > 0.999" in found.full()
    for text in (decision(found), meaning(found), found.full()):
        assert f"{found.logged_mean:.4g}" not in text


def test_records_and_json_have_the_same_shape_for_each_logger_and_for_all():
    found = mixope.evaluate(logs(), worlds.policy("ids", "discrete"), gamma=0.9)
    record = json.loads(found.to_json())
    for entry, rival in zip([*record["loggers"], record["against_logs"]], dict(found.rivals).values(), strict=True):
        assert entry["value"] == pytest.approx(rival.value)
        assert set(entry["interval"]) == set(entry["difference"]["interval"]) == {"low", "high", "level", "method"}
        assert 0 <= entry["difference"]["probability_better"] <= 1
    assert record["logged_mean"] == pytest.approx(found.logged_mean)
    assert found.loggers[0].value == found.loggers[0].earned.value


def test_without_scores_there_is_a_value_and_the_reason_why_there_is_no_difference():
    found = mixope.evaluate(logs("floats"), worlds.policy("floats", "discrete"), "lstdq", gamma=0.9)
    assert found.against_logs.value is not None
    assert found.against_logs.difference is None
    assert "no score" in found.against_logs.because
    assert "no difference from any logger" in found.full()


@pytest.mark.long
def test_refits_and_likelihoods_have_differences_too():
    for interval in ("bca", "likelihood", "normal"):
        found = mixope.evaluate(logs(), worlds.policy("ids", "discrete"), "emp", interval=interval, replicates=20)
        method = found.against_logs.difference.interval.method
        assert ("clustered score, t" in method) == (interval == "bca")


@pytest.mark.parametrize("states", ["ids", pytest.param("floats", marks=pytest.mark.long)])
def test_one_long_episode_is_compared_by_blocks_of_its_steps(states):
    columns = one_logger(states, episodes=2, horizon=1500, ends=False)
    found = mixope.evaluate(columns, worlds.policy(states, "discrete"), "emp")
    assert found.against_logs.interval.method.startswith("batch means")
    assert found.against_logs.difference.interval.method.startswith("batch means")
    assert found.against_logs.value == pytest.approx(found.logged_mean, abs=0.05)


def test_a_logger_with_one_episode_has_no_spread_and_no_difference():
    columns = logs()
    keep = (columns["policy_id"] == worlds.LABELS[0]) | (columns["episode_id"] == 1)
    found = mixope.evaluate({n: v[keep] for n, v in columns.items()}, worlds.policy("ids", "discrete"), "emp")
    few = found.loggers[1].earned
    assert few.value is not None
    assert (few.interval, few.difference) == (None, None)
    assert "one episode" in few.because
    assert found.loggers[0].difference is not None


def test_a_reference_line_is_set_against_nobody():
    found = mixope.evaluate(logs(), worlds.policy("ids", "discrete"), "logged-mean")
    assert all(rival.difference is None for _, rival in found.rivals)
    assert found.against_logs.value is not None


@pytest.mark.long
def test_differences_hold_the_truth():
    """Of a target less a logger, whose episodes are cut and whose values are known exactly."""
    model = walk()
    generator = np.random.default_rng(1)
    laws = generator.dirichlet([3.0, 3.0], size=(3, model.n_states))
    wanted = [truth.discounted(model, laws[2], 0.9) - truth.discounted(model, law, 0.9) for law in laws[:2]]
    held = []
    for seed in range(40):
        columns = simulate(model, list(laws[:2]), 60, 8, seed=seed)
        found = mixope.evaluate(columns, mixope.TabularPolicy(laws[2]), "emp", gamma=0.9)
        held += [
            j.difference.interval.low <= true <= j.difference.interval.high
            for j, true in zip(found.loggers, wanted, strict=True)
        ]
    assert 0.87 <= np.mean(held) <= 1.0
