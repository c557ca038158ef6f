"""The driver notices what an engine lost, doubled or left out, and merges as one tree; engines are found by name."""

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pytest

import mixope
from mixope.base.errors import MixopeError, UsageError
from mixope.engines import ENGINES, EmbeddedEngine, MemoryEngine, choose, protocol
from mixope.requests.grouping import combine_keys
from mixope.requests.request import FragmentResult, merge_in_order


@dataclass(frozen=True)
class Bag:
    """The simplest statistic: which rows were seen, and how they were put together."""

    rows: str = ""

    def merge(self, other):
        return Bag(f"({self.rows}{other.rows})")


def parts(*numbered):
    return iter([FragmentResult(number, len(rows), (Bag(rows),)) for number, rows in numbered])


def test_parts_are_merged_as_one_tree_over_the_fragments_whatever_order_they_come_in():
    for order in permutations(enumerate("abcde")):
        merged = merge_in_order(parts(*order), 5)
        assert merged.partials[0].rows == "(((ab)(cd))e)"
        assert merged.rows == 5


def test_no_fragments_are_no_rows():
    assert merge_in_order(parts(), 0) is None


@pytest.mark.parametrize(
    "numbers", [(0, 2), (1, 2), (0, 1, 1), (0, 0, 1)], ids=["hole", "no first", "twice", "0 twice"]
)
def test_a_hole_or_a_duplicate_is_an_error(numbers):
    with pytest.raises(MixopeError, match="fragment"):
        merge_in_order(parts(*((n, "ab") for n in numbers)))


@pytest.mark.parametrize("rows", [3, 5])
def test_lost_or_invented_rows_are_an_error(rows):
    with pytest.raises(MixopeError, match=f"saw 4 rows in this scan, and the logs have {rows}"):
        merge_in_order(parts((0, "ab"), (1, "cd")), rows)


def logs(tmp_path=None):
    columns = {
        "episode_id": np.array([0, 0]),
        "step": np.array([0, 1]),
        "observation": np.array([0, 1]),
        "action": np.array([0, 0]),
        "reward": np.array([1.0, 2.0]),
        "next_observation": np.array([1, 0]),
        "terminated": np.zeros(2, dtype=bool),
        "policy_id": np.full(2, "only"),
    }
    if tmp_path is None:
        return mixope.read(columns)
    from mixope.logs.writing import write

    return mixope.read(write(columns, tmp_path / "log.parquet"))


def test_arrays_are_run_in_memory_and_files_embedded(tmp_path):
    assert isinstance(choose(None, logs()), MemoryEngine)
    assert isinstance(choose(None, logs(tmp_path)), EmbeddedEngine)


@pytest.mark.parametrize("name", ENGINES)
def test_engines_are_chosen_by_name_or_given(name):
    made = ENGINES[name]()
    assert made.name == name
    assert isinstance(choose(name, logs()), ENGINES[name])
    assert choose(made, logs()) is made


def test_an_unknown_engine_offers_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'memory'"):
        choose("memori", logs())


def test_keys_are_combined_into_dense_group_numbers_even_where_codes_would_overflow():
    generator = np.random.default_rng(0)
    codes = [generator.integers(0, 5, size=200) for _ in range(6)]
    group, first = combine_keys([(c, 1 << 40) for c in codes], 200)
    tuples = list(zip(*(c.tolist() for c in codes), strict=True))
    assert len(first) == len(set(tuples))
    for i in range(200):
        assert tuples[first[group[i]]] == tuples[i]


def test_a_bar_on_a_terminal_changes_nothing(monkeypatch, capsys):
    """Where a scan takes long and stderr is a terminal, the rows that are done are shown; the parts are the same."""
    monkeypatch.setattr(protocol, "SHORT_SECONDS", -1.0)
    monkeypatch.setattr(protocol.sys.stderr, "isatty", lambda: True, raising=False)
    parts = [FragmentResult(k, 5, ()) for k in range(3)]
    assert list(protocol.watched(iter(parts), 15)) == parts
    monkeypatch.setattr(protocol.sys.stderr, "isatty", lambda: False, raising=False)
    capsys.readouterr()
    assert list(protocol.watched(iter(parts), 15)) == parts
    assert capsys.readouterr().err == ""
