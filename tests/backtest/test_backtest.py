"""Backtests: loggers that can be predicted are, those that cannot are refused, and lies of the labels come out."""

import dataclasses
import json
from html import escape

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest

import mixope
from mixope import worlds
from mixope.backtesting import Backtest, BacktestRow, backtest, counted_policy, strange_rows, without
from mixope.backtesting.records import BEYOND_CHANCE, WARN, judged_together, share_interval
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.logs import write
from mixope.report.document import document
from mixope.report.html import render
from mixope.report.words import demand, kind, outcome
from mixope.session.session import count
from mixope.uncertainty import probability_words


def world(name="gridworld-slip", loggers=3, episodes=60, horizon=50, seed=0, **options):
    model = worlds.make(name)
    policies = worlds.stages(model, loggers, seed=0)
    return worlds.simulate(model, policies, episodes, horizon, seed=seed, **options), policies


def table(policies):
    return {f"logger-{j}": mixope.TabularPolicy(law) for j, law in enumerate(policies)}


def kept(columns, mask):
    return {name: values[mask] for name, values in columns.items()}


def test_a_prediction_is_an_evaluation_on_files_that_leave_the_logger_out():
    columns, policies = world()
    others = kept(columns, columns["policy_id"] != "logger-1")
    found = {row.label: row for row in backtest(columns, loggers=table(policies)).rows}["logger-1"]
    expected = mixope.evaluate(
        others, mixope.TabularPolicy(policies[1]), "emp", estimand=Estimand("horizon", horizon=50)
    )
    assert found.predicted == pytest.approx(expected.value, abs=1e-12)
    assert found.low == pytest.approx(expected.interval.low, abs=1e-12)
    assert found.high == pytest.approx(expected.interval.high, abs=1e-12)
    assert found.verdict == str(expected.verdict)
    assert found.estimand == "mean of the first 50 steps"
    assert found.policy == "known"


@pytest.mark.parametrize("estimator", ["emp", "bch", "emp-single", "model", "dr"])
def test_every_estimator_from_counts_can_be_backtested(estimator):
    columns, policies = world(observed="factors")
    factors = np.stack([np.arange(16) // 4, np.arange(16) % 4], axis=1)
    known = {
        f"logger-{j}": mixope.TabularPolicy(law, factors, factors=("row", "column")) for j, law in enumerate(policies)
    }
    result = backtest(columns, loggers=known, estimator=estimator)
    assert result.estimator == estimator
    assert all(np.isfinite(row.predicted) for row in result.rows)


def test_what_was_earned_is_the_mean_over_the_rows_of_the_logger():
    columns, _ = world()
    for row in backtest(columns).rows:
        mine = columns["reward"][columns["policy_id"] == row.label]
        assert row.earned == pytest.approx(mine.mean(), abs=1e-12)
        assert row.n_rows == len(mine)
        assert row.n_episodes == 20
        assert row.earned_low < row.earned < row.earned_high


@pytest.mark.long
def test_known_policies_are_predicted_as_often_as_the_level_says():
    """Twelve logs of three loggers: about 36 · 0.95 agree; the errors have the size they claim."""
    distances, agree, together = [], [], []
    for seed in range(12):
        columns, policies = world("singlepath", episodes=45, horizon=40, seed=seed)
        found = backtest(columns, loggers=table(policies))
        together.append(found.probability)
        assert found.check.status == "pass"
        for row in found.rows:
            distances.append(row.z)
            agree.append(row.covered)
    assert sum(agree) >= 31
    assert 0.25 < np.mean(together) < 0.75
    assert 0.7 < np.std(distances) < 1.4


def test_shifted_rewards_of_one_logger_come_out():
    columns, policies = world()
    columns["reward"] = columns["reward"] + 2.0 * (columns["policy_id"] == "logger-2")
    result = backtest(columns, loggers=table(policies))
    assert not any(row.covered for row in result.rows)
    assert result.mean_abs_z > 3


def test_labels_on_the_wrong_policies_come_out():
    columns, policies = world(episodes=120)
    swapped = table([policies[2], policies[1], policies[0]])
    rows = {row.label: row for row in backtest(columns, loggers=swapped).rows}
    assert not rows["logger-0"].covered
    assert not rows["logger-2"].covered


def test_a_logger_whose_actions_nobody_else_took_is_not_supported():
    model = worlds.make("singlepath")
    never, always = np.tile([1.0, 0.0], (5, 1)), np.tile([0.0, 1.0], (5, 1))
    columns = worlds.simulate(model, [never, always], 40, 30, seed=0)
    result = backtest(columns)
    assert {row.verdict for row in result.rows} == {"not supported by these logs"}
    assert all(row.uncovered_mass == 1 and not row.covered for row in result.rows)
    assert all("do not overlap" in row.note for row in result.rows)
    assert result.coverage is None
    assert result.mean_abs_z is None
    assert "none of 2 loggers" in result.full()
    assert json.loads(result.to_json())["rows"][0]["predicted"] is None


def test_states_that_only_one_logger_saw_count_as_uncovered():
    columns, _ = world("singlepath", loggers=2)
    mine = columns["policy_id"] == "logger-1"
    for name in ("observation", "next_observation"):
        columns[name] = columns[name] + 5 * mine
    result = backtest(columns)
    assert [row.verdict for row in result.rows] == ["not supported by these logs"] * 2
    assert all(row.uncovered_mass == 1 for row in result.rows)


def test_whole_episodes_are_compared_by_the_average_and_cut_ones_by_the_horizon():
    columns, _ = world("walk", episodes=90, horizon=300)
    result = backtest(columns)
    assert {row.estimand for row in result.rows} == {"long-run average"}
    assert not any("different numbers of steps" in note for note in result.notes)
    columns, _ = world("walk", episodes=90, horizon=4)
    assert {row.estimand for row in backtest(columns).rows} == {"mean of the first 4 steps"}


def test_an_end_earns_nothing_until_the_horizon():
    columns, _ = world("walk", episodes=90, horizon=4)
    for row in backtest(columns).rows:
        mine = columns["policy_id"] == row.label
        assert row.earned == pytest.approx(columns["reward"][mine].sum() / 4 / 30)


def test_uneven_cuts_are_said_to_be_uneven():
    columns, _ = world("singlepath")
    uneven = kept(columns, (columns["episode_id"] % 2 == 0) | (columns["step"] < 20))
    result = backtest(uneven)
    assert {row.estimand for row in result.rows} == {"long-run average"}
    assert any("different numbers of steps" in note for note in result.notes)


def test_unlabelled_rows_help_and_are_not_predicted():
    columns, _ = world()
    labels = columns["policy_id"].astype(object)
    labels[columns["policy_id"] == "logger-0"] = None
    result = backtest({**columns, "policy_id": labels})
    assert [row.label for row in result.rows] == ["logger-1", "logger-2"]
    assert any("without a label" in note for note in result.notes)


def test_one_logger_is_no_backtest():
    columns, _ = world(loggers=1)
    with pytest.raises(UsageError, match="at least two labelled loggers"):
        backtest(columns)
    del columns["policy_id"]
    with pytest.raises(UsageError, match="policy_id"):
        backtest(columns)


def test_whole_episode_estimators_are_refused_in_words():
    columns, _ = world()
    with pytest.raises(UsageError, match="needs whole episodes"):
        backtest(columns, estimator="wis")


def test_a_policy_for_a_label_that_is_not_there_is_a_mistake():
    columns, policies = world()
    with pytest.raises(UsageError, match="no rows belong to logger 'nobody'"):
        backtest(columns, loggers={"nobody": mixope.TabularPolicy(policies[0])})


def test_files_and_memory_agree_to_the_byte(tmp_path):
    columns, _ = world("walk", episodes=60, horizon=10)
    write(columns, tmp_path / "logs.parquet")
    path = str(tmp_path / "logs.parquet")
    one, two = backtest(path, engine="memory"), backtest(path, engine="embedded")
    assert [r.label for r in one.rows] == [r.label for r in two.rows]
    for a, b in zip(one.rows, two.rows, strict=True):
        assert a.predicted == pytest.approx(b.predicted, abs=1e-12)
        assert a.low == pytest.approx(b.low, abs=1e-12)
        assert a.earned_high == pytest.approx(b.earned_high, abs=1e-12)


def test_the_counted_policy_is_the_frequency_of_actions():
    columns, _ = world()
    rows = count(columns).transitions
    policy = counted_policy(rows, 1)
    mine = kept(columns, columns["policy_id"] == "logger-1")
    at = mine["observation"] == 0
    expected = [np.mean(mine["action"][at] == a) for a in range(4)]
    assert policy.probs(np.array([0]))[0] == pytest.approx(expected)


def test_leaving_a_logger_out_leaves_the_others_as_they_are():
    columns, _ = world()
    counted = count(columns)
    rest = without(counted.transitions, 0)
    assert rest.loggers == ("logger-1", "logger-2")
    assert set(rest.logger.tolist()) == {0, 1}
    assert rest.logger_means() == pytest.approx(counted.transitions.logger_means()[1:])
    assert strange_rows(counted.transitions, 0) < 0.05


def test_a_report_shows_the_backtest(tmp_path):
    columns, policies = world("singlepath", loggers=2)
    result = mixope.evaluate(columns, mixope.TabularPolicy(policies[1]))
    record = backtest(columns)
    nothing = dataclasses.replace(record.rows[0], label="nobody", predicted=float("nan"), low=None, high=None, z=None)
    shown = dataclasses.replace(record, rows=(*record.rows, nothing))
    page = result.report(tmp_path / "page.html", backtest=shown).read_text(encoding="utf-8")
    assert "logger-1" in page
    assert "nobody" in page


def test_the_check_warns_where_a_prediction_is_off_beyond_chance():
    columns, policies = world("singlepath")
    assert backtest(columns, loggers=table(policies)).check.status == "pass"
    columns["reward"] = columns["reward"] + 2.0 * (columns["policy_id"] == "logger-2")
    found = backtest(columns, loggers=table(policies)).check
    assert found.status == "warn"
    assert "standard errors off" in found.sentence


def judged(deviates, degrees=None):
    """Loggers that are so many normal deviates off, each with 40 episodes."""
    rows = [
        BacktestRow(f"logger-{j}", 1.0, 0.9, 1.1, 1.0, 0.9, 1.1, abs(z) < 1.96, "trustworthy", 0.0, z=z, deviate=z)
        for j, z in enumerate(deviates)
    ]
    return Backtest(judged_together(rows), "emp", 0.95, degrees=len(rows) if degrees is None else degrees)


def test_many_predictions_that_are_each_a_little_off_are_together_off_beyond_chance():
    """Ten loggers at 1.9 standard errors: each is inside its interval, all of them cannot be."""
    found = judged([1.9] * 10)
    assert found.agree == 10
    assert found.probability == pytest.approx(stats.chi2.sf(36.1, 10))
    assert found.check.status == "warn"
    assert "taken together" in found.check.sentence
    assert "off by more than chance" in found.summary
    assert judged([1.9] * 10, degrees=1.0).check.status == "pass"  # they may all err together


def test_one_of_many_loggers_outside_its_interval_is_chance_in_the_table_and_in_the_check():
    found = judged([2.3, *[0.5] * 9])
    assert found.check.status == "pass"
    assert "among 10 that may be chance" in found.check.sentence
    assert (kind(found.rows[0]), outcome(found.rows[0])) == ("caution", "no, perhaps by chance")


@pytest.mark.parametrize("n", [1, 5, 30])
def test_a_row_beyond_chance_is_a_check_that_warns(n):
    found = judged([5.0, *[0.0] * (n - 1)])
    assert [row.beyond_chance for row in found.rows] == [True, *[False] * (n - 1)]
    assert (kind(found.rows[0]), kind(found), found.check.status) == ("bad", "caution", "warn")
    assert kind(found) == kind(found.check)
    assert found.rows[0].chance == pytest.approx(n * 2 * stats.norm.sf(5.0))


def test_one_logger_beyond_chance_does_not_make_all_of_them_so():
    """The sentence, the table and the check follow one rule: χ² of all, and the farthest of them."""
    found = judged([4.2, *[0.0] * 29])
    assert found.probability > 0.1
    assert found.check.status == "warn"
    assert [row.beyond_chance for row in found.rows] == [True, *[False] * 29]
    assert "together they are no farther off than chance" in found.summary
    assert f"but {found.rows[0].label} is off by more than chance" in found.summary


@pytest.mark.parametrize("deviates", [[0.1, 0.2], [2.5, 0.1, 0.1], [4.2, *[0.0] * 29], [2.9, -2.9, 2.8, -2.9]])
def test_the_page_shows_the_numbers_of_the_check(deviates):
    """The value and the threshold below the table are the check's; the chance of a row is what it was judged by."""
    found = judged(deviates)
    text = " ".join(render(document(found)).split())
    assert escape(demand(found.check)) in text
    for row in found.rows:
        assert escape(probability_words(row.chance)) in text
    beyond = found.probability < BEYOND_CHANCE or any(row.beyond_chance for row in found.rows)
    assert beyond == (found.check.status == "warn") == (found.check.value > WARN)


def test_the_degrees_are_those_of_the_correlations_of_the_errors():
    """Two loggers predicted from each other alone err together; four predicted from many others hardly do."""
    columns, policies = world("singlepath", loggers=2, episodes=40)
    assert 1.0 <= backtest(columns, loggers=table(policies)).degrees < 1.6
    columns, policies = world("singlepath", loggers=4, episodes=80)
    assert 2.0 < backtest(columns, loggers=table(policies)).degrees <= 4.0


@pytest.mark.parametrize(("hits", "trials"), [(0, 4), (2, 4), (4, 4), (19, 20)])
def test_the_share_that_few_loggers_allow_is_the_exact_binomial_interval(hits, trials):
    exact = binomtest(hits, trials).proportion_ci(0.95, method="exact")
    assert share_interval(hits, trials, 0.95) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_the_summary_says_how_little_few_loggers_prove():
    columns, policies = world("singlepath")
    result = backtest(columns, loggers=table(policies))
    low, high = result.coverage_interval
    assert f"(so few allow a true share of {low:.0%} to {high:.0%})" in result.summary
    assert json.loads(result.to_json())["summary"] == result.summary


def test_counts_that_were_made_before_are_not_made_again(monkeypatch):
    columns, _ = world("singlepath")
    counted = count(columns)
    scans = []
    real = type(counted.engine).scan
    monkeypatch.setattr(type(counted.engine), "scan", lambda *a, **k: scans.append(1) or real(*a, **k))
    again = backtest(counted)
    assert len(scans) == 2
    assert again.rows == backtest(columns).rows


def test_a_backtest_counts_among_the_checks_of_an_estimate():
    columns, policies = world("singlepath")
    columns["reward"] = columns["reward"] + 2.0 * (columns["policy_id"] == "logger-2")
    tested = backtest(columns, loggers=table(policies))
    plain = mixope.evaluate(columns, mixope.TabularPolicy(policies[1]))
    judged = tested.judge(plain)
    assert judged.diagnostics == (*plain.diagnostics, tested.check)
    assert str(judged.verdict) != "trustworthy"


def test_a_backtest_is_a_page_and_a_notebook_cell(tmp_path):
    columns, _ = world("singlepath")
    result = backtest(columns)
    page = result.report(tmp_path / "page.html", command="mixope backtest").read_text(encoding="utf-8")
    for row in result.rows:
        assert row.label in page
    assert result.summary in page
    assert "sha256" in page
    assert "<html" not in result._repr_html_()
    assert result.summary in result._repr_html_()
