"""What must fit in memory is asked before the first scan of long logs."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import mixope
from mixope.base.errors import MixopeWarning, UsageError
from mixope.engines import EmbeddedEngine
from mixope.logs import database
from mixope.logs.stretches import stretches
from mixope.session import sizes
from mixope.session.sizes import Number, foresee, guess, refuse_too_large

STATES, EPISODES, STEPS = 300, 2000, 20


def walk(states=STATES, episodes=EPISODES, steps=STEPS, seed=0):
    generator = np.random.default_rng(seed)
    moves = generator.integers(0, 3, (episodes, steps))
    after = (generator.integers(0, states, (episodes, 1)) + np.cumsum(moves, axis=1)) % states
    before = (np.concatenate([after[:, :1] - moves[:, :1], after[:, :-1]], axis=1)) % states
    n = episodes * steps
    return pa.table(
        {
            "policy_id": np.repeat(np.where(np.arange(episodes) % 2, "a", "b"), steps),
            "episode_id": np.repeat(np.arange(episodes), steps),
            "step": np.tile(np.arange(steps), episodes),
            "observation": before.ravel(),
            "action": generator.integers(0, 2, n),
            "reward": generator.random(n).round(2),
            "next_observation": after.ravel(),
            "terminated": np.zeros(n, dtype=bool),
        }
    )


def distinct(table):
    keys = ("policy_id", "observation", "action", "next_observation", "terminated")
    return table.group_by(list(keys)).aggregate([]).num_rows


@pytest.fixture
def short(monkeypatch):
    """Stretches of a few rows, of logs that are long with a few more; whatever this process has held so far."""
    monkeypatch.setattr(sizes, "ROWS", 400)
    monkeypatch.setattr(sizes, "LONG", 10_000)
    monkeypatch.setattr(sizes, "resident_bytes", lambda: 200_000_000)


@pytest.fixture
def path(tmp_path):
    pq.write_table(walk(), tmp_path / "log.parquet", row_group_size=2000)
    return str(tmp_path / "log.parquet")


def test_what_is_everywhere_counts_once():
    assert guess(seen=50, once=0, twice=0, stretches=32, whole=1e6) == Number(50, 50)


def test_what_is_never_met_twice_counts_in_proportion_to_the_rows():
    found = guess(seen=32_000, once=32_000, twice=0, stretches=32, whole=3200.0)
    assert found.least == pytest.approx(3_200_000, rel=0.01)
    assert found.most == pytest.approx(3_200_000)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5])
def test_the_truth_lies_between_the_guesses_whatever_the_law_of_kinds(exponent):
    kinds, rows, parts, whole = 20_000, 500, 32, 2000
    generator = np.random.default_rng(3)
    law = 1.0 / np.arange(1, kinds + 1) ** exponent
    drawn = generator.choice(kinds, (whole, rows), p=law / law.sum())
    _, met = np.unique(np.concatenate([np.unique(part) for part in drawn[:parts]]), return_counts=True)
    found = guess(len(met), int((met == 1).sum()), int((met == 2).sum()), parts, whole)
    truth = len(np.unique(drawn))
    assert 0.2 * truth < found.least <= 1.05 * truth
    assert truth <= 1.05 * found.most


def test_sizes_are_guessed_from_a_part_of_the_rows(path, short):
    logs, table = mixope.read(path), walk()
    found = foresee(logs, counted=True)
    assert found.rows == EPISODES * STEPS
    assert found.episodes.least == pytest.approx(EPISODES, rel=0.1)
    assert found.states.least == pytest.approx(STATES, rel=0.05)
    assert 0.7 * distinct(table) < found.transitions.least <= 1.02 * distinct(table) <= 1.05 * found.transitions.most
    assert sum(len(part.plan.source.pieces[0].content) for part in stretches(logs, 20, 400)) == 20 * 400


def test_what_is_derived_is_derived_inside_a_stretch(tmp_path, short):
    table = walk().drop_columns(["next_observation", "step", "terminated"])
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=2000)
    with pytest.warns(MixopeWarning):
        logs = mixope.read(str(tmp_path / "log.parquet"), ends="truncated")
    found = foresee(logs, counted=True)
    assert found.episodes.least == pytest.approx(EPISODES, rel=0.15)
    assert found.transitions.least == pytest.approx(distinct(walk()), rel=0.3)


def test_episodes_that_are_counted_by_the_order_of_rows_are_others_in_every_stretch(tmp_path, short):
    ends = np.tile(np.arange(STEPS) == STEPS - 1, EPISODES)
    table = walk().drop_columns(["episode_id", "step", "terminated"]).append_column("truncated", pa.array(ends))
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=2000)
    with pytest.warns(MixopeWarning):
        logs = mixope.read(str(tmp_path / "log.parquet"))
    assert foresee(logs, counted=True).episodes.least == pytest.approx(EPISODES, rel=0.15)


def test_tables_and_text_are_looked_at_too(tmp_path, short):
    for number in range(8):
        pc.write_csv(walk(episodes=50, seed=number), tmp_path / f"{number}.csv")
    text = foresee(mixope.read(str(tmp_path)), counted=True)
    assert text.states.least == pytest.approx(STATES, rel=0.1)
    table = foresee(mixope.read(walk()), counted=True)
    assert table.episodes.least == pytest.approx(EPISODES, rel=0.1)


def test_a_file_that_cannot_be_cut_is_not_read_to_guess_what_it_derives(tmp_path, short):
    pc.write_csv(walk().drop_columns(["next_observation"]), tmp_path / "log.csv")
    assert foresee(mixope.read(str(tmp_path / "log.csv")), counted=True) is None


class Idle(EmbeddedEngine):
    """Must not be asked."""

    def scan(self, logs, requests, expected_rows=None):
        raise AssertionError("a scan was begun")


@pytest.mark.parametrize(
    ("costly", "advice"), [("PER_EPISODE", "or take a part of the episodes"), ("PER_TRANSITION", "make ids coarser")]
)
@pytest.mark.parametrize("ask", [mixope.inspect, lambda *given, **options: mixope.evaluate(*given, {}, **options)])
def test_logs_that_cannot_fit_are_refused_before_the_first_scan(ask, costly, advice, path, short, monkeypatch):
    monkeypatch.setattr(sizes, costly, 5_000_000)
    with pytest.raises(UsageError) as refusal:
        ask(path, engine=Idle(memory_limit="1GB"))
    words = str(refusal.value)
    assert "these logs will not fit in memory: 40,000 rows with at least about" in words
    assert f"and there are 1.0 GB allowed; allow more with memory_limit=…, {advice}" in words


def test_a_guess_that_may_be_wrong_refuses_nothing(path, short, monkeypatch):
    monkeypatch.setattr(sizes, "PER_EPISODE", 500_000)
    logs = mixope.read(path).within("1GB", None)
    with pytest.warns(MixopeWarning, match="these logs may not fit in memory: 40,000 rows with up to about"):
        refuse_too_large(logs, counted=True)
    refuse_too_large(logs.within("100GB", None), counted=True)


def test_without_a_limit_the_memory_of_the_machine_counts(path, short, monkeypatch):
    logs = mixope.read(path)
    refuse_too_large(logs, counted=True)
    monkeypatch.setattr(sizes, "PER_EPISODE", 5_000_000)
    monkeypatch.setattr(sizes, "available_bytes", lambda: None)
    refuse_too_large(logs, counted=True)
    monkeypatch.setattr(sizes, "available_bytes", lambda: 10**8)
    with pytest.raises(UsageError, match="take a larger machine, or take a part of the episodes"):
        refuse_too_large(logs, counted=False)


def test_short_logs_are_not_looked_at(path, monkeypatch):
    monkeypatch.setattr(sizes, "foresee", None)
    refuse_too_large(mixope.read(path), counted=True)


def test_memory_that_is_left_is_that_of_the_container_if_it_has_less(tmp_path, monkeypatch):
    names = [tmp_path / name for name in ("max", "current", "stat")]
    for name, content in zip(names, ("3000\n", "1000\n", "anon 500\ninactive_file 200\n"), strict=True):
        name.write_text(content)
    monkeypatch.setattr(database, "_GROUPS", (tuple(map(str, names)),))
    assert database.available_bytes() == 2200
    names[0].write_text("max\n")
    left = database.available_bytes()
    assert left is None or left > 10**7
