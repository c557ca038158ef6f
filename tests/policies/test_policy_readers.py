"""Every source of the same policy gives the same answers, and bad sources say what is wrong and where."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from mixope.base.errors import DataError, MixopeError, UnknownName, UsageError
from mixope.policies import CallablePolicy, DiscretePolicy, Mixture, TabularPolicy, read_policies, read_policy

REFERENCE = Path(__file__).parents[1] / "data" / "reference"
GENERATOR = np.random.default_rng(7)
TABLE = np.concatenate([GENERATOR.dirichlet(np.ones(3), 5), [[0.0, 1.0, 0.0]]])
ACTIONS = np.array(["down", "left", "up"])
STATES = {
    "integers": np.array([4, -2, 9, 0, 7, 3]),
    "strings": np.array(["a", "NA", "c é", "d,e", "true", "x"]),
    "factors": np.array([[0, "p"], [0, "q"], [1, "p"], [2, "q"], [2, "r"], [3, "p"]], dtype=object),
}


def listing(kind: str, seed: int = 0) -> dict[str, list]:
    """The policy as columns, rows shuffled, zeros left out."""
    states = STATES[kind]
    pairs = [(i, j) for i in range(6) for j in range(3) if TABLE[i, j] > 0]
    pairs = [pairs[k] for k in np.random.default_rng(seed).permutation(len(pairs))]
    named = (
        {"observation": states} if states.ndim == 1 else {"observation.x": states[:, 0], "observation.y": states[:, 1]}
    )
    columns = {name: [values[i] for i, _ in pairs] for name, values in named.items()}
    columns = {name: [v.item() if isinstance(v, np.generic) else v for v in column] for name, column in columns.items()}
    return {**columns, "action": [str(ACTIONS[j]) for _, j in pairs], "prob": [float(TABLE[i, j]) for i, j in pairs]}


def write_csv(table: pa.Table, folder: Path) -> Path:
    pyarrow.csv.write_csv(table, folder / "policy.csv")
    return folder / "policy.csv"


def write_parquet(table: pa.Table, folder: Path) -> Path:
    pyarrow.parquet.write_table(table, folder / "policy.parquet")
    return folder / "policy.parquet"


def write_feather(table: pa.Table, folder: Path) -> Path:
    pyarrow.feather.write_feather(table, folder / "policy.feather")
    return folder / "policy.feather"


def write_stream(table: pa.Table, folder: Path) -> Path:
    with pa.ipc.new_stream(folder / "policy.arrow", table.schema) as stream:
        stream.write_table(table)
    return folder / "policy.arrow"


def categories(table: pa.Table, folder: Path) -> pa.Table:
    return table.set_column(table.column_names.index("action"), "action", table["action"].dictionary_encode())


SOURCES = {
    "csv": write_csv,
    "parquet": write_parquet,
    "feather": write_feather,
    "arrow stream": write_stream,
    "path as text": lambda table, folder: str(write_parquet(table, folder)),
    "arrow table": lambda table, folder: table,
    "categories": categories,
    "pandas": lambda table, folder: pd.DataFrame(table.to_pydict()),
    "polars": lambda table, folder: pl.DataFrame(table.to_pydict()),
    "dict of lists": lambda table, folder: table.to_pydict(),
    "dict of arrays": lambda table, folder: {name: np.array(values) for name, values in table.to_pydict().items()},
}


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("source", SOURCES)
def test_round_trips_give_equal_answers(source: str, kind: str, tmp_path: Path) -> None:
    policy = read_policy(SOURCES[source](pa.table(listing(kind)), tmp_path))
    original = TabularPolicy(TABLE, STATES[kind], ACTIONS)
    assert policy.fingerprint() == original.fingerprint()
    taken = ACTIONS[[0, 1, 2, 0, 1, 2]]
    np.testing.assert_array_equal(policy.log_prob(STATES[kind], taken), original.log_prob(STATES[kind], taken))


@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_archives_give_equal_answers(kind: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", probabilities=TABLE, states=STATES[kind], actions=ACTIONS)
    assert read_policy(tmp_path / "p.npz").fingerprint() == TabularPolicy(TABLE, STATES[kind], ACTIONS).fingerprint()


def test_plain_arrays_give_equal_answers(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", TABLE)
    np.savez(tmp_path / "one.npz", TABLE)
    np.savez(tmp_path / "named.npz", probs=TABLE, note=np.array("hello"))
    expected = TabularPolicy(TABLE).fingerprint()
    sources = (TABLE, TABLE.tolist(), tmp_path / "p.npy", tmp_path / "one.npz", tmp_path / "named.npz")
    assert {read_policy(source).fingerprint() for source in sources} == {expected}
    assert read_policy(TABLE, actions=ACTIONS).actions.tolist() == ACTIONS.tolist()


def test_pickled_arrays_need_trust(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", probabilities=TABLE, states=STATES["factors"])
    with pytest.raises(DataError, match="unpickling runs code") as caught:
        read_policy(tmp_path / "p.npz")
    assert "trust=True" in str(caught.value)
    assert caught.value.where == str(tmp_path / "p.npz")
    trusted = read_policy(tmp_path / "p.npz", trust=True)
    assert trusted.fingerprint() == TabularPolicy(TABLE, STATES["factors"]).fingerprint()


def test_a_bare_pickle_is_refused_even_with_trust(tmp_path: Path) -> None:
    STATES["factors"].dump(tmp_path / "p.npy")
    with pytest.raises(DataError, match="not a NumPy file"):
        read_policy(tmp_path / "p.npy", trust=True)


def test_factor_names_are_kept() -> None:
    policy = read_policy(listing("factors"))
    assert policy.factors == ("x", "y")
    states = STATES["factors"]
    np.testing.assert_array_equal(policy.in_factor_order(["y", "x"]).probs(states[:, ::-1]), policy.probs(states))


@pytest.mark.parametrize(
    ("state", "action", "prob"), [("State", "A", "P"), ("s", "actions", "pi"), ("CONTEXT", "Action", "Probability")]
)
def test_aliases_of_any_case(state: str, action: str, prob: str) -> None:
    columns = listing("integers")
    renamed = {state: columns["observation"], action: columns["action"], prob: columns["prob"]}
    assert read_policy(renamed).fingerprint() == read_policy(columns).fingerprint()


def test_a_dict_may_hold_factors_as_one_array() -> None:
    columns = {"observation": np.array([[0, 1], [2, 3]]), "action": [0, 1], "prob": [1.0, 1.0]}
    assert read_policy(columns).states.tolist() == [[0, 1], [2, 3]]


def test_columns_may_be_named() -> None:
    columns = listing("factors")
    renamed = {"row": columns["observation.x"], "col": columns["observation.y"], "do": columns["action"]}
    renamed |= {"new": columns["prob"], "p": columns["prob"][::-1]}
    policy = read_policy(renamed, columns={"observation": ["row", "col"], "action": "do", "prob": "new"})
    assert policy.factors == ("row", "col")
    assert policy.fingerprint() == read_policy(columns).fingerprint()


def test_dates_and_words_in_csv_are_text(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("observation,action,prob\n2024-01-01,true,1\n2024-01-02,false,1\n")
    policy = read_policy(tmp_path / "p.csv")
    assert policy.states.tolist() == ["2024-01-01", "2024-01-02"]
    assert policy.actions.tolist() == ["false", "true"]


TEXT = "observation,action,prob\nä,0,.25\nä,1,.75\n"
KEPT: dict[str, tuple[str, Callable[[str], bytes]]] = {
    "UTF-16": ("p.csv", lambda text: text.encode("utf-16")),
    "a byte-order mark": ("p.csv", lambda text: text.encode("utf-8-sig")),
    "gzip": ("p.csv.gz", lambda text: gzip.compress(text.encode())),
    "tabs in gzip": ("p.tsv.gz", lambda text: gzip.compress(text.replace(",", "\t").encode())),
    "semicolons": ("p.csv", lambda text: text.replace(",", ";").encode()),
    "JSON lines": ("p.jsonl", lambda text: b"\n".join(map(json_line, text.split("\n")[1:-1]))),
    "JSON lines in gzip": ("p.ndjson.gz", lambda text: gzip.compress(KEPT["JSON lines"][1](text))),
    "Parquet by its short name": ("p.pq", lambda text: written(pyarrow.parquet.write_table, text)),
    "Arrow by its long name": ("p.ipc", lambda text: written(pyarrow.feather.write_feather, text)),
}


def json_line(row: str) -> bytes:
    state, action, prob = row.split(",")
    return json.dumps({"observation": state, "action": int(action), "prob": float(prob)}).encode()


def written(write: Callable[[pa.Table, Any], None], text: str) -> bytes:
    write(pyarrow.csv.read_csv(io.BytesIO(text.encode())), file := io.BytesIO())
    return file.getvalue()


@pytest.mark.parametrize("name", KEPT)
def test_tables_are_kept_as_logs_are(name: str, tmp_path: Path) -> None:
    called, packed = KEPT[name]
    (tmp_path / called).write_bytes(packed(TEXT))
    policy = read_policy(tmp_path / called)
    assert policy.states.tolist() == ["ä"]
    np.testing.assert_allclose(policy.probs(["ä"]), [[0.25, 0.75]])


def test_integers_of_more_than_64_bits_are_names(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("observation,action,prob\n36893488147419103232,0,1\n1,0,1\n")
    assert read_policy(tmp_path / "p.csv").states.tolist() == ["1", "36893488147419103232"]


def test_text_that_is_not_utf8_names_the_byte_and_no_setting_that_tables_lack(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(TEXT.encode("latin-1"))
    with pytest.raises(DataError) as caught:
        read_policy(tmp_path / "p.csv")
    assert caught.value.where == str(tmp_path / "p.csv")
    assert "encoding=" not in str(caught.value)
    assert "UTF-8" in str(caught.value.hint)


def test_options_reach_the_table() -> None:
    policy = read_policy(listing("integers"), default="up", unknown_actions="zero")
    assert policy.log_prob(np.array([99, 4]), np.array(["up", "fly"])).tolist() == [0, -np.inf]


def test_actions_widen_a_table() -> None:
    policy = read_policy(listing("integers"), actions=["up", "fly", "down", "left"])
    assert policy.actions.tolist() == ["up", "fly", "down", "left"]
    np.testing.assert_allclose(policy.probs(np.array([4])), [[TABLE[0, 2], 0, TABLE[0, 0], TABLE[0, 1]]])


def test_a_table_of_a_hundred_thousand_states_and_ten_thousand_actions_fits(tmp_path: Path) -> None:
    """Five listed actions per state: a full table would take 8 GB."""
    states, actions, each = 100_000, 10_000, 5
    state = np.repeat(np.arange(states), each)
    action = (state * 7 + np.tile(np.arange(each) * 1999, states)) % actions
    columns = {"observation": state, "action": action, "prob": np.full(len(state), 1 / each)}
    pa.parquet.write_table(pa.table(columns), tmp_path / "p.parquet")
    tracemalloc.start()
    policy = read_policy(tmp_path / "p.parquet")
    answers = policy.log_prob(state[::50], action[::50])
    rows = policy.probs(np.array([3, 99_999]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    assert len(policy.actions) == actions
    np.testing.assert_allclose(answers, np.log(1 / each))
    assert policy.log_prob(np.array([3]), np.array([22])).tolist() == [-np.inf]
    assert [np.flatnonzero(row).tolist() for row in rows] == [sorted(action[state == s].tolist()) for s in (3, 99_999)]
    for whole in (lambda: policy.probs(np.arange(states)), lambda: policy.probabilities):
        with pytest.raises(UsageError, match=r"100,000 × 10,000 entries, 7,629 MB in memory") as caught:
            whole()
        assert "fewer states at a time" in str(caught.value)


def test_a_listing_with_gaps_is_the_table_with_zeros() -> None:
    generator = np.random.default_rng(5)
    table = generator.dirichlet(np.ones(12), 30) * (generator.random((30, 12)) < 0.4)
    table[:, 3] += 1 - table.sum(axis=1)
    state, action = np.nonzero(table)
    shuffled = generator.permutation(len(state))
    state, action = state[shuffled], action[shuffled]
    columns = {"observation": state, "action": action, "prob": table[state, action]}
    for default in (None, "uniform", 5):
        read, full = read_policy(columns, default=default), TabularPolicy(table, default=default)
        asked = np.arange(30) if default is None else np.array([4, 77, 9, 29, 88])
        np.testing.assert_array_equal(read.probs(asked), full.probs(asked))
        taken = np.resize(np.arange(12), len(asked))
        np.testing.assert_array_equal(read.log_prob(asked, taken), full.log_prob(asked, taken))
        assert read.fingerprint() == full.fingerprint()
        assert read.greedy().fingerprint() == full.greedy().fingerprint()
        np.testing.assert_array_equal(read.probabilities, full.probabilities)


def test_policies_pass_and_callables_are_wrapped() -> None:
    policy = TabularPolicy(TABLE)
    assert read_policy(policy) is policy
    wrapped = read_policy(lambda observations: TABLE[observations], actions=ACTIONS)
    assert isinstance(wrapped, DiscretePolicy)
    assert isinstance(read_policy(lambda observations, actions: actions), CallablePolicy)


def test_a_function_is_found_by_name_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_target.py").write_text(
        "import numpy as np\nimport mixope.policies\n\ndef law(observations):\n"
        "    return np.tile([.25, .75], (len(observations), 1))\n\nready = mixope.policies.uniform([1, 2])\n"
        "name = 'x'\n"
    )
    (tmp_path / "broken_target.py").write_text("1 / 0\n")
    (tmp_path / "needy_target.py").write_text("import no_such_thing_at_all\n")
    monkeypatch.chdir(tmp_path)
    assert np.exp(read_policy("my_target:law").log_prob(np.zeros(1), np.array([1]))).tolist() == [0.75]
    assert read_policy("my_target:ready").actions.tolist() == [1, 2]
    for reference, words in {
        "my_target:lew": "Did you mean 'law'?",
        "my_target:name": "is a string",
        "mixope.policies:CallablePolicy": "is a class",
        "my_targets:law": "there is no module 'my_targets'",
        "my_target.py:law": "without .py",
        "broken_target:law": "ZeroDivisionError",
        "needy_target:law": "No module named 'no_such_thing_at_all'",
    }.items():
        with pytest.raises(UsageError) as caught:
            read_policy(reference)
        assert words in str(caught.value)


def test_loggers_are_read_by_name() -> None:
    loggers = read_policies(REFERENCE / "gridworld-loggers.csv")
    assert list(loggers) == ["logger-0", "logger-1", "logger-2"]
    logs = pd.read_csv(REFERENCE / "gridworld.csv")
    for name, rows in logs.groupby("policy_id"):
        answers = loggers[name].log_prob(rows["observation"].to_numpy(), rows["action"].to_numpy())
        np.testing.assert_allclose(np.exp(answers), rows["action_prob"], rtol=1e-9)
    Mixture(list(loggers.values()))


def test_loggers_share_all_actions() -> None:
    columns = {"policy_id": [5, 5, 3], "s": [0, 1, 0], "a": ["l", "l", "r"], "p": [1, 1, 1]}
    loggers = read_policies(columns)
    assert list(loggers) == ["5", "3"]
    assert [policy.actions.tolist() for policy in loggers.values()] == [["l", "r"]] * 2


def test_a_file_of_several_policies_is_not_one_policy() -> None:
    with pytest.raises(DataError, match="holds 3 policies") as caught:
        read_policy(REFERENCE / "gridworld-loggers.csv")
    assert "use it as loggers" in str(caught.value)
    assert caught.value.column == "policy_id"
    assert isinstance(read_policy(REFERENCE / "gridworld-one-loggers.csv"), TabularPolicy)


@pytest.mark.parametrize("name", ["gridworld", "singlepath", "walk", "gridworld-one"])
def test_reference_targets_are_read(name: str) -> None:
    policy = read_policy(REFERENCE / f"{name}-target.csv")
    logs = pd.read_csv(REFERENCE / f"{name}.csv")
    np.testing.assert_allclose(policy.probs(logs["observation"].to_numpy()).sum(axis=1), 1)


HEAD = "observation,action,prob\n"
BAD_FILES = {
    "no prob": ("observation,action\n0,0\n0,1\n", "no column for the prob", "probability or p or pi", None, ()),
    "log prob": ("observation,action,log_prob\n0,0,-1\n", "no column for the prob", "exponential", None, ()),
    "no header": ("0,1,0.5\n0,2,0.5\n", "no column for the observation", "columns 0, 1, 0.5", None, ()),
    "two states": ("s,obs,a,p\n0,0,0,1\n", "several columns could be the observation", "s, obs", None, ()),
    "state twice": ("s,s.x,a,p\n0,0,0,1\n", "state twice, as one column and as factors", "s, s.x", None, ()),
    "two prefixes": ("s.y,obs.x,a,p\n0,0,0,1\n", "several columns could be the observation", "s.y, obs.x", None, ()),
    "pair twice": (
        HEAD + "0,0,.5\n0,1,.5\n0,1,.5\n",
        "listed twice",
        "state 0, action 1 in rows 1, 2",
        "action",
        (1, 2),
    ),
    "short sum": (HEAD + "0,0,1\n1,0,.5\n1,1,.4\n", "of 1 state(s) do not sum", "0.9 at state 1", "prob", (1, 2)),
    "negative": (HEAD + "0,0,1.5\n0,1,-.5\n", "probabilities are negative", "-0.5", "prob", (1,)),
    "above one": (HEAD + "0,0,1.5\n0,1,0\n", "probabilities are above one", "1.5", "prob", (0,)),
    "logs": (HEAD + "0,0,-.69\n0,1,-.69\n", "are log-probabilities", "np.exp", "prob", ()),
    "empty cell": (HEAD + "0,0,.5\n0,1,\n", "missing values", "rows:     1", "prob", (1,)),
    "nan": (HEAD + "0,0,.5\n0,1,NaN\n", "have NaN", "every row", "prob", (1,)),
    "no state": (HEAD + "a,0,1\n,0,1\n", "missing values", "drop these rows", "observation", (1,)),
    "comma decimals": (HEAD + '0,0,0.5\n0,1,"0,5"\n', "are not numbers", "'0,5'", "prob", (1,)),
    "real states": (HEAD + "0.25,0,1\n0.5,0,1\n", "states are real numbers", "discretise", "observation", (0, 1)),
    "no rows": (HEAD, "no rows", "one row per state", None, ()),
    "nothing": ("", "The file is empty", "a header line", None, ()),
    "ragged": (HEAD + "0,0\n", "cannot be read as csv", "Expected 3 columns", None, ()),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_say_what_is_wrong_and_where(name: str, tmp_path: Path) -> None:
    text, problem, fact, column, rows = BAD_FILES[name]
    path = tmp_path / "policy.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_policy(path)
    assert problem in caught.value.problem
    assert fact in str(caught.value)
    assert (caught.value.where, caught.value.column, caught.value.rows) == (str(path), column, rows)


def test_rows_of_loggers_are_rows_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "loggers.csv").write_text("policy_id,s,a,p\nx,0,0,1\ny,0,0,1\nx,1,0,.5\n")
    with pytest.raises(DataError) as caught:
        read_policies(tmp_path / "loggers.csv")
    assert caught.value.rows == (2,)


def broken(folder: Path, name: str, content: bytes = b"nonsense, truly") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def archive(folder: Path, **arrays: object) -> Path:
    np.savez(folder / "p.npz", **arrays)
    return folder / "p.npz"


BAD_SOURCES = {
    "missing": (lambda d: broken(d, "target.csv").with_name("taget.csv"), DataError, "did you mean"),
    "missing folder": (lambda d: d / "nowhere" / "p.csv", DataError, "there is no such policy file"),
    "folder": (lambda d: d, DataError, "is a folder"),
    "extension": (
        lambda d: broken(d, "p.xlsx"),
        UsageError,
        ".csv, .csv.gz, .tsv, .tsv.gz, .parquet, .arrow, .feather",
    ),
    "parquet": (lambda d: broken(d, "p.parquet"), DataError, "cannot be read as parquet"),
    "arrow": (lambda d: broken(d, "p.arrow"), DataError, "cannot be read as arrow"),
    "npz": (lambda d: broken(d, "p.npz"), DataError, "not a NumPy file"),
    "damaged npz": (lambda d: broken(d, "p.npz", b"PK\x03\x04 cut off"), DataError, "is damaged"),
    "damaged npy": (lambda d: broken(d, "p.npy", b"\x93NUMPY\x01\x00"), DataError, "is damaged"),
    "which array": (lambda d: archive(d, one=TABLE, two=TABLE), DataError, "does not say which array"),
    "bad array": (lambda d: archive(d, probs=TABLE[:, :2]), DataError, "p.npz"),
    "lengths": (lambda d: {"s": [0, 1], "a": [0], "p": [1]}, DataError, "s: 2, a: 1, p: 1"),
    "mixed list": (lambda d: {"s": ["a", 1], "a": [0, 0], "p": [1, 1]}, DataError, "mix values"),
    "ragged states": (
        lambda d: {"s": [[0], [1, 2]], "a": [0, 0], "p": [1, 1]},
        DataError,
        "values of 's' have rows of",
    ),
    "wide actions": (lambda d: {"s": [0], "a": [[0, 1]], "p": [1]}, DataError, "one id per row"),
    "wide prob": (lambda d: {"s": [0], "a": [0], "p": [[0.5, 0.5]]}, DataError, "one number per row"),
    "no columns": (lambda d: {}, DataError, "columns (none)"),
    "lists": (lambda d: pa.table({"s": [[1, 2]], "a": [0], "p": [1]}), DataError, "observation.x, observation.y"),
    "number": (lambda d: 3, UsageError, "cannot make a policy of int"),
    "same names": (lambda d: pa.table([[0], [0], [1]], names=["s", "s", "p"]), DataError, "same name"),
}


@pytest.mark.parametrize("name", BAD_SOURCES)
def test_bad_sources_are_refused_in_their_own_words(name: str, tmp_path: Path) -> None:
    make, kind, words = BAD_SOURCES[name]
    with pytest.raises(kind) as caught:
        read_policy(make(tmp_path))
    assert words in str(caught.value)


BAD_CALLS = {
    "default of a callable": (lambda: read_policy(lambda o: o, default="uniform"), UsageError, "default is for tables"),
    "default of a policy": (lambda: read_policy(TabularPolicy(TABLE), default=1), UsageError, "not yet policies"),
    "role": (lambda: read_policy(listing("integers"), columns={"probs": "p"}), UnknownName, "Did you mean 'prob'?"),
    "column": (lambda: read_policy(listing("integers"), columns={"prob": "prb"}), DataError, "did you mean 'prob'?"),
    "several": (lambda: read_policy(listing("integers"), columns={"prob": ["prob"]}), UsageError, "one column name"),
    "outside": (
        lambda: read_policy(listing("integers"), actions=["up"]),
        DataError,
        "outside the actions that were given",
    ),
    "one policy": (lambda: read_policies(listing("integers")), DataError, "no column policy_id"),
    "no table": (lambda: read_policies(TABLE), UsageError, "read from a table"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_are_refused_in_their_own_words(name: str) -> None:
    call, kind, words = BAD_CALLS[name]
    with pytest.raises(MixopeError) as caught:
        call()
    assert isinstance(caught.value, kind)
    assert words in str(caught.value)
