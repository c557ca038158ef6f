"""Bounds under hidden confounding: by hand, against a linear program, on confounded logs whose truth is known."""

import json

import numpy as np
import pytest
from scipy.optimize import linprog

import mixope
from mixope.answers.confounding import FACTORS, Confounded, Reported, confounding_of
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.estimators.counts.occupancy import pooled
from mixope.session.session import look
from uncertainty.logs import chain_log, ending_log

ESTIMANDS = [Estimand(), Estimand("discounted", gamma=0.8), Estimand("horizon", horizon=4)]


def problem_of(columns, law, estimand):
    """The encoded question of a tabular target."""
    from mixope.session.questions import ask

    seen = look(columns)
    (question,) = ask(seen.logs, seen.labels, {"target": mixope.TabularPolicy(law)}, estimand=estimand)
    return seen.problem(question)


def coin(paid, lost, other):
    """One state: action 0 is paid 1 so often and 0 so often, and action 1 is taken in the other rows."""
    action = np.repeat([0, 1], [paid + lost, other])
    reward = np.repeat([1.0, 0.0], [paid, lost + other])
    n = len(action)
    zeros = np.zeros(n, dtype=int)
    episode, step = np.arange(n) // 4, np.arange(n) % 4
    shuffled = np.random.default_rng(0).permutation(n)
    return {
        "episode_id": episode,
        "step": step,
        "observation": zeros,
        "action": action[shuffled],
        "reward": reward[shuffled],
        "next_observation": zeros,
    }


@pytest.mark.parametrize("factor", [1.2, 1.5, 3.0])
def test_one_state_by_hand(factor):
    """Action 0 was taken in half of the rows, and paid in 60 % of them: λ is between ½ + ½/Γ and ½ + ½Γ."""
    found = mixope.evaluate(coin(60, 40, 100), mixope.TabularPolicy(np.array([[1.0, 0.0]])), confounding=factor)
    low, high, most = 0.5 + 0.5 / factor, 0.5 + 0.5 * factor, 1 / (1 + factor)
    last = found.confounding.curve[-1]
    unpaid = min(0.4, most)  # of these as many as possible weigh most; what is left of the share goes to paid ones
    assert last.low == pytest.approx(low * (0.6 - (most - unpaid)) + high * (most - unpaid))
    paid = min(0.6, most)
    assert last.high == pytest.approx(high * paid + low * (0.6 - paid))


def program(chain, factor, gamma, side):
    """The same bound of a discounted value as one linear program in the visits of outcomes, actions and states."""
    steps, known = chain.steps, chain.known
    n, k, m = steps.n_states, steps.n_nodes, len(steps.share)
    low, high = known + (1 - known) / factor, known + (1 - known) * factor
    take, leave = np.zeros((k, m + k + n)), np.zeros((k, m + k + n))  # variables: outcomes, then pairs, then states
    flow, within = np.zeros((n, m + k + n)), np.zeros((2 * m, m + k + n))
    for pair in range(k):
        take[pair, m + pair], take[pair, m + k + steps.home[pair]] = 1.0, -steps.taken[pair]
        leave[pair, m + pair] = -1.0
    for c in range(m):
        pair = steps.node[c]
        leave[pair, c] = 1.0
        if steps.next_state[c] >= 0:
            flow[steps.next_state[c], c] -= gamma
        within[c, c], within[c, m + pair] = 1.0, -high[pair] * steps.share[c]
        within[m + c, c], within[m + c, m + pair] = -1.0, low[pair] * steps.share[c]
    flow[:, m + k :] += np.eye(n)
    sign = 1.0 if side == "low" else -1.0
    found = linprog(
        sign * np.concatenate([steps.reward, np.zeros(k + n)]),
        A_ub=within,
        b_ub=np.zeros(2 * m),
        A_eq=np.vstack([take, leave, flow]),
        b_eq=np.concatenate([np.zeros(2 * k), chain.way.scale * steps.start]),
        method="highs",
    )
    assert found.success
    return sign * found.fun


@pytest.mark.parametrize("log", [chain_log, ending_log])
@pytest.mark.parametrize("factor", [1.3, 2.0, 5.0])
def test_a_linear_program_over_all_reweightings_agrees(log, factor):
    _, target, _, columns = log(seed=5, episodes=12)
    chain = Confounded.of(problem_of(columns, target, Estimand("discounted", gamma=0.8)))
    for side in ("low", "high"):
        assert chain.bound(factor, side)[0] == pytest.approx(program(chain, factor, 0.8, side), abs=1e-7)


@pytest.mark.parametrize("log", [chain_log, ending_log])
@pytest.mark.parametrize("estimand", ESTIMANDS, ids=str)
def test_without_hidden_reasons_the_bounds_are_the_value_and_they_widen_with_them(log, estimand):
    _, target, _, columns = log(seed=5, episodes=40)
    problem = problem_of(columns, target, estimand)
    chain, (_, occupancy) = Confounded.of(problem), pooled(problem)
    assert chain.bound(1.0, "low")[0] == pytest.approx(occupancy.value, abs=1e-10)
    assert chain.bound(1.0, "high")[0] == pytest.approx(occupancy.value, abs=1e-10)
    low, high = ([chain.bound(factor, side)[0] for factor in FACTORS] for side in ("low", "high"))
    assert np.all(np.diff(low) < 0)
    assert np.all(np.diff(high) > 0)


def test_the_average_is_the_limit_of_discounted_values():
    _, target, _, columns = chain_log(seed=5, episodes=40)
    average, discounted = (
        Confounded.of(problem_of(columns, target, each))
        for each in (Estimand(), Estimand("discounted", gamma=1 - 1e-7))
    )
    for side in ("low", "high"):
        assert average.bound(2.0, side)[0] == pytest.approx(discounted.bound(2.0, side)[0], abs=1e-5)


HIDDEN = np.array([[0.35, 0.55], [0.6, 0.4]])
"""P(action 1) by state and by the side of a hidden coin."""


def confounded_log(episodes=400, horizon=50, seed=0):
    """A hidden coin at every step chooses the action and what it earns and leads to; it is not in the log."""
    generator = np.random.default_rng(seed)
    state, rows = np.zeros(episodes, dtype=int), []
    for step in range(horizon):
        hidden = generator.integers(0, 2, episodes)
        action = (generator.random(episodes) < HIDDEN[state, hidden]).astype(int)
        pays, moves = world(state, action, hidden)
        reward = (generator.random(episodes) < pays).astype(float)
        later = (generator.random(episodes) < moves).astype(int)
        rows.append((np.arange(episodes), np.full(episodes, step), state, action, reward, later))
        state = later
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation")
    return {name: np.concatenate(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def world(state, action, hidden):
    """P(paid) and P(state 1 next): the coin helps where action 1 is liked, and hurts elsewhere."""
    return 0.3 + 0.3 * hidden + 0.1 * action - 0.1 * state, 0.4 + 0.3 * hidden - 0.2 * action + 0.1 * state


def true_average(law):
    """Of a target that does not see the coin."""
    p = np.zeros((2, 2))
    r = np.zeros(2)
    for s in range(2):
        for a in range(2):
            for u in range(2):
                pays, moves = world(s, a, u)
                r[s] += law[s, a] * pays / 2
                p[s] += law[s, a] * np.array([1 - moves, moves]) / 2
    at_one = p[0, 1] / (p[0, 1] + p[1, 0])
    return (1 - at_one) * r[0] + at_one * r[1]


def true_factor():
    """The most that the coin turns the odds of an action."""
    mean = HIDDEN.mean(axis=1, keepdims=True)
    return float(np.exp(np.abs(np.log(HIDDEN / (1 - HIDDEN)) - np.log(mean / (1 - mean))).max()))


@pytest.mark.parametrize("law", [[[0.0, 1.0], [1.0, 0.0]], [[0.3, 0.7], [0.8, 0.2]]], ids=["one action", "mixed"])
def test_the_truth_of_a_confounded_log_is_missed_by_the_interval_and_inside_the_bounds(law):
    law = np.array(law)
    truth = true_average(law)
    found = mixope.evaluate(confounded_log(), mixope.TabularPolicy(law), confounding=true_factor())
    assert not found.interval.low <= truth <= found.interval.high
    last = found.confounding.curve[-1]
    assert last.low <= truth <= last.high
    assert last.high - last.low < 0.25


def test_the_error_of_a_bound_is_that_of_bounds_of_many_logs():
    law = np.array([[0.3, 0.7], [0.8, 0.2]])
    made = [
        Confounded.of(problem_of(confounded_log(30, 20, seed), law, Estimand())).bound(2.0, "low") for seed in range(60)
    ]
    values, errors = np.array(made).T
    assert errors.mean() == pytest.approx(values.std(ddof=1), rel=0.25)


def test_the_curve_begins_at_what_was_reported_whichever_estimator_did():
    _, target, _, columns = chain_log(seed=5, episodes=40, horizon=6)
    for estimator in ("emp", "wis", "bch-pooled"):
        found = mixope.evaluate(columns, mixope.TabularPolicy(target), estimator, horizon=6, confounding=2)
        first, last = found.confounding.curve[0], found.confounding.curve[-1]
        assert first.low == pytest.approx(found.value)
        assert first.sure_low == pytest.approx(found.interval.low)
        assert first.sure_high == pytest.approx(found.interval.high)
        assert last.factor == 2
        assert last.sure_low < last.low < last.high < last.sure_high


def test_rewards_that_vary_within_a_step_are_not_taken_for_their_mean():
    columns = coin(60, 40, 100)
    constant = {**columns, "reward": np.where(columns["action"] == 0, 0.6, 0.0)}
    law = mixope.TabularPolicy(np.array([[1.0, 0.0]]))
    wide, none = (mixope.evaluate(log, law, confounding=2).confounding.curve[-1] for log in (columns, constant))
    assert wide.high - wide.low > 0.1
    assert none.high - none.low == pytest.approx(0.0, abs=1e-12)


def test_rewards_between_the_ends_of_their_range_make_bounds_narrower_than_at_the_ends():
    """Of normal rewards in one state the bounds are known: the share 1/(1 + Γ) with the least rewards weighs most."""
    from scipy.stats import norm

    generator, factor = np.random.default_rng(1), 2.0
    columns = coin(20_000, 0, 20_000)
    columns["reward"] = generator.normal(size=40_000)
    law = np.array([[1.0, 0.0]])
    found = mixope.evaluate(columns, mixope.TabularPolicy(law), confounding=factor).confounding.curve[-1]
    shift = (0.5 * factor - 0.5 / factor) * norm.pdf(norm.ppf(1 / (1 + factor)))
    middle = columns["reward"][columns["action"] == 0].mean()
    assert found.low == pytest.approx(middle - shift, abs=0.02)
    assert found.high == pytest.approx(middle + shift, abs=0.02)
    ends = Confounded.of(problem_of(columns, law, Estimand()))
    assert ends.bound(factor, "low")[0] < middle - 2 * shift


def test_the_factor_at_which_a_threshold_is_reached_is_where_the_curve_meets_it():
    _, target, _, columns = chain_log(seed=5, episodes=200)
    problem = problem_of(columns, target, Estimand())
    value = pooled(problem)[1].value
    chain = Confounded.of(problem)
    for factor, side in ((1.4, "low"), (2.2, "high")):
        threshold = chain.bound(factor, side)[0]
        found = confounding_of(problem, Reported(value, None, threshold, "the threshold"), 3.0)
        assert found.flips_at == pytest.approx(factor, rel=1e-3)
        assert found.open_at is None
        words = "above" if side == "low" else "below"
        assert f"no longer be known to be {words} the threshold" in found.sentences[1]


def test_chance_takes_its_share_and_may_be_enough():
    _, target, _, columns = chain_log(seed=5, episodes=200)
    law = mixope.TabularPolicy(target)
    found = mixope.evaluate(columns, law, confounding=2)
    sure, reach = found.confounding, found.interval.width
    against = found.against_logs.value
    assert sure.threshold == pytest.approx(against)
    assert sure.against == "what the logs earn themselves"
    near, far = (mixope.evaluate(columns, law, confounding=2, threshold=found.value - k * reach) for k in (0.1, 2.0))
    assert near.confounding.open_at == 1.0
    assert "Chance alone leaves open" in near.confounding.sentences[1]
    assert 1.0 < far.confounding.open_at < far.confounding.flips_at
    least = mixope.evaluate(columns, law, confounding=2, threshold=-100.0).confounding
    assert (least.flips_at, least.open_at) == (None, None)
    assert "would stay above the threshold (-100) even if" in least.sentences[1]


def test_what_is_wrong_is_said_before_anything_is_read():
    for wrong in (0.5, 0, -1, float("nan"), float("inf"), "2", True):
        with pytest.raises(UsageError, match="confounding is a factor on the odds"):
            mixope.evaluate("nowhere.csv", "nowhere.csv", confounding=wrong)
    with pytest.raises(UsageError, match=r"add confounding=1\.5"):
        mixope.evaluate("nowhere.csv", "nowhere.csv", threshold=1.0)
    with pytest.raises(UsageError, match="threshold is a value"):
        mixope.evaluate("nowhere.csv", "nowhere.csv", confounding=2, threshold=float("nan"))


def test_vectors_and_reference_lines_are_refused_in_words():
    _, target, _, columns = chain_log(seed=5, episodes=20)
    with pytest.raises(UsageError, match="'logged-mean' is a reference line"):
        mixope.evaluate(columns, mixope.TabularPolicy(target), "logged-mean", confounding=2)
    generator = np.random.default_rng(0)
    vectors = {**columns, **{name: generator.normal(size=(len(columns["step"]), 2)) for name in ("observation",)}}
    del vectors["next_observation"]
    even = mixope.CallablePolicy(lambda o, a: np.full(len(o), 1 / target.shape[1]))
    with pytest.raises(UsageError, match="can be counted"):
        mixope.evaluate(vectors, even, confounding=2)


def test_it_is_printed_drawn_carded_and_written(tmp_path):
    _, target, _, columns = chain_log(seed=5, episodes=200)
    found = mixope.evaluate(columns, mixope.TabularPolicy(target), confounding=1.5)
    shown = " ".join(found.full().split())
    assert "if hidden reasons chose the logged actions" in shown
    assert found.confounding.sentences[0].split(";")[0] in shown
    page = found.report(tmp_path / "page.html").read_text()
    assert 'href="#confounding"' in page
    assert "The shade is what the value may be" in page
    assert "If hidden reasons chose the logged actions" in found._repr_html_()
    written = json.loads(found.to_json())["confounding"]
    assert [point["factor"] for point in written["curve"]] == [1.0, 1.1, 1.2, 1.3, 1.5]
    assert mixope.Estimate.from_json(found.to_json()).confounding.curve[-1].factor == 1.5
    assert mixope.Estimate.from_json(found.to_json()).to_dict() == found.to_dict()
    assert len(found.tables()["confounding"]) == 5
    assert mixope.evaluate(columns, mixope.TabularPolicy(target)).to_dict()["confounding"] is None
