"""What every estimator of the registry must satisfy, whatever it computes; new entries are found by themselves.

All of them: no dependence on the order of rows, on names, or on how rows are spread over files; scale; linearity.
Shift (r + c earns c more) holds for all that normalise their weights; not for plain importance sampling, whose weights
average to one only in expectation (there r + c earns c × the mean weight, which is what constant rewards of one earn);
and for no discounted or finite-horizon value where episodes end, because the end earns 0 and not c.
"""

import numpy as np
import pytest

import mixope
from mixope.errors import MixopeError, UsageError
from mixope.estimators import REGISTRY

from .variants import ESTIMANDS, SCALE, SHIFT, WORLDS, answers, columns, question

#: Their weights are not normalised: the mean weight is one in expectation only.
NOT_NORMALISED = {"is", "is-step", "mis", "mis-step"}
#: A state–action law has no time, and the mean of the logs no discount.
REFUSES = {
    "sadl": {"horizon"},
    "mwl": {"horizon"},
    "dualdice": {"horizon"},
    "logged-mean": {"discounted", "horizon"},
}
EACH = [
    (name, world, estimand)
    for name in REGISTRY
    for world in WORLDS
    for estimand in ESTIMANDS
    if estimand not in REFUSES.get(name, ())
]
NORMALISED = [e for e in EACH if e[0] not in NOT_NORMALISED and (e[1] == "continuing" or e[2] == "average")]
each = pytest.mark.parametrize(("name", "world", "estimand"), EACH)


def estimate(name, world, estimand, variant="as it is"):
    found = answers(world, variant, estimand)[name]
    assert not isinstance(found, UsageError), found
    return found


def assert_same(found, wanted, tolerance=1e-10):
    assert found.value == pytest.approx(wanted.value, rel=tolerance, abs=tolerance)
    assert found.standard_error == pytest.approx(wanted.standard_error, rel=1e-8, abs=1e-10)
    assert found.interval.low == pytest.approx(wanted.interval.low, rel=1e-8, abs=1e-9)
    assert found.interval.high == pytest.approx(wanted.interval.high, rel=1e-8, abs=1e-9)
    assert found.effective_sample_size == pytest.approx(wanted.effective_sample_size, rel=1e-8)
    assert found.uncovered_mass == pytest.approx(wanted.uncovered_mass, abs=1e-10)
    assert found.outside_mass == pytest.approx(wanted.outside_mass, abs=1e-12)
    assert (found.n_rows, found.n_episodes, found.verdict) == (wanted.n_rows, wanted.n_episodes, wanted.verdict)


@each
def test_an_estimate_is_a_finite_number_with_an_interval_around_it(name, world, estimand):
    found = estimate(name, world, estimand)
    assert np.isfinite(found.value)
    assert found.standard_error > 0
    assert found.interval.low < found.value < found.interval.high
    assert found.estimator == name
    assert found.estimand.kind == estimand


@pytest.mark.parametrize(
    ("name", "estimand"), [(name, e) for name, refused in REFUSES.items() for e in sorted(refused)]
)
def test_what_an_estimator_lacks_it_refuses_by_name(name, estimand):
    for world in WORLDS:
        refusal = answers(world, "as it is", estimand)[name]
        assert isinstance(refusal, UsageError)
        assert repr(name) in str(refusal)


@each
def test_the_order_of_rows_does_not_matter(name, world, estimand):
    assert_same(estimate(name, world, estimand, "shuffled"), estimate(name, world, estimand))


@each
def test_names_do_not_matter(name, world, estimand):
    assert_same(estimate(name, world, estimand, "renamed"), estimate(name, world, estimand))


@each
@pytest.mark.parametrize("variant", ["split", "split by logger"])
def test_how_rows_are_spread_over_tables_does_not_matter(name, world, estimand, variant):
    assert_same(estimate(name, world, estimand, variant), estimate(name, world, estimand))


@each
def test_scaled_rewards_scale_the_value_and_the_interval(name, world, estimand):
    plain, scaled = estimate(name, world, estimand), estimate(name, world, estimand, "scaled")
    assert scaled.value == pytest.approx(SCALE * plain.value, rel=1e-9, abs=1e-9)
    assert scaled.standard_error == pytest.approx(abs(SCALE) * plain.standard_error, rel=1e-7)
    low, high = sorted(SCALE * end for end in (plain.interval.low, plain.interval.high))
    assert (scaled.interval.low, scaled.interval.high) == pytest.approx((low, high), rel=1e-7, abs=1e-8)


@each
def test_the_value_is_linear_in_the_rewards(name, world, estimand):
    """value(r + c) = value(r) + c value(1), for every estimator: no ratio and no weight looks at rewards."""
    plain, shifted, ones = (estimate(name, world, estimand, v) for v in ("as it is", "shifted", "ones"))
    assert shifted.value == pytest.approx(plain.value + SHIFT * ones.value, rel=1e-9, abs=1e-9)


@each
def test_a_constant_reward_is_earned_by_all_that_normalise(name, world, estimand):
    ones = estimate(name, world, estimand, "ones").value
    if name in NOT_NORMALISED:
        assert ones == pytest.approx(1.0, abs=0.9)
        assert ones != 1.0
    elif world == "ending" and estimand != "average":
        assert 0.0 < ones < 1.0  # the end is absorbing and earns nothing
    else:
        assert ones == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("name", "world", "estimand"), NORMALISED)
def test_shifted_rewards_shift_the_interval_and_leave_its_width(name, world, estimand):
    """Where a constant is earned in full, see the test of constant rewards."""
    plain, shifted = estimate(name, world, estimand), estimate(name, world, estimand, "shifted")
    assert shifted.value == pytest.approx(plain.value + SHIFT, rel=1e-9)
    assert shifted.interval.low == pytest.approx(plain.interval.low + SHIFT, rel=1e-7)
    assert shifted.interval.high == pytest.approx(plain.interval.high + SHIFT, rel=1e-7)


@pytest.mark.parametrize("name", REGISTRY)
def test_an_entry_says_whether_it_needs_propensities(name):
    """Without propensities and without the loggers' policies it answers, or says what is missing."""
    bare = {key: values for key, values in columns("continuing").items() if key != "action_prob"}
    target, known = question()
    if REGISTRY[name].needs:
        with pytest.raises(MixopeError, match=r"propensities|policy of logger"):
            mixope.evaluate(mixope.read(bare), target, name)
        assert np.isfinite(mixope.evaluate(mixope.read(bare), target, name, loggers=known).value)
    else:
        assert np.isfinite(mixope.evaluate(mixope.read(bare), target, name).value)


def test_every_entry_is_named_as_it_calls_itself_and_says_when_to_use_it():
    for name, entry in REGISTRY.items():
        assert entry.make().name == name
        assert entry.family
        assert entry.when
