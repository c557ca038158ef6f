"""Numbering distinct tuples equals sorting them in Python."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mixope.base.arrays import TupleIndex, distinct, number_tuples, runs

ROWS = st.lists(
    st.tuples(st.integers(-3, 3), st.sampled_from(["a", "b", "door"]), st.integers(-(2**62), 2**62)), min_size=1
)


def columns(rows):
    first, second, third = zip(*rows, strict=True)
    return [np.array(first), np.array(second), np.array(third)]


@settings(max_examples=80, deadline=None)
@given(rows=ROWS)
def test_tuples_are_numbered_in_sorted_order_with_their_first_row(rows):
    codes, first = number_tuples(columns(rows))
    distinct = sorted(set(rows))
    assert codes.tolist() == [distinct.index(row) for row in rows]
    assert first.tolist() == [rows.index(row) for row in distinct]


@settings(max_examples=80, deadline=None)
@given(known=ROWS, asked=ROWS)
def test_tuples_are_found_among_those_numbered(known, asked):
    distinct = sorted(set(known))
    found = TupleIndex(columns(known)).find(columns(asked))
    assert found.tolist() == [distinct.index(row) if row in distinct else -1 for row in asked]


def test_many_wide_columns_do_not_overflow():
    wide = np.random.default_rng(0).integers(-(2**62), 2**62, (300, 12))
    codes, first = number_tuples(list(wide.T))
    np.testing.assert_array_equal(wide[first][codes], wide)
    assert sorted(codes.tolist()) == list(range(300))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.sampled_from([31, 1000]))
def test_distinct_codes_are_those_that_sorting_finds(codes, n_codes):
    found, place = distinct(np.array(codes), n_codes)
    wanted, inverse = np.unique(codes, return_inverse=True)
    assert found.tolist() == wanted.tolist()
    assert place.tolist() == inverse.tolist()


@settings(max_examples=80, deadline=None)
@given(values=st.lists(st.integers(0, 2)), text=st.booleans())
def test_runs_put_together_are_the_values(values, text):
    array = np.array(values, dtype=object if text else np.int64)
    heads, run = runs(array)
    assert heads[run].tolist() == values
    assert all(left != right for left, right in pairwise(heads.tolist()))
