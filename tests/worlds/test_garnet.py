"""A world drawn at random: the same whenever it is asked for, and of the shape that was asked for."""

import numpy as np
import pytest

from mixope.base.errors import UsageError
from mixope.worlds import garnet, truth


def test_the_same_number_is_the_same_world_and_another_is_another():
    first, again, other = garnet(), garnet(), garnet(drawn=1)
    np.testing.assert_array_equal(first.transition.toarray(), again.transition.toarray())
    np.testing.assert_array_equal(first.reward, again.reward)
    assert np.abs(first.transition.toarray() - other.transition.toarray()).max() > 0.1


def test_every_action_leads_to_so_many_states_and_pays_the_same_for_all_of_them():
    model = garnet(actions=3, branches=2)
    assert (np.diff(model.transition.indptr) == 2).all()
    assert len(np.unique(model.reward)) == 30 * 3
    assert model.reward.min() >= 0
    assert model.reward.max() <= 1


def test_a_uniform_policy_comes_to_every_state():
    model = garnet()
    assert truth.stationary(model, np.full((30, 4), 0.25)).min() > 1e-3


@pytest.mark.parametrize("options", [{"actions": 0}, {"branches": 0}, {"branches": 31}])
def test_shapes_that_cannot_be_are_refused(options):
    with pytest.raises(UsageError, match="branches"):
        garnet(**options)
