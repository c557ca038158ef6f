"""The past beside the state, held against columns that a slow loop prepared by hand."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from mixope.base.errors import DataError, MixopeError, UsageError
from mixope.engines import CheckpointedEngine, EmbeddedEngine
from mixope.logs.past import CLASSES, START, Past

EPISODES, STEPS = 40, 12


def world(seed=0):
    """A machine whose reward and next state hang on the action before: the last action matters."""
    draw, rows = np.random.default_rng(seed), []
    for episode in range(EPISODES):
        state, before = int(draw.integers(0, 4)), 0
        length = STEPS if episode % 3 else int(draw.integers(2, STEPS))
        for step in range(length):
            action = int(draw.random() < 0.4)
            later = int((state + (1 if action == before else 2) * (draw.random() < 0.7)) % 4)
            reward = state * (action != before) + 0.1 * draw.random()
            last = step == length - 1
            rows.append(
                (episode, step, state, action, reward, later, last and episode % 3 == 0, last and episode % 3 > 0)
            )
            before, state = action, later
    names = ("episode_id", "step", "state", "action", "reward", "later", "terminated", "truncated")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def by_hand(log, lags=1):
    """The columns of the past by a loop over the rows in order: now, and after the row."""
    names = [f"{what}{'' if j == 1 else f' {j}'} before" for j in range(1, lags + 1) for what in ("action", "state")]
    now, after = {name: [] for name in names}, {name: [] for name in names}
    for row in range(len(log["step"])):
        first = row - int(log["step"][row])
        for j in range(1, lags + 1):
            label = "" if j == 1 else f" {j}"
            for what in ("action", "state"):
                now[f"{what}{label} before"].append(str(log[what][row - j]) if row - j >= first else START)
                after[f"{what}{label} before"].append(str(log[what][row - j + 1]) if row - j + 1 >= first else START)
    return now, after


def recorded(log, *, following):
    kept = {name: log[name] for name in ("episode_id", "step", "action", "reward", "terminated", "truncated")}
    kept["observation.state"] = log["state"]
    return {**kept, "next_observation.state": log["later"]} if following else kept


def prepared(log, lags=1, *, following):
    now, after = by_hand(log, lags)
    found = recorded(log, following=following)
    found |= {f"observation.{name}": values for name, values in now.items()}
    found |= {f"next_observation.{name}": values for name, values in after.items()} if following else {}
    return found


def ordered(logs):
    table = logs.table()
    return table.select(sorted(table.column_names)).sort_by([("episode_id", "ascending"), ("step", "ascending")])


def same(one, other):
    """Every number of an answer, to the last bit."""
    assert one.value == other.value
    assert (one.interval.low, one.interval.high) == (other.interval.low, other.interval.high)
    assert [(c.name, c.status, c.value) for c in one.diagnostics] == [
        (c.name, c.status, c.value) for c in other.diagnostics
    ]


def chances(state):
    p = np.array([0.2, 0.5, 0.7, 0.9])[np.asarray(state, dtype=np.int64)]
    return np.stack([1 - p, p], axis=1)


def by_name(states):
    return chances(states["state"])


by_name.actions = [0, 1]


@pytest.mark.parametrize("lags", [1, 2])
@pytest.mark.parametrize("following", [True, False])
def test_rows_are_those_that_were_prepared_by_hand(following, lags):
    log = world()
    found = mixope.read(recorded(log, following=following)).with_past(lags)
    assert ordered(found).equals(ordered(mixope.read(prepared(log, lags, following=following))))


@pytest.mark.parametrize("kind", [{}, {"gamma": 0.9}, {"estimand": "episode"}])
@pytest.mark.parametrize("following", [True, False])
def test_the_value_is_that_of_columns_prepared_by_hand(following, kind):
    log = world()
    found = mixope.evaluate(recorded(log, following=following), by_name, lags=1, **kind)
    same(found, mixope.evaluate(prepared(log, following=following), by_name, **kind))


def test_rows_in_any_order_and_in_two_files_give_the_same(tmp_path):
    log = world()
    whole = mixope.evaluate(recorded(log, following=True), by_name, lags=1, history=["reward", "action"])
    mixed = np.random.default_rng(1).permutation(len(log["step"]))
    shuffled = {name: values[mixed] for name, values in log.items()}
    again = mixope.evaluate(recorded(shuffled, following=True), by_name, lags=1, history=["reward", "action"])
    assert again.value == pytest.approx(whole.value, abs=1e-12)
    table = pa.table(recorded(log, following=False))
    half = table.num_rows // 2 + 3
    pq.write_table(table.slice(0, half), tmp_path / "one.parquet")
    pq.write_table(table.slice(half), tmp_path / "two.parquet")
    files = mixope.evaluate(str(tmp_path / "*.parquet"), by_name, lags=1)
    memory = mixope.evaluate(recorded(log, following=False), by_name, lags=1)
    assert files.value == pytest.approx(memory.value, abs=1e-12)
    assert files.provenance.engine == "embedded"
    assert [record["path"] for record in files.provenance.inputs] == [
        str(tmp_path / "one.parquet"),
        str(tmp_path / "two.parquet"),
    ]
    processes = mixope.evaluate(str(tmp_path / "*.parquet"), by_name, lags=1, engine="processes")
    assert processes.value == pytest.approx(memory.value, abs=1e-12)


def test_policies_of_every_kind_see_the_state_as_it_was_logged(tmp_path):
    log = world()
    one = {name: values for name, values in recorded(log, following=True).items() if "observation" not in name}
    one |= {"observation": log["state"], "next_observation": log["later"]}
    table = chances(np.arange(4))
    lines = ["observation,action,prob", *(f"{s},{a},{table[s, a]}" for s in range(4) for a in range(2))]
    (tmp_path / "target.csv").write_text("\n".join(lines) + "\n")

    def by_place(states):
        assert states.ndim == 1
        assert states.dtype == np.int64
        return chances(states)

    by_place.actions = [0, 1]
    kinds = [table, str(tmp_path / "target.csv"), by_place, mixope.TabularPolicy(table)]
    values = {mixope.evaluate(one, kind, lags=1, history="reward").value for kind in kinds}
    assert len(values) == 1
    assert (
        mixope.evaluate(one, table, lags=1).value
        == mixope.evaluate(recorded(log, following=True), by_name, lags=1).value
    )
    compared = mixope.compare(one, {"a": table, "b": by_place}, lags=1)
    assert compared["a", "dr"].value == compared["b", "dr"].value


def test_words_and_several_columns_are_seen_by_name_and_by_place():
    log = world()
    factors = {name: values for name, values in recorded(log, following=True).items() if "observation" not in name}
    ward = np.where(log["state"] > 1, "up", "down")
    later = np.where(log["later"] > 1, "up", "down")
    factors |= {"observation.state": log["state"], "observation.ward": ward}
    factors |= {"next_observation.state": log["later"], "next_observation.ward": later}

    def by_place(states):
        assert states.shape[1] == 2
        return chances(states[:, 0].astype(np.int64))

    by_place.actions = [0, 1]
    assert mixope.evaluate(factors, by_place, lags=1).value == mixope.evaluate(factors, by_name, lags=1).value
    assert mixope.read(factors).with_past(1).schema.observation == (
        *("observation.state", "observation.ward", "observation.action before"),
        *("observation.state before", "observation.ward before"),
    )


def numbers(log, seed=0):
    """The same log whose state is two floats."""
    draw = np.random.default_rng(seed)
    rest = {name: log[name] for name in ("episode_id", "step", "action", "reward", "terminated", "truncated")}
    return {
        **rest,
        "observation.x": log["state"] + 0.1 * draw.random(len(log["step"])),
        "observation.y": draw.random(len(log["step"])),
    }


def by_x(states):
    return chances(np.clip(np.floor(states["x"]), 0, 3))


by_x.actions = [0, 1]


def test_numbers_have_their_changes_beside_them():
    log = numbers(world())
    first = log["step"] == 0
    change = {n: np.where(first, 0.0, np.diff(log[f"observation.{n}"], prepend=0.0)) for n in ("x", "y")}
    before = np.where(first, START, np.roll(log["action"], 1).astype(str))
    hand = {**log, "observation.action before": before}
    hand |= {f"observation.{n} change": change[n] for n in ("x", "y")}
    assert mixope.read(log).with_past(1).table().equals(mixope.read(hand).table())
    same(mixope.evaluate(log, by_x, lags=1), mixope.evaluate(hand, by_x))


def test_actions_that_are_numbers_stand_beside_as_they_were():
    log = numbers(world())
    log["action"] = log["action"] + 0.1 * np.random.default_rng(3).random(len(log["step"]))
    first = log["step"] == 0
    hand = {**log, "observation.action before": np.where(first, 0.0, np.roll(log["action"], 1))}
    for n in ("x", "y"):
        hand[f"observation.{n} change"] = np.where(first, 0.0, np.diff(log[f"observation.{n}"], prepend=0.0))
    named = mixope.GaussianPolicy(lambda states: 0.2 * states["x"], 0.5)
    placed = mixope.LinearGaussianPolicy(np.array([[0.2, 0.0]]), np.array([0.0]), np.array([0.5]))
    wide = mixope.LinearGaussianPolicy(np.array([[0.2, 0.0, 0.0, 0.0, 0.0]]), np.array([0.0]), np.array([0.5]))
    same(mixope.evaluate(log, named, lags=1), mixope.evaluate(hand, named))
    same(mixope.evaluate(log, placed, lags=1), mixope.evaluate(hand, wide))


def test_mixed_states_have_words_before_and_changes():
    log = numbers(world())
    ward = np.where(log["observation.y"] > 0.5, "up", "down")
    log["observation.ward"] = ward
    first = log["step"] == 0
    hand = {**log, "observation.action before": np.where(first, START, np.roll(log["action"], 1).astype(str))}
    for n in ("x", "y"):
        hand[f"observation.{n} change"] = np.where(first, 0.0, np.diff(log[f"observation.{n}"], prepend=0.0))
    hand["observation.ward before"] = np.where(first, START, np.roll(ward, 1))
    assert mixope.read(log).with_past(1).table().equals(mixope.read(hand).table())

    def seen(states):
        assert states.dtype.names == ("x", "y", "ward")
        return by_x(states)

    seen.actions = [0, 1]
    same(mixope.evaluate(log, seen, lags=1), mixope.evaluate(hand, by_x))


def test_missing_numbers_do_not_change():
    log = numbers(world())
    gone = np.arange(len(log["step"])) % 7 == 3
    log["observation.x"] = np.where(gone, np.nan, log["observation.x"])
    found = mixope.read(log, missing="keep").with_past(1)
    assert found.schema.observation == (
        *("observation.x", "observation.x missing", "observation.y"),
        *("observation.action before", "observation.x change", "observation.y change"),
    )
    table = found.table()
    either = gone | np.roll(gone, 1)
    assert not np.asarray(table.column("observation.x change"))[either].any()
    terminated = np.asarray(table.column("terminated"))
    assert all(
        name is None for name in np.array(table.column("next_observation.action before").to_pylist())[terminated]
    )
    assert table.num_rows == mixope.read(log, missing="keep").table().num_rows


def test_a_running_mean_of_numbers_is_that_of_the_rows_before():
    log = numbers(world())
    found = mixope.read(log).with_past(history=["reward", "x", "action"]).table()
    kinds = {"mean reward": log["reward"], "mean x": log["observation.x"], "share of action 1": log["action"]}
    for name, values in kinds.items():
        now, after = (
            np.asarray(found.column(f"{part}observation.{name}").to_numpy(zero_copy_only=False))
            for part in ("", "next_")
        )
        so_far = []
        for row, step in enumerate(log["step"].tolist()):
            so_far.append(values[row - step : row + 1].mean(dtype=np.float64))
        so_far = np.array(so_far)
        began = log["step"] > 0
        np.testing.assert_allclose(now[began], np.roll(so_far, 1)[began], rtol=1e-6)
        known = np.isfinite(after)
        np.testing.assert_allclose(after[known], so_far[known], rtol=1e-6)
        np.testing.assert_allclose(now[~began], so_far.mean(), rtol=1e-5)


def test_a_running_mean_of_counted_states_is_in_classes_of_like_size():
    log = world()
    found = mixope.read(recorded(log, following=True)).with_past(history=["reward", "state"])
    assert found.schema.discrete
    for name in ("mean reward", "mean state"):
        classes = np.array(found.table().column(f"observation.{name}").to_pylist())
        assert ((classes == START) == (log["step"] == 0)).all()
        shares = [np.mean(classes[log["step"] > 0] == each) for each in CLASSES]
        assert min(shares) > 0.25, shares
        mean = np.array(
            [
                log["reward" if "reward" in name else "state"][r - s : r].mean() if s else 0
                for r, s in enumerate(log["step"])
            ]
        )
        highest = [mean[(classes == each)].max() for each in CLASSES]
        lowest = [mean[(classes == each)].min() for each in CLASSES]
        assert highest[0] < lowest[1]
        assert highest[1] < lowest[2]


def test_an_episode_that_goes_on_after_a_cut_begins_anew():
    log = recorded(world(), following=True)
    log["truncated"] = np.where(log["step"] == 5, True, log["truncated"])
    found = mixope.read(log).with_past(1).table()
    before = np.array(found.column("observation.action before").to_pylist())
    assert ((before == START) == np.isin(log["step"], (0, 6))).all()


def test_units_stay_who_they_were():
    log = recorded(world(), following=True)
    log["user"] = log["episode_id"] // 4
    plain = mixope.read(log)
    one = mixope.evaluate(plain, by_name, lags=1, unit="user")
    other = mixope.evaluate(plain.with_past(1), by_name, unit="user")
    same(one, other)
    assert one.n_units == EPISODES // 4


def test_backtests_and_known_loggers_see_the_state_as_it_was_logged():
    log = recorded(world(), following=True)
    log["policy_id"] = np.where(log["episode_id"] % 2, "odd", "even")

    def logger(states):
        return np.tile([0.6, 0.4], (len(states), 1))

    logger.actions = [0, 1]
    tested = mixope.backtest(log, loggers={"odd": logger, "even": logger}, lags=1)
    assert len(tested.rows) == 2
    assert mixope.evaluate(log, by_name, "bch", loggers={"odd": logger, "even": logger}, lags=1).interval is not None


def test_an_inspection_says_what_the_past_costs():
    log = recorded(world(), following=True)
    light, heavy = mixope.inspect(log, lags=1), mixope.inspect(log, lags=3)
    (note,) = (remark for remark in light.remarks if remark.name == "past")
    (warning,) = (remark for remark in heavy.remarks if remark.name == "past")
    assert (note.status, warning.status) == ("note", "warning")
    assert note.count < warning.count
    assert "history='reward'" in warning.sentence


def test_bad_rows_are_found_in_the_rows_that_were_logged(tmp_path):
    log = recorded(world(), following=False)
    log["reward"][17] = np.nan
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    with pytest.raises(DataError) as caught:
        mixope.evaluate(str(tmp_path / "log.parquet"), by_name, lags=1)
    assert (caught.value.where, caught.value.column, caught.value.rows) == (
        str(tmp_path / "log.parquet"),
        "reward",
        (17,),
    )


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"lags": -1}, UsageError),
        ({"lags": 4}, UsageError),
        ({"lags": True}, UsageError),
        ({"history": 3}, UsageError),
        ({"history": "colour"}, DataError),
        ({"history": ["reward", "nobody"]}, DataError),
    ],
)
def test_what_cannot_be_put_beside_is_refused(asked, error):
    log = recorded(world(), following=True)
    log["observation.colour"] = np.where(log["observation.state"] > 1, "red", "blue")
    log["next_observation.colour"] = np.where(log["next_observation.state"] > 1, "red", "blue")
    with pytest.raises(error):
        mixope.evaluate(log, by_name, **asked)


def test_clusters_are_refused_where_they_could_not_read_the_rows(tmp_path):
    pq.write_table(pa.table(recorded(world(), following=False)), tmp_path / "log.parquet")
    with pytest.raises(UsageError):
        mixope.evaluate(str(tmp_path / "log.parquet"), by_name, lags=1, engine="dask")


def test_rows_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr("mixope.logs.past.LARGEST", 1_000)
    with pytest.raises(UsageError):
        mixope.evaluate(recorded(world(), following=True), by_name, lags=1)


def test_the_same_past_is_made_once_and_named_in_the_fingerprint():
    logs = mixope.read(recorded(world(), following=True))
    assert logs.with_past(1) is logs.with_past(1)
    prints = {made.fingerprint() for made in (logs, logs.with_past(1), logs.with_past(2), logs.with_past(1, "reward"))}
    assert len(prints) == 4
    assert logs.with_past(1).recorded.fingerprint() == logs.fingerprint()
    assert Past.of() is None


def test_refits_and_columns_of_the_target_know_the_logged_state():
    log = recorded(world(), following=True)
    refitted = mixope.evaluate(log, by_name, lags=1, interval="percentile", replicates=10)
    again = mixope.evaluate(prepared(world(), following=True), by_name, interval="percentile", replicates=10)
    same(refitted, again)
    log["target_prob"] = chances(log["observation.state"])[np.arange(len(log["step"])), log["action"]]
    column, table = (mixope.evaluate(log, target, "emp", lags=1) for target in ("column:target_prob", by_name))
    assert column.value == pytest.approx(table.value, abs=1e-12)


def test_a_finished_scan_is_kept_in_a_folder(tmp_path):
    pq.write_table(pa.table(recorded(world(), following=False)), tmp_path / "log.parquet")
    values = []
    for _ in range(2):
        engine = CheckpointedEngine(EmbeddedEngine(), tmp_path / "kept")
        values.append(mixope.evaluate(str(tmp_path / "log.parquet"), by_name, lags=1, engine=engine).value)
    assert engine.taken == engine.asked > 0
    assert values[0] == values[1]


def test_silent_ends_are_asked_for_as_ever():
    log = {k: v for k, v in recorded(world(), following=False).items() if k not in ("terminated", "truncated")}
    with pytest.raises(MixopeError) as plain:
        mixope.evaluate(log, by_name)
    with pytest.raises(MixopeError) as past:
        mixope.evaluate(log, by_name, lags=1)
    assert type(past.value) is type(plain.value)
    said = mixope.evaluate(mixope.read(log, ends="truncated"), by_name, lags=1)
    assert said.interval is not None
