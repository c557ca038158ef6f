"""Several steps counted together: against slow loops, exact values and the plain estimators."""

import numpy as np
import pytest

import mixope
from mixope.base.errors import UsageError
from mixope.estimators import DoublyRobust, Remembering
from mixope.estimators.state_ratio import bch_pooled, emp, kl_emp

STATES, ACTIONS = 3, 2
TARGET = np.array([[0.9, 0.1], [0.8, 0.2], [0.85, 0.15]])
POLICY = mixope.TabularPolicy(TARGET)
LAWS = np.array([[[0.5, 0.5], [0.6, 0.4], [0.3, 0.7]], [[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]]])


def written(episodes, seed, *, steps=6, ends=0.0, again=1.0, loggers=2, from_one=False):
    """A chain of ids in which repeating an action pays ``again`` and changes where it leads."""
    g, rows = np.random.default_rng([seed, 5]), []
    for e in range(episodes):
        s, before = 0 if from_one else int(g.integers(STATES)), 0
        for t in range(steps):
            law = LAWS[e % loggers, s]
            a = int(g.random() < law[1])
            reward = s - 0.5 * a + again * (a == before) + g.normal()
            later = (s + 1 + (a == before) * int(g.random() < 0.5) + int(g.random() < 0.3)) % STATES
            over = bool(g.random() < ends * (1 + s))
            rows.append((e, t, s, a, reward, later, over, t == steps - 1 and not over, e % loggers, law[a]))
            if over:
                break
            s, before = later, a
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
    return dict(zip((*names, "policy_id", "action_prob"), map(np.array, zip(*rows, strict=True)), strict=True))


def without(columns, *names):
    return {name: values for name, values in columns.items() if name not in names}


class Loop:
    """One-step counts and their residuals, row by row."""

    def __init__(self, columns, *, gamma=None, horizon=None, total=False):
        self.episodes = [np.flatnonzero(columns["episode_id"] == e) for e in np.unique(columns["episode_id"])]
        self.c, self.gamma, self.horizon, self.total = columns, gamma, horizon, total
        s, a = columns["observation"], columns["action"]
        n = np.zeros((STATES, ACTIONS))
        self.reward, self.moves = np.zeros_like(n), np.zeros((STATES, ACTIONS, STATES))
        for i in range(len(s)):
            n[s[i], a[i]] += 1
            self.reward[s[i], a[i]] += columns["reward"][i]
            if not columns["terminated"][i]:
                self.moves[s[i], a[i], columns["next_observation"][i]] += 1
        self.reward /= n
        self.moves /= n[:, :, None]
        first = [s[rows[0]] for rows in self.episodes]
        self.starts = np.bincount(first, minlength=STATES) / len(first)
        self.chain = np.einsum("sa,say->sy", TARGET, self.moves)
        self.earned = (TARGET * self.reward).sum(axis=1)
        self.pooled = n / n.sum(axis=1, keepdims=True)
        self.laws = []
        for j in np.unique(columns["policy_id"]):
            mine = columns["policy_id"] == j
            m = np.zeros((STATES, ACTIONS))
            np.add.at(m, (s[mine], a[mine]), 1)
            self.laws.append(m / m.sum(axis=1, keepdims=True))

    def windows(self, starts_only, length, *, recorded=False):
        """(first state, last row or None where it ended before, weight) of every window that ran its length."""
        c, found = self.c, []
        begins = [(rows, t) for rows in self.episodes for t in range(1 if starts_only else len(rows))]
        kept = [
            (rows, t)
            for rows, t in begins
            if t + length <= len(rows) or (c["terminated"][rows[-1]] and t + length <= self.most)
        ]
        share = np.zeros((len(self.laws), STATES))
        for rows, t in kept:
            share[c["policy_id"][rows[t]], c["observation"][rows[t]]] += 1
        share /= np.maximum(share.sum(axis=0), 1)
        for rows, t in kept:
            inside = rows[t : t + length]
            s, a = c["observation"][inside], c["action"][inside]
            above = np.prod(TARGET[s, a])
            below = sum(share[j, s[0]] * np.prod(law[s, a]) for j, law in enumerate(self.laws))
            below = np.prod(c["action_prob"][inside]) if recorded else below
            found.append((s[0], inside[-1] if len(inside) == length else None, above / below))
        return found

    @property
    def most(self):
        return max(len(rows) for rows in self.episodes)

    def mean(self, law, windows, residual):
        """Σ w δ / Σ w with windows that begin by this law."""
        n = np.bincount([s for s, _, _ in windows], minlength=STATES)
        total = weight = 0.0
        for s, last, ratio in windows:
            w = law[s] / n[s] * ratio
            weight += w
            total += 0.0 if last is None else w * residual(last, s)
        return total / weight

    def value(self, k, **how):
        c, s, a = self.c, self.c["observation"], self.c["action"]
        if self.horizon is not None:
            return self.of_horizon(k, **how)
        ends, after = 1.0 - self.moves.sum(axis=2), 0.0
        if self.gamma is None and not self.total:  # an end leads back to the starts
            chain = self.chain + np.outer((TARGET * ends).sum(axis=1), self.starts)
            system = np.vstack([chain.T - np.eye(STATES), np.ones(STATES)])
            d = np.linalg.lstsq(system, np.append(np.zeros(STATES), 1.0), rcond=None)[0]
            plain, gamma, begun = d @ self.earned, 1.0, d @ (TARGET * ends).sum(axis=1)
            v = np.linalg.lstsq(np.eye(STATES) - chain, self.earned - plain, rcond=None)[0]
            after, begun = self.starts @ v, begun if c["terminated"].any() else 0.0
        else:
            gamma, begun = (1.0, 1.0) if self.total else (self.gamma, 1 - self.gamma)
            v = np.linalg.solve(np.eye(STATES) - gamma * self.chain, self.earned)
            d = np.linalg.solve(np.eye(STATES) - gamma * self.chain.T, begun * self.starts)
            plain = d @ self.earned

        def residual(i, _):
            onward = after if c["terminated"][i] else v[c["next_observation"][i]]
            usual = self.reward[s[i], a[i]] + gamma * self.moves[s[i], a[i]] @ v + ends[s[i], a[i]] * after
            return c["reward"][i] + gamma * onward - usual

        value = plain + gamma ** (k - 1) * d.sum() * self.mean(d, self.windows(False, k, **how), residual)
        for j in range(1, k if begun else 1):
            value += begun * gamma ** (j - 1) * self.mean(self.starts, self.windows(True, j, **how), residual)
        return value

    def of_horizon(self, k, **how):
        c, s, a, steps = self.c, self.c["observation"], self.c["action"], self.horizon
        v, laws = [np.zeros(STATES)], [self.starts]
        for _ in range(steps):
            v.insert(0, self.earned + self.chain @ v[0])
            laws.append(laws[-1] @ self.chain)

        def residual(t, i):
            onward = 0.0 if c["terminated"][i] else v[t + 1][c["next_observation"][i]]
            return c["reward"][i] + onward - self.reward[s[i], a[i]] - self.moves[s[i], a[i]] @ v[t + 1]

        value = self.starts @ v[0]
        whole = np.array(laws[: steps - k + 1])
        if len(whole):

            def over_steps(i, begin):
                share = whole[:, begin] / whole[:, begin].sum()
                return sum(p * residual(t + k - 1, i) for t, p in enumerate(share))

            value += whole.sum() * self.mean(whole.sum(axis=0), self.windows(False, k, **how), over_steps)
        for j in range(1, min(k, steps + 1)):
            value += self.mean(self.starts, self.windows(True, j, **how), lambda i, _, j=j: residual(j - 1, i))
        return value / steps


ASKED = [
    ({}, {}, 0.0),
    ({}, {}, 0.1),
    ({"gamma": 0.8}, {"gamma": 0.8}, 0.0),
    ({"gamma": 0.8}, {"gamma": 0.8}, 0.1),
    ({"estimand": "episode"}, {"total": True}, 0.1),
    ({"horizon": 6}, {"horizon": 6}, 0.0),
    ({"horizon": 5}, {"horizon": 5}, 0.1),
    ({"horizon": 2}, {"horizon": 2}, 0.0),
]
asked = pytest.mark.parametrize(("asked", "loop", "ends"), ASKED)


@asked
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_value_is_that_of_a_slow_loop(asked, loop, ends, k):
    columns = written(30, 1, ends=ends)
    found = mixope.evaluate(without(columns, "action_prob"), POLICY, "emp", memory=k, **asked)
    assert found.value == pytest.approx(Loop(columns, **loop).value(k), rel=1e-9)


@asked
def test_recorded_propensities_are_divided_by_in_windows(asked, loop, ends):
    columns = written(30, 2, ends=ends)
    found = mixope.evaluate(columns, POLICY, "emp", memory=2, **asked)
    assert found.value == pytest.approx(Loop(columns, **loop).value(2, recorded=True), rel=1e-9)


def test_a_memory_of_whole_episodes_is_doubly_robust_importance_sampling_by_step():
    """Σ_t Σ W_t δ_t / Σ W_t beside the plain value, with W_t of whole paths and nothing of the state in the weights."""
    columns = written(40, 3, steps=4, loggers=1, from_one=True)
    found = mixope.evaluate(columns, POLICY, "emp", memory=4, horizon=4)
    loop = Loop(columns, horizon=4)
    value = [np.zeros(STATES)]
    for _ in range(4):
        value.insert(0, loop.earned + loop.chain @ value[0])
    s, a, y, r = (columns[name].reshape(40, 4) for name in ("observation", "action", "next_observation", "reward"))
    weight = np.cumprod(TARGET[s, a] / columns["action_prob"].reshape(40, 4), axis=1)
    expected = value[0][0]
    for t in range(4):
        q = loop.reward + loop.moves @ value[t + 1]
        expected += weight[:, t] @ (r[:, t] + value[t + 1][y[:, t]] - q[s[:, t], a[:, t]]) / weight[:, t].sum()
    assert found.value == pytest.approx(expected / 4, rel=1e-9)


@pytest.mark.parametrize("plain", [emp(), bch_pooled(), DoublyRobust()], ids=lambda each: each.name)
@asked
def test_a_memory_of_one_step_is_the_plain_estimator(plain, asked, loop, ends):
    columns = written(60, 4, ends=ends)
    columns = columns if plain.name == "bch-pooled" else without(columns, "action_prob")
    before, after = (mixope.evaluate(columns, POLICY, each, **asked) for each in (plain, Remembering(plain, 1)))
    assert after.value == pytest.approx(before.value, rel=1e-9)
    assert after.standard_error == pytest.approx(before.standard_error, rel=1e-9)
    assert after.effective_sample_size == pytest.approx(before.effective_sample_size, rel=1e-9)


def test_rows_whose_next_state_nobody_knows_change_nothing_at_a_memory_of_one():
    columns = without(written(60, 5), "next_observation", "action_prob")
    before, after = (mixope.evaluate(columns, POLICY, each, horizon=6) for each in (emp(), Remembering(emp(), 1)))
    assert after.value == pytest.approx(before.value, rel=1e-9)
    assert mixope.evaluate(columns, POLICY, "emp", memory=2, horizon=6).value != before.value


def exact():
    """The long-run average: the action before is part of the state."""
    n = STATES * ACTIONS
    chain, earned = np.zeros((n, n)), np.zeros(n)
    for s in range(STATES):
        for before in range(ACTIONS):
            for a in range(ACTIONS):
                same = a == before
                earned[s * 2 + before] += TARGET[s, a] * (s - 0.5 * a + same)
                for half, share in ((0, 0.5), (1, 0.5)) if same else ((0, 1.0),):
                    for more, chance in ((0, 0.7), (1, 0.3)):
                        later = (s + 1 + half + more) % STATES
                        chain[s * 2 + before, later * 2 + a] += TARGET[s, a] * share * chance
    system = np.vstack([chain.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0] @ earned


@pytest.mark.parametrize("plain", ["emp", "bch-pooled", "dr"])
def test_what_one_step_remembers_is_right_with_two_and_was_wrong_with_one(plain):
    columns = written(1500, 6, steps=30)
    one, two = (mixope.evaluate(columns, POLICY, plain, memory=k) for k in (1, 2))
    assert abs(one.value - exact()) > 4 * one.standard_error
    assert abs(two.value - exact()) < 2 * two.standard_error


@pytest.mark.parametrize("plain", [emp(), bch_pooled()], ids=lambda each: each.name)
@pytest.mark.parametrize("k", [2, 3])
def test_the_error_is_that_of_leaving_out_episodes(plain, k):
    columns = written(80, 7, steps=12)
    whole = mixope.evaluate(columns, POLICY, Remembering(plain, k))
    left = []
    for e in range(80):
        rest = {name: values[columns["episode_id"] != e] for name, values in columns.items()}
        left.append(mixope.evaluate(rest, POLICY, Remembering(plain, k)).value)
    jackknife = np.sqrt(79 / 80 * np.sum((np.array(left) - np.mean(left)) ** 2))
    assert whole.standard_error == pytest.approx(jackknife, rel=0.15)


@pytest.mark.parametrize("memory", [2, "auto"])
def test_scales_shifts_and_order_of_rewards_are_followed(memory):
    columns = without(written(80, 8, steps=12), "action_prob")
    plain = mixope.evaluate(columns, POLICY, memory=memory)
    moved = mixope.evaluate({**columns, "reward": 3 * columns["reward"] + 7}, POLICY, memory=memory)
    assert moved.value == pytest.approx(3 * plain.value + 7, rel=1e-9)
    assert moved.standard_error == pytest.approx(3 * plain.standard_error, rel=1e-9)
    order = np.random.default_rng(0).permutation(len(columns["reward"]))
    mixed = mixope.evaluate({name: values[order] for name, values in columns.items()}, POLICY, memory=memory)
    assert mixed.value == pytest.approx(plain.value, rel=1e-9)


def test_the_logs_choose_two_where_the_action_before_matters_and_one_where_nothing_does():
    columns = without(written(400, 9, steps=20), "action_prob")
    found = mixope.evaluate(columns, POLICY, memory="auto")
    assert (found.memory.used, found.memory.automatic, found.estimator) == (2, True, "emp, memory auto")
    assert [step.memory for step in found.memory.steps] == [1, 2, 3, 4, 8]
    assert "2 steps are counted together, chosen from the logs" in " ".join(found.notes)
    alike = found.memory.steps[1]
    assert alike.difference == pytest.approx(alike.value - found.memory.steps[0].value)
    assert alike.standard_error == pytest.approx(found.standard_error, rel=1e-9)
    assert mixope.evaluate(markov(400), POLICY, memory="auto").memory.used == 1


def markov(episodes, seed=0, loggers=2):
    g = np.random.default_rng([seed, 9])
    rows = []
    for e in range(episodes):
        s = int(g.integers(STATES))
        for t in range(20):
            a = int(g.random() < LAWS[e % loggers, s, 1])
            later = (s + 1 + int(g.random() < 0.3 + 0.4 * a)) % STATES
            rows.append((e, t, s, a, s - a + g.normal(), later, t == 19, e % loggers))
            s = later
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "truncated", "policy_id")
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    return {**columns, "terminated": np.zeros(len(rows), dtype=bool)}


def test_a_longer_memory_that_says_something_else_is_a_warning():
    columns = without(written(400, 9, steps=20), "action_prob")
    status = {}
    for k in (1, 2):
        found = mixope.evaluate(columns, POLICY, memory=k)
        status[k] = next(check for check in found.diagnostics if check.name == "longer memory").status
    assert status == {1: "warn", 2: "pass"}


def test_units_are_what_differences_are_summed_by():
    columns = without(written(120, 10, steps=12), "action_prob")
    columns["unit"] = columns["episode_id"] // 4
    by_unit, by_episode = (
        mixope.evaluate(each, POLICY, memory=2).memory for each in (columns, without(columns, "unit"))
    )
    assert by_unit.steps[1].value == pytest.approx(by_episode.steps[1].value)
    assert by_unit.steps[1].difference_error != by_episode.steps[1].difference_error


def test_dr_on_factors_moves_as_the_chain_of_the_counts_does():
    columns = without(written(200, 15, steps=8), "action_prob", "observation", "next_observation")
    plain = written(200, 15, steps=8)
    g = np.random.default_rng(0)
    side = np.repeat(g.integers(0, 60, 200), 8)
    for name in ("observation", "next_observation"):
        columns |= {f"{name}.cell": plain[name], f"{name}.side": side}

    def policy(states):
        return TARGET[np.asarray(states)[:, 0].astype(int)]

    policy.actions = [0, 1]
    value = {
        (name, k): mixope.evaluate(columns, policy, name, memory=k, gamma=0.8) for name in ("emp", "dr") for k in (1, 2)
    }
    moved = [value[name, 2].value - value[name, 1].value for name in ("emp", "dr")]
    assert moved[0] == pytest.approx(moved[1], rel=1e-9)
    assert value["dr", 1].value != pytest.approx(value["emp", 1].value)
    assert value["dr", 1].value == pytest.approx(mixope.evaluate(columns, policy, "dr", gamma=0.8).value, rel=1e-9)
    assert value["dr", 1].standard_error == pytest.approx(
        mixope.evaluate(columns, policy, "dr", gamma=0.8).standard_error, rel=1e-9
    )


def test_logs_of_several_that_do_not_say_so_are_refused():
    columns = without(markov(400), "policy_id")
    with pytest.raises(UsageError, match="who wrote which episode"):
        mixope.evaluate(columns, POLICY, memory=2)
    assert mixope.evaluate(without(markov(400, loggers=1), "policy_id"), POLICY, memory=2).value


def test_what_cannot_remember_says_so():
    columns = written(40, 11)
    for name in ("bch", "wis", "model"):
        with pytest.raises(UsageError, match="memory is for"):
            mixope.evaluate(columns, POLICY, name, memory=2)
    with pytest.raises(UsageError, match="memory is for"):
        Remembering(kl_emp(), 2)
    with pytest.raises(UsageError, match="memory is a number"):
        mixope.evaluate(columns, POLICY, memory=0)
    floats = without(columns, "observation", "next_observation")
    for name in ("observation", "next_observation"):
        floats[name] = np.stack([columns[name] + 0.5, columns[name] + 0.25], axis=1)
    with pytest.raises(UsageError, match="states that can be counted"):
        mixope.evaluate(floats, lambda s: np.full((len(s), 2), 0.5), memory=2)


def test_refits_and_comparisons_take_it():
    columns = without(written(60, 12, steps=8), "action_prob")
    found = mixope.evaluate(columns, POLICY, memory=2, interval="percentile", replicates=60, jobs=1)
    plain = mixope.evaluate(columns, POLICY, memory=2)
    assert found.value == pytest.approx(plain.value, rel=1e-9)
    assert found.standard_error == pytest.approx(plain.standard_error, rel=0.35)
    chosen = mixope.evaluate(columns, POLICY, memory="auto", interval="bca", replicates=40, jobs=1)
    assert chosen.interval.low < chosen.value < chosen.interval.high
    other = mixope.TabularPolicy(TARGET[:, ::-1])
    table = mixope.compare(columns, {"new": POLICY, "other": other}, memory=2)
    assert table["new", "emp, memory 2"].value == pytest.approx(plain.value)
    assert table.differences[0].pairs


def test_every_logger_is_predicted_from_the_others_with_memory():
    columns = without(written(300, 14, steps=8), "action_prob")
    tested = mixope.backtest(columns, estimator="emp", gamma=0.8, memory=2)
    for j, row in enumerate(tested.rows):
        rest = {name: values[columns["policy_id"] != j] for name, values in columns.items()}
        policy = mixope.TabularPolicy(Loop(columns).laws[j])
        alone = mixope.evaluate(rest, policy, "emp", gamma=0.8, memory=2)
        assert row.predicted == pytest.approx(alone.value, rel=1e-9)
        assert row.high - row.low == pytest.approx(alone.interval.width, rel=1e-9)


def test_the_result_survives_json():
    found = mixope.evaluate(without(written(40, 13), "action_prob"), POLICY, memory="auto")
    again = type(found).from_json(found.to_json()).memory
    assert (again.used, again.automatic) == (found.memory.used, True)
    steps = [(step.memory, step.value, step.difference_error) for step in found.memory.steps]
    assert np.array([(s.memory, s.value, s.difference_error) for s in again.steps]) == pytest.approx(np.array(steps))
