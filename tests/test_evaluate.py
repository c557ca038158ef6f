"""From logs to an estimate: few scans, clear refusals, honest alerts, the same bytes for the same question."""

import json
from dataclasses import replace

import numpy as np
import pytest

import mixope
from engine_list import IN_PROCESS
from mixope.base.errors import DataError, MixopeError, UsageError
from mixope.base.estimand import Estimand
from mixope.engines import MemoryEngine, memory
from mixope.estimators import state_ratio
from mixope.logs.succession import explain_episodes
from mixope.session.session import count
from mixope.worlds import simulate, singlepath, walk

TARGET = np.random.default_rng(0).dirichlet([3, 3], size=5)


def columns(episodes=12, horizon=20, seed=1):
    loggers = np.random.default_rng(1).dirichlet([3, 3], size=(2, 5))
    return simulate(singlepath(), list(loggers), episodes, horizon, seed=seed)


def policy(seed=0):
    return mixope.TabularPolicy(np.random.default_rng(seed).dirichlet([3, 3], size=5))


class Counting:
    """An engine that counts what is asked of another."""

    name = "counting"

    def __init__(self):
        self.inner, self.scans, self.passes = MemoryEngine(), 0, 0

    def group_sums(self, logs, grouping, lookup=None):
        self.scans += 1
        return self.inner.group_sums(logs, grouping, lookup)

    def scan(self, logs, requests, expected_rows=None):
        whole = {request.whole_episodes for request in requests}
        self.scans, self.passes = self.scans + (False in whole), self.passes + (True in whole)
        return self.inner.scan(logs, requests, expected_rows)


# --- scans ---


def test_one_target_takes_one_scan_and_one_for_the_interval():
    """In which rows are also put in order, if they are not many."""
    engine = Counting()
    mixope.evaluate(mixope.read(columns()), policy(), "emp", engine=engine)
    assert (engine.scans, engine.passes) == (2, 1)


@pytest.mark.long
def test_a_hundred_targets_take_two_scans():
    engine = Counting()
    table = mixope.compare(
        mixope.read(columns()), {f"p{i}": policy(i) for i in range(100)}, ["emp", "bch-pooled"], engine=engine
    )
    assert len(table) == 200
    assert (engine.scans, engine.passes) == (2, 1)
    alone = mixope.evaluate(mixope.read(columns()), policy(41), "emp")
    assert table["p41", "emp"].interval == alone.interval


def test_auto_takes_no_more_scans_than_one_estimator():
    engine = Counting()
    mixope.evaluate(mixope.read(columns()), policy(), engine=engine)
    assert engine.scans == 2


@pytest.mark.parametrize("name", ["is", "wis-step", "mis"])
def test_a_trajectory_estimator_takes_one_pass_over_episodes(name):
    engine = Counting()
    mixope.evaluate(mixope.read(columns()), policy(), name, engine=engine)
    assert (engine.scans, engine.passes) == (2, 1)


LOSSES = {
    "hole": lambda parts: parts[:1] + parts[2:],
    "duplicate": lambda parts: [*parts, parts[0]],
    "lost end": lambda parts: parts[:-1],
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["wis", "emp"])
def test_an_engine_that_loses_or_doubles_fragments_is_noticed(name, loss, monkeypatch):
    logs, engine = count(mixope.read(columns()), MemoryEngine(fragment_rows=40)), memory.run_parts
    monkeypatch.setattr(memory, "run_parts", lambda *given: (part for part in LOSSES[loss](list(engine(*given)))))
    with pytest.raises(MixopeError, match=r"fragment|rows"):
        mixope.evaluate(logs, policy(), name)


class Forgetful(Counting):
    """An engine whose second scan leaves out some episodes."""

    def scan(self, logs, requests, expected_rows=None):
        sums, *rest = super().scan(logs, requests, expected_rows)
        return (replace(sums, tables=(sums.table.slice(3),)), *rest)


def test_an_engine_that_loses_rows_in_the_second_scan_is_noticed():
    with pytest.raises(MixopeError, match="rows"):
        mixope.evaluate(mixope.read(columns()), policy(), "emp", engine=Forgetful())


# --- refusals ---


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1])
def test_a_level_outside_zero_and_one_is_refused(level):
    with pytest.raises(UsageError, match="level must lie between 0 and 1"):
        mixope.evaluate(mixope.read(columns()), policy(), level=level)


def test_an_unknown_estimator_offers_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'known-mixture'"):
        mixope.evaluate(mixope.read(columns()), policy(), "known-mixtur")
    with pytest.raises(UsageError, match="auto"):
        mixope.evaluate(mixope.read(columns()), policy(), "xyzzy")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"estimand": "discounted"}, "needs gamma"),
        ({"estimand": "horizon"}, "needs the number of steps"),
        ({"estimand": "discounted", "gamma": 1.0}, "use estimand='average'"),
        ({"estimand": "discounted", "gamma": 0.0}, "between 0 and 1"),
        ({"estimand": "horizon", "horizon": 0}, "at least 1 step"),
        ({"estimand": "horizon", "horizon": 5, "gamma": 0.9}, "gamma = 0.9 was given"),
        ({"estimand": "discounted", "gamma": 0.9, "horizon": 5}, "horizon = 5 was given"),
        ({"gamma": 0.9, "horizon": 5}, "was given, but the estimand is 'average'"),
        ({"estimand": "averag"}, "Did you mean 'average'"),
    ],
)
def test_an_estimand_that_contradicts_its_parameters_is_refused(options, words):
    with pytest.raises(UsageError, match=words):
        mixope.evaluate(mixope.read(columns()), policy(), **options)


def test_a_discount_with_the_average_is_refused_where_the_average_was_named():
    with pytest.raises(UsageError, match="say estimand='discounted'"):
        Estimand("average", gamma=0.9)


def test_gamma_or_horizon_alone_name_their_estimand():
    logs = mixope.read(columns())
    assert mixope.evaluate(logs, policy(), gamma=0.9).estimand == Estimand("discounted", 0.9)
    assert mixope.evaluate(logs, policy(), horizon=5).estimand == Estimand("horizon", None, 5)
    assert mixope.evaluate(logs, policy(), estimand=Estimand("discounted", 0.9)).estimand.gamma == 0.9


def test_a_known_logger_without_rows_is_refused():
    with pytest.raises(UsageError, match="no rows belong to logger 'nobody'"):
        mixope.evaluate(mixope.read(columns()), policy(), loggers={"nobody": policy()})


def test_comparing_nothing_is_refused():
    with pytest.raises(UsageError, match="no target"):
        mixope.compare(mixope.read(columns()), {})


def test_the_general_form_refuses_ratios_that_are_not_calibrated():
    with pytest.raises(UsageError, match="needs calibrated ratios"):
        state_ratio.emp(calibrate=False)
    with pytest.raises(UsageError, match="'general' or 'paper'"):
        state_ratio.emp(form="papre")


def test_the_paper_form_is_for_the_average():
    with pytest.raises(UsageError, match="average reward only"):
        mixope.evaluate(mixope.read(columns()), policy(), state_ratio.emp(form="paper"), gamma=0.9)


def test_a_target_that_knows_none_of_the_logged_actions_is_refused():
    given = columns()
    given["action"] = np.full(len(given["action"]), 0)
    never = mixope.TabularPolicy(np.tile([0.0, 1.0], (5, 1)))
    with pytest.raises(DataError) as refusal:
        mixope.evaluate(mixope.read(given), never, "emp")
    assert refusal.value.expected == "logged actions that the target takes too"


@pytest.mark.parametrize("engine", IN_PROCESS)
@pytest.mark.parametrize(("column", "bad"), [("reward", np.nan), ("action_prob", 1.5), ("action_prob", -0.7)])
def test_impossible_numbers_are_found_with_their_rows(engine, column, bad):
    given = columns()
    given[column] = given[column].copy()
    given[column][7] = bad
    with pytest.raises(DataError) as caught:
        mixope.evaluate(mixope.read(given), policy(), engine=engine)
    assert 7 in caught.value.rows


# --- alerts ---


def test_healthy_logs_have_no_alerts():
    assert mixope.evaluate(mixope.read(columns(episodes=24)), policy()).alerts == ()
    ragged = simulate(walk(), [np.full((6, 2), 0.5)], 30, 6, seed=0)
    assert mixope.evaluate(mixope.read(ragged), mixope.TabularPolicy(np.full((6, 2), 0.5))).alerts == ()


def test_rows_that_lead_nowhere_count_and_are_told():
    given = {name: values for name, values in columns().items() if name != "next_observation"}
    result = mixope.evaluate(mixope.read(given), policy())
    assert (result.n_rows, result.n_dropped) == (12 * 20, 0)
    assert any("12 rows lead to a state that is not known" in alert for alert in result.alerts)


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_a_broken_chain_is_found(engine):
    given = columns()
    given["observation"] = given["observation"].copy()
    given["observation"][5] = (given["observation"][5] + 2) % 5
    alerts = mixope.evaluate(mixope.read(given), policy(), engine=engine).alerts
    assert any("not the next_observation of the row before" in alert for alert in alerts)


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_a_hole_in_the_steps_is_found(engine):
    given = {name: np.delete(values, 30) for name, values in columns().items()}
    alerts = mixope.evaluate(mixope.read(given), policy(), engine=engine).alerts
    assert any("hole in the steps" in alert for alert in alerts)


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_a_step_that_comes_twice_is_an_error(engine):
    given = columns()
    given["step"] = given["step"].copy()
    given["step"][3] = 2
    with pytest.raises(DataError, match="repeat a step"):
        mixope.evaluate(mixope.read(given), policy(), engine=engine)


def test_steps_that_change_places_are_found():
    """Two rows of one episode that exchange their steps keep Σ step and Σ step²."""
    given = columns()
    order = np.arange(len(given["step"]))
    order[[4, 9]] = [9, 4]
    moved = {name: values if name == "step" else values[order] for name, values in given.items()}
    logs = mixope.read(moved)
    assert any(finding.name == "next-mismatch" for finding in explain_episodes(logs))
    assert mixope.evaluate(logs, policy()).alerts


def test_late_episodes_are_no_alarm():
    given = columns()
    keep = ~((given["episode_id"] == 2) & (given["step"] < 4))
    result = mixope.evaluate(mixope.read({name: values[keep] for name, values in given.items()}), policy())
    assert not [alert for alert in result.alerts if "few clusters" not in alert]


# --- what comes back ---


def test_one_short_episode_has_no_interval_and_says_why():
    result = mixope.evaluate(mixope.read(columns(episodes=2, horizon=30)), policy())
    assert result.interval is not None
    first = {name: values[:30] for name, values in columns(episodes=2, horizon=30).items()}
    alone = mixope.evaluate(mixope.read(first), policy())
    assert (alone.interval, alone.standard_error) == (None, None)
    assert "at least two episodes" in alone.no_interval_because
    assert np.isfinite(alone.value)
    assert json.loads(alone.to_json())["interval"] is None


def test_the_paper_form_has_no_interval_and_says_why():
    result = mixope.evaluate(mixope.read(columns()), policy(), state_ratio.emp(form="paper"))
    assert result.interval is None
    assert "no score" in result.no_interval_because


def test_a_wider_level_gives_a_wider_interval_around_the_same_value():
    logs = mixope.read(columns())
    narrow, wide = (mixope.evaluate(logs, policy(), level=level) for level in (0.8, 0.99))
    assert narrow.value == wide.value
    assert wide.interval.low < narrow.interval.low < narrow.value < narrow.interval.high < wide.interval.high
    assert (narrow.interval.level, wide.interval.level) == (0.8, 0.99)


@pytest.mark.parametrize("engine", IN_PROCESS)
@pytest.mark.parametrize("name", ["auto", "dr", "wis-step", "kl-emp"])
def test_the_same_question_gives_the_same_bytes(engine, name):
    ids = columns()
    factors = {k: v for k, v in ids.items() if "observation" not in k}
    for part in ("observation", "next_observation"):
        factors |= {f"{part}.half": ids[part] // 3, f"{part}.rest": ids[part] % 3}
    states = np.stack([np.arange(5) // 3, np.arange(5) % 3], axis=1)
    target = mixope.TabularPolicy(TARGET, states, factors=("half", "rest"))
    first, second = (mixope.evaluate(mixope.read(factors), target, name, engine=engine, seed=3) for _ in range(2))
    assert first.to_json().encode() == second.to_json().encode()


def test_the_json_has_what_a_reader_needs():
    record = json.loads(mixope.evaluate(mixope.read(columns()), policy()).to_json())
    for key in (
        *("estimator", "estimand", "value", "interval", "n_rows", "n_episodes", "loggers", "effective_sample_size"),
        *("uncovered_mass", "logged_mean", "verdict", "diagnostics"),
    ):
        assert key in record
    assert set(record["interval"]) == {"low", "high", "level", "method"}
    assert record["n_rows"] == 240


def test_auto_is_dr_with_emp_beside_it_for_factors_and_emp_for_ids():
    assert mixope.evaluate(mixope.read(columns()), policy()).estimator == "emp"
    ids = columns()
    factors = {k: v for k, v in ids.items() if "observation" not in k}
    for part in ("observation", "next_observation"):
        factors |= {f"{part}.half": ids[part] // 3, f"{part}.rest": ids[part] % 3}
    states = np.stack([np.arange(5) // 3, np.arange(5) % 3], axis=1)
    result = mixope.evaluate(mixope.read(factors), mixope.TabularPolicy(TARGET, states, factors=("half", "rest")))
    assert result.estimator == "dr"
    assert [other.estimator for other in result.beside] == ["emp"]


def test_uncovered_actions_lower_the_verdict():
    given = columns()
    keep = given["action"] == 0
    part = {name: values[keep] for name, values in given.items()}
    part["episode_id"], part["step"] = np.arange(keep.sum()), np.zeros(keep.sum(), dtype=int)
    result = mixope.evaluate(mixope.read(part), policy())
    assert result.uncovered_mass > 0.25
    assert str(result.verdict) == "not supported by these logs"
    assert {d.name: d.status for d in result.diagnostics}["uncovered mass"] == "fail"


def test_wrong_propensities_are_noticed():
    given = columns(episodes=60)
    right = mixope.evaluate(mixope.read(given), policy(), "bch-pooled")
    given["action_prob"] = 1 - given["action_prob"]
    wrong = mixope.evaluate(mixope.read(given), policy(), "bch-pooled")
    status = [{d.name: d.status for d in r.diagnostics}["behaviour fit"] for r in (right, wrong)]
    assert status == ["pass", "fail"]
