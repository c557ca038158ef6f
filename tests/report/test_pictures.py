"""What the pictures show, against slow loops over the rows; each is there only where its data is."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import mixope
from mixope.answers.pictures import Pictures, growth, loggers_in_turn, reliability, returns
from mixope.engines import MemoryEngine
from mixope.inspection import coverage_of
from mixope.report.document import document
from mixope.report.figures import figures
from mixope.requests.problem import Problem
from mixope.session.session import count

from . import records

ACTIONS = ("left", "right")


def rows_of(seed=0, episodes=40, factors=True, propensity=True):
    """A walk on three by two cells; the second logger prefers to go right."""
    draw, rows = np.random.default_rng(seed), []
    for e in range(episodes):
        who, x, y = f"logger-{e % 2}", 0, 0
        for t in range(12):
            p = 0.7 if e % 2 else 0.4
            right = draw.random() < p
            there = (min(x + 1, 2) if right else max(x - 1, 0)), int(draw.random() < 0.5)
            rows.append((who, e, t, x, y, ACTIONS[right], float(x + y), *there, t == 11, p if right else 1 - p))
            x, y = there
    names = ("policy_id", "episode_id", "step", "observation.x", "observation.y", "action", "reward")
    table = pa.table(
        {
            name: list(column)
            for name, column in zip(
                (*names, "next_observation.x", "next_observation.y", "truncated", "action_prob"),
                zip(*rows, strict=True),
                strict=True,
            )
        }
    )
    if not factors:
        for prefix in ("observation", "next_observation"):
            x, y = (table.column(f"{prefix}.{axis}").to_pylist() for axis in "xy")
            table = table.append_column(prefix, pa.array([cell(a, b) for a, b in zip(x, y, strict=True)]))
            table = table.drop_columns([f"{prefix}.x", f"{prefix}.y"])
    return (table if propensity else table.drop_columns(["action_prob"])), rows


class Known:
    """A policy that refuses states which it does not know."""

    def __init__(self, laws):
        self.laws = laws

    def log_prob(self, observations, actions):
        return np.log([self.laws[tuple(s)][a] for s, a in zip(observations.tolist(), actions.tolist(), strict=True)])

    def fingerprint(self):
        return "known"


def cell(x, y):
    return f"r{x}c{y}"


def target(right=0.6):
    return {(x, y): {"left": 1 - right, "right": right} for x in range(3) for y in range(2)}


def policy(tmp_path, right=0.6):
    lines = ["observation.x,observation.y,action,prob"]
    lines += [f"{x},{y},{a},{p}" for (x, y), law in target(right).items() for a, p in law.items()]
    path = tmp_path / "target.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def test_the_estimate_grows_as_a_mean_over_episodes_does():
    draw = np.random.default_rng(3)
    earned, logger = draw.normal(size=60) + 5, np.sort(draw.integers(0, 3, size=60))
    value = earned.mean()
    in_turn = earned[loggers_in_turn(logger)]
    points = growth(value, (in_turn - value) / 60, 0.95)
    assert points[0].episodes == 10
    assert points[-1].episodes == 60
    for point in points:
        first = in_turn[: point.episodes]
        error = first.std(ddof=1) / np.sqrt(len(first))
        assert point.value == pytest.approx(first.mean())
        assert 1.9 * error < point.high - point.value < 3.2 * error
        assert point.high - point.value == pytest.approx(point.value - point.low)


def test_every_beginning_holds_each_logger_s_share():
    logger = np.repeat([0, 1, 2], [60, 30, 10])
    order = loggers_in_turn(logger)
    assert sorted(order) == list(range(100))
    for n in (10, 37, 80):
        share = np.bincount(logger[order[:n]], minlength=3) / n
        assert share == pytest.approx([0.6, 0.3, 0.1], abs=0.1)
    assert all(np.diff(order[logger[order] == j]).min() > 0 for j in range(3)), "a logger's own keep their order"


def test_few_episodes_do_not_grow():
    assert growth(1.0, np.zeros(14), 0.95) == ()


def test_the_last_point_is_the_estimate_and_its_interval(tmp_path):
    table, _ = rows_of()
    for found in (mixope.evaluate(table, policy(tmp_path)), mixope.evaluate(table, policy(tmp_path), "emp")):
        last = found.pictures.growth[-1]
        assert last.episodes == found.n_episodes
        assert (last.value, last.low, last.high) == pytest.approx(
            (found.value, found.interval.low, found.interval.high), rel=0.01
        )


def test_workers_and_pieces_change_no_picture(tmp_path):
    table, _ = rows_of()
    plan = policy(tmp_path)
    pieces = mixope.read(table.slice(0, 240), table.slice(240))
    one, two = (mixope.evaluate(logs, plan, engine=MemoryEngine()).pictures for logs in (table, pieces))
    assert one == two
    here = mixope.evaluate(table, plan).pictures
    assert here.returns == one.returns
    assert [v.target for v in here.visits.states] == pytest.approx([v.target for v in one.visits.states])


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_returns_are_counted_once_in_bars_with_round_ends(scale):
    earned = np.random.default_rng(1).normal(size=500) * scale
    bars = returns(earned)
    assert 3 <= len(bars) <= 17
    for k, bar in enumerate(bars):
        last = k == len(bars) - 1
        slow = sum(bar.low <= x and (x < bar.high or (last and x == bar.high)) for x in earned.tolist())
        assert bar.episodes == slow
    assert sum(bar.episodes for bar in bars) == 500


@pytest.mark.parametrize("value", [0.0, -3.0, 1e-300, 1e15])
def test_returns_that_are_all_alike_are_one_bar_around_them(value):
    (bar, *others) = returns(np.full(7, value))
    assert sum(b.episodes for b in (bar, *others)) == 7
    assert bar.low <= value <= (bar, *others)[-1].high


def test_visits_are_the_shares_of_rows_and_of_weights(tmp_path):
    table, rows = rows_of()
    found = mixope.evaluate(table, policy(tmp_path), "emp").pictures.visits
    seen = Counter((row[3], row[4]) for row in rows)
    assert found.factors == ("x", "y")
    assert {visit.state: visit.logged for visit in found.states} == pytest.approx(
        {state: n / len(rows) for state, n in seen.items()}
    )
    assert sum(visit.target for visit in found.states) == pytest.approx(1.0)
    at_right = sum(visit.target for visit in found.states if visit.state[0] == 2)
    rarely = mixope.evaluate(table, policy(tmp_path, 0.2), "emp").pictures.visits
    assert at_right > 2 * sum(visit.target for visit in rarely.states if visit.state[0] == 2)


def test_visits_of_the_target_are_those_of_its_own_long_walk(tmp_path):
    """A step at a time, through the transitions as they were counted, until the shares stay as they are."""
    table, rows = rows_of(episodes=100)
    found = mixope.evaluate(table, policy(tmp_path, 0.8), "emp").pictures.visits
    seen, law = Counter((*r[3:6], *r[7:9]) for r in rows), target(0.8)
    pairs = Counter(r[3:6] for r in rows)
    share = dict.fromkeys(law, 1 / 6)
    for _ in range(200):
        after = dict.fromkeys(law, 0.0)
        for (x, y, action, *there), n in seen.items():
            after[tuple(there)] += share[x, y] * law[x, y][action] * n / pairs[x, y, action]
        share = after
    assert {visit.state: visit.target for visit in found.states} == pytest.approx(share, abs=1e-6)


def test_recorded_propensities_are_held_against_frequencies(tmp_path):
    table, rows = rows_of(episodes=100)
    found = mixope.evaluate(table, policy(tmp_path), "emp").pictures.reliability
    assert found.of == "the recorded propensities"
    at, taken, given = Counter(), Counter(), {}
    for who, _, _, x, y, action, *_, p in rows:
        at[who, x, y] += 1
        taken[who, x, y, action] += 1
        given[who, x, y, action] = p
    slow = {}
    for (who, x, y, action), n in taken.items():
        p, chances = given[who, x, y, action], at[who, x, y]
        if min(p, 1 - p) * chances >= 5:
            total = slow.setdefault(round(p * 10), [0, 0, 0.0])
            total[0], total[1], total[2] = total[0] + chances, total[1] + n, total[2] + chances * p
    assert [b.choices for b in found.bins] == [slow[k][0] for k in sorted(slow)]
    assert [b.observed for b in found.bins] == pytest.approx([slow[k][1] / slow[k][0] for k in sorted(slow)])
    assert [b.predicted for b in found.bins] == pytest.approx([slow[k][2] / slow[k][0] for k in sorted(slow)])
    assert all(abs(b.observed - b.predicted) < 4 * b.standard_error for b in found.bins)


def test_what_is_counted_has_no_reliability(tmp_path):
    table, _ = rows_of(propensity=False)
    assert mixope.evaluate(table, policy(tmp_path), "emp").pictures.reliability is None


def test_known_policies_are_held_against_frequencies(tmp_path):
    table, _ = rows_of(propensity=False)
    wrong = mixope.evaluate(
        table, policy(tmp_path), "emp", loggers={"logger-0": target(0.7), "logger-1": target(0.4)}
    ).pictures.reliability
    assert wrong.of == "the known policies of the loggers"
    assert any(abs(b.observed - b.predicted) > 5 * b.standard_error for b in wrong.bins)


def test_a_policy_is_asked_only_about_states_where_its_logger_was(tmp_path):
    table, rows = rows_of(propensity=False)
    cut = [k for k, r in enumerate(rows) if r[0] == "logger-1" or (r[3] < 2 and r[2] == 0)]
    known = {(x, y): law for (x, y), law in target(0.4).items() if x == 0}
    asked = reliability(
        Problem(count(table.take(cut)).transitions, mixope.read_policy(target()), loggers={"logger-0": Known(known)})
    )
    assert asked.of == "the known policies of the loggers"
    assert sum(b.choices for b in asked.bins) == 40  # 20 episodes begin at (0, 0), and both actions are likely


@pytest.mark.parametrize("factors", [True, False])
def test_the_map_has_the_uncovered_share_of_every_cell(factors):
    table, rows = rows_of(episodes=6, factors=factors, propensity=False)
    plan = {(k if factors else cell(*k)): law for k, law in target(0.6).items()}
    for k in ((0, 0), (2, 1)):
        plan[k if factors else cell(*k)] = {"left": 0.3, "right": 0.4, "stay": 0.3}
    found = coverage_of(table, plan)
    assert found.factors == (("x", "y") if factors else ())
    taken, at = Counter((r[3], r[4], r[5]) for r in rows), Counter((r[3], r[4]) for r in rows)
    grid = found.grid
    cells = {(int(grid.down[c.down]), int(grid.across[c.across])): c for c in grid.cells}
    assert set(cells) == set(at)
    for (x, y), here in cells.items():
        law = plan[(x, y) if factors else cell(x, y)]
        slow = sum(p for action, p in law.items() if not taken[x, y, action])
        assert here.rows == at[x, y]
        assert here.uncovered == pytest.approx(slow)
    total = sum(each.rows * each.uncovered for each in grid.cells) / len(rows)
    assert total == pytest.approx(found.uncovered_mass)


def test_ids_without_two_numbers_have_no_map():
    table, _ = rows_of(factors=False, propensity=False)
    for prefix in ("observation", "next_observation"):
        place = table.column_names.index(prefix)
        table = table.set_column(place, prefix, pa.compute.replace_substring(table.column(prefix), "c", ""))
    plan = {cell(*k).replace("c", ""): law for k, law in target().items()}
    assert coverage_of(table, plan).grid is None


def test_pictures_survive_json_and_only_those_with_data_are_drawn(tmp_path):
    table, _ = rows_of()
    made = mixope.evaluate(table, policy(tmp_path))
    again = type(made).from_json(made.to_json())
    drawn = figures(document(again, coverage=coverage_of(table, policy(tmp_path))))
    assert set(drawn) == {"returns", "reliability", "forest-0", "weights-0", "growth-0", "visits-0", "map-0"}
    bare = figures(document(records.estimate(pictures=Pictures(), weights=())))
    assert set(bare) == {"forest-0"}


def test_a_mean_weight_by_weight_is_where_the_line_of_effective_rows_is():
    """N / n_eff = Σw² / Σw in multiples of the mean weight."""
    draw = np.random.default_rng(0).gamma(0.3, size=1000)
    effective = draw.sum() ** 2 / (draw**2).sum()
    assert 1000 / effective == pytest.approx((draw * draw).sum() / draw.sum() / draw.mean())
