"""The parts of an experiment against slow loops and chains that are solved by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pytest

from mixope.experiments import ordering
from mixope.experiments.arms import _by_bucket
from mixope.experiments.chains import Pair, chain_of, start_law
from mixope.experiments.counts import KEYS, SUMS, Counts, Histories, count, jackknife
from mixope.experiments.design import ExperimentDesign
from mixope.experiments.drift import _parts, drift_check
from mixope.experiments.forecast import forecast
from mixope.experiments.history import _gains
from mixope.experiments.panel import make_panel
from mixope.experiments.seen import by_day

from .tables import two_states

DESIGN = ExperimentDesign("user", "day", "variant", "A", ("revenue",), ("tired",))


@pytest.fixture(scope="module")
def panel():
    return make_panel(two_states(users=60, days=5), DESIGN)


def test_counts_are_those_of_a_loop(panel):
    histories = count(panel, "revenue")
    found, fine = histories.merged(), histories.counts
    rows = sorted(zip(*(two_states(users=60, days=5).column(c).to_pylist() for c in range(5)), strict=True))
    expected, earned = Counter(), defaultdict(float)
    for (user, day, arm, tired, revenue), after in zip(rows, [*rows[1:], None], strict=True):
        later = after[3] if after is not None and after[0] == user else None
        expected[arm, str(tired), None if later is None else str(later)] += 1
        earned[arm, str(tired)] += revenue
        assert day < 5
    counted, summed = Counter(), defaultdict(float)
    for arm, state, later, n, reward in zip(
        found.arm, found.state, found.next_state, found.rows, found.reward, strict=True
    ):
        name = found.arms[arm], found.states[state][0], None if later < 0 else found.states[later][0]
        counted[name] += int(n)
        summed[name[:2]] += reward
    assert counted == expected
    assert summed == pytest.approx(dict(earned))
    assert fine.rows.sum() == 300
    assert found.starts.sum() == 60
    assert len(np.unique(found.bucket)) > 20


def test_a_long_table_is_brought_into_order_part_by_part(panel, monkeypatch):
    monkeypatch.setattr(ordering, "PART", 900)
    parts = make_panel(two_states(users=60, days=5), DESIGN)
    assert len(parts.steps.files) > 3 > len(panel.steps.files)
    assert parts.facts == panel.facts
    whole, found = count(panel, "revenue").counts, count(parts, "revenue").counts
    for name in (*KEYS, *SUMS):
        assert getattr(found, name) == pytest.approx(getattr(whole, name))


def test_days_are_those_of_a_loop(panel):
    table = two_states(users=60, days=5).to_pandas()
    seen = by_day(panel, "revenue", "B", "A")
    means = table.groupby(["day", "variant"]).revenue.mean().unstack()
    assert seen.difference == pytest.approx((means["B"] - means["A"]).to_numpy())
    assert seen.units == pytest.approx(np.full(5, 60))


def chain(reward=(1.0, 0.0), p=(0.2, 0.4), leave=0.5) -> Counts:
    """Counts in exact proportion to two chains of two states; one bucket in two copies."""
    groups = []
    for bucket in (0, 1):
        for arm, tire in enumerate(p):
            for state, moves in enumerate(((1 - tire, tire), (leave, 1 - leave))):
                for later, share in enumerate(moves):
                    n = 1000 * share
                    groups.append(
                        (bucket, arm, state, later, n, n * reward[state], 100.0 * (state == later == 0), 0.0, 0.0)
                    )
    columns = [np.array(column) for column in zip(*groups, strict=True)]
    keys = [column.astype(np.int64) for column in columns[:4]]
    return Counts(("A", "B"), ("tired",), (("0",), ("1",)), *keys, *columns[4:])


def test_a_path_is_solved_by_hand():
    path = Pair(chain(), 1, 0).path(400)
    assert path[:2] == pytest.approx([0.0, -0.2])
    assert path[2] == pytest.approx(-(0.6 * 0.4 + 0.4 * 0.5) + (0.8 * 0.2 + 0.2 * 0.5))
    assert path[-1] == pytest.approx(0.2 / 0.7 - 0.4 / 0.9)
    assert chain_of(chain(), 1).long_run() == pytest.approx([0.5 / 0.9, 0.4 / 0.9], abs=1e-5)


def test_parts_add_up_to_the_difference_of_the_long_runs():
    at_once, carried = Pair(chain(), 1, 0).parts_by_state()
    assert at_once == pytest.approx([0.0, 0.0])
    assert carried.sum() == pytest.approx(0.2 / 0.7 - 0.4 / 0.9, abs=1e-5)


def test_differences_in_q_are_exact_where_arms_move_units_alike():
    """Then Q differs by the reward alone, and the first order is all there is."""
    counts = chain(p=(0.3, 0.3))
    more = counts.reward + 0.25 * counts.rows * (counts.arm == 1)
    lifted = replace(counts, reward=more)
    assert Pair(lifted, 1, 0).differences_in_q() == pytest.approx(0.25)


def test_differences_in_q_by_hand():
    """Pooled P(tire) = .3: h(rested) − h(tired) = 1/(.3 + .5), and B tires .2 more of the rested."""
    rested = 0.5
    assert Pair(chain(), 1, 0).differences_in_q() == pytest.approx(-rested * 0.2 / 0.8, abs=1e-5)


def with_a_last_state() -> Counts:
    """As ``chain``, and one more state, 2, that a few treated units came to on the last day and nobody left."""
    plain = chain()
    keys = {"bucket": 0, "arm": 1, "state": 0, "next_state": 2}
    sums = {"rows": 10.0, "reward": 10.0}
    seen = {**dict.fromkeys(KEYS, 2), "bucket": 0, "arm": 1, "next_state": -1}
    columns = {name: [*getattr(plain, name), keys[name], seen[name]] for name in KEYS}
    for name in SUMS:
        columns[name] = [*getattr(plain, name), sums.get(name, 0.0), {"rows": 10.0, "reward": 0.0}.get(name, 0.0)]
    arrays = {name: np.array(column) for name, column in columns.items()}
    return Counts(plain.arms, plain.columns, (*plain.states, ("2",)), **arrays)


def test_a_state_that_nobody_was_seen_to_leave_is_not_the_long_run():
    counts = with_a_last_state()
    laws = Pair(counts, 1, 0).laws
    assert laws[0][2] < 0.01
    assert laws[1][2] == pytest.approx(0.0)
    moves = chain_of(counts, 1).moves.toarray()
    assert moves[2] == pytest.approx(moves[0])  # as the state that it was reached from
    assert abs(Pair(counts, 1, 0).differences_in_q() - Pair(chain(), 1, 0).differences_in_q()) < 0.01


def bought(users: int = 4000, weeks: int = 10, chance: float = 0.05) -> Counts:
    """Users whose state is the weeks since they last bought: for 30, and in every week with the same chance."""
    rng = np.random.default_rng(0)
    buys, state = rng.random((users, weeks)) < chance, np.zeros((users, weeks + 1), dtype=np.int64)
    for week in range(weeks):
        state[:, week + 1] = np.where(buys[:, week], 0, state[:, week] + 1)
    following, step = state[:, 1:].copy(), np.tile(np.arange(weeks), users)
    following[:, -1] = -1
    bucket, arm = np.repeat(np.arange(users) // 2 % 50, weeks), np.repeat(np.arange(users) % 2, weeks)
    reward, one = 30.0 * buys.ravel(), np.ones(users * weeks)
    names = tuple((str(k),) for k in range(weeks))
    sums = one, reward, one * (step == 0), np.sqrt(step), np.sqrt(step) * reward
    return Counts(("A", "B"), ("x",), names, bucket, arm, state[:, :-1].ravel(), following.ravel(), *sums)


@pytest.mark.parametrize("arm", [None, 0, 1])
def test_the_newest_value_of_a_counter_is_left_as_the_one_before_it(arm):
    """It led to where units enter, who had just bought: of a customer who buys once in twenty weeks, every ten."""
    counts = bought()
    chain = chain_of(counts, arm)
    assert chain.moves.toarray()[9, 9] == pytest.approx(chain.moves.toarray()[8, 9])
    assert chain.long_run() @ chain.reward == pytest.approx(1.5, abs=0.2)
    assert chain.path(60)[40:].mean() == pytest.approx(1.5, abs=0.2)
    assert chain.long_run()[9] == pytest.approx(0.95**9, abs=0.06)


def test_the_newest_value_goes_on_as_some_states_before_it_where_few_rows_led_there():
    counts = bought(users=100)
    moves = chain_of(counts, None).moves.toarray()
    like = next(k for k in range(8, -1, -1) if moves[9] == pytest.approx(moves[k]))
    rows = np.bincount(counts.state[counts.next_state >= 0], minlength=10)
    assert rows[like:9].sum() >= 100 > rows[like + 1 : 9].sum()


def test_a_state_that_one_arm_never_left_is_left_as_the_other_arm_does():
    whole = chain()
    halved = whole.take((whole.arm == 0) | (whole.state == 0))
    assert chain_of(halved, 1).moves.toarray()[1] == pytest.approx([0.5, 0.5])


def drifting(trend: float, both: bool = False, units: int = 400, days: int = 9) -> Counts:
    """Units of two arms in one state that earn chance, and in the treatment (or both) more and more."""
    rng = np.random.default_rng(3)
    unit, step = np.divmod(np.arange(units * days), days)
    arm = unit % 2
    reward = rng.normal(size=len(unit)) + trend * np.sqrt(step) * (both | (arm == 1))
    zero, one = np.zeros(len(unit), dtype=np.int64), np.ones(len(unit))
    timed = (one * (step == 0), np.sqrt(step), np.sqrt(step) * reward)
    return Counts(("A", "B"), ("x",), (("0",),), unit // 2 % 50, arm, zero, zero, one, reward, *timed)


def test_the_drift_is_a_regression_on_the_root_of_time():
    counts = drifting(0.0)
    treated = counts.take(counts.arm == 1)
    time = treated.times - treated.times.mean()
    sums = np.bincount(treated.bucket, (treated.reward - treated.reward.mean()) * time)
    expected = sums.sum() / np.sqrt(len(sums) * sums.var(ddof=1))
    assert _parts(counts, 1, 0)[0].treatment == pytest.approx(expected)
    assert drift_check(counts, 1, 0).status == "pass"


def test_an_arm_that_earns_more_and_more_in_the_same_state_drifts_unless_all_do():
    check = drift_check(drifting(0.15), 1, 0)
    assert check.status == "warn"
    assert "B does not earn the same early and late" in check.sentence
    assert drift_check(drifting(0.15, both=True), 1, 0).status == "pass"


def test_the_jackknife_of_a_mean_is_its_standard_error():
    rng = np.random.default_rng(0)
    n = 40
    zero = np.zeros(n)
    counts = Counts(
        ("A",),
        ("x",),
        (("0",),),
        np.arange(n),
        *(np.zeros(n, dtype=np.int64),) * 3,
        np.ones(n),
        rng.normal(size=n),
        zero,
        zero,
        zero,
    )
    value, error, degrees = jackknife(counts, lambda c: np.array([c.reward.sum() / c.rows.sum()]))
    assert value[0] == pytest.approx(counts.reward.mean())
    assert error[0] == pytest.approx(counts.reward.std(ddof=1) / np.sqrt(n))
    assert degrees == n - 1


def test_units_enter_where_they_are_first_seen(panel):
    assert start_law(count(panel, "revenue").merged()) == pytest.approx([1.0, 0.0])


def test_history_gains_nothing_in_a_chain_however_long_the_log():
    """Counts in exact proportion to a chain: what came before must not seem to help."""
    rng = np.random.default_rng(0)
    users, days = 40_000, 6
    state = np.zeros((users, days), dtype=np.int64)
    for day in range(1, days):
        state[:, day] = np.where(rng.random(users) < 0.3, 1 - state[:, day - 1], state[:, day - 1])
    bucket = np.repeat(np.arange(users) % 64, days - 2)
    before, now, after = (state[:, k : days - 2 + k].ravel() for k in range(3))
    n = np.ones(len(now))
    counts = Counts(
        ("A",), ("x",), (("0",), ("1",)), bucket, 0 * now, now, after, n, rng.normal(size=len(n)), 0 * n, n, n
    )
    following, reward = _gains(Histories(counts, before, np.array([0, 1])))
    assert following < 3
    assert reward < 3


def later(table, days=8):
    """The later half of a test, predicted from the first."""
    found = make_panel(table, DESIGN)
    early = count(found, "revenue", f"step < {days // 2}").merged()
    names = found.facts.names
    return forecast(early, _by_bucket(found, "revenue"), names.index("B"), names.index("A"), days // 2)


def test_levels_that_are_foretold_pass():
    found = later(two_states(effect=0.05))
    assert (found.check.status, found.levels.status) == ("pass", "pass")


def test_arms_that_fall_alike_are_named_though_their_difference_holds():
    table = two_states(effect=0.05)
    fallen = pc.subtract(table["revenue"], pc.multiply(table["day"], 0.03))
    found = later(table.set_column(table.column_names.index("revenue"), "revenue", fallen))
    assert (found.check.status, found.levels.status) == ("pass", "warn")
    assert found.predicted[0] > 1.05 * found.seen[0]


def test_a_level_that_is_off_by_little_passes_however_sure_it_is():
    table = two_states(effect=0.05)
    lifted = pc.add(table["revenue"], pc.add(20.0, pc.multiply(table["day"], 0.03)))
    found = later(table.set_column(table.column_names.index("revenue"), "revenue", lifted))
    assert max(map(abs, found.deviates[:2])) > 4.0
    assert found.levels.status == "pass"
