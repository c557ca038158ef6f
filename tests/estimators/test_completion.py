"""The completed model against loops over states, actions and logged rows."""

import numpy as np
import pytest

import mixope
from mixope import worlds
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.estimators import DoublyRobust
from mixope.estimators.counts.completed_part import part_to_complete
from mixope.estimators.counts.completion import complete
from mixope.requests.problem import Problem
from mixope.session.session import count
from solving import solved

ROWS, COLUMNS, ACTIONS = 4, 3, 3
ESTIMANDS = [Estimand("average"), Estimand("discounted", gamma=0.9), Estimand("horizon", horizon=7)]


def columns(*, ends=0.0, gaps=True, apart=False, seed=3, episodes=50, steps=10):
    """A walk on a torus of two factors; with ``gaps`` one action of every third state is never logged."""
    generator = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        x, y = int(generator.integers(ROWS)), int(generator.integers(COLUMNS))
        for step in range(steps):
            action = int(generator.choice([a for a in range(ACTIONS) if not gaps or (a, (x + y) % 3) != (2, 0)]))
            reward = 0.5 * x - y + 0.25 * action + generator.normal(scale=0.2)
            moved, done = generator.random() < 0.8, generator.random() < ends
            after = (
                (x + int(moved and action == 0)) % ROWS,
                y if apart else (y + int(moved and action == 1)) % COLUMNS,
            )
            rows.append((episode, step, x, y, action, reward, *after, done))
            if done:
                break
            x, y = after
    names = ("episode_id", "step", "observation.x", "observation.y", "action", "reward")
    names += ("next_observation.x", "next_observation.y", "terminated")
    table = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    return {**table, "terminated": table["terminated"].astype(bool)}


def policy(seed=9, **options):
    law = np.random.default_rng(seed).dirichlet([3, 3, 2], size=ROWS * COLUMNS)
    states = np.array([[x, y] for x in range(ROWS) for y in range(COLUMNS)])
    return mixope.TabularPolicy(law, states, factors=("x", "y"), **options)


def problem(estimand, **options):
    return Problem(count(mixope.read(columns(**options))).transitions, policy(), estimand)


def alike(one, other, likeness):
    return np.prod([1.0 if u == v else rho for u, v, rho in zip(one, other, likeness.decays, strict=True)])


def by_loops(part, likeness):
    """R and T of the completed chain, each unlogged pair predicted by solving its kriging equations."""
    rows, n = part.rows, len(part.states)
    seen = np.asarray(rows.observations)[part.states]
    T, R, ends = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for s in range(n):
        for a in range(ACTIONS):
            pairs = np.flatnonzero(rows.pair_action == a)
            states = part.pair_state[pairs]
            if s in states:
                weights = (states == s).astype(float)
            else:
                at, p = [*states, s], part.target[:, a]
                cov = np.array([[alike(seen[i], seen[j], likeness) + p[i] * p[j] for j in at] for i in at])
                k = len(states)
                noisy = cov[:k, :k] + np.diag(likeness.nugget / part.pair_rows[pairs])
                system = np.block([[noisy, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
                weights = np.linalg.solve(system, np.append(cov[:k, k], 1.0))[:k]
            for pair, weight in zip(pairs, weights, strict=True):
                share = part.target[s, a] * weight / part.pair_rows[pair]
                for g in np.flatnonzero(rows.pair == pair):
                    R[s] += share * rows.reward[g]
                    if rows.next_state[g] < 0:
                        ends[s] += share * rows.rows[g]
                    else:
                        T[s, part.number[rows.next_state[g]]] += share * rows.rows[g]
    return T, R, ends


def value_by_loops(part, T, R, ends):
    estimand, start = part.problem.estimand, part.start
    if estimand.kind == "horizon":
        law, total = start.copy(), 0.0
        for _ in range(estimand.horizon):
            total += law @ R
            law = law @ T
        return total / estimand.horizon
    if estimand.kind == "discounted":
        return (1 - estimand.gamma) * start @ np.linalg.solve(np.eye(len(R)) - estimand.gamma * T, R)
    T = T + np.outer(ends, start)
    law = np.full(len(R), 1 / len(R))
    for _ in range(4000):
        law = 0.5 * law + 0.5 * law @ T
    return law @ R / law.sum()


@pytest.mark.parametrize("ends", [0.0, 0.05])
@pytest.mark.parametrize("estimand", ESTIMANDS, ids=lambda e: e.kind)
def test_the_value_is_that_of_a_model_completed_pair_by_pair(estimand, ends):
    part = part_to_complete(problem(estimand, ends=ends))
    found = complete(part)
    assert found.value == pytest.approx(value_by_loops(part, *by_loops(part, found.map.likeness)), rel=1e-7)


@pytest.mark.parametrize("ends", [0.0, 0.05])
@pytest.mark.parametrize("estimand", ESTIMANDS, ids=lambda e: e.kind)
def test_the_weights_of_pairs_give_the_value_again(estimand, ends):
    found = complete(part_to_complete(problem(estimand, ends=ends)))
    reward = np.asarray(found.part.following[:, [-1]].todense()).ravel()
    assert float(found.pair_weight @ reward) + found.zero == pytest.approx(found.value, rel=1e-8)


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=lambda e: e.kind)
def test_where_all_was_logged_it_is_emp(estimand):
    logs = mixope.read(columns(gaps=False, episodes=120))
    options = {"estimand": estimand.kind, "gamma": estimand.gamma, "horizon": estimand.horizon}
    robust, plain = (mixope.evaluate(logs, policy(), name, **options) for name in ("dr", "emp"))
    assert robust.value == pytest.approx(plain.value, rel=1e-12)
    assert robust.interval.width == pytest.approx(plain.interval.width, rel=1e-12)


def test_what_was_never_logged_is_told_and_widens_the_interval():
    found = mixope.evaluate(mixope.read(columns()), policy(), "dr")
    assert found.uncovered_mass > 0.02
    assert found.measures.approximation > 0
    assert found.interval.method.endswith("+ approximation")
    assert set(found.measures.likeness) == {"observation.x", "observation.y"}
    assert "approximation" in {d.name for d in found.diagnostics}


@pytest.mark.long
def test_where_states_have_structure_coverage_bias_is_gone():
    """Taxi, one unknown logger: emp is off by several of its standard errors, all of it coverage."""
    model = worlds.make("taxi")
    target, loggers = worlds.target(model), worlds.stages(model, 1)
    logs = worlds.simulate(model, loggers, 50, 200, seed=1, observed="factors")
    new = mixope.TabularPolicy(target, np.stack(list(model.factors.values()), 1), factors=list(model.factors))
    truth = worlds.truth.average(model, target)
    robust, plain = (mixope.evaluate(logs, new, name) for name in ("dr", "emp"))
    assert abs(robust.value - truth) < 0.5 * abs(plain.value - truth)
    assert robust.interval.low < truth < robust.interval.high
    assert not plain.interval.low < truth < plain.interval.high


def test_parts_of_the_world_that_never_meet_are_not_mixed():
    asked = problem(Estimand("average"), apart=True)
    part = part_to_complete(asked)
    kept = np.asarray(asked.transitions.observations)[part.states]
    assert len(np.unique(kept[:, 1])) == 1
    assert mixope.evaluate(mixope.read(columns(apart=True)), policy(), "dr").outside_mass < 0.01


def with_rows(table, rows):
    """The same log with one more episode, given as (x, y, action, reward, next x, next y)."""
    episode = np.full(len(rows), table["episode_id"].max() + 1)
    x, y, action, reward, after_x, after_y = zip(*rows, strict=True)
    names = list(table)
    more = (episode, np.arange(len(rows)), x, y, action, reward, after_x, after_y, np.zeros(len(rows), dtype=bool))
    return {name: np.concatenate([table[name], values]) for name, values in zip(names, more, strict=True)}


def leaning(unlogged=()):
    """Mostly action 0 on the torus, and always beside it; in ``unlogged`` action 7, which nobody ever took."""
    states = [(x, y) for x in range(ROWS + 1) for y in range(COLUMNS)]
    laws = {True: [1.0, 0.0, 0.0, 0.0], False: [0.6, 0.2, 0.2, 0.0]}
    law = np.array([[0.0, 0.0, 0.0, 1.0] if state in unlogged else laws[state[0] == ROWS] for state in states])
    return mixope.TabularPolicy(law, np.array(states), (0, 1, 2, 7), factors=("x", "y"))


def test_a_rare_state_that_one_episode_did_not_leave_does_not_capture_the_long_run():
    table = columns()
    plain = mixope.evaluate(table, leaning(), "dr")
    loop = (ROWS, 0, 0, 50.0, ROWS, 0)
    found = mixope.evaluate(with_rows(table, [(0, 0, 0, 0.0, ROWS, 0), *[loop] * 6]), leaning(), "dr")
    assert found.value == pytest.approx(plain.value, abs=plain.standard_error)
    assert 0 < found.outside_mass < 0.05


def test_a_state_that_many_entered_and_nobody_left_is_the_long_run():
    table = columns()
    for _ in range(30):
        table = with_rows(table, [(0, 0, 0, 0.0, ROWS, 0), *[(ROWS, 0, 0, 50.0, ROWS, 0)] * 20])
    assert mixope.evaluate(table, leaning(), "dr").value == pytest.approx(50.0)


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=lambda e: e.kind)
def test_a_state_in_which_the_target_does_what_nobody_ever_did_is_outside_and_earns_no_zero(estimand):
    table = {**columns(), "reward": np.full(500, 5.0)}
    found = mixope.evaluate(table, leaning(unlogged=[(1, 1), (2, 2)]), "dr", estimand=estimand)
    assert found.value == pytest.approx(5.0)
    assert found.outside_mass > 0.02


def test_a_world_in_which_nobody_did_what_the_target_does_is_outside():
    table = columns(apart=True, gaps=False)
    kept = (table["observation.y"] != 2) | (table["action"] == 2)
    table = {name: values[kept] for name, values in table.items()}
    law = mixope.TabularPolicy(
        np.tile([0.5, 0.5, 0.0], (ROWS * COLUMNS, 1)),
        np.array([[x, y] for x in range(ROWS) for y in range(COLUMNS)]),
        factors=("x", "y"),
    )
    inside = {name: values[table["observation.y"] != 2] for name, values in table.items()}
    found, known = mixope.evaluate(table, law, "dr"), mixope.evaluate(inside, law, "dr")
    first = table["step"] == 0
    assert found.value == pytest.approx(known.value, rel=1e-5)
    assert found.outside_mass == pytest.approx((table["observation.y"][first] == 2).mean(), abs=0.02)


def test_the_linear_value_model_is_still_to_be_had():
    asked = problem(Estimand("average"))
    linear, kriged = solved(DoublyRobust(value="linear"), asked), solved(DoublyRobust(), asked)
    assert linear.measures.ridge is not None
    assert kriged.measures.sill is not None
    assert linear.value != kriged.value


def test_a_value_model_that_does_not_exist_or_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="'kriged', 'linear'"):
        DoublyRobust(value="cubic")
    with pytest.raises(UsageError, match="counts the behaviour itself"):
        DoublyRobust(value="kriged", behaviour=mixope.estimators.doubly_robust.CountedMixture())


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=lambda e: e.kind)
def test_iteration_finds_what_elimination_finds(estimand, monkeypatch):
    asked = problem(estimand, ends=0.05)
    direct = solved(DoublyRobust(), asked)
    monkeypatch.setattr("mixope.estimators.counts.completion._DENSE", 0)
    monkeypatch.setattr("mixope.estimators.counts.completion._MOST_DENSE", 0)
    iterated = solved(DoublyRobust(), asked)
    assert iterated.value == pytest.approx(direct.value, rel=1e-9)
    assert iterated.measures.approximation == pytest.approx(direct.measures.approximation, rel=1e-7)
    np.testing.assert_allclose(iterated.scores.by_cluster, direct.scores.by_cluster, rtol=1e-6, atol=1e-10)


def test_many_factors_leave_no_bias_where_neighbours_are_few():
    """Nine machines in a ring: what was not logged lies to one side of what was, and a trend must tell."""
    model = worlds.make("machines", n=9)
    down = 1 - np.stack(list(model.factors.values()), 1)
    favours = np.exp(np.linspace(-1, 1, 9))

    def reboots(care, favour):
        weight = np.concatenate([care * favour * down + 0.01, np.ones((len(down), 1))], axis=1)
        return weight / weight.sum(axis=1, keepdims=True)

    target = reboots(0.15, np.ones(9))
    logs = worlds.simulate(
        model, [reboots(0.1, favours), reboots(0.2, favours[::-1])], 60, 200, seed=0, observed="factors"
    )
    truth = worlds.truth.average(model, target)
    found = mixope.evaluate(logs, mixope.TabularPolicy(target, 1 - down, factors=list(model.factors)))
    assert found.estimator == "dr"
    assert found.interval.low < truth < found.interval.high
    assert abs(found.value - truth) < 0.2 * abs(found.beside[0].value - truth)
