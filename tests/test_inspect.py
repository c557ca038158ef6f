"""What an inspection counts, against loops and numbers known by construction."""

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from mixope import LinearGaussianPolicy, Logs, TabularPolicy, read
from mixope.base.errors import MixopeError, MixopeWarning
from mixope.engines import MemoryEngine
from mixope.inspection import coverage_of, inspect
from mixope.session.session import look


def logs(**changes):
    rows = {
        "episode_id": [0, 0, 0, 1, 1, 2],
        "step": [0, 1, 2, 0, 1, 0],
        "observation": ["x", "y", "x", "x", "x", "y"],
        "action": ["l", "r", "r", "l", "l", "l"],
        "reward": [1.0, 2.0, 3.0, 0.0, 0.0, 6.0],
        "next_observation": ["y", "x", "x", "x", "x", "x"],
        "terminated": [False, False, True, False, False, False],
        "truncated": [False, False, False, False, True, False],
        "policy_id": ["a", "a", "a", "b", "b", "b"],
    }
    return Logs.from_arrays(**{name: np.array(values) for name, values in (rows | changes).items()})


TARGET = TabularPolicy(
    np.array([[0.5, 0.25, 0.25], [0.0, 0.75, 0.25]]), np.array(["x", "y"]), np.array(["l", "r", "u"])
)


def test_rows_episodes_loggers_and_ends_are_counted():
    found = inspect(logs()).contents
    assert (found.rows, found.episodes, found.known_starts, found.terminated, found.truncated) == (6, 3, 3, 1, 1)
    assert (found.lowest_reward, found.highest_reward, found.logged_mean) == (0.0, 6.0, 2.0)
    assert [(j.label, j.rows, j.episodes, j.logged_mean) for j in found.loggers] == [("a", 3, 1, 2.0), ("b", 3, 2, 2.0)]


def test_lengths_have_a_histogram_that_counts_every_episode():
    lengths = inspect(logs()).contents.lengths
    assert (lengths.shortest, lengths.median, lengths.mean, lengths.longest) == (1, 2.0, 2.0, 3)
    assert [(bar.low, bar.high, bar.episodes) for bar in lengths.histogram] == [(1, 1, 1), (2, 2, 1), (3, 3, 1)]


def test_wide_histograms_have_few_bars_without_gaps():
    sizes = [1, 3, 17, 90, 91, 200]
    episode = np.repeat(np.arange(len(sizes)), sizes)
    step = np.concatenate([np.arange(size) for size in sizes])
    same = np.zeros(len(step), dtype=np.int64)
    found = inspect(
        Logs.from_arrays(
            observation=same, action=same, reward=same * 1.0, next_observation=same, episode_id=episode, step=step
        )
    )
    bars = found.contents.lengths.histogram
    assert len(bars) <= 8
    assert (bars[0].low, bars[-1].high) == (1, 200)
    assert all(left.high + 1 == right.low for left, right in pairwise(bars))
    assert sum(bar.episodes for bar in bars) == len(sizes)


def test_coverage_weighs_unseen_actions_by_the_rows_of_their_state():
    coverage = inspect(logs(), TARGET).coverage
    # x: 4 rows, l and r seen, u (.25) not; y: 2 rows, l and r seen, u (.25) not
    assert coverage.uncovered_mass == pytest.approx(0.25)
    assert coverage.covered_rows == 0.0
    assert coverage.gaps == 2
    assert [(gap.state, gap.action, gap.state_rows) for gap in coverage.worst] == [(("x",), "u", 4), (("y",), "u", 2)]


def test_an_action_that_the_target_never_takes_is_no_gap():
    careful = TabularPolicy(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array(["x", "y"]), np.array(["l", "r"]))
    coverage = inspect(logs(), careful).coverage
    assert (coverage.covered_rows, coverage.uncovered_mass, coverage.worst) == (1.0, 0.0, ())


@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_missing_propensities_are_counted_row_by_row(engine):
    partly = pa.array([0.5, None, 0.5, None, 0.5, 0.5])
    for column, expected in ((partly, 2), (pa.array([0.5] * 6), 0), (pa.nulls(6, pa.float64()), 6)):
        zeros = pa.array([0] * 6)
        ids = {"s": zeros, "a": zeros, "s_next": zeros, "episode": zeros, "t": pa.array(range(6))}
        table = pa.table({**ids, "r": pa.array([1.0] * 6), "pscore": column})
        assert inspect(table, engine=engine).contents.rows_without_propensity == expected


def test_engines_agree():
    first, second = (inspect(logs(), TARGET, engine).to_dict() for engine in ("memory", "embedded"))
    assert first | {"engine": ""} == second | {"engine": ""}


def test_bad_rows_are_an_error_to_raise_and_nothing_is_counted():
    found = inspect(logs(reward=[1.0, np.nan, 3.0, 0.0, 0.0, 6.0]))
    assert found.error is not None
    assert found.error.rows == (1,)
    assert (found.contents, found.space) == (None, None)
    assert not found.to_dict()["usable"]


def test_broken_episodes_are_remarks_with_their_error():
    found = inspect(logs(step=[0, 1, 1, 0, 1, 0]))
    assert [remark.name for remark in found.remarks if remark.status == "error"] == ["duplicate-steps"]
    assert found.error is not None
    assert inspect(logs(step=[0, 1, 1, 0, 1, 0]), check=False).remarks == ()


def test_sources_with_other_columns_have_their_own_mapping(tmp_path):
    (tmp_path / "one.csv").write_text("eps_id,t,s,a,r\n0,0,1,0,1\n0,1,2,0,1\n")
    (tmp_path / "two.csv").write_text("episode,timestep,state,action,reward\n0,0,1,0,1\n0,1,2,0,1\n")
    found = inspect([str(tmp_path / "one.csv")]), inspect(_both(tmp_path))
    assert [group.mapping["observation"] for group in found[1].columns] == ["s", "state"]
    assert found[0].columns[0].mapping["next_observation"] == "derived: next row"
    assert (found[1].total_rows, found[1].dropped) == (4, 0)


def _both(folder):
    from mixope import read

    return read(str(folder / "one.csv"), str(folder / "two.csv"))


def test_notes_are_kept(tmp_path):
    (tmp_path / "log.csv").write_text("s,a,r\n0,0,1\n1,0,2\n0,0,2\n")
    with pytest.warns(MixopeWarning):
        found = inspect(str(tmp_path / "log.csv"))
    assert len(found.notes) == 2


def test_text_and_json_say_the_same():
    found = inspect(logs(), TARGET)
    assert "1 to 3 rows, median" in found.full()
    assert "25.00% of the target's actions" in found.full()
    assert json.loads(found.to_json()) == found.to_dict()


def vector_logs(**changes):
    generator = np.random.default_rng(0)
    states = generator.normal(size=(61, 2))
    rows = {
        "observation": states[:-1],
        "next_observation": states[1:],
        "action": np.clip(generator.normal(size=60), -1, 1),
        "reward": generator.normal(size=60),
        "episode_id": np.repeat(np.arange(6), 10),
        "step": np.tile(np.arange(10), 6),
    }
    return Logs.from_arrays(**(rows | changes)), rows | changes


@pytest.mark.parametrize("engine", ["embedded", MemoryEngine(fragment_rows=7)], ids=["embedded", "fragments"])
def test_columns_of_vectors_are_measured_in_one_pass(engine):
    found, rows = vector_logs()
    vectors = inspect(found, engine=engine).vectors
    assert vectors.rows == 60
    for component, values in zip(vectors.observations, rows["observation"].T, strict=True):
        expected = (values.mean(), values.std(), values.min(), values.max())
        assert (component.mean, component.sd, component.lowest, component.highest) == pytest.approx(expected, rel=1e-12)
        assert (component.at_lowest, component.at_highest, component.not_finite) == (1, 1, 0)
    (action,) = vectors.actions
    assert (action.at_lowest, action.at_highest) == ((rows["action"] == -1).sum(), (rows["action"] == 1).sum())


def test_bad_values_of_vectors_are_counted_though_nothing_else_is():
    states = vector_logs()[1]["observation"].copy()
    states[:, 1] = np.nan
    found = inspect(vector_logs(observation=states)[0])
    assert found.error is not None
    assert found.contents is None
    first, second = found.vectors.observations
    assert (first.not_finite, second.not_finite) == (0, 60)
    assert np.isnan(second.mean)
    assert json.loads(found.to_json())["vectors"]["observations"][1]["mean"] is None


class Counting(MemoryEngine):
    """Counts scans."""

    scans = 0

    def scan(self, logs, requests, expected_rows=None):
        self.scans += 1
        return super().scan(logs, requests, expected_rows)


@pytest.mark.parametrize("action_kind", ["continuous", "discrete"])
def test_vectors_are_inspected_in_one_scan(action_kind):
    engine, changes = Counting(), {} if action_kind == "continuous" else {"action": np.tile(["u", "v", "v"], 20)}
    found = inspect(vector_logs(**changes)[0], engine=engine, check=False)
    assert engine.scans == 1
    assert (found.contents.rows, found.contents.episodes, found.vectors.rows) == (60, 6, 60)
    assert found.vectors.action_rows == (() if action_kind == "continuous" else (("u", 20), ("v", 40)))


def test_ids_are_inspected_in_two_scans_whatever_propensities_lack():
    engine = Counting()
    inspect(logs(action_prob=[0.5, np.nan, 0.5, 0.5, 0.5, 0.5]), TARGET, engine=engine, check=False)
    assert engine.scans == 2


class Losing(MemoryEngine):
    """An engine that loses rows, which is no matter of the data."""

    def scan(self, logs, requests, expected_rows=None):
        raise MixopeError("the engine lost fragment 3")


def test_a_fault_of_the_engine_is_not_taken_for_bad_values():
    states = vector_logs()[1]["observation"].copy()
    states[0, 0] = np.nan
    with pytest.raises(MixopeError, match="lost fragment 3"):
        inspect(vector_logs(observation=states)[0], engine=Losing())


def test_vectors_have_text_and_a_note_instead_of_coverage():
    target = LinearGaussianPolicy([0.1, 0.2], 0.0, 0.5)
    found = inspect(vector_logs()[0], target)
    assert found.coverage is None
    assert any("state by state" in note for note in found.notes)
    assert "observation.1" in found.full()
    assert coverage_of(vector_logs()[0], target) is None


def test_coverage_for_a_report_is_that_of_an_inspection():
    expected = inspect(logs(), TARGET).coverage
    assert coverage_of(logs(), TARGET) == expected
    assert coverage_of(look(logs()), TARGET) == expected
    assert coverage_of(look(vector_logs()[0]), TARGET) is None


def test_coverage_by_logger_counts_the_pairs_that_each_has_taken():
    columns = {
        "policy_id": np.array(["a", "a", "b", "b"]),
        "episode_id": np.array([0, 1, 2, 3]),
        "step": np.zeros(4, dtype=int),
        "observation": np.array(["x", "x", "x", "y"]),
        "action": np.array(["u", "v", "v", "u"]),
        "reward": np.zeros(4),
        "next_observation": np.array(["x", "x", "y", "x"]),
    }
    target = TabularPolicy(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array(["x", "y"]), np.array(["u", "v"]))
    found = {c.label: (c.covered, c.alone) for c in coverage_of(columns, target).loggers}
    assert found == {"a": (0.75, 0.375), "b": (0.5, 0.125)}  # x has 3 of 4 rows; y, v was never logged


@pytest.mark.parametrize("missing", [None, "keep"])
def test_what_is_missing_is_counted_in_all_rows_though_the_scan_leaves_some_out(tmp_path, missing):
    """Next states are the next row's, so that a gap in it keeps the scan from the row before, and from the last one."""
    generator = np.random.default_rng(0)
    n, gone = 600, generator.random(600) < np.where(np.arange(600) % 3 == 2, 0.4, 0.05)
    lost = generator.random(n) < 0.2
    columns = {
        "episode_id": np.arange(n) // 3,
        "step": np.arange(n) % 3,
        "observation.x": np.where(gone, None, generator.normal(size=n).round(3)),
        "observation.ward": np.where(lost, None, generator.choice(["a", "b"], n)),
        "action": generator.integers(2, size=n),
        "reward": np.where(np.arange(n) == 4, None, 1.0),
        "truncated": np.arange(n) % 3 == 2,
    }
    pyarrow.csv.write_csv(pa.table({k: pa.array(v.tolist()) for k, v in columns.items()}), tmp_path / "log.csv")
    found = inspect(read(tmp_path / "log.csv", missing=missing))
    assert {column.name.partition(".")[2]: column.missing for column in found.state} == {
        "x": gone.sum(),
        "ward": lost.sum(),
    }
    shown = found.full()
    assert f"{gone.mean():.2%}" in shown
    assert f"{lost.mean():.2%}" in shown
