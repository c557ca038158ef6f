"""The last row of an episode that the recorder cut, in logs without next observations: what it tells is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import mixope
from mixope.session.session import look
from mixope.uncertainty import IntervalChoice

CAP = 60
EITHER = np.full((3, 2), 0.5)
LEANING = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
STATES = ("id", "factors", "vector")


def walk(
    episodes: int = 60, cap: int = CAP, hazard: float = 0.012, seed: int = 0, states: str = "id"
) -> dict[str, Any]:
    """Three states in a ring; some episodes end by chance, the others are cut; next observations are not logged."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for episode in range(episodes):
        state = int(rng.integers(3))
        for step in range(cap):
            action = int(rng.integers(2))
            end = bool(rng.random() < (hazard if step < cap - 1 else 3 * hazard))
            rows.append((episode, step, state, action, 1.0 + 0.5 * action + 0.1 * rng.normal(), end))
            if end:
                break
            state = (state + 1 + action * int(rng.random() < 0.5)) % 3
    names = ("episode_id", "step", "state", "action", "reward", "terminated")
    log = {name: np.array([row[k] for row in rows]) for k, name in enumerate(names)}
    log["truncated"] = (log["step"] == cap - 1) & ~log["terminated"]
    state = log.pop("state")
    if states == "id":
        return log | {"observation": state}
    if states == "factors":
        return log | {"observation.left": state % 2, "observation.right": state // 2}
    return log | {"observation.x": state + rng.normal(scale=0.2, size=len(state)), "observation.y": 1.0 * state}


def unmarked(log: dict[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in log.items() if name not in ("terminated", "truncated")}


def target(states: str) -> Any:
    if states == "id":
        return EITHER
    actions = [0, 1]
    return mixope.CallablePolicy(lambda observations: np.full((len(observations), 2), 0.5), actions=actions)


def means_of_first_steps(log: dict[str, Any], horizon: int) -> float:
    return float(log["reward"][log["step"] < horizon].sum() / (horizon * len(np.unique(log["episode_id"]))))


# --- what was misread ---


@pytest.mark.parametrize("states", STATES)
def test_the_horizon_of_the_logs_is_answered_and_is_their_mean_for_those_who_wrote_them(states: str) -> None:
    log = walk(episodes=30, cap=20, states=states)
    log["action_prob"] = np.full(len(log["reward"]), 0.5)
    for estimator in ("is", "wis", "is-step"):
        found = mixope.evaluate(log, target(states), estimator=estimator, estimand="horizon", horizon=20)
        assert found.value == pytest.approx(means_of_first_steps(log, 20))


def test_logs_that_do_not_reach_the_horizon_are_still_refused() -> None:
    log = walk(episodes=30, cap=20)
    with pytest.raises(mixope.base.errors.UsageError, match="at most 20 steps"):
        mixope.evaluate(log, EITHER, estimator="wis-step", estimand="horizon", horizon=21)


def test_a_total_is_refused_where_episodes_reach_the_cap_and_go_on() -> None:
    """Episodes cut at 60 steps were 59 long, so that all that reached step 60 ended there and no survivor was left."""
    log = walk(episodes=120)
    last = np.append(log["step"][1:] == 0, True)
    reached = last & (log["step"] == CAP - 1)
    assert 0 < log["terminated"][reached].sum() < reached.sum()  # a few really end at the cap
    with pytest.raises(mixope.base.errors.UsageError, match="cannot see the total of an episode"):
        mixope.evaluate(log, EITHER, estimator="wis-step", estimand="episode")


def test_a_few_ends_at_the_cap_are_no_limit() -> None:
    log = walk(episodes=120, states="vector")
    seen = look(log)
    assert seen.sums.limit is None
    assert seen.facts.episodes.rows.max() == CAP


@pytest.mark.parametrize("states", STATES)
def test_an_inspection_sees_the_marks_of_last_rows(states: str) -> None:
    log = walk(states=states)
    contents = mixope.inspect(log).contents
    assert contents is not None
    assert contents.truncated == int(log["truncated"].sum()) > 0
    assert contents.terminated == int(log["terminated"].sum())
    assert (contents.rows, contents.lengths.longest) == (len(log["reward"]), CAP)


def test_ends_are_as_frequent_as_they_are() -> None:
    """Of the rows on which the recorder stopped, those that ended their episode were kept and the others dropped."""
    log = walk(episodes=400, cap=3, hazard=0.1, seed=1)
    found = mixope.evaluate(log, EITHER, estimator="emp", estimand="episode")
    ends = log["terminated"].mean()
    assert found.measures.episode_length == pytest.approx(1 / ends, rel=0.02)
    assert found.interval is not None
    assert found.interval.low < 1.25 / ends < found.interval.high


def test_on_vectors_the_ends_at_a_cut_are_doubted_where_cuts_are_frequent() -> None:
    """Of the rows at the cut only those that ended tell what came next; what needs a next state has no others."""
    for cap, hazard, statuses in ((3, 0.2, {"warn", "fail"}), (40, 0.1, {"pass"})):
        log = walk(episodes=150, cap=cap, hazard=hazard, seed=2, states="vector")
        found = mixope.evaluate(log, target("vector"), estimator="emp", estimand="episode")
        assert {check.status for check in found.diagnostics if check.name == "dropped rows"} <= statuses


def aging(episodes: int = 50, steps: int = 12, seed: int = 0) -> dict[str, np.ndarray]:
    """The state is the age: the last one is reached by every episode and never left."""
    rng = np.random.default_rng(seed)
    age = np.tile(np.arange(steps), episodes)
    return {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": age,
        "observation": age,
        "action": rng.integers(0, 2, len(age)),
        "reward": age**2 + rng.normal(size=len(age)),
        "truncated": age == steps - 1,
    }


@pytest.mark.parametrize("estimator", ["emp", "dr", "model", "lstdq", "wis-step", "emp-single", "opt-emp"])
def test_states_that_tell_the_step_give_the_mean_of_all_steps_to_those_who_wrote_it(estimator: str) -> None:
    log = aging()
    counts = np.stack([np.bincount(log["observation"][log["action"] == a], minlength=12) for a in (0, 1)], axis=1)
    own = mixope.TabularPolicy(counts / counts.sum(axis=1, keepdims=True))
    for horizon in (1, 5, 12):
        found = mixope.evaluate(log, own, estimator=estimator, estimand="horizon", horizon=horizon)
        assert found.value == pytest.approx(log["reward"][log["step"] < horizon].mean(), rel=1e-9)


def test_one_step_that_was_cut_is_a_horizon_of_one() -> None:
    rng = np.random.default_rng(0)
    log = {"episode_id": np.arange(400), "observation": rng.integers(0, 3, 400), "action": rng.integers(0, 2, 400)}
    log["reward"] = log["action"] + 0.1 * rng.normal(size=400)
    logs = mixope.read(log | {"step": np.zeros(400, dtype=int), "truncated": np.ones(400, dtype=bool)})
    found = mixope.evaluate(logs, LEANING, estimand="horizon", horizon=1)
    assert found.interval is not None
    assert found.interval.low < float(LEANING[:, 1] @ np.bincount(log["observation"]) / 400) < found.interval.high
    assert [check.status for check in found.diagnostics if check.name == "dropped rows"] == ["pass"]
    with pytest.raises(mixope.base.errors.DataError, match="no row can be used"):
        mixope.evaluate(logs, LEANING)


# --- however the logs come ---


def put(log: dict[str, Any], form: str, folder: Path) -> Any:
    table = pa.table(log)
    if form == "frame":
        return pytest.importorskip("polars").DataFrame(log)
    if form == "csv":
        pyarrow.csv.write_csv(table, folder / "log.csv")
    elif form == "parquet":
        pq.write_table(table, folder / "log.parquet", row_group_size=500)
    else:
        early = np.asarray(log["episode_id"]) < 30
        for name, chosen in (("one", early), ("two", ~early)):
            pq.write_table(pa.table({key: values[chosen] for key, values in log.items()}), folder / f"{name}.parquet")
    return str(folder) if form != "frame" else table


@pytest.mark.parametrize("form", ["frame", "csv", "parquet", "several"])
def test_forms_of_the_same_log_give_the_same_answer(form: str, tmp_path: Path) -> None:
    log, asked = walk(), {"estimator": "emp", "estimand": "horizon", "horizon": CAP}
    one = mixope.evaluate(log, LEANING, **asked)
    other = mixope.evaluate(put(log, form, tmp_path), LEANING, **asked)
    assert (other.value, other.standard_error) == pytest.approx((one.value, one.standard_error), rel=1e-9)
    assert (other.n_rows, other.n_dropped) == (len(log["reward"]), 0)


@pytest.mark.parametrize("estimator", ["emp", "is"])
def test_marks_and_a_word_about_ends_say_the_same(estimator: str) -> None:
    log = walk(hazard=0.0, cap=20)
    marked, said = (
        mixope.evaluate(logs, LEANING, estimator=estimator)
        for logs in (log, mixope.read(unmarked(log), ends="truncated"))
    )
    assert said.value == marked.value
    assert said.n_rows == marked.n_rows == 60 * 20


@pytest.mark.parametrize("states", ["id", "vector"])
@pytest.mark.parametrize("engine", ["embedded", pytest.param("processes", marks=pytest.mark.long)])
def test_engines_agree(engine: str, states: str) -> None:
    log = walk(episodes=20, cap=10, states=states)
    log["action_prob"] = np.full(len(log["reward"]), 0.5)
    one = mixope.evaluate(log, target(states), estimator="wis-step", engine="memory")
    other = mixope.evaluate(log, target(states), estimator="wis-step", engine=engine)
    assert other.value == pytest.approx(one.value, rel=1e-12)


def test_episodes_of_a_single_row_that_was_cut_are_episodes_of_vectors_too() -> None:
    """Nothing is known of what came after their only row, and scores by episode are of all episodes."""
    log = walk(episodes=80, cap=8, hazard=0.1, states="vector")
    kept = (log["episode_id"] % 4 > 0) | (log["step"] == 0)
    cut = {name: values[kept] for name, values in log.items()}
    found = mixope.evaluate(cut, target("vector"), estimator="emp")
    assert found.scores is not None
    assert (found.n_episodes, len(found.scores), found.n_rows) == (80, 80, int(kept.sum()))
    assert mixope.evaluate(cut, target("vector"), estimator="logged-mean").value == pytest.approx(cut["reward"].mean())


def test_refits_see_the_same_rows() -> None:
    log = walk(episodes=30, cap=5, hazard=0.1)
    choice = IntervalChoice("percentile", replicates=8, jobs=1)
    found = mixope.evaluate(log, LEANING, estimator="emp", estimand="episode", interval=choice)
    assert found.value == pytest.approx(mixope.evaluate(log, LEANING, estimator="emp", estimand="episode").value)
    assert found.interval is not None
    assert found.interval.low < found.value < found.interval.high


def test_next_observations_that_are_logged_tell_as_much_or_more() -> None:
    """Rewards, ends and starts are the same with and without them; only where the last rows led is not."""
    log = walk(episodes=300, cap=6, hazard=0.1)
    rng = np.random.default_rng(3)
    goes = (log["observation"] + 1 + log["action"] * (rng.random(len(log["reward"])) < 0.5)) % 3
    following = np.where(np.append(log["step"][1:] > 0, False), np.append(log["observation"][1:], 0), goes)
    asked = {"estimator": "emp", "estimand": "episode"}
    told, untold = (mixope.evaluate(logs, LEANING, **asked) for logs in (log | {"next_observation": following}, log))
    assert abs(told.value - untold.value) < 0.5 * told.standard_error
    assert untold.standard_error == pytest.approx(told.standard_error, rel=0.15)


def test_a_hole_before_a_last_row_that_was_cut_is_seen() -> None:
    """The row after the hole was dropped before steps were added up."""
    log = walk(episodes=4, cap=6, hazard=0.0)
    kept = ~((log["episode_id"] == 2) & (log["step"] == 4))
    with pytest.raises(mixope.base.errors.DataError, match="hole in the steps"):
        mixope.evaluate({name: values[kept] for name, values in log.items()}, EITHER)
