"""What cannot be answered is refused with words and an exit code; what can be, is answered."""

import numpy as np
import pytest

import mixope
from mixope.base.errors import DataError, UsageError
from mixope.engines import MemoryEngine
from mixope.features import NormalisedBumps

from .worlds import TARGET, lq_columns

BUMPS = NormalisedBumps(10)
NAMES = ("emp", "bch", "dr", "lstdq", "mwl", "sadl", "wis-step")
each = pytest.mark.parametrize("name", NAMES)


def logs(**changes):
    return mixope.read({**lq_columns(1, 12, 30), **changes})


def ask(found, name, target=TARGET, **options):
    return mixope.evaluate(found, target, name, features=BUMPS, **options)


def spoilt(column, value, row=40):
    values = lq_columns(1, 12, 30)[column].copy()
    values[row] = value
    return {column: values}


@each
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", ["observation", "reward", "action"])
def test_numbers_that_are_not_finite_are_named(name, column, bad):
    with pytest.raises(DataError, match=column) as error:
        ask(logs(**spoilt(column, bad)), name)
    assert error.value.exit_code == 3
    assert 40 in error.value.rows


@pytest.mark.parametrize("column", ["observation", "next_observation", "reward", "action", "action_logp"])
def test_a_bad_row_beyond_the_sample_is_found_too(column, monkeypatch):
    monkeypatch.setattr("mixope.session.session.SAMPLE_ROWS", 50)
    with pytest.raises(DataError, match=column.removeprefix("next_")):
        ask(logs(**spoilt(column, np.nan, row=359)), "bch", engine=MemoryEngine(fragment_rows=50))


@each
def test_a_state_column_that_does_not_vary_is_no_obstacle(name):
    base = lq_columns(1, 12, 30)
    wide = {key: np.column_stack([base[key], np.full(360, 3.0)]) for key in ("observation", "next_observation")}
    target = mixope.LinearGaussianPolicy([-0.5, -0.6, 0.0], 0.0, 0.5)
    found, plain = ask(logs(**wide), name, target), ask(logs(), name)
    assert found.value == pytest.approx(plain.value, abs=0.05)


STILL = {"action": np.full((360, 1), 0.25), "action_logp": np.zeros(360)}


@pytest.mark.parametrize("name", ["emp", "dr"])
def test_actions_that_do_not_vary_have_no_density(name):
    with pytest.raises(DataError, match="one value only") as error:
        ask(logs(**STILL), name)
    assert error.value.column == "action"


@pytest.mark.parametrize("name", ["bch", "lstdq", "mwl", "sadl"])
def test_actions_that_do_not_vary_do_not_crash_what_fits_no_density(name):
    found = ask(logs(**STILL), name)
    assert np.isfinite(found.value)
    assert found.verdict.value != "trustworthy"


@each
@pytest.mark.parametrize("law", ["clipped", "squashed"])
def test_actions_outside_the_target_s_box_are_named(name, law):
    targets = {
        "clipped": mixope.LinearGaussianPolicy([-0.5, -0.6], 0.0, 0.5, low=-0.1, high=0.1, clipped=True),
        "squashed": mixope.SquashedGaussianPolicy(lambda s: s @ [[-0.5], [-0.6]], 0.5, low=-0.1, high=0.1),
    }
    if name in ("lstdq", "mwl"):
        assert np.isfinite(ask(logs(), name, targets[law]).value)
        return
    with pytest.raises(DataError, match=r"outside|box"):
        ask(logs(), name, targets[law])


def continuous_target(function):
    """A density with a way to draw, so that every estimator may ask it."""

    class Target(mixope.GaussianPolicy):
        def log_prob(self, observations, actions):
            return function(observations, actions)

    return Target(lambda s: s @ [[-0.5], [-0.6]], 0.5)


@pytest.mark.parametrize("name", ["emp", "bch", "dr"])
def test_a_density_of_zero_everywhere_is_refused(name):
    target = continuous_target(lambda observations, actions: np.full(len(actions), -np.inf))
    with pytest.raises(DataError, match="no weight to any logged row"):
        ask(logs(), name, target)


@pytest.mark.parametrize("name", ["emp", "bch", "dr"])
def test_a_density_that_is_not_a_number_is_refused(name):
    target = continuous_target(lambda observations, actions: np.full(len(actions), np.nan))
    with pytest.raises(DataError, match="not numbers"):
        ask(logs(), name, target)


@pytest.mark.parametrize("name", ["emp", "bch", "wis"])
def test_a_function_of_the_wrong_shape_is_refused(name):
    with pytest.raises(DataError, match="wrong shape"):
        ask(logs(), name, lambda observations, actions: np.ones((len(actions), 1)))


@pytest.mark.parametrize("name", ["emp", "bch", "wis"])
def test_log_densities_taken_for_densities_are_noticed(name):
    with pytest.raises(DataError, match="log-probabilities"):
        ask(logs(), name, lambda observations, actions: TARGET.log_prob(observations, actions) - 5.0)


@pytest.mark.parametrize("name", ["emp", "bch"])
def test_a_density_alone_is_enough_without_a_value_model(name):
    found = ask(logs(), name, lambda observations, actions: np.exp(TARGET.log_prob(observations, actions)))
    assert found.value == pytest.approx(ask(logs(), name).value, abs=1e-6)


def test_a_density_alone_is_enough_for_trajectory_weights():
    found = ask(logs(), "wis", lambda observations, actions: np.exp(TARGET.log_prob(observations, actions)))
    assert found.value == pytest.approx(ask(logs(), "wis").value, abs=1e-9)


@pytest.mark.parametrize("name", ["bch", "wis", "dr"])
def test_recorded_log_densities_named_as_densities_are_noticed(name):
    columns = dict(lq_columns(1, 12, 30))
    columns["action_prob"] = columns.pop("action_logp")
    assert columns["action_prob"].min() < 0
    with pytest.raises(DataError, match="'action_prob' looks like log-probabilities") as caught:
        ask(mixope.read(columns), name)
    assert caught.value.column == "action_prob"
    assert caught.value.rows[0] == np.flatnonzero(columns["action_prob"] <= 0)[0]
    assert "action_logp" in caught.value.hint


def test_a_density_of_zero_on_record_is_no_logarithm():
    columns = dict(lq_columns(1, 12, 30))
    columns["action_prob"] = np.exp(columns.pop("action_logp"))
    columns["action_prob"][3] = 0.0
    with pytest.raises(DataError, match="not a positive number") as caught:
        ask(mixope.read(columns), "bch")
    assert caught.value.rows == (3,)


def test_propensities_of_rows_that_are_no_densities_name_the_column():
    """Rows beyond the sample are seen by the behaviour alone."""
    from mixope.behaviours import Logged
    from mixope.requests.rows import Rows

    zeros = np.zeros(3)
    rows = Rows(
        observation=zeros[:, None],
        action=zeros[:, None],
        reward=zeros,
        next_observation=zeros[:, None],
        terminated=zeros.astype(bool),
        start=zeros.astype(bool),
        propensity=np.array([0.4, -1.2, 0.1]),
        logger=np.array(["a"] * 3),
    )
    with pytest.raises(DataError, match="below 0") as caught:
        Logged().log_prob(rows)
    assert (caught.value.column, caught.value.rows, caught.value.got) == ("action_prob", (1,), -1.2)


@each
def test_a_policy_for_a_logger_without_rows_is_refused(name):
    with pytest.raises(UsageError, match="no rows belong to logger 'loger-0'"):
        ask(logs(), name, loggers={"loger-0": TARGET})


def test_missing_propensities_are_named():
    columns = {k: v for k, v in lq_columns(1, 12, 30).items() if k != "action_logp"}
    with pytest.raises(DataError, match="propensities are missing"):
        ask(mixope.read(columns), "bch")
    assert np.isfinite(ask(mixope.read(columns), "wis").value)


def test_a_mixture_of_unknown_policies_is_refused():
    with pytest.raises(UsageError, match="'logger-0' is not known"):
        ask(logs(), "known-mixture")


@pytest.mark.parametrize("name", ["emp", "dr", "wis"])
def test_a_table_is_no_policy_for_vectors(name):
    columns = {**lq_columns(1, 12, 30)}
    columns["action"] = (columns["action"][:, 0] > 0).astype(int)
    del columns["action_logp"]
    with pytest.raises(DataError, match="a table can only hold ids"):
        ask(mixope.read(columns), name, mixope.TabularPolicy(np.full((4, 2), 0.5)))


def test_a_policy_of_other_dimensions_is_refused():
    with pytest.raises(DataError, match="do not fit"):
        ask(logs(), "emp", mixope.LinearGaussianPolicy([-0.5, -0.6, 1.0], 0.0, 0.5))
    with pytest.raises(DataError, match="components"):
        ask(logs(), "emp", mixope.LinearGaussianPolicy([[-0.5, -0.6], [1.0, 0.0]], 0.0, 0.5))


def test_an_object_that_is_no_estimator_is_refused():
    with pytest.raises(UsageError, match="expected an estimator"):
        ask(logs(), object())


def test_one_episode_has_a_value_and_no_interval():
    columns = {name: values[:30] for name, values in lq_columns(1, 12, 30).items()}
    found = ask(mixope.read(columns), "bch")
    assert np.isfinite(found.value)
    assert found.interval is None
    assert "two episodes" in found.no_interval_because
