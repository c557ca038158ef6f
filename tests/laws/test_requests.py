"""What every kind of request must satisfy: its answers are a commutative monoid, whatever pieces the rows came in."""

import pickle
from functools import cache

import numpy as np
import pytest

from mixope.engines import MemoryEngine
from mixope.logs import EPISODE_KEYS
from mixope.requests.by_episode import first_of_runs
from mixope.requests.request import SLICE, Batch, content_key, partials, slices

from .requests import assert_same, examples, kinds, vector_logs

each = pytest.mark.parametrize("name", examples())


@cache
def pieces(name):
    """All rows in the order of episodes and steps, those rows in three unequal parts, and no rows."""
    request, logs = examples()[name]
    order = (*EPISODE_KEYS, "step")
    rows = logs.table(tuple(dict.fromkeys((*request.columns(logs.schema), *order))))
    rows = rows.sort_by([(key, "ascending") for key in order])
    borders = first_of_runs(rows, EPISODE_KEYS) if request.whole_episodes else np.arange(rows.num_rows)
    low, high = int(borders[len(borders) // 5]), int(borders[len(borders) // 2])
    parts = rows.slice(0, low), rows.slice(low, high - low), rows.slice(high), rows.slice(0, 0)
    return tuple(answer(request, logs, table) for table in (rows, *parts))


def answer(request, logs, table):
    return partials(table, logs.schema, [request]).partials[0]


def test_every_kind_of_request_has_an_example():
    assert {type(request) for request, _ in examples().values()} == kinds()


@each
def test_no_rows_are_neutral(name):
    whole, *_, nothing = pieces(name)
    assert_same(nothing.merge(whole), whole)
    assert_same(whole.merge(nothing), whole)


@each
def test_merging_is_associative_commutative_and_gives_the_whole(name):
    whole, a, b, c, _ = pieces(name)
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert_same(a.merge(b), b.merge(a))
    assert_same(a.merge(b).merge(c), whole)


@each
def test_merging_changes_neither_side(name):
    _, a, b, _, _ = pieces(name)
    before = pickle.dumps((a, b))
    a.merge(b)
    assert_same(pickle.loads(before), (a, b), share=0.0)


@each
@pytest.mark.parametrize("rows", [1, 7, 100])
def test_pieces_and_threads_change_nothing(name, rows):
    request, logs = examples()[name]
    (found,) = MemoryEngine(rows, threads=1 + rows % 2).scan(logs, [request], logs.table(("step",)).num_rows)
    assert_same(found, pieces(name)[0])


@each
def test_small_slices_change_nothing(name, monkeypatch):
    request, logs = examples()[name]
    whole = pieces(name)[0]
    monkeypatch.setattr("mixope.requests.request.SLICE", 13)
    (found,) = MemoryEngine().scan(logs, [request])
    assert_same(found, whole)


@each
def test_a_request_is_small_and_travels(name):
    """Its content is its name: it says the same after a journey, and its answer is the same."""
    request, logs = examples()[name]
    again = pickle.loads(pickle.dumps(request))
    assert set(request.columns(logs.schema)) <= set(logs.schema.columns)
    (found,) = MemoryEngine().scan(logs, [again])
    assert_same(found, pieces(name)[0])


def test_requests_of_different_content_have_different_names():
    names = {content_key(request) for request, _ in examples().values()}
    assert len(names) == len({pickle.dumps(request) for request, _ in examples().values()})


def test_slices_are_small_of_one_fold_and_hold_every_row_once(monkeypatch):
    assert SLICE <= 4096
    monkeypatch.setattr("mixope.requests.request.SLICE", 30)
    logs = vector_logs()
    table = logs.table()
    found = list(slices(table, logs.schema))
    assert max(map(len, found)) == 30
    assert sorted(np.concatenate([b.rows.reward for b in found])) == sorted(Batch(table, logs.schema).rows.reward)
    folds = {}
    for batch in found:
        for episode in batch.rows.draw.tolist():
            assert folds.setdefault(episode, batch.fold) == batch.fold
    assert len(set(folds.values())) > 1
