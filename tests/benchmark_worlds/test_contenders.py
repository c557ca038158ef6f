"""The contenders of the benchmark are what their pages say they are."""

import numpy as np
import pytest
from benchmarks.contenders import worlds
from benchmarks.contenders.anchored import SHARE, Anchored, AnchoredChain, anchored_map
from benchmarks.contenders.blend import least_error
from benchmarks.contenders.truncated import cut, estimated_errors
from benchmarks.contenders.weighted import WeightedValue

from mixope.base.estimand import Estimand
from mixope.estimators.counts.completed_part import part_to_complete
from mixope.estimators.counts.completion import Completed
from mixope.estimators.counts.kriging import first_guess
from mixope.estimators.counts.occupancy import pooled
from mixope.estimators.state_ratio import state_ratio
from mixope.requests.problem import Problem
from mixope.session.session import count
from solving import solved


@pytest.fixture(scope="module")
def rare():
    world = worlds.rare(20)
    return Problem(count(world.logs(0)).transitions, world.target, Estimand())


def test_the_truth_of_the_toy_is_that_of_two_equations():
    """In state 0 the target leaves (.9) or stays and earns (.1); elsewhere it returns and earns (.9), or stays."""
    system = np.array([[1 - 0.1 * 0.95, -0.9 * 0.95], [-0.9 * 0.95, 1 - 0.1 * 0.95]])
    at_zero, elsewhere = np.linalg.solve(system, [0.1, 0.9])
    world = worlds.circle(50)
    assert world.truth * world.unit == pytest.approx((at_zero + 2 * elsewhere) / 3, rel=1e-12)


def test_a_weighted_value_needs_no_weighted_correction(rare):
    corrected, plain = solved(WeightedValue(), rare), solved(WeightedValue("plain", plug_in=True), rare)
    assert corrected.value == pytest.approx(plain.value, rel=1e-6)


@pytest.mark.parametrize("level", [1.0, 4.0, np.inf])
def test_cut_weights_add_up_to_the_same(rare, level):
    flow, occupancy = pooled(rare)
    omega = state_ratio(flow, occupancy)[flow.rows.state]
    less = cut(flow, occupancy, level)
    assert omega @ less.ratio == pytest.approx(omega @ flow.ratio)
    assert np.allclose(less.ratio, flow.ratio) == (level == np.inf)


def test_a_bias_that_chance_does_not_explain_counts_in_the_error():
    noise = np.random.default_rng(0).normal(size=(2, 400)) / 400
    errors, biases = estimated_errors([3.0, 0.0], [0.5 * noise[1], noise[1]])
    assert errors[0] == pytest.approx(9.0, rel=0.01)
    assert biases[0] == pytest.approx(3.0, rel=0.01)
    assert errors[1] == pytest.approx(float(noise[1] @ noise[1]))
    assert biases[1] == 0.0


def test_a_blend_weighs_by_precision_and_never_below_zero():
    assert least_error(np.diag([1.0, 3.0])) == pytest.approx([0.75, 0.25], abs=1e-4)
    assert least_error(np.array([[1.0, 1.8], [1.8, 4.0]])) == pytest.approx([1.0, 0.0], abs=1e-4)


def test_the_rows_of_an_anchored_chain_sum_to_one_and_its_two_sides_agree(rare):
    part = part_to_complete(rare)
    chain = AnchoredChain(anchored_map(part, first_guess(2)))
    generator = np.random.default_rng(1)
    v, law = generator.normal(size=(2, chain.n))
    assert chain.forward(np.ones(chain.n)) == pytest.approx(np.ones(chain.n))
    assert law @ chain.forward(v) == pytest.approx(chain.backward(law) @ v)
    assert SHARE > 0
    assert not np.allclose(chain.forward(v), Completed.forward(Completed(chain.map), v))


def test_an_anchored_value_stays_among_the_rewards(rare):
    found = solved(Anchored(), rare)
    assert -11.0 < found.value < 100.0
    assert found.measures.approximation > 0
