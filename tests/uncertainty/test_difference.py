"""One record for every difference: what follows of it, its opposite, and its JSON under every name that is written."""

from dataclasses import replace

import pytest

from mixope.base.restoring import restore
from mixope.uncertainty import Difference, Interval

ALONE = Difference.of(0.5, 0.2, 80.0, 0.95, "t")
WIDE = Interval(-0.1, 1.1, 0.95, "all pairs")
PAIR = replace(ALONE, joint=WIDE, first="new", second="old", independent_standard_error=0.6)


def test_the_conclusion_is_about_the_target_or_names_the_better_of_two():
    assert ALONE.conclusion == "the target is better"
    assert replace(PAIR, joint=None).conclusion == "new is better"
    worse = Difference.of(-0.5, 0.2, 80.0, 0.95, "t")
    assert worse.conclusion == "the target is worse"
    assert replace(worse, first="new", second="old").conclusion == "old is better"


def test_the_conclusion_rests_on_the_joint_interval_where_there_is_one():
    assert PAIR.interval.low > 0
    assert PAIR.conclusion == "cannot be told apart"


def test_without_a_probability_there_is_no_conclusion():
    assert ALONE.without_conclusion.conclusion is None
    assert ALONE.without_conclusion.as_cost.probability_better is None


def test_the_opposite_of_the_opposite_is_the_difference():
    there, back = PAIR.reversed, PAIR.reversed.reversed
    assert (there.first, there.second, there.value) == ("old", "new", -0.5)
    assert there.joint == replace(WIDE, low=-1.1, high=0.1)
    assert there.probability_better == pytest.approx(1 - PAIR.probability_better)
    assert replace(back, probability_better=PAIR.probability_better) == PAIR


def test_the_json_of_a_pair_and_of_a_lone_difference_come_back():
    assert restore(Difference, ALONE.to_dict(), "difference") == ALONE
    assert restore(Difference, PAIR.to_dict(), "difference") == PAIR
    as_experiments_write_it = {"difference" if k == "value" else k: v for k, v in ALONE.to_dict().items()}
    assert restore(Difference, as_experiments_write_it, "effect") == ALONE


def test_a_pair_is_so_many_times_narrower_than_on_different_logs():
    assert PAIR.narrower == pytest.approx(3.0)
    assert PAIR.to_dict()["narrower"] == pytest.approx(3.0)
    assert replace(PAIR, standard_error=0.0).to_dict()["narrower"] is None
