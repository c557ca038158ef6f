"""A verdict is its words, for people who compare it with them."""

import json

import mixope


def test_a_verdict_is_equal_to_its_words_and_written_as_them():
    assert mixope.Verdict.TRUSTWORTHY == "trustworthy"
    assert f"{mixope.Verdict.UNSUPPORTED}" == "not supported by these logs"
    assert json.dumps(mixope.Verdict.CAUTION) == '"caution"'
