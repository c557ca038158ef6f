"""How episodes end: said by columns, said by the user, or asked for; what is dropped is counted and judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ragged_logs import arrow, assert_parity, ragged, read, rows_of, without
from sessions import last_rows, sessions

import mixope
from mixope.base.errors import DataError, UnknownName, UsageError
from mixope.checks import Verdict
from mixope.logs import earnings, explain_rows, jumps
from mixope.session.session import look

ADS = mixope.TabularPolicy(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array(["home", "cart"]), np.array(["ad", "none"]))
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
UNMARKED = [(*rest, "terminated", "truncated") for rest in ((), ("step",), ("next_observation",), ("policy_id",))]


@pytest.fixture(scope="module")
def log() -> dict[str, list[Any]]:
    return sessions()


@pytest.fixture(params=["table", "csv", "parquet"])
def source(request: pytest.FixtureRequest, log: dict[str, list[Any]], tmp_path: Path) -> Any:
    table, path = pa.table(log), str(tmp_path / f"sessions.{request.param}")
    if request.param == "csv":
        pyarrow.csv.write_csv(table, path)
    elif request.param == "parquet":
        pq.write_table(table, path, row_group_size=1000)
    return table if request.param == "table" else path


# --- asking ---


@pytest.mark.parametrize("use", [mixope.evaluate, mixope.compare, lambda logs, target: mixope.backtest(logs), look])
def test_every_use_of_logs_without_end_marks_asks_how_episodes_end(log: dict[str, list[Any]], use: Any) -> None:
    with pytest.raises(DataError, match="No column says how the episodes end") as caught:
        use(*((pa.table(log),) if use is look else (pa.table(log), ADS)))
    assert "ends='terminated'" in str(caught.value)
    assert "ends='truncated'" in str(caught.value)


def test_the_question_says_what_hangs_on_it(source: Any, log: dict[str, list[Any]]) -> None:
    last, reward = np.array(last_rows(log)), np.array(log["reward"])
    with pytest.raises(DataError) as caught:
        mixope.evaluate(source, ADS)
    assert f"3,000 of {len(last):,} rows ({3000 / len(last):.2%})" in str(caught.value.got)
    assert f"earn {reward[last].mean():.3g} on average, the others {reward[~last].mean():.3g}" in str(caught.value.got)


def test_large_logs_are_asked_without_being_read(monkeypatch: pytest.MonkeyPatch, log: dict[str, list[Any]]) -> None:
    monkeypatch.setattr("mixope.session.survey.QUICK_ROWS", 10)
    with pytest.raises(DataError, match="how the episodes end") as caught:
        mixope.evaluate(pa.table(log), ADS)
    assert caught.value.got is None


def test_sessions_of_one_row_are_asked_for_too() -> None:
    clicks = pa.table({"session_id": [1, 2, 3], "s": [0, 0, 1], "a": [0, 1, 0], "r": [1.0, 0.0, 1.0], "t": [0, 0, 0]})
    with pytest.raises(DataError, match="how the episodes end"):
        look(clicks)
    assert "ends-unsaid" in [remark.name for remark in mixope.inspect(clicks).remarks]
    assert look(mixope.read(clicks, ends="terminated")).transitions.n_rows == 3


@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_vectors_without_a_usable_row_are_asked_for_or_refused_by_every_engine(engine: str) -> None:
    clicks = {"episode": [1, 2, 3], "t": [0, 0, 0], "s": [0.5, 1.5, 2.5], "a": [0, 1, 0], "r": [1.0, 0.0, 1.0]}
    for ends, problem in ((None, "how the episodes end"), ("truncated", "no row can be used")):
        for use in (mixope.inspect, look):
            with pytest.raises(DataError, match=problem):
                use(read(pa.table(clicks), ends=ends), engine=engine)


def test_nothing_is_asked_where_nothing_hangs_on_it(log: dict[str, list[Any]]) -> None:
    rows = len(log["reward"])
    following = [*log["state"][1:], "home"]
    unasked = {
        "next observations": {**log, "next_state": following},
        "a column of ends": {**log, "terminated": last_rows(log)},
        "a column of cuts": {**log, "truncated": [False] * rows},
        "one derived episode": {name: values for name, values in log.items() if name not in ("session_id", "step")},
    }
    for told in unasked.values():
        assert not read(pa.table(told)).asks_for_ends
    assert read(pa.table(log)).asks_for_ends
    one = read(pa.table(unasked["one derived episode"])).table(["unfollowed"])
    assert one.column("unfollowed").to_pylist() == [False] * (rows - 1) + [True]


def test_logs_that_were_read_can_be_told_later(log: dict[str, list[Any]]) -> None:
    logs = mixope.read(pa.table(log))
    assert mixope.read(logs, ends="terminated").table().num_rows == len(log["reward"])
    assert logs.fingerprint() != mixope.read(logs, ends="terminated").fingerprint()


@pytest.mark.parametrize("column", ["terminated", "truncated"])
def test_saying_it_against_marks_is_a_usage_error(log: dict[str, list[Any]], column: str) -> None:
    marked = pa.table({**log, column: last_rows(log)})
    with pytest.raises(UsageError, match=f"marks its ends itself, in column '{column}'"):
        mixope.read(marked, ends="terminated")
    assert mixope.read(marked, ends="terminated", columns={column: None}).table().num_rows == len(log["reward"])


def test_a_kind_of_end_that_nobody_knows_is_refused(log: dict[str, list[Any]]) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'terminated'"):
        mixope.read(pa.table(log), ends="terminates")
    with pytest.raises(UnknownName, match="kind of end"):
        mixope.Logs.from_arrays(observation=[0], action=[0], reward=[1.0], ends="done")


# --- what is said is carried out ---


def test_last_rows_that_ended_sessions_give_the_answer_of_marked_ones(source: Any, log: dict[str, list[Any]]) -> None:
    marked = mixope.evaluate(pa.table({**log, "terminated": last_rows(log)}), ADS)
    found = mixope.evaluate(mixope.read(source, ends="terminated"), ADS)
    assert found.value == pytest.approx(marked.value, rel=1e-12)
    assert found.standard_error == pytest.approx(marked.standard_error, rel=1e-9)
    assert (found.n_rows, found.n_episodes, found.n_dropped) == (len(log["reward"]), 3000, 0)


def test_arrays_take_the_same_word(log: dict[str, list[Any]]) -> None:
    names = {"observation": "state", "action": "action", "reward": "reward", "episode_id": "session_id", "step": "step"}
    logs = mixope.Logs.from_arrays(**{name: np.array(log[column]) for name, column in names.items()}, ends="terminated")
    assert logs.table(["terminated"]).column("terminated").to_pylist() == last_rows(log)
    assert logs.schema.mapping["terminated"] == "derived: the last row of every episode"
    assert logs.sure_rows == len(log["reward"])


@QUICK
@given(ragged(), st.sampled_from(UNMARKED), st.sampled_from(["terminated", "truncated"]))
def test_view_and_table_agree_on_what_was_said(log: dict[str, list[Any]], absent: tuple[str, ...], ends: str) -> None:
    logs = read(arrow(without(log, *absent)), ends=ends)
    assert_parity(logs)
    if ends == "terminated":
        assert logs.table().num_rows == logs.total_rows()
        assert rows_of(logs.table(["terminated"])).count((True,)) == _episodes(log, absent)


def _episodes(log: dict[str, list[Any]], absent: tuple[str, ...]) -> int:
    loggers = log["policy_id"] if "policy_id" not in absent else [None] * len(log["reward"])
    return len(set(zip(loggers, log["episode_id"], strict=True)))


@pytest.mark.long
@settings(QUICK, max_examples=15)
@given(ragged(), st.sampled_from(UNMARKED), st.integers(0, 99), st.integers(1, 5))
def test_the_last_row_may_lie_in_another_file_or_row_group(
    tmp_path_factory: Any, log: dict[str, list[Any]], absent: tuple[str, ...], cut: int, size: int
) -> None:
    folder, table = tmp_path_factory.mktemp("ends"), arrow(without(log, *absent))
    cut = 1 + cut % max(1, table.num_rows - 1)
    for name, part in (("1", table.slice(0, cut)), ("2", table.slice(cut))):
        if part.num_rows:
            pq.write_table(part, folder / f"{name}.parquet", row_group_size=size)
    logs = read(str(folder), ends="terminated")
    assert_parity(logs)
    assert rows_of(logs.table()) == rows_of(read(table, ends="terminated").table())
    parts = [fragment.table() for fragment in logs.fragments(size)]
    assert pa.concat_tables(parts).combine_chunks().equals(logs.table().combine_chunks())


def test_a_next_observation_that_is_no_number_is_allowed_on_the_row_that_ended_its_episode() -> None:
    rows = {"episode": [0, 0, 1], "t": [0, 1, 0], "s": [0.5, 1.5, 2.5], "a": [0, 1, 0], "r": [0.0, 1.0, 1.0]}
    for following, sound in (([1.5, np.nan, np.nan], True), ([np.nan, 1.0, np.nan], False)):
        logs = read(pa.table({**rows, "s_next": following}), ends="terminated")
        assert (explain_rows(logs) is None) is sound
        assert rows_of(logs.table(["terminated"])) == [(False,), (True,), (True,)]


def test_a_total_of_episodes_that_never_end_points_to_what_was_said(log: dict[str, list[Any]]) -> None:
    with pytest.raises(DataError, match="no episode of these logs ends") as caught:
        mixope.evaluate(mixope.read(pa.table(log), ends="truncated"), ADS, estimand="episode")
    assert "ends='terminated' where the logs are read" in str(caught.value)


# --- truncated is not terminated ---


def mixed(**changes: Any) -> pa.Table:
    """Three episodes of two rows: one terminated, one truncated, one without a mark at its end."""
    rows = {
        "episode_id": [0, 0, 1, 1, 2, 2],
        "step": [0, 1] * 3,
        "observation": [0, 1, 0, 2, 0, 3],
        "action": [0] * 6,
        "reward": [0.0, 1.0, 0.0, 2.0, 0.0, 4.0],
        "terminated": [False, True, False, False, False, False],
        "truncated": [False, False, False, True, False, False],
    }
    return pa.table({name: values for name, values in (rows | changes).items() if values is not None})


def test_without_next_observations_only_the_terminated_last_row_is_followed() -> None:
    logs = mixope.read(mixed())
    assert_parity(logs)
    assert logs.table(["observation"]).column("observation").to_pylist() == [0, 1, 0, 2, 0, 3]
    assert logs.table(["unfollowed"]).column(0).to_pylist() == [False, False, False, True, False, True]
    assert mixope.inspect(logs).dropped == 0


def test_a_truncated_row_with_its_next_observation_is_kept_and_ends_nothing() -> None:
    logs = mixope.read(mixed(next_observation=[1, None, 2, 5, 3, None]))
    assert_parity(logs)
    kept = logs.table(["observation", "next_observation", "terminated"]).to_pydict()
    assert kept["observation"] == [0, 1, 0, 2, 0, 3]
    assert kept["next_observation"] == [1, None, 2, 5, 3, None]
    assert kept["terminated"] == [False, True, False, False, False, False]
    assert logs.table(["unfollowed"]).column(0).to_pylist() == [False] * 5 + [True]


def test_all_rows_are_kept_where_the_last_ones_ended_their_episodes() -> None:
    logs = mixope.read(mixed(terminated=None, truncated=None), ends="terminated")
    assert logs.table(["terminated"]).column("terminated").to_pylist() == [False, True] * 3
    with pytest.raises(UsageError, match="'terminated'"):
        mixope.read(mixed(), ends="terminated")


# --- dropped rows ---


def test_loggers_earn_what_all_their_rows_earned(source: Any, log: dict[str, list[Any]]) -> None:
    result = mixope.evaluate(mixope.read(source, ends="truncated"), ADS)
    assert (result.n_rows, result.n_dropped) == (len(log["reward"]), 0)
    assert result.loggers[0].rows == len(log["reward"])
    assert result.logged_mean == result.loggers[0].logged_mean == pytest.approx(np.mean(log["reward"]))


def test_an_answer_without_the_rows_that_earn_everything_is_not_supported(source: Any) -> None:
    result = mixope.evaluate(mixope.read(source, ends="truncated"), ADS)
    (check,) = [found for found in result.diagnostics if found.name == "dropped rows"]
    assert check.status == "fail"
    assert "3,000 of" in check.sentence
    assert result.verdict is Verdict.UNSUPPORTED


ALONG = {
    "flat": lambda t: 0.0 * t,
    "rising": lambda t: 3 * t / 50,
    "falling": lambda t: -3 * t / 50,
    "bending": lambda t: 3 * (t / 50) ** 2,
    "weekly": lambda t: np.sin(2 * np.pi * t / 7),
    "weekend": lambda t: 1.0 * (t % 7 >= 5),
}


def cut_log(along: Any, seed: int = 0, episodes: int = 1000, steps: int = 50, **columns: Any) -> dict[str, Any]:
    """Episodes cut by the recorder: states and actions by chance, and a reward that changes along the episode."""
    rng = np.random.default_rng(seed)
    rows, step = episodes * steps, np.tile(np.arange(steps), episodes)
    state, action = rng.integers(0, 3, size=rows), rng.integers(0, 2, size=rows)
    return {
        "observation": state,
        "action": action,
        "reward": state + action + along(step) + rng.normal(size=rows),
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": step,
        **columns,
    }


def check_of(logs: Any, **settings: Any) -> Any:
    found = mixope.evaluate(logs, np.full((3, 2), 0.5), **settings).diagnostics
    return next(check for check in found if check.name == "dropped rows")


@pytest.mark.parametrize("along", ALONG)
def test_episodes_cut_by_the_recorder_pass_however_their_reward_drifts(along: str) -> None:
    assert check_of(mixope.read(cut_log(ALONG[along]), ends="truncated")).status == "pass"


@pytest.mark.parametrize(("episodes", "steps"), [(100, 10), (100, 200), (3000, 20)])
def test_cut_episodes_pass_whatever_their_number_and_length(episodes: int, steps: int) -> None:
    check = check_of(mixope.read(cut_log(ALONG["rising"], 1, episodes, steps), ends="truncated"))
    assert check.status == "pass"
    assert check.sentence.startswith(f"{episodes:,} of {episodes * steps:,} rows")


def test_a_reward_that_comes_with_the_last_row_fails_though_rewards_drift() -> None:
    log = cut_log(ALONG["rising"])
    log["reward"] += 5 * (log["step"] == 49)  # such rows count, so that the interval is wide by what they earn
    assert check_of(mixope.read(log, ends="truncated")).status == "fail"


def with_ends(lost: float, gain: float, seed: int = 0) -> dict[str, Any]:
    """A log with marked ends that earn 1; of a share of episodes the mark is lost, and their last row earns more."""
    log = cut_log(ALONG["rising"], seed, steps=20)
    last = log["step"] == 19
    unmarked = last & np.repeat(np.random.default_rng(seed).random(1000) < lost, 20)
    return log | {"terminated": last & ~unmarked, "reward": log["reward"] + (last & ~unmarked) + gain * unmarked}


@pytest.mark.parametrize(
    ("gain", "status", "estimand"),
    [(0.0, "pass", "average"), (0.0, "pass", "episode"), (100.0, "fail", "average"), (100.0, "warn", "episode")],
)
def test_last_rows_without_a_mark_are_judged_beside_marked_ones(gain: float, status: str, estimand: str) -> None:
    check = check_of(with_ends(0.1, gain), estimand=estimand)
    assert check.status == status  # such rewards count, so that the interval is wide by what they earn
    if gain:
        assert f"would move the reward per {'step' if estimand == 'average' else 'episode'} by" in check.sentence


def test_a_recorder_that_loses_the_last_row_of_some_episodes_passes() -> None:
    log = with_ends(0.1, 10.0)
    kept = (log["step"] < 19) | log["terminated"]
    assert check_of({name: values[kept] for name, values in log.items()}).status == "pass"


def test_next_observations_that_are_missing_here_and_there_pass() -> None:
    log = cut_log(ALONG["rising"])
    following = np.append(log["observation"][1:], 0).astype(object)
    following[np.random.default_rng(0).random(len(following)) < 0.05] = None
    assert check_of(pa.table({**log, "next_observation": following.tolist()})).status == "pass"


def test_episodes_lost_altogether_are_compared_with_first_rows_and_counted() -> None:
    log = cut_log(ALONG["rising"], steps=20)
    short = log["episode_id"] < 300
    for gain, status in ((0.0, "pass"), (5.0, "fail")):  # where states are counted, a row that was cut counts
        told = {name: values[~short | (log["step"] == 0)] for name, values in log.items()}
        told["reward"] = told["reward"] + gain * (told["episode_id"] < 300)
        check = check_of(mixope.read(told, ends="truncated"))
        assert (check.status, "all rows of 300 of 1,000 episodes" in check.sentence) == (status, True)


def test_constant_rewards_are_not_moved_by_rounding() -> None:
    rows = {"episode": np.repeat(np.arange(30), 7), "t": np.tile(np.arange(7), 30), "r": np.full(210, 0.1)}
    logs = mixope.read(rows | {"s": np.zeros(210, int), "a": np.tile([0, 1], 105)}, ends="truncated")
    result = mixope.evaluate(logs, np.full((1, 2), 0.5))
    assert [found.status for found in result.diagnostics if found.name == "dropped rows"] == ["pass"]


@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_a_dropped_row_may_lack_its_reward(engine: str) -> None:
    cut = mixed(reward=[1.0, 1.0, 2.0, None, 3.0, 5.0])
    result = mixope.evaluate(cut, np.full((2, 1), 1.0), engine=engine)
    assert result.logged_mean == pytest.approx(12 / 5)
    assert result.n_dropped == 1


def test_what_was_earned_is_the_same_in_memory_and_by_sql(tmp_path: Path, log: dict[str, list[Any]]) -> None:
    rewards = [*log["reward"][:-2], float("nan"), float("inf")]
    table = pa.table(
        {**log, "reward": rewards, "policy_id": ["a", None] * (len(rewards) // 2) + ["b"] * (len(rewards) % 2)}
    )
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=500)
    one, other = (earnings(read(source, label="c")) for source in (table, str(tmp_path / "log.parquet")))
    assert list(one) == list(other)
    for label in one:
        assert (one[label].rows, one[label].rewards) == (other[label].rows, other[label].rewards)
        assert one[label].total == pytest.approx(other[label].total)
        assert (one[label].lowest, one[label].highest) == (other[label].lowest, other[label].highest)
    assert sum(part.rows - part.rewards for part in one.values()) == 2


@pytest.mark.long
@QUICK
@given(ragged(), st.sampled_from([(), ("terminated",), ("next_observation",), ("policy_id", "next_observation")]))
def test_jumps_are_the_same_in_memory_and_by_sql(
    tmp_path_factory: Any, log: dict[str, list[Any]], absent: tuple[str, ...]
) -> None:
    path = str(tmp_path_factory.mktemp("jumps") / "log.parquet")
    table = arrow(without(log, *absent))
    pq.write_table(table, path, row_group_size=7)
    one, other = jumps(read(table)), jumps(read(path))
    assert list(one) == list(other)
    for label in one:
        for name in ("onto", "alone", "first"):
            assert_same(getattr(one[label], name), getattr(other[label], name))
        for a, b in zip(one[label].usual, other[label].usual, strict=True):
            assert_same(a, b)
        assert one[label].lost == other[label].lost


def assert_same(a: Any, b: Any) -> None:
    assert a.count == b.count
    assert (a.total, a.squares) == pytest.approx((b.total, b.squares))


def test_jumps_by_hand() -> None:
    rows = {
        "episode_id": [0, 0, 0, 1, 1, 2, 3],
        "step": [2, 0, 1, 0, 1, 0, 0],
        "observation": [0] * 7,
        "action": [0] * 7,
        "reward": [9.0, 1.0, 2.0, 3.0, None, 5.0, 7.0],
        "terminated": [False] * 6 + [True],
    }
    ((_, found),) = jumps(mixope.read(pa.table(rows))).items()
    assert (found.onto.count, found.onto.total, found.onto.squares) == (1, 7.0, 49.0)  # 2 → 9; 3 → unknown
    assert [(place.count, place.total) for place in found.usual[:3]] == [(0, 0.0), (1, 1.0), (0, 0.0)]  # 1 → 2
    assert (found.lost, found.alone.count, found.alone.total) == (1, 1, 5.0)
    assert (found.first.count, found.first.total) == (2, 4.0)  # 1 and 3; 7 ended its episode, 5 is lost


def test_a_logger_left_out_takes_its_dropped_rows_along(log: dict[str, list[Any]]) -> None:
    labels = ["a" if session < 1500 else "b" for session in log["session_id"]]
    seen = look(mixope.read(pa.table({**log, "policy_id": labels}), ends="truncated"))
    survey = seen.survey(seen.rounds().run(seen.structure()))
    assert [each.dropped and each.dropped.rows for each in (survey, survey.without(0), survey.without(1))] == [
        3000,
        1500,
        1500,
    ]
    assert survey.n_dropped == 0


# --- inspect ---


def test_an_inspection_shows_the_question_and_what_is_dropped(source: Any, log: dict[str, list[Any]]) -> None:
    found = mixope.inspect(source)
    assert [(remark.name, remark.status) for remark in found.remarks] == [
        ("ends-unsaid", "warning"),
        ("dropped-rows", "warning"),
    ]
    assert (found.error, found.dropped) == (None, 0)
    assert found.contents is not None
    assert found.contents.logged_mean == pytest.approx(np.mean(log["reward"]))
    assert "ends='terminated' if" in found.full()


def test_an_inspection_of_told_logs_has_nothing_to_ask(log: dict[str, list[Any]]) -> None:
    kept, cut = (mixope.inspect(mixope.read(pa.table(log), ends=ends)) for ends in ("terminated", "truncated"))
    assert kept.remarks == ()
    assert "every row can be used" in kept.full()
    assert [remark.name for remark in cut.remarks] == ["dropped-rows"]
    assert "every row can be used" in cut.full()
