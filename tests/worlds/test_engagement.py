"""A simulated product experiment: exact truth against loops and long lives, draws against the chains they come from."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from mixope.base.errors import UnknownName, UsageError
from mixope.base.estimand import Estimand
from mixope.worlds import engagement
from mixope.worlds.engagement import drawing

DESIGNS = {
    "plain": ("wear-out", {}),
    "staggered and partly exposed": ("novelty", {"stagger": 4, "exposure": 0.6}),
    "switchback of days": ("habit", {"switchback": 1, "days": 9}),
    "switchback of weeks": ("seasonal", {"switchback": 7, "stagger": 3}),
    "roll-out": ("seasonal", {"rollout": (0.1, 0.1, 0.4, 0.8), "days": 10, "stagger": 2}),
    "three arms": ("opposite", {"arms": ("A", "B", "C")}),
    "users who stay away": ("churn", {"stagger": 3}),
}


def columns(table):
    """All columns of a table as arrays."""
    found = {}
    for name in table.column_names:
        values = table[name].combine_chunks()
        coded = pa.types.is_dictionary(values.type)
        found[name] = np.array(values.dictionary.to_pylist())[values.indices] if coded else np.asarray(values)
    return found


def state_of(world, table):
    """The state that each row shows, where nothing is hidden."""
    rows = list(zip(*(table[name].to_pylist() for name in world.columns), strict=True))
    place = {shown: s for s, shown in enumerate(zip(*(c.tolist() for c in world.columns.values()), strict=True))}
    return np.array([place[row] for row in rows])


def slow_average(world, arm, days=3000):
    """Day after day in a plain loop, averaged over the last weeks."""
    a, law, found = world.arms.index(arm), world.start[0].copy(), []
    for _ in range(days):
        found.append(sum(p * m for p, m in zip(law, world.metrics["revenue"].mean[a], strict=True)))
        law = sum(p * row for p, row in zip(law, world.transition[a], strict=True))
    return float(np.mean(found[-70:]))


# ---- truth


@pytest.mark.parametrize("name", engagement.SETTINGS)
def test_the_long_run_is_what_a_slow_loop_ends_in(name):
    world = engagement.make(name)
    for arm in ("A", "B"):
        assert engagement.value(world, arm) == pytest.approx(slow_average(world, arm, 400), abs=1e-9)


def test_discounted_values_and_those_of_the_first_days_are_sums_over_days():
    days = engagement.by_day("novelty", "B", 600)
    weights = 0.1 * 0.9 ** np.arange(600)
    discounted = engagement.value("novelty", "B", Estimand("discounted", gamma=0.9))
    assert discounted == pytest.approx(weights @ days, abs=1e-12)
    assert engagement.value("novelty", "B", Estimand("horizon", horizon=30)) == pytest.approx(days[:30].mean())
    assert days[0] == pytest.approx(engagement.value("novelty", "A") + 0.11)


@pytest.mark.parametrize(("name", "metric"), [("wear-out", "revenue"), ("seasonal", "visits"), ("habit", "complaints")])
def test_truth_is_what_drawn_users_earn_on_average_after_a_while(name, metric):
    settled = 84
    for arm, other in (("A", "B"), ("B", "A")):
        table = columns(engagement.draw(name, users=600, days=settled + 70, seed=5, metrics=(metric,)))
        mine = (table["variant"] == arm) & (table["day"] >= settled)
        by_user = table[metric][mine].reshape(-1, 70).mean(axis=1)
        error = by_user.std(ddof=1) / len(by_user) ** 0.5
        assert (table["variant"] == other).any()
        assert abs(by_user.mean() - engagement.value(name, arm, metric=metric)) < 4 * error


def test_a_mixture_of_arms_lies_between_them_and_exposure_is_one():
    half = engagement.value("wear-out", {"A": 0.5, "B": 0.5})
    assert half == pytest.approx(engagement.value("wear-out", "B", exposure=0.5))
    assert engagement.effect("wear-out", exposure=0.0) == pytest.approx(0.0, abs=1e-12)
    assert engagement.value("wear-out", "A", exposure=0.3) == pytest.approx(engagement.value("wear-out", "A"))
    assert engagement.effect("lift", treatment="C") == pytest.approx(0.02)


def test_the_value_of_all_users_is_that_of_the_plans_by_their_shares():
    by_plan = {plan: engagement.effect("opposite", where={"plan": plan}) for plan in ("free", "paid")}
    assert by_plan["free"] < -0.03 < 0.07 < by_plan["paid"]
    assert engagement.effect("opposite") == pytest.approx(0.6 * by_plan["free"] + 0.4 * by_plan["paid"])


# ---- what the settings claim, of tests of 14 days


def both(name):
    return engagement.naive(name, days=14), engagement.effect(name)


@pytest.mark.parametrize("name", ["lift", "seasonal", "null"])
def test_a_short_test_is_right_where_users_do_not_change(name):
    naive, truth = both(name)
    assert naive == pytest.approx(truth, abs=1e-12)
    assert truth == pytest.approx(0.0 if name == "null" else 0.04, abs=1e-12)


def test_a_short_test_says_too_much_of_what_is_new_and_too_little_of_what_becomes_a_habit():
    naive, truth = both("novelty")
    assert naive > 0.05 > 0.01 == pytest.approx(truth)
    naive, truth = both("habit")
    assert 0 < naive < 0.6 * truth


def test_a_short_test_has_the_wrong_sign_where_users_wear_out_or_are_won():
    for name in ("wear-out", "hidden"):
        naive, truth = both(name)
        assert naive == pytest.approx(0.04, abs=0.001)
        assert truth == pytest.approx(-0.0275, abs=0.001)
    naive, truth = both("investment")
    assert naive < -0.01 < 0.01 < truth


def test_the_arms_of_the_null_setting_are_the_same_chain():
    world = engagement.make("null")
    assert (world.transition == world.transition[0]).all()
    assert (world.metrics["revenue"].mean == world.metrics["revenue"].mean[0]).all()


def test_the_control_does_not_change_during_a_test():
    for name in engagement.SETTINGS:
        weekly = engagement.by_day(name, "A", 28).reshape(4, 7)
        if engagement.make(name).here.all():
            assert weekly == pytest.approx(np.tile(weekly[0], (4, 1)), abs=1e-12)


def test_those_who_come_do_not_change_where_others_stay_away():
    world = engagement.make("churn")
    law = world.start[0]
    for _ in range(20):
        law = law @ world.transition[0]
        assert (law * world.here) / (law @ world.here) == pytest.approx(world.start[0])
    assert 1 - law @ world.here == pytest.approx(0.02 / 0.12 * (1 - 0.88**20))


def test_who_is_away_has_no_row_and_is_the_same_on_return():
    table = columns(engagement.draw("churn", users=3000, days=10, seed=0))
    user, day = table["user"], table["day"]
    assert (np.bincount(user, minlength=3000) < 10).mean() > 0.3
    assert (day[np.unique(user, return_index=True)[1]] == 0).all()
    again = np.flatnonzero((np.diff(user) == 0) & (np.diff(day) > 1))
    assert len(again) > 100
    for name in ("level", "fatigue", "plan"):
        assert (table[name][again] == table[name][again + 1]).all()
    whole = columns(engagement.draw("lift", users=3000, days=10, seed=0))
    assert len(whole["user"]) == 30_000


def test_a_test_of_those_who_come_says_yes_and_the_long_run_no():
    naive, truth = both("churn")
    assert naive == pytest.approx(0.08)
    assert truth == pytest.approx(-0.0271, abs=0.001)


# ---- hidden columns


def test_a_setting_can_hide_any_column_and_its_truth_stays():
    world = engagement.make("seasonal", hidden=("weekday", "plan"))
    assert engagement.draw(world, users=4, days=2, seed=0, hidden="level").column_names[3:] == ["fatigue", "revenue"]
    assert engagement.effect(world) == engagement.effect("seasonal")
    assert "fatigue" not in engagement.draw("hidden", users=4, days=2, seed=0).column_names


@pytest.mark.parametrize("name", [name for name in engagement.SETTINGS if name != "hidden"])
def test_where_nothing_is_hidden_the_recorded_chain_tells_the_truth(name):
    for arm in ("A", "B"):
        assert engagement.apparent(name, arm) == pytest.approx(engagement.value(name, arm), abs=1e-9)


def test_without_the_fatigue_the_recorded_chain_misses_the_harm():
    said = engagement.apparent("hidden", "B") - engagement.apparent("hidden", "A")
    assert said > 0 > -0.02 > engagement.effect("hidden")


def test_the_apparent_value_is_what_counting_the_recorded_columns_gives():
    table = columns(engagement.draw("hidden", users=40_000, days=15, seed=1))
    level, plan, revenue = (table[name].reshape(-1, 15) for name in ("level", "plan", "revenue"))
    treated = table["variant"].reshape(-1, 15)[:, 0] == "B"
    total = 0.0
    for name, share in (("free", 0.6), ("paid", 0.4)):
        mine = treated & (plan[:, 0] == name)
        now, after = level[mine, :-1].ravel(), level[mine, 1:].ravel()
        moves = np.bincount(now * 4 + after, minlength=16).reshape(4, 4) / np.bincount(now)[:, None]
        means = np.bincount(now, weights=revenue[mine, :-1].ravel()) / np.bincount(now)
        total += share * np.linalg.matrix_power(moves, 5000)[0] @ means
    assert total == pytest.approx(engagement.apparent("hidden", "B", days=14), abs=0.01)


# ---- draws


@pytest.mark.parametrize("design", DESIGNS)
def test_the_naive_difference_of_drawn_tests_is_the_expected_one_on_average(design):
    name, choices = DESIGNS[design]
    world, users, found = engagement.make(name), 300, []
    for seed in range(60):
        table = columns(engagement.draw(world, users=users, seed=seed, **choices))
        earned = {arm: table["revenue"][table["variant"] == arm].mean() for arm in ("A", "B")}
        found.append(earned["B"] - earned["A"])
    error = np.std(found, ddof=1) / len(found) ** 0.5
    assert abs(np.mean(found) - engagement.naive(world, users=users, **choices)) < 4 * error


@pytest.mark.parametrize("name", ["wear-out", "novelty"])
def test_moves_and_starts_follow_the_chain(name):
    world = engagement.make(name)
    table = engagement.draw(world, users=6000, days=15, seed=3, arms=("A", "B", "C"))
    state = state_of(world, table).reshape(-1, 15)
    arm = np.array([world.arms.index(v) for v in table["variant"].to_pylist()]).reshape(-1, 15)
    assert stats.chisquare(*_kept(np.bincount(state[:, 0], minlength=world.n_states), world.start[0])).pvalue > 1e-4
    values = []
    for a in range(3):
        for s in np.unique(state[:, :-1]):
            here = (state[:, :-1] == s) & (arm[:, :-1] == a)
            counts = np.bincount(state[:, 1:][here], minlength=world.n_states)
            assert not counts[world.transition[a, s] == 0].any()
            if counts.sum() > 200:
                values.append(stats.chisquare(*_kept(counts, world.transition[a, s])).pvalue)
    assert len(values) > 20
    assert min(values) > 1e-5


def _kept(counts, law):
    possible = law > 0
    return counts[possible], law[possible] * counts.sum()


def test_metrics_scatter_about_their_means_as_they_say():
    table = columns(engagement.draw("lift", 4000, 10, seed=0, metrics=("revenue", "visits", "complaints")))
    fresh = (table["level"] == 3) & (table["fatigue"] == 0) & (table["plan"] == "paid") & (table["variant"] == "A")
    revenue, visits, complaints = (table[name][fresh] for name in ("revenue", "visits", "complaints"))
    bought = revenue[revenue > 0]
    assert bought.size / revenue.size == pytest.approx(0.5, abs=4 * 0.5 / revenue.size**0.5)
    assert stats.kstest(bought / 2, "uniform").pvalue > 1e-4
    assert visits.mean() == pytest.approx(2.3, abs=4 * (2.3 / visits.size) ** 0.5)
    assert visits.var() == pytest.approx(2.3, rel=0.15)
    assert set(complaints) <= {0, 1}


def test_a_table_has_one_row_per_user_and_day_and_a_fair_split():
    table = columns(engagement.draw("lift", users=11, days=3, seed=0))
    assert list(table) == ["user", "day", "variant", "level", "fatigue", "plan", "revenue"]
    assert table["user"].tolist() == np.repeat(np.arange(11), 3).tolist()
    assert table["day"].tolist() == [0, 1, 2] * 11
    assert sorted(np.unique(table["variant"], return_counts=True)[1]) == [15, 18]


def test_users_who_enter_later_have_fewer_rows_and_begin_on_their_weekday():
    table = columns(engagement.draw("seasonal", users=60, days=10, seed=2, stagger=5))
    first = np.array([table["day"][table["user"] == user].min() for user in range(60)])
    assert np.bincount(first).tolist() == [10] * 6
    assert (np.bincount(table["user"]) == 10 - first).all()
    week = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    assert all(week[day % 7] == name for day, name in zip(table["day"], table["weekday"], strict=True))


def test_a_user_of_a_switchback_alternates():
    table = columns(engagement.draw("habit", users=8, days=12, seed=0, switchback=3))
    by_user = table["variant"].reshape(8, 12)
    assert sorted("".join(row) for row in by_user) == ["AAABBBAAABBB"] * 4 + ["BBBAAABBBAAA"] * 4


def test_a_roll_out_treats_the_share_it_says_and_lets_nobody_go():
    table = columns(engagement.draw("habit", users=40, days=5, seed=0, rollout=(0.0, 0.25, 0.25, 1.0)))
    treated = (table["variant"] == "B").reshape(40, 5)
    assert treated.sum(axis=0).tolist() == [0, 10, 10, 40, 40]
    assert all((late >= early).all() for early, late in pairwise(treated.T))


def test_who_is_not_exposed_lives_as_under_control():
    table = columns(engagement.draw("lift", users=20_000, days=5, seed=0, exposure=0.3))
    treated = table["variant"] == "B"
    assert not table["exposed"][~treated].any()
    assert table["exposed"][treated].mean() == pytest.approx(0.3, abs=0.01)
    apart = table["revenue"][treated & ~table["exposed"]].mean() - table["revenue"][~treated].mean()
    assert abs(apart) < 0.02
    assert table["revenue"][table["exposed"]].mean() - table["revenue"][~treated].mean() > 0.02


def test_the_same_seed_gives_the_same_rows_however_they_are_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "BLOCK", 100)
    choices = {"users": 50, "days": 9, "stagger": 2, "exposure": 0.5, "metrics": ("revenue", "visits")}
    table = engagement.draw("novelty", seed=4, **choices)
    assert table.equals(engagement.draw("novelty", seed=4, **choices))
    assert not table.equals(engagement.draw("novelty", seed=5, **choices))
    assert engagement.write("novelty", tmp_path / "test.parquet", seed=4, **choices) == table.num_rows
    assert pq.read_table(tmp_path / "test.parquet").to_pylist() == table.to_pylist()
    assert len(table["user"].chunks) > 3


def small_world(**changes):
    """Two states that swap, with a column of large numbers."""
    parts = {
        "name": "swap",
        "story": "Two states.",
        "arms": ("A", "B"),
        "columns": {"size": np.array([7, 70_000])},
        "transition": np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5], [1.0, 0.0]]]),
        "metrics": {"revenue": engagement.Metric(np.array([[0.0, 1.0], [0.5, 1.0]]))},
        "start": np.array([[1.0, 0.0]]),
    }
    return engagement.World(**{**parts, **changes})


def test_a_world_of_ones_own_is_drawn_and_solved_like_any_other():
    world = small_world()
    assert engagement.value(world, "A") == pytest.approx(0.5)
    assert engagement.value(world, "B") == pytest.approx(2 / 3)
    table = columns(engagement.draw(world, users=2, days=4, seed=0))
    assert table["size"][table["variant"] == "A"].tolist() == [7, 70_000, 7, 70_000]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"transition": np.full((2, 2, 2), 0.4)}, "moves that sum to 1"),
        ({"transition": np.eye(2)}, "moves of shape"),
        ({"start": np.array([[0.5, 0.4]])}, "start laws that sum to 1"),
        ({"metrics": {"revenue": engagement.Metric(np.full((2, 2), 1.5))}}, "means of 'revenue' between 0 and 1"),
        ({"metrics": {"revenue": engagement.Metric(np.ones(2))}}, "means of 'revenue' of shape"),
        ({"columns": {"size": np.arange(3)}}, "a value of 'size' for each state"),
        ({"hidden": ("mood",)}, "unknown state column 'mood'"),
        ({"away": np.zeros(3, dtype=bool)}, "to say of each state whether a user is away"),
        ({"away": np.array([True, False])}, "users who are there when they enter"),
    ],
)
def test_a_world_that_is_none_is_an_error_with_words(changes, said):
    with pytest.raises(UsageError, match=said):
        small_world(**changes)


# ---- what has no sense


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"users": 0}, "users is a whole number of at least 1"),
        ({"users": 2, "stagger": 3}, "at least 8 here, got 2"),
        ({"days": 2.5}, "days is a whole number"),
        ({"stagger": 14}, "after the end of a test of 14 days"),
        ({"exposure": 1.2}, "exposure is a probability"),
        ({"switchback": 0}, "switchback is a whole number of at least 1"),
        ({"rollout": (0.5, 0.2)}, "never fall"),
        ({"rollout": ()}, "never fall"),
        ({"rollout": (0.5,), "switchback": 1}, "not both"),
        ({"rollout": (0.5,), "arms": ("A", "B", "C")}, "one treatment"),
        ({"arms": ("A",)}, "two different arms"),
        ({"arms": ("A", "Z")}, "unknown arm 'Z'"),
        ({"metrics": ("clicks",)}, "unknown metric 'clicks'"),
        ({"hidden": "mood"}, "unknown state column 'mood'"),
        ({"seed": -1}, "seed is a whole number"),
        ({"users": 10**9}, "engagement.write"),
    ],
)
def test_a_test_without_sense_is_an_error_with_words(choices, said):
    with pytest.raises(UsageError, match=said):
        engagement.draw("lift", **{"seed": 0, **choices})


def test_questions_without_an_answer_are_errors_with_words():
    with pytest.raises(UnknownName, match="Did you mean 'wear-out'"):
        engagement.make("wearout")
    with pytest.raises(UsageError, match=r"sum to 1, got 0\.5"):
        engagement.value("lift", {"A": 0.5})
    with pytest.raises(UsageError, match="no total"):
        engagement.value("lift", "A", Estimand("episode"))
    with pytest.raises(UsageError, match="expected one of free, paid"):
        engagement.value("lift", "A", where={"plan": "gold"})
    with pytest.raises(UsageError, match="no row of arm B"):
        engagement.naive("lift", rollout=(0.0,))
    with pytest.raises(UsageError, match="ask for more days"):
        engagement.apparent("novelty", "B", days=2)


def test_the_page_of_environments_has_the_figures_of_all_settings():
    page = (Path(__file__).parents[2] / "docs" / "environments.md").read_text(encoding="utf-8")
    for name in engagement.SETTINGS:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        said = [float(cell.replace("−", "-")) for cell in row.split("|")[3:5]]
        assert said == pytest.approx(both(name), abs=0.0005), name
