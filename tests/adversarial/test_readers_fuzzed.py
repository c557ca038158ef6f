"""Readers on files that Hypothesis damages: an answer, or an error with words, and never anything else."""

import base64
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .fuzzing.cases import Case
from .fuzzing.judging import judge
from .fuzzing.mutations import BYTES, LOGS, POLICIES, TEXT, originals

FILES = [(read, name) for read in (LOGS, POLICIES) for name in originals(read)]
each = pytest.mark.parametrize(("read", "name"), FILES, ids=[f"{read}, {name}" for read, name in FILES])


def case(read, ending, content):
    recipe = {"ending": ending, "content": base64.b64encode(content).decode()}
    if read == LOGS:
        return Case("log files", {**recipe, "then": "table"})
    return Case("policy files", {**recipe, "several": False})


@each
def test_a_whole_file_is_read(read, name):
    assert judge(case(read, *originals(read)[name])) is None


@each
@settings(max_examples=10)
@given(data=st.data())
def test_a_file_cut_short(read, name, data):
    ending, content = originals(read)[name]
    kept = data.draw(st.integers(0, len(content) - 1))
    assert judge(case(read, ending, content[:kept])) is None


@each
@settings(max_examples=10)
@given(places=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=6))
def test_a_file_with_bytes_changed(read, name, places):
    ending, content = originals(read)[name]
    changed = bytearray(content)
    for place, other in places:
        changed[place % len(changed)] ^= other
    assert judge(case(read, ending, bytes(changed))) is None


@settings(max_examples=30)
@given(read=st.sampled_from((LOGS, POLICIES)), ending=st.sampled_from((".csv", ".parquet", ".feather")), data=st.data())
def test_a_file_of_anything(read, ending, data):
    content = data.draw(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode())))
    assert judge(case(read, ending, content)) is None


@pytest.mark.parametrize("change", dict.fromkeys((*BYTES, *TEXT)), ids=lambda change: change.__name__)
def test_changes_are_the_same_for_the_same_number(change):
    content = originals(LOGS)["csv"][1]
    found = [change(content, Random(number)) for number in range(20)]
    assert found == [change(content, Random(number)) for number in range(20)]
    assert any(other != content for other in found)
