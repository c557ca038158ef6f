"""Which column is which: aliases, the user's mapping, labels, files and folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ragged_logs import arrow, assert_parity, read, rows_of

from mixope import logs as lib
from mixope.base.errors import DataError, MixopeWarning, UnknownName, UsageError
from mixope.logs.names import ALIASES

ROW = {"observation": 1, "action": 0, "reward": 1.0, "next_observation": 2, "episode_id": 3, "step": 0}
OTHERS = {"terminated": False, "truncated": False, "policy_id": "p", "action_prob": 0.5, "action_logp": -1.0}


def one(**columns: Any) -> pa.Table:
    return pa.table({name: [value] for name, value in columns.items()})


@pytest.mark.parametrize(("canonical", "alias"), [(c, a) for c, names in ALIASES.items() for a in names])
def test_every_alias_is_its_column(canonical: str, alias: str) -> None:
    given = ROW | {canonical: (ROW | OTHERS)[canonical]}
    for spelling in (alias, alias.upper()):
        table = one(**{spelling if name == canonical else name: value for name, value in given.items()})
        logs = lib.read(table)
        assert logs.schema.mapping[canonical] == spelling


def test_the_canonical_name_wins_over_an_alias() -> None:
    assert lib.read(one(**ROW, state=9)).table(["observation"]).to_pydict() == {"observation": [1]}
    assert lib.read(one(**ROW, obs=9, state=9)).schema.mapping["observation"] == "observation"


def test_the_users_mapping_wins_and_settles_doubt() -> None:
    table = one(**ROW, obs=9, cell=7)
    assert lib.read(table, columns={"observation": "cell"}).table(["observation"]).to_pydict() == {"observation": [7]}
    twins = one(s=1, state=2, a=0, r=1.0, s_next=3, t=0, episode=0)
    assert lib.read(twins, columns={"observation": "state"}).table(["observation"]).to_pydict() == {"observation": [2]}


def test_a_list_maps_factors_and_pairs_the_next_ones() -> None:
    table = one(cell=1, who="x", cell2=2, who2="y", a=0, r=1.0, t=0, episode=0)
    logs = lib.read(table, columns={"observation": ["cell", "who"], "next_observation": ["cell2", "who2"]})
    assert logs.schema.observation == ("observation.cell", "observation.who")
    assert logs.table(["next_observation.who"]).to_pydict() == {"next_observation.who": ["y"]}
    assert logs.schema.mapping["observation"] == ("cell", "who")
    assert_parity(logs)


@pytest.mark.parametrize(
    ("now", "later", "factors"),
    [
        (("state", "age"), ("next_state", "next_age"), ("state", "age")),
        (("age", "context"), ("age2", "next_obs"), ("age", "context")),
        (("obs.x", "state.x"), ("next_obs.x", "next_state.x"), ("obs.x", "state.x")),
    ],
)
def test_a_factor_may_be_called_as_a_whole_state_would_be(
    now: tuple[str, ...], later: tuple[str, ...], factors: tuple[str, ...]
) -> None:
    """A state of a country is not the state of a log; and two columns with one factor's name are two."""
    table = one(
        **dict(zip(now, (1, 2), strict=True)), **dict(zip(later, (3, 4), strict=True)), a=0, r=1.0, t=0, episode=0
    )
    logs = lib.read(table, columns={"observation": now, "next_observation": later})
    assert logs.schema.observation == tuple(f"observation.{name}" for name in factors)
    assert logs.schema.mapping["observation"] == now
    wanted = [*logs.schema.observation, *logs.schema.next_observation]
    assert list(logs.table(wanted).to_pylist()[0].values()) == [1, 2, 3, 4]
    assert_parity(logs)


def test_factor_prefixes_have_aliases() -> None:
    logs = lib.read(one(**{"state.x": 1, "state.y": 2, "next_obs.y": 4, "next_obs.x": 3}, a=0, r=1.0, t=0, episode=0))
    assert logs.schema.observation == ("observation.x", "observation.y")
    assert logs.table(["next_observation.x", "next_observation.y"]).to_pylist() == [
        {"next_observation.x": 3, "next_observation.y": 4}
    ]


def test_none_ignores_a_column() -> None:
    logs = lib.read(one(**ROW, action_prob=0.5), columns={"action_prob": None})
    assert not logs.schema.has_propensity
    assert logs.table(["propensity"]).to_pydict() == {"propensity": [None]}


def test_plain_prob_is_never_a_propensity_but_is_mentioned() -> None:
    with pytest.warns(MixopeWarning, match="'prob' was ignored"):
        logs = lib.read(one(**ROW, prob=0.5))
    assert not logs.schema.has_propensity
    assert lib.read(one(**ROW, prob=0.5), columns={"action_prob": "prob"}).schema.has_propensity


def test_a_time_that_cannot_be_read_is_mentioned() -> None:
    timed = {**ROW, "timestamp": "Monday"}
    ignored = "column 'timestamp' was ignored: if rows of an episode are not in its order, sort them by it"
    assert ignored in read(one(**{name: value for name, value in timed.items() if name != "step"})).notes
    assert ignored not in read(one(**timed)).notes


def test_probabilities_win_over_their_logarithms() -> None:
    logs = read(one(**ROW, action_prob=0.5, logp=-3.0))
    assert logs.table(["propensity"]).to_pydict() == {"propensity": [0.5]}
    assert "action_prob is used" in logs.notes[0]


def test_what_is_derived_is_said_once_at_read() -> None:
    with pytest.warns(MixopeWarning) as caught:
        logs = lib.read(one(s=1, a=0, r=1.0))
    assert len(caught) == len(logs.notes) == 2
    assert "row order" in logs.notes[0]
    assert "one episode" in logs.notes[1]
    assert logs.schema.mapping["next_observation"] == "derived: next row"


@pytest.mark.parametrize("meaning", ["terminated", "truncated"])
def test_the_user_says_what_done_means(meaning: str) -> None:
    logs = lib.read(one(**ROW, done=True), done=meaning)
    assert logs.table([meaning]).to_pydict() == {meaning: [True]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        pq.write_table(one(**ROW), tmp_path / f"{name}.parquet")
    pq.write_table(one(**ROW, policy_id=None), tmp_path / "null.parquet")
    pq.write_table(one(**ROW), tmp_path / "x=y.parquet")
    return tmp_path


def labels(logs: lib.Logs) -> list[str]:
    assert_parity(logs)
    return list(logs.table(["policy_id"]).column(0).to_pylist())


def test_labels_come_with_files(folder: Path) -> None:
    assert labels(lib.read(f"a={folder}/one.parquet", f"b={folder}/two.parquet")) == ["a", "b"]
    assert labels(lib.read(folder / "one.parquet", folder / "two.parquet", label=["a", "b"])) == ["a", "b"]
    assert labels(lib.read({"a": folder / "one.parquet", "b": one(**ROW)})) == ["a", "b"]
    assert labels(lib.read(folder / "one.parquet")) == ["unlabelled"]
    assert lib.read(f"a={folder}/one.parquet").schema.has_policy_id


def test_a_label_fills_only_what_the_file_leaves_open(folder: Path) -> None:
    assert labels(read(f"a={folder}/null.parquet")) == ["a"]
    assert labels(read(one(**ROW, logger="own"), label="a")) == ["own"]
    assert labels(read(one(**ROW, logger=7))) == ["7"]


def test_a_real_file_wins_over_a_label(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert labels(lib.read("x=y.parquet")) == ["unlabelled"]
    assert labels(lib.read("x=one.parquet")) == ["x"]


def test_one_glob_is_one_source_and_two_arguments_are_two(folder: Path) -> None:
    both = lib.read(f"{folder}/[ot]*.parquet")
    assert both.table(["source"]).column(0).to_pylist() == [0, 0]
    assert len(both.inputs()) == 2
    merged = lib.read(lib.read(folder / "one.parquet"), folder / "two.parquet")
    assert merged.table(["source"]).column(0).to_pylist() == [0, 1]
    assert len(lib.read([folder / "one.parquet", folder / "two.parquet"]).sources) == 1


def test_names_with_pattern_characters_are_names(tmp_path: Path) -> None:
    pq.write_table(one(**ROW), tmp_path / "a[1]*.parquet")
    assert_parity(lib.read(tmp_path / "a[1]*.parquet"))


def test_folders_may_hold_columns_in_their_names(tmp_path: Path) -> None:
    for name, day in (("old", 1), ("new", 2)):
        inside = tmp_path / f"policy_id={name}" / f"day={day}"
        inside.mkdir(parents=True)
        pq.write_table(one(**ROW), inside / "part.parquet")
        (inside / "_SUCCESS").touch()
    for given in (str(tmp_path), f"{tmp_path}/*/*/*.parquet"):
        assert sorted(labels(lib.read(given))) == ["new", "old"]
    assert labels(lib.read(tmp_path / "policy_id=old" / "day=1" / "part.parquet")) == ["unlabelled"]


def test_files_of_one_source_may_differ_in_what_is_optional(tmp_path: Path) -> None:
    pq.write_table(one(**ROW), tmp_path / "1.parquet")
    pq.write_table(one(**{**ROW, "observation": 2}, pscore=0.5), tmp_path / "2.parquet")
    logs = lib.read(str(tmp_path))
    assert_parity(logs)
    assert logs.table(["propensity"]).column(0).to_pylist() == [None, 0.5]


def test_the_same_episode_number_under_two_labels_is_two_episodes() -> None:
    table = arrow(
        {"policy_id": ["a", "b", "a", "b"], "episode_id": [0, 0, 0, 0], "step": [0, 0, 1, 1]}
        | {"observation": [1, 2, 3, 4], "action": [0] * 4, "reward": [0.0] * 4}
    )
    logs = lib.read(table)
    assert_parity(logs)
    assert logs.table(["observation", "next_observation"]).to_pydict() == {
        "observation": [1, 2, 3, 4],
        "next_observation": [3, 4, None, None],
    }


def test_fingerprints_follow_the_content(folder: Path) -> None:
    first, again = lib.read(folder / "one.parquet"), lib.read(folder / "one.parquet")
    assert first.fingerprint() == again.fingerprint()
    assert first.fingerprint() != lib.read(folder / "one.parquet", label="a").fingerprint()
    table = one(**ROW)
    assert lib.read(table).fingerprint() == lib.read(pa.concat_tables([table])).fingerprint()
    assert lib.read(table).fingerprint() != lib.read(one(**{**ROW, "reward": 2.0})).fingerprint()
    record = first.inputs()[0]
    assert (record["rows"], Path(record["path"]).name) == (1, "one.parquet")
    assert len(record["sha256"]) == 64


def test_logs_travel_to_other_processes(folder: Path) -> None:
    import pickle

    for logs in (lib.read(folder / "one.parquet"), lib.read(one(**ROW))):
        copy = pickle.loads(pickle.dumps(logs))
        assert rows_of(copy.table()) == rows_of(logs.table())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lib.read(one(**ROW), columns={"observatoin": "x"}), UnknownName, "Did you mean 'observation'"),
        (lambda: lib.read(one(**ROW), done="finished"), UnknownName, "meaning of done"),
        (lib.read, UsageError, "at least one source"),
        (lambda: lib.read(3), UsageError, "cannot read a int"),
        (lambda: lib.read(one(**ROW), label=["a", "b"]), UsageError, "2 entries for 1 sources"),
        (lambda: lib.read({"x": np.ones(2)}), DataError, "neither arrays nor labelled"),
        (lambda: lib.read(one(**ROW)).table(["rewards"]), UnknownName, "Did you mean 'reward'"),
    ],
)
def test_questions_without_an_answer(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_importing_loads_numpy_only() -> None:
    import subprocess
    import sys

    code = "import sys, mixope.logs; print([m for m in ('duckdb', 'pyarrow', 'pandas', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


NUMBERED = {"episode": [0, 0], "t": [0, 1], "action": [0, 1], "reward": [0.5, 1.0], "truncated": [False, True]}


@pytest.mark.parametrize("name", ["obs_{}", "state_{}", "observation[{}]"])
@pytest.mark.parametrize("first", [0, 1])
def test_numbered_columns_are_the_numbers_of_one_state(name, first):
    states = {name.format(k): [k + 0.1, k + 0.2] for k in range(first, first + 11)}
    found = lib.read(pa.table({**dict(reversed(states.items())), **NUMBERED}))
    assert found.schema.mapping["observation"] == tuple(states)


def test_numbered_columns_are_left_alone_where_something_else_is_the_state():
    columns = {"observation": [0, 1], "obs_0": [0.1, 0.2], "obs_1": [0.1, 0.2], **NUMBERED}
    assert lib.read(pa.table(columns)).schema.mapping["observation"] == "observation"


def test_columns_with_a_number_missing_are_no_state():
    with pytest.raises(DataError, match="no column for the observation"):
        lib.read(pa.table({"obs_0": [0.1, 0.2], "obs_2": [0.1, 0.2], **NUMBERED}))


def test_numbered_columns_of_another_name_are_offered():
    with pytest.raises(DataError) as refused:
        lib.read(pa.table({"sensor_0": [0.1, 0.2], "sensor_1": [0.1, 0.2], **NUMBERED}))
    assert "['sensor_0', 'sensor_1']" in str(refused.value)


def test_the_padding_of_rlds_is_mentioned() -> None:
    logs = read(one(**ROW, is_first=True, is_last=False, is_terminal=False))
    assert any("RLDS" in note for note in logs.notes)
    assert logs.schema.mapping["terminated"] == "is_terminal"
