"""How strong hidden reasons must be to flip the decision of an experiment."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import mixope
from mixope.base.estimand import Estimand
from mixope.checks import Verdict
from mixope.experiments import Experiment, outcomes, sensitivity
from mixope.experiments.chains import chain_of
from mixope.experiments.counts import Counts, count, jackknife
from mixope.experiments.design import ExperimentDesign
from mixope.experiments.outcomes import Outcomes, count_outcomes
from mixope.experiments.panel import make_panel
from mixope.experiments.records import LongRun
from mixope.experiments.sensitivity import Arm, Assumption, Wanted, sensitivity_of
from mixope.uncertainty import Difference, Interval

COLUMNS = {"arm": "variant", "control": "A", "unit": "user", "time": "day", "metric": "revenue"}
AVERAGE = Wanted(Estimand("average"))
WANTED = {
    "average": AVERAGE,
    "discounted": Wanted(Estimand("discounted", gamma=0.9)),
    "horizon": Wanted(Estimand("horizon", horizon=12)),
    "day": Wanted(Estimand("horizon", horizon=12), 12),
}


def wearing(units: int = 600, days: int = 10, seed: int = 0) -> pa.Table:
    """Treatment earns at once and wears people out; amounts vary within a state."""
    rng = np.random.default_rng(seed)
    arm, level, plan = rng.integers(0, 2, units), rng.integers(0, 4, units), rng.integers(0, 2, units)
    rows = []
    for day in range(days):
        paid = rng.random(units) < 0.1 + 0.15 * level + 0.05 * arm
        revenue = np.where(paid, np.round(rng.gamma(2.0, 0.5, units), 2), 0.0)
        rows.append((np.arange(units), np.full(units, day), arm, level, plan, revenue))
        level = np.clip(level + (rng.random(units) < 0.3 - 0.12 * arm) - (rng.random(units) < 0.25), 0, 3)
        plan = np.where(rng.random(units) < 0.1, 1 - plan, plan)
    return written(rows, ("user", "day", "variant", "level", "plan", "revenue"))


def written(rows: list[tuple[np.ndarray, ...]], names: tuple[str, ...]) -> pa.Table:
    columns = dict(zip(names, map(np.concatenate, zip(*rows, strict=True)), strict=True))
    columns["variant"] = np.where(columns["variant"] == 1, "B", "A")
    return pa.table(columns)


def outcomes_in(table: pa.Table, *states: str) -> Outcomes:
    panel = make_panel(table, ExperimentDesign("user", "day", "variant", "A", ("revenue",), states))
    return count_outcomes(panel, "revenue", count(panel, "revenue").merged())


@pytest.fixture(scope="module")
def worn() -> pa.Table:
    return wearing()


@pytest.fixture(scope="module")
def seen(worn: pa.Table) -> Outcomes:
    return outcomes_in(worn, "level", "plan")


@pytest.fixture(scope="module")
def found(worn: pa.Table) -> Experiment:
    return mixope.experiment(worn, **COLUMNS, state=["level", "plan"])


def reported(seen: Outcomes, wanted: Wanted = AVERAGE, error: float = 0.01) -> LongRun:
    """What the chains themselves would report."""
    treated, plain = (Arm.of(seen, arm, wanted).bound(1.0, "low", True)[0] for arm in (1, 0))
    effect = Difference.of(treated - plain, error, 63, 0.95, "given")
    return LongRun(effect, Verdict.TRUSTWORTHY, "chain", "", treated, plain, ())


def test_outcomes_are_the_counts_with_the_metric_in_classes(worn: pa.Table, seen: Outcomes) -> None:
    panel = make_panel(worn, ExperimentDesign("user", "day", "variant", "A", ("revenue",), ("level", "plan")))
    counts = count(panel, "revenue").merged()
    assert seen.counts.states == counts.states
    for arm in (0, 1):
        mine, plain = chain_of(seen.counts, arm), chain_of(counts, arm)
        np.testing.assert_allclose(mine.moves.toarray(), plain.moves.toarray(), atol=1e-12)
        np.testing.assert_allclose(mine.reward, plain.reward, atol=1e-12)
    revenue = worn["revenue"].to_numpy()
    assert (seen.least, seen.most) == (0.0, revenue.max())
    unpaid = seen.counts.reward[seen.cut == 0]
    assert not unpaid.any()
    assert seen.counts.rows[seen.cut == 0].sum() == (revenue == 0).sum()
    assert len(np.unique(seen.cut)) > 2


@pytest.mark.parametrize("kind", WANTED)
def test_without_hidden_reasons_the_bounds_are_the_values_of_the_chains(seen: Outcomes, kind: str) -> None:
    for arm in (0, 1):
        chain = chain_of(seen.counts, arm)
        path = chain.path(12)
        long_run = chain.long_run() @ chain.reward
        n, gamma = len(chain.start), 0.9
        visits = (1 - gamma) * np.linalg.solve(np.eye(n) - gamma * chain.moves.toarray().T, chain.start)
        plain = {"average": long_run, "discounted": visits @ chain.reward, "horizon": path.mean(), "day": path[-1]}[
            kind
        ]
        for confounded in (True, False):
            for side in ("low", "high"):
                value, _ = Arm.of(seen, arm, WANTED[kind]).bound(1.0, side, confounded)
                assert value == pytest.approx(plain, abs=1e-10)


@pytest.mark.parametrize("kind", WANTED)
def test_the_error_of_a_bound_is_that_of_leaving_out_each_bucket(seen: Outcomes, kind: str) -> None:
    asked = [(side, confounded) for side in ("low", "high") for confounded in (True, False)]

    def bounds(counts: Counts) -> np.ndarray:
        kept = np.isin(seen.counts.bucket, counts.bucket)
        arm = Arm.of(dataclasses.replace(seen, counts=counts, cut=seen.cut[kept]), 1, WANTED[kind])
        return np.array([arm.bound(1.5, *each)[0] for each in asked])

    _, left_out, _ = jackknife(seen.counts, bounds)
    arm = Arm.of(seen, 1, WANTED[kind])
    moved = [arm.bound(1.5, *each)[1] for each in asked]
    to_first_order = np.sqrt(64 / 63 * np.sum(np.square(moved - np.mean(moved, axis=1, keepdims=True)), axis=1))
    np.testing.assert_allclose(to_first_order, left_out, rtol=0.05)


def test_the_curve_begins_at_what_was_reported_and_widens(found: Experiment) -> None:
    main = found.main
    curve, effect = main.sensitivity.curve, main.long_run.effect
    first = curve[0]
    assert first.factor == 1.0
    assert (first.low, first.high) == pytest.approx((effect.difference, effect.difference), abs=1e-9)
    assert (first.sure_low, first.sure_high) == pytest.approx((effect.interval.low, effect.interval.high), abs=1e-9)
    assert first.treatment_low == pytest.approx(main.long_run.treatment, abs=1e-9)
    assert first.control_high == pytest.approx(main.long_run.control, abs=1e-9)
    for name, sign in (("low", -1), ("high", 1), ("treatment_low", -1), ("control_high", 1)):
        assert np.all(sign * np.diff([getattr(point, name) for point in curve]) > 0), name
    for point in curve:
        assert point.sure_low < point.low <= point.high < point.sure_high
        assert point.low == pytest.approx(point.treatment_low - point.control_high, abs=1e-9)
        assert point.high == pytest.approx(point.treatment_high - point.control_low, abs=1e-9)


@pytest.mark.parametrize("kind", WANTED)
def test_at_the_robustness_value_zero_enters(seen: Outcomes, kind: str) -> None:
    long_run = reported(seen, WANTED[kind])
    said = sensitivity_of(seen, 1, 0, WANTED[kind], long_run)
    arms = Arm.of(seen, 1, WANTED[kind]), Arm.of(seen, 0, WANTED[kind])
    side = "low" if long_run.effect.difference > 0 else "high"
    for name, confounded in (("confounding", True), ("markov", False)):
        value = said[name]
        assumption = Assumption(arms, long_run, confounded)
        assert 1.0 <= value.interval <= value.sign
        assert assumption.bound(value.sign, side).difference == pytest.approx(0.0, abs=1e-3)
        if value.interval > 1.0:
            assert assumption.bound(value.interval, side).sure == pytest.approx(0.0, abs=1e-3)
    assert said["markov"].sign < said["confounding"].sign, "fewer things are held fixed"


def test_a_clear_decision_says_what_would_flip_it(seen: Outcomes) -> None:
    long_run = reported(seen, error=1e-4)
    said = sensitivity_of(seen, 1, 0, AVERAGE, long_run)
    hidden = said["confounding"]
    assert hidden.sentence.startswith(
        f"The decision could flip if hidden reasons changed the odds of an arm by a factor of {hidden.sign:.2f}"
    )
    assert said["markov"].sentence.startswith("The decision could flip if what the state leaves out made steps ")


def test_an_open_decision_says_so(seen: Outcomes) -> None:
    said = sensitivity_of(seen, 1, 0, AVERAGE, reported(seen, error=1.0))
    assert [each.interval for each in said.robustness] == [1.0, 1.0, 0.0]
    assert all(
        each.sentence.startswith("The sign, which chance leaves open, could flip if ") for each in said.robustness
    )


def test_a_share_of_visits_that_was_never_seen_flips_the_sign_as_by_hand(seen: Outcomes) -> None:
    """Δ = 0.2, from 0 to 3.8 per visit: 5 % of 4 is 0.2; the interval begins at 0.1."""
    long_run = reported(seen)
    effect = dataclasses.replace(long_run.effect, value=0.2, interval=Interval(0.1, 0.3, 0.95, "given"))
    given = dataclasses.replace(long_run, effect=effect)
    found = sensitivity_of(dataclasses.replace(seen, least=0.0, most=3.8), 1, 0, AVERAGE, given)["coverage"]
    assert found.sign == pytest.approx(0.05)
    assert found.interval == pytest.approx(0.1 / 3.9)
    assert "5.00% of each arm's visits" in found.sentence
    assert (1 - found.sign) * 0.2 - found.sign * 3.8 == pytest.approx(0.0)


def test_a_sign_that_no_hidden_reason_flips_says_so(worn: pa.Table) -> None:
    """Every row of B earns 1 and every row of A nothing: there is nothing to weigh otherwise."""
    paid = (worn["variant"].to_numpy(zero_copy_only=False) == "B").astype(float)
    seen = outcomes_in(worn.set_column(worn.column_names.index("revenue"), "revenue", pa.array(paid)), "level", "plan")
    said = sensitivity_of(seen, 1, 0, AVERAGE, reported(seen))
    assert (said["confounding"].sign, said["confounding"].interval) == (None, None)
    assert said["confounding"].sentence == (
        "The sign would hold even if hidden reasons changed the odds of an arm by a factor of 20."
    )
    assert said["coverage"].sign == pytest.approx(0.5)


def test_the_logged_state_says_what_a_factor_means() -> None:
    """Half of the rows of level 0 are B, and 2 of 3 of level 1: odds of 1 and 2 against 1.4 overall."""
    user = np.repeat(np.arange(120), 2)
    level = (user % 2).astype(int)
    arm = np.where(level == 0, user // 2 % 2, user // 2 % 3 > 0).astype(int)
    rows = [(user, np.tile([0, 1], 120), arm, level, arm * 1.0 + level)]
    seen = outcomes_in(written(rows, ("user", "day", "variant", "level", "revenue")), "level")
    said = sensitivity_of(seen, 1, 0, AVERAGE, reported(seen))
    assert said.logged_factor == pytest.approx(2 / 1.4, rel=1e-9)


def test_many_groups_fall_into_fewer_buckets_and_bounds_stay(
    worn: pa.Table, seen: Outcomes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "MOST_GROUPS", 10_000)
    fewer = outcomes_in(worn, "level", "plan")
    assert len(np.unique(fewer.counts.bucket)) < len(np.unique(seen.counts.bucket))
    values = [Arm.of(each, 1, AVERAGE).bound(1.5, "low", True)[0] for each in (fewer, seen)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_what_the_state_leaves_out_has_a_curve_wider_than_that_of_hidden_reasons(found: Experiment) -> None:
    known = found.main.sensitivity
    assert known.memory_curve[0].low == pytest.approx(found.main.long_run.effect.difference)
    for hidden, memory, before in zip(known.curve[1:], known.memory_curve[1:], known.memory_curve, strict=False):
        assert memory.factor == hidden.factor
        assert memory.low < hidden.low < hidden.high < memory.high
        assert memory.low < before.low
        assert memory.sure_low < memory.low < memory.high < memory.sure_high
    flips = known["markov"].sign
    inside = [point.factor for point in known.memory_curve if point.low <= 0 <= point.high]
    assert min(inside, default=np.inf) >= flips


def test_sensitivity_survives_json_and_has_tables(found: Experiment) -> None:
    again = Experiment.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again.main.sensitivity["confounding"].sentence == found.main.sensitivity["confounding"].sentence
    written = found.to_dict()["arms"][0]["sensitivity"]
    assert {point["factor"] for point in written["curve"]} >= {1.0, 1.5, 3.0}
    assert [row["assumption"] for row in found.tables()["robustness"]] == ["confounding", "markov", "coverage"]
    assert len(found.tables()["sensitivity"]) == len(written["curve"]) + len(written["memory_curve"])
    assert found.to_dict()["sensitivity"] == written
    assert again.main.sensitivity.logged_factor == pytest.approx(found.main.sensitivity.logged_factor)


def test_the_terminal_says_what_would_flip_the_decision(found: Experiment) -> None:
    shown = " ".join(found.full().split())
    assert "what would flip it" in shown
    assert "the odds of an arm by a factor of" in shown
    assert "For comparison: the state that is logged moves the odds of the arm by up to" in shown


def test_what_would_take_minutes_is_not_computed_and_a_note_says_so(
    worn: pa.Table, seen: Outcomes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert AVERAGE.is_quick(seen.counts)
    assert not Wanted(Estimand("horizon", horizon=2_000)).is_quick(seen.counts)
    monkeypatch.setattr(sensitivity, "MOST_WORK", 100)
    found = mixope.experiment(worn, **COLUMNS, state=["level", "plan"])
    assert found.main.sensitivity is None
    assert any("hidden reasons" in note for note in found.notes)
    assert Experiment.from_json(found.to_json()).main.sensitivity is None


def test_a_state_that_an_arm_was_never_seen_in_leaves_no_room(worn: pa.Table) -> None:
    """Only the treatment knows level 3: the control leaves it as the treatment does, and earns the mean of all rows."""
    level, arm = worn["level"].to_numpy(), worn["variant"].to_numpy(zero_copy_only=False)
    kept = worn.filter(pa.array((level < 3) | (arm == "B")))
    seen = outcomes_in(kept, "level", "plan")
    control = Arm.of(seen, 0, AVERAGE)
    values = [control.bound(factor, "low", True)[0] for factor in (1.0, 2.0)]
    chain = chain_of(seen.counts, 0)
    assert values[0] == pytest.approx(chain.long_run() @ chain.reward, abs=1e-9)
    assert values[1] < values[0]


GAMMA = 2.0
COIN = np.array([0.5, 0.5])
TAKES = np.array([1 / 3, 2 / 3])
"""Odds of 1/2 and 2 against even odds over both sides of the coin."""
PAYS = np.array([[[0.2, 0.5], [0.25, 0.45]], [[0.3, 0.6], [0.35, 0.55]], [[0.4, 0.8], [0.45, 0.75]]])
RISES = np.array([[[0.2, 0.4], [0.1, 0.5]], [[0.3, 0.4], [0.1, 0.4]], [[0.0, 0.0], [0.0, 0.0]]])
FALLS = np.array([[[0.0, 0.0], [0.0, 0.0]], [[0.3, 0.2], [0.4, 0.2]], [[0.3, 0.2], [0.4, 0.1]]])
"""By level, arm and side of the coin."""


def confounded(seed: int, units: int = 3_000, days: int = 12) -> pa.Table:
    """Who takes the treatment in a period is moved by a coin that nobody logs, and so is all that follows."""
    rng = np.random.default_rng(seed)
    level, rows = rng.integers(0, 3, units), []
    for day in range(days):
        coin = (rng.random(units) < COIN[1]).astype(int)
        arm = (rng.random(units) < TAKES[coin]).astype(int)
        revenue = (rng.random(units) < PAYS[level, arm, coin]).astype(float)
        rows.append((np.arange(units), np.full(units, day), arm, level, revenue))
        drawn = rng.random(units)
        rise, fall = RISES[level, arm, coin], FALLS[level, arm, coin]
        level = level + (drawn < rise) - (drawn > 1 - fall)
    return written(rows, ("user", "day", "variant", "level", "revenue"))


def truth(arm: int) -> float:
    """The long run of always having the arm, whatever the coin says."""
    rise, fall, pay = (table[:, arm] @ COIN for table in (RISES, FALLS, PAYS))
    moves = np.diag(1 - rise - fall) + np.diag(rise[:-1], 1) + np.diag(fall[1:], -1)
    return float(np.linalg.matrix_power(moves, 1_000)[0] @ pay)


@pytest.mark.parametrize("seed", range(4))
def test_the_truth_lies_within_the_bounds_at_the_factor_of_a_hidden_coin(seed: int) -> None:
    seen = outcomes_in(confounded(seed), "level")
    arms = Arm.of(seen, 1, AVERAGE), Arm.of(seen, 0, AVERAGE)
    for arm in arms:
        low, high = (arm.bound(GAMMA, side, True)[0] for side in ("low", "high"))
        assert low < truth(arm.arm) < high
    long_run = reported(seen)
    difference = truth(1) - truth(0)
    assumption = Assumption(arms, long_run, True)
    assert assumption.bound(GAMMA, "low").difference < difference < assumption.bound(GAMMA, "high").difference
    error = assumption.plain[2]
    assert abs(long_run.effect.difference - difference) > 10 * error, "plain is far off"
    assert long_run.effect.difference > 0 > difference, "and of the wrong sign, which the robustness value tells"
    assert 1.0 < sensitivity_of(seen, 1, 0, AVERAGE, long_run)["confounding"].sign < GAMMA


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_reached_where_the_coin_does_its_worst(seed: int) -> None:
    """One state, paid or not. With heads, at which B is rare, nobody is paid under B; no log tells."""
    rng = np.random.default_rng(seed)
    units, days, rows = 2_000, 10, []
    for day in range(days):
        coin = (rng.random(units) < COIN[1]).astype(int)
        arm = (rng.random(units) < TAKES[coin]).astype(int)
        paid = rng.random(units) < np.where(arm == 1, np.array([0.0, 0.6])[coin], 0.3)
        rows.append((np.arange(units), np.full(units, day), arm, np.zeros(units, int), paid.astype(float)))
    seen = outcomes_in(written(rows, ("user", "day", "variant", "level", "revenue")), "level")
    low, moved = Arm.of(seen, 1, AVERAGE).bound(GAMMA, "low", True)
    error = float(np.sqrt(np.sum(moved**2)))
    assert error < 0.01
    assert abs(low - 0.3) < 3.5 * error, "half the tosses are heads"
    plain, _ = Arm.of(seen, 1, AVERAGE).bound(1.0, "low", True)
    assert plain == pytest.approx(0.4, abs=0.02)
